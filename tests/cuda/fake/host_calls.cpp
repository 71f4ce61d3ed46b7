#include "tests/cuda/fake/host_calls.hpp"

#include <array>
#include <stdexcept>

namespace fake {
namespace {

void* open(const char* path) {
  void* const library = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return library;
}

void* context_of(int device, bool is_primary) {
  return call_driver<void*(int, bool)>("fake_context", device, is_primary);
}

} // namespace

std::vector<DeviceModel> device_models() {
  return {{},
          {"NVIDIA H200 MIG 1g.18gb", 90, 16, 2048, 232448, 233472, 8 << 20, 1, 4},
          {"Tesla T4", 75, 40, 1024, 65536, 65536, 4 << 20, 0, 1},
          {"NVIDIA GeForce RTX 4090", 89, 128, 1536, 101376, 102400, 72 << 20, 0, 1},
          {"NVIDIA B200", 100, 148, 2048, 232448, 233472, 126 << 20, 1, 16},
          {"NVIDIA GeForce RTX 5090", 120, 170, 1536, 101376, 102400, 96 << 20, 1, 8},
          {}};
}

void* driver_function(const char* name) {
  static void* const library = open(BILOGP_FAKE_DRIVER);
  void* const function = ::dlsym(library, name);
  if (function == nullptr) throw std::runtime_error(name);
  return function;
}

DriverState& driver_state() {
  return *reinterpret_cast<StateFunction>(driver_function(state_function))();
}

NvrtcState& nvrtc_state() {
  static void* const library = open(BILOGP_FAKE_NVRTC);
  return *reinterpret_cast<NvrtcStateFunction>(::dlsym(library, nvrtc_state_function))();
}

void* allocate(int device, std::size_t bytes) {
  return call_driver<void*(int, std::size_t)>("fake_allocate", device, bytes);
}

void* own_stream(int device) {
  return call_driver<void*(void*)>("fake_stream", context_of(device, true));
}

void* foreign_stream(int device) {
  return call_driver<void*(void*)>("fake_stream", context_of(device, false));
}

void start_over() {
  DriverState& state = driver_state();
  state.launches.clear();
  state.failures.clear();
  state.refused_image.clear();
  state.allocations = state.calls = state.spoiled_captures = 0;
  nvrtc_state().compiles = 0;
  nvrtc_state().result = 0;
}

std::vector<Launch> launches(bool with_refused) {
  std::vector<Launch> all;
  for (const Launch& launch : driver_state().launches)
    if (with_refused || !launch.was_refused) all.push_back(launch);
  return all;
}

using bilogp::DType;

Rows::Rows(int device_index, DType logits_dtype, std::int64_t row_count, std::int64_t columns)
    : device{bilogp::DeviceType::cuda, device_index}, dtype(logits_dtype), rows(row_count), vocab(columns) {
  const auto n = static_cast<std::size_t>(rows);
  const auto bytes = n * static_cast<std::size_t>(vocab * size_of(dtype));
  logits = allocate(device_index, bytes);
  grad = allocate(device_index, bytes);
  ids = allocate(device_index, 8 * n);
  logp = allocate(device_index, 4 * n);
  state = allocate(device_index, 8 * n);
  upstream = allocate(device_index, 4 * n);
  temperatures = allocate(device_index, 4 * n);
  nodes = allocate(device_index, 8 * n);
}

template<class Args> Args Rows::on_rows(void* stream) const {
  Args args;
  args.logits = view(logits, dtype, {rows, vocab});
  args.target_ids = view(ids, DType::int64, {rows});
  args.stream = stream;
  return args;
}

bilogp::LogpArgs Rows::forward(void* stream) const {
  auto args = on_rows<bilogp::LogpArgs>(stream);
  args.logp = view(logp, DType::float32, {rows});
  return args;
}

bilogp::LogpBackwardArgs Rows::backward(void* stream) const {
  auto args = on_rows<bilogp::LogpBackwardArgs>(stream);
  args.row_state = view(state, DType::int32, {rows, 2});
  args.grad_logp = view(upstream, DType::float32, {rows});
  args.grad_logits = view(grad, dtype, {rows, vocab});
  return args;
}

bilogp::LogpGradientArgs Rows::with_gradient(void* stream) const {
  auto args = on_rows<bilogp::LogpGradientArgs>(stream);
  args.grad_logp = view(upstream, DType::float32, {rows});
  args.logp = view(logp, DType::float32, {rows});
  args.grad_logits = view(grad, dtype, {rows, vocab});
  return args;
}

bilogp::LogpPartialArgs Rows::partial(void* stream) const {
  auto args = on_rows<bilogp::LogpPartialArgs>(stream);
  args.shard_end = args.full_vocab = vocab;
  args.nodes = view(nodes, DType::int32, {rows, 1, 2});
  args.target_logit = view(upstream, DType::float32, {rows});
  return args;
}

void Rows::call_all(void* stream) const {
  bilogp::Runtime& runtime = bilogp::Runtime::get("cuda");
  runtime.logp(forward(stream));
  runtime.logp_backward(backward(stream));
  runtime.logp_with_gradient(with_gradient(stream));
  runtime.logp_partial(partial(stream));
  const std::array<bilogp::ShardNodes, 1> shards = {{{0, vocab, view(nodes, DType::int32, {rows, 1, 2})}}};
  bilogp::LogpFinishArgs finish;
  finish.shards = shards;
  finish.full_vocab = vocab;
  finish.target_ids = view(ids, DType::int64, {rows});
  finish.target_logit = view(upstream, DType::float32, {rows});
  finish.logp = view(logp, DType::float32, {rows});
  finish.stream = stream;
  runtime.logp_finish(finish);
}

} // namespace fake
