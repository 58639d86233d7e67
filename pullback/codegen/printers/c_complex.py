"""Complex numbers in C: what a program with complex buffers has besides. Products by the schoolbook, quotients by Smith's way."""

from __future__ import annotations

COMPLEX = r"""
typedef float _Complex c64; typedef double _Complex c128;
#define ONE(N) double _Complex c##N(double _Complex); float _Complex c##N##f(float _Complex);
ONE(exp) ONE(log) ONE(sqrt) ONE(sin) ONE(cos) ONE(tan) ONE(sinh) ONE(cosh) ONE(tanh) ONE(asin) ONE(acos) ONE(atan) ONE(asinh) ONE(acosh) ONE(atanh)
double cabs(double _Complex); float cabsf(float _Complex);
#define COMPLEX(C, T, ABS) \
    INLINE C C##_multiply(C x, C y) { T a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y; \
        return __builtin_complex(a * c - b * d, a * d + b * c); } \
    INLINE C C##_true_divide(C x, C y) { T a = __real__ x, b = __imag__ x, c = __real__ y, d = __imag__ y; \
        if (ABS(c) >= ABS(d)) { if (c == 0 && d == 0) return __builtin_complex(a / ABS(c), b / ABS(c)); \
            T r = d / c, s = 1 / (c + d * r); return __builtin_complex((a + b * r) * s, (b - a * r) * s); } \
        T r = c / d, s = 1 / (d + c * r); return __builtin_complex((a * r + b) * s, (b * r - a) * s); }
COMPLEX(c64, f32, __builtin_fabsf) COMPLEX(c128, f64, __builtin_fabs)
"""
