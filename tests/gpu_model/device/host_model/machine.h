// The machine of the host model: what device/cuda/machine.h gives, on gpu_model's fibers.
#ifndef BILOGP_DEVICE_HOST_MODEL_MACHINE_H
#define BILOGP_DEVICE_HOST_MODEL_MACHINE_H

#include "device/host_model/lanes.h"
#include "tests/gpu_model/machine_model.hpp"

#define BILOGP_KERNEL(threads, blocks) extern "C" void
#define BILOGP_BY_VALUE(Struct) const Struct
#define BILOGP_BLOCK_OBJECT(Type, name) Type& name = *static_cast<Type*>(gpu_model::block_object(sizeof(Type)))

namespace canon {

constexpr int warp_lanes = 32;
constexpr u32 all_lanes = 0xffffffffu;

CANON_FN int thread_of_block() {
  return gpu_model::thread_of_block();
}
CANON_FN i64 block_of_grid() {
  return gpu_model::block_of_grid();
}
CANON_FN i64 grid_blocks() {
  return gpu_model::grid_blocks();
}

CANON_FN void block_barrier() {
  gpu_model::collective(gpu_model::Collective::block_barrier, 0, 0);
}
CANON_FN void warp_barrier() {
  gpu_model::collective(gpu_model::Collective::warp_barrier, 0, 0);
}
CANON_FN u32 shuffle_xor(u32 value, int mask) {
  return gpu_model::collective(gpu_model::Collective::shuffle_xor, value, mask);
}
CANON_FN u32 shuffle_from(u32 value, int lane) {
  return gpu_model::collective(gpu_model::Collective::shuffle_from, value, lane);
}
CANON_FN u32 warp_ballot(bool condition) {
  return gpu_model::collective(gpu_model::Collective::ballot, condition ? 1u : 0u, 0);
}

CANON_FN i32 count_ones(u32 value) {
  return __builtin_popcount(value);
}

struct Vector {
  u32 word[4];
};

CANON_FN Vector load_vector(const void* aligned) {
  gpu_model::check_read(aligned, sizeof(Vector));
  Vector v;
  __builtin_memcpy(&v, aligned, sizeof v);
  return v;
}
CANON_FN void store_vector(void* aligned, const Vector& v) {
  gpu_model::check_write(aligned, sizeof(Vector));
  __builtin_memcpy(aligned, &v, sizeof v);
}
CANON_FN u32 funnel_shift_right(u32 low, u32 high, u32 bits) {
  return (u32)(((u64)high << 32 | low) >> (bits & 31));
}

template<class T> CANON_FN T load(const T* address) {
  gpu_model::check_read(address, sizeof(T));
  T value;
  __builtin_memcpy(&value, address, sizeof value);
  return value;
}
template<class T> CANON_FN void store(T* address, T value) {
  gpu_model::check_write(address, sizeof(T));
  __builtin_memcpy(address, &value, sizeof value);
}

CANON_FN void store_for_blocks(i32* address, i32 value) {
  gpu_model::interleave();
  store(address, value);
}
CANON_FN i32 load_from_blocks(const i32* address) {
  gpu_model::interleave();
  return load(address);
}
CANON_FN void memory_fence() {
  gpu_model::interleave();
}
CANON_FN u32 take_ticket(u32* counter) {
  gpu_model::interleave();
  const u32 ticket = load(counter);
  store(counter, ticket + 1);
  return ticket;
}

CANON_FN bool try_lock(u64* word) {
  gpu_model::interleave();
  if (load(word) != 0) return false;
  store(word, (u64)1);
  return true;
}
CANON_FN void unlock(u64* word) {
  gpu_model::interleave();
  store(word, (u64)0);
}
CANON_FN i64 load_locked(const i64* address) {
  gpu_model::interleave();
  return load(address);
}
CANON_FN void store_locked(i64* address, i64 value) {
  gpu_model::interleave();
  store(address, value);
}

} // namespace canon

#endif
