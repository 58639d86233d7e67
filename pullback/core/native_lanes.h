/* Loops over many elements: `CLONED` before a function compiles it for AVX2 too, and the machine's own is called; `f_exp` is an exponential
 * of float32 that vectorises. */
#include "native_types.h"
#define HELPERS
#include "native_elements.h"
#undef HELPERS

#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__GNUC__) && !defined(__clang__)
#define CLONED __attribute__((target_clones("avx2", "default")))
#else
#define CLONED
#endif
