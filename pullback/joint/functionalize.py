"""Programs that write to tensors, as programs that do not.

`Functionalization` is a dispatch mode above a trace. It lets pure operators through. A write to a tensor is carried out
on values: the functional operator gives the new value of what was written, and each view on the way from the memory's
root gives the new value of what it is a view of (`inverse` in its declaration). Tensors on written memory are read by
making their view again from the current value of the root. So what reaches the modes below is a pure program; and until memory is
written, a tensor is its own value, and nothing is done for it at all.

Always holds: the value of the root of written memory has the root's strides, so views of it can be made as they were.
"""

from __future__ import annotations

import math
import weakref
from contextlib import contextmanager

from ..capture.higher_order.consistency import refusal
from ..capture.trace.graph_trace import NO_STORAGE, GraphTrace, mark, marks_of
from ..capture.trace.subclasses import taken_by_wrappers
from ..core import modes, tree
from ..core.geometry import contiguous_strides, is_dense, may_overlap
from ..core.modes import ambient
from ..core.node import requires_grad
from ..core.storage import Storage, span_bytes, storage_of
from ..core.tensor import CONJ, NEG, Tensor, stride_of
from ..ops.family.formats import dense_strides
from ..ops.make.conversion import to_copy
from ..ops.make.lifting import lift_fresh
from ..ops.shape.view_inverses import call, copy_into, reshaped
from ..ops.system import dispatch as dispatching
from ..ops.system import inplace
from ..ops.system.dispatch import autograd_layer
from ..ops.system.operator import Operator, find
from ..ops.system.overrides import TorchDispatchMode
from .mutating import BATCH_NORMS, run_functionally

as_strided = find("as_strided.default")
AS_STRIDED_SCATTER = "as_strided_scatter.default"


class Written:
    """The state of memory that was written: the value of its root, and values of views read since the last write."""

    __slots__ = ("root", "value", "first", "cache", "writes", "row", "nbytes")

    def __init__(self, root: Tensor, value: Tensor):
        self.root, self.value = root, value
        self.first = value  # the value before any write
        self.row: int | None = None  # how many elements it has, where it is seen as one row of them
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}
        self.writes = 0
        self.nbytes: int | None = None  # what the memory was resized to, where it was


class Chain:
    """How a tensor was made of another on the same memory. The offset of an `as_strided` is counted from the parent's."""

    __slots__ = ("parent", "op", "args", "index", "recorded", "inplace", "source", "__weakref__")

    def __init__(self, parent: Tensor, op: Operator, args: tuple, index: int | None):
        self.parent, self.op, self.args, self.index = parent, op, args, index
        self.recorded = bool(ambient.mode & modes.GRAD)  # whether autograd saw it
        self.inplace = False  # whether the tensor itself was the other one before
        self.source = parent  # what the call was made on


class _without(modes.other_stack):
    """A mode is not in force for a block."""

    name, bit = "dispatch_modes", modes.DISPATCH

    def __init__(self, mode: TorchDispatchMode):
        self.mode = mode

    def __enter__(self) -> None:
        self.replace([m for m in ambient.dispatch_modes if m is not self.mode])


