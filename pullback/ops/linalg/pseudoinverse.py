"""Pseudoinverses and ranks: what is left of an inverse where singular values are too small.

In: stacks of matrices, absolute and relative tolerances (numbers or tensors, one per matrix), and whether the matrices
are Hermitian, which lets eigenvalues serve for singular values.
Out: pseudoinverses; ranks as int64.
Always: without tolerances, singular values up to eps * max(m, n) times the largest count as zero; with an absolute one
above zero, the relative one is zero unless it is given.
"""

from __future__ import annotations

from typing import Any

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..system.calls import front
from . import checks
from . import spectral_kernels as kernels
from .algebra import mH, spec
from .lapack import adjoint
from .norms import call
from .spectral import eigvalsh, svdvals

Tolerance = Any


# ---- the pseudoinverse
def _check_pinv(self: Tensor, atol: Tolerance, rtol: Tolerance, hermitian: bool) -> None:
    if self.ndim < 2 or self.dtype not in checks.LAPACK_DTYPES:
        raise RuntimeError(
            f"linalg.pinv({self.dtype.scalar_name}{{{list(self.shape)}}}): expected a tensor with 2 or more dimensions "
            "of float, double, cfloat or cdouble types"
        )
    refuse_complex("torch.linalg.pinv", atol, rtol)
    if hermitian:
        checks.is_square(self, "linalg.eigh")


def refuse_complex(name: str, atol: Tolerance, rtol: Tolerance) -> None:
    for t, what in ((atol, "atol"), (rtol, "rtol")):
        if isinstance(t, Tensor) and t.dtype.is_complex:
            raise RuntimeError(f"{name}: {what} tensor of complex type is not supported. Got {t.dtype.scalar_name}")


def _limits(xp: Any, a: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The tolerances as arrays, defaults filled in."""
    absolute = xp.asarray(0.0 if atol is None else atol)
    if rtol is not None:
        return absolute, xp.asarray(rtol)
    default = float(xp.finfo(a.dtype).eps) * max(a.shape[-2:])
    return absolute, xp.where(absolute > 0, 0.0, default)


def _pinv_kernel(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not a.size:
        return xp.empty((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        values, right = kernels.eigh(xp, a, "L", True)
        left = adjoint(xp, right)
    else:
        u, values, vh = kernels.svd(xp, a, False, True)
        left, right = adjoint(xp, u), adjoint(xp, vh)
    absolute, relative = _limits(xp, a, atol, rtol)
    size = xp.abs(values)
    limit = xp.maximum(absolute, relative * size.max(-1))[..., None]
    inverse = xp.where(size > limit, 1 / xp.where(size > limit, values, 1), 0).astype(values.dtype)
    return (right * inverse[..., None, :]) @ left


def pinv_vjp(g: Tensor, inverse: Tensor, a: Tensor) -> Tensor:
    """The gradient of A from that of P = A^+, where the rank does not change."""
    p_h, g_h = mH(inverse), mH(g)
    around = -(p_h @ (g @ p_h))
    left = (g_h - a @ (inverse @ g_h)) @ inverse @ p_h
    right = p_h @ (inverse @ (g_h - (g_h @ inverse) @ a))
    return around + left + right


def _pinv_vmap(args: tuple, dims: tuple, size: int) -> tuple[Tensor, int] | None:
    if any(t is not None and (t.ndim or d is not None) for t, d in zip(args[1:3], dims[1:3])):
        return None  # tolerances of their own for each matrix
    return pinv(args[0].movedim(dims[0], 0), atol=args[1], rtol=args[2], hermitian=args[3]), 0


pinv = operator(
    "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    check=_check_pinv,
    kernel=_pinv_kernel,
    meta=lambda self, atol, rtol, hermitian: spec(self, (*self.shape[:-2], self.shape[-1], self.shape[-2])),
    vjp={"self": lambda g, self, out: pinv_vjp(g, out, self)},
    vmap=_pinv_vmap,
    function=False,
    cost="compute",
)


def _as_tensor(value: Tolerance, like: Tensor) -> Tensor | None:
    """A tolerance as a real tensor of the matrix's precision."""
    if value is None or isinstance(value, Tensor):
        return value
    return like.new_full((), float(value), dtype=like.dtype.to_real())


@composite(
    "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor",
    function=False,
)
def pinv_float(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool) -> Tensor:
    _check_pinv(self, None, None, hermitian)
    return pinv(self, atol=_as_tensor(atol, self), rtol=_as_tensor(rtol, self), hermitian=hermitian)


@composite("linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor", function=False)
def pinv_rcond(self: Tensor, rcond: float, hermitian: bool) -> Tensor:
    return pinv_float(self, atol=0.0, rtol=rcond, hermitian=hermitian)


@composite("linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor", function=False)
def pinv_rcond_tensor(self: Tensor, rcond: Tensor, hermitian: bool) -> Tensor:
    return pinv(self, atol=_as_tensor(0.0, self), rtol=rcond, hermitian=hermitian)


@front("linalg.pinv")
def pinv_function(
    input: Tensor,
    rcond: Tolerance = None,
    hermitian: bool = False,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    out: Tensor | None = None,
) -> Tensor:
    """The Moore-Penrose inverse."""
    if rcond is not None:
        return call(pinv_rcond_tensor if isinstance(rcond, Tensor) else pinv_rcond, (input, rcond, hermitian), {}, out)
    options = {"atol": atol, "rtol": rtol, "hermitian": hermitian}
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor):
        options |= {"atol": _as_tensor(atol, input), "rtol": _as_tensor(rtol, input)}
        return call(pinv, (input,), options, out)
    return call(pinv_float, (input,), options, out)


