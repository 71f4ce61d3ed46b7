// From a Python object to a TensorView, without a copy.
//
// numpy's arrays come through their C-level array interface (which also tells read-only, big-endian and object arrays
// apart and, unlike their DLPack and buffer exports, has room for ml_dtypes' bfloat16); torch's through DLPack's
// exchange table, where their torch has it; everything else through __dlpack__. All with the GIL held.
#pragma once

#include <nanobind/nanobind.h>

#include "bilogp/tensor.hpp"
#include "dlpack_python.hpp"

namespace bilogp::python {

enum class Access : std::uint8_t { read, write };

class TensorArgument {
public:
  // `name` is the argument's, for the errors. Throws WrongType for an object or dtype that is none of ours,
  // Error(invalid_argument) for memory that cannot be used as asked.
  TensorArgument(const char* name, nanobind::handle object, Access access = Access::read);
  TensorArgument(TensorArgument&&) = default;
  TensorArgument& operator=(TensorArgument&&) = default;
  TensorArgument(const TensorArgument&) = delete;
  TensorArgument& operator=(const TensorArgument&) = delete;
  ~TensorArgument() = default;

  [[nodiscard]] const TensorView& view() const noexcept { return view_; }
  [[nodiscard]] const DlpackExchange* exchange() const noexcept { return exchange_; }
  [[nodiscard]] nanobind::handle object() const noexcept { return object_; }

private:
  void read_array_interface(const char* name, Access access);
  void read_exchange(const char* name, Access access);
  void read_dlpack(const char* name, Access access);

  TensorView view_;
  nanobind::handle object_;
  const DlpackExchange* exchange_ = nullptr;
  nanobind::object owner_; // a capsule that holds the shape and strides
};

} // namespace bilogp::python
