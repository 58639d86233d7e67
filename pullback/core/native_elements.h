/* Written by `python -m pullback.codegen.eager` from the rules of operators: do not edit. */
#if defined(HELPERS)

INLINE f32 bits_f32(u32 x) { union { u32 i; f32 f; } u; u.i = x; return u.f; }
INLINE u32 f32_bits(f32 x) { union { u32 i; f32 f; } u; u.f = x; return u.i; }
INLINE f32 from_bf16(bf16 x) { return bits_f32((u32)x << 16); }
INLINE bf16 to_bf16(f32 x) { u32 b = f32_bits(x); return x != x ? (bf16)((b >> 16) | 0x40) : (bf16)((b + 0x7fff + ((b >> 16) & 1)) >> 16); }

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

#elif defined(ROW)
ROW(_binary_cross_entropy_slope_default_f, "_binary_cross_entropy_slope.default", 3, 0, 1, "ffff")
ROW(_binary_cross_entropy_slope_default_d, "_binary_cross_entropy_slope.default", 3, 0, 1, "dddd")
ROW(_binary_cross_entropy_with_logits_slope_default_____f, "_binary_cross_entropy_with_logits_slope.default:*:*", 5, 0, 1, "ffffff")
ROW(_binary_cross_entropy_with_logits_slope_default___None_f, "_binary_cross_entropy_with_logits_slope.default:*:None", 4, 0, 1, "fffff")
ROW(_binary_cross_entropy_with_logits_slope_default_None___f, "_binary_cross_entropy_with_logits_slope.default:None:*", 4, 0, 1, "fffff")
ROW(_binary_cross_entropy_with_logits_slope_default_None_None_f, "_binary_cross_entropy_with_logits_slope.default:None:None", 3, 0, 1, "ffff")
ROW(_huber_loss_slope_default_f, "_huber_loss_slope.default", 3, 1, 1, "fffff")
ROW(_huber_loss_slope_default_d, "_huber_loss_slope.default", 3, 1, 1, "ddddd")
ROW(_mse_loss_slope_default_f, "_mse_loss_slope.default", 3, 0, 1, "ffff")
ROW(_mse_loss_slope_default_d, "_mse_loss_slope.default", 3, 0, 1, "dddd")
ROW(_prelu_kernel_default_f, "_prelu_kernel.default", 2, 0, 1, "fff")
ROW(_prelu_kernel_default_d, "_prelu_kernel.default", 2, 0, 1, "ddd")
ROW(_rrelu_leak_default_False_f, "_rrelu_leak.default:False", 2, 2, 1, "fffff")
ROW(_rrelu_leak_default_False_d, "_rrelu_leak.default:False", 2, 2, 1, "ddddd")
ROW(_soft_margin_loss_slope_default_f, "_soft_margin_loss_slope.default", 3, 0, 1, "ffff")
ROW(add_Tensor_f, "add.Tensor", 2, 1, 1, "ffff")
ROW(add_Tensor_d, "add.Tensor", 2, 1, 1, "dddd")
ROW(addcdiv_default_f, "addcdiv.default", 3, 1, 1, "fffff")
ROW(addcdiv_default_d, "addcdiv.default", 3, 1, 1, "ddddd")
ROW(addcmul_default_f, "addcmul.default", 3, 1, 1, "fffff")
ROW(addcmul_default_d, "addcmul.default", 3, 1, 1, "ddddd")
ROW(angle_default_f, "angle.default", 1, 0, 1, "ff")
ROW(angle_default_d, "angle.default", 1, 0, 1, "dd")
ROW(asinh_default_f, "asinh.default", 1, 0, 1, "ff")
ROW(atan_default_f, "atan.default", 1, 0, 1, "ff")
ROW(atan2_default_f, "atan2.default", 2, 0, 1, "fff")
ROW(atanh_default_f, "atanh.default", 1, 0, 1, "ff")
ROW(celu_default_f, "celu.default", 1, 1, 1, "fff")
ROW(clamp_Tensor_____f, "clamp.Tensor:*:*", 3, 0, 1, "ffff")
ROW(clamp_Tensor_____d, "clamp.Tensor:*:*", 3, 0, 1, "dddd")
ROW(clamp_default_____f, "clamp.default:*:*", 1, 2, 1, "ffff")
ROW(clamp_default_____d, "clamp.default:*:*", 1, 2, 1, "dddd")
ROW(clamp_default___None_f, "clamp.default:*:None", 1, 1, 1, "fff")
ROW(clamp_default___None_d, "clamp.default:*:None", 1, 1, 1, "ddd")
ROW(clamp_default_None___f, "clamp.default:None:*", 1, 1, 1, "fff")
ROW(clamp_default_None___d, "clamp.default:None:*", 1, 1, 1, "ddd")
ROW(clamp_max_default_f, "clamp_max.default", 1, 1, 1, "fff")
ROW(clamp_max_default_d, "clamp_max.default", 1, 1, 1, "ddd")
ROW(clamp_min_default_f, "clamp_min.default", 1, 1, 1, "fff")
ROW(clamp_min_default_d, "clamp_min.default", 1, 1, 1, "ddd")
ROW(copysign_Tensor_f, "copysign.Tensor", 2, 0, 1, "fff")
ROW(copysign_Tensor_d, "copysign.Tensor", 2, 0, 1, "ddd")
ROW(cosh_default_f, "cosh.default", 1, 0, 1, "ff")
ROW(div_Tensor_mode_trunc_f, "div.Tensor_mode:trunc", 2, 0, 1, "fff")
ROW(div_Tensor_mode_trunc_d, "div.Tensor_mode:trunc", 2, 0, 1, "ddd")
ROW(elu_backward_default_False_f, "elu_backward.default:False", 2, 3, 1, "ffffff")
ROW(elu_backward_default_True_f, "elu_backward.default:True", 2, 3, 1, "ffffff")
ROW(elu_backward_default_True_d, "elu_backward.default:True", 2, 3, 1, "dddddd")
ROW(erf_default_f, "erf.default", 1, 0, 1, "ff")
ROW(erf_default_d, "erf.default", 1, 0, 1, "dd")
ROW(exp2_default_f, "exp2.default", 1, 0, 1, "ff")
ROW(expm1_default_f, "expm1.default", 1, 0, 1, "ff")
ROW(frac_default_f, "frac.default", 1, 0, 1, "ff")
ROW(frac_default_d, "frac.default", 1, 0, 1, "dd")
ROW(gelu_default_none_f, "gelu.default:none", 1, 0, 1, "ff")
ROW(gelu_default_none_d, "gelu.default:none", 1, 0, 1, "dd")
ROW(gelu_default_tanh_f, "gelu.default:tanh", 1, 0, 1, "ff")
ROW(gelu_backward_default_none_f, "gelu_backward.default:none", 2, 0, 1, "fff")
ROW(gelu_backward_default_tanh_f, "gelu_backward.default:tanh", 2, 0, 1, "fff")
ROW(hardshrink_default_f, "hardshrink.default", 1, 1, 1, "fff")
ROW(hardshrink_default_d, "hardshrink.default", 1, 1, 1, "ddd")
ROW(hardshrink_backward_default_f, "hardshrink_backward.default", 2, 1, 1, "ffff")
ROW(hardshrink_backward_default_d, "hardshrink_backward.default", 2, 1, 1, "dddd")
ROW(hardsigmoid_default_f, "hardsigmoid.default", 1, 0, 1, "ff")
ROW(hardsigmoid_default_d, "hardsigmoid.default", 1, 0, 1, "dd")
ROW(hardsigmoid_backward_default_f, "hardsigmoid_backward.default", 2, 0, 1, "fff")
ROW(hardsigmoid_backward_default_d, "hardsigmoid_backward.default", 2, 0, 1, "ddd")
ROW(hardswish_default_f, "hardswish.default", 1, 0, 1, "ff")
ROW(hardswish_default_d, "hardswish.default", 1, 0, 1, "dd")
ROW(hardswish_backward_default_f, "hardswish_backward.default", 2, 0, 1, "fff")
ROW(hardswish_backward_default_d, "hardswish_backward.default", 2, 0, 1, "ddd")
ROW(hardtanh_default_f, "hardtanh.default", 1, 2, 1, "ffff")
ROW(hardtanh_default_d, "hardtanh.default", 1, 2, 1, "dddd")
ROW(hardtanh_backward_default_f, "hardtanh_backward.default", 2, 2, 1, "fffff")
ROW(hardtanh_backward_default_d, "hardtanh_backward.default", 2, 2, 1, "ddddd")
ROW(heaviside_default_f, "heaviside.default", 2, 0, 1, "fff")
ROW(heaviside_default_d, "heaviside.default", 2, 0, 1, "ddd")
ROW(ldexp_Tensor_f, "ldexp.Tensor", 2, 0, 1, "fff")
ROW(leaky_relu_default_f, "leaky_relu.default", 1, 1, 1, "fff")
ROW(leaky_relu_default_d, "leaky_relu.default", 1, 1, 1, "ddd")
ROW(leaky_relu_backward_default_False_f, "leaky_relu_backward.default:False", 2, 1, 1, "ffff")
ROW(leaky_relu_backward_default_False_d, "leaky_relu_backward.default:False", 2, 1, 1, "dddd")
ROW(leaky_relu_backward_default_True_f, "leaky_relu_backward.default:True", 2, 1, 1, "ffff")
ROW(leaky_relu_backward_default_True_d, "leaky_relu_backward.default:True", 2, 1, 1, "dddd")
ROW(lerp_Scalar_f, "lerp.Scalar", 2, 1, 1, "ffff")
ROW(lerp_Scalar_d, "lerp.Scalar", 2, 1, 1, "dddd")
ROW(lerp_Tensor_f, "lerp.Tensor", 3, 0, 1, "ffff")
ROW(lerp_Tensor_d, "lerp.Tensor", 3, 0, 1, "dddd")
ROW(log1p_default_f, "log1p.default", 1, 0, 1, "ff")
ROW(log2_default_f, "log2.default", 1, 0, 1, "ff")
ROW(log_sigmoid_default_f, "log_sigmoid.default", 1, 0, 1, "ff")
ROW(logaddexp_default_f, "logaddexp.default", 2, 0, 1, "fff")
ROW(logical_and_default_f, "logical_and.default", 2, 0, 1, "ff?")
ROW(logical_and_default_d, "logical_and.default", 2, 0, 1, "dd?")
ROW(logical_not_default_f, "logical_not.default", 1, 0, 1, "f?")
ROW(logical_not_default_d, "logical_not.default", 1, 0, 1, "d?")
ROW(logical_or_default_f, "logical_or.default", 2, 0, 1, "ff?")
ROW(logical_or_default_d, "logical_or.default", 2, 0, 1, "dd?")
ROW(logical_xor_default_f, "logical_xor.default", 2, 0, 1, "ff?")
ROW(logical_xor_default_d, "logical_xor.default", 2, 0, 1, "dd?")
ROW(logit_default___f, "logit.default:*", 1, 1, 1, "fff")
ROW(logit_default_None_f, "logit.default:None", 1, 0, 1, "ff")
ROW(mish_default_f, "mish.default", 1, 0, 1, "ff")
ROW(mish_backward_default_f, "mish_backward.default", 2, 0, 1, "fff")
ROW(nan_to_num_default_______f, "nan_to_num.default:*:*:*", 1, 3, 1, "fffff")
ROW(nan_to_num_default_______d, "nan_to_num.default:*:*:*", 1, 3, 1, "ddddd")
ROW(nan_to_num_default_____None_f, "nan_to_num.default:*:*:None", 1, 2, 1, "ffff")
ROW(nan_to_num_default_____None_d, "nan_to_num.default:*:*:None", 1, 2, 1, "dddd")
ROW(nan_to_num_default___None___f, "nan_to_num.default:*:None:*", 1, 2, 1, "ffff")
ROW(nan_to_num_default___None___d, "nan_to_num.default:*:None:*", 1, 2, 1, "dddd")
ROW(nan_to_num_default___None_None_f, "nan_to_num.default:*:None:None", 1, 1, 1, "fff")
ROW(nan_to_num_default___None_None_d, "nan_to_num.default:*:None:None", 1, 1, 1, "ddd")
ROW(nan_to_num_default_None_____f, "nan_to_num.default:None:*:*", 1, 2, 1, "ffff")
ROW(nan_to_num_default_None_____d, "nan_to_num.default:None:*:*", 1, 2, 1, "dddd")
ROW(nan_to_num_default_None___None_f, "nan_to_num.default:None:*:None", 1, 1, 1, "fff")
ROW(nan_to_num_default_None___None_d, "nan_to_num.default:None:*:None", 1, 1, 1, "ddd")
ROW(nan_to_num_default_None_None___f, "nan_to_num.default:None:None:*", 1, 1, 1, "fff")
ROW(nan_to_num_default_None_None___d, "nan_to_num.default:None:None:*", 1, 1, 1, "ddd")
ROW(nan_to_num_default_None_None_None_f, "nan_to_num.default:None:None:None", 1, 0, 1, "ff")
ROW(nan_to_num_default_None_None_None_d, "nan_to_num.default:None:None:None", 1, 0, 1, "dd")
ROW(reciprocal_default_f, "reciprocal.default", 1, 0, 1, "ff")
ROW(reciprocal_default_d, "reciprocal.default", 1, 0, 1, "dd")
ROW(relu_default_f, "relu.default", 1, 0, 1, "ff")
ROW(relu_default_d, "relu.default", 1, 0, 1, "dd")
ROW(rsqrt_default_f, "rsqrt.default", 1, 0, 1, "ff")
ROW(rsqrt_default_d, "rsqrt.default", 1, 0, 1, "dd")
ROW(rsub_Scalar_f, "rsub.Scalar", 1, 2, 1, "ffff")
ROW(rsub_Scalar_d, "rsub.Scalar", 1, 2, 1, "dddd")
ROW(rsub_Tensor_f, "rsub.Tensor", 2, 1, 1, "ffff")
ROW(rsub_Tensor_d, "rsub.Tensor", 2, 1, 1, "dddd")
ROW(sgn_default_f, "sgn.default", 1, 0, 1, "ff")
ROW(sgn_default_d, "sgn.default", 1, 0, 1, "dd")
ROW(sigmoid_default_f, "sigmoid.default", 1, 0, 1, "ff")
ROW(sigmoid_backward_default_f, "sigmoid_backward.default", 2, 0, 1, "fff")
ROW(sigmoid_backward_default_d, "sigmoid_backward.default", 2, 0, 1, "ddd")
ROW(sign_default_f, "sign.default", 1, 0, 1, "ff")
ROW(sign_default_d, "sign.default", 1, 0, 1, "dd")
ROW(silu_default_f, "silu.default", 1, 0, 1, "ff")
ROW(silu_backward_default_f, "silu_backward.default", 2, 0, 1, "fff")
ROW(sinh_default_f, "sinh.default", 1, 0, 1, "ff")
ROW(softplus_default_f, "softplus.default", 1, 2, 1, "ffff")
ROW(softplus_backward_default_f, "softplus_backward.default", 2, 2, 1, "fffff")
ROW(softshrink_default_f, "softshrink.default", 1, 1, 1, "fff")
ROW(softshrink_default_d, "softshrink.default", 1, 1, 1, "ddd")
ROW(softshrink_backward_default_f, "softshrink_backward.default", 2, 1, 1, "ffff")
ROW(softshrink_backward_default_d, "softshrink_backward.default", 2, 1, 1, "dddd")
ROW(sub_Tensor_f, "sub.Tensor", 2, 1, 1, "ffff")
ROW(sub_Tensor_d, "sub.Tensor", 2, 1, 1, "dddd")
ROW(tanh_backward_default_f, "tanh_backward.default", 2, 0, 1, "fff")
ROW(tanh_backward_default_d, "tanh_backward.default", 2, 0, 1, "ddd")
ROW(threshold_default_f, "threshold.default", 1, 2, 1, "ffff")
ROW(threshold_default_d, "threshold.default", 1, 2, 1, "dddd")
ROW(threshold_backward_default_f, "threshold_backward.default", 2, 1, 1, "ffff")
ROW(threshold_backward_default_d, "threshold_backward.default", 2, 1, 1, "dddd")
ROW(adam_f, "adam", 4, 8, 3, "fffffffffffffff")
ROW(adam_d, "adam", 4, 8, 3, "ddddddddddddddd")
ROW(sgd_f, "sgd", 2, 2, 1, "fffff")
ROW(sgd_d, "sgd", 2, 2, 1, "ddddd")
ROW(momentum_f, "momentum", 3, 4, 2, "fffffffff")
ROW(momentum_d, "momentum", 3, 4, 2, "ddddddddd")
ROW(nesterov_f, "nesterov", 3, 4, 2, "fffffffff")
ROW(nesterov_d, "nesterov", 3, 4, 2, "ddddddddd")
#else
#undef f_exp2
#define f_exp2 V(exp2)
#undef f_erf
#define f_erf V(erf)
#undef d_erf
#define d_erf V(erf_double)
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

