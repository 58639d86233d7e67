"""What every generated C file begins with: types, conversions, and functions of one element that gcc can vectorise.

Single-precision exp, log, tanh, erf and their kin are polynomials of our own (least squares, refined towards equal error):
within 2 to 4 units in the last place, infinities, NaN and denormals included, without a branch; erf in double precision too.
The rest of double precision and rare functions call the C library. Names: `f_` single, `d_` double; integers are generic macros.
"""

from __future__ import annotations

TYPES = r"""typedef signed char i8; typedef short i16; typedef int i32; typedef long i64;
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef u16 bf16; typedef _Float16 f16; typedef float f32; typedef double f64;
#define INF __builtin_inff()
#define NAN __builtin_nanf("")
#define INLINE static inline __attribute__((always_inline))
double exp(double), log(double), sin(double), cos(double), tan(double), asin(double), acos(double), atan(double), sinh(double),
    cosh(double), tanh(double), asinh(double), acosh(double), atanh(double), erf(double), erfc(double), exp2(double), expm1(double),
    log2(double), log10(double), log1p(double), pow(double, double), fmod(double, double), atan2(double, double), hypot(double, double);
float sinf(float), cosf(float), tanf(float), asinf(float), acosf(float), atanf(float), sinhf(float), coshf(float), asinhf(float),
    acoshf(float), atanhf(float), erfcf(float), exp2f(float), log2f(float), log10f(float), powf(float, float), fmodf(float, float),
    atan2f(float, float), hypotf(float, float);
void *memset(void *, int, unsigned long); void *memcpy(void *, const void *, unsigned long);
"""

BITS = r"""
INLINE f32 bits_f32(u32 x) { union { u32 i; f32 f; } u; u.i = x; return u.f; }
INLINE u32 f32_bits(f32 x) { union { u32 i; f32 f; } u; u.f = x; return u.i; }
INLINE f32 from_bf16(bf16 x) { return bits_f32((u32)x << 16); }
INLINE bf16 to_bf16(f32 x) { u32 b = f32_bits(x); return x != x ? (bf16)((b >> 16) | 0x40) : (bf16)((b + 0x7fff + ((b >> 16) & 1)) >> 16); }
"""

