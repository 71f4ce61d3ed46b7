// Lays out a job (job.hpp) together with the memory that must come back, and compares what did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tests/aarch64/job.hpp"
#include "tests/reference/compare.hpp"

namespace bilogp::test {

// Where a struct of arguments holds a pointer.
struct PointerMember {
  template<class T> PointerMember(T* const& member) : address(static_cast<const void*>(&member)) {}
  const void* address;
};

class JobBuilder {
public:
  // A piece of memory, by its offset; aligned to 16 bytes plus `misalignment`.
  std::uint64_t place(std::span<const char> initial, std::uint64_t misalignment = 0);
  // Memory that the calls write: it starts as `initial` and must become `expected`, read as elements of `storage`.
  std::uint64_t place_output(std::string name, reference::Storage storage, std::span<const char> initial,
                             std::span<const char> expected, std::size_t row_length, std::uint64_t misalignment = 0);
  // NaNs of any payload will do for these bytes of an output.
  void allow_any_nan(std::uint64_t offset, std::uint64_t bytes);

  // Places an argument struct. `pointers` are its pointer members, which hold offsets (see offset_pointer).
  template<class Arguments>
  std::uint64_t place_arguments(const Arguments& arguments, std::initializer_list<PointerMember> pointers) {
    const auto* bytes = reinterpret_cast<const char*>(&arguments);
    const std::uint64_t at = place({bytes, sizeof arguments});
    for (const PointerMember& member : pointers)
      add_relocation(at + static_cast<std::uint64_t>(static_cast<const char*>(member.address) - bytes));
    return at;
  }

  std::uint64_t add_image(std::string image);
  void add_call(std::string_view entry, std::uint64_t image, std::uint64_t arguments, std::int64_t rows,
                std::uint64_t fpcr);

  void write(const std::string& path) const;
  // "" or what differs, a line for each of the first few outputs.
  [[nodiscard]] std::string compare(const std::string& answer_path) const;

  [[nodiscard]] std::size_t calls() const { return calls_.size(); }
  [[nodiscard]] std::size_t output_bytes() const;

private:
  struct Output {
    std::string name;
    reference::Storage storage;
    std::uint64_t offset, bytes;
    std::size_t row_length;
  };
  void add_relocation(std::uint64_t at); // of a member that holds an offset; null members stay null
  [[nodiscard]] std::string compare_output(const Output& output, std::span<const char> memory) const;
  [[nodiscard]] bool any_nan_allowed(std::uint64_t offset) const;

  std::vector<char> initial_ = std::vector<char>(16); // offset 0 is the null pointer
  std::vector<char> expected_ = std::vector<char>(16);
  std::vector<Output> outputs_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> any_nan_; // begin, end; in order
  std::vector<std::string> images_;
  std::vector<JobCall> calls_;
  std::vector<std::uint64_t> relocations_;
};

// An offset in the place of a pointer.
template<class T> T* offset_pointer(std::uint64_t offset) {
  return reinterpret_cast<T*>(offset);
}

} // namespace bilogp::test
