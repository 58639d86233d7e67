"""What the outputs of a traced function are: new values, inputs, or views of those or of values made on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..autograd.function import BackwardCFunction
from ..capture.fake.mode import is_fake
from ..capture.trace.subclasses import is_wrapper, parts_of
from ..core.dtype import float32
from ..core.node import Node, edge_of, requires_grad
from ..core.tensor import CONJ, FAKE, NEG, Tensor, wrap_meta
from ..ops.family.formats import dense_strides
from ..ops.system.operator import find
from .facts import Output
from .functionalize import as_strided, geometry
from .subclasses import flat

alias, detach = find("alias.default"), find("detach.default")
BITS = ((CONJ, find("_conj.default")), (NEG, find("_neg_view.default")))

if TYPE_CHECKING:
    from .trace import JointTrace


class OutputFacts:
    """Reads off the fakes how outputs came about."""

    def __init__(self, joint: JointTrace, outs: list):
        self.joint, self.outs = joint, outs
        self.functional = joint.functional
        self.bases: list[Tensor] = []  # intermediates that are no outputs, but of which several outputs are views
        self.by_memory: dict = {}
        for i, a in enumerate(joint.args):
            if isinstance(a, Tensor) and a._memory is not None:
                self.by_memory.setdefault(a._memory, i)
        self.inputs_at = {id(a): i for i, a in reversed(list(enumerate(joint.args)))}
        self.moved = {id(t): i for i, t in joint.moved.items()}  # inputs on their new memory
        self.outs_at = {
            id(o): n for n, o in reversed(list(enumerate(outs))) if isinstance(o, Tensor)
        }  # the first of each
        self.whole: dict | None = None  # memory -> outputs on it that were made by no calls, found when first asked for
        self.made_by: dict[int, tuple] = {}  # id of a tensor -> its root and the calls that made it
        self.sharing: dict = {}  # memory -> how many different outputs lie on it
        for n in self.outs_at.values():
            if outs[n]._memory is not None:
                self.sharing[outs[n]._memory] = self.sharing.get(outs[n]._memory, 0) + 1

    def read(self) -> list[Output]:
        return [self._read(n, o) for n, o in enumerate(self.outs)]

    def _read(self, n: int, o) -> Output:
        if not isinstance(o, Tensor):
            return Output("number" if getattr(o, "is_symbolic", False) else "constant", value=o)
        if not o._keys & FAKE and not is_fake(o):
            return Output("constant", value=o)
        wants = requires_grad(o)
        if id(o) in self.inputs_at:
            return Output("input", self.inputs_at[id(o)], requires_grad=wants)
        if self.outs_at[id(o)] < n:
            return Output("same", self.outs_at[id(o)], requires_grad=wants)
        if is_wrapper(o):
            return self._wrapper(n, o, wants)
        root, calls = self._calls(o) if self.moved else (o, ())
        if root is not o and id(root) in self.moved:
            return Output("moved view", self.moved[id(root)], calls, wants)
        if o._memory is not None:
            if o._memory in self.by_memory:
                return self._view_of_input(o, wants)
            if self.sharing[o._memory] > 1:
                return self._view_of_intermediate(n, o, wants)
        return Output("fresh", requires_grad=wants, is_leaf=o.is_leaf)

    def _wrapper(self, n: int, o: Tensor, wants: bool) -> Output:
        """A wrapper that is no input. What it is a view of is what autograd says."""
        root, calls = self._calls(o)
        at = next((i for i, a in enumerate(self.joint.args) if a is root), None)
        if at is not None and calls:
            return Output("input view", at, calls, wants)
        given = {p._memory for p in flat(self.joint.args) if isinstance(p, Tensor) and p._memory is not None}
        if any(p._memory in given and self.functional.written(p) for p in parts_of(o)):
            raise NotImplementedError(
                f"a {type(o).__name__} among the outputs, around an input that was written, is not implemented"
            )
        if self.joint.backward and any(requires_grad(p) for p in parts_of(o)):
            raise NotImplementedError(
                f"a {type(o).__name__} among the outputs whose parts require grad is not implemented"
            )
        different = {id(t): t for t in self.outs if is_wrapper(t)}.values()
        if sum(self._calls(t)[0] is root for t in different) > 1:
            return self._view_of_intermediate(n, o, wants)
        return Output("fresh", requires_grad=wants, is_leaf=o.is_leaf)

    def _view_of_input(self, o: Tensor, wants: bool) -> Output:
        root, calls = self._calls(o)
        if wants and has_own_backward(o):
            return self._of_own_backward(o)
        args = [(i, a) for i, a in enumerate(self.joint.args) if isinstance(a, Tensor)]
        at = next((i for i, a in args if a is root), next((i for i, a in args if _same_memory(a, root)), None))
        if at is None:
            at = self.by_memory[o._memory]
            calls = strided_calls(o, self.joint.args[at])
        elif not calls:  # the same place in memory, and yet another tensor
            calls = ((alias, (), None, not o.is_leaf),)
        if wants and any(op is detach for op, *_ in calls):
            raise NotImplementedError(
                "a result that shares memory with an input, from which it was detached, and requires grad, is not implemented"
            )
        return Output("input view", at, calls, wants)

    def _of_own_backward(self, o: Tensor) -> Output:
        """A view that a custom function gives, or that has hooks: its history is the graph's, so it is a result of the graph itself."""
        if self.functional.written(o):
            raise NotImplementedError(
                "a result that a custom function gives, or that has hooks, as a view of memory that is written is not implemented"
            )
        return Output("fresh", requires_grad=True, is_alias=True)

    def _view_of_intermediate(self, n: int, o: Tensor, wants: bool) -> Output:
        root, calls = self._calls(o)
        if wants and has_own_backward(o):
            return self._of_own_backward(o)
        if wants and any(op is detach for op, *_ in calls):
            raise NotImplementedError(
                "a result that shares memory with another one, from which it was detached, and requires grad, is not implemented"
            )
        m = self._shown_whole(n, o, root)
        if m is not None:
            if self.outs[m] is o:
                return Output("fresh", requires_grad=wants)
            return Output("view of output", m, calls or ((alias, (), None, not o.is_leaf),), wants)
        if not calls:
            return Output("fresh", requires_grad=wants)
        known = next((k for k, b in enumerate(self.bases) if b is root), None)
        if known is None:
            known = len(self.bases)
            self.bases.append(root)
        return Output("view", 0, calls, wants, value=known)

    def _shown_whole(self, n: int, o: Tensor, root: Tensor) -> int | None:
        """The first output that is the root, or an earlier one that shows what the root does."""
        if self.whole is None:
            self.whole = {}
            for m in sorted(self.outs_at.values()):
                other = self.outs[m]
                if other._memory is not None and not self._calls(other)[1]:
                    self.whole.setdefault(other._memory, []).append(m)
        found = [self.outs_at[id(root)]] if id(root) in self.outs_at else []
        earlier = (m for m in self.whole.get(root._memory, ()) if m < n and self.outs[m] is not o)
        found += [m for m in earlier if _same_memory(self.outs[m], root)][:1]
        return min(found, default=None)

    def _calls(self, o: Tensor) -> tuple[Tensor, tuple]:
        """The root of a tensor's memory and the calls that made the tensor of it."""
        if id(o) not in self.made_by:
            self.made_by[id(o)] = self._find_calls(o)
        return self.made_by[id(o)]

    def _find_calls(self, o: Tensor) -> tuple[Tensor, tuple]:
        if is_wrapper(o):
            return recorded_calls(o)
        calls: list = []
        root = o
        while (chain := self.functional.chain(root)) is not None and not chain.inplace:
            if root is not o and id(root) in self.moved:
                return root, tuple(reversed(calls))
            args = chain.args
            if chain.source is not chain.parent:
                args = (*args[:2], args[2] + chain.parent._offset - chain.source._offset)
            calls.append((chain.op, args, chain.index, chain.recorded))
            root = chain.source
        current = root.__dict__.get("current")
        if (
            current is None
            and chain is not None
            and root._view_info is not None
            and root._view_info.base._memory is root._memory
        ):
            current = root._view_info.base
        detached: list = []
        if current is None and chain is not None:
            current, detached = self._before(root)
        if current is None or current is root:
            return root, tuple(reversed(calls))
        if current.dtype is not o.dtype:
            raise NotImplementedError(
                "a result of another dtype than the tensor it is a view of, whose shape was changed in place, is not implemented"
            )
        return current, (*detached, *strided_calls(o, current))  # the calls were made on another shape

    def _before(self, t: Tensor) -> tuple[Tensor, list]:
        """The root of a tensor whose shape was changed in place, and the call that detaches from it, if one did."""
        detached: list = []
        while (chain := self.functional.chain(t)) is not None:
            if chain.op is detach:
                detached = [(detach, (), None, True)]
            t = chain.parent
        return t.__dict__.get("current", t), detached


