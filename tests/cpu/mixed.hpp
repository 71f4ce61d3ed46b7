// Batches in which every kind of row takes part, and the ways one batch is compared.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/cpu/batch.hpp"

namespace bilogp::test {

inline constexpr Storage all_storages[] = {Storage::float32, Storage::float16, Storage::bfloat16};

enum class Temperatures : std::uint8_t { scalar, per_row, per_row_with_bad };

struct Mix {
  Storage storage = Storage::float32;
  std::int64_t columns = 1;
  std::int64_t rows = 0; // 0: one of each kind
  std::uint64_t seed = 1;
  std::int64_t ids_per_row = 1;
  DType id_dtype = DType::int64;
  Layout layout = {};
  std::int64_t vocab_size = -1;
  double temperature = 1;
  Temperatures temperatures = Temperatures::scalar;
  int threads = 1;
};

// Rows of all kinds in turn, target ids good, ignored and bad, and upstream gradients of any size, NaN and inf.
Batch mixed_batch(const Mix& mix);
std::string describe(const Mix& mix);

// Sorted distinct columns inside (0, columns); up to `count` of them.
std::vector<std::int64_t> random_cuts(std::mt19937_64& random, std::int64_t columns, std::int64_t count);

// This machine's own level first, then every other one it can run.
const std::vector<Runtime*>& levels();
// x86-64-v2 computes fma in software: its tests are kept small.
bool is_slow(const Runtime& runtime);

// Forward; with one id per row also backward, backward in place, and with cuts the shards of both. "" or the first
// difference, with the target's name.
std::string check_everything(Batch& batch, Runtime& runtime, const std::vector<std::int64_t>& cuts = {});

} // namespace bilogp::test
