/* The templates of recurrent layers for both dtypes, for the set of instructions that LEVEL names. */
#define T float
#define SAME_SIZE i32
#define SUFFIX JOIN(_f, LEVEL)
#define TANH f_tanh
#define SIGMOID f_sigmoid
#include "native_vectors.h"
#include "native_packed.h"
#include "native_recurrent.h"
#undef VECTORS_AT_MOST
#undef ROWS_AT_ONCE
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef TANH
#undef SIGMOID
#define T double
#define SAME_SIZE i64
#define SUFFIX JOIN(_d, LEVEL)
#define TANH tanh
#define SIGMOID d_sigmoid
#include "native_vectors.h"
#include "native_packed.h"
#include "native_recurrent.h"
#undef VECTORS_AT_MOST
#undef ROWS_AT_ONCE
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef TANH
#undef SIGMOID
