"""`backward()` in a captured program: the gradients are computed in the graph, and `.grad` is written when it has run.

In: what to differentiate, fakes with a history that the capture recorded. The leaves of that history are tensors from
outside; their gradients are one call of `autograd.grad` in the graph, and adding them to `.grad` is what the engine would
do: a new gradient is laid out as its leaf, an old one is added to in place. A backward whose hooks or leaves are outside
the graph's reach ends the graph, and the engine runs it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ...autograd import calls
from ...autograd.leaf_rules import LeafRule, rule_of
from ...core import modes
from ...core.modes import ambient
from ...core.node import AccumulateGrad, Node, edge_of, next_sequence, raise_freed, requires_grad
from ...core.objects import hang
from ...core.tensor import Tensor, stride_of
from ..front.config import config
from .signals import Break

if TYPE_CHECKING:
    from .tracing import Tracing

OTHERS = "others"  # who listens to a gradient besides a rule
NOT_TRACED = "it calls backward(), which adds to .grad of tensors that are no results of the graph"


class Spent(Node):
    """The history of a result whose backward has run, and freed what was saved."""

    __slots__ = ()

    def run(self, grads: list):
        raise_freed()

    def saved_state(self, differentiable: bool = False) -> dict:
        raise_freed()
        return {}


def spent(t: Tensor, kind: type[Spent]) -> Tensor:
    """A result as `backward` leaves it: it requires grad, and its history cannot be walked again."""
    hang(t, kind, (), next_sequence()).saved = []
    return t


@functools.cache
def spent_class(called: str) -> type[Spent]:
    """Nodes that go by the name of those they stand for."""
    return type(called, (Spent,), {"__slots__": ()})


def backward_of_tensor(
    world: Tracing, self: Tensor, gradient=None, retain_graph=None, create_graph=False, inputs=None
) -> None:
    """`Tensor.backward`."""
    backward(world, self, gradient, retain_graph, create_graph, inputs=inputs)


def backward(
    world: Tracing, tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None
) -> None:
    """`autograd.backward`."""
    if (
        not config.trace_autograd_ops
        or ambient.backward_compiler is not None
        or grad_variables is not None
        or create_graph
    ):
        raise Break(NOT_TRACED)
    outputs = [tensors] if isinstance(tensors, Tensor) else world.all_of(tensors)
    if not all(isinstance(t, Tensor) and requires_grad(t) for t in outputs):
        raise Break(NOT_TRACED)  # the engine says what is wrong
    visited = history(outputs)
    leaves = wanted_leaves(world, visited, inputs)
    rules = [check_listeners(world, leaf) for leaf in leaves]
    check_rules(world, leaves, rules)
    given = (outputs, leaves, world.inside(grad_tensors), retain_graph, False, True, True)
    grads = world.native_call(calls.grad, given, {}) if leaves else ()
    with modes.masked(modes.GRAD):
        apply_rules(world, leaves, grads, rules)
        seen: set[int] = set()
        for leaf, g, rule in zip(leaves, grads, rules, strict=True):
            if g is not None and rule is None:
                accumulate(world, leaf, g, id(g) in seen)
                seen.add(id(g))
        world.trace._note_grad_mode()
    if not retain_graph:
        world.spent.update((id(node), node) for node in visited)


def history(outputs: list[Tensor]) -> list[Node]:
    """All nodes that results depend on."""
    found: dict[int, Node] = {}
    waiting: list[Any] = [edge_of(t)[0] for t in outputs]
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += [edge[0] for edge in node.edges if edge is not None]
    return list(found.values())


def wanted_leaves(world: Tracing, visited: list[Node], inputs) -> list[Tensor]:
    """The leaves whose `.grad` is written, as the program has them."""
    if any(node.retain_grad_hooks for node in visited):
        raise Break("it calls backward() on a graph with tensors that keep their gradients")
    leaves = [node.variable for node in visited if isinstance(node, AccumulateGrad)]
    if inputs is not None:
        wanted = [inputs] if isinstance(inputs, Tensor) else world.all_of(inputs)
        if not all(isinstance(t, Tensor) and any(t is leaf for leaf in leaves) for t in wanted):
            raise Break(NOT_TRACED)
        leaves = list({id(t): t for t in wanted}.values())  # one that is given twice gets its gradient once
    if not all(id(leaf) in world.outside.reals or id(leaf) in world.made_leaves for leaf in leaves):
        raise Break("it calls backward() on a graph that was begun elsewhere")
    order = {id(known.inside): i for i, known in enumerate(world.outside.known.values())}
    return sorted(leaves, key=lambda t: order.get(id(t), 0))


def listeners(t: Tensor):
    """Who listens to the gradient of a leaf: None, the key of the one rule that does (see `leaf_rules`), or others."""
    own = t._autograd
    node = own.accumulator() if own.accumulator is not None else None
    if own.hooks or node is not None and node.__dict__:
        return OTHERS
    rule = rule_of(t)
    if rule is not None:
        return rule.key()
    return OTHERS if own.post_accumulate_hooks else None


def check_listeners(world: Tracing, leaf: Tensor) -> LeafRule | None:
    """The rule of a leaf. Other hooks see gradients as they come: the engine calls them."""
    real = world.outside.real(leaf)
    found = listeners(real)
    is_made = real is leaf
    if found is OTHERS or is_made and found is not None:
        raise Break("it calls backward() on leaves with hooks")
    if is_made:
        return None
    source, conditions = world.outside.source_of(leaf), world.outside.conditions
    conditions.namespace["listeners"] = listeners
    v = conditions.variable(source)
    test = f"listeners({v}) == {found!r}"
    if found is None:  # of most leaves nothing rare is known, hooks among it
        test = f"not {v}._autograd.__dict__ or {test}"
    conditions.test(test, f"{source.name} has no other hooks")
    return None if found is None else rule_of(real)


def check_rules(world: Tracing, leaves: list[Tensor], rules: list) -> None:
    """A rule needs the gradients of all its members."""
    here = {id(world.outside.real(leaf)) for leaf in leaves}
    for rule in rules:
        if rule is not None and any(id(m) not in here for m in rule.members):
            raise Break("it calls backward() on some of the leaves whose gradients are treated together")


def apply_rules(world: Tracing, leaves: list[Tensor], grads, rules: list) -> None:
    """What rules make of gradients, in `.grad`: all start before the first is waited for."""
    known = {id(world.outside.real(leaf)): (leaf, g) for leaf, g in zip(leaves, grads, strict=True)}
    started = []
    for rule in dict.fromkeys(r for r in reversed(rules) if r is not None):  # a backward reaches the last leaves first
        totals = []
        for leaf, g in (known[id(m)] for m in rule.members):
            old = world.tensor_attribute(leaf, "grad")
            totals.append(g if old is None or g is None else world.native_call(Tensor.add, (old, g), {}))
        started.append((rule, world.native_call(rule.start, tuple(totals), {})))
    for rule, under_way in started:
        result = world.native_call(rule.finish, (under_way,), {})
        for member, g in zip(rule.members, result, strict=True):
            leaf = known[id(member)][0]
            old = world.tensor_attribute(leaf, "grad")
            if old is not None:
                world.native_call(Tensor.copy_, (old, g), {})
            else:
                world.outside.write_tensor_attribute(world.outside.real(leaf), "grad", g)


def accumulate(world: Tracing, leaf: Tensor, g: Tensor, shared: bool) -> None:
    """`leaf.grad += g`."""
    old = world.tensor_attribute(leaf, "grad")
    if old is not None:
        world.native_call(Tensor.add_, (old, g), {})
        return
    if stride_of(g) != stride_of(leaf) and g.layout is leaf.layout:
        g = world.native_call(
            Tensor.copy_,
            (world.native_call(Tensor.new_empty_strided, (g, tuple(leaf.shape), stride_of(leaf)), {}), g),
            {},
        )
    elif shared:
        g = world.native_call(Tensor.clone, (g,), {})
    world.store_attribute(leaf, "grad", g)