class Functionalization(TorchDispatchMode):
    """See the module's docstring. `value(t)` is what a tensor holds now; `written(t)` whether its memory was written."""

    def __init__(self) -> None:
        super().__init__()
        self.memories: list[Storage] = []  # those written, in order
        self.active = 0  # whether the functionalized program is running
        self.fixed: list[Tensor] = []  # tensors whose memory is not the function's to exchange
        self.movable: list[Tensor] = []  # those of them that are given their new memory when the function is over
        self.moved: dict[
            int, tuple[Tensor, Tensor]
        ] = {}  # id of one that was given other memory -> (it, it as it came)
        self.offsets_matter = False  # whether a place in an input's memory was named by its absolute offset
        self.guarded: dict = {}  # memory -> the exception to raise at its first write
        self.chains: weakref.WeakSet[Chain] = weakref.WeakSet()
        self.cut = False  # whether the program computed with recording off of what has a history

    def __hash__(self) -> int:
        return id(self)

    def __enter__(self):
        self.active += 1
        return super().__enter__()

    def __exit__(self, *exc) -> None:
        self.active -= 1
        super().__exit__(*exc)

    def forget(self, t: Tensor) -> None:
        """A tensor's memory holds its value again: it is its own value from now on."""
        t._memory.__dict__["written"].pop(self)
        if not t._memory.__dict__["written"]:
            del t._memory.__dict__["written"]

    def guard_memories(self, guarded: dict) -> None:
        """Raise an exception at the first write to some memories."""
        self.guarded = guarded

    # ---- reading
    def state(self, t: Tensor) -> Written | None:
        memory = t._memory
        if memory is None or not self.memories:
            return None
        states = memory.__dict__.get("written")
        return states.get(self) if states else None

    def written(self, t: Tensor) -> bool:
        return self.state(t) is not None

    def chain(self, t: Tensor) -> Chain | None:
        return marks_of(t).get(self)

    def value(self, t: Tensor) -> Tensor:
        """The current value of a tensor, as the modes below know it."""
        state = self.state(t)
        if state is None:
            return t
        if state.nbytes is not None:
            check_allocated(t, state.nbytes)
        known = state.cache.get(id(t))
        if known is not None:
            return known[1]
        chain = self.chain(t)
        if chain is None or chain.op is as_strided and self.chain(chain.parent) is None:
            result = self._root_value(state, t)
        elif chain.op is as_strided:
            result = autograd_layer(as_strided, strided_in(self._laid_out(chain.parent), chain.args))
        else:
            result = autograd_layer(chain.op, (self.value(chain.parent), *chain.args))
            result = result if chain.index is None else result[chain.index]
        if result._keys & ~t._keys & (CONJ | NEG):  # a value that was written has its bits carried out
            result = resolved(result)
        state.cache[id(t)] = (t, result)
        return result

    def _root_value(self, state: Written, t: Tensor) -> Tensor:
        if geometry(t) == geometry(state.root):
            return state.value
        self._flatten(state)
        return autograd_layer(as_strided, (state.value, *placed(t, state)))

    def _laid_out(self, t: Tensor) -> Tensor:
        """The value of a tensor, where it has the tensor's own layout in memory."""
        value = self.value(t)
        if not same_layout(value, t):
            raise NotImplementedError(
                "as_strided of another dtype's view of written memory that has gaps is not implemented"
            )
        return value

    def base(self, t: Tensor) -> Tensor:
        """The root of the memory of a tensor that is about to be written, without gaps: the tensor is strided in it.

        Where it is not (it shows another dtype, or conjugates), the tensor itself.
        """
        state = self.begin(t)
        if self.chain(self.anchor(t)) is not None or t.dtype is not state.root.dtype or t._keys != state.root._keys:
            return t
        self._flatten(state)
        return state.root

    def _flatten(self, state: Written) -> None:
        """See memory whose root leaves gaps (or shows an element twice) as one row of elements, so that all of it has a value."""
        root = state.root
        if is_dense(root._array.shape, stride_of(root)):
            return
        length = _extent(root._array.shape, stride_of(root))
        self._name_place(root)
        row = autograd_layer(as_strided, (state.first, (length,), (1,), state.first._offset))
        value = call("clone.default", row)
        if state.writes:
            value = call(AS_STRIDED_SCATTER, value, state.value, tuple(root._array.shape), stride_of(root), 0)
        state.root = dispatching.execute(as_strided, (root, (length,), (1,), root._offset), root._keys)
        state.value = state.first = value
        state.row, state.cache = length, {}

    def argument(self, a):
        if isinstance(a, Tensor):
            return self.value(a)
        if a.__class__ is tuple and a:
            return tuple([self.argument(v) if isinstance(v, (Tensor, tuple)) else v for v in a])
        return a

    # ---- running
    def handle(self, op: Operator, args: tuple):
        taken = taken_by_wrappers(self, op, args)
        if taken is not NotImplemented:
            return taken
        if not (self.cut or ambient.mode & modes.GRAD):
            self.cut = any(map(requires_grad, op.tensors(args)))
        if op.inplace_of is not None:
            return self.write(op, args)
        kind = effect(op)
        if kind == "pure":
            values = tuple([self.argument(a) for a in args]) if self.memories else args
            return autograd_layer(op, values)
        if kind == "view":
            return self.view(op, args)
        return self.mutate(op, args)

    def higher_order(self, op, args: tuple, kwargs: dict):
        """An operator that takes functions."""
        return op.functional_rule(self, *args, **kwargs)

    def functional(self, f, label: str, operator: str):
        """A function that an operator takes, as one that writes nothing. It may not write or return its operands."""

        def pure(*operands):
            inner = Functionalization()
            given = [t for t in operands if isinstance(t, Tensor)]
            arrays = [t._array for t in given]
            with inner:
                out = f(*operands)
            if any(t._array is not array for t, array in zip(given, arrays, strict=True)):  # another memory or shape
                raise refusal(operator, f"{label} might be modifying the input!")
            if any((state := inner.state(t)) is not None and state.writes for t in given):
                raise refusal(operator, f"{label} might be modifying the input!")
            results = [t for t in tree.tree_leaves(out) if isinstance(t, Tensor)]
            check_aliases([*given, *results], len(given), label, operator)
            return tree.tree_map_only(Tensor, inner.value, out)

        return pure

    def view(self, op: Operator, args: tuple):
        """A view: on written memory only of the tensor itself, since its value is made when it is read."""
        source = args[0]
        if self.written(source):
            out = dispatching.execute(op, args, source._keys)
        else:
            out = autograd_layer(op, args)
            if shares_nothing(out, source):  # below, views are copies
                self.begin(source)  # so that the view is read through its chain
                out = dispatching.execute(op, args, source._keys)
        if not isinstance(out, Tensor):
            for i, t in enumerate(out):
                self.link(t, Chain(source, op, args[1:], i))
        elif op is as_strided:
            self._name_place(source)
            anchor = self.anchor(source)
            chain = Chain(anchor, op, (tuple(out._array.shape), stride_of(out), out._offset - anchor._offset), None)
            chain.source = source
            self.link(out, chain)
        elif out is not source and out._memory is source._memory:
            self.link(out, Chain(source, op, args[1:], None))
        return out

    def _name_place(self, t: Tensor) -> None:
        if any(t._memory is a._memory for a in self.fixed):
            self.offsets_matter = True

    def link(self, t: Tensor, chain: Chain) -> None:
        mark(t, self, chain)
        self.chains.add(chain)

    def anchor(self, t: Tensor) -> Tensor:
        """The nearest tensor on the way to the root from which on elements have been what they are in `t`."""
        while (chain := self.chain(t)) is not None and not chain.op.family.retypes:
            t = chain.parent
        return t

    def write(self, op: Operator, args: tuple) -> Tensor:
        """An in-place operator, as the functional one on values and a new value of the target."""
        target, functional = args[0], functional_of(op)
        if functional.is_view:
            return self.change_shape(op, args)
        values = tuple([self.argument(a) for a in args])
        self._check_expanded(op, target)
        inplace.check_operands(op, args)
        new = autograd_layer(functional, values)
        inplace.check_result(op, target, new)
        if new.dtype is not target.dtype:
            new = autograd_layer(to_copy, (new, target.dtype, None, None, None, False, None))
        self.assign(target, new)
        return target

    def _check_expanded(self, op: Operator, target: Tensor) -> None:
        """Refuse a write to a tensor that shows an element several times, but for one that puts the same number everywhere."""
        declared = functional_of(op).declared
        if declared.expanded is None:
            try:
                inplace.check_overlap(target)
            except RuntimeError as error:
                raise RuntimeError(
                    f"Functionalization encountered a tensor being mutated that has internal overlap: {error}"
                ) from None
        elif declared.expanded is not declared.write and inplace.is_expanded(target):
            raise NotImplementedError(
                f"{op.name} of an expanded tensor in a compiled function: which of its elements is written last, a graph cannot say. "
                "Please clone() the tensor before performing the operation."
            )

    def change_shape(self, op: Operator, args: tuple) -> Tensor:
        """`t_()` and its kin: the target becomes a view of what it was, which its views go on being views of."""
        return self._show(args[0], functional_of(op), args[1:])

    def _show(self, target: Tensor, op: Operator, args: tuple) -> Tensor:
        """Make a tensor the view of itself that an operator gives."""
        state = self.state(target)
        before = target.shallow()
        result = self.view(op, (before, *args))
        if (link := self.chain(result)) is not None:
            link.inplace = True
        before.__dict__["current"] = target
        self._adopt(target, before)
        if state is not None:
            state.cache.pop(id(target), None)
            if state.root is target:
                state.root = before
        target._memory, target._array, target._offset = result._memory, result._array, result._offset
        target.__dict__["trace_marks"] = result.__dict__["trace_marks"]
        inplace.bump(target)
        return target

    def mutate(self, op: Operator, args: tuple):
        """An operator that writes some of its arguments besides giving results."""
        return run_functionally(self, op, args)

    def set_memory(self, target: Tensor, source: Tensor, op: Operator | None = None) -> None:
        """A tensor takes over another's memory: from now on it is an alias of it."""
        fixed = any(target is t for t in self.fixed)
        if fixed and not any(target is t for t in self.movable):
            raise RuntimeError(
                "set_() or an assignment to .data gives a part of an input of a compiled function other memory, which a graph "
                "cannot do"
            )
        before = self.left_behind(target)
        if fixed:
            self.moved.setdefault(id(target), (target, before))
        self.begin(source)  # so that the target is read through its chain
        self.link(target, Chain(source, find("alias.default"), (), None))

    def set_storage(self, target: Tensor, storage: Storage, shape: tuple, stride: tuple, offset: int) -> None:
        """A tensor takes over memory that is named by its storage: a view of a tensor that lies there."""
        known = [
            *self.fixed,
            *(c.parent for c in self.chains),
            *(m.__dict__["written"][self].root for m in self.memories),
        ]
        source = next((t for t in known if t._memory is storage and t.dtype is target.dtype), None)
        if source is not None:
            with self.stepped_aside():
                view = self.view(as_strided, (source, shape, stride, offset))
            self.set_memory(target, view)
        elif any(isinstance(m, GraphTrace) for m in ambient.dispatch_modes):
            raise NotImplementedError(NO_STORAGE)

    def left_behind(self, target: Tensor) -> Tensor:
        """Another tensor where one lies, of which its views are views from now on."""
        before = target.shallow()
        self._adopt(target, before)
        state = self.state(target)
        if state is not None:
            state.cache.pop(id(target), None)
            if state.root is target:
                state.root = before
        return before

    def _adopt(self, parent: Tensor, other: Tensor) -> None:
        """Make all views of one tensor those of another in its place."""
        for chain in self.chains:
            if chain.parent is parent:
                chain.parent = other
            if chain.source is parent:
                chain.source = other

    def move_back(self, target: Tensor) -> Tensor:
        """Let an input lie again where it came; the tensor that it is at the end of the function."""
        _, before = self.moved[id(target)]
        after = self.left_behind(target)
        target._array, target._memory, target._offset = before._array, before._memory, before._offset
        target.__dict__["trace_marks"] = before.__dict__.get("trace_marks")
        self._adopt(before, target)
        state = self.state(target)
        if state is not None:
            state.cache.pop(id(target), None)
            if state.root is before:
                state.root = target
        return after

    def resize(self, target: Tensor, shape: tuple, stride: tuple) -> None:
        """A tensor is about to be resized: it shows its memory in another way, and where it grows, there are zeros behind."""
        old = geometry(target)
        if old[:2] == (shape, stride):
            return
        if math.prod(shape) == 0 or _extent(shape, stride) <= _extent(*old[:2]):
            self._show(target, as_strided, (shape, stride, target._offset))
            return
        if self.chain(target) is not None or not target.is_contiguous() or stride != contiguous_strides(shape):
            raise NotImplementedError(
                "resize_() to more elements of a view, or of a tensor that is not contiguous, in a compiled function"
            )
        have = target._array.size
        state = self.begin(target)
        with self.stepped_aside():
            flat = call(
                "constant_pad_nd.default", reshaped(self.value(target), (have,)), [0, math.prod(shape) - have], 0
            )
            new = reshaped(flat, shape)
        before = target.shallow()
        self._adopt(target, before)  # its views go on showing what they did
        self.link(before, Chain(target, as_strided, (*old[:2], 0), None))
        state.root, state.value, state.cache = target, new, {}
        state.writes += 1

    def resize_storage(self, target: Tensor, nbytes: int) -> None:
        """The memory under an input is about to have another number of bytes. What it held stays readable while it is large enough;
        memory that was taken away and given again holds what nobody knows."""
        if not any(target._memory is a._memory for a in self.fixed):
            raise NotImplementedError("resize_storage_bytes_() of a tensor that is no input of a compiled function")
        state = self.begin(target)
        shape, stride, offset = geometry(state.root)
        whole = span_bytes(shape, stride, offset, state.root.dtype.itemsize)
        if 0 < nbytes < whole:
            raise NotImplementedError(
                f"resize_storage_bytes_() to {nbytes} bytes, a part of the {whole} that an input of a compiled function shows"
            )
        if state.nbytes == 0 and nbytes:
            with self.stepped_aside():
                state.value, state.cache = call("new_empty_strided.default", state.value, shape, stride), {}
        state.nbytes = nbytes

    @contextmanager
    def stepped_aside(self):
        """Work on values from outside a call: this mode is not in force for it."""
        with _without(self), modes.masked(modes.GRAD, modes.BELOW_AUTOGRAD):
            yield

    # ---- writing
    def begin(self, t: Tensor) -> Written:
        """The state of a tensor's memory, from its first write on."""
        state = self.state(t)
        if state is None:
            memory = storage_of(t)
            if memory in self.guarded:
                raise self.guarded[memory]
            root = t
            while (chain := self.chain(root)) is not None:
                root = chain.parent
            state = Written(root, root.shallow())
            memory.__dict__.setdefault("written", {})[self] = state
            self.memories.append(memory)
        return state

    def assign(self, t: Tensor, new: Tensor) -> None:
        """Make `new` the value of a tensor, and through it of the memory."""
        state = self.begin(t)
        if state.nbytes is not None:
            check_allocated(t, state.nbytes)
        chain = self.chain(t)
        if chain is None or chain.op.declared.inverse is None or self._overlapping(t):
            self._assign_memory(state, t, new)
        else:
            whole = chain.op.declared.inverse(self.value(chain.parent), new, chain.args, chain.index)
            self.assign(chain.parent, whole)
        if same_layout(new, t):
            state.cache[id(t)] = (t, new)

    def _overlapping(self, t: Tensor) -> bool:
        """Whether a tensor on the way to the root shows one element at several places: inverses say nothing of it."""
        while (chain := self.chain(t)) is not None:
            if shows_twice(t):
                return True
            t = chain.parent
        return shows_twice(t)

    def _assign_memory(self, state: Written, t: Tensor, new: Tensor) -> None:
        """Put a value at the place in memory that `t` shows."""
        anchor = self.anchor(t)
        if self.chain(anchor) is not None:
            if anchor is t or self._overlapping(anchor):
                raise NotImplementedError(
                    "a write to another dtype's view of memory that shows an element twice is not implemented"
                )
            whole = self._laid_out(anchor)
            shape, stride, offset = geometry(t)
            args = strided_in(whole, (shape, stride, offset - anchor._offset))
            self.assign(anchor, call(AS_STRIDED_SCATTER, whole, new, *args[1:]))
            return
        if geometry(t) != geometry(state.root) or shows_twice(t):  # what is written twice, the memory decides
            self._flatten(state)
        if geometry(t) != geometry(state.root):
            new = call(AS_STRIDED_SCATTER, state.value, new, *placed(t, state))
        state.value = in_layout_of(state, new)
        state.cache = {}
        state.writes += 1


