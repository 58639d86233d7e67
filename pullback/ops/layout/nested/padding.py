"""Between packed values and a padded dense tensor: `_jagged_to_padded_dense_forward`, `_padded_dense_to_jagged_forward`.

Comes in: values whose first dimension is packed, with the offsets of the components; or a dense tensor (count, longest, ...).
Goes out: the other. Written in operators, so that gradients pass, whatever is padded left out. One ragged dimension is taken.
"""

from __future__ import annotations

from ....core.tensor import Tensor
from ...family.base import composite
from ...system.operator import exports


def _offsets(name: str, offsets) -> Tensor:
    if len(offsets) != 1:
        raise RuntimeError(f"{name}: only a single jagged dim is supported, got offsets of {len(offsets)}")
    if offsets[0].ndim != 1:
        raise RuntimeError(f"{name}: expected 1D offsets, got {offsets[0].ndim}D")
    return offsets[0]


def _steps(count: int, like: Tensor) -> Tensor:
    return exports["torch"]["arange"](count, device=like.device)


@composite(
    "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0.0) -> "
    "Tensor",
    function=False,
    method=False,
)
def jagged_to_padded(values, offsets, max_lengths, padding_value=0.0):
    starts = _offsets("_jagged_to_padded_dense_forward", offsets)
    if len(max_lengths) != 1:
        raise RuntimeError("_jagged_to_padded_dense_forward: only a single jagged dim is supported")
    step = _steps(max_lengths[0], starts)
    there = step < starts.diff().unsqueeze(-1)
    there = there.reshape(*there.shape, *[1] * (values.ndim - 1))
    places = (starts[:-1].unsqueeze(-1) + step).clamp(max=max(values.shape[0] - 1, 0))
    rows = values[places] if values.shape[0] else values.new_zeros((*places.shape, *values.shape[1:]))
    return exports["torch"]["where"](there, rows, rows.new_full((), padding_value))


@composite(
    "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor",
    function=False,
    method=False,
)
def padded_to_jagged(dense, offsets, total_L=None):
    name = "_padded_dense_to_jagged_forward"
    starts = _offsets(name, offsets)
    if dense.ndim < 2:
        raise RuntimeError(f"{name}: expected padded dim >= 2, got padded.dim() == {dense.ndim}")
    lengths, end = starts.diff(), int(starts[-1])
    if total_L is not None and total_L != end:
        raise RuntimeError(f"{name}: final offset should match total_L value, got {end} and {total_L}")
    if lengths.numel() and int(lengths.max()) > dense.shape[1]:
        raise RuntimeError(
            f"{name}: found batch item of length {int(lengths.max())} when max length specified by padded input is "
            f"{dense.shape[1]}"
        )
    owner = _steps(lengths.shape[0], starts).repeat_interleave(lengths)
    return dense[owner, _steps(end, starts) - starts[:-1][owner]]
