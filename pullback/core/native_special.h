/* Special functions of elements by hand, where rules of operators give none: read by _elements.c like native_elements.h, which is printed.
 *
 * In single precision all is computed in double precision and rounded once; what a function does at poles, infinities and NaN is what the
 * operator's rule does. Loops over the few elements that a formula does not reach run after the others, by the C library.
 */
#if defined(HELPERS)
#include "native_fits.h"
enum { PART = 32 }; /* elements that are looked at together: loops get multiples of them */

INLINE u32 half_bits(f32 x) { union { u32 i; f32 f; } u; u.f = x; return u.i; }
INLINE f32 half_number(u32 x) { union { u32 i; f32 f; } u; u.i = x; return u.f; }

INLINE f64 s_exp(f64 x) {
    f64 c = x > 700. ? 700. : x; c = c < -700. ? -700. : c;
    f64 t = c * 1.4426950408889634 + 6755399441055744.; /* the integer is in the low bits */
    f64 n = t - 6755399441055744., r = c - n * 0.693147180369123816490; r = r - n * 1.90821492927058770002e-10;
    f64 q = 2.7557319223985893e-06; q = q * r + 2.4801587301587302e-05; q = q * r + 0.00019841269841269841; q = q * r + 0.0013888888888888889;
    q = q * r + 0.0083333333333333332; q = q * r + 0.041666666666666664; q = q * r + 0.16666666666666666; q = q * r + 0.5; q = q * r + 1.; q = q * r + 1.;
    f64 y = q * bits_f64((f64_bits(t) << 52) + 0x3ff0000000000000ull);
    y = x < -700. ? 0. : y;
    y = x > 700. ? (f64)INF : y;
    return x != x ? x : y;
}
INLINE f64 s_log(f64 x) { /* of what a float may be, none of them subnormal as a double */
    u64 b = f64_bits(x) - 0x3fe6a09e667f3bcdull;
    f64 n = bits_f64(((b + (1023ull << 52)) >> 52) | 0x4330000000000000ull) - 4503599627371519.;
    f64 m = bits_f64((b & 0xfffffffffffffull) + 0x3fe6a09e667f3bcdull), s = (m - 1.) / (m + 1.), z = s * s;
    f64 q = 0.15384615384615385; q = q * z + 0.18181818181818182; q = q * z + 0.22222222222222222; q = q * z + 0.2857142857142857; q = q * z + 0.4;
    q = q * z + 0.66666666666666666; q = q * z + 2.;
    f64 y = q * s + n * 0.69314718055994529;
    y = x == (f64)INF ? x : y;
    y = x == 0. ? -(f64)INF : y;
    y = x < 0. ? (f64)NAN : y;
    return x != x ? x : y;
}
/* sine and cosine of what is left of x after n quarter turns; below 1e5 */
INLINE f64 s_quarter(f64 x) { return (x * 0.63661977236758138 + 6755399441055744.) - 6755399441055744.; }
INLINE f64 s_rest(f64 x, f64 n) { f64 r = x - n * 1.57079632673412561417; return r - n * 6.07710050650619224932e-11; }
INLINE f64 s_sine(f64 r) {
    f64 z = r * r, q = 1.6059043836821613e-10; q = q * z - 2.505210838544172e-08; q = q * z + 2.7557319223985893e-06;
    q = q * z - 0.00019841269841269841; q = q * z + 0.0083333333333333332; q = q * z - 0.16666666666666666;
    return r + r * z * q;
}
INLINE f64 s_cosine(f64 r) {
    f64 z = r * r, q = 2.08767569878681e-09; q = q * z - 2.7557319223985888e-07; q = q * z + 2.4801587301587302e-05;
    q = q * z - 0.0013888888888888889; q = q * z + 0.041666666666666664; q = q * z - 0.5;
    return 1. + z * q;
}
INLINE f64 s_sin(f64 x) {
    f64 n = s_quarter(x), r = s_rest(x, n), h = n * 0.5, odd = n - 2. * __builtin_floor(h), turn = __builtin_floor(h) - 2. * __builtin_floor(h * 0.5);
    f64 y = odd != 0. ? s_cosine(r) : s_sine(r);
    return turn != 0. ? -y : y;
}

/* The derivative of digamma: six terms of its sum, and a series for the others. What is left of one half is reflected, by the sine of an angle
 * in single precision: near the poles that is what the array library's says too. */
INLINE f64 s_trigamma(f64 x) { /* of a float above -1e4 */
    const int is_left = x < 0.5;
    f64 a = is_left ? 1. - x : x, sum = 0.;
    for (int k = 0; k < 6; k++) sum += 1. / ((a + k) * (a + k));
    f64 z = 1. / (a + 6.), w = z * z;
    f64 q = 0.075757575757575757 - w * 0.25311355311355311; q = -0.033333333333333333 + w * q; q = 0.023809523809523808 + w * q;
    q = -0.033333333333333333 + w * q; q = 0.16666666666666666 + w * q;
    f64 y = sum + z + 0.5 * w + z * w * q;
    f64 t = 3.1415926535897931 / s_sin((f64)((f32)x * 3.14159274f)), far = t * t - y;
    y = is_left ? far : y;
    return x != x ? x : y;
}