_effects: dict[Operator, str] = {}  # what operators do, as far as it was asked


def functional_of(op: Operator) -> Operator:
    """The operator that computes what an in-place one writes."""
    assert op.inplace_of is not None, f"{op.name} is not in place"
    return op.inplace_of


def effect(op: Operator) -> str:
    """What an operator does: "pure", "view" (results share memory with the first argument), or "mutating"."""
    known = _effects.get(op)
    if known is None:
        if op in BATCH_NORMS or any(a.writes for a in op.schema.arguments):
            known = "mutating"
        elif op.is_view or op.schema.returns_views and op is not lift_fresh:  # that one makes a tensor
            known = "view"
        else:
            known = "pure"
        _effects[op] = known
    return known


def check_aliases(tensors: list[Tensor], inputs: int, label: str, operator: str) -> None:
    """Refuse results (those after the first `inputs`) that share memory with an input or with another result."""
    for i in range(inputs, len(tensors)):
        t = tensors[i]
        for other in tensors[:i]:
            if t is other or t._memory is not None and t._memory is other._memory:
                raise refusal(operator, f"{label} might be aliasing the input or the output!")


def shares_nothing(out, source: Tensor) -> bool:
    first = out if isinstance(out, Tensor) else out[0] if out else source
    return first is not source and first._memory is not source._memory


