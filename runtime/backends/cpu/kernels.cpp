#include "runtime/backends/cpu/kernels.hpp"

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/embedded_templates.hpp"

namespace bilogp::cpu {
namespace {

// Raised when images of an older layout must not be used any more.
constexpr std::string_view key_schema = "1";

std::string_view logits_type(DType dtype) {
  switch (dtype) {
  case DType::float16:
    return "Float16";
  case DType::bfloat16:
    return "Bfloat16";
  default:
    return "Float32";
  }
}

bool belongs_to_cpu(std::string_view name) {
  return name.starts_with("canon/") || name.starts_with("rows/") || name.starts_with("device/cpu/");
}

} // namespace

std::string entry_name(const Specialization& spec) {
  return fmt::format("bilogp_{}", to_string(spec.op));
}

CompileRequest compile_request(const Specialization& spec, const Target& target) {
  CompileRequest request;
  const std::string main_file = fmt::format("{}.kernel", to_string(spec.op));
  for (const EmbeddedFile& file : embedded_templates())
    if (file.name == main_file)
      request.files.insert(request.files.begin(), {file.name, file.text});
    else if (belongs_to_cpu(file.name))
      request.files.push_back({file.name, file.text});
  request.defines = {
      "BILOGP_DEVICE_CPU=1",
      fmt::format("BILOGP_LOGITS={}", logits_type(spec.logits_dtype)),
      fmt::format("BILOGP_ID={}", spec.id_dtype == DType::int32 ? "i32" : "i64"),
      fmt::format("BILOGP_VOCAB={}", spec.vocab_size),
  };
  request.entries = {entry_name(spec)};
  request.target = target;
  return request;
}

cache::Key store_key(const CompileRequest& request) {
  cache::Key key;
  key.add("schema", key_schema).add("backend", "cpu").add("compiler", compiler_version());
  key.add("component", component_revision());
  key.add("target", request.target.name).add("main", request.files.front().name);
  std::string sources;
  for (const SourceFile& file : request.files)
    sources += fmt::format("{}:{}:{}:{}", file.name.size(), file.name, file.text.size(), file.text);
  key.add("sources", cache::to_hex(cache::hash128(sources)));
  for (const std::string& option : compile_options()) key.add("option", option);
  for (const std::string& define : request.defines) key.add("define", define);
  return key;
}

} // namespace bilogp::cpu
