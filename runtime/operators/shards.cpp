#include "runtime/operators/shards.hpp"

#include <bit>

#include <fmt/format.h>

#include "bilogp/runtime.hpp"
#include "runtime/kernel_key.hpp"
#include "runtime/operators/checks.hpp"

namespace bilogp {

void check_shard(std::int64_t begin, std::int64_t end, std::int64_t full_vocab) {
  if (full_vocab < 1 || full_vocab > largest_vocab)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("full_vocab is {}; expected 1 to {} stored columns", full_vocab, largest_vocab));
  if (begin < 0 || begin >= end || end > full_vocab)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("the shard is [{}, {}); expected 0 <= begin < end <= {}", begin, end, full_vocab));
}

void check_nodes(const TensorView& nodes, const TensorView& rows, int leading_rank, std::int64_t count) {
  check::dtype("nodes", nodes, DType::int32);
  if (nodes.rank != leading_rank + 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("nodes has {} dimensions; expected {}, [..., nodes, 2]", nodes.rank, leading_rank + 2));
  TensorView without_last = nodes;
  without_last.rank = nodes.rank - 1;
  check::shape("nodes (without its last dimension of 2)", without_last, rows, leading_rank, count);
  if (nodes.shape[nodes.rank - 1] != 2)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("nodes has {} words per node; expected 2", nodes.shape[nodes.rank - 1]));
  check::last_stride_one("nodes", nodes);
}

inline namespace v1 {

std::int64_t node_count(std::int64_t begin, std::int64_t end, std::int64_t full_vocab) {
  check_shard(begin, end, full_vocab);
  // The last shard carries the zero padding up to the power of two.
  auto left = static_cast<std::uint64_t>(begin);
  const std::uint64_t stop =
      end == full_vocab ? std::bit_ceil(static_cast<std::uint64_t>(full_vocab)) : static_cast<std::uint64_t>(end);
  std::int64_t count = 0;
  for (; left < stop; ++count) {
    std::uint64_t width = left == 0 ? std::bit_floor(stop) : left & (~left + 1);
    while (width > stop - left) width /= 2;
    left += width;
  }
  return count;
}

} // namespace v1
} // namespace bilogp