static void V(_binary_cross_entropy_slope_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x2[i];
        const f32 v3 = v1 - v2;
        const f32 v4 = v0 * v3;
        const f32 v5 = 1.0f - v1;
        const f32 v6 = v5 * v1;
        const f32 v7 = f_max(v6, 1e-12f);
        const f32 v8 = v4 / v7;
        y0[i] = v8;
    }
}

static void V(_binary_cross_entropy_slope_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x2[i];
        const f64 v3 = v1 - v2;
        const f64 v4 = v0 * v3;
        const f64 v5 = 1.0 - v1;
        const f64 v6 = v5 * v1;
        const f64 v7 = d_max(v6, 1e-12);
        const f64 v8 = v4 / v7;
        y0[i] = v8;
    }
}

static void V(_binary_cross_entropy_with_logits_slope_default_____f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 *x3 = (const f32 *)a[3];
    const f32 *x4 = (const f32 *)a[4];
    f32 *y0 = (f32 *)a[5];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x4[i];
        const f32 v2 = x2[i];
        const f32 v3 = v1 * v2;
        const f32 v4 = v3 + 1.0f;
        const f32 v5 = v4 - v2;
        const f32 v6 = x1[i];
        const f32 v7 = -v6;
        const f32 v8 = f_exp(v7);
        const f32 v9 = v8 + 1.0f;
        const f32 v10 = 1.0f / v9;
        const f32 v11 = v5 * v10;
        const f32 v12 = v11 - v3;
        const f32 v13 = v0 * v12;
        const f32 v14 = x3[i];
        const f32 v15 = v13 * v14;
        y0[i] = v15;
    }
}

