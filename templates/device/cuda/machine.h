// The machine under a CUDA kernel: threads, warps, barriers, memory. Blocks are one-dimensional.
#ifndef BILOGP_DEVICE_CUDA_MACHINE_H
#define BILOGP_DEVICE_CUDA_MACHINE_H

#include "device/cuda/lanes.h"

// A kernel's definition: BILOGP_KERNEL(threads of a block, blocks that shall fit a multiprocessor)
// name(BILOGP_BY_VALUE( Struct) a, ...).
#define BILOGP_KERNEL(threads, blocks) extern "C" __global__ void __launch_bounds__(threads, blocks)
// The same for a kernel that is always launched in clusters of so many blocks: known here, it is not asked for there.
#define BILOGP_CLUSTER_KERNEL(threads, blocks, cluster)                                                                \
  extern "C" __global__ void __cluster_dims__(cluster, 1, 1) __launch_bounds__(threads, blocks)
#define BILOGP_BY_VALUE(Struct) const __grid_constant__ Struct
// One object of the block, called `name`; its memory holds anything at first, and no constructor runs.
#define BILOGP_BLOCK_OBJECT(Type, name)                                                                                \
  __shared__ __align__(16) unsigned char name##_memory[sizeof(Type)];                                                  \
  Type& name = *reinterpret_cast<Type*>(name##_memory)

namespace canon {

constexpr int warp_lanes = 32;
constexpr u32 all_lanes = 0xffffffffu;

CANON_FN int thread_of_block() {
  return (int)threadIdx.x;
}
CANON_FN i64 block_of_grid() {
  return (i64)blockIdx.x;
}
CANON_FN i64 grid_blocks() {
  return (i64)gridDim.x;
}

// Every thread of the block comes here; what they wrote to the block's memory is seen by all behind it.
CANON_FN void block_barrier() {
  __syncthreads();
}
// The same for the lanes of a warp.
CANON_FN void warp_barrier() {
  __syncwarp();
}

// Warp collectives: all 32 lanes call them together.
CANON_FN u32 shuffle_xor(u32 value, int mask) {
  return __shfl_xor_sync(all_lanes, value, mask);
}
CANON_FN u32 shuffle_from(u32 value, int lane) {
  return __shfl_sync(all_lanes, value, lane);
}
CANON_FN u32 warp_ballot(bool condition) {
  return __ballot_sync(all_lanes, condition);
}

CANON_FN i32 count_ones(u32 value) {
  return __popc(value);
}

// Sixteen bytes, as they are loaded and stored.
struct Vector {
  u32 word[4];
};

CANON_FN Vector load_vector(const void* aligned) {
  const uint4 q = *reinterpret_cast<const uint4*>(aligned);
  return Vector{{q.x, q.y, q.z, q.w}};
}
CANON_FN void store_vector(void* aligned, const Vector& v) {
  *reinterpret_cast<uint4*>(aligned) = uint4{v.word[0], v.word[1], v.word[2], v.word[3]};
}
// (high:low) >> (bits mod 32), the low word of it.
CANON_FN u32 funnel_shift_right(u32 low, u32 high, u32 bits) {
  return __funnelshift_r(low, high, bits);
}

template<class T> CANON_FN T load(const T* address) {
  return *address;
}
template<class T> CANON_FN void store(T* address, T value) {
  *address = value;
}

// Words that blocks of one launch hand to each other: written before publish(), read behind a ticket.
CANON_FN void store_for_blocks(i32* address, i32 value) {
  asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(address), "r"(value) : "memory");
}
CANON_FN i32 load_from_blocks(const i32* address) {
  i32 value;
  asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(address) : "memory");
  return value;
}
CANON_FN void memory_fence() {
  __threadfence();
}
CANON_FN u32 take_ticket(u32* counter) {
  return atomicAdd(counter, 1u);
}

// A lock of one word that is 0 when free.
CANON_FN bool try_lock(u64* word) {
  return atomicCAS(word, 0ull, 1ull) == 0ull;
}
CANON_FN void unlock(u64* word) {
  atomicExch(word, 0ull);
}
CANON_FN i64 load_locked(const i64* address) {
  return *static_cast<const volatile i64*>(address);
}
CANON_FN void store_locked(i64* address, i64 value) {
  *static_cast<volatile i64*>(address) = value;
}

} // namespace canon

#endif
