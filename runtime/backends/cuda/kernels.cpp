#include "runtime/backends/cuda/kernels.hpp"

#include <utility>

#include "runtime/backends/cuda/nvrtc.hpp"
#include "runtime/backends/cuda/plans.hpp"
#include "runtime/kernel_sources.hpp"

namespace bilogp::cuda {
namespace {

// Raised when images of an older layout must not be used any more.
constexpr std::string_view key_schema = "1";

} // namespace

std::string entry_name(const Specialization& spec) {
  return kernel_entry_name(spec);
}

CompileRequest compile_request(const Specialization& spec, const Target& target) {
  CompileRequest request;
  request.files = kernel_files<SourceFile>(spec, {"gpu", "cuda"});
  request.defines = kernel_definitions(spec, "CUDA");
  request.defines.push_back(fmt::format("BILOGP_NUMERICS={}", spec.numerics == Numerics::native ? 1 : 0));
  request.defines.push_back(fmt::format("BILOGP_PLAN={}", spec.variant));
  for (std::string& definition : plan_definitions(spec, target.capability))
    request.defines.push_back(std::move(definition));
  request.entry = entry_name(spec);
  request.target = target;
  return request;
}

cache::Key store_key(const CompileRequest& request) {
  cache::Key key;
  key.add("schema", key_schema).add("backend", "cuda").add("compiler", nvrtc_identity());
  add_request(key, request, compile_options());
  return key;
}

} // namespace bilogp::cuda
