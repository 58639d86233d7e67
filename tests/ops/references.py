"""Values by NumPy and SciPy: operator -> function of its arguments (arrays for tensors), in schema order.

Goes into `test_table.test_reference`. Always holds: no reference is computed by the project itself.
"""

from __future__ import annotations

import numpy as np
import scipy.fft
import scipy.linalg
import scipy.special as sp


def _ignoring(function):
    """Without the arguments that do not change the value."""
    return lambda x, *rest: function(x)


UNARY = {
    "exp": np.exp, "exp2": np.exp2, "expm1": lambda x: np.expm1(x), "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "neg": np.negative, "abs": np.abs, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": np.round, "frac": lambda x: x - np.trunc(x), "sign": np.sign,
    "reciprocal": lambda x: 1 / x, "square": np.square, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "angle": np.angle,
    "deg2rad": np.deg2rad, "rad2deg": np.rad2deg, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "signbit": np.signbit, "logical_not": np.logical_not, "digamma": sp.digamma, "lgamma": sp.gammaln, "erf": sp.erf,
    "erfc": sp.erfc, "erfinv": sp.erfinv, "special_erfcx": sp.erfcx, "special_ndtr": sp.ndtr, "special_ndtri": sp.ndtri,
    "special_log_ndtr": sp.log_ndtr, "special_entr": sp.entr, "sinc": np.sinc, "special_bessel_j0": sp.j0,
    "special_bessel_j1": sp.j1, "special_bessel_y0": sp.y0, "special_bessel_y1": sp.y1, "i0": sp.i0,
    "special_i0e": sp.i0e, "special_i1": sp.i1, "special_i1e": sp.i1e, "special_modified_bessel_i0": sp.i0,
    "special_modified_bessel_i1": sp.i1, "special_modified_bessel_k0": sp.k0, "special_modified_bessel_k1": sp.k1,
    "special_scaled_modified_bessel_k0": sp.k0e, "special_scaled_modified_bessel_k1": sp.k1e,
    "special_spherical_bessel_j0": lambda x: sp.spherical_jn(0, x), "special_airy_ai": lambda x: sp.airy(x)[0],
    "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x / (1 + np.exp(-x)), "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6, "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)), "relu6": lambda x: np.clip(x, 0, 6),
}  # fmt: skip

BINARY = {
    "add.Tensor": lambda x, y, alpha: x + alpha * y, "sub.Tensor": lambda x, y, alpha: x - alpha * y, "mul.Tensor": np.multiply,
    "rsub.Tensor": lambda x, y, alpha: y - alpha * x, "div.Tensor": np.true_divide, "floor_divide": np.floor_divide,
    "remainder.Tensor": np.remainder, "fmod.Tensor": np.fmod, "pow.Tensor_Tensor": np.power, "atan2": np.arctan2,
    "pow.Tensor_Scalar": np.power, "pow.Scalar": np.power, "hypot": np.hypot, "maximum": np.maximum, "minimum": np.minimum,
    "fmax": np.fmax, "fmin": np.fmin, "logaddexp": lambda x, y: np.log(np.exp(x) + np.exp(y)), "logaddexp2": np.logaddexp2, "gcd": np.gcd, "lcm": np.lcm,
    "eq.Tensor": np.equal, "ne.Tensor": np.not_equal, "lt.Tensor": np.less, "le.Tensor": np.less_equal,
    "gt.Tensor": np.greater, "ge.Tensor": np.greater_equal, "bitwise_and.Tensor": np.bitwise_and,
    "bitwise_or.Tensor": np.bitwise_or, "bitwise_xor.Tensor": np.bitwise_xor, "bitwise_left_shift.Tensor": np.left_shift,
    "bitwise_right_shift.Tensor": np.right_shift, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "copysign.Tensor": np.copysign, "nextafter": np.nextafter, "heaviside": np.heaviside,
    "igamma": sp.gammainc, "igammac": sp.gammaincc, "special_zeta": sp.zeta, "xlogy.Tensor": sp.xlogy,
    "special_xlog1py": sp.xlog1py, "ldexp.Tensor": lambda x, y: x * np.exp2(y), "polygamma": sp.polygamma,
    "addcmul": lambda x, a, b, v: x + v * a * b, "addcdiv": lambda x, a, b, v: x + v * a / b,
    "lerp.Scalar": lambda x, y, w: x + w * (y - x), "lerp.Tensor": lambda x, y, w: x + w * (y - x),
    "where.self": np.where, "masked_fill.Scalar": lambda x, mask, v: np.where(mask, v, x), "complex": lambda a, b: a + 1j * b,
    "polar": lambda r, a: r * np.exp(1j * a), "clamp": lambda x, low, high: np.clip(x, low, high),
    "special_hermite_polynomial_h": lambda x, n: sp.eval_hermite(np.asarray(n).astype(int), x),
    "special_legendre_polynomial_p": lambda x, n: sp.eval_legendre(np.asarray(n).astype(int), x),
    "special_chebyshev_polynomial_t": lambda x, n: sp.eval_chebyt(np.asarray(n).astype(int), x),
    "special_laguerre_polynomial_l": lambda x, n: sp.eval_laguerre(np.asarray(n).astype(int), x),
}  # fmt: skip


