#include "runtime/backends/cuda/compiler.hpp"

#include <chrono>

#include <fmt/format.h>

#include "bilogp/error.hpp"
#include "runtime/backends/cuda/nvrtc.hpp"

namespace bilogp::cuda {
namespace {

class OwnedProgram {
public:
  explicit OwnedProgram(const Nvrtc& library) : library_(library) {}
  ~OwnedProgram() {
    if (program_ != nullptr) library_.destroy_program(&program_);
  }
  OwnedProgram(const OwnedProgram&) = delete;
  OwnedProgram& operator=(const OwnedProgram&) = delete;
  [[nodiscard]] Program get() const noexcept { return program_; }
  [[nodiscard]] Program* out() noexcept { return &program_; }

private:
  const Nvrtc& library_;
  Program program_ = nullptr;
};

void check_compiler(const Nvrtc& library, CompilerResult result, const char* what) {
  if (result == CompilerResult::success) return;
  const ErrorKind kind = result == CompilerResult::out_of_memory ? ErrorKind::out_of_memory : ErrorKind::compile_failed;
  throw Error(kind, fmt::format("{} failed in NVRTC {}: {}", what, library.version, library.get_error_string(result)));
}

std::string log_of(const Nvrtc& library, Program program) {
  std::size_t size = 0;
  if (library.get_log_size(program, &size) != CompilerResult::success || size <= 1) return "no message";
  std::string log(size, '\0');
  if (library.get_log(program, log.data()) != CompilerResult::success) return "no message";
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

std::string text_of(const SourceFile& file) {
  return std::string(file.text);
}

// NVRTC takes zero-terminated texts.
struct Sources {
  std::vector<std::string> texts, names;
  std::vector<const char*> header_texts, header_names;

  explicit Sources(const std::vector<SourceFile>& files) {
    for (const SourceFile& file : files) {
      texts.push_back(text_of(file));
      names.emplace_back(file.name);
    }
    for (std::size_t i = 1; i < files.size(); ++i) {
      header_texts.push_back(texts[i].c_str());
      header_names.push_back(names[i].c_str());
    }
  }
};

using SizeGetter = CompilerResult (*)(Program, std::size_t*);
using BytesGetter = CompilerResult (*)(Program, char*);

std::string bytes_of(const Nvrtc& library, Program program, SizeGetter get_size, BytesGetter get_bytes) {
  std::size_t size = 0;
  check_compiler(library, get_size(program, &size), "reading the compiled kernel");
  std::string bytes(size, '\0');
  check_compiler(library, get_bytes(program, bytes.data()), "reading the compiled kernel");
  return bytes;
}

// Blocks of a cluster send to each other by an instruction that came with 12.1.
void check_clusters(const Nvrtc& library, const CompileRequest& request) {
  constexpr std::string_view cluster = "BILOGP_CLUSTER=";
  if (library.version != "12.0") return;
  for (const std::string_view define : request.defines)
    if (define.starts_with(cluster) && define.substr(cluster.size()) != "1")
      throw ClustersNotCompiled(
          ErrorKind::compile_failed,
          fmt::format("kernels that share a row among blocks of a cluster need NVRTC 12.1 or newer, and {} is {}: `pip "
                      "install --upgrade nvidia-cuda-nvrtc-cu12` installs another",
                      library.path, library.version));
}

} // namespace

CompiledImage compile(const CompileRequest& request) {
  const Nvrtc& library = nvrtc();
  const CodeChoice code = code_for(request.target, library.archs);
  check_clusters(library, request);
  const auto begin = std::chrono::steady_clock::now();
  const Sources sources(request.files);
  OwnedProgram program(library);
  check_compiler(library,
                 library.create_program(program.out(), sources.texts.front().c_str(), sources.names.front().c_str(),
                                        static_cast<int>(sources.header_texts.size()), sources.header_texts.data(),
                                        sources.header_names.data()),
                 "preparing a kernel");
  std::vector<std::string> options = compile_options();
  options.push_back("--gpu-architecture=" + code.architecture);
  for (const std::string& define : request.defines) options.push_back("--define-macro=" + define);
  std::vector<const char*> pointers;
  pointers.reserve(options.size());
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const CompilerResult result =
      library.compile_program(program.get(), static_cast<int>(pointers.size()), pointers.data());
  if (result != CompilerResult::success)
    throw Error(result == CompilerResult::out_of_memory ? ErrorKind::out_of_memory : ErrorKind::compile_failed,
                fmt::format("{} does not compile for {} with NVRTC {} ({}): {}", sources.names.front(),
                            code.architecture, library.version, library.get_error_string(result),
                            log_of(library, program.get())));
  CompiledImage compiled;
  compiled.ptx = bytes_of(library, program.get(), library.get_ptx_size, library.get_ptx);
  compiled.image =
      code.is_ptx ? compiled.ptx : bytes_of(library, program.get(), library.get_cubin_size, library.get_cubin);
  compiled.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return compiled;
}

const std::vector<std::string>& compile_options() {
  static const std::vector<std::string> options = {
      "--std=c++20",
      // Arithmetic as written: no fused operation that the source does not ask for, subnormals kept, true division.
      "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true",
      // Addresses and shapes of a kernel are its own affair: no warning of NVRTC reaches a user.
      "--disable-warnings"};
  return options;
}

bool is_ptx(std::string_view image) noexcept {
  return !image.starts_with("\x7f"
                            "ELF");
}

} // namespace bilogp::cuda
