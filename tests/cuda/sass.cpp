#include "tests/cuda/sass.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>

#include <unistd.h>

#include <fmt/format.h>

namespace cuda_test {
namespace {

namespace fs = std::filesystem;

class TemporaryFile {
public:
  explicit TemporaryFile(const std::string& bytes) {
    path_ = (fs::temp_directory_path() / "bilogp-cubin-XXXXXX").string();
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw std::runtime_error("no temporary file could be made");
    ::close(descriptor);
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  if (!pipe) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 65536> buffer{};
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) > 0;)
    text.append(buffer.data(), got);
  return text;
}

template<class Visit> void each_line(std::string_view text, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool has(std::string_view line, std::string_view part) {
  return line.find(part) != std::string_view::npos;
}

std::string trimmed(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return std::string(first == std::string_view::npos ? "" : line.substr(first));
}

} // namespace

std::string disassembler() {
  if (const char* named = std::getenv("BILOGP_NVDISASM"); named != nullptr) return named;
  const fs::path fetched = BILOGP_TEST_CUDA_TOOLS;
  std::error_code ignored;
  for (const char* const part : {"site/nvidia/cu13/bin/nvdisasm", "site/nvidia/cuda_nvdisasm/bin/nvdisasm"})
    if (fs::exists(fetched / part, ignored)) return (fetched / part).string();
  return output_of("command -v nvdisasm 2>/dev/null").empty() ? "" : "nvdisasm";
}

std::string disassemble(const std::string& cubin) {
  const TemporaryFile file(cubin);
  std::string text = output_of(fmt::format("'{}' -c '{}' 2>&1", disassembler(), file.path()));
  if (!has(text, "EXIT")) throw std::runtime_error("nvdisasm says: " + text.substr(0, 300));
  return text;
}

std::vector<std::string> inexact_instructions(std::string_view sass) {
  std::vector<std::string> found;
  each_line(sass, [&](std::string_view line) {
    // A correctly rounded division begins with a reciprocal, and makes its NaNs with a square root of -NaN.
    const bool is_first_guess = has(line, "MUFU.RCP") || (has(line, "MUFU.RSQ") && has(line, "-QNAN"));
    if (has(line, "MUFU.") && !is_first_guess) found.push_back(trimmed(line));
  });
  return found;
}

std::size_t local_memory_instructions(std::string_view sass) {
  std::size_t count = 0;
  each_line(sass, [&](std::string_view line) { count += has(line, " STL") || has(line, " LDL") ? 1 : 0; });
  return count;
}

std::vector<std::string> loose_instructions(std::string_view ptx) {
  std::vector<std::string> found;
  each_line(ptx, [&](std::string_view line) {
    const std::string text = trimmed(line);
    const std::string_view word = std::string_view(text).substr(0, text.find_first_of(" \t"));
    const bool is_float = has(word, ".f32") || has(word, ".f64");
    const bool rounds =
        word.starts_with("mul.") || word.starts_with("add.") || word.starts_with("sub.") || word.starts_with("mad.");
    // Adds that take subnormal leaves for zeros are written as such, by hand (tile_looks.h); nothing else may flush.
    const bool flushes = has(word, ".ftz") && word != "add.rn.ftz.f32";
    if ((is_float && rounds && !has(word, ".rn.")) || has(word, ".approx") || flushes || has(word, ".full"))
      found.push_back(text);
  });
  return found;
}

} // namespace cuda_test
