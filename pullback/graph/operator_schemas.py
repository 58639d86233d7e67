"""The signatures of what nodes call.

In: a function, operator or module, and arguments. Out: the arguments in the signature's order with defaults filled in.
What always holds: None where there is no signature that says enough; an ambiguous overload raises.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dtype import dtype
from ..core.tensor import Tensor
from ..nn.module import Module
from ..ops.system.operator import Operator, packets
from ..ops.system.packet import OpOverloadPacket


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by keyword."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def get_signature_for_torch_op(op: Callable, return_schemas: bool = False) -> Any:
    """The signatures of an operator, a packet of operators, or a function that is one; None for others."""
    found = _operators(op)
    if not found:
        return (None, None) if return_schemas else None
    signatures = [_signature(o) for o in found]
    return (signatures, [o.schema for o in found]) if return_schemas else signatures


def _operators(op: Any) -> list[Operator]:
    if isinstance(op, Operator):
        return [op]
    if isinstance(op, OpOverloadPacket):
        return list(op._overloads().values())
    return [o for o in packets.get(getattr(op, "__name__", ""), {}).values() if getattr(o, "function", None) is op]


def _signature(op: Operator) -> inspect.Signature:
    kinds = inspect.Parameter
    parameters = []
    for argument in op.schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        kind = kinds.KEYWORD_ONLY if argument.kwarg_only else kinds.POSITIONAL_OR_KEYWORD
        default = argument.default if argument.has_default else kinds.empty
        name = f"{name}_" if name in ("from", "lambda", "in") else name
        parameters.append(kinds(name, kind, default=default, annotation=argument.type.removesuffix("?")))
    return inspect.Signature(parameters)


def normalize_function(
    target: Callable,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple | None = None,
    kwarg_types: dict | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a function call by its signature."""
    kwargs = dict(kwargs or {})
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        try:
            signatures = [inspect.signature(inspect.unwrap(target))]
        except (TypeError, ValueError):
            return None
    fitting = [s for s in signatures if _fits(s, args, kwargs)]
    if len(fitting) > 1 and (arg_types or kwarg_types):
        fitting = [s for s in fitting if _fits_types(s, arg_types or (), kwarg_types or {})]
    elif len(fitting) > 1:
        shown = "\n".join(str(s) for s in fitting)
        raise RuntimeError(
            f"Tried to normalize arguments to {getattr(target, '__name__', target)} but the schema match was ambiguous! "
            f"Please provide argument types to the normalize_arguments() call. Available schemas:\n{shown}"
        )
    return _normalized(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def normalize_module(
    root: Module, target: str, args: tuple, kwargs: dict | None = None, normalize_to_only_use_kwargs: bool = False
) -> ArgsKwargsPair | None:
    """The arguments of a module call by the signature of its forward, for modules of `torch.nn`."""
    try:
        module = root.get_submodule(target)
    except AttributeError as e:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!") from e
    if not type(module).__module__.startswith(Module.__module__.rpartition(".")[0]):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _normalized(signature, args, dict(kwargs or {}), normalize_to_only_use_kwargs)


def _fits(signature: inspect.Signature, args: tuple, kwargs: dict) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def _fits_types(signature: inspect.Signature, args: tuple, kwargs: dict) -> bool:
    """Whether example types are those of the schema: tensors where it says Tensor, numbers where it says so."""
    for name, kind in signature.bind_partial(*args, **kwargs).arguments.items():
        wanted = _PYTHON_TYPES.get(signature.parameters[name].annotation)
        if wanted is not None and isinstance(kind, type) and not issubclass(kind, wanted):
            return False
    return True


_PYTHON_TYPES: dict[Any, type | tuple[type, ...]] = {
    "Tensor": Tensor, "Scalar": (int, float, complex), "float": (int, float), "int": int, "bool": bool, "str": str,
    "Tensor[]": (list, tuple), "int[]": (list, tuple), "SymInt[]": (list, tuple), "SymInt": int,
}  # fmt: skip


def _normalized(signature: inspect.Signature, args: tuple, kwargs: dict, only_kwargs: bool) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in plain for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    names = list(signature.parameters)
    count = 0 if only_kwargs else len(args)
    values = bound.arguments
    return ArgsKwargsPair(tuple(values[n] for n in names[:count]), {n: values[n] for n in names[count:]})


def check_for_mutable_operation(target: Any, args: tuple, kwargs: dict) -> None:
    """Raise where a function writes to one of its arguments."""
    found = _operators(target)
    if kwargs.get("out") is None:
        writers = [o.schema for o in found if o.schema.is_mutable]
    else:
        out = getattr(found[0].overloadpacket, "out", None) if found else None
        writers = [getattr(target, "__name__", target) if out is None else out.schema]
    if writers:
        raise RuntimeError(
            f"Tried to trace mutable operation {writers[0]}. FX only supports functional code, "
            "so operations that mutate operands in-place (e.g. via `out` arguments) are not supported"
        )


def create_type_hint(x: Any) -> Any:
    """The type of an argument that holds types, or examples: a list of one type where one fits all, else of anything."""
    if not isinstance(x, (list, tuple)):
        return x
    kinds = [v if isinstance(v, type) else type(v) for v in x]
    inner = next((k for k in kinds if all(issubclass(other, k) for other in kinds)), Any)
    return list[inner] if isinstance(x, list) else tuple[inner, ...]  # type: ignore[valid-type]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given where a signature has another."""
    origin, parts = typing.get_origin(signature_type), typing.get_args(signature_type)
    if signature_type == argument_type or signature_type is Any:
        return True
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(part, argument_type) for part in parts)
    if origin is list:
        given = typing.get_args(argument_type)[:1] if typing.get_origin(argument_type) in (list, tuple) else ()
        if given:
            return given[0] is Any or type_matches(parts[0], given[0])
        return argument_type is int and parts[0] is int  # one number stands for a list of them
    if signature_type is int and argument_type is dtype:
        return True
    if isinstance(signature_type, type) and isinstance(argument_type, type):
        return issubclass(argument_type, signature_type)
    return False