def _over(function):
    """A NumPy reduction called as (x, dim, keepdim, ...)."""

    def reference(x, dim, keepdim=False, *rest):
        axis = tuple(dim) if isinstance(dim, tuple) else dim
        axis = None if axis == () else axis
        if not np.ndim(x):
            return function(np.reshape(x, (1,)), axis=0, keepdims=False)
        return function(x, axis=axis, keepdims=keepdim)

    return reference


def _variance(root: bool):
    def reference(x, dim, correction, keepdim):
        result = np.var(x, axis=dim or None, ddof=1 if correction is None else correction, keepdims=keepdim)
        return np.sqrt(result) if root else result

    return reference


def _along(function):
    return lambda x, dim, *rest: (
        function(x, axis=dim) if np.ndim(x) else function(np.reshape(x, (1,)), axis=0).reshape(())
    )


REDUCTIONS = {
    "sum": _ignoring(np.sum), "prod": _ignoring(np.prod), "sum.dim_IntList": _over(np.sum), "prod.dim_int": _over(np.prod),
    "mean.dim": _over(np.mean), "nansum": _over(np.nansum), "amax": _over(np.max), "amin": _over(np.min), "max": np.max,
    "min": np.min, "all": np.all, "any": np.any, "all.dim": _over(np.all), "any.dim": _over(np.any),
    "all.dims": _over(np.all), "any.dims": _over(np.any), "logsumexp": _over(sp.logsumexp), "var.correction": _variance(False),
    "std.correction": _variance(True), "cumsum": _along(np.cumsum), "cumprod": _along(np.cumprod),
    "logcumsumexp": _along(lambda x, axis: np.logaddexp.accumulate(x, axis=axis) if x.dtype.kind == "f" else np.log(np.cumsum(np.exp(x), axis=axis))),
    "_softmax": _along(sp.softmax), "_log_softmax": _along(sp.log_softmax),
    "argsort.stable": lambda x, stable, dim, descending: np.argsort(-x if descending else x, axis=dim, kind="stable") if np.ndim(x) else np.zeros((), int),
}  # fmt: skip

