"""What recording writes: the vertices of the backward graph, and what a tensor knows of it.

A `Node` stands for one recorded call. It holds edges to the nodes of its inputs, the values its rule needs (`saved`),
and the metadata of its outputs. `Node.run(grads)` maps gradients of the outputs to gradients of the inputs and is a
function of `saved` and `grads` alone. Nodes never hold their own outputs (a saved output is kept without its history),
so a graph is freed by reference counting. The engine that walks the graph lives above, in `autograd`.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from . import modes
from .layers import above
from .modes import ambient

if TYPE_CHECKING:
    from .tensor import Tensor

next_sequence = itertools.count(1).__next__
_new = object.__new__


class Autograd:
    """What a tensor knows of its gradient. `edge` is (node, output number) for a recorded result, None for a leaf."""

    __slots__ = ("requires_grad", "edge", "grad", "__dict__", "__weakref__")

    # Rare facts live in __dict__; these are their values until set.
    accumulator: weakref.ref | None = None  # a leaf's AccumulateGrad, kept alive by the graphs that use it
    hooks: dict | None = None  # tensor hooks of a leaf, or of a result until its node takes them
    post_accumulate_hooks: dict | None = None
    retains_grad = False
    tangents: dict | None = None  # forward-mode level -> tangent
    name: str | None = None
    grad_dtype: object = Ellipsis  # what `.grad` of a leaf must be: the leaf's own dtype, unless set

    def __init__(self, requires_grad: bool = False, edge=None):
        self.requires_grad = requires_grad
        self.edge = edge
        self.grad = None


class _UntrackedView(Autograd):
    """What a view knows before anything is recorded on it: nothing, but calls must look (its base may have changed)."""

    __slots__ = ()

    def __setattr__(self, name, value):
        raise AttributeError("shared by all untracked views: use own_autograd(tensor)")


UNTRACKED_VIEW = object.__new__(_UntrackedView)
for _slot, _value in (("requires_grad", False), ("edge", None), ("grad", None)):
    object.__setattr__(UNTRACKED_VIEW, _slot, _value)


def own_autograd(tensor) -> Autograd:
    """The tensor's own Autograd, made at first need: the only way to one that may be written."""
    a = tensor._autograd
    if a is None or a is UNTRACKED_VIEW:
        a = tensor._autograd = Autograd()
    return a


def as_leaf(tensor):
    """A tensor that was just made, requiring grad from now on."""
    own_autograd(tensor).requires_grad = True
    return tensor


class View:
    """That a tensor is a differentiable view: of which base, and by which calls (`parent` is the view it was made from)."""

    __slots__ = ("base", "parent", "op", "args", "version", "creation", "dual")
    dual: dict  # of a dual tensor: {level: (its tangent, its stride, where it begins)}

    def __init__(self, base, parent, op, args, version: int, creation: str | None = None):
        self.base = base
        self.parent = parent
        self.op = op
        self.args = args
        self.version = version  # of the base, when the view's edge was last right
        self.creation = creation  # why an in-place write may be refused: "no_grad", "multi_output", "function", ...


class GradientEdge(NamedTuple):
    """A place in the graph: output `output_nr` of a node. `ownership_token` keeps what the node needs alive."""

    node: Node
    output_nr: int
    ownership_token: object = None


class NodeMeta(type):
    """Makes node classes readable: each has its operator's backward name."""

    def __repr__(cls) -> str:
        return f"<class '{cls.__name__}'>"