POLYNOMIALS = r"""
INLINE f64 bits_f64(u64 x) { union { u64 i; f64 f; } u; u.i = x; return u.f; }
INLINE u64 f64_bits(f64 x) { union { u64 i; f64 f; } u; u.f = x; return u.i; }
INLINE f32 f_scale(f32 x, i32 n) { i32 h = n >> 1; return x * bits_f32((u32)(h + 127) << 23) * bits_f32((u32)(n - h + 127) << 23); }
INLINE f32 f_exp(f32 x) {
    f32 c = x > 89.f ? 89.f : x; c = c < -104.f ? 0.f : c; /* what gives 0, masked elements, takes no slow denormals */
    f32 n = __builtin_rintf(c * 1.442695041f);
    f32 r = c - n * 0.693359375f; r = r + n * 2.12194440e-4f;
    f32 q = 1.381314337e-03f; q = q * r + 8.369419079e-03f; q = q * r + 4.166845682e-02f; q = q * r + 1.666651479e-01f; q = q * r + 4.999999305e-01f;
    f32 y = f_scale(1.f + (r + r * r * q), (i32)n);
    y = x < -104.f ? 0.f : y;
    return x != x ? x : y;
}
INLINE f32 f_expm1(f32 x) {
    f32 q = 2.497025348e-05f; q = q * x + 1.997402023e-04f; q = q * x + 1.388854345e-03f; q = q * x + 8.333140749e-03f; q = q * x + 4.166666927e-02f;
    q = q * x + 1.666666746e-01f; q = q * x + 0.5f;
    f32 near = x + x * x * q, far = f_exp(x) - 1.f;
    near = x == 0.f ? x : near; /* with its sign */
    return __builtin_fabsf(x) < 0.5f ? near : far;
}
INLINE f32 f_log_of(f32 v, f32 extra) {
    i32 small = v < 1.17549435e-38f;
    f32 w = small ? v * 33554432.f : v;
    i32 b = (i32)f32_bits(w) - 0x3f3504f3;
    i32 e = b >> 23;
    f32 f = bits_f32((u32)((b & 0x7fffff) + 0x3f3504f3)) - 1.f, n = (f32)(e - (small ? 25 : 0));
    f32 q = 6.746592159e-02f; q = q * f - 1.167563749e-01f; q = q * f + 1.188817679e-01f; q = q * f - 1.240559224e-01f; q = q * f + 1.421955071e-01f;
    q = q * f - 1.666799561e-01f; q = q * f + 2.000211874e-01f; q = q * f - 2.500000960e-01f; q = q * f + 3.333331260e-01f;
    f32 s = f * f, y = s * f * q + n * -2.12194440e-4f + extra;
    y = y - 0.5f * s;
    y = (f + y) + n * 0.693359375f;
    y = v == INF ? INF : y;
    y = v == 0.f ? -INF : y;
    y = v < 0.f ? NAN : y;
    return v != v ? v : y;
}
INLINE f32 f_log(f32 x) { return f_log_of(x, 0.f); }
INLINE f32 f_log1p(f32 x) {
    f32 u = 1.f + x, lost = (x - (u - 1.f)) / u;
    lost = u == INF ? 0.f : lost;
    lost = u > 0.f ? lost : 0.f;
    f32 y = f_log_of(u, lost);
    return __builtin_fabsf(x) < 1e-10f ? x : y;
}
INLINE f32 f_log2(f32 v) {
    i32 small = v < 1.17549435e-38f;
    f32 w = small ? v * 33554432.f : v;
    i32 b = (i32)f32_bits(w) - 0x3f3504f3;
    f32 f = bits_f32((u32)((b & 0x7fffff) + 0x3f3504f3)) - 1.f, n = (f32)((b >> 23) - (small ? 25 : 0));
    f32 q = 6.746592159e-02f; q = q * f - 1.167563749e-01f; q = q * f + 1.188817679e-01f; q = q * f - 1.240559224e-01f; q = q * f + 1.421955071e-01f;
    q = q * f - 1.666799561e-01f; q = q * f + 2.000211874e-01f; q = q * f - 2.500000960e-01f; q = q * f + 3.333331260e-01f;
    f32 s = f * f, rest = s * f * q - 0.5f * s;
    f32 y = rest * 0.44269504089f + f * 0.44269504089f; /* log2(e) is this and one */
    y = ((y + rest) + f) + n;
    y = v == INF ? INF : y;
    y = v == 0.f ? -INF : y;
    y = v < 0.f ? NAN : y;
    return v != v ? v : y;
}
INLINE f32 f_sinh(f32 x) {
    f32 a = __builtin_fabsf(x), e = f_expm1(a > 88.f ? 88.f : a), h = f_exp(0.5f * a);
    f32 y = 0.5f * (e + e / (e + 1.f));
    y = a > 88.f ? (0.5f * h) * h : y;
    return x != x ? x : __builtin_copysignf(y, x);
}
INLINE f32 f_cosh(f32 x) {
    f32 a = __builtin_fabsf(x), e = f_exp(a > 88.f ? 88.f : a), h = f_exp(0.5f * a);
    f32 y = 0.5f * e + 0.5f / e;
    y = a > 88.f ? (0.5f * h) * h : y;
    return x != x ? x : y;
}
INLINE f32 f_arctanh(f32 x) {
    f32 a = __builtin_fabsf(x), y = 0.5f * f_log1p(2.f * a / (1.f - a));
    return x != x ? x : __builtin_copysignf(y, x);
}
INLINE f32 f_arcsinh(f32 x) {
    f32 a = __builtin_fabsf(x), c = a > 1e4f ? 1e4f : a, z = c * c;
    f32 near = f_log1p(c + z / (1.f + __builtin_sqrtf(z + 1.f))), far = f_log(a) + 0.6931471806f;
    return x != x ? x : __builtin_copysignf(a > 1e4f ? far : near, x);
}
INLINE f32 f_arctan_of(f32 small, f32 large) { /* of a quotient from 0 to 1 */
    i32 high = small > 0.4142135624f * large;
    f32 top = high ? small - large : small, under = high ? small + large : large;
    f32 a = top / under, z = a * a;
    f32 q = -6.083435527e-02f; q = q * z + 1.059599412e-01f; q = q * z - 1.424384766e-01f; q = q * z + 1.999848937e-01f; q = q * z - 3.333331550e-01f;
    f32 y = a + a * z * q;
    return high ? y + 0.7853981634f : y;
}
INLINE f32 f_arctan(f32 x) {
    f32 a = __builtin_fabsf(x);
    i32 steep = a > 1.f;
    f32 y = f_arctan_of(steep ? 1.f / a : a, 1.f);
    y = steep ? 1.5707963268f - y : y;
    return x != x ? x : __builtin_copysignf(y, x);
}
INLINE f32 f_arctan2(f32 y, f32 x) {
    f32 a = __builtin_fabsf(y), b = __builtin_fabsf(x);
    i32 steep = a > b;
    f32 low = steep ? b : a, high = steep ? a : b;
    low = low == INF ? 1.f : high == INF ? 0.f : low;
    high = high == INF || high == 0.f ? 1.f : high;
    f32 r = f_arctan_of(low, high);
    r = steep ? 1.5707963268f - r : r;
    r = __builtin_copysignf(1.f, x) < 0.f ? 3.1415926536f - r : r;
    r = __builtin_copysignf(r, y);
    return x != x || y != y ? x + y : r;
}
INLINE f32 f_tanh(f32 x) {
    f32 a = __builtin_fabsf(x), z = x * x;
    f32 q = -5.679302430e-03f; q = q * z + 2.061812041e-02f; q = q * z - 5.373399920e-02f; q = q * z + 1.333138364e-01f; q = q * z - 3.333328022e-01f;
    f32 near = x + x * z * q;
    f32 far = 1.f - 2.f / (f_exp(2.f * (a > 20.f ? 20.f : a)) + 1.f);
    return x != x ? x : __builtin_copysignf(a < 0.625f ? near : far, x);
}
INLINE f32 f_sigmoid(f32 x) { return 1.f / (1.f + f_exp(-x)); }
"""