static void V(_binary_cross_entropy_with_logits_slope_default___None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 *x3 = (const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = -v1;
        const f32 v3 = f_exp(v2);
        const f32 v4 = v3 + 1.0f;
        const f32 v5 = 1.0f / v4;
        const f32 v6 = x2[i];
        const f32 v7 = v5 - v6;
        const f32 v8 = v0 * v7;
        const f32 v9 = x3[i];
        const f32 v10 = v8 * v9;
        y0[i] = v10;
    }
}

static void V(_binary_cross_entropy_with_logits_slope_default_None___f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 *x3 = (const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x3[i];
        const f32 v2 = x2[i];
        const f32 v3 = v1 * v2;
        const f32 v4 = v3 + 1.0f;
        const f32 v5 = v4 - v2;
        const f32 v6 = x1[i];
        const f32 v7 = -v6;
        const f32 v8 = f_exp(v7);
        const f32 v9 = v8 + 1.0f;
        const f32 v10 = 1.0f / v9;
        const f32 v11 = v5 * v10;
        const f32 v12 = v11 - v3;
        const f32 v13 = v0 * v12;
        y0[i] = v13;
    }
}

static void V(_binary_cross_entropy_with_logits_slope_default_None_None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = -v1;
        const f32 v3 = f_exp(v2);
        const f32 v4 = v3 + 1.0f;
        const f32 v5 = 1.0f / v4;
        const f32 v6 = x2[i];
        const f32 v7 = v5 - v6;
        const f32 v8 = v0 * v7;
        y0[i] = v8;
    }
}

static void V(_huber_loss_slope_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x2[i];
        const f32 v3 = v1 - v2;
        const f32 v4 = x3;
        const f32 v5 = -v4;
        const f32 v6 = f_max(v3, v5);
        const f32 v7 = f_min(v6, v4);
        const f32 v8 = v0 * v7;
        y0[i] = v8;
    }
}

static void V(_huber_loss_slope_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x2[i];
        const f64 v3 = v1 - v2;
        const f64 v4 = x3;
        const f64 v5 = -v4;
        const f64 v6 = d_max(v3, v5);
        const f64 v7 = d_min(v6, v4);
        const f64 v8 = v0 * v7;
        y0[i] = v8;
    }
}

static void V(_mse_loss_slope_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x2[i];
        const f32 v3 = v1 - v2;
        const f32 v4 = 2.0f * v3;
        const f32 v5 = v0 * v4;
        y0[i] = v5;
    }
}

static void V(_mse_loss_slope_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x2[i];
        const f64 v3 = v1 - v2;
        const f64 v4 = 2.0 * v3;
        const f64 v5 = v0 * v4;
        y0[i] = v5;
    }
}

static void V(_prelu_kernel_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = x1[i];
        const f32 v3 = v2 * v0;
        const f32 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(_prelu_kernel_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = x1[i];
        const f64 v3 = v2 * v0;
        const f64 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(_rrelu_leak_default_False_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = x2;
        const f32 v3 = x3;
        const f32 v4 = v2 + v3;
        const f32 v5 = v4 / 2.0f;
        const f32 v6 = v0 * v5;
        const f32 v7 = v1 ? v0 : v6;
        y0[i] = v7;
    }
}

static void V(_rrelu_leak_default_False_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x2 = *(const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = x2;
        const f64 v3 = x3;
        const f64 v4 = v2 + v3;
        const f64 v5 = v4 / 2.0;
        const f64 v6 = v0 * v5;
        const f64 v7 = v1 ? v0 : v6;
        y0[i] = v7;
    }
}

static void V(_soft_margin_loss_slope_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x2[i];
        const f32 v2 = -v1;
        const f32 v3 = x1[i];
        const f32 v4 = v2 * v3;
        const f32 v5 = -v4;
        const f32 v6 = f_exp(v5);
        const f32 v7 = v6 + 1.0f;
        const f32 v8 = 1.0f / v7;
        const f32 v9 = v2 * v8;
        const f32 v10 = v0 * v9;
        y0[i] = v10;
    }
}

static void V(add_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x2;
        const f32 v3 = v1 * v2;
        const f32 v4 = v0 + v3;
        y0[i] = v4;
    }
}

static void V(add_Tensor_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x2;
        const f64 v3 = v1 * v2;
        const f64 v4 = v0 + v3;
        y0[i] = v4;
    }
}

static void V(addcdiv_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x3;
        const f32 v3 = v1 * v2;
        const f32 v4 = x2[i];
        const f32 v5 = v3 / v4;
        const f32 v6 = v0 + v5;
        y0[i] = v6;
    }
}

static void V(addcdiv_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x3;
        const f64 v3 = v1 * v2;
        const f64 v4 = x2[i];
        const f64 v5 = v3 / v4;
        const f64 v6 = v0 + v5;
        y0[i] = v6;
    }
}

static void V(addcmul_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x3;
        const f32 v3 = v1 * v2;
        const f32 v4 = x2[i];
        const f32 v5 = v3 * v4;
        const f32 v6 = v0 + v5;
        y0[i] = v6;
    }
}

static void V(addcmul_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x3;
        const f64 v3 = v1 * v2;
        const f64 v4 = x2[i];
        const f64 v5 = v3 * v4;
        const f64 v6 = v0 + v5;
        y0[i] = v6;
    }
}

static void V(angle_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 != v0;
        const i32 v2 = v0 < 0.0f;
        const f32 v3 = v2 ? 3.1415927f : 0.0f;
        const f32 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(angle_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 != v0;
        const i32 v2 = v0 < 0.0;
        const f64 v3 = v2 ? 3.141592653589793 : 0.0;
        const f64 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(asinh_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_arcsinh(v0);
        y0[i] = v1;
    }
}

static void V(atan_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_arctan(v0);
        y0[i] = v1;
    }
}

static void V(atan2_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = f_arctan2(v0, v1);
        y0[i] = v2;
    }
}

static void V(atanh_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_arctanh(v0);
        y0[i] = v1;
    }
}

static void V(celu_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 < 0.0f;
        const f32 v2 = f_min(0.0f, v0);
        const f32 v3 = x1;
        const f32 v4 = 1.0f / v3;
        const f32 v5 = v2 * v4;
        const f32 v6 = f_expm1(v5);
        const f32 v7 = v3 * 1.0f;
        const f32 v8 = v6 * v7;
        const f32 v9 = v1 ? v8 : v0;
        y0[i] = v9;
    }
}

