// Launch plans: how the rows of a call are cut into blocks. A plan looks at rows, columns, alignment and the limits of
// the device; by the contract none of it can change a bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bilogp/specialization.hpp"
#include "runtime/kernel_arguments.hpp"

namespace bilogp::cuda {

struct LaunchShape {
  Operator op = Operator::logp_forward;
  DType logits_dtype = DType::float32;
  Numerics numerics = Numerics::portable;
  std::int64_t rows = 0;           // of this launch
  std::int64_t columns = 0;        // read or written per row
  std::int64_t vocab_size = 0;     // that count
  std::int64_t stored_columns = 0; // of a row, padding included
  std::int64_t ids_per_row = 1;
  int alignment = 1; // bytes: the largest power of two, at most 256, that every row of logits and gradients begins at
  bool in_place = false;
  bool has_row_temperatures = false;
};

// Asked of the driver; a slice of a card (MIG) answers for itself.
struct DeviceLimits {
  int capability = 0; // 90
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  int shared_per_block = 0; // bytes, with opt-in
  int shared_per_multiprocessor = 0;
  int l2_bytes = 0;
  bool has_clusters = false; // and the Hopper plans are to be thought of
  int largest_cluster = 16;  // blocks; less where the device or the compiler has refused
};

struct LaunchPlan {
  std::uint8_t variant = 0;  // which kernel: 0 plain, else of hopper_plans.hpp
  unsigned grid = 0;         // blocks, in one dimension
  unsigned block = 0;        // threads
  unsigned cluster = 1;      // blocks
  unsigned shared_bytes = 0; // dynamic
  bool fills_device = false; // its clusters stay to the end, each block alone on a multiprocessor: as many as fit
  std::int64_t nodes = 0;    // scratch wanted
  std::int64_t tickets = 0;
  kernel::GpuPlan gpu{}; // but rows, first_row and the scratch, which the launcher sets
};

// Scratch of one stream; a plan that wants more is not chosen.
constexpr std::int64_t largest_nodes = 65536;
constexpr std::int64_t largest_tickets = 8192;

// A plan's number, for those who force one (LogpOptions::plan): tests and benchmarks.
constexpr int automatic_plan = -1;
constexpr int plain_rows = 0;         // a block takes whole rows
constexpr int plain_split_rows = 1;   // several blocks share a row
constexpr int first_hopper_plan = 16; // + variant

// Never fails: what a forced plan cannot serve gets the plan that the runtime would choose. Allocates nothing.
LaunchPlan plan_launch(const LaunchShape& shape, const DeviceLimits& limits, int forced);
// Whether logp_with_gradient is better served by a forward and a backward that each cut the rows among blocks: few
// rows, where its own plan would give each to one block.
bool splits_passes(const LaunchShape& shape, const DeviceLimits& limits);
// Whether a forced plan serves the shape, as itself.
bool plan_serves(const LaunchShape& shape, const DeviceLimits& limits, int forced);

// "BILOGP_WARPS=8", ...: what a kernel's plan needs beside dtype and vocabulary.
std::vector<std::string> plan_definitions(const Specialization& spec, int capability);

// All variants that an architecture has of an operator, 0 first; for `warmup` and the tests.
std::vector<std::uint8_t> variants_of(Operator op, int capability);

} // namespace bilogp::cuda
