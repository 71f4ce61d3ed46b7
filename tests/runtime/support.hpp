// What the tests of the public interface share: a batch of rows with guarded outputs, and refusals.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bilogp/bilogp.hpp"
#include "tests/refusal.hpp"

namespace runtime_test {

// float32 logits [rows, vocab], one int64 id per row; outputs are filled with a pattern that no answer has.
struct Batch {
  Batch(std::int64_t rows, std::int64_t vocab, std::uint64_t seed = 1);

  std::int64_t rows;
  std::int64_t vocab;
  std::vector<float> logits;
  std::vector<std::int64_t> ids;
  std::vector<float> grad_logp; // 1 each
  std::vector<float> logp, lse, grad;
  std::vector<std::int32_t> row_state;

  bilogp::LogpArgs forward();
  bilogp::LogpBackwardArgs backward();
  bilogp::LogpGradientArgs with_gradient();
  [[nodiscard]] bool outputs_untouched() const;
  // Compares all outputs of `forward` with the slow reference, bit for bit; empty when none differs.
  [[nodiscard]] std::string forward_differences(const bilogp::LogpOptions& options = {}) const;
  [[nodiscard]] std::string gradient_differences() const;
};

using bilogp::test::refusal;
// `text` begins with the kind and contains all words, and its sentence is one line.
bool says(const std::string& text, bilogp::ErrorKind kind, std::initializer_list<std::string_view> words);

// A directory that is removed with everything in it.
class TemporaryDirectory {
public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  std::string path_;
};

// Parts of this program that run in a process of their own: `test_runtime --child NAME`.
using ChildBody = int (*)();
struct Child {
  Child(const char* name, ChildBody body);
};
// Runs what argv asks for; -1 when it asks for no child.
int run_as_child(int argc, char** argv);
std::string this_program();
// The files mapped into this process whose names contain `part`.
std::set<std::string> mapped_files(std::string_view part);

} // namespace runtime_test

// The call is refused with that kind and those words, and no output of `batch` is touched.
#define CHECK_REFUSED(batch, error_kind, call, ...)                                                                    \
  do {                                                                                                                 \
    const std::string said = runtime_test::refusal([&] { call; });                                                     \
    CAPTURE(said);                                                                                                     \
    CHECK(runtime_test::says(said, bilogp::ErrorKind::error_kind, {__VA_ARGS__}));                                     \
    CHECK((batch).outputs_untouched());                                                                                \
  } while (false)
