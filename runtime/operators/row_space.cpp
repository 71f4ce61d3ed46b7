#include "runtime/operators/row_space.hpp"

namespace bilogp {

RowSpace::RowSpace(const TensorView& tensor, int leading_rank) : rank_(leading_rank) {
  std::uint64_t rows = 1; // unsigned: beside an extent of 0 the others may be anything
  for (int d = 0; d < rank_; ++d) {
    shape_[static_cast<std::size_t>(d)] = tensor.shape[d];
    rows *= static_cast<std::uint64_t>(tensor.shape[d]);
  }
  rows_ = static_cast<std::int64_t>(rows);
}

int RowSpace::add(const TensorView& tensor) {
  if (slot_count_ >= inline_slots) more_slots_.emplace_back();
  Dimensions& strides = slot(slot_count_);
  for (int d = 0; d < rank_; ++d) strides[static_cast<std::size_t>(d)] = tensor.strides[d];
  return slot_count_++;
}

void RowSpace::drop_dimension(int dimension) noexcept {
  for (int d = dimension; d + 1 < rank_; ++d) {
    const auto to = static_cast<std::size_t>(d);
    shape_[to] = shape_[to + 1];
    for (int s = 0; s < slot_count_; ++s) slot(s)[to] = slot(s)[to + 1];
  }
  --rank_;
}

void RowSpace::collapse() {
  for (int d = rank_ - 1; d >= 0; --d)
    if (shape_[static_cast<std::size_t>(d)] == 1) drop_dimension(d);
  for (int d = rank_ - 2; d >= 0; --d) {
    const auto outer = static_cast<std::size_t>(d);
    bool one_stride = true;
    for (int s = 0; s < slot_count_ && one_stride; ++s)
      one_stride = slot(s)[outer] == slot(s)[outer + 1] * shape_[outer + 1];
    if (!one_stride) continue;
    const std::int64_t extent = shape_[outer];
    drop_dimension(d); // keeps the inner strides
    shape_[outer] *= extent;
  }
  inner_ = rank_ > 0 ? shape_[static_cast<std::size_t>(rank_ - 1)] : 1;
  outer_ = rank_ > 1 ? shape_[static_cast<std::size_t>(rank_ - 2)] : 1;
  for (int d = 0; d < rank_ - 2; ++d) launches_ *= shape_[static_cast<std::size_t>(d)];
}

kernel::RowStrides RowSpace::strides(int index) const noexcept {
  const Dimensions& strides = slot(index);
  return {rank_ > 1 ? strides[static_cast<std::size_t>(rank_ - 2)] : 0,
          rank_ > 0 ? strides[static_cast<std::size_t>(rank_ - 1)] : 0};
}

std::int64_t RowSpace::offset(int index, std::int64_t launch) const noexcept {
  std::int64_t offset = 0;
  for (int d = rank_ - 3; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    offset += (launch % shape_[at]) * slot(index)[at];
    launch /= shape_[at];
  }
  return offset;
}

} // namespace bilogp
