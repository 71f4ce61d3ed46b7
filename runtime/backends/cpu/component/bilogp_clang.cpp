#include "runtime/backends/cpu/component/bilogp_clang.h"

#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "clang/Basic/Version.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/IR/LLVMContext.h"

#include "runtime/backends/cpu/component/code_generator.hpp"
#include "runtime/backends/cpu/component/crash_guard.hpp"
#include "runtime/backends/cpu/component/diagnostics.hpp"
#include "runtime/backends/cpu/component/front_end.hpp"
#include "runtime/backends/cpu/component/image_linker.hpp"

namespace bilogp::clang_component {
namespace {

// What a bilogp_clang_result points into.
struct OwnedResult : bilogp_clang_result {
  std::string error_text;
  LinkedImage image;
};

// Seconds since the last lap.
class StopWatch {
public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void compile(const bilogp_clang_request& request, OwnedResult& result) {
  StopWatch watch;
  initialize_targets();
  Diagnostics diagnostics;
  const auto give_up = [&] { result.error_text = diagnostics.sentence(); };
  llvm::LLVMContext context; // outlives the compiler, which may hold a module of it
  diagnostics.attach(context, nullptr);
  const auto compiler = set_up_compiler(request, diagnostics);
  if (compiler == nullptr) return give_up();
  result.set_up_seconds = watch.lap();

  const auto module = compile_source(*compiler, context);
  if (module == nullptr || diagnostics.failed()) return give_up();
  if (compiler->hasSourceManager()) diagnostics.attach(context, &compiler->getSourceManager());
  result.front_end_seconds = watch.lap();

  const auto machine = target_machine(*compiler, diagnostics);
  if (machine == nullptr) return give_up();
  optimize(*module, *compiler, *machine);
  result.optimizer_seconds = watch.lap();

  const ObjectBytes object = generate_object(*module, *machine);
  if (diagnostics.failed()) return give_up();
  result.code_generation_seconds = watch.lap();

  const std::vector<std::string> entries(request.entries, request.entries + request.entry_count);
  auto image = link_image(llvm::StringRef(object.data(), object.size()), entries);
  if (image)
    result.image = std::move(*image);
  else
    result.error_text = llvm::toString(image.takeError());
  result.link_seconds = watch.lap();
}

void publish(OwnedResult& result) {
  if (!result.error_text.empty()) {
    result.error = result.error_text.c_str();
    return;
  }
  result.machine = result.image.machine;
  result.code = result.image.code.data();
  result.code_size = result.image.code.size();
  result.entry_offsets = result.image.entry_offsets.data();
}

// "Debian clang version 19.1.7 (3~deb12u1)" -> "19.1.7"
std::string loaded_version() {
  const std::string full = clang::getClangFullVersion();
  llvm::StringRef version = full;
  version = version.split("version ").second;
  return version.take_while([](char c) { return (c >= '0' && c <= '9') || c == '.'; }).str();
}

} // namespace
} // namespace bilogp::clang_component

using namespace bilogp::clang_component;

extern "C" {

#define BILOGP_EXPORTED __attribute__((visibility("default")))

BILOGP_EXPORTED std::uint32_t bilogp_clang_interface() {
  return BILOGP_CLANG_INTERFACE;
}

BILOGP_EXPORTED const char* bilogp_clang_version() {
  static const std::string version = loaded_version();
  return version.c_str();
}

BILOGP_EXPORTED const bilogp_clang_result* bilogp_clang_compile(const bilogp_clang_request* request) {
  OwnedResult* result = new (std::nothrow) OwnedResult{};
  if (result == nullptr) return nullptr;
  try {
    const std::string failure = run_guarded([&] {
      try {
        compile(*request, *result);
      } catch (const std::exception& error) {
        result->error_text = error.what();
      }
    });
    if (!failure.empty()) result->error_text = failure;
    publish(*result);
    return result;
  } catch (...) { // there was no memory for a sentence
    delete result;
    return nullptr;
  }
}

BILOGP_EXPORTED void bilogp_clang_free(const bilogp_clang_result* result) {
  delete static_cast<const OwnedResult*>(result);
}

} // extern "C"
