"""Python source from a graph.

In: the nodes of a graph. Out: `PythonCode`, the source of a `forward` method and the globals it needs. What always
holds: running the source does what interpreting the graph does; values are dropped after their last use; every global
that is not reachable as `torch.…` is in `globals` under the name that the source uses.
"""

from __future__ import annotations

import enum
import keyword
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import tree
from ..core.device import device
from ..core.layers import above
from ..core.tensor import Tensor
from ..ops.system.operator import Operator
from .annotations import annotation, painter, value_of
from .names import is_reachable, qualified_name, type_repr
from .naming import Namespace
from .node import Node, path_of
from .wrapping import wrap

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}", "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", **reflectable_magic_methods,
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Source and globals of a generated function."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


@dataclass
class Style:
    """What readable code shows beyond the calls."""

    verbose: bool = False
    include_stride: bool = False
    include_device: bool = False
    colored: bool = False
    expanded_def: bool = False
    additional_meta: Sequence[str] | None = None


class CodeGen:
    """How a graph becomes a function: its signature and its return. Subclasses change either."""

    _sym_repr: Callable[[Any], str] = staticmethod(lambda x: repr(x))

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, *, expanded_def: bool = False) -> str:
        """`def forward(self, a, b):`."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if expanded_def:
            lines = "".join(_argument_line(v) for v in free_vars)
            return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Sequence[str] | None = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """`return out`."""
        if descs is not None and isinstance(output_args, (list, tuple)):
            return _described("return ", output_args, descs, repr_fn)
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The graph's inputs from the function's."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's outputs from the graph's."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names that the generated text uses beyond those of the nodes."""
        return []

    def _gen_python_code(
        self, nodes: Iterable[Node], root_module: str, namespace: Namespace, style: Style | None = None, **options: Any
    ) -> PythonCode:
        return _Writer(self, root_module, namespace, style or Style(**options)).write(nodes)


def _argument_line(argument: str) -> str:
    head, mark, comment = argument.partition("#")
    return f"    {head.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {argument},\n"


def _described(prefix: str, items: Sequence, descs: Sequence[str], repr_fn: Callable[[Any], str]) -> str:
    """A container, one item a line, each with its description."""
    left, right = "()" if isinstance(items, tuple) else "[]"
    lines = "".join(f"    {repr_fn(item)},  # {desc}\n" for item, desc in zip(items, descs))
    return f"{prefix}{left}\n{lines}{right}"


def standard_globals() -> dict[str, Any]:
    """What generated code may name without asking."""
    from . import tree_calls

    return {
        "inf": math.inf, "nan": math.nan, "NoneType": type(None), "torch": above.package(), "device": device,
        "fx_pytree": tree_calls, "pytree": tree,
    }  # fmt: skip