/* ---- the family of the error function */
INLINE f64 s_erfc(f64 x) {
    f64 z = __builtin_fabs(x), near = p_erfcx((z - 3.) / (z + 3.)) / (1. + z) * s_exp(-x * x);
    near = z > 30. ? 0. : near;
    near = x < 0. ? 2. - near : near;
    return x != x ? x : near;
}
INLINE f64 s_erfcx(f64 x) {
    f64 z = __builtin_fabs(x), near = p_erfcx((z - 3.) / (z + 3.)) / (1. + z);
    near = z == (f64)INF ? 0. : near;
    near = x < 0. ? 2. * s_exp(x * x) - near : near;
    return x != x ? x : near;
}
/* On the left by the scaled function, whose logarithm is large; on the right of one less what is missing to it. */
INLINE f64 s_log_ndtr(f64 x) {
    f64 v = x * 0.70710678118654752, z = __builtin_fabs(v), scaled = 0.5 * p_erfcx((z - 3.) / (z + 3.)) / (1. + z), square = v * v;
    f64 missing = scaled * s_exp(-square), u = 1. - missing, lost = 1. - u;
    f64 right = lost == 0. ? -missing : s_log(u) * (missing / lost), left = s_log(scaled) - square;
    f64 y = x < 0. ? left : right;
    y = x == -(f64)INF ? x : y;
    y = x == (f64)INF ? -0. : y;
    return x != x ? x : y;
}
INLINE f64 s_asin(f64 x) {
    f64 a = __builtin_fabs(x), z = a > 0.5 ? (1. - a) * 0.5 : x * x, s = a > 0.5 ? __builtin_sqrt(z) : a;
    f64 y = s * p_asin(z * 8. - 1.);
    y = a > 0.5 ? 1.5707963267948966 - 2. * y : y;
    y = a > 1. ? (f64)NAN : y;
    return __builtin_copysign(y, x);
}

/* ---- Bessel functions */
INLINE f64 s_lgamma(f64 x) { /* above zero */
    f64 log = s_log(x), t = x < 0.5 ? x + 1. : x > 2.5 ? 2.5 : x, w = 1. / (x > 2.5 ? x : 2.5);
    f64 near = (t - 1.) * (t - 2.) * p_lgamma_near(t - 1.5) + (x < 0.5 ? -log : 0.);
    return x > 2.5 ? (x - 0.5) * log - x + 0.91893853320467274 + w * p_lgamma_far(w * w * 12.5 - 1.) : near;
}
INLINE f64 s_i0e(f64 x) {
    f64 a = __builtin_fabs(x), far = 8. / a;
    f64 y = a <= 8. ? p_i0e_near(a * 0.25 - 1.) : p_i0e_far(far * 2. - 1.) / __builtin_sqrt(a);
    return x != x ? x : y;
}
INLINE f64 s_i1e(f64 x) {
    f64 a = __builtin_fabs(x), far = 8. / a;
    f64 y = a <= 8. ? a * p_i1e_near(a * 0.25 - 1.) : p_i1e_far(far * 2. - 1.) / __builtin_sqrt(a);
    y = x < 0. ? -y : y;
    return x != x ? x : y;
}
INLINE f64 s_j0_near(f64 z) { return (z - 5.783185962946784521) * (z - 30.471262343662086399) * p_j0(z * 0.08 - 1.); }
INLINE f64 s_j1_near(f64 x) { f64 z = x * x; return x * (z - 14.681970642123893257) * (z - 49.218456321694603670) * p_j1(z * 0.08 - 1.); }
/* for x above 5 and below 1e5: `second` of the second kind */
INLINE f64 s_bessel_far(f64 x, i32 order, i32 second) {
    f64 n = s_quarter(x), r = s_rest(x, n), quarter = n - 4. * __builtin_floor(n * 0.25);
    f64 s0 = s_sine(r), c0 = s_cosine(r);
    f64 s = quarter == 0. ? s0 : quarter == 1. ? c0 : quarter == 2. ? -s0 : -c0;
    f64 c = quarter == 0. ? c0 : quarter == 1. ? -s0 : quarter == 2. ? -c0 : s0;
    f64 sine = order ? -(s + c) : s - c, cosine = order ? s - c : s + c; /* of x less a quarter (three) of pi, times the root of two */
    f64 z = 25. / (x * x), u = z * 2. - 1.;
    f64 p = order ? p_bessel_p1(u) : p_bessel_p0(u), q = (order ? p_bessel_q1(u) : p_bessel_q0(u)) * 5. / x;
    f64 y = second ? p * sine + q * cosine : p * cosine - q * sine;
    return y * 0.56418958354775629 / __builtin_sqrt(x);
}
INLINE f64 s_bessel_j0(f64 x) {
    f64 a = __builtin_fabs(x), y = a <= 5. ? s_j0_near(a * a) : s_bessel_far(a, 0, 0);
    return x != x ? x : y;
}
INLINE f64 s_bessel_j1(f64 x) {
    f64 a = __builtin_fabs(x), y = a <= 5. ? s_j1_near(a) : s_bessel_far(a, 1, 0);
    y = y * __builtin_copysign(1., x);
    return x != x ? x : y;
}
INLINE f64 s_bessel_y0(f64 x) {
    f64 y = x <= 5. ? p_y0(x * x * 0.08 - 1.) + 0.63661977236758138 * s_log(x) * s_j0_near(x * x) : s_bessel_far(x, 0, 1);
    y = x == 0. ? -(f64)INF : y;
    y = x < 0. ? (f64)NAN : y;
    return x != x ? x : y;
}
INLINE f64 s_bessel_y1(f64 x) {
    f64 y = x <= 5. ? x * p_y1(x * x * 0.08 - 1.) + 0.63661977236758138 * (s_log(x) * s_j1_near(x) - 1. / x) : s_bessel_far(x, 1, 1);
    y = x == 0. ? -(f64)INF : y;
    y = x < 0. ? (f64)NAN : y;
    return x != x ? x : y;
}

