"""Capturing a program above autograd: every operator call as the program made it, writes and views included.

`ProgramTrace` stands before autograd, so the graph it makes can be differentiated by whoever runs it, and composite
operators stay whole. Tensors that the program reaches without being given them (parameters, closed-over tensors) become
further inputs of the graph: `lifted`, in the order met. Where the program switches recording on or off, the graph does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ...amp.autocast import casting, policy_of
from ...core import modes, tree
from ...core.modes import ambient
from ...core.tensor import DISPATCH_SUBCLASS, FAKE, SUBCLASS, Tensor
from ...graph import Graph, Node, has_side_effect, traceback
from ...graph.node import map_arg
from ...library.operator import LibraryOperator
from ...ops.make.lifting import lift_fresh, lift_fresh_copy, local_scalar_dense
from ...ops.system import dispatch as dispatching
from ...ops.system.operator import Operator
from ...ops.system.overrides import call_form
from ..fake.mode import FakeTensorMode, is_fake
from ..front.inputs import stand_in
from .graph_trace import GraphTrace, marks_of
from .images import objects
from .subclasses import (
    Rebuild,
    attributes_of,
    fake_of_subclass,
    flattened,
    is_wrapper,
    layout_of,
    like_original,
    parts_of,
)

has_side_effect(modes._set_grad_enabled)
has_side_effect(modes._set_settings)


class Unsupported(RuntimeError):
    """A program that cannot be captured as one graph, and why."""

    is_expected = True


class Escaped(Unsupported):
    """A tensor of a part of the graph, which something outside of that part holds."""


class UncapturedHigherOrderOpError(Unsupported):
    """A function given to an operator that cannot be captured as a graph."""


class RefusedByOperator(UncapturedHigherOrderOpError):
    """A function or an operand that an operator refuses wherever it is called: an error of the program, not of its capture."""


class WholeCall:
    """A Python function with all arguments but tensors and symbolic numbers filled in: a target of graph nodes."""

    has_effects = True

    def __init__(self, function: Callable, leaves: list, spec):
        self.function, self.spec = function, spec
        self.autocast = dict(ambient.autocast) if ambient.mode & modes.AUTOCAST else None  # graphs run without it
        self.places = [i for i, v in enumerate(leaves) if isinstance(v, Tensor) or getattr(v, "is_symbolic", False)]
        self.leaves = [None if i in set(self.places) else v for i, v in enumerate(leaves)]
        owner = getattr(function, "__self__", None)
        self.__name__ = owner.__name__ if isinstance(owner, type) else getattr(function, "__name__", "call")
        self.__module__ = "whole"
        self.__qualname__ = self.__name__

    def __call__(self, *given):
        leaves = list(self.leaves)
        for i, v in zip(self.places, given, strict=True):
            leaves[i] = v
        args, kwargs = objects(tree.tree_unflatten(leaves, self.spec))
        if self.autocast is None:
            return self.function(*args, **kwargs)
        with casting(self.autocast):
            return self.function(*args, **kwargs)


def lasting(value):
    """An argument of a call that each run of a graph makes again: an iterator would be at its end by then."""
    return tuple(value) if hasattr(type(value), "__next__") else value


class stepped_aside:
    """A capture is not in force for a block: it runs a call of the program itself."""

    def __init__(self, trace: ProgramTrace):
        self.trace = trace

    def __enter__(self) -> None:
        self.before = ambient.change(modes.CAPTURE)
        ambient.captures.pop()

    def __exit__(self, *exc) -> None:
        ambient.captures.append(self.trace)
        ambient.restore(self.before)


def gives_back_first(op: Operator) -> bool:
    """Whether an operator writes its first argument and gives it back."""
    given, result = op.schema.arguments, op.schema.returns
    return bool(
        given and given[0].writes and result and result[0].alias is not None and result[0].alias == given[0].alias
    )


def distinct(out):
    """Results of which none is given twice as the same object: each is a value of its own in the graph."""
    if isinstance(out, tuple) and len({id(t) for t in out}) < len(out):
        seen = [any(t is u for u in out[:i]) for i, t in enumerate(out)]
        return tuple(
            t.shallow(t._autograd) if again and isinstance(t, Tensor) else t for t, again in zip(out, seen, strict=True)
        )
    return out


def opened_by_autocast(op: Operator, args: tuple) -> bool:
    """Whether autocast does something in a call that the call's arguments, cast already, do not tell: then the graph has
    the operators that come of the call."""
    if op.body is not None:
        return policy_of(op, "cpu") != "lower" or policy_of(op, "cuda") != "lower"
    return isinstance(op, LibraryOperator) and op.autocast_kernel(op.place(args)[1]) is not None


def writes(node: Node) -> bool:
    """Whether a node may write to tensors it is given: an operator that says so, or a function of which nothing is known."""
    if isinstance(node.target, Operator):
        return any(a.writes for a in node.target.schema.arguments)
    return node.op.startswith("call_") and node.target not in (operator.getitem, modes._set_grad_enabled)


def written_inputs(graph: Graph) -> set[Node] | None:
    """The placeholders whose memory a graph may write; None where that may be any memory."""
    writing = [n for n in graph.nodes if writes(n)]
    if not all(isinstance(n.target, Operator) for n in writing):
        return None
    waiting, seen = [given for n in writing for given in _written_by(n)], set()
    while waiting:
        node = waiting.pop()
        if node in seen or _is_new(node):
            continue
        seen.add(node)
        if node.op == "get_attr":
            return None
        waiting += node.all_input_nodes
    return {n for n in seen if n.op == "placeholder"}


def _written_by(node: Node) -> list[Node]:
    """The arguments that a call of an operator writes."""
    arguments = node.target.schema.arguments
    given = {**{a.name: v for a, v in zip(arguments, node.args, strict=False)}, **node.kwargs}
    found: list[Node] = []
    map_arg([given.get(a.name) for a in arguments if a.writes], found.append)
    return found


def _is_new(node: Node) -> bool:
    """Whether what a node gives lies on memory of its own: results of an operator without a body that says of none that it is a view."""
    op = node.target
    return isinstance(op, Operator) and op.body is None and all(r.alias is None for r in op.schema.returns)


def gives_back(value: Any, objects: list, depth: int = 4) -> Any:
    """The first of some objects that is in a value, or that something in it holds; None where none is."""
    found = next((o for o in objects if o is value), None)
    if found is not None or not depth:
        return found
    if type(value) in (list, tuple, set):
        inside = list(value)
    else:
        inside = list((value if type(value) is dict else getattr(value, "__dict__", {})).values())
    parts = (gives_back(v, objects, depth - 1) for v in inside if not isinstance(v, Tensor))
    return next((part for part in parts if part is not None), None)


class ProgramTrace(GraphTrace):
    """See the module's docstring. Used as a context, inside the fake mode that it is given."""

    interprets = False  # whether methods of the program's classes are interpreted, by `answer`

    def __init__(self, fake_mode: FakeTensorMode, stacks: bool = True, closed: bool = False):
        super().__init__(fake_mode=fake_mode, stacks=stacks)
        self.closed = closed  # whether tensors from outside are constants of the graph, not inputs
        self.examples: list = []  # one fake per input, as it was before the program ran
        self.lifted_tensors: list[Tensor] = []
        self.stand_ins: dict[int, Tensor] = {}  # id of a tensor from outside -> its fake
        self.own: list[tuple[Tensor, dict]] = []  # stand-ins of subclasses, and their attributes before the program ran
        self.settings = modes.settings()
        self.grad_mode, self.inference = ambient.mode & modes.GRAD, ambient.mode & modes.INFERENCE
        self.last_input: Node | None = None
        self.apart: tuple = ()  # operators whose result is a value of its own where it is the argument itself, too

    def __enter__(self):
        ambient.captures.append(self)
        ambient.switch(modes.CAPTURE, True)
        return self

    def __exit__(self, *exc) -> None:
        ambient.captures.pop()
        ambient.switch(modes.CAPTURE, ambient.captures)

    def input(self, value, name: str, source: str | None = None, context=None):
        """A new input of the graph: the fake that stands for it in the program, with symbolic sizes as `context` says."""
        with (
            self.graph.inserting_after(self.last_input)
            if self.last_input is not None
            else self.graph.inserting_before()
        ):
            node = self.last_input = self.graph.placeholder(name)
        if isinstance(value, Tensor):
            fake = self.fake_mode.from_tensor(
                value, source=source or name, symbolic_context=context, static_shapes=context is None
            )
            self.examples.append(like_original(self._stand_in(fake, value), value))
            value = like_original(self._stand_in(fake, value), value)
            if value._keys & (SUBCLASS | DISPATCH_SUBCLASS):
                self.own.append((value, attributes_of(value)))
        else:
            self.examples.append(value)
        self.track(value, node)
        return value

    def _stand_in(self, fake: Tensor, like: Tensor) -> Tensor:
        return stand_in(fake_of_subclass(self.fake_mode, like) if is_wrapper(like) else fake, like)[1]

    def changed_attribute(self) -> str | None:
        """An attribute of a tensor that the program assigned to: a graph does not do that."""
        for t, before in self.own:
            now = attributes_of(t)
            for name in {**before, **now}:
                if before.get(name) is not now.get(name):
                    return f"attribute {name!r} of a {type(t).__name__}"
        return None

    def track(self, value, node: Node) -> None:
        """As any trace; the parts of a wrapper are what its attributes give."""
        super().track(value, node)
        node.meta["example_value"] = node.meta["val"]
        if is_wrapper(value):
            for name, part in flattened(value)[0]:
                self.track(part, self.create_node(getattr, (node, name), {}, name))

    def node_of(self, t: Tensor) -> Node:
        """As any trace; a wrapper that the program made is made again of its parts."""
        if is_wrapper(t) and is_fake(t) and marks_of(t).get(self) is None:
            node = self.create_node(Rebuild(layout_of(t)), tuple([self.node_of(p) for p in parts_of(t)]), {})
            self.track(t, node)
        elif is_fake(t) and marks_of(t).get(self) is None and not self.closed:
            raise Escaped("a tensor made by a function that an operator takes is used outside of it")
        return super().node_of(t)

    def lift(self, t: Tensor) -> Tensor:
        """The fake of a tensor from outside; at first sight it becomes an input (or, with `closed`, a constant)."""
        known = self.stand_ins.get(id(t))
        if known is None and self.closed:
            node = self.constant(t)
            known = self.stand_ins[id(t)] = like_original(self._stand_in(self.fake_mode.from_tensor(t), t), t)
            self.track(known, node)
        elif known is None:
            known = self.stand_ins[id(t)] = self.input(t, f"lifted_{len(self.lifted_tensors)}")
            self.lifted_tensors.append(t)
        return known

    def _inside(self, value):
        if isinstance(value, Tensor):
            return value if value._keys & FAKE or is_fake(value) else self.lift(value)
        if value.__class__ is tuple and value:
            return tuple([self._inside(v) for v in value])
        return value

    def process(self, op: Operator, args: tuple):
        """One operator of the program: run it on fakes, record it."""
        if ambient.mode & modes.AUTOCAST and opened_by_autocast(op, args):
            return op.body(*args) if op.body is not None else op.layer(args)
        with stepped_aside(self):
            if op is lift_fresh or op is local_scalar_dense:
                return self._python_value(op, args)
            inside = tuple([self._inside(a) for a in args])
            out = distinct(dispatching.dispatch(op, inside, modes.AUTOCAST | modes.PROFILE))
        self._note_grad_mode()
        positional, keywords = call_form(op, inside)
        node = self.create_node(
            op,
            tuple([self.argument(a) for a in positional]),
            {k: self.argument(v) for k, v in keywords.items()},
            op.name,
        )
        if op.inplace_of is not None or gives_back_first(op):
            self.track(inside[0], node)
            return args[0] if isinstance(out, Tensor) else out
        same = next((a for a, i in zip(args, inside, strict=True) if i is out and isinstance(out, Tensor)), None)
        if same is not None and op in self.apart:
            out = out.shallow(out._autograd)
        elif (
            same is not None
        ):  # a kernel gave its argument back, though its schema does not say so: its value is its own
            return same
        self.track(out, node)
        return out

    def call(self, function: Callable, args: tuple, kwargs: dict):
        """A call that stays whole in the graph: of a custom function with its own backward, say."""
        leaves, spec = tree.tree_flatten(tree.tree_map(lasting, (args, kwargs)))
        given, leaves = leaves, [self._inside(v) for v in leaves]
        inside_args, inside_kwargs = tree.tree_unflatten(leaves, spec)
        made: list = []
        inside_args, inside_kwargs = objects((inside_args, inside_kwargs), made)
        with stepped_aside(self):
            out = function(*inside_args, **inside_kwargs)
        for image, built in made:
            if image.differs(built):
                self.refuse(
                    f"a function that the graph calls as it is changes a {type(built).__name__} that it is given"
                )
        if made and (result := gives_back(out, [built for _, built in made])) is not None:
            self.refuse(
                f"a function that the graph calls as it is gives back a {type(result).__name__} that it is given"
            )
        self._note_grad_mode()
        whole = WholeCall(function, leaves, spec)
        original = next((a for a, b in zip(given, leaves, strict=True) if b is out and isinstance(out, Tensor)), out)
        self.track(
            out, self.create_node(whole, tuple([self.argument(leaves[i]) for i in whole.places]), {}, whole.__name__)
        )
        return original

    def count_effects(self) -> int:
        """How many changes of Python state the program has made so far, as far as the trace knows."""
        return 0

    def spoil(self) -> None:
        """A call that is refused has changed Python state already: the graph must end before it."""

    def refuse(self, why: str) -> None:
        """Say that the program cannot be captured."""
        raise Unsupported(why)

    def _python_value(self, op: Operator, args: tuple):
        """Python data made a tensor, or a number read from one."""
        if op is lift_fresh:
            t = args[0]
            source = self.constant(t)
            out = dispatching.dispatch(op, args)
            self.track(out, self.create_node(lift_fresh_copy, (source,), {}, "lift_fresh_copy"))
            return out
        inside = self._inside(args[0])
        out = dispatching.dispatch(op, (inside,))
        if getattr(out, "is_symbolic", False):
            self.track(out, self.create_node(op, (self.node_of(inside),), {}, "item"))
        return out

    def _note_grad_mode(self) -> None:
        now = ambient.mode & modes.GRAD
        if (ambient.mode ^ self.inference) & modes.INFERENCE:
            self.refuse("it enters or leaves inference mode")
        if now != self.grad_mode:
            node = self.graph.create_node(
                "call_function", modes._set_grad_enabled, (bool(now),), {}, name="_set_grad_enabled"
            )
            node.meta.update({k: v for k, v in traceback.current_meta.items() if k == "nn_module_stack"})
            self.grad_mode = now
        self.note_settings()

    def note_settings(self) -> None:
        """Where the program has changed settings, the graph does."""
        now = modes.settings()
        if now != self.settings:
            changed = {name: value for name, value in now.items() if value != self.settings[name]}
            for name, value in changed.items():
                changed[name] = tuple(sorted(map(int, value))) if isinstance(value, frozenset) else value
            self.graph.create_node("call_function", modes._set_settings, (changed,), {}, name="_set_settings")
            self.settings = now

    def finish_grad_mode(self, at_start: int) -> None:
        """Leave recording as the program found it."""
        if self.grad_mode != at_start:
            self.graph.create_node(
                "call_function", modes._set_grad_enabled, (bool(at_start),), {}, name="_set_grad_enabled"
            )
            self.grad_mode = at_start

    def outside(self, value):
        """A result of the program: a tensor from outside stands for itself."""
        if isinstance(value, Tensor) and not value._keys & FAKE and not is_fake(value):
            return self.node_of(self.lift(value))
        return self.argument(value)