static void V(clamp_Tensor_____f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x2[i];
        const f32 v1 = x1[i];
        const f32 v2 = x0[i];
        const f32 v3 = f_max(v1, v2);
        const f32 v4 = f_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(clamp_Tensor_____d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x2[i];
        const f64 v1 = x1[i];
        const f64 v2 = x0[i];
        const f64 v3 = d_max(v1, v2);
        const f64 v4 = d_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(clamp_default_____f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x2;
        const f32 v1 = x1;
        const f32 v2 = x0[i];
        const f32 v3 = f_max(v1, v2);
        const f32 v4 = f_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(clamp_default_____d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x2;
        const f64 v1 = x1;
        const f64 v2 = x0[i];
        const f64 v3 = d_max(v1, v2);
        const f64 v4 = d_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(clamp_default___None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1;
        const f32 v1 = x0[i];
        const f32 v2 = f_max(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_default___None_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1;
        const f64 v1 = x0[i];
        const f64 v2 = d_max(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_default_None___f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1;
        const f32 v1 = x0[i];
        const f32 v2 = f_min(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_default_None___d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1;
        const f64 v1 = x0[i];
        const f64 v2 = d_min(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_max_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1;
        const f32 v1 = x0[i];
        const f32 v2 = f_min(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_max_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1;
        const f64 v1 = x0[i];
        const f64 v2 = d_min(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_min_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1;
        const f32 v1 = x0[i];
        const f32 v2 = f_max(v0, v1);
        y0[i] = v2;
    }
}

static void V(clamp_min_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1;
        const f64 v1 = x0[i];
        const f64 v2 = d_max(v0, v1);
        y0[i] = v2;
    }
}

static void V(copysign_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = __builtin_copysignf(v0, v1);
        y0[i] = v2;
    }
}

static void V(copysign_Tensor_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = __builtin_copysign(v0, v1);
        y0[i] = v2;
    }
}

static void V(cosh_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_cosh(v0);
        y0[i] = v1;
    }
}

static void V(div_Tensor_mode_trunc_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = v0 / v1;
        const f32 v3 = __builtin_truncf(v2);
        y0[i] = v3;
    }
}

static void V(div_Tensor_mode_trunc_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = v0 / v1;
        const f64 v3 = __builtin_trunc(v2);
        y0[i] = v3;
    }
}

static void V(elu_backward_default_False_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    const f32 x4 = *(const f32 *)a[4];
    f32 *y0 = (f32 *)a[5];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 <= 0.0f;
        const f32 v2 = x0[i];
        const f32 v3 = x4;
        const f32 v4 = x2;
        const f32 v5 = v3 * v4;
        const f32 v6 = x3;
        const f32 v7 = v5 * v6;
        const f32 v8 = v2 * v7;
        const f32 v9 = f_min(v0, 0.0f);
        const f32 v10 = v9 * v3;
        const f32 v11 = f_exp(v10);
        const f32 v12 = v8 * v11;
        const f32 v13 = v2 * v6;
        const f32 v14 = v1 ? v12 : v13;
        y0[i] = v14;
    }
}

static void V(elu_backward_default_True_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    const f32 x4 = *(const f32 *)a[4];
    f32 *y0 = (f32 *)a[5];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 <= 0.0f;
        const f32 v2 = x0[i];
        const f32 v3 = x4;
        const f32 v4 = v2 * v3;
        const f32 v5 = x2;
        const f32 v6 = x3;
        const f32 v7 = v5 * v6;
        const f32 v8 = v0 + v7;
        const f32 v9 = v4 * v8;
        const f32 v10 = v2 * v6;
        const f32 v11 = v1 ? v9 : v10;
        y0[i] = v11;
    }
}

static void V(elu_backward_default_True_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    const f64 x4 = *(const f64 *)a[4];
    f64 *y0 = (f64 *)a[5];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const i32 v1 = v0 <= 0.0;
        const f64 v2 = x0[i];
        const f64 v3 = x4;
        const f64 v4 = v2 * v3;
        const f64 v5 = x2;
        const f64 v6 = x3;
        const f64 v7 = v5 * v6;
        const f64 v8 = v0 + v7;
        const f64 v9 = v4 * v8;
        const f64 v10 = v2 * v6;
        const f64 v11 = v1 ? v9 : v10;
        y0[i] = v11;
    }
}

static void V(erf_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_erf(v0);
        y0[i] = v1;
    }
}

static void V(erf_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = d_erf(v0);
        y0[i] = v1;
    }
}

static void V(exp2_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_exp2(v0);
        y0[i] = v1;
    }
}

static void V(expm1_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_expm1(v0);
        y0[i] = v1;
    }
}

static void V(frac_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = __builtin_truncf(v0);
        const f32 v2 = v0 - v1;
        y0[i] = v2;
    }
}

static void V(frac_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = __builtin_trunc(v0);
        const f64 v2 = v0 - v1;
        y0[i] = v2;
    }
}

static void V(gelu_default_none_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = 0.5f * v0;
        const f32 v2 = v0 * 0.70710677f;
        const f32 v3 = f_erf(v2);
        const f32 v4 = 1.0f + v3;
        const f32 v5 = v1 * v4;
        y0[i] = v5;
    }
}

static void V(gelu_default_none_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = 0.5 * v0;
        const f64 v2 = v0 * 0.7071067811865476;
        const f64 v3 = d_erf(v2);
        const f64 v4 = 1.0 + v3;
        const f64 v5 = v1 * v4;
        y0[i] = v5;
    }
}

static void V(gelu_default_tanh_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = 0.5f * v0;
        const f32 v2 = 0.044715f * v0;
        const f32 v3 = v2 * v0;
        const f32 v4 = v3 * v0;
        const f32 v5 = v0 + v4;
        const f32 v6 = 0.7978846f * v5;
        const f32 v7 = f_tanh(v6);
        const f32 v8 = 1.0f + v7;
        const f32 v9 = v1 * v8;
        y0[i] = v9;
    }
}

static void V(gelu_backward_default_none_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = v1 * 0.70710677f;
        const f32 v3 = f_erf(v2);
        const f32 v4 = 1.0f + v3;
        const f32 v5 = 0.5f * v4;
        const f32 v6 = (-0.5f) * v1;
        const f32 v7 = v6 * v1;
        const f32 v8 = f_exp(v7);
        const f32 v9 = v8 * 0.3989423f;
        const f32 v10 = v1 * v9;
        const f32 v11 = v5 + v10;
        const f32 v12 = v0 * v11;
        y0[i] = v12;
    }
}

static void V(gelu_backward_default_tanh_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = 0.044715f * v1;
        const f32 v3 = v2 * v1;
        const f32 v4 = v3 * v1;
        const f32 v5 = v1 + v4;
        const f32 v6 = 0.7978846f * v5;
        const f32 v7 = f_tanh(v6);
        const f32 v8 = 1.0f + v7;
        const f32 v9 = 0.5f * v8;
        const f32 v10 = 0.5f * v1;
        const f32 v11 = v7 * v7;
        const f32 v12 = 1.0f - v11;
        const f32 v13 = v10 * v12;
        const f32 v14 = 0.134145f * v1;
        const f32 v15 = v14 * v1;
        const f32 v16 = 1.0f + v15;
        const f32 v17 = 0.7978846f * v16;
        const f32 v18 = v13 * v17;
        const f32 v19 = v9 + v18;
        const f32 v20 = v0 * v19;
        y0[i] = v20;
    }
}

static void V(hardshrink_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1;
        const f32 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f32 v6 = v5 ? 0.0f : v0;
        y0[i] = v6;
    }
}

static void V(hardshrink_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1;
        const f64 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f64 v6 = v5 ? 0.0 : v0;
        y0[i] = v6;
    }
}

static void V(hardshrink_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x2;
        const f32 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f32 v6 = x0[i];
        const f32 v7 = v5 ? 0.0f : v6;
        y0[i] = v7;
    }
}

static void V(hardshrink_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const f64 v1 = x2;
        const f64 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f64 v6 = x0[i];
        const f64 v7 = v5 ? 0.0 : v6;
        y0[i] = v7;
    }
}

static void V(hardsigmoid_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = v0 + 3.0f;
        const f32 v2 = f_max(v1, 0.0f);
        const f32 v3 = f_min(v2, 6.0f);
        const f32 v4 = v3 / 6.0f;
        y0[i] = v4;
    }
}