/* above -2000; in between by a polynomial that is zero where the function is */
INLINE f64 s_airy(f64 x) {
    f64 z = __builtin_fabs(x), root = __builtin_sqrt(z), angle = z * root * 0.66666666666666667, fourth = __builtin_sqrt(root);
    f64 n = s_quarter(angle), r = s_rest(angle, n), quarter = n - 4. * __builtin_floor(n * 0.25), s0 = s_sine(r), c0 = s_cosine(r);
    f64 s = quarter == 0. ? s0 : quarter == 1. ? c0 : quarter == 2. ? -s0 : -c0;
    f64 c = quarter == 0. ? c0 : quarter == 1. ? -s0 : quarter == 2. ? -c0 : s0;
    f64 w = 1. / angle, u = w * w * 56.888888888888886 - 1.;
    f64 below = ((s + c) * p_airy_sine(u) - (c - s) * p_airy_cosine(u) * w) * 0.39894228040143268 / fourth; /* one by the root of two pi */
    f64 above = s_exp(-angle) * p_airy_above(w * 3.771236166328254 - 1.) * 0.28209479177387814 / fourth;
    f64 near = (x + 2.3381074104597670) * p_airy_near((x + 1.) * 0.33333333333333333);
    f64 y = x > 2. ? above : x < -4. ? below : near;
    y = x > 103.892 ? 0. : y;
    return __builtin_fabs(x) == (f64)INF ? (f64)NAN : x != x ? x : y;
}
/* Far below, where only the first terms are left; none where the angle is lost. */
static f64 s_airy_far(f64 x) {
    f64 z = -x, angle = z * sqrt(z) * 0.66666666666666667 + 0.78539816339744831;
    return z < 1048576. ? (sin(angle) - cos(angle) * (5. / 72.) / angle) * 0.56418958354775629 / sqrt(sqrt(z)) : (f64)NAN;
}

/* ---- incomplete gamma functions, one element at a time: the lower one, or the upper */
static f64 s_gamma_near_one(f64 a, f64 x, int upper) { /* a above 1e6: what is left of the uniform expansion in single precision */
    f64 d = x / a - 1.;
    if (__builtin_fabs(d) > 0.1) return (f64)(upper == (d < 0));
    f64 eta = d == 0. ? 0. : __builtin_copysign(__builtin_sqrt(2. * (d - log1p(d))), d);
    f64 rest = exp(-0.5 * a * eta * eta) / __builtin_sqrt(6.283185307179586 * a) * (-1. / 3. + eta / 12. - eta * eta * 2. / 135.);
    return upper ? 0.5 * erfc(eta * __builtin_sqrt(0.5 * a)) + rest : 0.5 * erfc(-eta * __builtin_sqrt(0.5 * a)) - rest;
}
static f64 s_gamma_little(f64 a, f64 x) { /* the upper one, which one less the lower one would lose */
    int sign;
    f64 power = a * log(x) - (a < 1e-5 ? a * (-0.57721566490153286 + 0.82246703342411322 * a) : lgamma_r(1. + a, &sign));
    f64 term = 1., sum = 0.;
    for (int k = 1; k < 40; k++) sum += (term *= -x / k) / (a + k);
    return -expm1(power) - exp(power) * a * sum;
}
static f64 s_gamma_part(f64 a, f64 x, int upper) {
    if (a != a || x != x || a < 0 || x < 0) return (f64)NAN;
    if (a == 0) return x > 0 ? (f64)!upper : (f64)NAN;
    if (x == 0) return (f64)upper;
    if (isinf(a)) return isinf(x) ? (f64)NAN : (f64)upper;
    if (isinf(x)) return (f64)!upper;
    if (a > 1e6) return s_gamma_near_one(a, x, upper);
    if (upper && a < 1. && x < 1.1) return s_gamma_little(a, x);
    int sign;
    f64 front = exp(a * log(x) - x - lgamma_r(a, &sign));
    if (x < a + 1. || x < 1.) { /* the series of the lower one */
        f64 term = 1. / a, sum = term;
        for (f64 k = a + 1.; term > sum * 1e-16; k += 1.) sum += term *= x / k;
        return upper ? 1. - front * sum : front * sum;
    }
    f64 b = x + 1. - a, c = 1e300, d = 1. / b, h = d; /* the continued fraction of the upper one */
    for (int i = 1; i < 100000; i++) {
        f64 an = -i * (i - a);
        b += 2.;
        d = 1. / (an * d + b);
        c = b + an / c;
        f64 step = d * c;
        h *= step;
        if (__builtin_fabs(step - 1.) < 1e-12) break;
    }
    f64 result = front * h;
    return upper ? result : 1. - result;
}

