"""Text of a tensor, letter for letter as PyTorch prints it.

In: an array (NumPy's, ml_dtypes' or a device array that offers `get()`), the name of its dtype, and what is to be said
of it after the numbers (device, dtype, gradient function). Out: one string, such as
`tensor([1., 2.], dtype=torch.float64)`.

What always holds: one number format serves a whole tensor and is chosen from the elements that are shown; a large
tensor is cut down to its edges before anything is copied from a device or formatted; lines break so that they fit
`linewidth`; and the array is never written to. The print options are one set for the process, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .geometry import Geometry
from .modes import process
from .records import Record

__all__ = [
    "PrintOptions",
    "format_sparse",
    "format_tensor",
    "format_wrapper",
    "get_printoptions",
    "printoptions",
    "set_printoptions",
    "tensor_repr",
]


# ------------------------------------------------------------------------------------------------------------ options
class PrintOptions(Record):
    """How tensors print: digits, the size past which they are cut, how much of each edge stays, the line's width."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES: Mapping[str, PrintOptions] = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}

_options = PROFILES["default"]


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set the options of printing; what is not named stays, but for `sci_mode`, which every call sets anew.

    >>> torch.set_printoptions(precision=2)
    >>> torch.tensor([torch.pi])
    tensor([3.14])
    >>> torch.set_printoptions(profile="default")
    """
    global _options
    if profile is not None and profile not in PROFILES:
        raise ValueError(f"unknown print profile {profile!r}, expected one of {', '.join(PROFILES)}")
    if edgeitems is not None and edgeitems < 0:
        raise ValueError(f"edgeitems must not be negative, got {edgeitems}")
    if precision is not None and precision < 0:
        raise ValueError(f"precision must not be negative, got {precision}")
    base = PROFILES[profile] if profile is not None else _options
    _options = PrintOptions(
        precision if precision is not None else base.precision,
        threshold if threshold is not None else base.threshold,
        edgeitems if edgeitems is not None else base.edgeitems,
        linewidth if linewidth is not None else base.linewidth,
        sci_mode,
    )


def get_printoptions() -> dict[str, Any]:
    """The options of printing now in force, as a dictionary that `set_printoptions(**options)` takes back."""
    return _options._asdict()


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Within the block, print with these options; after it, with the ones from before."""
    global _options
    before = _options
    set_printoptions(**options)
    try:
        yield
    finally:
        _options = before


# ------------------------------------------------------------------------------------------------- from array to shown
class Shown(Record):
    """The elements that are printed: on the host, and for each dimension whether its middle was left out."""

    array: np.ndarray
    cut: tuple[bool, ...]


def _shown(array: Any, options: PrintOptions) -> Shown:
    """The part of `array` to print; edges are taken where the array lives, so that only they are copied to the host."""
    edge = options.edgeitems
    if array.size <= options.threshold:
        cut = (False,) * array.ndim
    else:
        cut = tuple(size > 2 * edge for size in array.shape)
        for axis, left_out in enumerate(cut):
            if left_out:
                array = array.take([*range(edge), *range(-edge, 0)], axis=axis)
    return Shown(np.asarray(array.get() if hasattr(array, "get") else array), cut)


def _is_float(dtype: np.dtype) -> bool:
    """Whether elements print as reals; ml_dtypes' own types have kind 'V' or 'f' and say what they are by name."""
    return dtype.kind == "f" or dtype.name.startswith(("bfloat", "float"))


# ------------------------------------------------------------------------------------------------- formats of elements
class Format(Record):
    """How the elements of one tensor print: the width they are padded to and the text of one element."""

    width: int
    text: Callable[[Any], str]

    def padded(self, values: Sequence[Any]) -> list[str]:
        return [self.text(value).rjust(self.width) for value in values]


def _fixed(digits: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{digits}f}"


def _scientific(digits: int) -> Callable[[float], str]:
    return lambda value: f"{value:.{digits}e}"


def _whole(value: float) -> str:
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"