class Node(metaclass=NodeMeta):
    """One recorded call. Subclasses are made per operator and named after it (`MulBackward0`)."""

    __slots__ = ("edges", "outputs", "saved", "sequence", "__dict__", "__weakref__")

    edges: tuple  # one per differentiable input: (node, output number), or None
    outputs: tuple  # one per output: (shape, dtype, device)
    saved: list | None  # what the rule needs; None once freed
    sequence: int  # nodes are numbered as calls are recorded

    # Hooks are rare: they live in __dict__, and these are their values until set.
    hooked = False  # set with any hook
    pre_hooks: dict | None = None  # on the gradients that arrive
    tensor_pre_hooks: dict | None = None  # output number -> hooks of that output tensor
    retain_grad_hooks: dict | None = None
    post_hooks: dict | None = None
    of_many_calls = False  # whether its results are those of many calls: one without a gradient has nothing to hear of
    branches: tuple | None = None  # by output number, the edges to which it leads; None: to all
    holds_numbers = False  # whether the numbers it holds are values of one call, not facts of the operator
    sizes_move: bool = False  # whether the sizes it holds are known to differ from call to call
    varying: tuple[str, ...] = ()  # attributes of which even numbers that are 0 or 1 are such values
    creation_stack = None  # set in anomaly mode
    user_metadata: dict | None = None

    def run(self, grads: list) -> tuple | list:
        """Gradients of the inputs from gradients of the outputs (None stands for zero)."""
        raise NotImplementedError(f"{type(self).__name__} has no backward rule")

    def run_for(self, grads: list, edges: tuple) -> tuple | list:
        """As `run`, where gradients are wanted only through `edges`: those of the node, None for each that is not."""
        return self.run(grads)

    def saved_state(self, differentiable: bool = False) -> dict | None:
        """What `run` reads of this node, by attribute, without running it: another node of the class that has these runs
        alike, whatever their values. `differentiable`: the gradients are to be differentiated. None: only the node itself
        can be run."""
        return None

    def edges_live(self) -> bool:
        """Whether any input wants a gradient."""
        return any(e is not None for e in self.edges)

    def release(self) -> None:
        """Drop saved values after a backward that does not keep the graph."""
        self.saved = None

    def name(self) -> str:
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        return tuple((None, 0) if e is None else e for e in self.edges)

    @property
    def metadata(self) -> dict:
        if self.user_metadata is None:
            self.user_metadata = {}
        return self.user_metadata

    def _sequence_nr(self) -> int:
        return self.sequence

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def derived(compute: Callable[[Any], Any]) -> Any:
    """A fact of a node that is no slot of its class: it follows from others when it is read."""
    return property(compute)


class AccumulateGrad(Node):
    """The sink of a leaf: adds what arrives to `variable.grad`. It keeps the leaf alive; the leaf knows it weakly."""

    __slots__ = ("variable",)

    variable: Tensor
    edges = ()  # type: ignore[misc]
    saved: list = []  # type: ignore[misc]
    sequence = 1 << 62  # type: ignore[misc]  # runs as soon as it can: its gradient may be asked for by hooks

    @derived
    def outputs(self) -> tuple:
        v = self.variable
        wanted = v._autograd.grad_dtype
        return ((v._array.shape, v.dtype if wanted is Ellipsis else wanted, v.device),)

    @derived
    def hooked(self) -> bool:
        return bool(self.__dict__) or self.variable._autograd.hooks is not None

    @derived
    def tensor_pre_hooks(self) -> dict | None:
        hooks = self.variable._autograd.hooks
        return {0: hooks} if hooks else None

    def name(self) -> str:
        return "torch::autograd::AccumulateGrad"

    def run(self, grads: list) -> tuple:
        above.accumulate(self.variable, grads, 1 if self.post_hooks else 0)
        return ()

    def release(self) -> None:
        """Nothing is saved here."""


def current_autograd(tensor) -> Autograd | None:
    """What a tensor knows of its gradient, brought up to date if it is a view whose base was written."""
    info = tensor._view_info
    if info is not None and info.version != tensor._counter[0] and tensor._autograd is not None:
        above.refresh_view(tensor)
    return tensor._autograd


def edge_of(tensor):
    """Where gradients of a tensor go: (node, output number), or None where none is wanted."""
    try:
        a = tensor._autograd
    except AttributeError:  # a Python number
        return None
    if a is None:
        return None
    if tensor._view_info is not None and tensor._view_info.version != tensor._counter[0]:
        above.refresh_view(tensor)
        a = tensor._autograd
    if not a.requires_grad:
        info = tensor._view_info
        if info is None or info.creation not in ("no_grad", "inference") or not requires_grad(info.base):
            return None
        a = own_autograd(tensor)  # a view made with recording off: it requires grad as its base does, and is a leaf
        a.requires_grad = True
    edge = a.edge
    return edge if edge is not None else (accumulator_of(tensor), 0)


def accumulator_of(tensor) -> AccumulateGrad:
    """The one AccumulateGrad of a leaf, made at first need."""
    a = tensor._autograd
    ref = a.accumulator
    if ref is not None:
        node = ref()
        if node is not None:
            return node
    node = _new(AccumulateGrad)
    node.variable = tensor
    a.accumulator = weakref.ref(node)
    return node


def requires_grad(tensor) -> bool:
    """Whether gradients of a tensor are wanted: its own, or those of the base it is a view of."""
    a = tensor._autograd
    if a is None:
        return False
    info = tensor._view_info
    if info is None:
        return a.requires_grad
    return a.requires_grad or requires_grad(info.base)