static void V(hardsigmoid_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = v0 + 3.0;
        const f64 v2 = d_max(v1, 0.0);
        const f64 v3 = d_min(v2, 6.0);
        const f64 v4 = v3 / 6.0;
        y0[i] = v4;
    }
}

static void V(hardsigmoid_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 <= (-3.0f);
        const i32 v2 = v0 >= 3.0f;
        const i32 v3 = v1 | v2;
        const i32 v4 = v0 != v0;
        const i32 v5 = v3 | v4;
        const f32 v6 = x0[i];
        const f32 v7 = v6 * 0.16666667f;
        const f32 v8 = v5 ? 0.0f : v7;
        y0[i] = v8;
    }
}

static void V(hardsigmoid_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const i32 v1 = v0 <= (-3.0);
        const i32 v2 = v0 >= 3.0;
        const i32 v3 = v1 | v2;
        const i32 v4 = v0 != v0;
        const i32 v5 = v3 | v4;
        const f64 v6 = x0[i];
        const f64 v7 = v6 * 0.16666666666666666;
        const f64 v8 = v5 ? 0.0 : v7;
        y0[i] = v8;
    }
}

static void V(hardswish_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = v0 + 3.0f;
        const f32 v2 = f_max(v1, 0.0f);
        const f32 v3 = f_min(v2, 6.0f);
        const f32 v4 = v3 / 6.0f;
        const f32 v5 = v0 * v4;
        y0[i] = v5;
    }
}

static void V(hardswish_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = v0 + 3.0;
        const f64 v2 = d_max(v1, 0.0);
        const f64 v3 = d_min(v2, 6.0);
        const f64 v4 = v3 / 6.0;
        const f64 v5 = v0 * v4;
        y0[i] = v5;
    }
}

static void V(hardswish_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 <= (-3.0f);
        const i32 v2 = v0 < 3.0f;
        const f32 v3 = x0[i];
        const f32 v4 = v0 / 3.0f;
        const f32 v5 = v4 + 0.5f;
        const f32 v6 = v3 * v5;
        const f32 v7 = v2 ? v6 : v3;
        const f32 v8 = v1 ? 0.0f : v7;
        y0[i] = v8;
    }
}

static void V(hardswish_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const i32 v1 = v0 <= (-3.0);
        const i32 v2 = v0 < 3.0;
        const f64 v3 = x0[i];
        const f64 v4 = v0 / 3.0;
        const f64 v5 = v4 + 0.5;
        const f64 v6 = v3 * v5;
        const f64 v7 = v2 ? v6 : v3;
        const f64 v8 = v1 ? 0.0 : v7;
        y0[i] = v8;
    }
}

static void V(hardtanh_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x2;
        const f32 v1 = x1;
        const f32 v2 = x0[i];
        const f32 v3 = f_max(v1, v2);
        const f32 v4 = f_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(hardtanh_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x2;
        const f64 v1 = x1;
        const f64 v2 = x0[i];
        const f64 v3 = d_max(v1, v2);
        const f64 v4 = d_min(v0, v3);
        y0[i] = v4;
    }
}

static void V(hardtanh_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x2;
        const i32 v2 = v0 <= v1;
        const f32 v3 = x3;
        const i32 v4 = v0 >= v3;
        const i32 v5 = v2 | v4;
        const f32 v6 = x0[i];
        const f32 v7 = v5 ? 0.0f : v6;
        y0[i] = v7;
    }
}

static void V(hardtanh_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const f64 v1 = x2;
        const i32 v2 = v0 <= v1;
        const f64 v3 = x3;
        const i32 v4 = v0 >= v3;
        const i32 v5 = v2 | v4;
        const f64 v6 = x0[i];
        const f64 v7 = v5 ? 0.0 : v6;
        y0[i] = v7;
    }
}

static void V(heaviside_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == 0.0f;
        const f32 v2 = x1[i];
        const i32 v3 = v0 > 0.0f;
        const f32 v4 = (f32)v3;
        const f32 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(heaviside_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == 0.0;
        const f64 v2 = x1[i];
        const i32 v3 = v0 > 0.0;
        const f64 v4 = (f64)v3;
        const f64 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(ldexp_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = f_exp2(v1);
        const f32 v3 = v0 * v2;
        y0[i] = v3;
    }
}

static void V(leaky_relu_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = x1;
        const f32 v3 = v0 * v2;
        const f32 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(leaky_relu_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = x1;
        const f64 v3 = v0 * v2;
        const f64 v4 = v1 ? v0 : v3;
        y0[i] = v4;
    }
}

static void V(leaky_relu_backward_default_False_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = x0[i];
        const f32 v3 = x2;
        const f32 v4 = v2 * v3;
        const f32 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(leaky_relu_backward_default_False_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = x0[i];
        const f64 v3 = x2;
        const f64 v4 = v2 * v3;
        const f64 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(leaky_relu_backward_default_True_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = x0[i];
        const f32 v3 = x2;
        const f32 v4 = v2 * v3;
        const f32 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(leaky_relu_backward_default_True_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = x0[i];
        const f64 v3 = x2;
        const f64 v4 = v2 * v3;
        const f64 v5 = v1 ? v2 : v4;
        y0[i] = v5;
    }
}

static void V(lerp_Scalar_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x2;
        const f32 v1 = __builtin_fabsf(v0);
        const i32 v2 = v1 < 0.5f;
        const f32 v3 = x0[i];
        const f32 v4 = x1[i];
        const f32 v5 = v4 - v3;
        const f32 v6 = v0 * v5;
        const f32 v7 = v3 + v6;
        const f32 v8 = 1.0f - v0;
        const f32 v9 = v5 * v8;
        const f32 v10 = v4 - v9;
        const f32 v11 = v2 ? v7 : v10;
        y0[i] = v11;
    }
}

static void V(lerp_Scalar_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x2;
        const f64 v1 = __builtin_fabs(v0);
        const i32 v2 = v1 < 0.5;
        const f64 v3 = x0[i];
        const f64 v4 = x1[i];
        const f64 v5 = v4 - v3;
        const f64 v6 = v0 * v5;
        const f64 v7 = v3 + v6;
        const f64 v8 = 1.0 - v0;
        const f64 v9 = v5 * v8;
        const f64 v10 = v4 - v9;
        const f64 v11 = v2 ? v7 : v10;
        y0[i] = v11;
    }
}

static void V(lerp_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x2[i];
        const f32 v1 = __builtin_fabsf(v0);
        const i32 v2 = v1 < 0.5f;
        const f32 v3 = x0[i];
        const f32 v4 = x1[i];
        const f32 v5 = v4 - v3;
        const f32 v6 = v0 * v5;
        const f32 v7 = v3 + v6;
        const f32 v8 = 1.0f - v0;
        const f32 v9 = v5 * v8;
        const f32 v10 = v4 - v9;
        const f32 v11 = v2 ? v7 : v10;
        y0[i] = v11;
    }
}

static void V(lerp_Tensor_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x2[i];
        const f64 v1 = __builtin_fabs(v0);
        const i32 v2 = v1 < 0.5;
        const f64 v3 = x0[i];
        const f64 v4 = x1[i];
        const f64 v5 = v4 - v3;
        const f64 v6 = v0 * v5;
        const f64 v7 = v3 + v6;
        const f64 v8 = 1.0 - v0;
        const f64 v9 = v5 * v8;
        const f64 v10 = v4 - v9;
        const f64 v11 = v2 ? v7 : v10;
        y0[i] = v11;
    }
}

static void V(log1p_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_log1p(v0);
        y0[i] = v1;
    }
}

static void V(log2_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_log2(v0);
        y0[i] = v1;
    }
}

static void V(log_sigmoid_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = -v0;
        const f32 v2 = __builtin_fabsf(v1);
        const f32 v3 = -v2;
        const f32 v4 = f_exp(v3);
        const f32 v5 = f_log1p(v4);
        const f32 v6 = f_max(v1, 0.0f);
        const f32 v7 = v5 + v6;
        const f32 v8 = 0.0f - v7;
        y0[i] = v8;
    }
}

static void V(logaddexp_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const i32 v2 = v0 == v1;
        const f32 v3 = v0 + 0.6931472f;
        const f32 v4 = f_max(v0, v1);
        const f32 v5 = v0 - v1;
        const f32 v6 = __builtin_fabsf(v5);
        const f32 v7 = -v6;
        const f32 v8 = f_exp(v7);
        const f32 v9 = f_log1p(v8);
        const f32 v10 = v4 + v9;
        const f32 v11 = v2 ? v3 : v10;
        y0[i] = v11;
    }
}