def _wants_powers(magnitudes: np.ndarray, whole: bool) -> bool:
    """Whether nonzero finite numbers of these magnitudes read better as powers of ten."""
    least, most = float(magnitudes.min()), float(magnitudes.max())
    return most / least > 1000.0 or most > 1.0e8 or (not whole and least < 1.0e-4)


def _real_format(values: np.ndarray, options: PrintOptions, nan_has_a_say: bool = False) -> Format:
    """The format of reals: whole numbers, decimals, or powers of ten where the magnitudes lie too far apart.

    Zeros, infinities and NaN have no say in the choice, nor in the width that the elements are padded to.
    """
    plain = values[(np.isfinite(values) & (values != 0)) | (nan_has_a_say & np.isnan(values))]
    if not plain.size:
        return Format(1, _whole)
    whole = bool(np.all(plain == np.ceil(plain)))
    scientific = _wants_powers(np.abs(plain), whole) if options.sci_mode is None else options.sci_mode
    text = _scientific(options.precision) if scientific else _whole if whole else _fixed(options.precision)
    return Format(max(len(text(value)) for value in plain.tolist()), text)


def _texts(array: np.ndarray, options: PrintOptions) -> tuple[list[str], int]:
    """The text of every element in order, and the width that one element takes up on a line."""
    flat = array.reshape(-1)
    if array.dtype.name.startswith("complex"):
        wide = flat.astype(np.complex128)
        real, imag = _real_format(wide.real, options), _real_format(wide.imag, options)
        # Only the real part is padded; the imaginary part follows it at once, with its sign.
        pairs = zip(real.padded(wide.real.tolist()), map(imag.text, wide.imag.tolist()), strict=True)
        return [f"{r}{i}j" if i[0] == "-" else f"{r}+{i}j" for r, i in pairs], real.width + imag.width + 1
    if _is_float(array.dtype):
        reals = flat.astype(np.float64)
        # PyTorch's isfinite takes the NaN of this one type, which has no infinity to tell it from, for a number.
        form = _real_format(reals, options, nan_has_a_say=array.dtype.name == "float8_e8m0fnu")
        return form.padded(reals.tolist()), form.width
    values = flat.tolist() if array.dtype.kind in "biu" else flat.astype(np.int64).tolist()
    form = Format(max(len(str(value)) for value in values), str)
    return form.padded(values), form.width


# ------------------------------------------------------------------------------------------------------ lines and rows
def _row(texts: Sequence[str], edge: int | None, indent: int, per_line: int) -> str:
    """One innermost dimension in brackets, wrapped; `edge` says after how many elements the middle is left out."""
    items = list(texts) if edge is None else [*texts[:edge], " ...", *texts[edge:]]
    lines = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _nested(texts: Sequence[str], shown: Shown, axis: int, indent: int, per_line: int, edge: int) -> str:
    """Dimension `axis` and those inside it; between slices stands one line break for each dimension still inside."""
    shape, left_out = shown.array.shape, shown.cut[axis]
    if axis == len(shape) - 1:
        return _row(texts, edge if left_out else None, indent, per_line)
    step = len(texts) // shape[axis]
    slices = [
        _nested(texts[i : i + step], shown, axis + 1, indent + 1, per_line, edge) for i in range(0, len(texts), step)
    ]
    if left_out:
        slices.insert(edge, "...")
    return "[" + ("," + "\n" * (len(shape) - 1 - axis) + " " * (indent + 1)).join(slices) + "]"