class SavedTensor:
    """A saved tensor that hooks have packed, and what it gets back when it is unpacked: its place in the graph."""

    __slots__ = ("packed", "unpack_hook", "is_output", "edge", "accumulator", "tangents", "__weakref__")

    unpack_hook: Callable


def save(tensor):
    """An entry of `Node.saved` for an input tensor: a tuple when nothing listens, else whatever the hooks made of it."""
    if tensor is None or not hasattr(tensor, "_counter"):
        return tensor
    if ambient.saved_hooks:
        return above.pack_saved(tensor, False)
    a = tensor._autograd
    return (SAVED, tensor, tensor._counter[0], a.edge if a is not None else None)


def save_output(tensor):
    """An entry for a tensor that the node itself made: kept without its history, which would be a cycle."""
    if ambient.saved_hooks:
        return above.pack_saved(tensor, True)
    a = tensor._autograd
    followed = bool(ambient.mode & modes.DISPATCH)  # a mode may follow what is written to this memory later
    kept = tensor.shallow(with_tangents(None, a.tangents) if a is not None and a.tangents else None, storage=followed)
    if a is None or a.edge is None:  # a result that gradients never flow from: it has no history to give back
        return (SAVED, kept, tensor._counter[0], None)
    return (SAVED_OUTPUT, kept, tensor._counter[0], a.edge[1])


def with_tangents(a: Autograd | None, tangents: dict) -> Autograd:
    a = a or Autograd()
    a.tangents = tangents
    return a


class _Mark:
    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return self.name


SAVED, SAVED_OUTPUT = _Mark("SAVED"), _Mark("SAVED_OUTPUT")


def unpack(entry, node: Node):
    """The value of a saved entry: checks the version, gives the history back."""
    kind = entry.__class__
    if kind is tuple and entry and entry[0].__class__ is _Mark:
        mark, tensor, version, edge = entry
        if tensor._counter[0] != version:
            raise_modified(tensor, version, (node, edge) if mark is SAVED_OUTPUT else None)
        if mark is SAVED:
            a = tensor._autograd
            if a is None or a.edge is edge:
                if edge is not None and a is None:
                    raise_detached()
                return tensor
            return tensor.shallow(_history(edge, a), storage=False)
        edge = edge.get() or (node, 0) if edge.__class__ is WeakEdge else (node, edge)  # the write is history enough
        return tensor.shallow(_history(edge, tensor._autograd), storage=False)
    if kind is SavedTensor:
        return above.unpack_saved(entry, node)
    if kind is list:
        return [unpack(e, node) for e in entry]
    return entry


class WeakEdge:
    """The history of a saved result that was written into a view: the view's, known weakly, since it leads back here."""

    __slots__ = ("node", "number")

    def __init__(self, edge: tuple):
        self.node, self.number = weakref.ref(edge[0]), edge[1]

    def get(self) -> tuple | None:
        node = self.node()
        return None if node is None else (node, self.number)


def _history(edge, kept: Autograd | None) -> Autograd | None:
    result = Autograd(True, edge) if edge is not None else None
    return with_tangents(result, kept.tangents) if kept is not None and kept.tangents else result


class SavedError(RuntimeError):
    """What a node saved for its backward is not to be had."""


class ModifiedError(SavedError):
    """A saved tensor was written before its backward."""


def raise_modified(tensor, version: int, source: tuple | None) -> NoReturn:
    """PyTorch's error for a saved tensor that was changed in place; `source` is (node, number) for a result of the node."""
    a = tensor._autograd
    made_by = ""
    if source is None and a is not None:
        source = a.edge
    if source is not None:
        number = source[1] if isinstance(source[1], int) else source[1].number
        made_by = f", which is output {number} of {source[0].name().partition('Backward')[0]},"
    raise ModifiedError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{tensor.type().replace('pullback', 'torch')} {list(tensor._array.shape)}]{made_by} is at version {tensor._counter[0]}; "
        f"expected version {version} instead. Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with torch.autograd.set_detect_anomaly(True)."
    )


class DetachedError(SavedError):
    """A saved tensor lost its history."""


def raise_detached() -> NoReturn:
    raise DetachedError(
        "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not supported, please use "
        "out-of-place `.detach()` instead"
    )


class MissingError(RuntimeError):
    """The derivative of a call is not implemented, in PyTorch neither."""


class UnwrittenError(MissingError, NotImplementedError):
    """The derivative of a call is not implemented here."""


class FreedError(SavedError):
    """A graph whose saved values were freed was to be run again."""


def raise_freed() -> NoReturn:
    raise FreedError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward."
    )
