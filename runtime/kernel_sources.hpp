// What the back ends' kernels have in common before a compiler sees them: their templates, definitions and entry, and
// how sources enter a key.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bilogp/specialization.hpp"
#include "cache/key.hpp"
#include "runtime/embedded_templates.hpp"

namespace bilogp {

// "bilogp_logp_forward"
inline std::string kernel_entry_name(const Specialization& spec) {
  return fmt::format("bilogp_{}", to_string(spec.op));
}

// The operator's template first, then all headers of the contract, of rows and of these devices ("gpu", "cuda").
template<class SourceFile>
std::vector<SourceFile> kernel_files(const Specialization& spec, std::initializer_list<std::string_view> devices) {
  const auto belongs = [&](std::string_view name) {
    if (name.starts_with("canon/") || name.starts_with("rows/")) return true;
    for (const std::string_view device : devices)
      if (name.starts_with(fmt::format("device/{}/", device))) return true;
    return false;
  };
  const std::string main_file = fmt::format("{}.kernel", to_string(spec.op));
  std::vector<SourceFile> files;
  for (const EmbeddedFile& file : embedded_templates())
    if (file.name == main_file)
      files.insert(files.begin(), {file.name, file.text});
    else if (belongs(file.name))
      files.push_back({file.name, file.text});
  return files;
}

// What the specialization is in the templates' words; `device` is CPU, CUDA, ...
inline std::vector<std::string> kernel_definitions(const Specialization& spec, std::string_view device) {
  const std::string_view logits = spec.logits_dtype == DType::float16    ? "Float16"
                                  : spec.logits_dtype == DType::bfloat16 ? "Bfloat16"
                                                                         : "Float32";
  return {
      fmt::format("BILOGP_DEVICE_{}=1", device),
      fmt::format("BILOGP_LOGITS={}", logits),
      fmt::format("BILOGP_ID={}", spec.id_dtype == DType::int32 ? "i32" : "i64"),
      fmt::format("BILOGP_VOCAB={}", spec.vocab_size),
  };
}

// The fields of a compile request that say what is compiled for what, and how; the compiler is the back end's to name.
template<class Request>
void add_request(cache::Key& key, const Request& request, const std::vector<std::string>& options) {
  key.add("target", request.target.name).add("main", request.files.front().name);
  std::string sources;
  for (const auto& file : request.files)
    sources += fmt::format("{}:{}:{}:{}", file.name.size(), file.name, file.text.size(), file.text);
  key.add("sources", cache::to_hex(cache::hash128(sources)));
  for (const std::string& option : options) key.add("option", option);
  for (const std::string& define : request.defines) key.add("define", define);
}

} // namespace bilogp
