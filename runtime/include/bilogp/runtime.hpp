// Runtime: scores rows of logits.
//
//   auto& runtime = bilogp::Runtime::get("cpu");
//   runtime.logp({.logits = logits, .target_ids = ids, .logp = out});
//
// logp[row] = logits[row, target] - logsumexp(logits[row, :]), in float32, one answer to the bit whatever the batch,
// strides, shards, threads or instruction set (contract canon-1, templates/canon/CONTRACT.md).
//
// Thread-safety: all members may be called from any thread at any time. A Runtime lives to the end of the process.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bilogp/error.hpp"
#include "bilogp/executor.hpp"
#include "bilogp/export.hpp"
#include "bilogp/specialization.hpp"
#include "bilogp/tensor.hpp"

namespace bilogp::inline v1 {

// automatic: target ids are checked before the launch on a CPU, only flagged on a GPU. on: checked, may synchronize.
// off: a bad id gives a NaN row and is counted (see Runtime::take_errors), never a read out of bounds.
enum class Validate : std::uint8_t { automatic = 0, on = 1, off = 2 };

struct LogpOptions {
  std::int64_t ignore_index = -100; // rows with this target are not read; logp is +0.0
  double temperature = 1.0;         // logits / temperature; rounded to float32, 2^-20 to 2^20
  TensorView temperature_per_row{}; // optional float32 [...], the leading shape of logits; wins over the scalar
  std::int64_t vocab_size = -1;     // columns from here on are padding and never looked at; -1: all are used
  Numerics numerics = Numerics::portable;
  Validate validate = Validate::automatic;
  // Optional int64[4] of the caller, on the device of the arguments: count, first row, its id, reserved; starts as 0.
  std::int64_t* error_buffer = nullptr;
  bool bad_ids_counted = false; // by another call with the same ids: this one counts none
  int threads = 0;              // of this call on a CPU; 0: the runtime's setting
  Executor* executor = nullptr; // threads of the caller's own for this call on a CPU; wins over `threads`
  int plan = -1; // a GPU's launch plan by number, for tests and benchmarks; -1: chosen. No plan changes a bit
};

// `stream` is the native handle of the device's stream: a CUstream or cudaStream_t, null for the legacy default stream,
// 2 for the calling thread's own. Calls on a GPU only queue work there: nothing is waited for unless validate is on.
// They may be captured into a graph once their kernels are loaded; a graph keeps the memory that its calls need between
// them, so that executables made from one graph, or clones of it, must not run at the same time. On a CPU it is null.
struct LogpArgs {
  TensorView logits{};     // [..., V] float32, float16 or bfloat16, vocabulary stride 1
  TensorView target_ids{}; // [...] or [..., K] int32 or int64; K answers per row from one pass
  TensorView logp{};       // float32, the shape of target_ids
  TensorView lse{};        // optional float32 [...]: logsumexp(logits / temperature)
  TensorView row_state{};  // optional int32 [..., 2]: the row's sum as (bits of m, E), for the backward pass
  LogpOptions options{};
  void* stream = nullptr;
};

struct LogpBackwardArgs {
  TensorView logits{};          // [..., V], as in the forward pass
  TensorView target_ids{};      // [...]
  TensorView row_state{};       // int32 [..., 2] from the forward pass (of all shards together)
  TensorView grad_logp{};       // float32 [...]: upstream gradient; strides may be 0
  TensorView grad_logits{};     // [..., V] in the dtype of logits; the same memory as logits only with in_place
  bool in_place = false;        // grad_logits is logits itself, which is overwritten
  std::int64_t shard_begin = 0; // with a shard: column of the whole vocabulary at which logits begin,
  std::int64_t full_vocab = -1; // and stored columns of all shards together; -1: logits are the whole row
  LogpOptions options{};
  void* stream = nullptr;
};

// Scores and gradients of one upstream gradient that is known beforehand, from one pass over the logits: the bits of
// logp followed by logp_backward.
struct LogpGradientArgs {
  TensorView logits{};      // [..., V]
  TensorView target_ids{};  // [...], one id per row
  TensorView grad_logp{};   // float32 [...]: upstream gradient; strides may be 0
  TensorView logp{};        // float32 [...]
  TensorView lse{};         // optional float32 [...]
  TensorView row_state{};   // optional int32 [..., 2]
  TensorView grad_logits{}; // [..., V] in the dtype of logits; the same memory as logits only with in_place
  bool in_place = false;    // grad_logits is logits itself, which is overwritten
  LogpOptions options{};
  void* stream = nullptr;
};

// One shard [shard_begin, shard_end) of a vocabulary of full_vocab stored columns.
struct LogpPartialArgs {
  TensorView logits{};     // [..., shard_end - shard_begin]
  TensorView target_ids{}; // [...], ids of the whole vocabulary
  std::int64_t shard_begin = 0;
  std::int64_t shard_end = 0;
  std::int64_t full_vocab = 0;
  TensorView nodes{};        // int32 [..., node_count(shard_begin, shard_end, full_vocab), 2]
  TensorView target_logit{}; // float32 [...]: the target's logit, -inf where it lies in another shard
  LogpOptions options{};     // vocab_size counts columns of the whole vocabulary
  void* stream = nullptr;
};

struct ShardNodes {
  std::int64_t shard_begin = 0;
  std::int64_t shard_end = 0;
  TensorView nodes{}; // int32 [..., node_count(...), 2]
};

struct LogpFinishArgs {
  std::span<const ShardNodes> shards{}; // in any order; together they cover [0, full_vocab) once
  std::int64_t full_vocab = 0;
  TensorView target_ids{};   // [...]
  TensorView target_logit{}; // float32 [...]: the maximum over the shards
  TensorView logp{};         // float32 [...]
  TensorView lse{};          // optional float32 [...]
  TensorView row_state{};    // optional int32 [..., 2]
  LogpOptions options{};
  void* stream = nullptr;
};

// Where the kernel of a specialization came from.
enum class KernelOrigin : std::uint8_t { compiled = 0, store = 1, loaded = 2 };
BILOGP_API std::string_view to_string(KernelOrigin origin) noexcept;

struct KernelInfo {
  Specialization specialization;
  std::string target;   // "cpu:x86-64-v4"
  std::string compiler; // "clang 19.1.7"
  KernelOrigin origin = KernelOrigin::loaded;
  double seconds = 0; // what it took to compile (compiled) or to read and map (store)
  std::int64_t image_bytes = 0;
};

struct WarmupReport {
  std::vector<KernelInfo> kernels; // in the order asked for, then what calls of few rows need besides
};

// Bad target ids seen with validation off since the last take_errors.
struct TargetErrors {
  std::int64_t count = 0;
  std::int64_t first_row = -1;
  std::int64_t first_id = 0;
};

class Binding; // of the loaded kernels, internal

class BILOGP_API Runtime {
public:
  // "auto", "cpu" (this machine's own level), "cpu:x86-64-v3", "cuda" (the devices of this machine), "cuda:sm_90a", ...
  // "auto" follows the device of the arguments.
  // A known target that this machine lacks is returned and can warm up, but not launch. Throws invalid_argument for an
  // unknown one, naming the known, and unsupported for "cuda" where there is no driver or device.
  static Runtime& get(std::string_view name = "auto");

