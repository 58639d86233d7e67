"""The Wishart distribution, over positive definite matrices: sums of outer products of normal vectors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

from .. import Size, Tensor, arange, broadcast_shapes, cholesky_solve, eye, finfo, linalg, mvlgamma, nan, randn, tensor
from .. import tril_indices as below_diagonal
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .gaussian_algebra import factor_from_precision, half_log_det
from .parameters import Number, lazy_property

__all__ = ["Wishart"]


class Wishart(ExponentialFamily):
    """Matrices with mean df times the covariance, which is given by itself, its inverse or its Cholesky factor."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _batched = ("df", "covariance_matrix", "precision_matrix", "scale_tril", "_chi2")

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        name, matrix = _only_one(
            scale_tril=scale_tril, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix
        )
        batch_shape, self.df = _degrees(df, matrix)
        p = matrix.shape[-1]
        if self.df.le(p - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {p - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        if self.df.lt(p).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        self._unbroadcasted_scale_tril = {
            "scale_tril": lambda: matrix,
            "covariance_matrix": lambda: linalg.cholesky(matrix),
            "precision_matrix": lambda: factor_from_precision(matrix),
        }[name]()
        rows = arange(p, dtype=matrix.dtype, device=matrix.device)
        self._chi2 = Chi2(self.df.unsqueeze(-1) - rows.expand(batch_shape + (-1,)))

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._expand_matrix(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        return self._expand_matrix(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        identity = eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return self._expand_matrix(cholesky_solve(identity, factor))

    def _expand_matrix(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    def _df_of_matrices(self) -> Tensor:
        return self.df.view(self._batch_shape + (1, 1))

    @property
    def mean(self) -> Tensor:
        return self._df_of_matrices() * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, nan)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df_of_matrices() * (v.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Sequence[int] = Size()) -> Tensor:
        """L A Aᵀ Lᵀ with A lower triangular: roots of chi-squared numbers on the diagonal, normal ones below."""
        p = self._event_shape[-1]
        diagonal = self._chi2.rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=finfo(diagonal.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = below_diagonal(p, p, offset=-1)
        shape = Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        noise[..., i, j] = randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Sequence[int] = Size(), max_try_correction: int | None = None) -> Tensor:
        """Samples; those that are not positive definite are drawn again, up to `max_try_correction` times."""
        tries = 10 if max_try_correction is None else max_try_correction
        sample = self._bartlett_sampling(Size(sample_shape))
        # PyTorch draws good samples a second time before it looks for bad ones; so do we, for the same numbers.
        again = self._any_in_batch(self.support.check(sample))
        for _ in range(tries if again.any() else 0):
            new = self._bartlett_sampling(again[again].shape)
            sample[again] = new
            bad = self._any_in_batch(~self.support.check(new))
            if bad.any():
                warnings.warn("Singular sample detected.", stacklevel=2)
            left = again.clone()  # a new mask: the old one is needed for the gradient of the assignment
            left[again] = bad
            again = left
            if not again.any():
                break
        return sample

    def _any_in_batch(self, mask: Tensor) -> Tensor:
        return mask.amax([-1 - i for i in range(len(self._batch_shape))]) if self._batch_shape else mask

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        normalizer = -nu * (p * math.log(2) / 2 + half_log_det(factor)) - mvlgamma(nu / 2, p=p)
        power = (nu - p - 1) / 2 * linalg.slogdet(value).logabsdet
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return normalizer + power - trace / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        scale = (p + 1) * (p * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
        return scale + mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p) + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2)

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + mvlgamma(half, p=p)


def _only_one(**matrices: Tensor | None) -> tuple[str, Tensor]:
    given = [(name, value) for name, value in matrices.items() if value is not None]
    if len(given) != 1:
        raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
    if given[0][1].dim() < 2:
        raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
    return given[0]


def _degrees(df: Tensor | float, matrix: Tensor) -> tuple[Size, Tensor]:
    """The batch shape, and the degrees of freedom in it."""
    if isinstance(df, Number):
        df = tensor(df, dtype=matrix.dtype, device=matrix.device)
    batch_shape = broadcast_shapes(matrix.shape[:-2], df.shape)
    return batch_shape, df.expand(batch_shape)


def _mvdigamma(x: Tensor, p: int) -> Tensor:
    """The derivative of the logarithm of the multivariate gamma function."""
    if not constraints.everywhere(x.gt((p - 1) / 2)):
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return (x.unsqueeze(-1) - arange(p, dtype=x.dtype, device=x.device) / 2).digamma().sum(-1)
