"""Operators that take functions: how a call of one finds its rule.

In: a call `op(*args, **kwargs)` whose arguments are functions (or graphs), tensors and numbers, nested at will. Out: what
the functions make of them. A call is offered, in this order, to class overrides (`__torch_function__`), function
transforms, autograd, the dispatch modes from the innermost outward, tensor subclasses, fake tensors, and last to `plain`.

Where nothing traces, `plain` is ordinary Python on ordinary tensors: gradients, tangents and batches go through the
functions themselves, and so do tensors that these close over. Where something does (a dispatch mode, a fake tensor), the
functions are first *closed*: each becomes a graph, and every tensor it closes over becomes an operand. What always holds:
below autograd, functions use nothing but their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from ...autograd.forward import tangent_of
from ...autograd.nodes import delayed_error
from ...core import modes, tree
from ...core.modes import ambient
from ...core.node import requires_grad
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, Tensor, disabled_torch_dispatch
from ...graph import GraphModule
from ...ops.system.operator import Operator
from ...ops.system.overrides import any_overridden, call_overridden, without_dispatch_mode
from ...ops.system.packet import ops
from ..trace.promises import running_graphs
from . import schema, subprogram
from .subgraph import Example, close_over, fake_mode_for, is_closed, trace_subgraph, with_origins

AUTOGRAD_KEYS = frozenset(("Autograd", "AutogradCPU", "AutogradCUDA", "AutogradMeta"))
PLAIN_KEYS = ("CompositeExplicitAutograd", "CPU", "CUDA", "BackendSelect", "CompositeImplicitAutograd")


class Part(NamedTuple):
    """One function among the arguments: where it stands, what errors call it, what it is called with."""

    index: int
    label: str
    examples: list[Example]


@contextmanager
def naming_errors(name: str) -> Iterator[None]:
    """Errors that leave the block say in which operator they were raised: who captures the program tells."""
    try:
        yield
    except Exception as error:
        if not hasattr(error, "in_operator"):
            with suppress(AttributeError):  # a class without a `__dict__`
                error.in_operator = name  # type: ignore[attr-defined]
        raise


class HigherOrderOperator:
    """An operator some of whose arguments are functions. Subclass it; the instance is `torch.ops.higher_order.NAME`."""

    namespace = "higher_order"
    _ns = "higher_order"
    schema_names: tuple[str, ...] = ()  # of its arguments, in schemas of its calls; a list has that of its elements
    runs_once = True  # whether a call runs each of its functions exactly once, so that a graph may have done so
    prefixes: tuple[str, ...] = ()  # what its functions' graphs are called as attributes; a number follows

    def __init__(self, name: str, *, cacheable: bool = False, supports_training_input_mutation: bool = False):
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please subclass it.")
        if type(self).__call__ is HigherOrderOperator.__call__ and type(self).plain is HigherOrderOperator.plain:
            raise TypeError(
                f"Can't instantiate abstract class {type(self).__name__} without an implementation for abstract method '__call__'"
            )
        self._name = self.__name__ = name
        self.__module__ = "torch.ops.higher_order"
        self._cacheable = cacheable
        self.rules: dict[Any, Callable] = {}  # what users registered: mode class, tensor class or key name -> rule
        setattr(ops.higher_order, name, self)

    @property
    def shown_name(self) -> str:
        """How users call it."""
        return "torch.cond" if self._name == "cond" else f"torch.ops.higher_order.{self._name}"

    # ---- what an operator says of itself
    def parts(self, *args) -> list[Part]:
        """The functions among the positional arguments."""
        return []

    def extended(self, args: tuple, free: list[Tensor]) -> tuple:
        """The arguments, with more operands for all functions."""
        raise NotImplementedError(f"{self._name} takes no functions that close over tensors")

    def plain(self, *args, **kwargs):
        """The operator, where nothing traces."""
        rule = next((self.rules[k] for k in PLAIN_KEYS if k in self.rules), None)
        if rule is None:
            raise NotImplementedError(
                f"could not find kernel for HigherOrderOperator {self._name} at dispatch key CompositeExplicitAutograd"
            )
        return rule(*args, **kwargs)

    autograd: Callable | None = None  # (*args, **kwargs), where a gradient is wanted and something traces
    vmap_rule: Callable | None = None  # (level, *args, **kwargs), where something traces

    def fake_rule(self, mode, *args, **kwargs):
        """The operator on fake tensors: where it says nothing else, the functions run on them."""
        with mode:
            return self.plain(*args, **kwargs)

    def trace_rule(self, trace, *args, **kwargs):
        """One node in the graph of a trace; functions become graphs that its module holds."""
        args = self.traced_functions(trace, args)
        with running_graphs(trace):
            out = distinct(self(*args, **kwargs), args)
        self.record(trace, args, kwargs, out)
        return out

    def capture_rule(self, trace, *args, **kwargs):
        """One node in the graph of a program that is being captured, above autograd."""
        with subprogram.paused_capture(trace), naming_errors(self.shown_name):
            args = self.closed(args, lambda functions: subprogram.capture_functions(trace, functions, self.runs_once))
            args, kwargs = tree.tree_map_only(Tensor, trace._inside, (args, kwargs))
            with running_graphs(trace):
                out = distinct(self(*args, **kwargs), args)
        trace._note_grad_mode()
        self.record(trace, args, kwargs, out)
        return out

    def traced_functions(self, trace, args: tuple) -> tuple:
        """The arguments with graphs for functions, traced as the surroundings are."""
        fake_mode = trace.fake_mode or fake_mode_for(args)
        graphs = {
            p.index: trace_subgraph(args[p.index], p.examples, fake_mode, like=trace).module()
            for p in self.parts(*args)
        }
        return replaced(args, graphs)

    def record(self, trace, args: tuple, kwargs: dict, out) -> None:
        """The node of a call whose functions are graphs."""
        leaves, spec = tree.tree_flatten(args)
        if any(callable(v) and not isinstance(v, (Tensor, GraphModule, Operator, HigherOrderOperator)) for v in leaves):
            raise NotImplementedError(
                f"There was no rule registered for HigherOrderOperator {self._name} and mode {trace}."
            )
        at = [i for i, v in enumerate(leaves) if isinstance(v, GraphModule)]
        for i, node in zip(at, attach(trace, self.prefixes, [leaves[i] for i in at]), strict=True):
            leaves[i] = node
        arguments = tuple([trace.argument(a) for a in tree.tree_unflatten(leaves, spec)])
        node = trace.create_node(self, arguments, {k: trace.argument(v) for k, v in kwargs.items()}, self._name)
        trace.track(out, node)

    def functional_rule(self, mode, *args, **kwargs):
        """The operator on current values, with functions that write nothing."""
        functions = {
            p.index: mode.functional(with_origins(args[p.index]), p.label, self.shown_name) for p in self.parts(*args)
        }
        values = tree.tree_map_only(Tensor, mode.value, replaced(args, functions))
        return self(*values, **tree.tree_map_only(Tensor, mode.value, kwargs))

    # ---- schemas
    def schema_calls(self, *args) -> list[tuple[Callable, list[Example]]]:
        """The functions among the arguments, with what they are called with; the last one's results are the call's."""
        return [(args[p.index], p.examples) for p in self.parts(*args)]

    def gen_schema(self, *args) -> schema.CallSchema:
        """The schema of a call with these arguments; nothing is computed."""
        if not self.schema_names:
            raise NotImplementedError(f"There is no schema of calls of HigherOrderOperator {self._name}")
        return schema.schema_of_call(self, self.schema_names, args, self.schema_calls(*args))

    # ---- registration
    def py_impl(self, key) -> Callable:
        """Register a rule: for a dispatch mode's class, a tensor's class, or a dispatch key."""

        def register(rule: Callable) -> Callable:
            name = key if isinstance(key, type) else str(getattr(key, "name", key)).rpartition(".")[2]
            if name in self.rules:
                raise RuntimeError(f"Trying to override a python impl for {key} on operator {self._name}")
            self.rules[name] = rule
            return rule

        return register

    def py_autograd_impl(self, rule: Callable) -> Callable:
        """Register what runs where a gradient is wanted."""
        self.rules["AutogradWanted"] = rule
        return rule

    def py_functionalize_impl(self, rule: Callable) -> Callable:
        """Register what runs under functionalization, as `rule(mode, *args, **kwargs)`."""
        self.functional_rule = rule  # type: ignore[method-assign]
        return rule

    def fallthrough(self, key) -> None:
        """Drop the rule for a key: calls pass on."""
        self.rules.pop(str(getattr(key, "name", key)).rpartition(".")[2], None)

    # ---- calls
    def __call__(self, *args, **kwargs):
        if ambient.mode & modes.FUNCTION or any_overridden((*args, *kwargs.values())):
            return call_overridden(self, args, kwargs)
        return self.dispatch(args, kwargs)

    def dispatch(self, args: tuple, kwargs: dict):
        """From below overrides down."""
        mode = ambient.mode
        tensors = [t for t in tree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        traced = mode & modes.DISPATCH or any(t._keys & (FAKE | DISPATCH_SUBCLASS) for t in tensors)
        if mode & modes.TRANSFORM or ambient.reverse_levels and "Grad" in self.rules:
            return self._transformed(traced, args, kwargs)
        if mode & modes.CAPTURE:
            return self.capture_rule(ambient.captures[-1], *args, **kwargs)
        if not mode & modes.BELOW_AUTOGRAD:
            own = next((self.rules[k] for k in AUTOGRAD_KEYS if k in self.rules), None)
            if own is not None:
                with modes.masked(0, modes.BELOW_AUTOGRAD):
                    return own(*args, **kwargs)
            if traced:
                fake_mode = fake_mode_for(args)
                args = self.closed(args, lambda functions: close_over(functions, fake_mode))
                tensors = [t for t in tree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
                if mode & modes.FORWARD and any(_has_tangents(t) for t in tensors):
                    raise NotImplementedError(f"Trying to use forward AD with {self._name} where it is traced")
            rule = self.rules.get("AutogradWanted") or (self.autograd if traced else None)
            if rule is not None and mode & modes.GRAD and any(requires_grad(t) for t in tensors):
                return rule(*args, **kwargs)
        return self._below(args, kwargs, tensors)

    def closed(self, args: tuple, close: Callable) -> tuple:
        """The arguments with closed functions, and what these closed over among the operands."""
        parts = self.parts(*args)
        if all(is_closed(args[p.index]) for p in parts):
            return args
        functions, free = close([(args[p.index], p.examples) for p in parts])
        result = replaced(args, {p.index: f for p, f in zip(parts, functions, strict=True)})
        return self.extended(result, free) if free else result

    def _transformed(self, traced: int, args: tuple, kwargs: dict):
        """By the rule for the innermost open transform."""
        if ambient.reverse_levels and "Grad" in self.rules:
            level = ambient.reverse_levels[-1]
            if not ambient.transforms or level.depth > ambient.transforms[-1].depth:
                return self.rules["Grad"](level, *args, **kwargs)
        rule = self.rules.get("Vmap")
        if rule is not None:
            return rule(ambient.transforms[-1], *args, **kwargs)
        if not traced:
            return self.plain(*args, **kwargs)
        if self.vmap_rule is None:
            raise NotImplementedError(f"There was no rule registered for HigherOrderOperator {self._name} and vmap")
        return self.vmap_rule(ambient.transforms[-1], *args, **kwargs)

    def _below(self, args: tuple, kwargs: dict, tensors: list[Tensor]):
        """Under autograd: modes, subclasses, fakes, the plain implementation."""
        if ambient.mode & modes.DISPATCH:
            with without_dispatch_mode() as mode:
                out = self._by_mode(mode, args, kwargs)
            if out is not NotImplemented:
                return out
        for t in tensors:
            if t._keys & DISPATCH_SUBCLASS and type(t).__torch_dispatch__ is not disabled_torch_dispatch:
                return self._by_subclass(type(t), args, kwargs)
        fake = next((t for t in tensors if t._keys & FAKE), None)
        if fake is not None:
            return self.fake_rule(fake.__dict__["fake_mode"], *args, **kwargs)
        return self.plain(*args, **kwargs)

    def _by_mode(self, mode, args: tuple, kwargs: dict):
        rule = next((self.rules[c] for c in type(mode).__mro__ if c in self.rules), None)
        if rule is not None:
            return rule(mode, *args, **kwargs)
        if hasattr(mode, "higher_order"):
            return mode.higher_order(self, args, kwargs)
        if getattr(mode, "supports_higher_order_operators", False):
            return mode.__torch_dispatch__(self, (), args, kwargs)
        raise NotImplementedError(
            f"There was no rule registered for HigherOrderOperator {self._name} and mode {mode}."
            f"Hint: set {mode}'s supports_higher_order_operators to True."
            f" This causes all higher order operators to pass through {mode}'s __torch_dispatch__,"
            f" so handle them accordingly by adding support for HigerOrderOperators (in this case, {self._name}) in"
            f" {mode}.__torch_dispatch__ or returning NotImplemented when not supported."
        )

    def _by_subclass(self, cls: type, args: tuple, kwargs: dict):
        if cls not in self.rules:
            raise NotImplementedError(
                f"There was no rule registered for HOP {self._name} and subclass {cls}. We recommend filing an issue."
            )
        return self.rules[cls](*args, **kwargs)

    # ---- names
    def name(self) -> str:
        return self._name

    def cacheable(self) -> bool:
        return self._cacheable

    def __str__(self) -> str:
        return self._name

    def __deepcopy__(self, memo=None):
        return self

    def __reduce__(self):
        return _find, (self._name,)


def _find(name: str) -> HigherOrderOperator:
    return getattr(ops.higher_order, name)


def _has_tangents(t: Tensor) -> bool:
    """Whether a tensor carries tangents at a level that is open."""
    return any(tangent_of(t, level) is not None for level in ambient.forward_levels)


def replaced(args: tuple, new: dict[int, Any]) -> tuple:
    """The arguments with some of them exchanged."""
    return tuple([new.get(i, a) for i, a in enumerate(args)])


def attach(trace, prefixes: tuple[str, ...], graphs: list[GraphModule]) -> list:
    """Make graphs attributes of the traced module, under one new number; the nodes that fetch them."""
    if not graphs:
        return []
    prefixes = tuple([trace.body_names.get(p, p) for p in prefixes])
    number = trace.body_numbers.get(prefixes[0], 0)
    trace.body_numbers[prefixes[0]] = number + 1
    nodes = []
    for prefix, graph in zip(prefixes, graphs, strict=True):
        name = f"{prefix}{number}"
        trace.constants[name] = graph
        nodes.append(trace.graph.create_node("get_attr", name, (), {}, name=name))
    return nodes


def distinct(out, args):
    """Results as objects of their own: a trace must not take one for the argument it equals."""
    given = {id(t) for t in tree.tree_leaves(args) if isinstance(t, Tensor)}
    return tree.tree_map_only(Tensor, lambda t: t.shallow(t._autograd) if id(t) in given else t, out)


def autograd_not_implemented(op: HigherOrderOperator, deferred_error: bool) -> Callable:
    """A rule for gradients that raises: at once, or when a gradient is asked for."""

    def rule(*args, **kwargs):
        if not deferred_error:
            raise RuntimeError(f"Autograd not implemented for {op}")
        with modes.masked(modes.GRAD, modes.BELOW_AUTOGRAD):
            out, spec = tree.tree_flatten(op(*args, **kwargs))
        at = [
            i for i, t in enumerate(out) if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)
        ]
        result = delayed_error(f"Autograd not implemented for {op}", tuple(out[i] for i in at))
        for i, t in zip(at, result if isinstance(result, tuple) else (result,), strict=True):
            out[i] = t
        return tree.tree_unflatten(out, spec)

    return rule