class _Writer:
    """One function being written."""

    def __init__(self, codegen: CodeGen, root: str, namespace: Namespace, style: Style):
        self.codegen = codegen
        self.root = root
        self.namespace = namespace
        self.style = style
        self.paint = painter(style.colored)
        self.globals: dict[str, Any] = {}
        self.free_vars: list[str] = []
        self.return_annotation = ""
        self.wrapped: dict[str, None] = {}
        self.summary = ""
        self.called: dict[Any, str] = {}  # target -> its name in the source
        self.emit = {
            "placeholder": self.placeholder, "call_method": self.call_method, "call_function": self.call_function,
            "call_module": self.call_module, "get_attr": self.get_attr, "output": self.output,
        }  # fmt: skip

    def write(self, nodes: Iterable[Node]) -> PythonCode:
        for name, value in standard_globals().items():
            self.globals[name] = value
            self.namespace.bind(name, value)
        nodes = list(nodes)
        dead = last_uses(nodes)
        body: list[str] = []
        owners: list[int] = []  # for each piece of the body, the node it was written for
        for i, node in enumerate(nodes):
            if self.style.verbose:
                body.append(self.comment(node))
            body.append(self.emit[node._op](node))
            body.append(self.ending(node, dead))
            owners.extend([i] * (len(body) - len(owners)))
        return self.assemble([*body] or ["pass\n"], owners)

    def assemble(self, body: list[str], owners: list[int]) -> PythonCode:
        wraps = self.wrap_statements()
        if self.codegen._body_transformer is not None:
            written, body = body, self.codegen._body_transformer(body)
            owners = _owners_after(written, owners, body)
        for name, value in self.codegen.additional_globals():
            self.add_global(name, value)
        prologue = _call_with_known(
            self.codegen.gen_fn_def, (self.free_vars, self.return_annotation), expanded_def=self.style.expanded_def
        )
        lines = line_numbers(body, owners, prologue.count("\n") + 1) if owners else {}
        code = "".join(body).lstrip("\n")
        code = "\n".join(["    " + line for line in code.split("\n")])
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{code}", self.globals, lines, wraps.count("\n") + 4)

    # ---- names
    def add_global(self, hint: str, obj: Any) -> str:
        """The name of an object in the source; it is made a global unless reachable under `torch`."""
        if obj is not device and is_reachable(hint, obj):
            return hint
        name = self.namespace.create_name(hint, obj)
        if self.globals.setdefault(name, obj) is not obj and self.globals[name] != obj:
            raise AssertionError(f"Global name {name} already assigned to different object")
        return name

    def function_name(self, target: Any) -> str:
        name = self.called.get(target)
        if name is None:
            head, _, rest = self.add_global(qualified_name(target), target).partition(".")
            name = self.called[target] = dotted(head, rest) if rest else head
        return name

    def type_name(self, o: Any) -> str:
        """A type annotation as source."""
        if o == ():
            return "()"
        text = type_repr(o)
        if isinstance(o, types.UnionType):
            return "|".join(self.type_name(a) for a in typing.get_args(o))
        origin = getattr(o, "__origin__", None)
        if origin is not None:
            if isinstance(o, typing._GenericAlias):  # type: ignore[attr-defined]
                origin = _TYPING.get(origin, origin)
            base = self.add_global(type_repr(origin), origin)
            args = getattr(o, "dims", None) or typing.get_args(o)
            return f"{base}[{','.join(self.type_name(a) for a in args)}]" if args else base
        return self.add_global(text, o)

    def wrap_statements(self) -> str:
        if not self.wrapped:
            return ""
        name = self.add_global("torch.fx._symbolic_trace.wrap", wrap)
        return "\n".join(f'{name}("{function}")' for function in self.wrapped)

    # ---- values
    def value(self, arg: Any) -> str:
        """An argument as source."""
        cls = arg.__class__
        if cls is Node:
            return repr(arg)
        if cls is tuple:
            return f"({self.value(arg[0])},)" if len(arg) == 1 else f"({', '.join([self.value(a) for a in arg])})"
        if isinstance(arg, list):
            return f"[{', '.join([self.value(a) for a in arg])}]"
        if cls is int or cls is str or arg is None:
            return self.paint("blue", repr(arg))
        return self.rare_value(arg)

    def rare_value(self, arg: Any) -> str:
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return f"{self.add_global(qualified_name(type(arg)), type(arg))}{tuple(arg)!r}"
        if isinstance(arg, Operator) or getattr(arg, "namespace", None) == "higher_order":
            return self.function_name(arg)
        if isinstance(arg, enum.Enum):
            return f"{self.add_global(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Tensor):
            return f"torch.Tensor(size={list(arg.shape)}, dtype={str(arg.dtype).rpartition('.')[2]})"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{k!r}: {self.value(v)}" for k, v in arg.items()) + "}"
        return repr(arg) if isinstance(arg, Node) else self.paint("blue", repr(arg))

    def arguments(self, args: tuple, kwargs: dict) -> str:
        pieces = [self.value(a) for a in args]
        if kwargs:
            pieces += [
                f"{k} = {self.value(v)}" if not keyword.iskeyword(k) else f"**{{{k!r}: {self.value(v)}}}"
                for k, v in kwargs.items()
            ]
        return ", ".join(pieces)

    def left(self, node: Node) -> str:
        """The name of the result, with its annotation."""
        return f"{node!r}{self.annotation(node)}"

    def annotation(self, node: Node) -> str:
        if self.style.verbose:
            text = annotation(value_of(node), self.style.include_stride, self.style.include_device, self.paint)
            if text is not None:
                return f': "{text}"'
        return "" if node.type is None else f" : {self.type_name(node.type)}"

    # ---- nodes
    def placeholder(self, node: Node) -> str:
        default = f" = {self.value(node._args[0])}" if node._args else ""
        desc = node.meta.get("desc") if self.style.expanded_def else None
        comment = f"  # {desc}" if desc is not None else ""
        self.free_vars.append(f"{node._target}{self.annotation(node)}{default}{comment}")
        raw = path_of(node).replace("*", "")
        return f"{node!r} = {raw}\n" if raw != repr(node) else ""

    def call_method(self, node: Node) -> str:
        receiver = dotted(self.value(node._args[0]), path_of(node))
        return f"{self.left(node)} = {receiver}({self.arguments(node._args[1:], node._kwargs)})"

    def call_function(self, node: Node) -> str:
        target, args = node._target, node._args
        if getattr(target, "__module__", None) == "_operator":
            name = getattr(target, "__name__", "")
            if name in magic_methods:
                return f"{self.left(node)} = {magic_methods[name].format(*[self.value(a) for a in args])}"
            if name in inplace_methods:
                statement = inplace_methods[name].format(*[self.value(a) for a in args])
                return f"{statement};  {self.left(node)} = {self.value(args[0])}"
        name = self.function_name(target)
        if name == "getattr" and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{self.left(node)} = {dotted(self.value(args[0]), args[1])}"
        if node.meta.get("is_wrapped", False):
            self.wrapped.setdefault(name)
        return f"{self.left(node)} = {name}({self.arguments(args, node._kwargs)})"

    def call_module(self, node: Node) -> str:
        return f"{self.left(node)} = {dotted(self.root, path_of(node))}({self.arguments(node._args, node._kwargs)})"

    def get_attr(self, node: Node) -> str:
        return f"{self.left(node)} = {dotted(self.root, path_of(node))}"

    def output(self, node: Node) -> str:
        if node.type is not None:
            self.return_annotation = f" -> {self.type_name(node.type)}"
        descs = node.meta.get("desc") if self.style.expanded_def else None
        return _call_with_known(self.codegen.generate_output, (node._args[0],), descs=descs, repr_fn=self.value)

    # ---- around nodes
    def ending(self, node: Node, dead: dict[Node, list[Node]]) -> str:
        """The end of a node's line: what it used for the last time is dropped."""
        if node._op == "placeholder":
            return ""
        names = [repr(n) for n in dead.get(node, ())]
        if not node.users:
            names.append(repr(node))
        if node._op == "output" or not names:
            return "\n"
        return f";  {self.paint('dim', ' = '.join([*names, 'None']))}\n"

    def comment(self, node: Node) -> str:
        """Where the node comes from, when that differs from the line above."""
        if node._op in ("placeholder", "output"):
            return ""
        shown = [f"{k}: {node.meta[k]}" for k in self.style.additional_meta or () if k in node.meta]
        extra = f"# {', '.join(shown)} " if shown else ""
        origin = stack_summary(node.stack_trace) or "No stacktrace found for following nodes"
        text = self.paint("dim", f"{extra}#{custom_meta(node)}{recompute_meta(node)} {origin}")
        if text == self.summary:
            return ""
        self.summary = text
        return f"\n{text}\n"


