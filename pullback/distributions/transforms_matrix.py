"""Transforms of vectors and matrices: onto simplices, triangular factors, correlations, positive definite matrices."""

from __future__ import annotations

import math

from .. import Tensor, eye, finfo, linalg
from ..ops.system.operator import public
from . import constraints
from .parameters import tril_matrix_to_vec, vec_to_tril_matrix
from .transform import Transform
from .transforms_pointwise import _Plain, clipped_sigmoid, softplus

logsigmoid = public("nn.functional", "logsigmoid")
pad = public("nn.functional", "pad")


def _at_least(dims: int, shape) -> None:
    if len(shape) < dims:
        raise ValueError("Too few dimensions on input")


class CorrCholeskyTransform(Transform):
    """Vectors of length D(D-1)/2 onto Cholesky factors of D x D correlation matrices.

    Each number, squeezed into (-1, 1), says which share of what is left of its row's unit length goes to its place.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = finfo(x.dtype).eps
        r = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        t = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        # A place's share is taken from the square root of what its row has left, the first place of each from all.
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        shares = 0.5 * left.log().sum(-1)
        squeezing = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return shares + squeezing

    def forward_shape(self, shape):
        _at_least(1, shape)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        _at_least(2, shape)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_Plain):
    """Vectors onto the simplex by the softmax: not one to one, but coordinate by coordinate until the last step."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _at_least(1, shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """Vectors of length n onto the simplex with n + 1 corners: each number breaks off a share of what is left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _call(self, x):
        z = clipped_sigmoid(x - _even_shares(x))
        return pad(z, [0, 1], value=1) * pad((1 - z).cumprod(-1), [1, 0], value=1)

    def _inverse(self, y):
        first = y[..., :-1]
        left = (1 - first.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return first.log() - left.log() + _even_shares(first)

    def log_abs_det_jacobian(self, x, y):
        x = x - _even_shares(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _at_least(1, shape)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _at_least(1, shape)
        return shape[:-1] + (shape[-1] - 1,)


def _even_shares(x: Tensor) -> Tensor:
    """The offsets with which zeros break the stick into equal pieces: log of how many pieces are still to come."""
    n = x.shape[-1]
    return (n + 1 - x.new_ones(n).cumsum(-1)).log()


class LowerCholeskyTransform(_Plain):
    """Square matrices onto lower triangular ones with a positive diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Square matrices onto positive definite ones."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))
