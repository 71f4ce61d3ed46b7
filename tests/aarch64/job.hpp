// The file between the two sides of the suite: kernel images, one block of memory, and the calls to make on it.
//
// A job is   JobHeader, per image (bytes:u64, the image), JobCall[call_count], u64[relocation_count], the memory.
// An answer is JobAnswer[call_count], the memory as the calls left it.
// Each relocation is the offset of an 8-byte word that holds an offset and becomes an address. Both machines are
// little-endian with 64-bit pointers, so that argument structs are laid out alike.
#pragma once

#include <cstdint>

namespace bilogp::test {

constexpr char job_magic[8] = {'B', 'L', 'G', 'P', 'J', 'O', 'B', '1'};

struct JobHeader {
  char magic[8];
  std::uint64_t image_count, call_count, relocation_count, memory_bytes;
};

struct JobCall {
  char entry[48];          // zero-padded
  std::uint64_t image;     // its index
  std::uint64_t arguments; // offset of the argument struct
  std::int64_t row_begin, row_end;
  std::uint64_t fpcr; // the caller's floating-point control register
};

struct JobAnswer {
  std::uint64_t fpcr_before, fpcr_after; // as read around the call
};

// Bits of FPCR.
constexpr std::uint64_t fpcr_flush_half = 1ULL << 19;
constexpr std::uint64_t fpcr_round_up = 1ULL << 22;
constexpr std::uint64_t fpcr_round_to_zero = 3ULL << 22;
constexpr std::uint64_t fpcr_flush = 1ULL << 24;
constexpr std::uint64_t fpcr_default_nan = 1ULL << 25;
constexpr std::uint64_t fpcr_alternative_half = 1ULL << 26;

} // namespace bilogp::test
