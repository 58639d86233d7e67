/* Loops over many elements: `CLONED` before a function compiles it for AVX2 too, and the machine's own is called; `f_exp` is an exponential
 * of float32 that vectorises. */
typedef signed char i8;
typedef int i32;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef u16 bf16;
typedef float f32;
typedef double f64;
#undef NAN
#define INF __builtin_inff()
#define NAN __builtin_nanf("")
#define INLINE static inline __attribute__((always_inline, unused))
#define HELPERS
#include "native_elements.h"
#undef HELPERS

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONED __attribute__((target_clones("avx2", "default")))
#else
#define CLONED
#endif
