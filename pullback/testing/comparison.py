"""`assert_close`: results equal within tolerances, or an error that says where and by how much they are not.

Sequences and mappings are compared member by member; numbers, booleans and None as such; anything that a tensor can be
made of as tensors. Without tolerances, those of the wider dtype apply.
"""

from __future__ import annotations

import cmath
import contextlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import dtype as dtypes
from ..core.dtype import dtype as dtype_type
from ..core.promotion import promote_types
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .differences import mismatch_of_numbers, mismatch_of_tensors

as_tensor, isclose, make_tensor = public("torch", "as_tensor"), public("torch", "isclose"), public("torch", "tensor")

_TOLERANCES = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex32: (1e-3, 1e-5), dtypes.complex64: (1.3e-6, 1e-5),
    dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
_OF_NUMBERS = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


class Mismatch(Exception):
    """What is wrong, and with which item."""

    def __init__(self, kind: type[Exception], words: str, item: tuple = ()) -> None:
        super().__init__(words)
        self.kind, self.words, self.item = kind, words, item

    def error(self, msg: str | Callable[[str], str] | None = None) -> Exception:
        """The error for the caller; `msg` replaces its words, or makes others of them."""
        words = self.words
        if self.item:
            words += f"\n\nThe failure occurred for item {''.join(str([i]) for i in self.item)}"
        return self.kind(msg if isinstance(msg, str) else msg(words) if callable(msg) else words)


@dataclass
class Options:
    """How to compare."""

    allow_subclasses: bool
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_device: bool
    check_dtype: bool
    check_layout: bool
    check_stride: bool

    def tolerances(self, *given: dtype_type, item: tuple) -> tuple[float, float]:
        """(rtol, atol): as given, or the wider of those that belong to the dtypes."""
        if (self.rtol is None) != (self.atol is None):
            missing = "rtol" if self.rtol is None else "atol"
            raise Mismatch(
                ValueError, f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.", item
            )
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        return default_tolerances(*given)


def default_tolerances(*given: Tensor | dtype_type, table: dict | None = None) -> tuple[float, float]:
    """(rtol, atol) for dtypes: the wider ones; exact for integers and booleans."""
    found = [(table or _TOLERANCES).get(d.dtype if isinstance(d, Tensor) else d, (0.0, 0.0)) for d in given]
    return max(r for r, _ in found), max(a for _, a in found)


