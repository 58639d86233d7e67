"""What a derivative is taken of, where that is not the operator alone.

FIXED: arguments that a gradient is not asked of (labels, statistics, what PyTorch's derivatives leave out).
BEFORE: what makes proper arguments of arbitrary ones (a Hermitian matrix of any, statistics of the data they are of):
differences are taken through it, since off the proper arguments the operator means something else.
AFTER: what makes of the results that which is determined (eigenvectors are, up to a factor of absolute value one).
"""

from __future__ import annotations

import pullback as torch
from pullback.ops.system.operator import Operator

NORM_BACKWARD = ("mean", "rstd")
STATISTICS = ("running_mean", "running_var")

FIXED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("hinge_embedding_loss", "cosine_embedding_loss", "soft_margin_loss_backward", "margin_ranking_loss"), ("target",)),
    **dict.fromkeys(("nll_loss", "nll_loss2d", "nll_loss_nd", "cross_entropy_loss", "multi_margin_loss"), ("weight",)),
    **dict.fromkeys(("batch_norm", "_batch_norm_impl_index", "instance_norm"), STATISTICS),
    **dict.fromkeys(("special_gammainc", "special_gammaincc"), ("self",)),
    "linalg_ldl_factor": ("self",),
    "cov": ("aweights",),
}  # fmt: skip


def _hermitian(self, *rest):
    return (self + self.mH) / 2, *rest


def _triangular(upper_at: int, at: int = 0):
    def before(*args):
        result = list(args)
        factor = result[at].triu() if args[upper_at] else result[at].tril()
        if factor.is_complex():  # the diagonal of a Cholesky factor is real
            factor = factor - torch.diag_embed(torch.diagonal(factor, 0, -2, -1).imag * 1j)
        result[at] = factor
        return tuple(result)

    return before


def _layer_statistics(grad_out, input, shape, mean, rstd, *rest):
    dims = tuple(range(-len(shape), 0))
    var = input.var(dims, correction=0, keepdim=True)
    return grad_out, input, shape, input.mean(dims, keepdim=True), (var + 1e-5).rsqrt(), *rest


def _batch_statistics(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask):
    mean, var = input.mean((0, 2)), input.var((0, 2), correction=0)
    return grad_out, input, weight, running_mean, running_var, mean, (var + eps).rsqrt(), train, eps, mask


def _group_statistics(grad_out, input, mean, rstd, weight, n, c, hxw, group, mask):
    parts = input.reshape(n, group, -1)
    return grad_out, input, parts.mean(-1), (parts.var(-1, correction=0) + 1e-5).rsqrt(), weight, n, c, hxw, group, mask


def _probabilities(log_probs, *rest):
    return log_probs.log_softmax(2), *rest


def _unpadded(weight, indices, padding_idx, *rest):
    if padding_idx >= 0:
        keep = torch.ones(weight.shape[0], 1, dtype=torch.float64)
        keep[padding_idx] = 0
        weight = weight * keep
    return weight, indices, padding_idx, *rest


BEFORE = {
    **dict.fromkeys(("linalg_cholesky_ex", "linalg_cholesky", "cholesky", "_linalg_eigh", "linalg_eigh", "linalg_eigvalsh"), _hermitian),
    "linalg_pinv.atol_rtol_tensor": lambda self, atol, rtol, hermitian: (*(_hermitian(self) if hermitian else (self,)), atol, rtol, hermitian),
    "cholesky_inverse": _triangular(1), "cholesky_solve": _triangular(2, 1),
    "native_layer_norm_backward": _layer_statistics, "native_batch_norm_backward": _batch_statistics,
    "native_group_norm_backward": _group_statistics,
    **dict.fromkeys(("_ctc_loss", "_ctc_loss.Tensor", "ctc_loss.IntList", "ctc_loss.Tensor"), _probabilities),
    "embedding": _unpadded,
}  # fmt: skip


def _vectors_up_to_phase(values, vectors):
    return values, vectors.abs()


def _singular_up_to_phase(u, s, vh):
    return u.abs(), s, vh.abs()


AFTER = {
    **dict.fromkeys(("_linalg_eigh", "linalg_eigh", "linalg_eig"), _vectors_up_to_phase),
    **dict.fromkeys(("_linalg_svd", "linalg_svd", "svd"), _singular_up_to_phase),
}  # fmt: skip


def key_of(op: Operator) -> str:
    return op.name if op.overload == "default" else f"{op.name}.{op.overload}"