static void V(logical_and_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 != 0.0f;
        const f32 v2 = x1[i];
        const i32 v3 = v2 != 0.0f;
        const i32 v4 = v1 && v3;
        y0[i] = v4;
    }
}

static void V(logical_and_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 != 0.0;
        const f64 v2 = x1[i];
        const i32 v3 = v2 != 0.0;
        const i32 v4 = v1 && v3;
        y0[i] = v4;
    }
}

static void V(logical_not_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    u8 *y0 = (u8 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 != 0.0f;
        const i32 v2 = !v1;
        y0[i] = v2;
    }
}

static void V(logical_not_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    u8 *y0 = (u8 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 != 0.0;
        const i32 v2 = !v1;
        y0[i] = v2;
    }
}

static void V(logical_or_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 != 0.0f;
        const f32 v2 = x1[i];
        const i32 v3 = v2 != 0.0f;
        const i32 v4 = v1 || v3;
        y0[i] = v4;
    }
}

static void V(logical_or_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 != 0.0;
        const f64 v2 = x1[i];
        const i32 v3 = v2 != 0.0;
        const i32 v4 = v1 || v3;
        y0[i] = v4;
    }
}

static void V(logical_xor_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 != 0.0f;
        const f32 v2 = x1[i];
        const i32 v3 = v2 != 0.0f;
        const i32 v4 = v1 != v3;
        y0[i] = v4;
    }
}

static void V(logical_xor_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    u8 *y0 = (u8 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 != 0.0;
        const f64 v2 = x1[i];
        const i32 v3 = v2 != 0.0;
        const i32 v4 = v1 != v3;
        y0[i] = v4;
    }
}

static void V(logit_default___f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1;
        const i32 v2 = v0 < v1;
        const f32 v3 = 1.0f - v1;
        const i32 v4 = v0 > v3;
        const f32 v5 = v4 ? v3 : v0;
        const f32 v6 = v2 ? v1 : v5;
        const f32 v7 = 1.0f - v6;
        const f32 v8 = v6 / v7;
        const f32 v9 = f_log(v8);
        y0[i] = v9;
    }
}

static void V(logit_default_None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = 1.0f - v0;
        const f32 v2 = v0 / v1;
        const f32 v3 = f_log(v2);
        y0[i] = v3;
    }
}

static void V(mish_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = __builtin_fabsf(v0);
        const f32 v2 = -v1;
        const f32 v3 = f_exp(v2);
        const f32 v4 = f_log1p(v3);
        const f32 v5 = f_max(v0, 0.0f);
        const f32 v6 = v4 + v5;
        const f32 v7 = f_tanh(v6);
        const f32 v8 = v0 * v7;
        y0[i] = v8;
    }
}

static void V(mish_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = __builtin_fabsf(v1);
        const f32 v3 = -v2;
        const f32 v4 = f_exp(v3);
        const f32 v5 = f_log1p(v4);
        const f32 v6 = f_max(v1, 0.0f);
        const f32 v7 = v5 + v6;
        const f32 v8 = f_tanh(v7);
        const f32 v9 = -v1;
        const f32 v10 = f_exp(v9);
        const f32 v11 = v10 + 1.0f;
        const f32 v12 = 1.0f / v11;
        const f32 v13 = v1 * v12;
        const f32 v14 = v8 * v8;
        const f32 v15 = 1.0f - v14;
        const f32 v16 = v13 * v15;
        const f32 v17 = v8 + v16;
        const f32 v18 = v0 * v17;
        y0[i] = v18;
    }
}

static void V(nan_to_num_default_______f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f32 v2 = x3;
        const i32 v3 = v0 == INF;
        const f32 v4 = x2;
        const i32 v5 = v0 != v0;
        const f32 v6 = x1;
        const f32 v7 = v5 ? v6 : v0;
        const f32 v8 = v3 ? v4 : v7;
        const f32 v9 = v1 ? v2 : v8;
        y0[i] = v9;
    }
}

static void V(nan_to_num_default_______d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f64 v2 = x3;
        const i32 v3 = v0 == INF;
        const f64 v4 = x2;
        const i32 v5 = v0 != v0;
        const f64 v6 = x1;
        const f64 v7 = v5 ? v6 : v0;
        const f64 v8 = v3 ? v4 : v7;
        const f64 v9 = v1 ? v2 : v8;
        y0[i] = v9;
    }
}

static void V(nan_to_num_default_____None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const f32 v3 = x2;
        const i32 v4 = v0 != v0;
        const f32 v5 = x1;
        const f32 v6 = v4 ? v5 : v0;
        const f32 v7 = v2 ? v3 : v6;
        const f32 v8 = v1 ? (-3.4028235e+38f) : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default_____None_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const f64 v3 = x2;
        const i32 v4 = v0 != v0;
        const f64 v5 = x1;
        const f64 v6 = v4 ? v5 : v0;
        const f64 v7 = v2 ? v3 : v6;
        const f64 v8 = v1 ? (-1.7976931348623157e+308) : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default___None___f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f32 v2 = x2;
        const i32 v3 = v0 == INF;
        const i32 v4 = v0 != v0;
        const f32 v5 = x1;
        const f32 v6 = v4 ? v5 : v0;
        const f32 v7 = v3 ? 3.4028235e+38f : v6;
        const f32 v8 = v1 ? v2 : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default___None___d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f64 v2 = x2;
        const i32 v3 = v0 == INF;
        const i32 v4 = v0 != v0;
        const f64 v5 = x1;
        const f64 v6 = v4 ? v5 : v0;
        const f64 v7 = v3 ? 1.7976931348623157e+308 : v6;
        const f64 v8 = v1 ? v2 : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default___None_None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const i32 v3 = v0 != v0;
        const f32 v4 = x1;
        const f32 v5 = v3 ? v4 : v0;
        const f32 v6 = v2 ? 3.4028235e+38f : v5;
        const f32 v7 = v1 ? (-3.4028235e+38f) : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default___None_None_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const i32 v3 = v0 != v0;
        const f64 v4 = x1;
        const f64 v5 = v3 ? v4 : v0;
        const f64 v6 = v2 ? 1.7976931348623157e+308 : v5;
        const f64 v7 = v1 ? (-1.7976931348623157e+308) : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default_None_____f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f32 v2 = x2;
        const i32 v3 = v0 == INF;
        const f32 v4 = x1;
        const i32 v5 = v0 != v0;
        const f32 v6 = v5 ? 0.0f : v0;
        const f32 v7 = v3 ? v4 : v6;
        const f32 v8 = v1 ? v2 : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default_None_____d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f64 v2 = x2;
        const i32 v3 = v0 == INF;
        const f64 v4 = x1;
        const i32 v5 = v0 != v0;
        const f64 v6 = v5 ? 0.0 : v0;
        const f64 v7 = v3 ? v4 : v6;
        const f64 v8 = v1 ? v2 : v7;
        y0[i] = v8;
    }
}

static void V(nan_to_num_default_None___None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const f32 v3 = x1;
        const i32 v4 = v0 != v0;
        const f32 v5 = v4 ? 0.0f : v0;
        const f32 v6 = v2 ? v3 : v5;
        const f32 v7 = v1 ? (-3.4028235e+38f) : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default_None___None_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const f64 v3 = x1;
        const i32 v4 = v0 != v0;
        const f64 v5 = v4 ? 0.0 : v0;
        const f64 v6 = v2 ? v3 : v5;
        const f64 v7 = v1 ? (-1.7976931348623157e+308) : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default_None_None___f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f32 v2 = x1;
        const i32 v3 = v0 == INF;
        const i32 v4 = v0 != v0;
        const f32 v5 = v4 ? 0.0f : v0;
        const f32 v6 = v3 ? 3.4028235e+38f : v5;
        const f32 v7 = v1 ? v2 : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default_None_None___d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const f64 v2 = x1;
        const i32 v3 = v0 == INF;
        const i32 v4 = v0 != v0;
        const f64 v5 = v4 ? 0.0 : v0;
        const f64 v6 = v3 ? 1.7976931348623157e+308 : v5;
        const f64 v7 = v1 ? v2 : v6;
        y0[i] = v7;
    }
}

