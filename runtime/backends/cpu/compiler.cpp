#include "runtime/backends/cpu/compiler.hpp"

#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cpu/component_library.hpp"
#include "runtime/backends/cpu/image.hpp"

namespace bilogp::cpu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// clang -cc1's arguments for a request, without the main file.
std::vector<std::string> arguments_of(const CompileRequest& request) {
  std::vector<std::string> arguments = {"-triple", request.target.triple, "-target-cpu", request.target.cpu};
  for (const std::string& feature : request.target.features) {
    arguments.emplace_back("-target-feature");
    arguments.push_back(feature);
  }
  const std::vector<std::string>& options = compile_options();
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (const std::string& define : request.defines) arguments.push_back("-D" + define);
  return arguments;
}

std::vector<const char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return pointers;
}

std::string image_of(const bilogp_clang_result& result, const std::vector<std::string>& names) {
  std::vector<ImageEntry> entries;
  for (std::size_t i = 0; i < names.size(); ++i) entries.push_back({names[i], result.entry_offsets[i]});
  return encode_image(result.machine, entries, {result.code, result.code_size});
}

} // namespace

CompiledImage compile(const CompileRequest& request) {
  const auto begin = Clock::now();
  CompiledImage compiled;
  const ComponentLibrary& library = component_library(compiled.times.load);

  std::vector<bilogp_clang_file> files;
  for (const SourceFile& file : request.files)
    files.push_back({file.name.data(), file.name.size(), file.text.data(), file.text.size()});
  const std::vector<std::string> arguments = arguments_of(request);
  const std::vector<const char*> argument_pointers = pointers_to(arguments);
  const std::vector<const char*> entry_pointers = pointers_to(request.entries);
  const bilogp_clang_request raw = {files.data(),     files.size(),          argument_pointers.data(),
                                    arguments.size(), entry_pointers.data(), entry_pointers.size()};
  const std::unique_ptr<const bilogp_clang_result, decltype(library.free)> result(library.compile(&raw), library.free);
  if (result == nullptr) throw Error(ErrorKind::out_of_memory, "there was no memory to compile a kernel");
  if (result->error != nullptr) {
    const std::string_view name = request.files.empty() ? "a kernel" : request.files.front().name;
    throw Error(ErrorKind::compile_failed,
                fmt::format("{} does not compile for {}: {}", name, request.target.name, result->error));
  }
  compiled.image = image_of(*result, request.entries);
  compiled.times.set_up = result->set_up_seconds;
  compiled.times.front_end = result->front_end_seconds;
  compiled.times.optimizer = result->optimizer_seconds;
  compiled.times.code_generation = result->code_generation_seconds;
  compiled.times.link = result->link_seconds;
  compiled.times.total = seconds_since(begin);
  return compiled;
}

std::string_view compiler_version() noexcept {
#ifdef BILOGP_CLANG_VERSION
  return "clang " BILOGP_CLANG_VERSION;
#else
  return "no clang";
#endif
}

std::string_view component_revision() noexcept {
#ifdef BILOGP_CLANG_REVISION
  return BILOGP_CLANG_REVISION;
#else
  return "none";
#endif
}

ComponentStatus component_status() {
  return find_component();
}

const std::vector<std::string>& compile_options() {
  static const std::vector<std::string> options = {
      "-x", "c++", "-std=c++20", "-O1",
      // No library and no system around a kernel.
      "-ffreestanding", "-fno-builtin", "-nostdsysteminc", "-nobuiltininc", "-nostdinc++", "-fno-rtti",
      "-fno-threadsafe-statics",
      // Arithmetic as written: no fused operation that the source does not ask for.
      "-ffp-contract=off",
      // One position-independent image; calls and data are reached by distance.
      "-mrelocation-model", "pic", "-pic-level", "2", "-fvisibility=hidden", "-ffunction-sections", "-fdata-sections",
      // Kernels are written with vector types of the width they want.
      "-mprefer-vector-width=512", "-mframe-pointer=none",
      // The component runs the passes itself.
      "-disable-llvm-passes", "-w"};
  return options;
}

} // namespace bilogp::cpu
