// Shared memory by address on the host model: one block's, and no copies by an engine.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H
#define BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H

#include "canon/numbers.h"
#include "device/cuda/machine.h"

namespace canon {

constexpr u32 model_shared_bytes = 0x34000;
alignas(128) static unsigned char model_shared[model_shared_bytes];

CANON_FN unsigned char* shared_place(u32 address, u32 size) {
  const bool fits = address % size == 0 && address <= model_shared_bytes - size;
  if (!fits) __builtin_trap();
  return model_shared + address;
}
CANON_FN Vector load_shared_vector(u32 address) {
  Vector v;
  __builtin_memcpy(&v, shared_place(address, sizeof v), sizeof v);
  return v;
}
CANON_FN u32 load_shared(u32 address) {
  u32 value;
  __builtin_memcpy(&value, shared_place(address, sizeof value), sizeof value);
  return value;
}
CANON_FN float load_shared_constant(u32 address) {
  return float_from_bits(load_shared(address));
}
CANON_FN void store_shared(u32 address, u32 value) {
  __builtin_memcpy(shared_place(address, sizeof value), &value, sizeof value);
}
CANON_FN void store_shared_vector(u32 address, u32 a, u32 b, u32 c, u32 d) {
  const Vector v = {{a, b, c, d}};
  __builtin_memcpy(shared_place(address, sizeof v), &v, sizeof v);
}
CANON_FN void order_before_copies() {}

} // namespace canon

#endif