def _body(array: Any, indent: int, options: PrintOptions) -> str:
    """The numbers of a tensor in their brackets, when the text starts `indent` columns into its line."""
    if array.size == 0:
        return "[]"
    shown = _shown(array, options)
    if shown.array.size == 0:  # no edge items were asked for
        return "[...]"
    texts, width = _texts(shown.array, options)
    if shown.array.ndim == 0:
        return texts[0]
    # Every row starts at the same column, that of the innermost bracket.
    per_line = max(1, (options.linewidth - indent - shown.array.ndim + 1) // (width + 2))
    return _nested(texts, shown, 0, indent, per_line, options.edgeitems)


def _with_suffixes(text: str, suffixes: Sequence[str], indent: int, linewidth: int, new_line: bool = False) -> str:
    """`text` and its suffixes, each on a new line where it does not fit (the first one always if `new_line`)."""
    column = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if new_line or column + len(suffix) + 2 > linewidth:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
            new_line = False
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"


# ------------------------------------------------------------------------------------------------------------- tensors
COMPLEX_OF = {
    "torch.float16": "torch.complex32",
    "torch.bfloat16": "torch.complex64",
    "torch.float32": "torch.complex64",
    "torch.float64": "torch.complex128",
}


def _is_default_dtype(name: str, default: str) -> bool:
    """Whether a literal of this kind of number would have this dtype, so that it need not be said."""
    return name in (default, "torch.int64", "torch.bool", COMPLEX_OF.get(default))


def format_tensor(
    array: Any | None,
    dtype_name: str,
    *,
    suffixes: Sequence[str] = (),
    prefix: str = "tensor",
    device: str | None = None,
    shape: Sequence[int] | None = None,
    default_dtype: str = "torch.float32",
    contents: str | None = None,
) -> str:
    """The text of a dense tensor: `prefix(numbers, device=..., size=..., dtype=..., *suffixes)`.

    `dtype_name` and `default_dtype` are written in full (`torch.float32`). `device` is given only where it is not the
    usual one. `array` is None where there are no numbers (meta and fake tensors); then `shape` says the size. `contents` is
    a text in the place of the numbers.
    """
    options, indent = _options, len(prefix) + 1
    said: list[str] = [] if device is None else [f"device='{device}'"]
    if array is None:
        if shape is None:
            raise ValueError("format_tensor: a tensor without numbers needs its shape")
        body, show_size = "..." if contents is None else contents, True
    else:
        shape = array.shape
        body = _body(array, indent, options) if contents is None else contents
        show_size = len(shape) != 1 if body == "[]" else options.edgeitems == 0
    if show_size:
        said.append(f"size={tuple(shape)}")
    # Where no number shows, nothing hints at the kind of number: only the default dtype itself goes without saying.
    no_numbers = array is None or body == "[]"
    if dtype_name != default_dtype and (no_numbers or not _is_default_dtype(dtype_name, default_dtype)):
        said.append(f"dtype={dtype_name}")
    return _with_suffixes(f"{prefix}({body}", [*said, *suffixes], indent, options.linewidth)


def format_sparse(
    parts: Mapping[str, Any],
    dtype_name: str,
    *,
    size: Sequence[int],
    nnz: int,
    layout: str,
    suffixes: Sequence[str] = (),
    prefix: str = "tensor",
    device: str | None = None,
    default_dtype: str = "torch.float32",
) -> str:
    """The text of a sparse tensor: its parts by name, one below the other, then the size and the rest.

    `parts` maps `indices` and `values` (COO), or `crow_indices`, `col_indices` and `values` (CSR and its kin), to
    arrays, in the order in which they print; where there are no numbers, to shapes, and the count of elements, which is
    none, is not said. `layout` is written in full (`torch.sparse_coo`).
    """
    options, indent = _options, len(prefix) + 1
    rows = []
    for name, array in parts.items():
        head = f"{name}=tensor("
        if isinstance(array, tuple):
            rows.append(f"{head}..., size={array})")
            continue
        body = _body(array, indent + len(head), options)
        rows.append(head + body + (f", size={tuple(array.shape)})" if array.size == 0 else ")"))
    said = [] if device is None else [f"device='{device}'"]
    said += [f"size={tuple(size)}"] if isinstance(parts["values"], tuple) else [f"size={tuple(size)}", f"nnz={nnz}"]
    if not _is_default_dtype(dtype_name, default_dtype):
        said.append(f"dtype={dtype_name}")
    text = f"{prefix}(" + (",\n" + " " * indent).join(rows)
    new_line = layout == "torch.sparse_coo"
    return _with_suffixes(text, [*said, f"layout={layout}", *suffixes], indent, options.linewidth, new_line)


def format_wrapper(name: str, inner: str, **attributes: Any) -> str:
    """The text of a tensor that wraps another: `BatchedTensor(lvl=1, bdim=0, value=` and the inner text, indented."""
    said = "".join(f"{key}={value}, " for key, value in attributes.items())
    return f"{name}({said}value=\n{textwrap.indent(inner, '    ')}\n)"


# --------------------------------------------------------------------------------------------- from a tensor's own word
SPARSE_PARTS: Mapping[str, tuple[str, ...]] = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def tensor_body(t: Any, indent: int) -> str:
    """The numbers of a tensor alone, for a text in which they begin at column `indent`."""
    return _body(_numbers_of(t), indent, _options)


def with_suffixes(text: str, suffixes: Sequence[str], indent: int, force_newline: bool) -> str:
    """A text that ends in a closing bracket after `suffixes`; the first on a line of its own if `force_newline`."""
    return _with_suffixes(text, suffixes, indent, _options.linewidth, force_newline)


def _gradient_suffix(t: Any) -> list[str]:
    """`grad_fn=<...>` for a result, `requires_grad=True` for a leaf, nothing for a constant."""
    try:
        grad_fn = t.grad_fn
    except RuntimeError:  # a view that an in-place operation has made useless; the text must still come
        return ["grad_fn=<Invalid>"]
    if grad_fn is not None:
        return [f"grad_fn=<{type(grad_fn).__name__}>"]
    return ["requires_grad=True"] if t.requires_grad else []


def _prefix_of(t: Any) -> str:
    name = type(t).__name__
    if "fake_mode" in getattr(t, "__dict__", ()):
        return "FakeTensor"
    return "tensor" if name in ("Tensor", "Parameter") else name


def _numbers_of(t: Any) -> Any | None:
    """The array to print, with a pending conjugate or sign carried out; None where a tensor has no data."""
    array = t._array
    if isinstance(array, Geometry):
        return None
    if getattr(t, "is_mkldnn", False):
        return array.values._array
    if getattr(t, "is_conj", bool)():
        array = array.conj()
    return -array if getattr(t, "is_neg", bool)() else array


def _part_of(t: Any) -> Any:
    """The array of a part of a sparse tensor; its shape where it has no data."""
    array = _numbers_of(t)
    return tuple(t.shape) if array is None else array


def tensor_repr(t: Any, *, tangent: str | None = None, contents: str | None = None) -> str:
    """The text of `t`, read from its `dtype`, `array`, `device`, `requires_grad` and `grad_fn`.

    A tensor whose `layout` is sparse is asked for its parts, one without data (`meta`) for its `shape` alone.
    `tangent` is the text of the tangent that `t` carries at the current forward-mode level, if any; `contents` one that
    is shown in the place of a dense tensor's numbers.
    """
    text = t._array.describe(t) if getattr(t, "is_nested", False) else _text_of(t, tangent, contents)
    # Tensors of other classes stay of theirs as parameters, so nothing else says that they are.
    return f"Parameter({text})" if "_is_param" in getattr(t, "__dict__", ()) else text


def _text_of(t: Any, tangent: str | None, contents: str | None) -> str:
    suffixes = _gradient_suffix(t)
    if tangent is not None:
        suffixes.append(f"tangent={tangent}")
    device, layout = str(t.device), str(getattr(t, "layout", "torch.strided"))
    if any(getattr(t, "names", ())):
        suffixes.append(f"names={t.names}")
    if layout == "torch._mkldnn":
        suffixes.insert(0, f"layout={layout}")
    common: dict[str, Any] = {
        "suffixes": suffixes,
        "prefix": _prefix_of(t),
        "device": None if device == "cpu" else device,
        "default_dtype": str(process.default_dtype),
    }
    if layout in SPARSE_PARTS:
        parts = {name.lstrip("_"): _part_of(getattr(t, name)()) for name in SPARSE_PARTS[layout]}
        return format_sparse(parts, str(t.dtype), size=tuple(t.shape), nnz=t._nnz(), layout=layout, **common)
    return format_tensor(_numbers_of(t), str(t.dtype), shape=tuple(t.shape), contents=contents, **common)