# Products are added without a rounding in between where the processor can: read once for each set of instructions.
FUSED = r"""
#undef FUSE
#undef FUSED
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSE(a, b, c) __builtin_fmaf(a, b, c)
#define FUSED(a, b, c) __builtin_fma(a, b, c)
#else
#define FUSE(a, b, c) ((a) * (b) + (c))
#define FUSED FUSE
#endif
INLINE f32 f_exp2(f32 x) {
    f32 c = x > 129.f ? 129.f : x; c = c < -151.f ? 0.f : c;
    f32 n = __builtin_rintf(c), r = (c - n) * 0.6931471806f;
    f32 q = FUSE(1.381314337e-03f, r, 8.369419079e-03f);
    q = FUSE(q, r, 4.166845682e-02f); q = FUSE(q, r, 1.666651479e-01f); q = FUSE(q, r, 4.999999305e-01f);
    f32 y = f_scale(1.f + FUSE(r * r, q, r), (i32)n); /* NaN stays NaN */
    return x < -151.f ? 0.f : y;
}
INLINE f32 f_erf(f32 x) {
    f32 a = __builtin_fabsf(x), z = x * x, c = a > 4.f ? 4.f : a;
    f32 p = FUSE(8.345224444e-05f, z, -8.137437448e-04f);
    p = FUSE(p, z, 5.200634295e-03f); p = FUSE(p, z, -2.685927078e-02f); p = FUSE(p, z, 1.128369394e-01f); p = FUSE(p, z, -3.761263370e-01f);
    p = FUSE(p, z, 1.128379167e+00f);
    f32 q = FUSE(1.039405605e-06f, c, -1.669825658e-05f); /* the logarithm of 1 - erf */
    q = FUSE(q, c, 9.514577954e-05f); q = FUSE(q, c, -2.605235830e-05f); q = FUSE(q, c, -3.025988006e-03f); q = FUSE(q, c, 2.326482317e-02f);
    q = FUSE(q, c, -1.063219545e-01f); q = FUSE(q, c, -6.346476117e-01f); q = FUSE(q, c, -1.129021253e+00f); q = FUSE(q, c, 9.303994226e-05f);
    f32 n = __builtin_rintf(q * 1.442695041f), r = FUSE(n, 2.12194440e-4f, FUSE(n, -0.693359375f, q)); /* its exponential: never below -18 */
    f32 e = FUSE(1.381314337e-03f, r, 8.369419079e-03f);
    e = FUSE(e, r, 4.166845682e-02f); e = FUSE(e, r, 1.666651479e-01f); e = FUSE(e, r, 4.999999305e-01f); e = 1.f + FUSE(r * r, e, r);
    f32 far = __builtin_copysignf(FUSE(e, -bits_f32((u32)((i32)n + 127) << 23), 1.f), x);
    return a < 0.92f ? x * p : far;
}
INLINE f64 d_erf(f64 x) {
    f64 a = __builtin_fabs(x), z = x * x, u = (a > 6. ? 6. : a) - 1.5;
    f64 p = FUSED(-3.2797821652115195e-12, z, 7.955081575097392e-11); p = FUSED(p, z, -1.189636935756746e-09);
    p = FUSED(p, z, 1.4736090756582505e-08); p = FUSED(p, z, -1.6356919457449897e-07); p = FUSED(p, z, 1.6461322354877406e-06);
    p = FUSED(p, z, -1.4925600627588024e-05); p = FUSED(p, z, 0.00012055330799562192); p = FUSED(p, z, -0.0008548326958334438);
    p = FUSED(p, z, 0.005223977624181866); p = FUSED(p, z, -0.02686617064498501); p = FUSED(p, z, 0.1128379167095424);
    p = FUSED(p, z, -0.3761263890318373); p = FUSED(p, z, 0.1283791670955126);
    f64 q = FUSED(9.713915043589174e-12, u, -3.2051030457020913e-10); q = FUSED(q, u, 4.3784922985996065e-09); /* the logarithm of 1 - erf */
    q = FUSED(q, u, -3.560533068645119e-08); q = FUSED(q, u, 1.999575429091044e-07); q = FUSED(q, u, -8.22980481581535e-07);
    q = FUSED(q, u, 2.3718122127843374e-06); q = FUSED(q, u, -2.646501472913366e-06); q = FUSED(q, u, -2.2473935728159263e-05);
    q = FUSED(q, u, 0.00021596332630202767); q = FUSED(q, u, -0.0012572166722179844); q = FUSED(q, u, 0.00600674638427807);
    q = FUSED(q, u, -0.025824140634003085); q = FUSED(q, u, -0.892640330614996); q = FUSED(q, u, -3.5088008017795245);
    q = FUSED(q, u, -3.3844920895515527);
    f64 t = FUSED(q, 1.4426950408889634, 6755399441055744.), n = t - 6755399441055744.; /* the integer is in the low bits */
    f64 r = FUSED(n, -1.90821492927058770002e-10, FUSED(n, -0.693147180369123816490, q));
    f64 e = FUSED(2.5115671225196605e-08, r, 2.763133897086362e-07); e = FUSED(e, r, 2.7557223510260886e-06);
    e = FUSED(e, r, 2.4801489754714433e-05); e = FUSED(e, r, 0.00019841269908884074); e = FUSED(e, r, 0.001388888894722828);
    e = FUSED(e, r, 0.008333333333311403); e = FUSED(e, r, 0.041666666666514425); e = FUSED(e, r, 0.1666666666666669);
    e = FUSED(e, r, 0.5000000000000013); e = 1. + FUSED(r * r, e, r);
    f64 far = __builtin_copysign(FUSED(e, -bits_f64((f64_bits(t) << 52) + 0x3ff0000000000000ul), 1.), x);
    return a < 1.25 ? FUSED(x, p, x) : far;
}
"""

