// A batch of rows in one storage type, scored through the public API and compared with the slow reference, bit by bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bilogp/bilogp.hpp"
#include "tests/reference/canon_reference.hpp"

namespace bilogp::test {

using reference::Storage;

DType dtype_of(Storage storage);

struct Layout {
  std::int64_t row_padding = 0;  // columns between rows
  std::int64_t misalignment = 0; // bytes by which the logits begin off their natural alignment
};

// How a batch's calls reach the library: straight, unless a device's memory is in between.
class Calls {
public:
  virtual ~Calls() = default;
  virtual void logp(Runtime& runtime, const LogpArgs& args) { runtime.logp(args); }
  virtual void logp_backward(Runtime& runtime, const LogpBackwardArgs& args) { runtime.logp_backward(args); }
  virtual void logp_with_gradient(Runtime& runtime, const LogpGradientArgs& args) { runtime.logp_with_gradient(args); }
  virtual void logp_partial(Runtime& runtime, const LogpPartialArgs& args) { runtime.logp_partial(args); }
  virtual void logp_finish(Runtime& runtime, const LogpFinishArgs& args) { runtime.logp_finish(args); }
};
Calls& straight_calls();

// Rows of `columns` logits, as the bytes that kernels see.
class Batch {
public:
  Batch(Storage storage, std::int64_t columns, Layout layout = {});

  // Appends a row of binary32 bits that the storage type holds exactly, with its target ids (the same number for all).
  void add(std::vector<std::uint32_t> row, std::vector<std::int64_t> target_ids, float grad_logp = 1);

  // Options of all calls and of the reference, to be set before the first check; fields of LogpOptions that are tensors
  // stay the caller's.
  LogpOptions options;
  DType id_dtype = DType::int64;
  Calls* calls = &straight_calls();
  std::vector<float> temperatures; // one per row, or empty: options.temperature

  // Each runs the operator and returns "" or what differs from the reference.
  std::string check_forward(Runtime& runtime);
  std::string check_backward(Runtime& runtime, bool in_place); // one target id per row
  std::string check_with_gradient(Runtime& runtime, bool in_place);
  std::string check_backward_shards(Runtime& runtime, const std::vector<std::int64_t>& cuts);
  // Cuts the vocabulary at `cuts` (sorted, inside (0, columns)), runs partial per shard and finish.
  std::string check_shards(Runtime& runtime, const std::vector<std::int64_t>& cuts);

  // Works out the reference's answers of all rows, and their gradients where they have one id, on so many threads.
  void score_all(int threads);

  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(rows_.size()); }
  [[nodiscard]] std::int64_t ids_per_row() const { return static_cast<std::int64_t>(rows_.front().target_ids.size()); }
  [[nodiscard]] TensorView logits(std::vector<char>& memory) const; // a fresh copy of the bytes
  [[nodiscard]] TensorView ids(std::vector<char>& memory) const;
  [[nodiscard]] const reference::RowAnswer& expected(std::int64_t index);
  [[nodiscard]] const std::vector<std::uint32_t>& expected_gradient(std::int64_t index); // binary32

private:
  struct Row {
    std::vector<std::uint32_t> logits;
    std::vector<std::int64_t> target_ids;
    float grad_logp = 1;
    bool is_scored = false;
    reference::RowAnswer answer;
    std::vector<std::uint32_t> gradient;
  };
  struct ForwardCall;
  struct BackwardCall;
  void prepare(ForwardCall& call);
  void prepare(BackwardCall& call);
  std::string compare_gradient(const std::string& what, const char* got);
  [[nodiscard]] reference::RowOptions reference_options(std::int64_t row) const;
  [[nodiscard]] LogpOptions call_options();
  std::string compare(const std::string& what, const ForwardCall& call);
  std::string compare(const std::string& what, const std::vector<std::uint32_t>& logp,
                      const std::vector<std::uint32_t>& lse, const std::vector<std::int32_t>& state);

  Storage storage_;
  std::int64_t columns_;
  Layout layout_;
  std::vector<Row> rows_;
};

} // namespace bilogp::test