def assert_close(
    actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
    equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True,
    check_stride: bool = False, msg: str | Callable[[str], str] | None = None,
) -> None:  # fmt: skip
    """Raise unless `actual` and `expected` are equal within `atol + rtol * |expected|`."""
    __tracebackhide__ = True
    options = Options(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        comparisons = _comparisons(actual, expected, options, ())
    except Mismatch as e:
        raise e.error() from None
    try:
        for compare in comparisons:
            compare()
    except Mismatch as e:
        error = e.error(msg)
    else:
        return
    raise error


def _comparisons(actual: Any, expected: Any, options: Options, item: tuple) -> list[Callable[[], None]]:
    """What must be compared; shapes of containers are checked at once."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(
                AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", item
            )
        keys: Any = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        keys = _same_keys(actual, expected, item)
    else:
        return [_comparison(actual, expected, options, item)]
    return [c for k in keys for c in _comparisons(actual[k], expected[k], options, (*item, k))]


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _same_keys(actual: Mapping, expected: Mapping, item: tuple):
    missing, added = set(expected) - set(actual), set(actual) - set(expected)
    if missing or added:
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: "
            f"{sorted(missing)}\nAdditional keys in the actual mapping: {sorted(added)}",
            item,
        )
    keys: Any = list(actual)
    with contextlib.suppress(Exception):
        keys = sorted(keys)
    return keys


def _comparison(actual: Any, expected: Any, options: Options, item: tuple) -> Callable[[], None]:
    """How two objects are compared, by what they are."""
    pair = (actual, expected)
    if actual is None or expected is None:
        return lambda: _identical(actual, expected, "None", item)
    if all(isinstance(x, (bool, np.bool_)) for x in pair):
        return lambda: _identical(bool(actual), bool(expected), "Booleans", item)
    if all(isinstance(x, (int, float, complex, np.number)) for x in pair):
        a, b = (x.item() if isinstance(x, np.number) else x for x in pair)
        rtol, atol = options.tolerances(*(_OF_NUMBERS[_kind(x)] for x in (a, b)), item=item)
        return lambda: _numbers(a, b, rtol, atol, options, item)
    tensors = _as_tensors(actual, expected, options)
    if tensors is None:
        raise Mismatch(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            item,
        )
    rtol, atol = options.tolerances(*(t.dtype for t in tensors), item=item)
    return lambda: _tensors(*tensors, rtol, atol, options, item)


def _kind(x) -> type:
    return next(kind for kind in (int, float, complex) if isinstance(x, kind))


def _identical(actual: Any, expected: Any, what: str, item: tuple) -> None:
    if actual is not expected:
        raise Mismatch(AssertionError, f"{what} mismatch: {actual} is not {expected}", item)


def _numbers(actual, expected, rtol: float, atol: float, options: Options, item: tuple) -> None:
    if options.check_dtype and type(actual) is not type(expected):
        raise Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.", item)
    if actual == expected or options.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise Mismatch(AssertionError, mismatch_of_numbers(actual, expected, rtol, atol), item)


def _as_tensors(actual: Any, expected: Any, options: Options) -> tuple[Tensor, Tensor] | None:
    """Both as tensors, if one's type is the other's or a subclass of it."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not options.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        return tuple(x if isinstance(x, Tensor) else as_tensor(x) for x in (actual, expected))  # type: ignore[return-value]
    except Exception:  # noqa: BLE001 - whatever stops it from being a tensor
        return None


def _tensors(actual: Tensor, expected: Tensor, rtol: float, atol: float, options: Options, item: tuple) -> None:
    try:
        _check_attributes(actual, expected, options)
        if not (actual.is_meta or expected.is_meta):
            _check_values(*_made_alike(actual, expected), rtol, atol, options)
    except Mismatch as e:
        raise Mismatch(e.kind, e.words, item) from None


def _check_attributes(actual: Tensor, expected: Tensor, options: Options) -> None:
    strided = "strided" in str(actual.layout) and actual.layout == expected.layout
    attributes = [
        ("shape", actual.shape, expected.shape, True),
        ("layout", actual.layout, expected.layout, options.check_layout),
        ("stride()", actual.stride() if strided else 0, expected.stride() if strided else 0, options.check_stride),
        ("device", actual.device, expected.device, options.check_device),
        ("dtype", actual.dtype, expected.dtype, options.check_dtype),
    ]
    for name, have, want, checked in attributes:
        if checked and have != want:
            raise Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {have} != {want}.")


def _made_alike(actual: Tensor, expected: Tensor) -> tuple[Tensor, Tensor]:
    """Both on one device, of one dtype and layout, where that was not to be checked."""
    if actual.device != expected.device:
        actual, expected = actual.cpu(), expected.cpu()
    if actual.dtype != expected.dtype:
        kinds = [dtypes.int64 if t.dtype in _UNSIGNED else t.dtype for t in (actual, expected)]
        common = promote_types(*kinds)
        actual, expected = actual.to(common), expected.to(common)
    if actual.layout != expected.layout:
        actual, expected = (t if "strided" in str(t.layout) else t.to_dense() for t in (actual, expected))
    return actual, expected


def _check_values(actual: Tensor, expected: Tensor, rtol: float, atol: float, options: Options) -> None:
    layout = str(actual.layout)
    if "coo" in layout:
        _check_coo(actual, expected, rtol, atol, options)
    elif "sparse" in layout:
        _check_compressed(actual, expected, rtol, atol, options)
    elif actual.dtype.is_floating_point and actual.dtype.itemsize == 1 and (rtol or atol):
        raise Mismatch(
            AssertionError,
            f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low dimensional floats. Please "
            "use rtol=0.0 and atol=0.0.",
        )
    else:
        _close(actual, expected, rtol, atol, options.equal_nan)


def _close(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool = False, name: str | None = None) -> None:
    matches = isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if matches.all():
        return
    if not a.ndim:
        raise Mismatch(AssertionError, mismatch_of_numbers(a.item(), b.item(), rtol, atol, name))
    raise Mismatch(AssertionError, mismatch_of_tensors(a, b, matches, rtol, atol, name))


def _same_count(name: str, what: str, have: int, want: int) -> None:
    if have != want:
        words = f"The number of {what} in sparse {name} tensors does not match: {have} != {want}"
        raise Mismatch(AssertionError, words)


def _check_coo(actual: Tensor, expected: Tensor, rtol: float, atol: float, options: Options) -> None:
    _same_count("COO", "sparse dimensions", actual.sparse_dim(), expected.sparse_dim())
    _same_count("COO", "specified values", actual._nnz(), expected._nnz())
    _close(actual._indices(), expected._indices(), 0, 0, name="Sparse COO indices")
    _close(actual._values(), expected._values(), rtol, atol, options.equal_nan, "Sparse COO values")


def _check_compressed(actual: Tensor, expected: Tensor, rtol: float, atol: float, options: Options) -> None:
    name = str(actual.layout).rpartition("_")[2].upper()
    parts = ("crow_indices", "col_indices") if name in ("CSR", "BSR") else ("ccol_indices", "row_indices")
    _same_count(name, "specified values", actual._nnz(), expected._nnz())
    for part in parts:
        a, b = (getattr(t, part)().to(dtypes.int64) for t in (actual, expected))
        _close(a, b, 0, 0, name=f"Sparse {name} {part}")
    _close(actual.values(), expected.values(), rtol, atol, options.equal_nan, f"Sparse {name} values")


def assert_allclose(
    actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None, equal_nan: bool = True,
    msg: str = "",
) -> None:  # fmt: skip
    """Deprecated: `assert_close` with wider tolerances, whatever the dtypes."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. Please "
        "use `torch.testing.assert_close()` instead. You can find detailed upgrade instructions in "
        "https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    actual = actual if isinstance(actual, Tensor) else make_tensor(actual)
    expected = expected if isinstance(expected, Tensor) else make_tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        table = {dtypes.float16: (1e-3, 1e-3), dtypes.float32: (1e-4, 1e-5), dtypes.float64: (1e-5, 1e-8)}
        rtol, atol = default_tolerances(actual, expected, table=table)
    assert_close(
        actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, check_stride=False,
        msg=msg or None,
    )  # fmt: skip


def same(ref: Any, res: Any, *, tol: float = 1e-4, equal_nan: bool = False, exact_dtype: bool = True) -> bool:
    """Whether two results are the same, in structure, kind and (within `tol`) value."""
    again: dict[str, Any] = {"tol": tol, "equal_nan": equal_nan, "exact_dtype": exact_dtype}
    if isinstance(ref, Tensor):
        if not isinstance(res, Tensor) or ref.shape != res.shape or exact_dtype and ref.dtype is not res.dtype:
            return False
        try:
            assert_close(res.detach(), ref.detach(), rtol=tol, atol=tol, equal_nan=equal_nan, check_dtype=exact_dtype, check_stride=False)  # fmt: skip
        except AssertionError:
            return False
        return True
    if isinstance(ref, (list, tuple)):
        return isinstance(res, (list, tuple)) and len(ref) == len(res) and all(same(a, b, **again) for a, b in zip(ref, res, strict=True))  # fmt: skip
    if isinstance(ref, Mapping):
        return isinstance(res, Mapping) and ref.keys() == res.keys() and all(same(ref[k], res[k], **again) for k in ref)
    if isinstance(ref, float):
        return isinstance(res, (int, float)) and (abs(ref - res) <= tol or ref == res or equal_nan and ref != ref and res != res)  # fmt: skip
    if isinstance(ref, (int, str, bool, complex, type(None), dtype_type)) or type(ref) is not type(res):
        return bool(ref == res)
    return bool(ref == res) or hasattr(ref, "__dict__") and same(vars(ref), vars(res), **again)
