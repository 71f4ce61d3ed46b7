// The machine under a CPU kernel: floating-point mode, prefetch, unaligned scalars, and the three library functions
// that the compiler may call.
#ifndef BILOGP_DEVICE_CPU_MACHINE_H
#define BILOGP_DEVICE_CPU_MACHINE_H

#include "device/cpu/lanes.h"

#define BILOGP_KERNEL extern "C" __attribute__((visibility("default"), noinline))

extern "C" __attribute__((noinline)) void* memcpy(void* to, const void* from, unsigned long size) {
  char* out = (char*)to;
  const char* in = (const char*)from;
  for (unsigned long i = 0; i < size; ++i) {
    out[i] = in[i];
    asm volatile(""); // else this loop becomes a call of memcpy
  }
  return to;
}
// The compiler asks for this one where it does not see that a structure cannot overlap its copy.
extern "C" __attribute__((noinline)) void* memmove(void* to, const void* from, unsigned long size) {
  char* out = (char*)to;
  const char* in = (const char*)from;
  if (out <= in) return memcpy(to, from, size);
  for (unsigned long i = size; i > 0; --i) {
    out[i - 1] = in[i - 1];
    asm volatile("");
  }
  return to;
}
extern "C" __attribute__((noinline)) void* memset(void* to, int value, unsigned long size) {
  char* out = (char*)to;
  for (unsigned long i = 0; i < size; ++i) {
    out[i] = (char)value;
    asm volatile("");
  }
  return to;
}

namespace canon {

// Sets round-to-nearest with subnormals kept for the life of the object, and restores the caller's mode. Kernels do
// their arithmetic in functions that are not inlined into the one that holds this.
struct FloatingPointMode {
#if defined(__x86_64__)
  u32 saved;
  CANON_MEMBER FloatingPointMode() : saved(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  CANON_MEMBER ~FloatingPointMode() { __builtin_ia32_ldmxcsr(saved); }
#elif defined(__aarch64__)
  u64 saved;
  CANON_MEMBER FloatingPointMode() : saved(__builtin_arm_rsr64("fpcr")) { __builtin_arm_wsr64("fpcr", 0); }
  CANON_MEMBER ~FloatingPointMode() { __builtin_arm_wsr64("fpcr", saved); }
#endif
};

// How far ahead of the arithmetic memory is read into the first-level cache and into the second, in bytes.
constexpr int near_prefetch = 1024, far_prefetch = 6144;
CANON_FN void prefetch_near(const void* address) {
  __builtin_prefetch(address, 0, 3);
}
CANON_FN void prefetch_far(const void* address) {
  __builtin_prefetch(address, 0, 2);
}

#if defined(__x86_64__)
// Forgets the exception flags. Nothing that reads memory is moved across.
CANON_FN void clear_exceptions() {
  const u32 mode = 0x1f80;
  asm volatile("ldmxcsr %0" : : "m"(mode) : "memory");
}
// Whether anything overflowed, underflowed or was invalid since then, up to the arithmetic that gave `result`.
CANON_FN bool exceptions_after(float result) {
  u32 flags;
  asm volatile("stmxcsr %0" : "=m"(flags) : "x"(result) : "memory");
  return (flags & 0x19) != 0;
}
// Whether an operand since then was subnormal; to be asked after exceptions_after.
CANON_FN bool subnormal_operand_met() {
  return (__builtin_ia32_stmxcsr() & 0x02) != 0;
}
#else
CANON_FN bool subnormal_operand_met() {
  return false;
}
#endif

// Orders stores past the caches before whatever the caller does next.
CANON_FN void finish_stores() {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

// Tensors may begin at any byte (files are mapped as they are).
template<class T> struct Unaligned {
  typedef T type __attribute__((aligned(1), may_alias));
};
template<class T> CANON_FN T load(const T* address) {
  return *(const typename Unaligned<T>::type*)address;
}
template<class T> CANON_FN void store(T* address, T value) {
  *(typename Unaligned<T>::type*)address = value;
}

} // namespace canon

#endif
