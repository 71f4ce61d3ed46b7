// The C interface: structs of any known size in, codes out, no exception across.
#include "bilogp/bilogp.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bilogp/bilogp.hpp"

namespace {

using bilogp::Error;
using bilogp::ErrorKind;
using bilogp::TensorView;

std::string& last_error() {
  static thread_local std::string sentence;
  return sentence;
}

template<class Body> int guarded(Body body) noexcept {
  try {
    body();
    return BILOGP_OK;
  } catch (const Error& error) {
    last_error() = error.what();
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    last_error() = "memory for the call could not be allocated";
    return BILOGP_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    last_error() = error.what();
    return BILOGP_INTERNAL;
  } catch (...) {
    last_error() = "an unknown error";
    return BILOGP_INTERNAL;
  }
}

// A struct of this library's size from one of the caller's: what is missing keeps the value in `defaults`.
template<class Struct> Struct sized(const char* name, const Struct* given, Struct defaults) {
  constexpr std::uint32_t smallest = sizeof(std::uint32_t);
  const std::uint32_t size = given->struct_size;
  if (size < smallest)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} has struct_size {}; expected sizeof({})", name, size, name));
  const auto* bytes = reinterpret_cast<const unsigned char*>(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i)
    if (bytes[i] != 0)
      throw Error(
          ErrorKind::invalid_argument,
          fmt::format("{} of {} bytes sets a field that this version, with {} bytes, does not know; update bilogp",
                      name, size, sizeof(Struct)));
  std::memcpy(&defaults, given, std::min<std::size_t>(size, sizeof(Struct)));
  return defaults;
}

TensorView view_of(const char* name, const bilogp_tensor* given) {
  if (given == nullptr) throw Error(ErrorKind::invalid_argument, fmt::format("{} is a null pointer", name));
  const auto tensor = sized<bilogp_tensor>("bilogp_tensor", given, {});
  if (tensor.rank < 0 || tensor.rank > TensorView::max_rank)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} has {} dimensions; expected at most {}", name, tensor.rank, +TensorView::max_rank));
  if (tensor.dtype < BILOGP_FLOAT32 || tensor.dtype > BILOGP_INT64)
    throw Error(ErrorKind::invalid_argument, fmt::format("{} has the dtype code {}; expected 0 to {}", name,
                                                         tensor.dtype, static_cast<int>(BILOGP_INT64)));
  TensorView view;
  view.data = tensor.data;
  view.dtype = static_cast<bilogp::DType>(tensor.dtype);
  view.rank = tensor.rank;
  for (int d = 0; d < tensor.rank; ++d) {
    if (tensor.shape[d] < 0)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("dimension {} of {} has the extent {}; expected 0 or more", d, name, tensor.shape[d]));
    view.shape[d] = tensor.shape[d];
    view.strides[d] = tensor.strides[d];
  }
  const int device = tensor.device_type;
  if (device != 0 && device != 1 && device != 2 && device != 10)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{} is on device type {}; expected 1 (cpu), 2 (cuda) or 10 (hip)", name, device));
  if (tensor.device_type != 0) view.device = {static_cast<bilogp::DeviceType>(tensor.device_type), tensor.device_index};
  return view;
}

TensorView optional_view(const char* name, const bilogp_tensor* given) {
  return given == nullptr ? TensorView{} : view_of(name, given);
}

bilogp_options default_options() {
  bilogp_options options{};
  options.struct_size = sizeof options;
  options.ignore_index = -100;
  options.temperature = 1;
  options.vocab_size = -1;
  options.plan = -1;
  return options;
}

bilogp::LogpOptions options_of(const bilogp_options* given) {
  const bilogp_options options =
      given == nullptr ? default_options() : sized<bilogp_options>("bilogp_options", given, default_options());
  if (options.validate < 0 || options.validate > 2)
    throw Error(ErrorKind::invalid_argument, fmt::format("validate is {}; expected 0, 1 or 2", options.validate));
  if (options.numerics < 0 || options.numerics > 1)
    throw Error(ErrorKind::invalid_argument, fmt::format("numerics is {}; expected 0 or 1", options.numerics));
  if (options.bad_ids_counted < 0 || options.bad_ids_counted > 1)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("bad_ids_counted is {}; expected 0 or 1", options.bad_ids_counted));
  bilogp::LogpOptions result;
  result.ignore_index = options.ignore_index;
  result.temperature = options.temperature;
  result.temperature_per_row = optional_view("temperature_per_row", options.temperature_per_row);
  result.vocab_size = options.vocab_size;
  result.numerics = static_cast<bilogp::Numerics>(options.numerics);
  result.validate = static_cast<bilogp::Validate>(options.validate);
  result.error_buffer = options.error_buffer;
  result.bad_ids_counted = options.bad_ids_counted == 1;
  result.threads = options.threads;
  result.plan = options.plan;
  return result;
}

bilogp::Runtime& runtime_of(bilogp_runtime* runtime) {
  if (runtime == nullptr)
    throw Error(ErrorKind::invalid_argument, "the runtime is a null pointer; call bilogp_runtime_get");
  return *reinterpret_cast<bilogp::Runtime*>(runtime);
}

} // namespace

