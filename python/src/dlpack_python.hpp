// What Python passes tensors in besides DLTensor: DLPack 1.x's capsules and the table of functions that a tensor type
// may offer under __dlpack_c_exchange_api__. Declared here in DLPack's layout, so that no header has to be installed.
#pragma once

#include <cstdint>

#include "bilogp/tensor.hpp"

namespace bilogp::python {

struct DlpackVersion {
  std::uint32_t major;
  std::uint32_t minor;
};

// Of capsules named "dltensor".
struct DlpackManaged {
  dlpack::DLTensor tensor;
  void* context;
  void (*deleter)(DlpackManaged*);
};

// Of capsules named "dltensor_versioned".
struct DlpackManagedVersioned {
  static constexpr std::uint64_t read_only = 1;
  DlpackVersion version;
  void* context;
  void (*deleter)(DlpackManagedVersioned*);
  std::uint64_t flags;
  dlpack::DLTensor tensor;
};

using DlpackSetError = void (*)(void* context, const char* kind, const char* message);

// Each function returns 0, or -1 with a Python error set (the allocator: after calling `set_error`). None of them
// waits for a stream.
struct DlpackExchange {
  static constexpr const char* attribute = "__dlpack_c_exchange_api__";
  static constexpr const char* capsule_name = "dlpack_exchange_api";
  DlpackVersion version;
  DlpackExchange* previous;
  int (*allocate)(dlpack::DLTensor* prototype, DlpackManagedVersioned** out, void* error_context,
                  DlpackSetError set_error);
  int (*managed_from_python)(void* object, DlpackManagedVersioned** out);
  int (*managed_to_python)(DlpackManagedVersioned* tensor, void** out_object); // takes the tensor over
  int (*view_from_python)(void* object, dlpack::DLTensor* out);                // null where the type has none
  int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** out_stream);
};

} // namespace bilogp::python