def _extent(shape: tuple, stride: tuple) -> int:
    """How many elements of memory there are from the first that is shown to the last."""
    return 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))


def check_allocated(t: Tensor, nbytes: int) -> None:
    """Refuse a tensor with elements on memory that was taken away."""
    if not nbytes and 0 not in t._array.shape:
        raise RuntimeError(
            f"The tensor has a non-zero number of elements (shape {list(t._array.shape)}), but its data is not allocated: "
            "resize_storage_bytes_(0) took its memory away"
        )


def geometry(t: Tensor) -> tuple:
    return (tuple(t._array.shape), tuple(stride_of(t)), t._offset)


def same_layout(a: Tensor, b: Tensor) -> bool:
    return tuple(a._array.shape) == tuple(b._array.shape) and all(
        s == r for n, s, r in zip(a._array.shape, stride_of(a), stride_of(b), strict=True) if n != 1
    )


def in_layout_of(state: Written, new: Tensor) -> Tensor:
    """A new value of memory's root, laid out so that every view of the root is one of the value."""
    root = state.root
    if same_layout(new, root):
        return new
    if is_dense(root._array.shape, stride_of(root)):
        return copy_into(state.value, new)
    shape, stride = root._array.shape, dense_strides(root)  # without the gaps, in the same order
    alike = all(s == r for n, s, r in zip(shape, stride_of(new), stride, strict=True) if n != 1)
    return new if alike else copy_into(state.first, new)


def resolved(t: Tensor) -> Tensor:
    """A value with conjugation and negation carried out."""
    if t._keys & CONJ:
        t = call("conj_physical.default", call("_conj.default", t))
    return call("neg.default", call("_neg_view.default", t)) if t._keys & NEG else t


def shows_twice(t: Tensor) -> bool:
    """Whether a tensor shows an element at several places. Symbolic sizes are taken to show each once."""
    shape, stride = t._array.shape, stride_of(t)
    return all(n.__class__ is int for n in (*shape, *stride)) and may_overlap(shape, stride)


def strided_in(whole: Tensor, args: tuple) -> tuple:
    """Arguments of `as_strided`, from those that count the offset from the beginning of `whole`."""
    return whole, args[0], args[1], args[2] + whole._offset


def placed(t: Tensor, state: Written) -> tuple:
    """Where a tensor lies in the value of its memory's root: arguments of `as_strided`."""
    return tuple(t._array.shape), tuple(stride_of(t)), t._offset - state.root._offset + state.value._offset
