"""What every generated CUDA file begins with: types, conversions, functions of one element, reductions over groups of threads.

Expressions are printed as for the CPU (`printers/c_scalars`): names that are the C compiler's there are given a meaning here.
Nothing is included, so that NVRTC needs no headers. bfloat16 is its 16 bits, float16 a type that converts itself.
"""

from __future__ import annotations

from ..printers.c_prelude import BITS, INTEGER, PAIRS

TYPES = r"""typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef u16 bf16; typedef float f32; typedef double f64;
#define INLINE static __device__ __forceinline__
#define INF __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define __builtin_sqrtf sqrtf
#define __builtin_floorf floorf
#define __builtin_ceilf ceilf
#define __builtin_truncf truncf
#define __builtin_rintf rintf
#define __builtin_fabsf fabsf
#define __builtin_copysignf copysignf
#define __builtin_sqrt sqrt
#define __builtin_floor floor
#define __builtin_ceil ceil
#define __builtin_trunc trunc
#define __builtin_rint rint
#define __builtin_fabs fabs
#define __builtin_copysign copysign
#define __builtin_constant_p(x) 0
"""

HALF = r"""
struct f16 {
    u16 bits;
    f16() = default;
    __device__ f16(f32 x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x)); }
    __device__ operator f32() const { f32 x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits)); return x; }
};
"""

FLOAT = r"""
INLINE f32 f_exp(f32 x) { return expf(x); }
INLINE f32 f_expm1(f32 x) { return expm1f(x); }
INLINE f32 f_log(f32 x) { return logf(x); }
INLINE f32 f_log1p(f32 x) { return log1pf(x); }
INLINE f32 f_tanh(f32 x) { return tanhf(x); }
INLINE f32 f_erf(f32 x) { return erff(x); }
INLINE f64 d_erf(f64 x) { return erf(x); }
INLINE f32 f_sigmoid(f32 x) { return 1.f / (1.f + expf(-x)); }
INLINE f32 f_exp2(f32 x) { return exp2f(x); }
INLINE f32 f_log2(f32 x) { return log2f(x); }
INLINE f32 f_sinh(f32 x) { return sinhf(x); }
INLINE f32 f_cosh(f32 x) { return coshf(x); }
INLINE f32 f_arcsinh(f32 x) { return asinhf(x); }
INLINE f32 f_arctanh(f32 x) { return atanhf(x); }
INLINE f32 f_arctan(f32 x) { return atanf(x); }
INLINE f32 f_arctan2(f32 y, f32 x) { return atan2f(y, x); }
"""

