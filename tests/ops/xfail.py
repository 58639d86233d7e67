"""Checks that an operator does not pass, each with the reason in words: (operator, check) -> reason.

A test of the table fails the day one of these passes, and when an entry names what is not there.
"""

from __future__ import annotations

DATA = "the shape of the result depends on the numbers: there is no metadata without them, and the error says so"
LENGTHS = "lengths come as a tensor and are read: tensors without data have none, and the error says so"
MEMORY = "reads memory as it lies: other strides are another question, or refused with PyTorch's words"
ONCE = "differentiable once, as in PyTorch: the derivative of its backward is not implemented, and the error says so"
AS_PYTORCH = "gives `self` the gradient that PyTorch gives it, which is not the derivative (see its rule)"
COUNTS = "counts have no derivative that is built, as in PyTorch, and the error says so"
COUPLED = "its last argument is a function of the second: mapped over alone, they no longer fit"

XFAIL: dict[tuple[str, str], str] = {
    **{(k, c): DATA for k in ("bincount", "index.Tensor", "masked_select") for c in ("meta", "layout")},
    **{(k, c): LENGTHS for k in ("rnn_tanh.data", "rnn_relu.data", "lstm.data", "gru.data") for c in ("meta", "layout", "vmap")},
    **{(k, "layout"): "scalars that do not lie in order are refused" for k in ("_foreach_addcmul.Tensor", "_foreach_addcdiv.Tensor")},
    **{(k, "layout"): MEMORY for k in ("view", "_reshape_alias", "as_strided", "view_as", "view_as_complex", "view.dtype")},
    **{(k, "layout"): MEMORY for k in ("as_strided_scatter", "as_strided_copy", "_reshape_alias_copy", "view_as_complex_copy", "view_copy.dtype")},
    **{(k, c): ONCE for k in ("_ctc_loss", "_ctc_loss.Tensor", "ctc_loss.IntList", "ctc_loss.Tensor") for c in ("second_gradient", "forward")},
    **{(k, c): ONCE for k in ("grid_sampler_2d", "grid_sampler_3d", "grid_sampler") for c in ("second_gradient", "forward")},
    **{("segment_reduce", c): ONCE for c in ("second_gradient", "forward")},
    **{(k, c): AS_PYTORCH for k in ("_as_strided_write", "as_strided_scatter") for c in ("gradient", "forward")},
    **{(k, c): COUNTS for k in ("_histogramdd_from_bin_cts", "histogram.bins_tensor", "histogram.bin_ct") for c in ("gradient", "second_gradient", "forward", "batched_gradient")},
    ("cumprod_backward", "vmap"): COUPLED,
}  # fmt: skip
