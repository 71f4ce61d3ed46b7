// Shared memory by address, barriers and copies on the host model, with the names that the templates' header gives
// them.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H
#define BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H

#include "canon/numbers.h"
#include "device/cuda/machine.h"

namespace canon {

using gpu_model::close_group_of_vectors;
using gpu_model::copy_in;
using gpu_model::shared_address;

CANON_FN Vector load_shared_vector(u32 address) {
  gpu_model::interleave_seldom();
  Vector v;
  __builtin_memcpy(&v, gpu_model::shared_place(address, sizeof v), sizeof v);
  return v;
}
CANON_FN u32 load_shared(u32 address) {
  gpu_model::interleave_seldom();
  u32 value;
  __builtin_memcpy(&value, gpu_model::shared_place(address, sizeof value), sizeof value);
  return value;
}
CANON_FN float load_shared_constant(u32 address) {
  float value;
  __builtin_memcpy(&value, gpu_model::shared_place(address, sizeof value), sizeof value);
  return value;
}
CANON_FN void store_shared(u32 address, u32 value) {
  __builtin_memcpy(gpu_model::shared_place(address, sizeof value), &value, sizeof value);
}
CANON_FN void store_shared_pair(u32 address, u32 a, u32 b) {
  const u32 words[2] = {a, b};
  __builtin_memcpy(gpu_model::shared_place(address, sizeof words), words, sizeof words);
}
CANON_FN Vector load_shared_pair(u32 address) {
  gpu_model::interleave_seldom();
  Vector v = {};
  __builtin_memcpy(&v, gpu_model::shared_place(address, 8), 8);
  return v;
}
CANON_FN void store_shared_vector(u32 address, u32 a, u32 b, u32 c, u32 d) {
  const Vector v = {{a, b, c, d}};
  __builtin_memcpy(gpu_model::shared_place(address, sizeof v), &v, sizeof v);
}
CANON_FN void order_before_copies() {}

CANON_FN Vector load_streamed_vector_if(bool condition, const void* address) {
  return condition ? load_vector(address) : Vector{};
}
CANON_FN void store_whole_vector(void* address, const Vector& v) {
  store_vector(address, v);
}
CANON_FN void store_whole_vector_if(bool condition, void* address, const Vector& v) {
  if (condition) store_vector(address, v);
}
CANON_FN void store_if(bool condition, u64 address, u32 value) {
  if (condition) store((u32*)address, value);
}

CANON_FN void barrier_init(u32 barrier, u32 arrivals) {
  gpu_model::barrier_init(barrier, arrivals);
}
CANON_FN void barriers_are_ready() {}
CANON_FN void barrier_arrive(u32 barrier) {
  gpu_model::barrier_arrive(barrier, 1);
}
CANON_FN void barrier_arrive_many(u32 barrier, u32 arrivals) {
  gpu_model::barrier_arrive(barrier, arrivals);
}
CANON_FN void barrier_expect(u32 barrier, u32 bytes) {
  gpu_model::barrier_expect(barrier, bytes);
}
CANON_FN void barrier_wait(u32 barrier, u32 parity) {
  gpu_model::barrier_wait(barrier, parity);
}
CANON_FN void barrier_watch(u32 barrier, u32 parity) {
  gpu_model::barrier_wait(barrier, parity);
}

CANON_FN bool elected_lane() {
  return gpu_model::is_elected_lane();
}
CANON_FN void copy_vector_if(bool condition, u32 to, const void* from) {
  gpu_model::copy_vector(condition, to, from);
}
template<int Newer> CANON_FN void wait_for_vectors() {
  gpu_model::wait_for_vectors(Newer);
}
CANON_FN void block_barrier_arrive(u32 name, u32 threads) {
  gpu_model::named_barrier_arrive(name, threads);
}
CANON_FN void block_barrier_wait(u32 name, u32 threads) {
  gpu_model::named_barrier_wait(name, threads);
}

CANON_FN void store_scratch(i32* address, u32 a, u32 b) {
  gpu_model::interleave();
  gpu_model::check_write(address, 8);
  const u32 words[2] = {a, b};
  __builtin_memcpy(address, words, sizeof words);
}
CANON_FN void load_scratch(const i32* address, u32& a, u32& b) {
  gpu_model::check_read(address, 8);
  a = (u32)address[0];
  b = (u32)address[1];
}
CANON_FN u32 take_tickets(u32* counter, u32 count) {
  gpu_model::interleave();
  const u32 old = load(counter);
  store(counter, old + count);
  return old;
}

} // namespace canon

#endif
