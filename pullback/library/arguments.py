"""Arguments of library operators: Python values in, canonical arguments out, and kernels' results checked.

Unlike the public functions, operators called by their own name take exactly what the schema says (no number for a
tensor), and say in PyTorch's words what they got instead. None stands for a tensor that is not there, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.tensor import Tensor
from ..ops.system.schema import Argument, Schema, Unfit

_SHOWN = {"Scalar": "number", "ScalarType": "int", "SymInt": "int", "SymFloat": "float", "SymBool": "bool", "Layout": "int", "MemoryFormat": "int"}  # fmt: skip


def converter(argument: Argument) -> Callable:
    """The function that brings a value of this argument into canonical form, or raises Unfit."""
    base = argument.base.removesuffix("?")
    convert = argument.convert_value
    if base == "Tensor":
        return _tensors(argument, convert) if argument.is_list else _tensor
    if base == "float":
        return _floats(convert)
    if base in ("bool", "SymBool") and not argument.is_list:
        return lambda value: bool(value) if value.__class__ is int else convert(value)
    if base in ("int", "SymInt") and not argument.is_list:
        return lambda value: int(value) if value.__class__ is bool else convert(value)
    if base == "Scalar" and not argument.is_list:
        return _scalar(convert)
    return convert


def _tensor(value):
    if isinstance(value, Tensor) or value is None:
        return value
    raise Unfit


def _tensors(argument: Argument, convert: Callable) -> Callable:
    def tensors(value):
        try:
            return convert(value)
        except TypeError:
            raise Unfit from None

    return tensors


def _floats(convert: Callable) -> Callable:
    def floats(value):
        result = convert(value)
        if result.__class__ is tuple:
            return tuple([float(v) if v.__class__ is int else v for v in result])
        return float(result) if result.__class__ is int else result

    return floats


def _scalar(convert: Callable) -> Callable:
    def scalar(value):
        if isinstance(value, Tensor):
            raise Unfit
        return convert(value)

    return scalar


def mismatch(name: str, schema: Schema, position: int, value: object) -> RuntimeError:
    """PyTorch's words for a value that is not of its argument's type."""
    argument = schema.arguments[position]
    base = argument.base.removesuffix("?")
    if base == "Tensor" and not argument.is_list:
        reason = f"Unable to cast {value} to Tensor"
    elif base == "Scalar" and not argument.is_list:
        reason = f"Cannot cast {value!s} to number"
    else:
        kind = str(type(value)).replace("pullback.core.tensor", "torch")
        reason = (
            f"Unable to cast Python instance of type {kind} to C++ type '?' (#define PYBIND11_DETAILED_ERROR_MESSAGES or compile in debug mode "
            "for details)"
        )
    return RuntimeError(
        f"{name}() Expected a value of type '{shown_type(argument)}' for argument '{argument.name}' but instead found type "
        f"'{type(value).__name__}'.\nPosition: {position}\nValue: {value!r}\nDeclaration: {schema}\nCast error details: {reason}"
    )


def shown_type(argument: Argument) -> str:
    """A type as PyTorch's messages write it: `Optional[List[int]]`."""
    base = argument.base
    inner = base.endswith("?")
    base = base.removesuffix("?")
    text = _SHOWN.get(base, base)
    if inner:
        text = f"Optional[{text}]"
    if argument.is_list:
        text = f"List[{text}]"
    return f"Optional[{text}]" if argument.optional else text


# ---- results
def result_check(name: str, schema: Schema) -> Callable | None:
    """A function that brings what a kernel returned into the schema's form, or raises; None where a tensor is expected."""
    kinds = [kind for kind, _ in schema.returns]
    if not kinds:
        return _nothing(name)
    if kinds == ["Tensor"]:
        return None
    checks = [_RESULTS.get(kind, _as_is) for kind in kinds]
    if len(kinds) == 1:
        return lambda value: checks[0](name, kinds[0], value)

    def several(value):
        if not isinstance(value, (tuple, list)) or len(value) != len(kinds):
            found = f"{len(value)} values" if isinstance(value, (tuple, list)) else f"a {type(value).__name__}"
            raise RuntimeError(f"{name}: expected the kernel to return {len(kinds)} values, got {found}")
        return tuple([check(name, kind, v) for check, kind, v in zip(checks, kinds, value, strict=True)])

    return several


def bad_tensor(value: object) -> RuntimeError:
    return RuntimeError(f"Unable to cast {value} to Tensor")


def _nothing(name: str) -> Callable:
    def nothing(value):
        if value is not None:
            raise RuntimeError(
                f"Expected PythonKernelHolder for {name} to return None but it returned something else instead."
            )

    return nothing


def _one_tensor(name: str, kind: str, value):
    if value is None or isinstance(value, Tensor):
        return value
    raise bad_tensor(value)


def _tensor_list(name: str, kind: str, value):
    if isinstance(value, (tuple, list)):
        return [_one_tensor(name, kind, v) for v in value]
    raise RuntimeError(f"{name}: expected the kernel to return a list of Tensors, got {type(value).__name__}")


def _number(*kinds: type, convert=None) -> Callable:
    def check(name: str, kind: str, value):
        if not isinstance(value, kinds) and not getattr(value, "is_symbolic", False):
            raise RuntimeError(f"{name}: expected the kernel to return {kind}, got {type(value).__name__}")
        return convert(value) if convert is not None and not getattr(value, "is_symbolic", False) else value

    return check


def _as_is(name: str, kind: str, value):
    return value


_RESULTS: dict[str, Callable] = {
    "Tensor": _one_tensor, "Tensor?": _one_tensor, "Tensor[]": _tensor_list, "int": _number(int), "SymInt": _number(int),
    "float": _number(int, float, convert=float), "bool": _number(bool, int, convert=bool), "Scalar": _number(int, float, complex), "str": _number(str),
}  # fmt: skip
