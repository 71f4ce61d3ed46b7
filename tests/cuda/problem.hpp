// Rows that lie on a device with everything that a call takes, to be run many times.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/cuda/suites.hpp"

namespace cuda_test {

class Problem {
public:
  Problem(const Device& device, const Mix& mix);

  // Arguments of calls on the device; the outputs are the problem's own.
  bilogp::LogpArgs forward(void* stream, int plan = -1);
  bilogp::LogpGradientArgs with_gradient(void* stream, int plan = -1);
  bilogp::LogpBackwardArgs backward(void* stream, int plan = -1); // from what `forward` wrote
  // Makes the outputs hold what no answer does.
  void clear();
  void clear_gradient();
  // Brings back what `forward` or `with_gradient` wrote; the stream must have been waited for. "" or what differs.
  std::string check_scores();
  std::string check_gradient();
  // The bits of logp, lse and the row states, and of the gradient, as they were last brought back.
  [[nodiscard]] std::vector<std::uint32_t> scores() const;
  [[nodiscard]] const std::vector<char>& gradient() const { return grad_bytes_; }

  [[nodiscard]] Runtime& runtime() const { return Runtime::get("cuda"); }
  [[nodiscard]] std::int64_t rows() const { return batch_.rows(); }

private:
  Batch batch_;
  std::vector<char> logits_bytes_, id_bytes_, grad_bytes_;
  std::vector<std::uint32_t> logp_, lse_;
  std::vector<std::int32_t> state_;
  std::vector<float> upstream_;
  Storage storage_;
  std::int64_t columns_;
  std::unique_ptr<DeviceTensor> logits_, ids_, grad_, logp_there_, lse_there_, state_there_, upstream_there_,
      temperatures_;
};

} // namespace cuda_test