  void logp(const LogpArgs& args);
  void logp_backward(const LogpBackwardArgs& args);
  void logp_with_gradient(const LogpGradientArgs& args);
  void logp_partial(const LogpPartialArgs& args);
  void logp_finish(const LogpFinishArgs& args);

  // Makes the kernels of these specializations ready: loaded where this machine can run them, else only stored. A
  // forward over rows so long that few of them are cut among threads brings its logp_partial and logp_finish along, a
  // logp_with_gradient on a CPU its forward and backward, and a GPU's operator the kernels of all its launch plans
  // (variant 0 asks for all). On a GPU they are loaded into every device of the target that is in use by this process,
  // or the first one. "auto" means the CPU.
  WarmupReport warmup(std::span<const Specialization> specializations);

  // How many bad ids were flagged on that device, the lowest row and its id; clears them.
  TargetErrors take_errors(Device device = {});

  // Every name that `get` takes besides "auto" and "cuda": "cpu", "cpu:x86-64-v2", ..., "cuda:sm_75", ... ; whether or
  // not this machine runs it.
  static std::vector<std::string> known_targets();

  // The kernels loaded into this process so far, by any Runtime.
  static std::vector<KernelInfo> loaded_kernels();

  [[nodiscard]] std::string_view target() const noexcept; // as resolved: "cpu:x86-64-v4"
  [[nodiscard]] bool runnable() const noexcept;           // this machine can run that target

  // Threads of a CPU call; 0 restores the default (BILOGP_NUM_THREADS, else the cores of the affinity mask). 1 to 4096.
  static void set_num_threads(int threads);
  static int num_threads();

  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

private:
  friend class Binding;
  Runtime(std::string target, int target_id, bool runnable);
  ~Runtime();
  std::string target_;
  int target_id_;
  bool runnable_;
};

// Nodes that a shard [begin, end) of `full_vocab` columns contributes to a row, the same for every row.
// Throws invalid_argument unless 0 <= begin < end <= full_vocab.
BILOGP_API std::int64_t node_count(std::int64_t begin, std::int64_t end, std::int64_t full_vocab);

} // namespace bilogp::inline v1
