// The machine that the Hopper plans' tiles run on in the host model: device/host_model's, and the warp votes and
// reductions that these plans call by their CUDA names.
#ifndef BILOGP_DEVICE_CUDA_MACHINE_H
#define BILOGP_DEVICE_CUDA_MACHINE_H

#include "device/host_model/machine.h"

namespace canon {

CANON_FN bool __all_sync(u32, bool condition) {
  return warp_ballot(condition) == all_lanes;
}
CANON_FN bool __any_sync(u32, bool condition) {
  return warp_ballot(condition) != 0;
}
template<class T> CANON_FN T __shfl_xor_sync(u32, T value, int mask) {
  return __builtin_bit_cast(T, shuffle_xor(__builtin_bit_cast(u32, value), mask));
}
CANON_FN i32 __reduce_max_sync(u32, i32 value) {
  for (int mask = 1; mask < warp_lanes; mask *= 2) {
    const i32 other = (i32)shuffle_xor((u32)value, mask);
    value = other > value ? other : value;
  }
  return value;
}

} // namespace canon

#endif