static void V(nan_to_num_default_None_None_None_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const i32 v3 = v0 != v0;
        const f32 v4 = v3 ? 0.0f : v0;
        const f32 v5 = v2 ? 3.4028235e+38f : v4;
        const f32 v6 = v1 ? (-3.4028235e+38f) : v5;
        y0[i] = v6;
    }
}

static void V(nan_to_num_default_None_None_None_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 == (-INF);
        const i32 v2 = v0 == INF;
        const i32 v3 = v0 != v0;
        const f64 v4 = v3 ? 0.0 : v0;
        const f64 v5 = v2 ? 1.7976931348623157e+308 : v4;
        const f64 v6 = v1 ? (-1.7976931348623157e+308) : v5;
        y0[i] = v6;
    }
}

static void V(reciprocal_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = 1.0f / v0;
        y0[i] = v1;
    }
}

static void V(reciprocal_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = 1.0 / v0;
        y0[i] = v1;
    }
}

static void V(relu_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_max(0.0f, v0);
        y0[i] = v1;
    }
}

static void V(relu_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = d_max(0.0, v0);
        y0[i] = v1;
    }
}

static void V(rsqrt_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = __builtin_sqrtf(v0);
        const f32 v2 = 1.0f / v1;
        y0[i] = v2;
    }
}

static void V(rsqrt_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = __builtin_sqrt(v0);
        const f64 v2 = 1.0 / v1;
        y0[i] = v2;
    }
}

static void V(rsub_Scalar_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1;
        const f32 v1 = x0[i];
        const f32 v2 = x2;
        const f32 v3 = v1 * v2;
        const f32 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(rsub_Scalar_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1;
        const f64 v1 = x0[i];
        const f64 v2 = x2;
        const f64 v3 = v1 * v2;
        const f64 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(rsub_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x0[i];
        const f32 v2 = x2;
        const f32 v3 = v1 * v2;
        const f32 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(rsub_Tensor_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const f64 v1 = x0[i];
        const f64 v2 = x2;
        const f64 v3 = v1 * v2;
        const f64 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(sgn_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = (f32)v1;
        const i32 v3 = v0 < 0.0f;
        const f32 v4 = (f32)v3;
        const f32 v5 = v2 - v4;
        y0[i] = v5;
    }
}

static void V(sgn_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = (f64)v1;
        const i32 v3 = v0 < 0.0;
        const f64 v4 = (f64)v3;
        const f64 v5 = v2 - v4;
        y0[i] = v5;
    }
}

static void V(sigmoid_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = -v0;
        const f32 v2 = f_exp(v1);
        const f32 v3 = v2 + 1.0f;
        const f32 v4 = 1.0f / v3;
        y0[i] = v4;
    }
}

static void V(sigmoid_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = 1.0f - v1;
        const f32 v3 = v2 * v1;
        const f32 v4 = v0 * v3;
        y0[i] = v4;
    }
}

static void V(sigmoid_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = 1.0 - v1;
        const f64 v3 = v2 * v1;
        const f64 v4 = v0 * v3;
        y0[i] = v4;
    }
}

static void V(sign_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const i32 v1 = v0 > 0.0f;
        const f32 v2 = (f32)v1;
        const i32 v3 = v0 < 0.0f;
        const f32 v4 = (f32)v3;
        const f32 v5 = v2 - v4;
        y0[i] = v5;
    }
}

static void V(sign_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    f64 *y0 = (f64 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const i32 v1 = v0 > 0.0;
        const f64 v2 = (f64)v1;
        const i32 v3 = v0 < 0.0;
        const f64 v4 = (f64)v3;
        const f64 v5 = v2 - v4;
        y0[i] = v5;
    }
}

static void V(silu_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = -v0;
        const f32 v2 = f_exp(v1);
        const f32 v3 = v2 + 1.0f;
        const f32 v4 = 1.0f / v3;
        const f32 v5 = v0 * v4;
        y0[i] = v5;
    }
}

static void V(silu_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = -v1;
        const f32 v3 = f_exp(v2);
        const f32 v4 = v3 + 1.0f;
        const f32 v5 = 1.0f / v4;
        const f32 v6 = 1.0f - v5;
        const f32 v7 = v1 * v6;
        const f32 v8 = 1.0f + v7;
        const f32 v9 = v5 * v8;
        const f32 v10 = v0 * v9;
        y0[i] = v10;
    }
}

static void V(sinh_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    f32 *y0 = (f32 *)a[1];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = f_sinh(v0);
        y0[i] = v1;
    }
}

static void V(softplus_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1;
        const f32 v2 = v0 * v1;
        const f32 v3 = x2;
        const i32 v4 = v2 > v3;
        const f32 v5 = __builtin_fabsf(v2);
        const f32 v6 = -v5;
        const f32 v7 = f_exp(v6);
        const f32 v8 = f_log1p(v7);
        const f32 v9 = f_max(v2, 0.0f);
        const f32 v10 = v8 + v9;
        const f32 v11 = v10 / v1;
        const f32 v12 = v4 ? v0 : v11;
        y0[i] = v12;
    }
}

static void V(softplus_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x2;
        const f32 v2 = v0 * v1;
        const f32 v3 = x3;
        const i32 v4 = v2 > v3;
        const f32 v5 = x0[i];
        const f32 v6 = -v2;
        const f32 v7 = f_exp(v6);
        const f32 v8 = v7 + 1.0f;
        const f32 v9 = 1.0f / v8;
        const f32 v10 = v5 * v9;
        const f32 v11 = v4 ? v5 : v10;
        y0[i] = v11;
    }
}

static void V(softshrink_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1;
        const f32 v2 = -v1;
        const f32 v3 = f_max(v0, v2);
        const f32 v4 = f_min(v3, v1);
        const f32 v5 = v0 - v4;
        y0[i] = v5;
    }
}

static void V(softshrink_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1;
        const f64 v2 = -v1;
        const f64 v3 = d_max(v0, v2);
        const f64 v4 = d_min(v3, v1);
        const f64 v5 = v0 - v4;
        y0[i] = v5;
    }
}

static void V(softshrink_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x2;
        const f32 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f32 v6 = x0[i];
        const f32 v7 = v5 ? 0.0f : v6;
        y0[i] = v7;
    }
}

static void V(softshrink_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const f64 v1 = x2;
        const f64 v2 = -v1;
        const i32 v3 = v0 >= v2;
        const i32 v4 = v0 <= v1;
        const i32 v5 = v3 & v4;
        const f64 v6 = x0[i];
        const f64 v7 = v5 ? 0.0 : v6;
        y0[i] = v7;
    }
}

static void V(sub_Tensor_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = x2;
        const f32 v3 = v1 * v2;
        const f32 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(sub_Tensor_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = x2;
        const f64 v3 = v1 * v2;
        const f64 v4 = v0 - v3;
        y0[i] = v4;
    }
}

static void V(tanh_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    f32 *y0 = (f32 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1[i];
        const f32 v2 = v1 * v1;
        const f32 v3 = 1.0f - v2;
        const f32 v4 = v0 * v3;
        y0[i] = v4;
    }
}

static void V(tanh_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    f64 *y0 = (f64 *)a[2];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1[i];
        const f64 v2 = v1 * v1;
        const f64 v3 = 1.0 - v2;
        const f64 v4 = v0 * v3;
        y0[i] = v4;
    }
}

static void V(threshold_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 x1 = *(const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x1;
        const i32 v2 = v0 <= v1;
        const f32 v3 = x2;
        const f32 v4 = v2 ? v3 : v0;
        y0[i] = v4;
    }
}

static void V(threshold_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 x1 = *(const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x1;
        const i32 v2 = v0 <= v1;
        const f64 v3 = x2;
        const f64 v4 = v2 ? v3 : v0;
        y0[i] = v4;
    }
}

static void V(threshold_backward_default_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    f32 *y0 = (f32 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x1[i];
        const f32 v1 = x2;
        const i32 v2 = v0 <= v1;
        const f32 v3 = x0[i];
        const f32 v4 = v2 ? 0.0f : v3;
        y0[i] = v4;
    }
}

static void V(threshold_backward_default_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    f64 *y0 = (f64 *)a[3];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x1[i];
        const f64 v1 = x2;
        const i32 v2 = v0 <= v1;
        const f64 v3 = x0[i];
        const f64 v4 = v2 ? 0.0 : v3;
        y0[i] = v4;
    }
}