@composite("pinverse(Tensor self, float rcond=1e-15) -> Tensor", autocast_cpu="float32")
def pinverse(self: Tensor, rcond: float) -> Tensor:
    return pinv_rcond(self, rcond, False)


# ---- ranks
@composite(
    "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) "
    "-> Tensor",
    function=False,
)
def matrix_rank(input: Tensor, atol: Tensor | None, rtol: Tensor | None, hermitian: bool) -> Tensor:
    name = "torch.linalg.matrix_rank"
    checks.has_rank(input, name, "input")
    refuse_complex(name, atol, rtol)
    if input.dtype not in checks.LAPACK_DTYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if not input.numel():
        return input.new_zeros(tuple(input.shape[:-2]), dtype=dtypes.int64)
    values = eigvalsh(input).abs() if hermitian else svdvals(input)
    largest = values.amax(-1)
    absolute = largest * 0 if atol is None else atol
    if rtol is None:
        default = dtypes.finfo(input.dtype).eps * max(input.shape[-2:])
        rtol = (absolute <= 0).to(values.dtype) * default
    limit = (rtol * largest).maximum(absolute.to(values.dtype))
    return (values > limit.unsqueeze(-1)).sum(-1)


@composite(
    "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) "
    "-> Tensor",
    function=False,
)
def matrix_rank_float(self: Tensor, atol: float | None, rtol: float | None, hermitian: bool) -> Tensor:
    limits = {"atol": atol, "rtol": rtol}
    return matrix_rank(self, **{k: _as_tensor(v, self) for k, v in limits.items()}, hermitian=hermitian)


@composite("linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor", function=False)
def matrix_rank_tol(self: Tensor, tol: float, hermitian: bool) -> Tensor:
    return matrix_rank_float(self, atol=tol, rtol=0.0, hermitian=hermitian)


@composite("linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor", function=False)
def matrix_rank_tol_tensor(input: Tensor, tol: Tensor, hermitian: bool) -> Tensor:
    return matrix_rank(input, atol=tol, rtol=_as_tensor(0.0, input), hermitian=hermitian)


@front("linalg.matrix_rank")
def matrix_rank_function(
    input: Tensor,
    tol: Tolerance = None,
    hermitian: bool = False,
    *,
    atol: Tolerance = None,
    rtol: Tolerance = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values are not negligible."""
    if tol is not None:
        op = matrix_rank_tol_tensor if isinstance(tol, Tensor) else matrix_rank_tol
        return call(op, (input, tol, hermitian), {}, out)
    options = {"atol": atol, "rtol": rtol, "hermitian": hermitian}
    if isinstance(atol, Tensor) or isinstance(rtol, Tensor):
        options |= {"atol": _as_tensor(atol, input), "rtol": _as_tensor(rtol, input)}
        return call(matrix_rank, (input,), options, out)
    return call(matrix_rank_float, (input,), options, out)