# The letters that `joined` of `printers/c` puts before the name of a function are types here.
GROUPS = r"""
template <typename T> struct Sum { static __device__ T of(T a, T b) { return a + b; } };
template <typename T> struct Prod { static __device__ T of(T a, T b) { return a * b; } };
template <typename T> struct Any { static __device__ T of(T a, T b) { return a | b; } };
template <typename T> struct All { static __device__ T of(T a, T b) { return a & b; } };
template <typename T> struct Max { static __device__ T of(T a, T b) { return a > b || a != a ? a : b; } };
template <typename T> struct Min { static __device__ T of(T a, T b) { return a < b || a != a ? a : b; } };
template <typename T> struct Logaddexp;
template <> struct Logaddexp<f32> { static __device__ f32 of(f32 a, f32 b) { return f_logaddexp(a, b); } };
template <> struct Logaddexp<f64> { static __device__ f64 of(f64 a, f64 b) { return d_logaddexp(a, b); } };
template <typename T, int N, int BYTES> struct alignas(BYTES) pack { T at[N]; };

template <typename T> struct carried { typedef T type; };
template <> struct carried<i8> { typedef i32 type; };
template <> struct carried<u8> { typedef i32 type; };
template <> struct carried<i16> { typedef i32 type; };
template <> struct carried<u16> { typedef i32 type; };
template <typename T> INLINE T from_lane(T x, i32 other) { return (T)__shfl_xor_sync(~0u, (typename carried<T>::type)x, other); }
template <typename T> INLINE T from_below(T x, i32 by) { return (T)__shfl_up_sync(~0u, (typename carried<T>::type)x, by); }
template <typename T> INLINE T from_last(T x) { return (T)__shfl_sync(~0u, (typename carried<T>::type)x, 31); }

/* G neighbouring threads of a warp: each gets what all of their values come to. */
template <int G, typename How, typename T> INLINE T over_lanes(T x) {
#pragma unroll
    for (i32 step = G / 2; step; step /= 2) x = How::of(x, from_lane(x, step));
    return x;
}
/* All W warps of a block. */
template <int W, typename How, typename T> INLINE T over_block(T x) {
    __shared__ T part[W];
    x = over_lanes<32, How>(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
    __syncthreads();
    x = part[threadIdx.x % W];
    return over_lanes<W, How>(x);
}
/* The threads of W warps that have the same place in their warp. */
template <int W, typename How, typename T> INLINE T over_warps(T x) {
    __shared__ T part[W][32];
    const i32 lane = threadIdx.x % 32;
    __syncthreads();
    part[threadIdx.x / 32][lane] = x;
    __syncthreads();
    x = part[0][lane];
    for (i32 w = 1; w < W; w++) x = How::of(x, part[w][lane]);
    return x;
}
/* Up to and with each thread of a warp, from its first on. */
template <typename How, typename T> INLINE T running(T x) {
#pragma unroll
    for (i32 step = 1; step < 32; step *= 2) { T y = from_below(x, step); if (threadIdx.x % 32 >= step) x = How::of(y, x); }
    return x;
}
"""

# Atomic updates: by the device's own where it has one, else by comparing and exchanging the word that a value lies in.
ATOMICS = r"""
template <int BYTES> struct word;
template <> struct word<4> { typedef u32 type; };
template <> struct word<8> { typedef unsigned long long type; };
template <int BYTES> struct narrow;
template <> struct narrow<1> { typedef u8 type; };
template <> struct narrow<2> { typedef u16 type; };
template <typename T, typename W> INLINE T seen_as(W bits) { union { T x; W w; } u; u.w = bits; return u.x; }
template <typename W, typename T> INLINE W bits_of(T x) { union { T x; W w; } u; u.w = 0; u.x = x; return u.w; }
template <typename How, typename T> INLINE void meet(T *at, T x) {
    if constexpr (sizeof(T) >= 4) {
        typedef typename word<sizeof(T)>::type W;
        W old = *(volatile W *)at, assumed;
        do { assumed = old; old = atomicCAS((W *)at, assumed, bits_of<W>(How::of(seen_as<T>(assumed), x))); } while (old != assumed);
    } else {
        u32 *base = (u32 *)((u64)at & ~3UL), shift = 8 * (u32)((u64)at & 3UL);
        const u32 mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
        typedef typename narrow<sizeof(T)>::type N;
        u32 old = *(volatile u32 *)base, assumed;
        do {
            assumed = old;
            const N fresh = bits_of<N>(How::of(seen_as<T>((N)((assumed & mask) >> shift)), x));
            old = atomicCAS(base, assumed, (assumed & ~mask) | (u32)fresh << shift);
        } while (old != assumed);
    }
}
INLINE void add_to(f32 *at, f32 x) { atomicAdd(at, x); }
INLINE void add_to(f64 *at, f64 x) { atomicAdd(at, x); }
INLINE void add_to(i32 *at, i32 x) { atomicAdd(at, x); }
INLINE void add_to(u32 *at, u32 x) { atomicAdd(at, x); }
INLINE void add_to(i64 *at, i64 x) { atomicAdd((unsigned long long *)at, (unsigned long long)x); }
"""
PRELUDE = TYPES + HALF + BITS + FLOAT + PAIRS + INTEGER + GROUPS + ATOMICS