/* ---- orthogonal polynomials, in the precision of the elements */
enum { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE };
#define REAL f32
#define S(name) name##f
#define P(f) f##_f
#include "native_polynomials.h"
#undef REAL
#undef S
#undef P
#define REAL f64
#define S(name) name
#define P(f) f##_d
#include "native_polynomials.h"
#undef REAL
#undef S
#undef P

#elif defined(ROW)
#define ONE(name, key) ROW(name##_f, key, 1, 0, 1, "ff")
#define TWO(name, key) ROW(name##_f, key, 2, 0, 1, "fff")
#define TWO_KINDS(name, key) ROW(name##_f, key, 2, 0, 1, "fff") ROW(name##_d, key, 2, 0, 1, "ddd")
ONE(h_exp, "rows:exp")
ONE(h_sqrt, "rows:sqrt")
ONE(h_floor, "rows:floor")
ONE(h_ceil, "rows:ceil")
ONE(h_erfc, "erfc.default")
ONE(h_ndtr, "special_ndtr.default")
ONE(h_erfinv, "erfinv.default")
ONE(h_erfcx, "special_erfcx.default")
ONE(h_log_ndtr, "special_log_ndtr.default")
ONE(h_asin, "asin.default")
ONE(h_acos, "acos.default")
ONE(h_log10, "log10.default")
ONE(h_tan, "tan.default")
ONE(h_sinc, "sinc.default")
ONE(h_spherical_j0, "special_spherical_bessel_j0.default")
ONE(h_entr, "special_entr.default")
ONE(h_i0, "i0.default")
ONE(h_i0, "special_modified_bessel_i0.default")
ONE(h_i0e, "special_i0e.default")
ONE(h_i1, "special_i1.default")
ONE(h_i1, "special_modified_bessel_i1.default")
ONE(h_i1e, "special_i1e.default")
ONE(h_bessel_j0, "special_bessel_j0.default")
ONE(h_bessel_j1, "special_bessel_j1.default")
ONE(h_bessel_y0, "special_bessel_y0.default")
ONE(h_bessel_y1, "special_bessel_y1.default")
ONE(h_lgamma, "lgamma.default")
ONE(h_airy, "special_airy_ai.default")
TWO(h_igamma, "igamma.default")
TWO(h_igammac, "igammac.default")
TWO(h_hypot, "hypot.default")
TWO(h_logaddexp2, "logaddexp2.default")
TWO(h_fmod, "fmod.Tensor")
TWO(h_remainder, "remainder.Tensor")
TWO(h_floor_divide, "floor_divide.default")
TWO(h_floor_divide, "div.Tensor_mode:floor")
TWO_KINDS(h_add, "rows:add")
TWO_KINDS(h_subtract, "rows:subtract")
TWO_KINDS(h_multiply, "rows:multiply")
TWO_KINDS(h_divide, "rows:divide")
TWO(h_glu, "rows:glu")
TWO(h_prelu, "_prelu_kernel.default")
TWO_KINDS(h_nextafter, "nextafter.default")
ONE(h_trigamma, "rows:trigamma")
ROW(h_fill_f, "rows:fill", 0, 1, 1, "ff")
ROW(h_fill_d, "rows:fill", 0, 1, 1, "dd")
ROW(h_cube_f, "rows:cube", 1, 0, 1, "ff")
ROW(h_cube_d, "rows:cube", 1, 0, 1, "dd")
TWO_KINDS(h_chebyshev_t, "special_chebyshev_polynomial_t.default")
TWO_KINDS(h_chebyshev_u, "special_chebyshev_polynomial_u.default")
TWO_KINDS(h_chebyshev_v, "special_chebyshev_polynomial_v.default")
TWO_KINDS(h_chebyshev_w, "special_chebyshev_polynomial_w.default")
TWO_KINDS(h_hermite_h, "special_hermite_polynomial_h.default")
TWO_KINDS(h_hermite_he, "special_hermite_polynomial_he.default")
TWO_KINDS(h_laguerre, "special_laguerre_polynomial_l.default")
TWO_KINDS(h_legendre, "special_legendre_polynomial_p.default")
ROW(h_elu_f, "elu.default", 1, 3, 1, "fffff")
#undef ONE
#undef TWO
#undef TWO_KINDS

