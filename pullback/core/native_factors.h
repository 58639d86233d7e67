/* The template of products for both dtypes, for the set of instructions that LEVEL names. */
#define T float
#define SAME_SIZE i32
#define SUFFIX JOIN(_f, LEVEL)
#include "native_vectors.h"
#include "native_packed.h"
#include "native_wholes.h"
#undef VECTORS_AT_MOST
#undef ROWS_AT_ONCE
#undef T
#undef SAME_SIZE
#undef SUFFIX
#define T double
#define SAME_SIZE i64
#define SUFFIX JOIN(_d, LEVEL)
#include "native_vectors.h"
#include "native_packed.h"
#include "native_wholes.h"
#undef VECTORS_AT_MOST
#undef ROWS_AT_ONCE
#undef T
#undef SAME_SIZE
#undef SUFFIX
