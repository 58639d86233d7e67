"""Where a tensor lives, and how it is laid out.

`device` is interned: one object per (type, index), so a comparison is an identity test on the hot path. `layout`,
`memory_format` and `qscheme` are enumerations by object.
"""

from __future__ import annotations

_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip
_interned: dict[tuple[str, int | None], device] = {}
_KEYS = {"cuda": 32}  # the bit that tensors of a device type carry in `_keys`: see core.tensor
current = {"cuda": 0}  # the number of the device in use, for each type that may have many


class device:
    """`device("cpu")`, `device("cuda", 0)`, `device("cuda:0")`, `device(0)` or another device.

    >>> torch.device("cuda:1").index
    1
    >>> torch.ones(1).device
    device(type='cpu')
    """

    __slots__ = ("type", "index", "keys")
    type: str
    index: int | None
    keys: int

    def __new__(cls, type: str | int | device = "cpu", index: int | None = None) -> device:
        if isinstance(type, device):
            return type
        if isinstance(type, int):
            index, type = type, "cuda"
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' (position 1) must be str, not {_type_name(type)}")
        name, index = _parse(type, index)
        found = _interned.get((name, index))
        if found is None:
            found = _interned[name, index] = object.__new__(cls)
            found.type, found.index = name, index
            found.keys = _KEYS.get(name, 0)
        return found

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return (device, (self.type, self.index))

    def __copy__(self) -> device:
        return self

    def __deepcopy__(self, memo) -> device:
        return self

    def __enter__(self) -> device:
        from .modes import ambient

        ambient.devices_before.append(ambient.default_device)
        ambient.default_device = self
        return self

    def __exit__(self, *exc) -> None:
        from .modes import ambient

        ambient.default_device = ambient.devices_before.pop()


def _type_name(value: object) -> str:
    return type(value).__name__


def _parse(text: str, index: int | None) -> tuple[str, int | None]:
    name, colon, number = text.partition(":")
    if name not in _TYPES:
        if not name.replace("_", "").isalpha() or text.count(":") > 1:
            raise RuntimeError(f"Invalid device string: '{text}'")
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {name or text}")
    if colon:
        if index is not None:
            raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {text}")
        if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
            raise RuntimeError(f"Invalid device string: '{text}'")
        index = int(number)
    if index is not None and index < 0:
        raise RuntimeError(f"Device index must not be negative, got {index}")
    return name, index


def indexed(where: str | device) -> device:
    """A device that may have many of its kind, with its number: the one in use, if none is named."""
    where = device(where)
    if where.index is not None or where.type in ("cpu", "meta"):
        return where
    return device(where.type, current.get(where.type, 0))


cpu = device("cpu")
meta = device("meta")


class _Named:
    """A named constant with PyTorch's repr, compared by identity, pickled by name."""

    __slots__ = ("name",)
    _instances: dict[str, _Named]

    def __init__(self, name: str):
        self.name = name

    def __init_subclass__(cls) -> None:
        cls._instances = {}

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return (_named, (type(self).__name__, self.name))

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self


class layout(_Named):
    """How elements are found: strided, or one of the sparse formats.

    >>> torch.ones(1).layout
    torch.strided
    """

    __slots__ = ()


class memory_format(_Named):
    """The order of dimensions in memory.

    >>> torch.ones(1, 2, 3, 3).to(memory_format=torch.channels_last).stride()
    (18, 1, 6, 2)
    """

    __slots__ = ()


class qscheme(_Named):
    """A quantisation scheme's name.

    >>> torch.per_tensor_affine
    torch.per_tensor_affine
    """

    __slots__ = ()


def _named(kind: str, name: str) -> _Named:
    return globals()[name]


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
sparse_bsr = layout("sparse_bsr")
sparse_bsc = layout("sparse_bsc")
jagged = layout("jagged")
_mkldnn = layout("_mkldnn")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
legacy_contiguous_format = contiguous_format
per_tensor_affine = qscheme("per_tensor_affine")
per_tensor_symmetric = qscheme("per_tensor_symmetric")
per_channel_affine = qscheme("per_channel_affine")
per_channel_symmetric = qscheme("per_channel_symmetric")
per_channel_affine_float_qparams = qscheme("per_channel_affine_float_qparams")
