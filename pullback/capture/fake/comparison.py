"""Two tensors by what is known without their data.

In: two tensors, real or fake. Out: nothing, or an error that names what differs: shape, dtype, device, strides of
dimensions that have more than one element, storage offset, conjugate and negative bits.
"""

from __future__ import annotations

from ...core import device as devices
from ...core.geometry import strides_like
from ...core.tensor import CONJ, NEG, Tensor


def compare_metadata(
    a: Tensor, b: Tensor, check_sizes=True, check_strides=False, *, allow_rhs_unbacked=False, check_conj=True
) -> None:
    """Raise where two tensors are not alike; strides are compared where asked for."""
    for t in (a, b):
        if not isinstance(t, Tensor):
            raise AssertionError(f"Expected a Tensor, got {type(t)}")
    facts = [("Dtypes", a.dtype, b.dtype), ("Devices", a.device, b.device)]
    if check_sizes or a.ndim != b.ndim:
        facts.append(("Shapes", tuple(a.shape), tuple(b.shape)))
    if check_strides and a.ndim == b.ndim and a.numel():
        places = [d for d, n in enumerate(a.shape) if n > 1]
        facts.append(("Strides", [a.stride(d) for d in places], [b.stride(d) for d in places]))
        facts.append(("Storage offsets", a.storage_offset(), b.storage_offset()))
    if check_conj:
        facts.append(("Conjugate and negative bits", a._keys & (CONJ | NEG), b._keys & (CONJ | NEG)))
    for what, ours, theirs in facts:
        if ours != theirs:
            raise RuntimeError(f"{what} {ours} and {theirs} are not equal!")


def suggest_memory_format(x: Tensor):
    """The format that the strides of a tensor follow: channels last, or row-major."""
    for wanted in (devices.channels_last, devices.channels_last_3d):
        if strides_like(x.shape, x.stride(), wanted):
            return wanted
    return devices.contiguous_format
