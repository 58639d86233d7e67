/* Loops over many elements: `CLONED` (native_arrays.h) before a function compiles it for AVX2 too; `f_exp` is an exponential of float32 that
 * vectorises. */
#include "native_types.h"
#define HELPERS
#include "native_elements.h"
#undef HELPERS