static void V(adam_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 *x3 = (const f32 *)a[3];
    const f32 x4 = *(const f32 *)a[4];
    const f32 x5 = *(const f32 *)a[5];
    const f32 x6 = *(const f32 *)a[6];
    const f32 x7 = *(const f32 *)a[7];
    const f32 x8 = *(const f32 *)a[8];
    const f32 x9 = *(const f32 *)a[9];
    const f32 x10 = *(const f32 *)a[10];
    const f32 x11 = *(const f32 *)a[11];
    f32 *y0 = (f32 *)a[12];
    f32 *y1 = (f32 *)a[13];
    f32 *y2 = (f32 *)a[14];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x5;
        const f32 v2 = v0 * v1;
        const f32 v3 = x11;
        const f32 v4 = x1[i];
        const f32 v5 = x3[i];
        const f32 v6 = x4;
        const f32 v7 = v2 * v6;
        const f32 v8 = v5 + v7;
        const f32 v9 = v8 - v4;
        const f32 v10 = x6;
        const f32 v11 = v9 * v10;
        const f32 v12 = v4 + v11;
        const f32 v13 = v3 * v12;
        const f32 v14 = x2[i];
        const f32 v15 = x7;
        const f32 v16 = v14 * v15;
        const f32 v17 = x8;
        const f32 v18 = v17 * v8;
        const f32 v19 = v18 * v8;
        const f32 v20 = v16 + v19;
        const f32 v21 = __builtin_sqrtf(v20);
        const f32 v22 = x9;
        const f32 v23 = v21 / v22;
        const f32 v24 = x10;
        const f32 v25 = v23 + v24;
        const f32 v26 = v13 / v25;
        const f32 v27 = v2 - v26;
        y0[i] = v27;
        y1[i] = v12;
        y2[i] = v20;
    }
}

static void V(adam_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 *x3 = (const f64 *)a[3];
    const f64 x4 = *(const f64 *)a[4];
    const f64 x5 = *(const f64 *)a[5];
    const f64 x6 = *(const f64 *)a[6];
    const f64 x7 = *(const f64 *)a[7];
    const f64 x8 = *(const f64 *)a[8];
    const f64 x9 = *(const f64 *)a[9];
    const f64 x10 = *(const f64 *)a[10];
    const f64 x11 = *(const f64 *)a[11];
    f64 *y0 = (f64 *)a[12];
    f64 *y1 = (f64 *)a[13];
    f64 *y2 = (f64 *)a[14];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x5;
        const f64 v2 = v0 * v1;
        const f64 v3 = x11;
        const f64 v4 = x1[i];
        const f64 v5 = x3[i];
        const f64 v6 = x4;
        const f64 v7 = v2 * v6;
        const f64 v8 = v5 + v7;
        const f64 v9 = v8 - v4;
        const f64 v10 = x6;
        const f64 v11 = v9 * v10;
        const f64 v12 = v4 + v11;
        const f64 v13 = v3 * v12;
        const f64 v14 = x2[i];
        const f64 v15 = x7;
        const f64 v16 = v14 * v15;
        const f64 v17 = x8;
        const f64 v18 = v17 * v8;
        const f64 v19 = v18 * v8;
        const f64 v20 = v16 + v19;
        const f64 v21 = __builtin_sqrt(v20);
        const f64 v22 = x9;
        const f64 v23 = v21 / v22;
        const f64 v24 = x10;
        const f64 v25 = v23 + v24;
        const f64 v26 = v13 / v25;
        const f64 v27 = v2 - v26;
        y0[i] = v27;
        y1[i] = v12;
        y2[i] = v20;
    }
}

static void V(sgd_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 x2 = *(const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    f32 *y0 = (f32 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x3;
        const f32 v2 = x1[i];
        const f32 v3 = x2;
        const f32 v4 = v0 * v3;
        const f32 v5 = v2 + v4;
        const f32 v6 = v1 * v5;
        const f32 v7 = v0 - v6;
        y0[i] = v7;
    }
}

static void V(sgd_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 x2 = *(const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    f64 *y0 = (f64 *)a[4];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x3;
        const f64 v2 = x1[i];
        const f64 v3 = x2;
        const f64 v4 = v0 * v3;
        const f64 v5 = v2 + v4;
        const f64 v6 = v1 * v5;
        const f64 v7 = v0 - v6;
        y0[i] = v7;
    }
}

static void V(momentum_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    const f32 x4 = *(const f32 *)a[4];
    const f32 x5 = *(const f32 *)a[5];
    const f32 x6 = *(const f32 *)a[6];
    f32 *y0 = (f32 *)a[7];
    f32 *y1 = (f32 *)a[8];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x6;
        const f32 v2 = x1[i];
        const f32 v3 = x4;
        const f32 v4 = v2 * v3;
        const f32 v5 = x2[i];
        const f32 v6 = x3;
        const f32 v7 = v0 * v6;
        const f32 v8 = v5 + v7;
        const f32 v9 = x5;
        const f32 v10 = v8 * v9;
        const f32 v11 = v4 + v10;
        const f32 v12 = v1 * v11;
        const f32 v13 = v0 - v12;
        y0[i] = v13;
        y1[i] = v11;
    }
}

static void V(momentum_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    const f64 x4 = *(const f64 *)a[4];
    const f64 x5 = *(const f64 *)a[5];
    const f64 x6 = *(const f64 *)a[6];
    f64 *y0 = (f64 *)a[7];
    f64 *y1 = (f64 *)a[8];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x6;
        const f64 v2 = x1[i];
        const f64 v3 = x4;
        const f64 v4 = v2 * v3;
        const f64 v5 = x2[i];
        const f64 v6 = x3;
        const f64 v7 = v0 * v6;
        const f64 v8 = v5 + v7;
        const f64 v9 = x5;
        const f64 v10 = v8 * v9;
        const f64 v11 = v4 + v10;
        const f64 v12 = v1 * v11;
        const f64 v13 = v0 - v12;
        y0[i] = v13;
        y1[i] = v11;
    }
}

static void V(nesterov_f)(i64 n, char *const *a) {
    const f32 *x0 = (const f32 *)a[0];
    const f32 *x1 = (const f32 *)a[1];
    const f32 *x2 = (const f32 *)a[2];
    const f32 x3 = *(const f32 *)a[3];
    const f32 x4 = *(const f32 *)a[4];
    const f32 x5 = *(const f32 *)a[5];
    const f32 x6 = *(const f32 *)a[6];
    f32 *y0 = (f32 *)a[7];
    f32 *y1 = (f32 *)a[8];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f32 v0 = x0[i];
        const f32 v1 = x6;
        const f32 v2 = x2[i];
        const f32 v3 = x3;
        const f32 v4 = v0 * v3;
        const f32 v5 = v2 + v4;
        const f32 v6 = x1[i];
        const f32 v7 = x4;
        const f32 v8 = v6 * v7;
        const f32 v9 = x5;
        const f32 v10 = v5 * v9;
        const f32 v11 = v8 + v10;
        const f32 v12 = v11 * v7;
        const f32 v13 = v5 + v12;
        const f32 v14 = v1 * v13;
        const f32 v15 = v0 - v14;
        y0[i] = v15;
        y1[i] = v11;
    }
}

static void V(nesterov_d)(i64 n, char *const *a) {
    const f64 *x0 = (const f64 *)a[0];
    const f64 *x1 = (const f64 *)a[1];
    const f64 *x2 = (const f64 *)a[2];
    const f64 x3 = *(const f64 *)a[3];
    const f64 x4 = *(const f64 *)a[4];
    const f64 x5 = *(const f64 *)a[5];
    const f64 x6 = *(const f64 *)a[6];
    f64 *y0 = (f64 *)a[7];
    f64 *y1 = (f64 *)a[8];
    SIMD
    for (i64 i = 0; i < n; i++) {
        const f64 v0 = x0[i];
        const f64 v1 = x6;
        const f64 v2 = x2[i];
        const f64 v3 = x3;
        const f64 v4 = v0 * v3;
        const f64 v5 = v2 + v4;
        const f64 v6 = x1[i];
        const f64 v7 = x4;
        const f64 v8 = v6 * v7;
        const f64 v9 = x5;
        const f64 v10 = v5 * v9;
        const f64 v11 = v8 + v10;
        const f64 v12 = v11 * v7;
        const f64 v13 = v5 + v12;
        const f64 v14 = v1 * v13;
        const f64 v15 = v0 - v14;
        y0[i] = v15;
        y1[i] = v11;
    }
}
#endif
