// The AArch64 side: maps the kernel images of a job, makes its calls and writes the memory back.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/backends/cpu/image.hpp"
#include "runtime/kernel_arguments.hpp"
#include "tests/aarch64/job.hpp"

namespace {

using namespace bilogp::test;
using KernelFunction = void (*)(const void* arguments, std::int64_t row_begin, std::int64_t row_end);

// Sizes that the other side counts on.
static_assert(sizeof(bilogp::kernel::RowOptions) == 80);
static_assert(sizeof(void*) == 8);

class Reader {
public:
  explicit Reader(const char* path) : file_(path, std::ios::binary) {
    file_.exceptions(std::ios::failbit | std::ios::badbit);
  }
  template<class T> std::vector<T> read(std::uint64_t count) {
    std::vector<T> values(count);
    file_.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(count * sizeof(T)));
    return values;
  }

private:
  std::ifstream file_;
};

std::uint64_t read_fpcr() {
  std::uint64_t value = 0;
  asm volatile("mrs %0, fpcr" : "=r"(value)::"memory");
  return value;
}

void write_fpcr(std::uint64_t value) {
  asm volatile("msr fpcr, %0" ::"r"(value) : "memory");
}

JobAnswer make_call(KernelFunction function, const JobCall& call, const char* memory) {
  JobAnswer answer{};
  const std::uint64_t own = read_fpcr();
  write_fpcr(call.fpcr);
  answer.fpcr_before = read_fpcr();
  function(memory + call.arguments, call.row_begin, call.row_end);
  answer.fpcr_after = read_fpcr();
  write_fpcr(own);
  return answer;
}

void relocate(std::span<char> memory, std::span<const std::uint64_t> relocations, bool to_addresses) {
  const auto base = reinterpret_cast<std::uint64_t>(memory.data());
  for (const std::uint64_t at : relocations) {
    std::uint64_t word = 0;
    std::memcpy(&word, memory.data() + at, sizeof word);
    word = to_addresses ? word + base : word - base;
    std::memcpy(memory.data() + at, &word, sizeof word);
  }
}

void run(const char* job_path, const char* answer_path) {
  Reader job(job_path);
  const JobHeader header = job.read<JobHeader>(1).front();
  if (std::memcmp(header.magic, job_magic, sizeof job_magic) != 0) throw std::runtime_error("this is no job");
  std::vector<bilogp::cpu::MappedImage> images;
  for (std::uint64_t i = 0; i < header.image_count; ++i) {
    const std::vector<char> bytes = job.read<char>(job.read<std::uint64_t>(1).front());
    images.emplace_back(std::string_view(bytes.data(), bytes.size()));
  }
  const auto calls = job.read<JobCall>(header.call_count);
  const auto relocations = job.read<std::uint64_t>(header.relocation_count);
  auto memory = job.read<char>(header.memory_bytes);
  relocate(memory, relocations, true);
  std::vector<JobAnswer> answers;
  for (const JobCall& call : calls) {
    void* entry = images.at(call.image).entry(call.entry);
    if (entry == nullptr) throw std::runtime_error(std::string("an image lacks the entry ") + call.entry);
    answers.push_back(make_call(reinterpret_cast<KernelFunction>(entry), call, memory.data()));
  }
  relocate(memory, relocations, false);
  std::ofstream out(answer_path, std::ios::binary);
  out.exceptions(std::ios::failbit | std::ios::badbit);
  out.write(reinterpret_cast<const char*>(answers.data()),
            static_cast<std::streamsize>(answers.size() * sizeof(JobAnswer)));
  out.write(memory.data(), static_cast<std::streamsize>(memory.size()));
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    run(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "aarch64 runner: %s\n", error.what());
    return 1;
  }
}
