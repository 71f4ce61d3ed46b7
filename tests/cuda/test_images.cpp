// Compiled kernels on their way into a device: the store, damage, PTX.
#include <cstdlib>

#include "cache/store.hpp"
#include "runtime/backends/cuda/kernels.hpp"
#include "runtime/backends/cuda/module.hpp"
#include "tests/cuda/problem.hpp"

namespace {

namespace cuda = bilogp::cuda;
using bilogp::DType;
using bilogp::Operator;
using bilogp::Specialization;
using cuda_test::first_device;

cuda::Device& device() {
  return cuda::Device::get(first_device().index);
}

} // namespace

TEST_SUITE_BEGIN("images");

TEST_CASE("a stored kernel that the driver refuses is dropped and compiled again") {
  const Specialization spec{Operator::logp_forward, DType::float32, DType::int32, 12345};
  const cuda::CompileRequest request = cuda::compile_request(spec, device().target());
  bilogp::cache::Store store(bilogp::cache::default_location(), {});
  const std::string junk = "\x7f"
                           "ELF" +
                           std::string(5000, 'x');
  REQUIRE(store.put(cuda::store_key(request), {"cuda", device().target().name, "junk", describe(spec), 1}, junk));
  const bilogp::WarmupReport report = bilogp::Runtime::get("cuda").warmup({&spec, 1});
  REQUIRE_FALSE(report.kernels.empty());
  CHECK(report.kernels.front().origin == bilogp::KernelOrigin::compiled);
  const std::optional<bilogp::cache::Entry> entry = store.get(cuda::store_key(request));
  REQUIRE(entry.has_value());
  CHECK(entry->payload != junk);
}

TEST_CASE("PTX of an older architecture stands in where NVRTC does not know the device") {
  const Specialization spec{Operator::logp_finish, DType::float32, DType::int64, 0};
  cuda::CompileRequest request = cuda::compile_request(spec, device().target());
  request.target.capability += 1; // unknown to any NVRTC: the next older one's PTX
  request.target.name = "sm_next";
  const cuda::CompiledImage compiled = cuda::compile(request);
  REQUIRE(cuda::is_ptx(compiled.image));
  CHECK(cuda::load_function(device(), compiled.image, request.entry) != nullptr);
  CHECK(cuda_test::contains(cuda_test::refusal([&] { cuda::load_function(device(), compiled.image, "no_such_entry"); }),
                            "no_such_entry"));
}

TEST_CASE("machine code of another architecture, and bytes that are none, are refused as images") {
  const Specialization spec{Operator::logp_finish, DType::float32, DType::int64, 0};
  const cuda::Target other = cuda::resolve_target(device().target().capability == 75 ? "sm_80" : "sm_75");
  const cuda::CompileRequest request = cuda::compile_request(spec, other);
  const std::string foreign = cuda::compile(request).image;
  for (const std::string& image : {foreign, std::string("PTX? no"), foreign.substr(0, foreign.size() / 2)})
    CHECK(cuda_test::refusal([&] { cuda::load_function(device(), image, request.entry); }).starts_with("cache: "));
}

TEST_SUITE_END();
