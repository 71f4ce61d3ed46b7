// Shared memory by address, barriers in it, and the copies that fill it: what Hopper added to CUDA, one function each.
//
// Shared memory is addressed by 32-bit numbers throughout, because rings, tables and barriers are laid out by hand and
// because a cluster's other blocks are reached the same way.
#ifndef BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H
#define BILOGP_DEVICE_CUDA_HOPPER_MEMORY_H

#include "canon/numbers.h"
#include "device/cuda/machine.h"

namespace canon {

CANON_FN u32 shared_address(const void* pointer) {
  return (u32)__cvta_generic_to_shared(pointer);
}

CANON_FN Vector load_shared_vector(u32 address) {
  Vector v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "r"(address));
  return v;
}
CANON_FN u32 load_shared(u32 address) {
  u32 value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
// A value that nobody writes any more: the compiler may move the load.
CANON_FN float load_shared_constant(u32 address) {
  float value;
  asm("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
  return value;
}
CANON_FN void store_shared(u32 address, u32 value) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(address), "r"(value) : "memory");
}
CANON_FN void store_shared_pair(u32 address, u32 a, u32 b) {
  asm volatile("st.shared.v2.b32 [%0], {%1, %2};" : : "r"(address), "r"(a), "r"(b) : "memory");
}
CANON_FN Vector load_shared_pair(u32 address) {
  Vector v = {};
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.word[0]), "=r"(v.word[1]) : "r"(address) : "memory");
  return v;
}
CANON_FN void store_shared_vector(u32 address, u32 a, u32 b, u32 c, u32 d) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" : : "r"(address), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

// What was stored above is written before copies that are asked for later, which belong to another proxy.
CANON_FN void order_before_copies() {
  asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
}

// Logits, or zeros: a branch would cost more. They pass through once and should not push anything else out of the
// first-level cache.
CANON_FN Vector load_streamed_vector_if(bool condition, const void* address) {
  Vector v = {};
  asm volatile("{\n\t.reg .pred given;\n\tsetp.ne.u32 given, %5, 0;\n\t"
               "@given ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n\t}"
               : "+r"(v.word[0]), "+r"(v.word[1]), "+r"(v.word[2]), "+r"(v.word[3])
               : "l"(address), "r"((u32)condition));
  return v;
}
// Sixteen bytes of global memory in one store; written without inline PTX the compiler may take it apart into four.
CANON_FN void store_whole_vector(void* address, const Vector& v) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(address), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}
// The same, or nothing: a branch would cost more.
CANON_FN void store_whole_vector_if(bool condition, void* address, const Vector& v) {
  asm volatile("{\n\t.reg .pred given;\n\tsetp.ne.u32 given, %5, 0;\n\t"
               "@given st.global.v4.b32 [%0], {%1, %2, %3, %4};\n\t}"
               :
               : "l"(address), "r"(v.word[0]), "r"(v.word[1]), "r"(v.word[2]), "r"(v.word[3]), "r"((u32)condition)
               : "memory");
}
// Without a branch, so that the instruction is there before it is needed.
CANON_FN void store_if(bool condition, u64 address, u32 value) {
  asm volatile("{\n\t.reg .pred given;\n\tsetp.ne.u32 given, %2, 0;\n\t@given st.global.u32 [%0], %1;\n\t}"
               :
               : "l"(address), "r"(value), "r"((u32)condition)
               : "memory");
}
// Barriers of shared memory, 8 bytes each.
CANON_FN void barrier_init(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}
// Once, by the thread that initialised the barriers, before anything else uses them.
CANON_FN void barriers_are_ready() {
  asm volatile("fence.mbarrier_init.release.cluster;\n\tfence.proxy.async.shared::cta;" : : : "memory");
}
CANON_FN void barrier_arrive(u32 barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(barrier) : "memory");
}
CANON_FN void barrier_arrive_many(u32 barrier, u32 arrivals) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}
// Arrives, and keeps the phase open until `bytes` more have been copied in.
CANON_FN void barrier_expect(u32 barrier, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(barrier), "r"(bytes) : "memory");
}
CANON_FN void barrier_wait(u32 barrier, u32 parity) {
  asm volatile("{\n\t"
               ".reg .pred done;\n\t"
               "again:\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
               "@!done bra again;\n\t"
               "}"
               :
               : "r"(barrier), "r"(parity)
               : "memory");
}

// True in one lane of the warp; the compiler then knows that what follows is done by one thread.
CANON_FN bool elected_lane() {
  u32 elected;
  asm volatile("{\n\t.reg .pred one;\n\telect.sync _|one, 0xffffffff;\n\tselp.u32 %0, 1, 0, one;\n\t}" : "=r"(elected));
  return elected != 0;
}

// Copies `bytes` (a multiple of 16) of global memory into shared memory and counts them on the barrier.
CANON_FN void copy_in(u32 to, const void* from, u32 bytes, u32 barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
               :
               : "r"(to), "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}

// A thread's own copies of vectors: logits, or zeros. Those of one group are there once no more than `newer` groups
// that were closed after it are on their way.
CANON_FN void copy_vector_if(bool condition, u32 to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(from), "r"(condition ? 16u : 0u)
               : "memory");
}
CANON_FN void close_group_of_vectors() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}
template<int Newer> CANON_FN void wait_for_vectors() {
  asm volatile("cp.async.wait_group %0;" : : "n"(Newer) : "memory");
}

// As barrier_wait, but awake all the while: a little sooner, for one warp that has nothing else to do.
CANON_FN void barrier_watch(u32 barrier, u32 parity) {
  asm volatile("{\n\t"
               ".reg .pred done;\n\t"
               "again:\n\t"
               "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
               "@!done bra again;\n\t"
               "}"
               :
               : "r"(barrier), "r"(parity)
               : "memory");
}

// Named barriers of the block: `arrive` does not wait.
CANON_FN void block_barrier_arrive(u32 name, u32 threads) {
  asm volatile("barrier.cta.arrive %0, %1;" : : "r"(name), "r"(threads) : "memory");
}
CANON_FN void block_barrier_wait(u32 name, u32 threads) {
  asm volatile("barrier.cta.sync %0, %1;" : : "r"(name), "r"(threads) : "memory");
}

// Scratch in global memory that several blocks share: past the first-level cache.
CANON_FN void store_scratch(i32* address, u32 a, u32 b) {
  asm volatile("st.global.cg.v2.u32 [%0], {%1, %2};" : : "l"(address), "r"(a), "r"(b) : "memory");
}
CANON_FN void load_scratch(const i32* address, u32& a, u32& b) {
  asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(address) : "memory");
}
CANON_FN u32 take_tickets(u32* counter, u32 count) {
  u32 old;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(counter), "r"(count) : "memory");
  return old;
}

} // namespace canon

#endif