_TYPING = {
    list: typing.List,  # noqa: UP006 - these print as the user wrote them
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}


def last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node, the nodes that nothing after it uses."""
    seen: set[Node] = set()
    dead: dict[Node, list[Node]] = {}
    for node in reversed(nodes):
        for used in node._input_nodes:
            if used not in seen:
                seen.add(used)
                dead.setdefault(node, []).append(used)
    return dead


def indented(text: str) -> str:
    """All lines but the first moved to the right; blank lines stay empty."""
    first, *rest = text.split("\n")
    return "\n".join([first, *("    " + line if line.strip() else "" for line in rest)])


def dotted(base: str, target: str) -> str:
    """`base.a.b`; parts that are no identifiers are fetched with getattr."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() and not keyword.iskeyword(part) else f'getattr({base}, "{part}")'
    return base


_frame = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$").match


def stack_summary(stack_trace: str | None) -> str | None:
    """The innermost frame of a formatted stack, on one line."""
    lines = (stack_trace or "").strip().split("\n")
    for at in range(len(lines) - 2, -1, -1):
        found = _frame(lines[at].strip())
        if found:
            return f"File: {found[1]}:{found[2]} in {found[3]}, code: {lines[at + 1].strip()}"
    return None


def custom_meta(node: Node) -> str:
    """What the user annotated the node with."""
    custom = node.meta.get("custom")
    if not custom:
        return ""
    short = {k: f"{str(v)[:40]}..." if len(str(v)) > 40 else v for k, v in custom.items()}
    return f" Annotation: {short}"


def recompute_meta(node: Node) -> str:
    """The checkpointing tags of a node."""
    recompute, region = node.meta.get("recompute"), node.meta.get("ac_graph_id")
    if recompute is not None and region is not None:
        return f" ac_graph_id: {region} - {recompute.name}"
    if recompute is not None:
        return f" recompute: {recompute.name}"
    return f" ac_graph_id: {region}" if region is not None else ""


def _owners_after(before: list[str], owners: list[int], after: list[str]) -> list:
    """The nodes that pieces were written for, in a body that was changed; None for pieces that are new."""
    found, at = [], 0
    for piece in after:
        here = next((i for i in range(at, len(owners)) if before[i] == piece), None)
        found.append(None if here is None else owners[here])
        at = at if here is None else here + 1
    return found


def line_numbers(body: list[str], owners: list, first: int) -> dict[int, int | None]:
    """Line of the function (from its `def`) -> number of the node it was written for."""
    lines: dict[int, int | None] = {}
    at = first
    for piece, owner in zip(body, owners):
        if piece:
            lines.setdefault(at, owner)
        for _ in range(piece.count("\n")):
            lines.setdefault(at, owner)
            at += 1
    return lines


def _call_with_known(method: Callable, args: tuple, **options: Any) -> str:
    """Call a method that a subclass may have defined without the newer keyword arguments."""
    import inspect

    known = inspect.signature(method).parameters
    return method(*args, **{k: v for k, v in options.items() if k in known})
