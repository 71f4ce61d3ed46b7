// What the suites on a device share.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "runtime/backends/cuda/plans.hpp"
#include "tests/cpu/mixed.hpp"
#include "tests/cuda/device_calls.hpp"
#include "tests/refusal.hpp"

namespace cuda_test {

using bilogp::Device;
using bilogp::DType;
using bilogp::LogpOptions;
using bilogp::Numerics;
using bilogp::Operator;
using bilogp::Runtime;
using bilogp::test::Batch;
using bilogp::test::contains;
using bilogp::test::Mix;
using bilogp::test::refusal;
using bilogp::test::Storage;

inline Device first_device() {
  return devices().front();
}
inline int test_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// Cases that take long are one case per storage, for whoever runs them beside each other.
template<Storage value> struct Of {
  static constexpr Storage storage = value;
};
using OfFloat32 = Of<Storage::float32>;
using OfFloat16 = Of<Storage::float16>;
using OfBfloat16 = Of<Storage::bfloat16>;

// The number of every plan that can be forced for an operator on the first device: -1 (chosen), 0, 1, 16 + variant.
std::vector<int> plans_of(Operator op);
// Of all operators together.
std::vector<int> all_plans();
// Whether a batch made from `mix`, without padding, goes under this plan as itself on the first device.
bool serves(int plan, Operator op, const Mix& mix, Numerics numerics = Numerics::portable);

// A batch made from `mix`, run on the device under each of these plans and compared in every way.
void check_mix_on_device(const Mix& mix, std::int64_t cuts = 0, std::vector<int> plans = {});
// A batch of rows of the caller's own, with its shards cut at `bounds`.
void check_batch_on_device(Batch batch, const std::string& what, const std::vector<std::int64_t>& bounds = {},
                           std::vector<int> plans = {});

} // namespace cuda_test

TYPE_TO_STRING_AS("OfFloat32", cuda_test::OfFloat32);
TYPE_TO_STRING_AS("OfFloat16", cuda_test::OfFloat16);
TYPE_TO_STRING_AS("OfBfloat16", cuda_test::OfBfloat16);
