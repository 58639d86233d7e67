/* The templates for both dtypes, for the set of instructions that LEVEL names. */
#define T float
#define SAME_SIZE i32
#define SUFFIX JOIN(_f, LEVEL)
#define EXP f_exp
#define LOG f_log
#define TANH f_tanh
#define SIGMOID f_sigmoid
#define gemm_f_plain sgemm
#define gemm_f_avx2 sgemm
#define gemm_f_avx512 sgemm
#define gemm_d_plain dgemm
#define gemm_d_avx2 dgemm
#define gemm_d_avx512 dgemm
#include "native_products.h"
#include "native_attention.h"
#define X(field) ((T *)j->field)
#include "native_convolution.h"
#include "native_windows.h"
#include "native_recurrent.h"
FUNCTIONS
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef EXP
#undef LOG
#undef TANH
#undef SIGMOID
#define T double
#define SAME_SIZE i64
#define SUFFIX JOIN(_d, LEVEL)
#define EXP exp
#define LOG log
#define TANH tanh
#define SIGMOID d_sigmoid
#include "native_products.h"
#include "native_attention.h"
#define X(field) ((T *)j->field)
#include "native_convolution.h"
#include "native_windows.h"
#include "native_recurrent.h"
FUNCTIONS
#undef T
#undef SAME_SIZE
#undef SUFFIX
#undef EXP
#undef LOG
#undef TANH
#undef SIGMOID
