// jax on a CPU: logp and its gradient as handlers of XLA's foreign function interface. XLA calls them without the GIL.
#include <algorithm>
#include <string>
#include <string_view>

#include "bilogp/runtime.hpp"
#include "call.hpp"
#include "operators.hpp"
#include "xla_ffi.hpp"

namespace nb = nanobind;

namespace bilogp::python {
namespace {

DType dtype_of(xla::DataType type) {
  switch (type) {
  case xla::DataType::int32:
    return DType::int32;
  case xla::DataType::int64:
    return DType::int64;
  case xla::DataType::float16:
    return DType::float16;
  case xla::DataType::float32:
    return DType::float32;
  case xla::DataType::bfloat16:
    return DType::bfloat16;
  }
  throw Error(ErrorKind::invalid_argument,
              "jax passed the data type " + std::to_string(static_cast<int>(type)) +
                  "; expected float32, float16 or bfloat16 logits and int32 or int64 target_ids");
}

TensorView view_of(const xla::Buffers& buffers, std::int64_t index) {
  const auto* buffer = static_cast<const xla::Buffer*>(buffers.values[index]);
  const dlpack::DLTensor shaped{
      buffer->data, {1, 0}, static_cast<std::int32_t>(buffer->rank), {2, 32, 1}, buffer->shape, nullptr, 0};
  TensorView view = from_dlpack(shaped);
  view.dtype = dtype_of(buffer->dtype);
  return view;
}

std::int64_t attribute(const xla::CallFrame& frame, std::string_view name) {
  for (std::int64_t i = 0; i < frame.attributes.size; ++i) {
    const xla::Text& found = *frame.attributes.names[i];
    if (std::string_view(found.begin, found.size) == name)
      return *static_cast<const std::int64_t*>(static_cast<const xla::Scalar*>(frame.attributes.values[i])->value);
  }
  throw Error(ErrorKind::invalid_argument, "a jax call of bilogp lacks the attribute " + std::string(name));
}

// The last argument is the temperature of each row.
LogpOptions options_of(const xla::CallFrame& frame) {
  LogpOptions options;
  options.ignore_index = attribute(frame, "ignore_index");
  options.vocab_size = attribute(frame, "vocab_size");
  options.validate = static_cast<Validate>(attribute(frame, "validate"));
  options.temperature_per_row = view_of(frame.arguments, frame.arguments.size - 1);
  return options;
}

void forward(const xla::CallFrame& frame) {
  automatic_runtime().logp({.logits = view_of(frame.arguments, 0),
                            .target_ids = view_of(frame.arguments, 1),
                            .logp = view_of(frame.results, 0),
                            .lse = view_of(frame.results, 1),
                            .row_state = view_of(frame.results, 2),
                            .options = options_of(frame)});
}

void backward(const xla::CallFrame& frame) {
  LogpOptions options = options_of(frame);
  options.bad_ids_counted = true; // by the forward pass, whose row state this is
  automatic_runtime().logp_backward({.logits = view_of(frame.arguments, 0),
                                     .target_ids = view_of(frame.arguments, 1),
                                     .row_state = view_of(frame.arguments, 2),
                                     .grad_logp = view_of(frame.arguments, 3),
                                     .grad_logits = view_of(frame.results, 0),
                                     .options = options});
}

xla::Error* error_of(const xla::CallFrame& frame, xla::ErrorCode code, const char* sentence) {
  xla::ErrorCreate arguments{sizeof(xla::ErrorCreate), nullptr, sentence, code};
  return frame.api->create_error(&arguments);
}

// XLA asks a handler for its version before it calls it.
bool answer_metadata(const xla::CallFrame& frame) {
  if (frame.extensions == nullptr || frame.extensions->type != xla::Extension::metadata) return false;
  auto* const extension = reinterpret_cast<xla::MetadataExtension*>(frame.extensions);
  extension->metadata->api_version.major_version = xla::ApiVersion::major;
  extension->metadata->api_version.minor_version = xla::ApiVersion::minor;
  extension->metadata->traits = 0;
  return true;
}

template<void (*Call)(const xla::CallFrame&)> xla::Error* handler(xla::CallFrame* frame) noexcept {
  try {
    if (!answer_metadata(*frame) && frame->stage == xla::CallFrame::execute) Call(*frame);
    return nullptr;
  } catch (const Error& error) {
    const auto code =
        error.kind() == ErrorKind::out_of_range ? xla::ErrorCode::out_of_range : xla::ErrorCode::invalid_argument;
    return error_of(*frame, code, error.what());
  } catch (const std::exception& error) {
    return error_of(*frame, xla::ErrorCode::internal, error.what());
  }
}

} // namespace

void bind_jax(nb::module_& module) {
  module.def("jax_handlers", [] {
    nb::dict handlers;
    handlers["bilogp_logp"] = nb::capsule(reinterpret_cast<void*>(&handler<forward>));
    handlers["bilogp_logp_backward"] = nb::capsule(reinterpret_cast<void*>(&handler<backward>));
    return handlers;
  });
}

} // namespace bilogp::python
