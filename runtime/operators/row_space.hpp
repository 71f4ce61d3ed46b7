// The rows of a call: the leading dimensions that all its tensors share, brought to two for the kernels.
//
// Neighbouring dimensions that every tensor walks in one stride become one. What is left beyond two dimensions is
// looped over on the host.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "bilogp/tensor.hpp"
#include "runtime/kernel_arguments.hpp"

namespace bilogp {

class RowSpace {
public:
  // The leading dimensions are the first `leading_rank` of `tensor`.
  RowSpace(const TensorView& tensor, int leading_rank);

  // Registers a tensor with the same leading dimensions and returns its slot. Call before `collapse`.
  int add(const TensorView& tensor);
  void collapse();

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; } // of all launches together
  [[nodiscard]] std::int64_t rows_per_launch() const noexcept { return inner_ * outer_; }
  [[nodiscard]] std::int64_t inner_rows() const noexcept { return inner_; }
  [[nodiscard]] kernel::RowStrides strides(int index) const noexcept;
  // Launches needed, and what a tensor's pointer moves by (elements) for launch number `launch`.
  [[nodiscard]] std::int64_t launches() const noexcept { return launches_; }
  [[nodiscard]] std::int64_t offset(int index, std::int64_t launch) const noexcept;

private:
  using Dimensions = std::array<std::int64_t, TensorView::max_rank>;
  static constexpr int inline_slots = 24; // 16 shards and what goes with them

  [[nodiscard]] const Dimensions& slot(int index) const noexcept {
    return index < inline_slots ? slots_[static_cast<std::size_t>(index)]
                                : more_slots_[static_cast<std::size_t>(index - inline_slots)];
  }
  Dimensions& slot(int index) noexcept { return const_cast<Dimensions&>(std::as_const(*this).slot(index)); }
  void drop_dimension(int dimension) noexcept;

  int rank_ = 0;
  int slot_count_ = 0;
  std::int64_t rows_ = 1, inner_ = 1, outer_ = 1, launches_ = 1;
  Dimensions shape_{};
  std::array<Dimensions, inline_slots> slots_; // of the first slot_count_; clearing all would cost a small call
  std::vector<Dimensions> more_slots_;         // many shards only: the usual call allocates nothing
};

} // namespace bilogp
