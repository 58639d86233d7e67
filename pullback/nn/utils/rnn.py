"""Sequences of several lengths: padded into one tensor, or packed without the padding.

A `PackedSequence` holds the elements of all sequences time step by time step, the longest sequence first; `batch_sizes`
says how many sequences still run at each step. Packing and padding are selections of rows, so gradients pass.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ...ops.system.operator import public

_Packed = namedtuple("PackedSequence_", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])
_Packed.__annotations__ = {
    "data": Tensor, "batch_sizes": Tensor, "sorted_indices": Tensor | None, "unsorted_indices": Tensor | None,
}  # fmt: skip


def bind(optional, fn):
    """`fn(optional)`, or None for None."""
    return None if optional is None else fn(optional)


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes another."""
    return None if permutation is None else permutation.argsort()


class PackedSequence(_Packed):
    """Several sequences of different lengths, without padding."""

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequence in nn.utils.rnn. "
                "https://pytorch.org/docs/main/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args, **kwargs) -> PackedSequence:
        """Cast or move the data."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = {k: v for k, v in kwargs.items() if k not in ("device", "dtype")}
        place = [bind(t, lambda t: t.to(data.device, **moved)) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *place)

    def pin_memory(self) -> PackedSequence:
        place = [bind(t, lambda t: t.pin_memory()) for t in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(self.data.pin_memory(), self.batch_sizes, *place)

    def cuda(self, *args, **kwargs) -> PackedSequence:
        return self.to(*args, **{"device": "cuda", **kwargs})

    def cpu(self, *args, **kwargs) -> PackedSequence:
        return self.to(*args, **{"device": "cpu", **kwargs})

    def double(self) -> PackedSequence:
        return self.to(dtype=dtypes.float64)

    def float(self) -> PackedSequence:
        return self.to(dtype=dtypes.float32)

    def half(self) -> PackedSequence:
        return self.to(dtype=dtypes.float16)

    def long(self) -> PackedSequence:
        return self.to(dtype=dtypes.int64)

    def int(self) -> PackedSequence:
        return self.to(dtype=dtypes.int32)

    def short(self) -> PackedSequence:
        return self.to(dtype=dtypes.int16)

    def char(self) -> PackedSequence:
        return self.to(dtype=dtypes.int8)

    def byte(self) -> PackedSequence:
        return self.to(dtype=dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        return self.data.is_cuda

    def is_pinned(self) -> bool:
        return self.data.is_pinned()


def _batch_sizes(lengths: list[int]) -> list[int]:
    """How many of the sequences (longest first) reach each time step."""
    sizes, alive = [], len(lengths)
    for step in range(lengths[0] if lengths else 0):
        while alive and lengths[alive - 1] <= step:
            alive -= 1
        sizes.append(alive)
    return sizes


def _places(batch_sizes: list[int], batch: int, steps: int) -> Tensor:
    """Rows of a (step, sequence) table that hold elements, in packed order."""
    rows = [step * batch + i for step, size in enumerate(batch_sizes[:steps]) for i in range(size)]
    return public("torch", "tensor")(rows, dtype=dtypes.int64)


def _check_lengths(lengths: list[int], batch: int) -> None:
    if len(lengths) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(lengths)} (batch_size={batch})"
        )
    if any(n <= 0 for n in lengths):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(lengths, lengths[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )


def pack_padded_sequence(
    input: Tensor, lengths, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences: (time, batch, ...) or, batch first, (batch, time, ...)."""
    if not isinstance(lengths, Tensor):
        lengths = public("torch", "as_tensor")(lengths, dtype=dtypes.int64, device="cpu")
    else:
        lengths = lengths.to(dtype=dtypes.int64)
    if not input.numel():
        raise RuntimeError(
            f"Cannot pack empty tensors: expected input with elements, but got shape {list(input.shape)}"
        )
    order = None
    if not enforce_sorted:
        lengths, order = lengths.sort(descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    x = input.transpose(0, 1) if batch_first else input
    steps, batch = x.shape[:2]
    counts = lengths.tolist()
    _check_lengths(counts, batch)
    sizes = _batch_sizes(counts)
    rows = _places(sizes, batch, steps).to(input.device)
    data = x.reshape(steps * batch, *x.shape[2:]).index_select(0, rows)
    return PackedSequence(data, public("torch", "tensor")(sizes, dtype=dtypes.int64), order, None)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(padded sequences, their lengths)."""
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if not steps:
        raise RuntimeError("Expected a packed sequence of at least one step, but its batch_sizes are empty")
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    batch = sizes[0] if sizes else 0
    empty = data.new_full((steps * batch, *data.shape[1:]), padding_value)
    padded = empty.index_copy(0, _places(sizes, batch, steps).to(data.device), data).reshape(
        steps, batch, *data.shape[1:]
    )
    lengths = public("torch", "tensor")([sum(size > i for size in sizes) for i in range(batch)], dtype=dtypes.int64)
    padded = padded.transpose(0, 1) if batch_first else padded
    back = sequence.unsorted_indices
    if back is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, back), lengths.index_select(0, back)


def pad_sequence(
    sequences, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Several tensors as one, the shorter ones padded at the end (or at the start)."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.size(0) for s in sequences)
    trailing = sequences[0].shape[1:]
    padded = []
    for s in sequences:
        missing = longest - s.size(0)
        if missing:
            filler = s.new_full((missing, *trailing), padding_value)
            s = public("torch", "cat")([filler, s] if padding_side == "left" else [s, filler])
        padded.append(s)
    return public("torch", "stack")(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """The sequences without their padding."""
    x = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:n] for row, n in zip(x.unbind(0), lengths.tolist(), strict=True)]


def pack_sequence(sequences: list[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack several tensors."""
    lengths = public("torch", "as_tensor")([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
