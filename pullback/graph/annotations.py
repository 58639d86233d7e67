"""What a node's value is, in a few characters: "f32[2, 3]", "Sym(s0)".

In: a node (or the value in its meta). Out: the annotation that readable code shows, or None. What always holds: only
metadata is read, so fake and real tensors are written alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..core import device as devices
from ..core.tensor import FAKE, Tensor
from .metadata import TensorMetadata

_SHORT = {
    "uint8": "u8", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float16": "f16", "float32": "f32",
    "float64": "f64", "complex32": "c32", "complex64": "c64", "complex128": "c128", "bool": "b8", "bfloat16": "bf16",
    "uint16": "u16", "uint32": "u32", "uint64": "u64", "bits1x8": "b1x8", "bits2x4": "b2x4", "bits4x2": "b4x2",
    "bits8": "b8x1", "bits16": "b16x1", "float4_e2m1fn_x2": "f4e2m1fnx2",
}  # fmt: skip
_CODES = {
    "red": "\033[31m", "blue": "\033[34m", "dim": "\033[2m", "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}  # fmt: skip


def short_dtype(dtype: Any) -> str:
    """`torch.float32` as `f32`."""
    name = str(dtype).rpartition(".")[2]
    return _SHORT.get(name) or name.replace("float8_", "f8")


def painter(colored: bool) -> Callable[[str, str], str]:
    """`paint(color, text)`: with ANSI codes, or the text alone."""
    if not colored:
        return lambda color, text: text
    return lambda color, text: f"{_CODES[color]}{text}\033[0m"


def listed(values: Iterable) -> str:
    return f"[{', '.join([str(v) for v in values])}]"


def value_of(node: Any) -> Any:
    """The example value or metadata that a node carries, if any."""
    meta = node.meta
    for key in ("val", "tensor_meta", "example_value"):
        if key in meta:
            return meta[key]
    return None


def annotation(
    value: Any, stride: bool = False, device: bool = False, paint: Callable[[str, str], str] = lambda c, t: t
) -> str | None:
    """The annotation of a value, without quotes."""
    if isinstance(value, Tensor):
        if value.layout in (devices.sparse_csr, devices.sparse_csc):
            return None
        text = _tensor(value, stride, device, paint)
        plain = type(value) is Tensor or value._keys & FAKE
        return text if plain else f"{type(value).__name__}({text})"
    if getattr(value, "is_symbolic", False):
        return f"Sym({value!r})"
    if isinstance(value, TensorMetadata):
        return f"{short_dtype(value.dtype)}{listed(value.shape)}"
    return None


def _tensor(value: Tensor, stride: bool, device: bool, paint: Callable[[str, str], str]) -> str:
    return (
        paint("red", short_dtype(value.dtype))
        + paint("blue", listed(value.shape))
        + paint("dim_blue", listed(value.stride()) if stride else "")
        + paint("dim_green", str(value.device) if device else "")
    )


def metadata_annotation(node: Any) -> str | None:
    """The annotation of a node's tensor for `Node.format_node(include_tensor_metadata=True)`."""
    value = value_of(node)
    if not isinstance(value, Tensor):
        return None
    return f'Tensor "{annotation(value, stride=True, device=True)}"'