def has_own_backward(o: Tensor) -> bool:
    """Whether a custom function, or a call with hooks, is among what made a view: the calls that make views say nothing of that."""
    node = None if o.is_leaf else edge_of(o)[0]
    while node is not None and not isinstance(node, BackwardCFunction):
        if not (node.edges and is_view_node(node)):
            return False
        if node.hooked:
            return True
        first = node.edges[0]
        node = None if first is None else first[0]
    return node is not None


def is_view_node(node: Node) -> bool:
    """Whether a node is of a call that makes a view."""
    op = getattr(node, "op", None)
    return op is not None and op.is_view


def strided_calls(o: Tensor, source: Tensor) -> tuple:
    """The calls that make a tensor of another one on its memory, wherever both lie and however they read it."""
    shape, stride, offset = geometry(o)
    place = (shape, stride, offset - source._offset)
    calls: list[tuple] = [(as_strided, place, None, not o.is_leaf)]
    calls += [(op, (), None, not o.is_leaf) for bit, op in BITS if (o._keys ^ source._keys) & bit]
    return tuple(calls)


def _same_memory(a: Tensor, b: Tensor) -> bool:
    if a._memory is None or a._memory is not b._memory or a.dtype is not b.dtype or (a._keys ^ b._keys) & (CONJ | NEG):
        return False
    return geometry(a) == geometry(b)


def recorded_calls(o: Tensor) -> tuple[Tensor, tuple]:
    """The base of a wrapper, and the calls that made it of that, as autograd noted them."""
    info, calls = o._view_info, []
    root = o if info is None else info.base
    while info is not None:
        many = info.args and info.args[0].__class__ is int
        index, args = info.args if many else (None, info.args)
        calls.append((info.op, tuple(args[1:]), index, info.creation != "no_grad"))
        info = info.parent
    return root, tuple(reversed(calls))


def strides_when_dense(shape: tuple, stride: tuple) -> tuple:
    """The strides of a tensor that is made like one of these."""
    return dense_strides(wrap_meta(shape, float32, stride))
