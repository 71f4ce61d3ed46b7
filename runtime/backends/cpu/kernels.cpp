#include "runtime/backends/cpu/kernels.hpp"

#include "runtime/kernel_sources.hpp"

namespace bilogp::cpu {
namespace {

// Raised when images of an older layout must not be used any more.
constexpr std::string_view key_schema = "1";

} // namespace

std::string entry_name(const Specialization& spec) {
  return kernel_entry_name(spec);
}

CompileRequest compile_request(const Specialization& spec, const Target& target) {
  CompileRequest request;
  request.files = kernel_files<SourceFile>(spec, {"cpu"});
  request.defines = kernel_definitions(spec, "CPU");
  request.entries = {entry_name(spec)};
  request.target = target;
  return request;
}

cache::Key store_key(const CompileRequest& request) {
  cache::Key key;
  key.add("schema", key_schema).add("backend", "cpu").add("compiler", compiler_version());
  key.add("component", component_revision());
  add_request(key, request, compile_options());
  return key;
}

} // namespace bilogp::cpu