#else
/* bfloat16 to single precision, and back to the nearest, of two equally near ones the even */
static void V(widen)(i64 n, char *const *a) {
    const u16 *x = (const u16 *)a[0];
    u32 *y = (u32 *)a[1];
    SIMD for (i64 i = 0; i < n; i++) y[i] = (u32)x[i] << 16;
}
static void V(narrow)(i64 n, char *const *a) {
    const u32 *x = (const u32 *)a[0];
    u16 *y = (u16 *)a[1];
    SIMD for (i64 i = 0; i < n; i++) {
        const u32 b = x[i], nearest = (b + 0x7fff + ((b >> 16) & 1)) >> 16, odd = (b >> 16) | 0x40;
        y[i] = (u16)((b & 0x7fffffff) > 0x7f800000 ? odd : nearest);
    }
}
/* float16 the same way: by the processor where the set of instructions has it, else by single precision, whose numbers are 2 to the 112th too small. */
static void V(widen_half)(i64 n, char *const *a) {
    const u16 *x = (const u16 *)a[0];
    f32 *y = (f32 *)a[1];
    i64 i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16) _mm512_storeu_ps(y + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(x + i))));
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(y + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(x + i))));
#endif
    for (; i < n; i++) {
        const u32 size = x[i] & 0x7fff, sign = (u32)(x[i] & 0x8000) << 16;
        const u32 finite = half_bits(half_number(size << 13) * 0x1p112f), odd = 0x7f800000 | (size << 13) | (size > 0x7c00 ? 0x400000 : 0);
        y[i] = half_number(sign | (size < 0x7c00 ? finite : odd));
    }
}
static void V(narrow_half)(i64 n, char *const *a) {
    const f32 *x = (const f32 *)a[0];
    u16 *y = (u16 *)a[1];
    i64 i = 0;
#ifdef __AVX512F__
    for (; i + 16 <= n; i += 16) _mm256_storeu_si256((__m256i *)(y + i), _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
#ifdef __F16C__
    for (; i + 8 <= n; i += 8) _mm_storeu_si128((__m128i *)(y + i), _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < n; i++) {
        const u32 b = half_bits(x[i]) & 0x7fffffff, sign = (half_bits(x[i]) >> 16) & 0x8000;
        const u32 normal = (b - 0x38000000 + 0xfff + ((b >> 13) & 1)) >> 13, little = half_bits(half_number(b) + 0.5f) - 0x3f000000;
        const u32 odd = b > 0x7f800000 ? 0x7e00 | ((b >> 13) & 0x3ff) : 0x7c00;
        y[i] = (u16)(sign | (b >= 0x477ff000 ? odd : b < 0x38800000 ? little : normal));
    }
}
/* One number to all of an array. */
#define FILL(suffix, T)                                                                              \
    static void V(h_fill_##suffix)(i64 n, char *const *a) {                                          \
        const T v = *(const T *)a[0];                                                                \
        T *y = (T *)a[1];                                                                            \
        SIMD for (i64 i = 0; i < n; i++) y[i] = v;                                                   \
    }
FILL(f, f32)
FILL(d, f64)
#undef FILL
static void V(h_exp_f)(i64 n, char *const *a) {
    const f32 *x = (const f32 *)a[0];
    f32 *y = (f32 *)a[1];
    SIMD for (i64 i = 0; i < n; i++) y[i] = f_exp(x[i]);
}

#define ONE(name, value)                                      \
    static void V(name##_f)(i64 n, char *const *a) {          \
        const f32 *x = (const f32 *)a[0];                     \
        f32 *y = (f32 *)a[1];                                 \
        SIMD for (i64 i = 0; i < n; i++) {                    \
            const f64 v = (f64)x[i];                          \
            y[i] = (f32)(value);                              \
        }                                                     \
    }
ONE(h_trigamma, s_trigamma(v))
ONE(h_erfc, s_erfc(v))
ONE(h_ndtr, 0.5 * s_erfc(v * -0.70710678118654752))
ONE(h_erfcx, s_erfcx(v))
ONE(h_log_ndtr, s_log_ndtr(v))
ONE(h_asin, s_asin(v))
ONE(h_acos, 1.5707963267948966 - s_asin(v))
ONE(h_log10, s_log(v) * 0.43429448190325182)
ONE(h_entr, v > 0. ? -v * s_log(v) : v == 0. ? 0. : v != v ? v : -(f64)INF)
ONE(h_i0e, s_i0e(v))
ONE(h_i0, s_i0e(v) * s_exp(__builtin_fabs(v)))
ONE(h_i1e, s_i1e(v))
ONE(h_i1, s_i1e(v) * s_exp(__builtin_fabs(v)))

/* Elements for which `is_far` again, by the C library; of those that take angles, all past 1e5. */
#define FAR(name, value, large) APART(name, value, large, __builtin_fabsf(x[i]) > 1e5f)
#define APART(name, value, large, is_far)                     \
    ONE(name##_near, value)                                   \
    static void V(name##_f)(i64 n, char *const *a) {          \
        f32 x[BUFFER];                                        \
        for (i64 first = 0; first < n; first += BUFFER) {     \
            i64 count = n - first < BUFFER ? n - first : BUFFER; \
            f32 *y = (f32 *)a[1] + first;                     \
            i32 far = 0, sign;                                \
            (void)sign;                                       \
            memcpy(x, (const f32 *)a[0] + first, (size_t)count * sizeof *x); \
            char *at[2] = {(char *)x, (char *)y};             \
            V(name##_near_f)(count, at);                      \
            for (i64 i = 0; i < count; i++) far |= is_far;    \
            for (i64 i = 0; far && i < count; i++)            \
                if (is_far) {                                 \
                    f64 v = (f64)x[i];                        \
                    y[i] = (f32)(large);                      \
                }                                             \
        }                                                     \
    }
FAR(h_tan, ({ f64 k = s_quarter(v), r = s_rest(v, k), s = s_sine(r), c = s_cosine(r); f64 odd = k - 2. * __builtin_floor(k * 0.5); \
              f64 y = odd != 0. ? -c / s : s / c; v == 0. ? v : y; }), tan(v))
FAR(h_sinc, ({ f64 s = (f64)((f32)v * 3.14159265358979f), q = s_sin(s) / s; v == 0. ? 1. : q; }), \
    sin((f64)((f32)v * 3.14159265358979f)) / (f64)((f32)v * 3.14159265358979f))
FAR(h_spherical_j0, ({ f64 q = s_sin(v) / v; v == 0. ? 1. : q; }), isinf(v) ? 0. : sin(v) / v)
FAR(h_bessel_j0, s_bessel_j0(v), isinf(v) ? (f64)NAN : j0(v))
FAR(h_bessel_j1, s_bessel_j1(v), isinf(v) ? (f64)NAN : j1(v))
FAR(h_bessel_y0, s_bessel_y0(v), v < 0 || isinf(v) ? (f64)NAN : y0(v))
FAR(h_bessel_y1, s_bessel_y1(v), v < 0 || isinf(v) ? (f64)NAN : y1(v))
APART(h_lgamma, s_lgamma(v), lgamma_r(v, &sign), !(x[i] > 0.f && x[i] < 1e30f))
APART(h_airy, s_airy(v), s_airy_far(v), x[i] < -2000.f)
#undef APART
#undef FAR
#undef ONE

/* By the logarithm of 1 - x^2, in parts of vectors: few of their elements are so near 1 that the other polynomial is asked. */
static void V(h_erfinv_f)(i64 n, char *const *a) {
    const f32 *x = (const f32 *)a[0];
    f32 *y = (f32 *)a[1];
    f64 w[PART];
    for (; n > 0; n -= PART, x += PART, y += PART) {
        i64 far = 0;
        SIMD for (i64 i = 0; i < PART; i++) {
            const f64 v = (f64)x[i];
            w[i] = -s_log((1. - v) * (1. + v));
            far += !(w[i] < 5.);
        }
        if (far == 0) {
            SIMD for (i64 i = 0; i < PART; i++) y[i] = (f32)((f64)x[i] * p_erfinv_near((w[i] - 2.5) * 0.4));
            continue;
        }
        SIMD for (i64 i = 0; i < PART; i++) {
            const f64 v = (f64)x[i], s = __builtin_sqrt(w[i] < 5. ? 5. : w[i]);
            const f64 near = p_erfinv_near((w[i] - 2.5) * 0.4), distant = p_erfinv_far((s - 3.2680339887498948) * 0.96902416271308978);
            f64 r = v * (w[i] < 5. ? near : distant);
            r = __builtin_fabs(v) == 1. ? v * (f64)INF : r;
            y[i] = (f32)(__builtin_fabs(v) > 1. ? (f64)NAN : r);
        }
    }
}

static void V(h_elu_f)(i64 n, char *const *a) {
    const f32 *x = (const f32 *)a[0], alpha = *(const f32 *)a[1], scale = *(const f32 *)a[2], inner = *(const f32 *)a[3], slope = alpha * scale;
    f32 *y = (f32 *)a[4];
    SIMD for (i64 i = 0; i < n; i++) {
        const f32 v = x[i], below = f_expm1((v > 0.f ? 0.f : v) * inner) * slope;
        y[i] = v < 0.f ? below : v * scale;
    }
}

#define TWO(name, kind, letter, value)                        \
    static void V(name##_##letter)(i64 n, char *const *a) {   \
        const kind *x = (const kind *)a[0], *z = (const kind *)a[1]; \
        kind *y = (kind *)a[2];                               \
        SIMD for (i64 i = 0; i < n; i++) {                    \
            const kind v = x[i], w = z[i];                    \
            y[i] = (kind)(value);                             \
        }                                                     \
    }
#define CUBE(name, kind)                                                 \
    static void V(name)(i64 n, char *const *a) {                         \
        const kind *x = (const kind *)a[0];                              \
        kind *y = (kind *)a[1];                                          \
        SIMD for (i64 i = 0; i < n; i++) y[i] = x[i] * x[i] * x[i];      \
    }
CUBE(h_cube_f, f32)
CUBE(h_cube_d, f64)

/* What the array library rounds as these do, in narrower vectors: for half precision. */
#define ROUNDED_ONCE(name, function)                                                            \
    static void V(name##_f)(i64 n, char *const *a) {                                            \
        const f32 *x = (const f32 *)a[0];                                                       \
        f32 *y = (f32 *)a[1];                                                                   \
        SIMD for (i64 i = 0; i < n; i++) y[i] = function(x[i]);                                 \
    }
ROUNDED_ONCE(h_sqrt, __builtin_sqrtf)
ROUNDED_ONCE(h_floor, __builtin_floorf)
ROUNDED_ONCE(h_ceil, __builtin_ceilf)
#undef ROUNDED_ONCE
#undef CUBE
TWO(h_igamma, f32, f, s_gamma_part(v, w, 0))
TWO(h_igammac, f32, f, s_gamma_part(v, w, 1))
TWO(h_hypot, f32, f, ({ f64 p = v, q = w, r = __builtin_sqrt(p * p + q * q); (isinf(v) || isinf(w)) ? (f64)INF : r; }))
/* log2(2^v + 2^w): the power of what they differ by, then the logarithm of one more than it, halved where it is nearer to two. */
#ifdef __FMA__
#define MADD(a, b, c) __builtin_fma(a, b, c)
#else
#define MADD(a, b, c) ((a) * (b) + (c))
#endif
INLINE f64 V(s_logaddexp2)(f64 v, f64 w) {
    f64 top = v > w ? v : w, low = v > w ? w : v, d = low - top, c = d < -1000. ? -1000. : d;
    f64 t = c + 6755399441055744., f = c - (t - 6755399441055744.); /* the integer is in the low bits */
    f64 e = 7.054911620801121e-09; e = MADD(e, f, 1.0178086009239696e-07); e = MADD(e, f, 1.3215486790144305e-06);
    e = MADD(e, f, 1.5252733804059838e-05); e = MADD(e, f, 0.00015403530393381606); e = MADD(e, f, 0.0013333558146428441);
    e = MADD(e, f, 0.009618129107628477); e = MADD(e, f, 0.055504108664821576); e = MADD(e, f, 0.2402265069591007);
    e = MADD(e, f, 0.6931471805599453); e = MADD(e, f, 1.0);
    e = e * bits_f64((f64_bits(t) << 52) + 0x3ff0000000000000ull);
    const int is_large = e > 0.41421356237309503;
    f64 s = (is_large ? e - 1. : e) / (is_large ? e + 3. : e + 2.), z = s * s;
    f64 q = 0.2219530832136867; q = MADD(q, z, 0.2623081892525388); q = MADD(q, z, 0.3205988979753252);
    q = MADD(q, z, 0.4121985831111324); q = MADD(q, z, 0.5770780163555854); q = MADD(q, z, 0.9617966939259756);
    q = MADD(q, z, 2.8853900817779268);
    f64 r = top + MADD(s, q, is_large ? 1. : 0.);
    r = v == w ? top + 1. : r;
    return v != v || w != w ? v + w : r;
}
#undef MADD
TWO(h_logaddexp2, f32, f, V(s_logaddexp2)((f64)v, (f64)w))
/* The neighbour towards another number: one more or one less in the bits of the size; from zero the smallest number. */
#define NEIGHBOUR(T, I, suffix)                                                                  \
    INLINE T V(neighbour_##suffix)(T v, T w) {                                                   \
        union { T number; I bits; } x = {v}, low = {.bits = 1}, r;                               \
        r.bits = x.bits + (((w > v) == (v > 0)) ? 1 : -1);                                       \
        r.number = v == 0 ? (w > 0 ? low.number : -low.number) : r.number;                       \
        r.number = v == w ? w : r.number;                                                        \
        return (v != v) | (w != w) ? v + w : r.number;                                           \
    }
NEIGHBOUR(f32, i32, f)
NEIGHBOUR(f64, i64, d)
#undef NEIGHBOUR
TWO(h_add, f32, f, v + w)
TWO(h_add, f64, d, v + w)
TWO(h_subtract, f32, f, v - w)
TWO(h_subtract, f64, d, v - w)
TWO(h_multiply, f32, f, v * w)
TWO(h_multiply, f64, d, v * w)
TWO(h_divide, f32, f, v / w)
TWO(h_divide, f64, d, v / w)
TWO(h_glu, f32, f, v * f_sigmoid(w))
TWO(h_prelu, f32, f, v > 0 ? v : w * v)
TWO(h_nextafter, f32, f, V(neighbour_f)(v, w))
TWO(h_nextafter, f64, d, V(neighbour_d)(v, w))

/* Polynomials whose degrees are all at most `few`, in parts of vectors: no loop of an element then ends where it is not foreseen. `step` is
 * the next one, of `v`, the `now` and `before` of degrees m and m - 1. */
#define POLYNOMIAL(name, T, letter, first, kind, limit, few, step)                                \
    static void V(name##_##letter)(i64 n, char *const *a) {                                       \
        const T *x = (const T *)a[0], *z = (const T *)a[1];                                       \
        T *y = (T *)a[2], befores[PART], nows[PART], out[PART];                                   \
        for (; n > 0; n -= PART, x += PART, z += PART, y += PART) {                               \
            T top = 0;                                                                            \
            i32 is_few = 1;                                                                       \
            SIMD for (i64 i = 0; i < PART; i++) {                                                 \
                const T v = x[i], twice = v + v;                                                  \
                (void)twice;                                                                      \
                top = z[i] > top ? z[i] : top;                                                    \
                is_few &= (z[i] > -1) & (z[i] <= few);                                            \
                befores[i] = 1, nows[i] = first, out[i] = z[i] < 1 ? 1 : nows[i];                 \
            }                                                                                     \
            for (i64 k = 2; is_few && (T)k <= top; k++)                                           \
                SIMD for (i64 i = 0; i < PART; i++) {                                             \
                    const T m = (T)(k - 1), v = x[i], now = nows[i], before = befores[i], next = step; \
                    (void)m;                                                                      \
                    befores[i] = now, nows[i] = next, out[i] = z[i] < (T)k ? out[i] : next;       \
                }                                                                                 \
            for (i64 i = 0; !is_few && i < PART; i++) out[i] = polynomial_##letter(x[i], z[i], kind, limit); \
            memcpy(y, out, sizeof out);                                                           \
        }                                                                                         \
    }
#define CHEBYSHEV(name, first, kind, limit)                                              \
    POLYNOMIAL(name, f32, f, first, kind, limit, limit, (v + v) * now - before)          \
    POLYNOMIAL(name, f64, d, first, kind, limit, limit, (v + v) * now - before)
CHEBYSHEV(h_chebyshev_t, v, CHEBYSHEV_T, 6)
CHEBYSHEV(h_chebyshev_u, twice, CHEBYSHEV_U, 8)
CHEBYSHEV(h_chebyshev_v, twice - 1, CHEBYSHEV_V, 8)
CHEBYSHEV(h_chebyshev_w, twice + 1, CHEBYSHEV_W, 8)
POLYNOMIAL(h_laguerre, f32, f, 1 - v, LAGUERRE, 0, 16, ((2 * m + 1 - v) * now - m * before) / (m + 1))
POLYNOMIAL(h_laguerre, f64, d, 1 - v, LAGUERRE, 0, 16, ((2 * m + 1 - v) * now - m * before) / (m + 1))
POLYNOMIAL(h_legendre, f32, f, v, LEGENDRE, 0, 16, ((2 * m + 1) * v * now - m * before) / (m + 1))
POLYNOMIAL(h_legendre, f64, d, v, LEGENDRE, 0, 16, ((2 * m + 1) * v * now - m * before) / (m + 1))
#undef CHEBYSHEV
#undef POLYNOMIAL
TWO(h_hermite_h, f32, f, polynomial_f(v, w, HERMITE_H, 128))
TWO(h_hermite_h, f64, d, polynomial_d(v, w, HERMITE_H, 512))
TWO(h_hermite_he, f32, f, polynomial_f(v, w, HERMITE_HE, 128))
TWO(h_hermite_he, f64, d, polynomial_d(v, w, HERMITE_HE, 512))

/* Quotients below 2^28: their product with the divisor is exact in double precision. Others by the C library. */
INLINE f64 V(s_left)(f64 v, f64 w) {
    f64 k = __builtin_trunc(v / w), r = v - k * w, size = __builtin_fabs(w);
    r = k == 0. ? v : r; /* a divisor may be infinite */
    r = v >= 0. ? r < 0. ? r + size : r : r > 0. ? r - size : r; /* a quotient that was rounded to the next integer */
    return r == 0. ? __builtin_copysign(0., v) : r;
}
#define LEFT(name, value)                                     \
    static void V(name##_f)(i64 n, char *const *a) {          \
        const f32 *x = (const f32 *)a[0], *z = (const f32 *)a[1]; \
        f32 *y = (f32 *)a[2], kept[2 * BUFFER];               \
        for (i64 first = 0; first < n; first += BUFFER) {     \
            i64 count = n - first < BUFFER ? n - first : BUFFER; \
            i32 far = 0, sign;                                \
            (void)sign;                                       \
            memcpy(kept, x + first, (size_t)count * sizeof *x); \
            memcpy(kept + BUFFER, z + first, (size_t)count * sizeof *x); \
            SIMD for (i64 i = 0; i < count; i++) {            \
                const f64 v = (f64)kept[i], w = (f64)kept[BUFFER + i], left = V(s_left)(v, w); \
                y[first + i] = (f32)(value);                  \
                far |= !(__builtin_fabs(v) < 268435456. * __builtin_fabs(w)); \
            }                                                 \
            for (i64 i = 0; far && i < count; i++)            \
                if (!(__builtin_fabsf(kept[i]) < 268435456.f * __builtin_fabsf(kept[BUFFER + i]))) { \
                    const f64 v = (f64)kept[i], w = (f64)kept[BUFFER + i], left = fmod(v, w); \
                    y[first + i] = (f32)(value);              \
                }                                             \
        }                                                     \
    }
LEFT(h_fmod, left)
LEFT(h_remainder, ({ f64 r = left != 0. && (w < 0.) != (left < 0.) ? left + w : left; r == 0. ? __builtin_copysign(0., w) : r; }))
LEFT(h_floor_divide, ({ f64 d = (v - left) / w; d = left != 0. && (w < 0.) != (left < 0.) ? d - 1. : d; \
                        f64 k = __builtin_floor(d); k = d - k > 0.5 ? k + 1. : k; k = d == 0. ? __builtin_copysign(0., v / w) : k; \
                        w == 0. ? v / w : k; }))
#undef LEFT
#undef TWO
#endif
