"""`Node`: one call, input or output of a graph.

In: an operation (`op`), what it calls (`target`) and arguments that name other nodes. Out: a link of the graph's list
that knows who uses it. What always holds: `a in b.users` exactly when `b in a.all_input_nodes`; arguments are immutable
and change only by assignment; nodes of a graph compare (`<`) by their place in it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ..core import device as devices
from ..core.dtype import dtype
from ..nn.module import type_name
from ..ops.system.operator import Operator
from .annotations import metadata_annotation
from .arguments import ATOMS, freeze, map_aggregate, replace_nodes
from .immutable import immutable_dict
from .names import format_arg, pretty_target, type_repr

if TYPE_CHECKING:
    from .graph import Graph

Target = Callable[..., Any] | str
Argument = Any

ATOMS |= {dtype, devices.device, devices.layout, devices.memory_format, Operator}
_OPS = frozenset(("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"))
_NO_KEYWORDS = immutable_dict()
GAP = 1 << 40  # between the places of nodes that were appended: room to insert between them


class Node:
    """One operation of a graph. Made by `Graph.create_node`, not by hand."""

    __slots__ = (
        "graph", "_name", "_op", "_target", "_args", "_kwargs", "_input_nodes", "users", "type", "_sort_key", "_prev",
        "_next", "_erased", "_repr_fn", "meta", "__dict__", "__weakref__",
    )  # fmt: skip
    is_graph_node = True

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple = (),
        kwargs: dict | None = None,
        return_type: Any = None,
    ):
        if op not in _OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} "
                    "but a Callable is expected"
                )
        elif target.__class__ is not str and not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {typename(target)} "
                "but a str is expected"
            )
        self.graph = graph
        self._name = name
        self._op = op
        self._target = target
        self.users: dict[Node, None] = {}
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self._prev = self._next = self
        self._sort_key = 0
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        inputs: dict[Node, None] = {}
        self._input_nodes = inputs
        for a in args:  # most calls have nodes and constants only: their tuple is immutable as it is
            cls = a.__class__
            if cls is Node:
                inputs[a] = None
            elif cls not in ATOMS:
                args = freeze(args, inputs, Node)
                break
        self._args = args
        self._kwargs = freeze(kwargs, inputs, Node) if kwargs else _NO_KEYWORDS
        for used in inputs:
            used.users[self] = None

    # ---- what it is
    def _set_name(self, name: str) -> None:
        self.graph._graph_namespace._rename_object(self, name)
        self._name = name

    def _set_op(self, op: str) -> None:
        if op not in _OPS:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        self.graph._forget(self)
        self._op = op
        self.graph._remember(self)

    def _set_target(self, target: Target) -> None:
        self.graph._forget(self)
        self._target = target
        self.graph._remember(self)

    # Read often: attrgetter keeps the property in C.
    name = property(attrgetter("_name"), _set_name)
    op = property(attrgetter("_op"), _set_op)
    target = property(attrgetter("_target"), _set_target)

    def _rename(self, candidate: str) -> None:
        if candidate != self._name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)

    @property
    def stack_trace(self) -> str | None:
        """The Python stack that recorded this node, where one was kept."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    # ---- arguments
    def _set_args(self, args: tuple) -> None:
        self._update(args, self._kwargs)

    def _set_kwargs(self, kwargs: dict) -> None:
        self._update(self._args, kwargs)

    args = property(attrgetter("_args"), _set_args)
    kwargs = property(attrgetter("_kwargs"), _set_kwargs)

    def _update(self, args: tuple, kwargs: dict) -> None:
        """Take new arguments, and tell the nodes concerned."""
        inputs: dict[Node, None] = {}
        args, kwargs = freeze(args, inputs, Node), freeze(kwargs, inputs, Node)
        for used in self._input_nodes:
            if used not in inputs:
                used.users.pop(self, None)
        for used in inputs:
            used.users.setdefault(self)
        self._args, self._kwargs, self._input_nodes = args, kwargs, inputs

    _update_args_kwargs = _update

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use another node wherever the arguments name `old_input`."""
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None)
        for hook in hooks or ():
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old: Node, new: Any) -> None:
        swap = lambda n: new if n is old else n
        self._update(replace_nodes(self._args, Node, swap), replace_nodes(self._kwargs, Node, swap))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let every user (that the callback accepts) use another node instead; the users changed."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        hooks = getattr(self.graph.owning_module, "_replace_hooks", None) or ()
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            for hook in hooks:
                hook(old=self, new=replace_with.name, user=user)
            user._replace_input_with(self, replace_with)
        return changed

    # ---- place
    @property
    def next(self) -> Node:
        """The node after this one; after the last comes the root."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one; before the first comes the root."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node of the same graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev, x._next, self._prev = x, before, self, x
        x._place()

    def append(self, x: Node) -> None:
        """Move a node of the same graph after this one."""
        if self._next is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        before, after = self._prev, self._next
        before._next, after._prev = after, before
        self._prev = self._next = self

    def _place(self) -> None:
        """Find a number between those of the neighbours; where there is none, number all nodes anew."""
        before, after = self._prev, self._next
        if after._op == "root":
            self._sort_key = before._sort_key + GAP
            return
        self._sort_key = (before._sort_key + after._sort_key) >> 1
        if self._sort_key in (before._sort_key, after._sort_key):
            for i, node in enumerate(self.graph.nodes):
                node._sort_key = (i + 1) * GAP

    def __lt__(self, other: Node) -> bool:
        return self._sort_key < other._sort_key

    def __gt__(self, other: Node) -> bool:
        return self._sort_key > other._sort_key

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # ---- facts
    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay even when nothing uses its result."""
        if self._op in ("placeholder", "output"):
            return True
        if self._op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(path_of(self)), "_is_impure", False)
        return self._op == "call_function" and is_impure_call(self._target, self._kwargs, impure_random)

    def normalized_arguments(self, root: Any, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """The arguments by the target's signature, or None where it has none."""
        from .operator_schemas import normalize_function, normalize_module

        if callable(self._target):
            return normalize_function(
                self._target, self._args, self._kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self._op == "call_module":
            return normalize_module(root, path_of(self), self._args, self._kwargs, normalize_to_only_use_kwargs)
        return None

    # ---- text
    def __repr__(self) -> str:
        return self._name if self._repr_fn is None else self._repr_fn(self)

    _pretty_print_target = staticmethod(pretty_target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The line of this node in `print(graph)`."""
        annotation = f"{type_repr(self.type)} " if self.type is not None else ""
        if self._op == "placeholder":
            if placeholder_names:
                placeholder_names.append(f"{self._target}: {annotation.strip()}" if annotation else path_of(self))
                return None
            default = f"(default={self._args[0]})" if self._args else ""
            return f"%{self._name} : {annotation}[num_users={len(self.users)}] = placeholder[target={self._target}]{default}"
        if self._op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_repr(self.type)}"
            return f"return {self._args[0]}"
        head = f"[num_users={len(self.users)}] = {self._op}[target={pretty_target(self._target)}]"
        if self._op == "get_attr":
            return f"%{self._name} : {annotation}{head}"
        if include_tensor_metadata:
            annotation = metadata_annotation(self) or annotation
        return (
            f"%{self._name} : {annotation}{head}(args = {format_arg(self._args)}, kwargs = {format_arg(self._kwargs)})"
        )

    def __reduce__(self):
        """With its graph: what is read again is the node at the same place of a copy."""
        return _node_at, (self.graph, list(self.graph.nodes).index(self))

    def __deepcopy__(self, memo: dict) -> Node:
        """Nodes are copied with their graph; a node met outside of it (in some meta) stays itself."""
        return memo.get(id(self), self)


def _node_at(graph: Graph, place: int) -> Node:
    return list(graph.nodes)[place]


def path_of(node: Node) -> str:
    """The target of a node that calls no function: a name, or a dotted path."""
    target = node._target
    if not isinstance(target, str):
        raise TypeError(f"the target of {node._op} {node._name} must be a name, but is {target!r}")
    return target


def typename(value: Any) -> str:
    """The name of a value's type, as error messages say it."""
    return type_name(value)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Apply `fn` to every node in an argument structure."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return replace_nodes(a, Node, fn)


# ---- what must not be removed
side_effects: set = {operator.setitem}


def has_side_effect(fn: Callable) -> Callable:
    """Register a function whose calls are kept even when nothing uses their results."""
    side_effects.add(fn)
    return fn


def is_impure_call(target: Any, kwargs: dict, impure_random: bool) -> bool:
    """Whether a function call does more than give its result."""
    if target in side_effects or getattr(target, "has_effects", False):
        return True
    if isinstance(target, Operator) and (target.schema.is_mutable or target.declared.writes_unseen):
        return True
    if "out" in kwargs and kwargs["out"] is not None:
        return True
    return impure_random and "nondeterministic_seeded" in getattr(target, "tags", ())


__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]
