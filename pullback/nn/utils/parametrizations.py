"""Ready parametrizations: orthogonal matrices, weight norm, spectral norm."""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...ops.system.operator import public
from .. import functional as F
from ..module import Module
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, output_dim, power_iterations
from .weight_norm import norm_except_dim, normed_weight

_MAPS = ("matrix_exp", "cayley", "householder")


def _torch(name: str):
    return public("torch", name)


def _is_orthogonal(q: Tensor) -> bool:
    rows, columns = q.size(-2), q.size(-1)
    identity = _torch("eye")(columns, dtype=q.dtype, device=q.device)
    return _torch("allclose")(q.mH @ q, identity, atol=10.0 * rows * dtypes.finfo(q.dtype).eps)


def _orthogonalized(a: Tensor) -> Tensor:
    """The Q of a tall matrix, for an R whose diagonal is real and not negative."""
    x, tau = _torch("geqrf")(a)
    q = public("linalg", "householder_product")(x, tau)
    return q * x.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """A matrix with orthonormal columns (or rows, where it is wide)."""

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        # Householder reflections of a complex matrix do not reach every unitary one.
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        x = X.mT if wide else X
        q = self._reflections(x) if self.orthogonal_map == "householder" else self._from_skew(x)
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if wide else q

    def _from_skew(self, x: Tensor) -> Tensor:
        """A rotation from the skew part of a lower triangle."""
        n, k = x.size(-2), x.size(-1)
        x = x.tril()
        if n != k:
            x = _torch("cat")([x, x.new_zeros(n, n - k).expand(*x.shape[:-2], -1, -1)], dim=-1)
        a = x - x.mH
        if self.orthogonal_map == "matrix_exp":
            q = _torch("matrix_exp")(a)
        else:
            identity = _torch("eye")(n, dtype=a.dtype, device=a.device)
            q = public("linalg", "solve")(identity - 0.5 * a, identity + 0.5 * a)
        return q[..., :k] if n != k else q

    def _reflections(self, x: Tensor) -> Tensor:
        a = x.tril(diagonal=-1)
        tau = 2.0 / (1.0 + (a * a).sum(dim=-2))
        q = public("linalg", "householder_product")(a, tau)
        return q * x.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)  # the diagonal holds signs

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        wide = Q.size(-2) < Q.size(-1)
        q = Q.mT if wide else Q
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            a, tau = _torch("geqrf")(q)
            signs = a.diagonal(dim1=-2, dim2=-1).sign()
            signs = _torch("where")(tau == 0.0, -signs, signs)
            a = _torch("diagonal_scatter")(a, signs, dim1=-2, dim2=-1)
            return a.mT if wide else a
        self.base = self._base_from(q)
        start = _torch("zeros_like")(Q)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _base_from(self, q: Tensor) -> Tensor:
        n, k = q.size(-2), q.size(-1)
        if n == k:
            return q.clone() if _is_orthogonal(q) else _orthogonalized(q)
        more = _torch("randn")(*q.size()[:-2], n, n - k, dtype=q.dtype, device=q.device)
        return _orthogonalized(_torch("cat")([q, more], dim=-1))


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix orthogonal."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    result = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, result, unsafe=True)


class _WeightNorm(Module):
    """A weight from its sizes and directions."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return normed_weight(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Express a weight by its size and direction."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older(state_dict, prefix: str, *rest) -> None:
        # State of the hook-based form: weight_g and weight_v.
        keys = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(k in state_dict for k in keys):
            for i, key in enumerate(keys):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_older)
    return module


class _SpectralNorm(Module):
    """A weight over its largest singular value, whose vectors are buffers improved at every read in training."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        rank = weight.ndim
        if dim >= rank or dim < -rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{rank}, {rank - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + rank
        self.eps = eps
        if rank > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.size()
            with no_grad():
                u, v = matrix.new_empty(rows).normal_(0, 1), matrix.new_empty(columns).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            power_iterations(matrix, self._u, self._v, 15, eps, v_first=False)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iterations(matrix, self._u, self._v, self.n_power_iterations, self.eps, v_first=False)
        u, v = self._u.clone(), self._v.clone()
        return weight / _torch("vdot")(u, _torch("mv")(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        return value  # any value may be assigned; reading it gives its normalization


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Keep the largest singular value of a weight at 1."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    result = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    return register_parametrization(module, name, result)
