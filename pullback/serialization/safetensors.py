"""Tensors by name in the safetensors format: no code in the file, nothing but numbers.

    save_file(model.state_dict(), "model.safetensors")
    model.load_state_dict(load_file("model.safetensors"))

All dtypes of the format are read and written, bfloat16 and float8 among them. A file is replaced only when the new one
is whole. Tensors on the same memory are refused, since the format would silently separate them.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core import device as devices
from ..core import dtype as dtypes
from ..core.arrays import to_host
from ..core.storage import storage_of
from ..core.tensor import LAYOUTS, META, Tensor, wrap
from .archive import atomic_write

_NAMES = {
    "BOOL": dtypes.bool, "U8": dtypes.uint8, "I8": dtypes.int8, "I16": dtypes.int16, "U16": dtypes.uint16,
    "I32": dtypes.int32, "U32": dtypes.uint32, "I64": dtypes.int64, "U64": dtypes.uint64, "F16": dtypes.float16,
    "BF16": dtypes.bfloat16, "F32": dtypes.float32, "F64": dtypes.float64, "C64": dtypes.complex64,
    "F8_E4M3": dtypes.float8_e4m3fn, "F8_E5M2": dtypes.float8_e5m2, "F8_E8M0": dtypes.float8_e8m0fnu,
    "F8_E4M3FNUZ": dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": dtypes.float8_e5m2fnuz,
}  # fmt: skip


# ---- out
def save(tensors: dict[str, Tensor], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors."""
    from safetensors.numpy import save as package_save

    return package_save(_arrays(tensors), metadata=metadata)


def save_file(tensors: dict[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None) -> None:
    """Write tensors to a file."""
    data = save(tensors, metadata)
    with atomic_write(filename) as file:
        file.write(data)


def _arrays(tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Dense row-major arrays of all tensors, once none of them would be changed by being saved."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if t._keys & (LAYOUTS | META):
            raise ValueError(f"`{name}` is no dense tensor with data: layout {t.layout}, device {t.device}")
        if t.dtype not in _NAMES.values():
            raise ValueError(f"`{name}` is of {t.dtype}, which the safetensors format does not have")
    _refuse_shared(tensors)
    plain = {name: t.detach().resolve_conj().resolve_neg() for name, t in tensors.items()}
    return {name: np.asarray(to_host(t._array), order="C") for name, t in plain.items()}


def _refuse_shared(tensors: dict[str, Tensor]) -> None:
    owners: dict[Any, set[str]] = {}
    for name, t in tensors.items():
        if t.numel():
            owners.setdefault(storage_of(t), set()).add(name)
    shared = [names for names in owners.values() if len(names) > 1 and _overlap([tensors[n] for n in names])]
    if shared:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading "
            f"them again: {shared}. Save one name of each, or clone them."
        )


def _overlap(tensors: list[Tensor]) -> bool:
    spans = sorted(np.lib.array_utils.byte_bounds(t._array) for t in tensors)
    return any(a[1] > b[0] for a, b in zip(spans, spans[1:], strict=False))


# ---- in
def load(data: bytes, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file's bytes."""
    from safetensors import deserialize

    found = _guarded(deserialize, data)
    rows = ((name, t["dtype"], t["shape"], np.frombuffer(bytearray(t["data"]), np.uint8)) for name, t in found)
    return _tensors(rows, device)


def load_file(filename: str | os.PathLike, device: Any = "cpu") -> dict[str, Tensor]:
    """The tensors of a file."""
    with _opened(filename):  # the package checks that the header fits the file
        return _tensors(_rows(filename), device)


def load_metadata(filename: str | os.PathLike) -> dict[str, str]:
    """The texts that were saved beside the tensors."""
    with _opened(filename) as file:
        return dict(file.metadata() or {})


def _opened(filename: str | os.PathLike) -> Any:
    from safetensors import safe_open

    return _guarded(safe_open, os.fspath(filename), framework="np")


def _guarded(function: Any, *args: Any, **kwargs: Any) -> Any:
    from safetensors import SafetensorError

    try:
        return function(*args, **kwargs)
    except SafetensorError as error:
        raise RuntimeError(f"the safetensors file is damaged: {error}") from error


def _rows(filename: str | os.PathLike) -> Iterator[tuple]:
    """Name, dtype, shape and bytes of each tensor."""
    with open(filename, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        for name, row in header.items():
            if name != "__metadata__":
                start, end = row["data_offsets"]
                file.seek(8 + length + start)
                yield name, row["dtype"], row["shape"], np.fromfile(file, np.uint8, end - start)


def _tensors(rows: Any, device: Any) -> dict[str, Tensor]:
    result: dict[str, Tensor] = {}
    for name, kind, shape, data in rows:
        if kind not in _NAMES:
            raise RuntimeError(f"`{name}` is of safetensors type {kind}, which is not supported")
        dtype = _NAMES[kind]
        t = wrap(data.view(dtype.numpy).reshape(shape), dtype, devices.cpu)
        result[name] = t.to(device)
    return result