ALGEBRA = {
    "mm": np.matmul, "bmm": np.matmul, "mv": np.matmul, "dot": np.dot, "vdot": np.vdot, "matmul": np.matmul, "kron": np.kron,
    "addmm": lambda c, a, b, beta, alpha: beta * c + alpha * a @ b, "addmv": lambda c, a, b, beta, alpha: beta * c + alpha * a @ b,
    "baddbmm": lambda c, a, b, beta, alpha: beta * c + alpha * a @ b, "addr": lambda c, a, b, beta, alpha: beta * c + alpha * np.outer(a, b),
    "addbmm": lambda c, a, b, beta, alpha: beta * c + alpha * (a @ b).sum(0), "outer": np.outer, "inner": np.inner,
    "einsum": lambda equation, tensors, path: np.einsum(equation, *tensors), "linalg_det": np.linalg.det, "linalg_inv": np.linalg.inv,
    "linalg_matrix_power": np.linalg.matrix_power, "linalg_matrix_exp": scipy.linalg.expm, "linalg_eigvalsh": np.linalg.eigvalsh,
    "linalg_svdvals": lambda a, driver: np.linalg.svd(a, compute_uv=False), "linalg_cholesky": lambda a, upper: np.linalg.cholesky(a, upper=upper),
    "trace": np.trace, "linalg_slogdet": lambda a: tuple(np.linalg.slogdet(a)), "logdet": lambda a: np.log(np.linalg.det(a)),
    "linalg_pinv.atol_rtol_float": lambda a, atol, rtol, hermitian: np.linalg.pinv(a),
    "fft_fft": lambda x, n, dim, norm: np.fft.fft(x, n, dim, norm), "fft_ifft": lambda x, n, dim, norm: np.fft.ifft(x, n, dim, norm),
    "fft_rfft": lambda x, n, dim, norm: np.fft.rfft(x, n, dim, norm), "fft_irfft": lambda x, n, dim, norm: np.fft.irfft(x, n, dim, norm),
    "fft_hfft": lambda x, n, dim, norm: np.fft.hfft(x, n, dim, norm), "fft_ihfft": lambda x, n, dim, norm: np.fft.ihfft(x, n, dim, norm),
    "fft_fftn": lambda x, s, dim, norm: scipy.fft.fftn(x, s, dim, norm), "fft_irfftn": lambda x, s, dim, norm: scipy.fft.irfftn(x, s, dim, norm),
}  # fmt: skip

SHAPES = {
    "cat": lambda tensors, dim: np.concatenate([t for t in tensors if t.shape != (0,)], axis=dim), "stack": lambda tensors, dim: np.stack(tensors, axis=dim),
    "flip": lambda x, dims: np.flip(x, dims), "roll": lambda x, shifts, dims: np.roll(x, shifts if dims else shifts[0], dims or None),
    "tril": np.tril, "triu": np.triu, "repeat": np.tile, "diag": np.diag, "transpose.int": lambda x, a, b: np.swapaxes(x, a, b) if x.ndim else x,
    "permute": np.transpose, "gather": lambda x, dim, index, sparse: np.take_along_axis(x, index, dim) if x.ndim and index.shape[1 - dim] == x.shape[1 - dim] else x if not x.ndim else np.take_along_axis(x[tuple(slice(None) if d == dim else slice(index.shape[d]) for d in range(x.ndim))], index, dim),
    "index_select": lambda x, dim, index: np.take(x, index, axis=dim) if x.ndim else x, "take": lambda x, index: x.reshape(-1)[index],
    "masked_select": lambda x, mask: x[np.broadcast_to(mask, x.shape)], "searchsorted.Scalar": lambda a, v, *rest: np.searchsorted(a, v),
    "bucketize.Tensor": lambda x, edges, out32, right: np.searchsorted(edges, x, side="right" if right else "left"),
    "isin.Tensor_Tensor": lambda x, y, unique, invert: np.isin(x, y, invert=invert), "bincount": lambda x, w, n: np.bincount(x, w, n),
    "cov": lambda x, correction, f, a: np.cov(x, ddof=correction, fweights=f, aweights=a), "corrcoef": np.corrcoef, "rot90": np.rot90,
    "diff": lambda x, n, dim, before, after: np.diff(x, n, dim, *(np._NoValue if v is None else v for v in (before, after))),
    "trapezoid.dx": lambda y, dx, dim: np.trapezoid(y, dx=dx, axis=dim), "trapezoid.x": lambda y, x, dim: np.trapezoid(y, x if x.ndim == y.ndim else x[:, None], axis=dim),
    "quantile.scalar": lambda x, q, dim, keepdim, interpolation: np.quantile(x, q, axis=dim, keepdims=keepdim, method=interpolation),
    "linspace": lambda a, b, n, *rest: np.linspace(a, b, n), "eye.m": lambda n, m, *rest: np.eye(n, m), "vander": lambda x, n, increasing: np.vander(x, n, increasing),
}  # fmt: skip

REFERENCES = {**{k: _ignoring(f) for k, f in UNARY.items()}, **BINARY, **REDUCTIONS, **ALGEBRA, **SHAPES}
