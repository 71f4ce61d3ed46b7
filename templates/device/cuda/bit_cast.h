// The compiler's cast between types of one size, for NVRTC before 12.3, which has none.
#ifndef BILOGP_DEVICE_CUDA_BIT_CAST_H
#define BILOGP_DEVICE_CUDA_BIT_CAST_H

#if __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 3
template<class To, class From> static __device__ __forceinline__ To bilogp_bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From), "of one size");
  union {
    From from;
    To to;
  } both;
  both.from = from;
  return both.to;
}
#define __builtin_bit_cast(To, from) bilogp_bit_cast<To>(from)
// Not in constants, though, of which there is one.
#define BILOGP_NO_CONSTANT_BIT_CAST 1
#define negative_infinity __int_as_float((int)0xff800000)
#endif

#endif
