// Strides and sizes that real callers have: sliced and expanded tensors, more than 2^31 logits, strides beyond 2^32.
#include <cstring>

#include <fmt/format.h>

#include "tests/cuda/problem.hpp"
#include "tests/reference/row_generators.hpp"

namespace {

using bilogp::LogpArgs;
using cuda_test::Buffer;
using cuda_test::DeviceTensor;
using cuda_test::DType;
using cuda_test::first_device;
using cuda_test::Runtime;
using cuda_test::Storage;
using cuda_test::TensorView;
namespace reference = bilogp::reference;

// Rows of bfloat16 at given places of a large buffer, scored and compared; the rest of it is zero.
struct FarRows {
  std::int64_t rows, columns, row_stride;
  std::vector<std::int64_t> looked_at;

  [[nodiscard]] std::string check() const {
    const std::size_t bytes = 2 * static_cast<std::size_t>((rows - 1) * row_stride + columns);
    Buffer memory(first_device(), bytes);
    bilogp::cuda::Device& device = bilogp::cuda::Device::get(first_device().index);
    bilogp::cuda::check(device.driver(),
                        device.driver().fill_words(reinterpret_cast<bilogp::cuda::Address>(memory.data()), 0, bytes / 4,
                                                   device.own_stream()),
                        "clearing");
    std::vector<std::vector<std::uint32_t>> made;
    for (const std::int64_t row : looked_at) {
      made.push_back(reference::make_row(reference::RowKind::normal_5, columns, Storage::bfloat16,
                                         static_cast<std::uint64_t>(row) + 1));
      const std::vector<std::uint16_t> halves = reference::to_16_bits(Storage::bfloat16, made.back());
      memory.put(2 * static_cast<std::size_t>(row * row_stride), halves.data(), 2 * halves.size());
    }
    const std::vector<std::int64_t> ids(static_cast<std::size_t>(rows), columns - 1);
    std::vector<std::uint32_t> logp(static_cast<std::size_t>(rows));
    const DeviceTensor ids_there(first_device(), TensorView::contiguous(ids.data(), DType::int64, {rows}));
    DeviceTensor logp_there(first_device(), TensorView::contiguous(logp.data(), DType::float32, {rows}));
    LogpArgs args;
    args.logits = TensorView::strided(memory.data(), DType::bfloat16, {rows, columns}, {row_stride, 1}, first_device());
    args.target_ids = ids_there.view();
    args.logp = logp_there.view();
    for (const int plan : cuda_test::plans_of(bilogp::Operator::logp_forward)) {
      args.options.plan = plan;
      logp_there.overwrite(0);
      Runtime::get("cuda").logp(args);
      cuda_test::wait_for(first_device(), nullptr);
      if (std::string said = logp_there.bring_back(); !said.empty()) return said;
      for (std::size_t i = 0; i < looked_at.size(); ++i) {
        const std::vector<std::int64_t> id = {columns - 1};
        const std::uint32_t right = reference::score(made[i], id, {}).logp.front();
        const std::uint32_t got = logp[static_cast<std::size_t>(looked_at[i])];
        if (got != right) return fmt::format("plan {}, row {}: {:#x}, expected {:#x}", plan, looked_at[i], got, right);
      }
    }
    return {};
  }
};

} // namespace

TEST_SUITE_BEGIN("layouts");

TEST_CASE("more than 2^31 logits in one call") {
  CHECK(FarRows{20000, 131072, 131072, {0, 1, 9999, 16383, 16384, 19999}}.check() == "");
}

TEST_CASE("rows more than 2^32 elements apart") {
  CHECK(FarRows{3, 40000, (std::int64_t{1} << 32) + 24, {0, 1, 2}}.check() == "");
}

TEST_CASE("all but the last position of every sequence, and dimensions that do not collapse") {
  const std::int64_t columns = 5003;
  std::vector<float> logits;
  std::vector<std::vector<std::uint32_t>> made;
  for (std::uint64_t row = 0; row < 24; ++row) {
    made.push_back(reference::make_row(reference::RowKind::normal_2, columns, Storage::float32, row));
    for (const std::uint32_t bits : made.back()) {
      float value = 0;
      std::memcpy(&value, &bits, 4);
      logits.push_back(value);
    }
  }
  std::vector<std::int64_t> id = {17};
  std::vector<std::uint32_t> logp(24);
  const DeviceTensor logits_there(first_device(),
                                  TensorView::contiguous(logits.data(), DType::float32, {2, 3, 4, columns}));
  const DeviceTensor id_there(first_device(), TensorView::contiguous(id.data(), DType::int64, {1}));
  DeviceTensor logp_there(first_device(), TensorView::contiguous(logp.data(), DType::float32, {2, 3, 3}));
  LogpArgs args;
  args.logits = logits_there.view();
  args.logits.shape[2] = 3; // [:, :, :-1]
  args.target_ids = TensorView::strided(id_there.view().data, DType::int64, {2, 3, 3}, {0, 0, 0}, first_device());
  args.logp = logp_there.view();
  Runtime::get("cuda").logp(args);
  cuda_test::wait_for(first_device(), nullptr);
  CHECK(logp_there.bring_back() == "");
  for (std::size_t b = 0; b < 6; ++b)
    for (std::size_t t = 0; t < 3; ++t)
      CHECK(logp[3 * b + t] == reference::score(made[4 * b + t], id, {}).logp.front());
}

TEST_SUITE_END();
