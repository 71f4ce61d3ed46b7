// The options that all operators share, from Python's arguments.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>

#include "bilogp/runtime.hpp"
#include "tensor_argument.hpp"

namespace bilogp::python {

// As the Python functions take them: validate None, True or False; temperature a number or an array with one entry per
// row; vocab_size None or a number; stream None (the tensors' own current stream) or a native handle.
struct GivenOptions {
  nanobind::handle ignore_index;
  nanobind::handle validate;
  nanobind::handle temperature;
  nanobind::handle vocab_size;
  nanobind::handle numerics;
  nanobind::handle stream;
};

class CallOptions {
public:
  CallOptions(const GivenOptions& given, const TensorArgument& logits);

  [[nodiscard]] const LogpOptions& options() const noexcept { return options_; }
  [[nodiscard]] void* stream() const noexcept { return stream_; }

private:
  LogpOptions options_;
  std::optional<TensorArgument> temperature_;
  void* stream_ = nullptr;
};

// An argument that must be a whole number, or True or False; else WrongType says so. nanobind's own conversions would
// list signatures instead.
std::int64_t whole_number(const char* name, nanobind::handle given);
bool truth(const char* name, nanobind::handle given);

Numerics numerics_named(std::string_view name);

} // namespace bilogp::python
