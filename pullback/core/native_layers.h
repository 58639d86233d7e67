/* The templates for both dtypes, for the set of instructions that LEVEL names. */
#define T float
#define SAME_SIZE i32
#define SUFFIX JOIN(_f, LEVEL)
#define EXP f_exp
#define LOG f_log
#include "native_vectors.h"
#include "native_products.h"
#include "native_attention.h"
#define X(field) ((T *)j->field)
#include "native_convolution.h"
#include "native_windows.h"
FUNCTIONS
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef EXP
#undef LOG
#define T double
#define SAME_SIZE i64
#define SUFFIX JOIN(_d, LEVEL)
#define EXP exp
#define LOG log
#include "native_vectors.h"
#include "native_products.h"
#include "native_attention.h"
#define X(field) ((T *)j->field)
#include "native_convolution.h"
#include "native_windows.h"
FUNCTIONS
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef EXP
#undef LOG