extern "C" {

uint32_t bilogp_abi_version(void) {
  return BILOGP_ABI_VERSION;
}

const char* bilogp_version(void) {
  static const std::string text(bilogp::version());
  return text.c_str();
}

const char* bilogp_last_error(void) {
  return last_error().c_str();
}

void bilogp_options_init(bilogp_options* options) {
  if (options != nullptr) *options = default_options();
}

int bilogp_runtime_get(const char* target, bilogp_runtime** runtime) {
  return guarded([&] {
    if (target == nullptr || runtime == nullptr)
      throw Error(ErrorKind::invalid_argument,
                  "target or runtime is a null pointer; expected a name and a place for it");
    *runtime = reinterpret_cast<bilogp_runtime*>(&bilogp::Runtime::get(target));
  });
}

int bilogp_logp(bilogp_runtime* runtime, const bilogp_tensor* logits, const bilogp_tensor* target_ids,
                const bilogp_tensor* logp, const bilogp_tensor* lse, const bilogp_tensor* row_state,
                const bilogp_options* options, void* stream) {
  return guarded([&] {
    runtime_of(runtime).logp({view_of("logits", logits), view_of("target_ids", target_ids), view_of("logp", logp),
                              optional_view("lse", lse), optional_view("row_state", row_state), options_of(options),
                              stream});
  });
}

int bilogp_logp_backward(bilogp_runtime* runtime, const bilogp_tensor* logits, const bilogp_tensor* target_ids,
                         const bilogp_tensor* row_state, const bilogp_tensor* grad_logp,
                         const bilogp_tensor* grad_logits, int in_place, const bilogp_options* options, void* stream) {
  return guarded([&] {
    bilogp::LogpBackwardArgs args;
    args.logits = view_of("logits", logits);
    args.target_ids = view_of("target_ids", target_ids);
    args.row_state = view_of("row_state", row_state);
    args.grad_logp = view_of("grad_logp", grad_logp);
    args.grad_logits = view_of("grad_logits", grad_logits);
    args.in_place = in_place != 0;
    args.options = options_of(options);
    args.stream = stream;
    runtime_of(runtime).logp_backward(args);
  });
}

int bilogp_logp_with_gradient(bilogp_runtime* runtime, const bilogp_tensor* logits, const bilogp_tensor* target_ids,
                              const bilogp_tensor* grad_logp, const bilogp_tensor* logp, const bilogp_tensor* lse,
                              const bilogp_tensor* row_state, const bilogp_tensor* grad_logits, int in_place,
                              const bilogp_options* options, void* stream) {
  return guarded([&] {
    bilogp::LogpGradientArgs args;
    args.logits = view_of("logits", logits);
    args.target_ids = view_of("target_ids", target_ids);
    args.grad_logp = view_of("grad_logp", grad_logp);
    args.logp = view_of("logp", logp);
    args.lse = optional_view("lse", lse);
    args.row_state = optional_view("row_state", row_state);
    args.grad_logits = view_of("grad_logits", grad_logits);
    args.in_place = in_place != 0;
    args.options = options_of(options);
    args.stream = stream;
    runtime_of(runtime).logp_with_gradient(args);
  });
}

int bilogp_node_count(int64_t shard_begin, int64_t shard_end, int64_t full_vocab, int64_t* count) {
  return guarded([&] {
    if (count == nullptr) throw Error(ErrorKind::invalid_argument, "count is a null pointer");
    *count = bilogp::node_count(shard_begin, shard_end, full_vocab);
  });
}

int bilogp_logp_partial(bilogp_runtime* runtime, const bilogp_tensor* logits, const bilogp_tensor* target_ids,
                        int64_t shard_begin, int64_t shard_end, int64_t full_vocab, const bilogp_tensor* nodes,
                        const bilogp_tensor* target_logit, const bilogp_options* options, void* stream) {
  return guarded([&] {
    runtime_of(runtime).logp_partial({view_of("logits", logits), view_of("target_ids", target_ids), shard_begin,
                                      shard_end, full_vocab, view_of("nodes", nodes),
                                      view_of("target_logit", target_logit), options_of(options), stream});
  });
}

int bilogp_logp_finish(bilogp_runtime* runtime, const bilogp_shard* const* shards, int64_t shard_count,
                       int64_t full_vocab, const bilogp_tensor* target_ids, const bilogp_tensor* target_logit,
                       const bilogp_tensor* logp, const bilogp_tensor* lse, const bilogp_tensor* row_state,
                       const bilogp_options* options, void* stream) {
  return guarded([&] {
    if (shard_count < 0 || (shards == nullptr && shard_count > 0))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{} shards at a null pointer; expected an array", shard_count));
    std::vector<bilogp::ShardNodes> nodes;
    for (int64_t i = 0; i < shard_count; ++i) {
      if (shards[i] == nullptr) throw Error(ErrorKind::invalid_argument, fmt::format("shard {} is a null pointer", i));
      const auto shard = sized<bilogp_shard>("bilogp_shard", shards[i], {});
      nodes.push_back({shard.shard_begin, shard.shard_end, view_of("nodes", shard.nodes)});
    }
    runtime_of(runtime).logp_finish({nodes, full_vocab, view_of("target_ids", target_ids),
                                     view_of("target_logit", target_logit), view_of("logp", logp),
                                     optional_view("lse", lse), optional_view("row_state", row_state),
                                     options_of(options), stream});
  });
}

int bilogp_take_errors(bilogp_runtime* runtime, int32_t device_type, int32_t device_index, int64_t errors[3]) {
  return guarded([&] {
    if (errors == nullptr) throw Error(ErrorKind::invalid_argument, "errors is a null pointer; expected int64[3]");
    const bilogp::Device device{
        device_type == 0 ? bilogp::DeviceType::cpu : static_cast<bilogp::DeviceType>(device_type), device_index};
    const bilogp::TargetErrors taken = runtime_of(runtime).take_errors(device);
    errors[0] = taken.count;
    errors[1] = taken.first_row;
    errors[2] = taken.first_id;
  });
}

} // extern "C"