PAIRS = r"""
INLINE f64 d_sigmoid(f64 x) { return 1. / (1. + exp(-x)); }
/* no branch in what follows: each would keep a loop from being vectorised */
/* NaN comes out where one goes in, of equal numbers, the zeros of both signs, the second. A constant is not asked for NaN in each step. */
#define CHOICE(T, NAME, BEYOND, REACHES) INLINE T NAME(T a, T b) { \
        if (__builtin_constant_p(b) && b == b) return b REACHES a ? b : a; \
        T m = a BEYOND b ? a : b; return a != a ? a : m; }
#define MAXIMUM(T, N) CHOICE(T, N##_max, >, >=) CHOICE(T, N##_min, <, <=) \
    INLINE T N##_fmax(T a, T b) { T m = a >= b ? a : b; return b != b ? a : m; } INLINE T N##_fmin(T a, T b) { T m = a <= b ? a : b; return b != b ? a : m; }
MAXIMUM(f32, f) MAXIMUM(f64, d)
#define REMAINDERS(T, N, FMOD, FLOOR, SIGN) \
    INLINE T N##_remainder(T a, T b) { T m = FMOD(a, b); if (!b) return m; if (m) { if ((b < 0) != (m < 0)) m += b; } else m = SIGN((T)0, b); return m; } \
    INLINE T N##_floor_divide(T a, T b) { if (!b) return a / b; T m = FMOD(a, b), q = (a - m) / b; if (m && (b < 0) != (m < 0)) q -= 1; \
        if (q) { T f = FLOOR(q); if (q - f > (T)0.5) f += 1; return f; } return SIGN((T)0, a / b); }
REMAINDERS(f32, f, fmodf, __builtin_floorf, __builtin_copysignf) REMAINDERS(f64, d, fmod, __builtin_floor, __builtin_copysign)
INLINE f32 f_logaddexp(f32 a, f32 b) { f32 y = f_max(a, b) + f_log1p(f_exp(-__builtin_fabsf(a - b))); return a == b ? a + 0.6931471806f : y; }
INLINE f64 d_logaddexp(f64 a, f64 b) { return a == b ? a + 0.69314718055994530942 : d_max(a, b) + log1p(exp(-__builtin_fabs(a - b))); }
INLINE f32 f_sign(f32 x) { f32 s = x > 0 ? 1.f : 0.f; s = x < 0 ? -1.f : s; return x != x ? x : s; }
INLINE f64 d_sign(f64 x) { f64 s = x > 0 ? 1. : 0.; s = x < 0 ? -1. : s; return x != x ? x : s; }
"""

