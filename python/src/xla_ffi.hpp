// What a handler of XLA's foreign function interface sees, in the layout of its C interface, version 0.1 and newer:
// declared here so that building needs no jaxlib. tests/python/test_jax.py calls through all of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bilogp::python::xla {

struct Extension {
  static constexpr int metadata = 1;
  std::size_t struct_size;
  int type;
  Extension* next;
};

struct ApiVersion {
  static constexpr int major = 0;
  static constexpr int minor = 1; // of which this file uses no more
  std::size_t struct_size;
  Extension* extensions;
  int major_version;
  int minor_version;
};

struct Metadata {
  std::size_t struct_size;
  ApiVersion api_version;
  std::uint32_t traits;
};

struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct Error;
enum class ErrorCode : int { unknown = 2, invalid_argument = 3, out_of_range = 11, internal = 13 };

struct ErrorCreate {
  std::size_t struct_size;
  Extension* extensions;
  const char* message;
  ErrorCode code;
};

struct Api {
  std::size_t struct_size;
  Extension* extensions;
  ApiVersion version;
  const void* internal;
  Error* (*create_error)(ErrorCreate* arguments);
};

enum class DataType : int { int32 = 4, int64 = 5, float16 = 10, float32 = 11, bfloat16 = 16 };

struct Buffer {
  std::size_t struct_size;
  Extension* extensions;
  DataType dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* shape; // row-major
};

struct Buffers { // arguments and results alike
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  void** values;
};

struct Text {
  const char* begin;
  std::size_t size;
};

struct Scalar {
  DataType dtype;
  void* value;
};

struct Attributes {
  std::size_t struct_size;
  Extension* extensions;
  std::int64_t size;
  int* types;
  Text** names;
  void** values;
};

struct CallFrame {
  static constexpr int execute = 3;
  std::size_t struct_size;
  Extension* extensions;
  const Api* api;
  void* context;
  int stage;
  Buffers arguments;
  Buffers results;
  Attributes attributes;
};

} // namespace bilogp::python::xla
