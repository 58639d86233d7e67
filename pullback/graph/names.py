"""Names: what functions, types and arguments are called in printed graphs and in generated code.

In: any object that a graph refers to. Out: its dotted public name, always under `torch`, as PyTorch prints it. What
always holds: a name that begins with `torch.` can be looked up from the package's root and gives the object back
(`is_reachable`); other objects are given to generated code as globals.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any

from ..core.layers import above
from ..core.tensor import Tensor
from ..ops.system.operator import Operator, exports
from ..ops.system.packet import OpOverloadPacket

ROOT = __package__.partition(".")[0]
_PREFIXED = frozenset(("linalg", "fft", "special"))  # whose functions carry the module in their name
_PREFERRED = ("torch", "nn.functional", "linalg", "fft", "special")


def type_repr(obj: Any) -> str:
    """A type as it stands in an annotation."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{_public_module(obj.__module__, obj.__qualname__, obj)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace(f"{Tensor.__module__}.Tensor", "torch.Tensor")


def qualified_name(function: Callable) -> str:
    """The dotted name under which a function is printed."""
    known = getattr(function, "namespace", None)
    if known is not None and isinstance(function, (Operator, OpOverloadPacket)) or known == "higher_order":
        return f"torch.ops.{known}.{function.__name__}"
    name = getattr(function, "__name__", None)
    if name is None:
        function, name = type(function), type(function).__name__
    if getattr(builtins, name, None) is function:
        return name
    public = _public_names().get(id(function))
    if public is not None:
        return public
    if name == "<lambda>":
        name = _name_of_lambda(function)
    module = getattr(function, "__module__", None)
    if module is None and isinstance(function, types.MethodDescriptorType):
        return f"{type_repr(function.__objclass__)}.{name}"
    if module is None:
        raise RuntimeError(f"cannot find module for {function}")
    return f"{_public_module(module, name, function)}.{name}"


def is_lasting(function: Any) -> bool:
    """Whether a function lives as long as the process, so that tables may keep it."""
    if isinstance(function, (Operator, OpOverloadPacket)) or id(function) in _public_names():
        return True
    return getattr(function, "__module__", None) in ("builtins", "_operator")


def public_name(function: Any) -> str | None:
    """The dotted name of an exported function."""
    return _public_names().get(id(function))


def name_hint(target: Any) -> str:
    """What the results of a function are called, before numbers make them unique."""
    public = None if isinstance(target, (Operator, OpOverloadPacket)) else _public_names().get(id(target))
    if public is None:
        return getattr(target, "__name__", None) or type(target).__name__
    *_, space, name = public.split(".")
    return f"{space}_{name}" if space in _PREFIXED else name


def is_tensor_method(function: Any) -> str | None:
    """The name of a function that is only reachable as a method of tensors."""
    public = _public_names().get(id(function), "")
    return public[len("torch.Tensor.") :] if public.startswith("torch.Tensor.") else None


def _name_of_lambda(function: Callable) -> str:
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except Exception as e:
        raise RuntimeError("Unable to represent lambda") from e


def _public_module(module: str, name: str, obj: Any) -> str:
    """Where users import something of this package from; other modules stay."""
    if module != ROOT and not module.startswith(ROOT + "."):
        return module
    parts = module.split(".")
    for n in range(1, len(parts) + 1):  # the shortest path that reaches it
        home = ".".join(parts[:n])
        if reach(".".join(["torch", *parts[1:n], name])) is obj:
            return _as_public(home)
    return _as_public(module)


def _as_public(module: str) -> str:
    for own, public in ((f"{ROOT}.graph.assertions", "torch.fx.proxy"), (f"{ROOT}.graph", "torch.fx")):
        if module == own or module.startswith(own + "."):
            return public + module[len(own) :]
    return "torch" + module[len(ROOT) :]


@functools.cache
def _public_names() -> dict[int, str]:
    """id of each exported function: its dotted name. Exports live as long as the process."""
    found: dict[int, str] = {}
    rest = [space for space in exports if space not in _PREFERRED and space != "Tensor"]
    for space in (*_PREFERRED, *rest, "Tensor"):
        prefix = "torch." if space == "torch" else f"torch.{space}."
        for name, function in exports.get(space, {}).items():
            found.setdefault(id(function), prefix + name)
    return found


def reach(name: str) -> Any:
    """The object at `torch.a.b`, or None. Submodules count once they are imported."""
    value: Any = above.package()
    for part in name.split(".")[1:]:
        try:
            value = getattr(value, part)
        except AttributeError:
            return None
    return value


def is_reachable(name: str, obj: Any) -> bool:
    """Whether generated code finds `obj` under its dotted name."""
    if name.startswith("torch.ops."):
        return True
    return name.startswith("torch.") and (reach(name) is obj or reach(name) == obj)


def pretty_target(target: Any) -> str:
    """A node's target as `print(graph)` shows it."""
    if isinstance(target, str):
        return target
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if name is not None and module == "builtins":
        return f"builtins.{name}"
    if name is not None and module == "_operator":
        return f"operator.{name}"
    if isinstance(target, Operator):
        return f"torch.ops.{target}"
    return qualified_name(target)


def format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    """An argument as `print(graph)` shows it."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        named = (f"{name}={format_arg(value, max_list_len)}" for name, value in zip(arg._fields, arg, strict=True))
        return f"{type(arg).__name__}({', '.join(named)})"
    if isinstance(arg, (list, tuple)):
        items = [format_arg(a) for i, a in enumerate(arg) if i < max_list_len]
        cut = f", ...[total_len={len(arg)}]" if len(arg) >= max_list_len + 1 else ""
        if isinstance(arg, list):
            return f"[{', '.join(items)}{cut}]"
        return f"({', '.join(items)}{',' if len(arg) == 1 else ''}{cut})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{k}: {format_arg(v)}" for k, v in arg.items()) + "}"
    return f"%{arg}" if getattr(arg, "is_graph_node", False) is True else str(arg)