INTEGER = r"""
#define INTEGERS(T, U, BITS) \
    INLINE T T##_floor_divide(T a, T b) { if (b == (T)-1 && (T)-1 < 0) return (T)-a; T q = a / b; return q - ((a % b) && ((a < 0) != (b < 0))); } \
    INLINE T T##_remainder(T a, T b) { if (b == (T)-1 && (T)-1 < 0) return 0; T m = a % b; return m && ((m < 0) != (b < 0)) ? m + b : m; } \
    INLINE T T##_fmod(T a, T b) { return b == (T)-1 && (T)-1 < 0 ? 0 : a % b; } \
    INLINE T T##_shl(T a, T b) { return (U)b < BITS ? (T)((U)a << b) : 0; } \
    INLINE T T##_shr(T a, T b) { return (U)b < BITS ? (T)(a >> b) : (T)(a < 0 ? -1 : 0); } \
    INLINE T T##_power(T a, T b) { T r = 1; while (b > 0) { if (b & 1) r *= a; a *= a; b >>= 1; } return r; }
INTEGERS(i8, u8, 8) INTEGERS(i16, u16, 16) INTEGERS(i32, u32, 32) INTEGERS(i64, u64, 64)
INTEGERS(u8, u8, 8) INTEGERS(u16, u16, 16) INTEGERS(u32, u32, 32)
"""

