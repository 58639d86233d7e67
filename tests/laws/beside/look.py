"""What is seen of a tensor, and whether two libraries show the same.

Comes in: tensors of both libraries that one statement made or wrote. Goes out: None, or words about the first difference.
What always holds: after a comparison of numbers that are close and not equal, the other library's memory holds ours, so that
what comes later is compared on its own and no rounding adds up.
"""

from __future__ import annotations

import ctypes

import numpy as np

EPSILON = {
    "float64": 2.2e-16,
    "float32": 1.2e-7,
    "float16": 9.8e-4,
    "complex32": 9.8e-4,
    "bfloat16": 7.8e-3,
    "complex128": 2.2e-16,
    "complex64": 1.2e-7,
}
ROUNDINGS = {
    "float64": 4096,
    "complex128": 4096,
    "float32": 512,
    "complex64": 512,
    "float16": 4,
    "bfloat16": 4,
    "complex32": 4,
}
TINY = {
    "float64": 1e-3,
    "float32": 1e-2,
    "float16": 0.1,
    "bfloat16": 0.1,
    "complex32": 0.1,
    "complex128": 1e-3,
    "complex64": 1e-2,
}
FACTS = ("dtype", "shape", "requires_grad", "is_leaf", "no grad_fn", "inference", "stride", "storage_offset", "shares")


MOST = {
    "float64": 1e-6,
    "complex128": 1e-6,
    "float32": 0.02,
    "complex64": 0.02,
    "float16": 0.3,
    "bfloat16": 0.6,
    "complex32": 0.3,
}


def roundings(t) -> float:
    """How far results in a tensor's dtype may lie apart, in units of themselves."""
    return EPSILON[str(t.dtype).rpartition(".")[2]] * ROUNDINGS[str(t.dtype).rpartition(".")[2]]


def facts(t, derived: bool = False) -> tuple:
    """Everything but the numbers; of what is derived, not how it lies in memory."""
    seen = (str(t.dtype)[6:], tuple(t.shape), t.requires_grad, t.is_leaf, t.grad_fn is None)
    return seen if derived else (*seen, t.is_inference(), t.stride(), t.storage_offset())


def lie_alike(shape: tuple, a: tuple, b: tuple) -> bool:
    """Whether strides say the same of every dimension that has more than one element."""
    return all(x == y for n, x, y in zip(shape, a, b, strict=True) if n != 1)


def written(t) -> int:
    """How often a tensor was written; -1 of one that does not count."""
    return -1 if t.is_inference() else t._version


def is_unreal(t) -> bool:
    """Whether a tensor is one of PyTorch's zeros without memory."""
    return hasattr(t, "_is_zerotensor") and t._is_zerotensor()


def numbers(torch, t) -> np.ndarray:
    with torch.no_grad():
        t = t.detach().resolve_conj().resolve_neg()
        wide = {torch.bfloat16: torch.float32, torch.complex32: torch.complex64}.get(t.dtype, t.dtype)
        return t.to(wide, copy=True).numpy(force=True)  # a copy, since what NumPy shares can no longer be resized


def words(ours: tuple, theirs: tuple) -> str:
    return "; ".join(f"{n}: {a} != {b}" for n, a, b in zip(FACTS, ours, theirs, strict=False) if a != b)


def differ(dtype: str, a: np.ndarray, b: np.ndarray, slack: float, signs: bool) -> str | None:
    """Words about numbers that are not the same, up to rounding."""
    if a.dtype.kind not in "fc":
        return None if np.array_equal(a, b) else f"{a!r} != {b!r}"
    if (
        a.dtype.kind == "c"
    ):  # each part is rounded as the whole is; how one that is not finite is spelled is each library's own
        scale, both = _largest(a), ~np.isfinite(a) & ~np.isfinite(b)
        a, b = np.where(both, 0, a), np.where(both, 0, b)
        return _differ(dtype, a.real, b.real, slack, scale, False) or _differ(
            dtype, a.imag, b.imag, slack, scale, False
        )
    return _differ(dtype, a, b, slack, _largest(a), signs)


def _largest(a: np.ndarray) -> float:
    magnitudes = np.abs(a[np.isfinite(a)]).astype(np.float64)
    return float(magnitudes.max()) if magnitudes.size else 0.0


def _differ(dtype: str, a: np.ndarray, b: np.ndarray, slack: float, scale: float, signs: bool) -> str | None:
    with np.errstate(all="ignore"):
        wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
        share = min(EPSILON[dtype] * ROUNDINGS[dtype] * slack, MOST[dtype])
        room = share * np.maximum(np.abs(wide_a), min(scale, 1e300) + TINY[dtype])
        same = (np.abs(wide_a - wide_b) <= room) | (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
        if signs:
            same &= (np.signbit(a) == np.signbit(b)) | (wide_a != 0) | (wide_b != 0)
    return None if same.all() else f"{a!r} != {b!r}"


def settle(torch, t, values: np.ndarray) -> None:
    """Put our numbers into the other library's memory, unseen by its version counter."""
    if t.is_conj() or t.is_neg() or t.numel() == 0 or is_unreal(t):
        return
    if t.dtype == torch.bfloat16:
        values = (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.int16)
    elif t.dtype == torch.complex32:
        values = np.stack((values.real, values.imag), -1).astype(np.float16).view(np.float32)[..., 0]
    storage, size = t.untyped_storage(), values.itemsize
    # a view by NumPy would forbid resizing it
    memory = (ctypes.c_char * storage.nbytes()).from_address(storage.data_ptr())
    strides = [s * size for s in t.stride()]
    np.ndarray(t.shape, values.dtype, memory, t.storage_offset() * size, strides)[...] = values
