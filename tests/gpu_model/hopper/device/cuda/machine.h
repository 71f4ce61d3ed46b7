// The machine that the Hopper plans run on in the host model: device/host_model's, and what these plans call by its
// CUDA name.
#ifndef BILOGP_DEVICE_CUDA_MACHINE_H
#define BILOGP_DEVICE_CUDA_MACHINE_H

#include "device/host_model/machine.h"
#include "tests/gpu_model/shared_model.hpp"

#define BILOGP_CLUSTER_KERNEL(threads, blocks, cluster) extern "C" void
#define __device__
#define threadIdx (canon::Dimension{(u32)gpu_model::thread_of_block()})
#define blockIdx (canon::Dimension{(u32)gpu_model::block_of_grid()})
#define gridDim (canon::Dimension{(u32)gpu_model::grid_blocks()})

namespace canon {

struct Dimension {
  u32 x;
};
struct float2 {
  float x, y;
};

CANON_FN float __int_as_float(i32 bits) {
  return __builtin_bit_cast(float, bits);
}
CANON_FN i32 __float_as_int(float value) {
  return __builtin_bit_cast(i32, value);
}

CANON_FN void __syncthreads() {
  block_barrier();
}
CANON_FN void __syncwarp() {
  warp_barrier();
}
CANON_FN bool __all_sync(u32, bool condition) {
  return warp_ballot(condition) == all_lanes;
}
CANON_FN bool __any_sync(u32, bool condition) {
  return warp_ballot(condition) != 0;
}
template<class T> CANON_FN T __shfl_xor_sync(u32, T value, int mask) {
  return __builtin_bit_cast(T, shuffle_xor(__builtin_bit_cast(u32, value), mask));
}
template<class T> CANON_FN T __shfl_sync(u32, T value, int lane) {
  if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, shuffle_from(__builtin_bit_cast(u32, value), lane));
  } else {
    const u64 bits = __builtin_bit_cast(u64, value);
    const u64 low = shuffle_from((u32)bits, lane);
    return __builtin_bit_cast(T, (u64)shuffle_from((u32)(bits >> 32), lane) << 32 | low);
  }
}
template<class T> CANON_FN T __reduce_max_sync(u32, T value) {
  for (int mask = 1; mask < warp_lanes; mask *= 2) {
    const T other = (T)shuffle_xor((u32)value, mask);
    value = other > value ? other : value;
  }
  return value;
}

} // namespace canon

#endif