REDUCTIONS = r"""
#pragma omp declare reduction(nmax : f32 : omp_out = f_max(omp_out, omp_in)) initializer(omp_priv = -INF)
#pragma omp declare reduction(nmin : f32 : omp_out = f_min(omp_out, omp_in)) initializer(omp_priv = INF)
#pragma omp declare reduction(nmax : f64 : omp_out = d_max(omp_out, omp_in)) initializer(omp_priv = -INF)
#pragma omp declare reduction(nmin : f64 : omp_out = d_min(omp_out, omp_in)) initializer(omp_priv = INF)
"""

CALLS = r"""
typedef void (*body_t)(i64, i64, void *const *);
typedef void (*parallel_t)(body_t, i64, i64, i64, void *const *, i64);
typedef void (*sgemm32)(int, int, int, int, int, int, f32, const f32 *, int, const f32 *, int, f32, f32 *, int);
typedef void (*sgemm64)(int, int, int, i64, i64, i64, f32, const f32 *, i64, const f32 *, i64, f32, f32 *, i64);
typedef void (*dgemm32)(int, int, int, int, int, int, f64, const f64 *, int, const f64 *, int, f64, f64 *, int);
typedef void (*dgemm64)(int, int, int, i64, i64, i64, f64, const f64 *, i64, const f64 *, i64, f64, f64 *, i64);
static parallel_t pool; static void *sgemm, *dgemm; static int wide; static i64 threads = 1;
static int (*blas_count)(void); static void (*blas_use)(int); static i64 (*convolve)(const i64 *, void *, void *, void *, void *, i64);
static i64 (*paired)(const i64 *, const void *, const void *, const void *, void *, i64);
void setup(void *p, void *s, void *d, int w, void *count, void *use, void *c, void *q) { pool = p; sgemm = s; dgemm = d; wide = w; blas_count = count; blas_use = use; convolve = c; paired = q; }
/* Threads share products themselves: BLAS uses one for each piece, and is left as it was. */
static int begin_products(void) { int n = blas_count && blas_use && threads > 1 ? blas_count() : 0; if (n > 1) blas_use(1); return n; }
static void end_products(int n) { if (n > 1) blas_use(n); }
static void run(body_t f, i64 n, i64 grain, void *const *a) {
    if (pool && threads > 1 && grain && n >= 2 * grain) pool(f, 0, n, grain, a, threads); else f(0, n, a);
}
/* What an entry point does, one after the other: functions, their ranges, how many pointers they take. */
typedef struct { body_t f; i64 n, grain, count; } step_t;
#define GEMM(T, N) static void N##_gemm(int ta, int tb, i64 m, i64 n, i64 k, const T *a, i64 lda, const T *b, i64 ldb, T *c, i64 ldc) { \
    if (N##gemm && wide) { ((N##gemm64)N##gemm)(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a, lda, b, ldb, 0, c, ldc); return; } \
    if (N##gemm) { ((N##gemm32)N##gemm)(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a, lda, b, ldb, 0, c, ldc); return; } \
    for (i64 i = 0; i < m; i++) { T *row = c + i * ldc; for (i64 j = 0; j < n; j++) row[j] = 0; \
        for (i64 p = 0; p < k; p++) { T x = ta ? a[p * lda + i] : a[i * lda + p]; const T *y = tb ? b + p : b + p * ldb; i64 s = tb ? ldb : 1; \
            for (i64 j = 0; j < n; j++) row[j] += x * y[j * s]; } } }
GEMM(f32, s) GEMM(f64, d)
/* A range of blocks of rows (or, s[9], columns) of a batch of products: neighbouring blocks are one call. */
#define TASK(T, N) static void N##_task(i64 begin, i64 end, void *const *a) { const i64 *s = a[3]; i64 size = s[10], all = s[9] ? s[3] : s[2]; \
    i64 blocks = (all + size - 1) / size; \
    for (i64 t = begin; t < end;) { i64 r = t / blocks, x = 0, y = 0, z = 0, low = t % blocks; \
        i64 high = low + end - t < blocks ? low + end - t : blocks, first = low * size, n = (high * size < all ? high * size : all) - first; \
        for (i64 q = s[8] - 1; q >= 0; q--) { const i64 *e = s + 11 + 4 * q; i64 i = r % e[0]; r /= e[0]; x += i * e[1]; y += i * e[2]; z += i * e[3]; } \
        if (s[9]) { y += first * (s[1] ? s[6] : 1); z += first; } else { x += first * (s[0] ? 1 : s[5]); z += first * s[7]; } \
        N##_gemm((int)s[0], (int)s[1], s[9] ? s[2] : n, s[9] ? n : s[3], s[4], (const T *)a[0] + x, s[5], (const T *)a[1] + y, s[6], (T *)a[2] + z, s[7]); \
        t += high - low; } }
TASK(f32, s) TASK(f64, d)
/* A convolution: x, w, y, bias (or y: none), the flag, numbers. It shares its work among threads itself. */
static void convolve_task(i64 begin, i64 end, void *const *a) {
    if (!convolve || convolve(a[5], a[0], a[1], a[2], a[3] == a[2] ? (void *)0 : a[3], threads)) *(i32 *)a[4] = 1;
}
/* A product of bfloat16: a, b, bias (or the result: none), the result, the flag, numbers. It shares its work in the same way. */
static void paired_task(i64 begin, i64 end, void *const *a) {
    if (!paired || paired(a[5], a[0], a[1], a[2] == a[3] ? (void *)0 : a[2], a[3], threads)) *(i32 *)a[4] = 1;
}
/* Objects as CPython and NumPy lay them out; checked once against what they say themselves. */
#define ITEM(t, i) (*(char **)((char *)(t) + 24 + 8 * (i)))
#define DATA(o) (*(void **)((o) + 16))
#define RANK(o) (*(int *)((o) + 24))
#define SHAPE(o) (*(i64 **)((o) + 32))
#define STRIDE(o) (*(i64 **)((o) + 40))
#define WRITABLE(o) (*(int *)((o) + 64) & 0x400)
static i64 misfit(char *o, const i64 *want, i64 itemsize) {
    i64 r = want[0]; const i64 *n = want + 1, *s = n + r;
    if ((u64)DATA(o) % itemsize) return 2;
    if (RANK(o) != r) return 1;
    for (i64 d = 0; d < r; d++) if (SHAPE(o)[d] != n[d]) return 1;
    for (i64 d = 0; d < r; d++) if (n[d] == 0) return 0;
    for (i64 d = 0; d < r; d++) if (n[d] != 1 && STRIDE(o)[d] != s[d]) return 2;
    return 0;
}
/* The memory of all arrays of a tuple; how the first that is not as expected differs, and its number times four. */
static i64 take(void *t, const i64 *want, i64 given, i64 all, char **base) {
    for (i64 k = 0; k < given; k++, want += 2 * want[1] + 2) {
        i64 wrong = misfit(ITEM(t, k), want + 1, want[0] < 0 ? -want[0] : want[0]);
        if (!wrong && want[0] < 0 && !WRITABLE(ITEM(t, k))) wrong = 3;
        if (wrong) return 4 * k + 4 + wrong;
    }
    for (i64 k = 0; k < all; k++) base[k] = DATA(ITEM(t, k));
    return 0;
}
/* The pointers of one step, each said by a base and a distance in bytes; where those of the next begin. */
static const i64 *pointers(const i64 *at, i64 count, char *const *base, void **a) {
    for (i64 k = 0; k < count; k++, at += 2) a[k] = base[at[0]] + at[1];
    return at;
}
"""

PRELUDE = TYPES + BITS + POLYNOMIALS + FUSED + PAIRS + INTEGER + REDUCTIONS + CALLS
