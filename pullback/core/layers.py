"""Seams: everything that a lower layer asks of a higher one, as typed fields of one object, `above`.

A layer imports downward only. Where it must call something above it, it calls `above.name(...)`, looked up at the call;
the layer that knows the answer sets `above.name = function` once, when it is imported. Until then a seam holds its
default: what is right without that layer, or an error that says what is missing. What always holds: a seam is set by
the one module that its declaration names and asked by the modules that it names (a test compares both with the source),
a second setting raises, and so the order in which layers are imported changes nothing.

Members that a layer adds to a class of a lower one (`Tensor.backward`) are the same for classes: declared here, in
`EXTENSIONS`, and added once, by `extend`. Operators' methods, which follow from their declarations, are not listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from types import FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .records import Record

if TYPE_CHECKING:  # names of types only: this is the one file that looks up
    from inspect import Signature
    from types import ModuleType

    from ..ops.system.operator import Operator
    from .device import device, layout
    from .dtype import dtype
    from .node import Node, SavedTensor
    from .tensor import Tensor

T = TypeVar("T")


class Declared(Record):
    """What the declaration of a seam says. Modules are named inside the package."""

    name: str
    asked_by: tuple[str, ...]
    set_by: str
    promise: str  # what it gives, and what it must keep true
    otherwise: str  # what happens where nobody has set it


def seam(default: T, *, asked_by: str, set_by: str, promise: str, otherwise: str = "an error says so") -> T:
    """Declare a seam. The type of the field is what mypy holds both sides to."""
    said = {"asked_by": tuple(asked_by.split()), "set_by": set_by, "promise": promise, "otherwise": otherwise}
    return field(default=default, metadata=said)


# ---- defaults
def _nothing(*args: Any) -> None:
    """Nobody is there who would have something to do."""


def _without(layer: str) -> Callable[..., NoReturn]:
    """The default of a seam that is never asked before its layer is there."""

    def missing(*args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{layer} is not loaded")

    return missing


def _not_for(kind: str) -> Callable[..., NoReturn]:
    """The default of a seam for tensors of a kind that no layer knows."""

    def refuse(op: Operator, *args: Any) -> NoReturn:
        raise NotImplementedError(f"{op.display}() is not implemented for {kind} tensors")

    return refuse


# fmt: off
@dataclass(slots=True, init=False, repr=False, eq=False)
class Seams:
    """The seams, by the layer that asks: core, operators, autograd and above."""

    # ---- asked by core
    construct: Callable[..., Tensor] = seam(
        _without("the factory operators"), asked_by="core.tensor", set_by="ops.make.construct",
        promise="`Tensor(2, 3)`, `Tensor([1, 2])`: a tensor of the class that comes first",
    )
    offer: Callable[[type], None] = seam(
        _nothing, asked_by="core.tensor", set_by="ops.system.offers",
        promise="a new subclass whose `__torch_function__` is asked about what tensors say of themselves, too (`size()`, `shape`)",
        otherwise="there are no such subclasses",
    )
    accumulate: Callable[[Tensor, list, int], None] = seam(
        _without("the autograd engine"), asked_by="core.node", set_by="autograd.accumulation",
        promise="`variable.grad += grads[0]`; the gradient is taken over only where nobody else holds it",
    )
    refresh_view: Callable[[Tensor], None] = seam(
        _nothing, asked_by="core.node", set_by="autograd.views",
        promise="the history of a view brought up to date after its base was written",
        otherwise="histories of views are never rebased, so there is nothing to do",
    )
    pack_saved: Callable[[Tensor, bool], SavedTensor] = seam(
        _without("the layer of saved-tensor hooks"), asked_by="core.node", set_by="autograd.saved",
        promise="a tensor that is saved, packed by the user's innermost hook, with its place in the graph",
    )
    unpack_saved: Callable[[SavedTensor, Node], Tensor] = seam(
        _without("the layer of saved-tensor hooks"), asked_by="core.node", set_by="autograd.saved",
        promise="the tensor that `pack_saved` packed, in its old place in the graph",
    )
    saved_entry: Callable[[Node, int], object] = seam(
        _without("the layer of saved-tensor hooks"), asked_by="ops.system.record", set_by="autograd.saved",
        promise="a saved entry of a node as users see it (`_raw_saved_self`), on which they may register hooks",
    )

    # ---- asked by operators, of what is written in terms of them
    dispatch: Callable[[Operator, tuple], Any] = seam(
        _without("the dispatcher"), asked_by="ops.system.operator", set_by="ops.system.dispatch",
        promise="an operator run on canonical arguments, all that listens included",
    )
    packet: Callable[[str, str], Any] = seam(
        _without("the namespaces of operators"), asked_by="ops.system.operator", set_by="ops.system.packet",
        promise="`ops.aten.add`: the one object for all overloads of a name",
    )
    call_signature: Callable[[Callable, tuple, bool], Signature] = seam(
        _without("the package"), asked_by="ops.eager.signature", set_by="surface.loading",
        promise="the signature of a generated function, read off the source that it is compiled from",
    )

    # ---- asked by operators, of other layouts and names
    empty_sparse: Callable[[tuple, layout, dtype | None, Any], Tensor] = seam(
        _without("the layer of sparse tensors"), asked_by="ops.make.factories ops.make.like", set_by="ops.layout.sparse.construct",
        promise="a sparse tensor without elements, of any sparse layout",
    )
    sparse_rows: Callable[..., Tensor] = seam(
        _without("the layer of sparse tensors"), asked_by="ops.network.embedding", set_by="ops.layout.sparse.gradients",
        promise="the gradient of a table, a sparse row for each look-up",
    )
    sparse_elements: Callable[[Tensor, tuple, int, Tensor], Tensor] = seam(
        _without("the layer of sparse tensors"), asked_by="ops.index.gather_scatter", set_by="ops.layout.sparse.gradients",
        promise="the gradient of `gather`, a sparse element for each that was read",
    )
    execute_layout: Callable[[Operator, tuple, int], Any] = seam(
        _not_for("sparse, nested or transformed"), asked_by="ops.system.execute library.operator", set_by="ops.layout.entry",
        promise="the result of an operator with arguments that are no dense arrays; nothing is recorded",
    )
    write_layout: Callable[[Tensor, Tensor], None] = seam(
        _without("the layer of sparse and nested tensors"), asked_by="ops.system.inplace", set_by="ops.layout.entry",
        promise="a result put into a tensor where either is no dense array; the version goes up by one",
    )
    resize_layout: Callable[[Tensor, tuple], Tensor] = seam(
        _without("the layer of sparse and nested tensors"), asked_by="ops.make.memory", set_by="ops.layout.entry",
        promise="a tensor that is no dense array, of another size, in place; the version goes up by one",
    )
    nested_layer: Callable[[Operator, tuple], Any] = seam(
        _not_for("nested"), asked_by="ops.system.dispatch ops.linalg.contraction", set_by="ops.layout.entry",
        promise="an operator on nested tensors, in operators on packed values: it stands above recording",
    )
    named_layer: Callable[[Operator, tuple], Any] = seam(
        _not_for("named"), asked_by="ops.system.dispatch", set_by="ops.layout.named",
        promise="the operator run as without names, then the names of its results",
    )
    named_out: Callable[[Tensor, Tensor], None] = seam(
        _nothing, asked_by="ops.system.general", set_by="ops.layout.named",
        promise="the names of a result given to the `out` tensor that is to hold it, which has these or none",
    )
    named_write: Callable[[Operator, Tensor, tuple], None] = seam(
        _nothing, asked_by="ops.system.inplace", set_by="ops.layout.named",
        promise="the names of a tensor that was written",
        otherwise="no tensor has names",
    )
    positions: Callable[[tuple, dict | None], tuple | None] = seam(
        _nothing, asked_by="ops.system.general ops.system.overloads", set_by="ops.layout.named",
        promise="(arguments, keywords) with positions in the place of names of dimensions; None where there are no names",
        otherwise="no dimension has a name",
    )

    # ---- asked by operators, of those who listen
    profiled: Callable[[Operator, tuple], Any] = seam(
        _without("the profiler"), asked_by="ops.system.dispatch", set_by="autograd.profiler.recorder",
        promise="the operator's result; the call goes on to `dispatch` once, and an event is kept of it",
    )
    autocast: Callable[[Operator, tuple], tuple | None] = seam(
        _nothing, asked_by="ops.system.dispatch", set_by="amp.autocast",
        promise="the arguments, in their order, cast by the autocast class of the operator; None where it has none",
        otherwise="arguments stay as they are",
    )
    note_creation: Callable[[Node], None] = seam(
        _nothing, asked_by="ops.system.record autograd.function", set_by="autograd.anomaly_mode",
        promise="where a node was made, remembered on it",
        otherwise="nothing is remembered",
    )
    forward_layer: Callable[[Operator, tuple, int, bool], Any] = seam(
        _without("forward mode"), asked_by="ops.system.dispatch", set_by="autograd.forward",
        promise="the operator run and recorded as without forward mode, and the tangents of its results",
    )
    forward_inplace: Callable[[Operator, tuple], Any] = seam(
        _without("forward mode"), asked_by="ops.system.dispatch", set_by="autograd.forward_writes",
        promise="an in-place write, and the same write to the tangent",
    )
    rebase_history: Callable[[Tensor, tuple], None] = seam(
        _without("autograd"), asked_by="ops.system.inplace ops.layout.nested.operators ops.make.memory", set_by="autograd.views",
        promise="`edge` is the history of a tensor that was written, and through `CopySlices` of its base",
    )
    check_view: Callable[[Tensor], None] = seam(
        _nothing, asked_by="ops.system.inplace", set_by="autograd.views",
        promise="an error for a view that may not be written, before anything is",
        otherwise="every view may be written",
    )

    # ---- asked by autograd
    run_checked: Callable[[Node, list], Any] = seam(
        _without("anomaly mode"), asked_by="autograd.engine", set_by="autograd.anomaly_mode",
        promise="`node.run(gradients)`; where that raises or makes a NaN, a warning says where the node was made",
    )
    run_profiled: Callable[[Node, list, Callable], Any] = seam(
        _without("the profiler"), asked_by="autograd.engine", set_by="autograd.profiler.recorder",
        promise="`run(node, gradients)`, called once, inside an event of the node",
    )
    profiled_function: Callable[[type, tuple, dict, Callable], Any] = seam(
        _without("the profiler"), asked_by="autograd.function", set_by="autograd.profiler.recorder",
        promise="`call(function, args, kwargs)`, called once, inside an event of the custom function",
    )
    apply_batched: Callable[[type, tuple, dict], Any] = seam(
        _without("the layer of function transforms"), asked_by="autograd.function", set_by="surface.loading",
        promise="a custom function applied where a transform is active: by its `vmap` rule, or level by level",
    )
    forward_over_reverse: Callable[[Callable, tuple], tuple] = seam(
        _without("the layer of function transforms"), asked_by="autograd.functional", set_by="surface.loading",
        promise="second derivatives of a scalar function, for each pair of inputs",
    )
    run_compiled: Callable[[list, list, bool, bool, list | None, bool, dict | None], list | None] = seam(
        _nothing, asked_by="autograd.engine", set_by="backward.compiled",
        promise="what `run_graph` gives, by a compiled graph; None where the engine is to run",
        otherwise="the engine runs",
    )

    # ---- asked by modules
    synchronized_batch_norm: Callable[..., Tensor | None] = seam(
        _nothing, asked_by="nn.batchnorm", set_by="distributed.sync_batch_norm",
        promise="a batch normalised by the statistics of all ranks, which move the running ones; None for one rank",
        otherwise="there is one rank: plain batch norm",
    )

    # ---- asked by operators, of fake tensors
    execute_fake: Callable[[Operator, tuple], Any] = seam(
        _not_for("fake"), asked_by="ops.system.execute ops.layout.sparse.table library.operator", set_by="capture.fake.mode",
        promise="the shape rule of an operator, with the device of its arguments; no data is touched",
    )
    run_as_plain: Callable[[Operator, tuple, dict], Any] = seam(
        _not_for("subclasses"), asked_by="core.tensor ops.system.overrides", set_by="ops.system.plain_classes",
        promise="an operator on tensors of subclasses as on plain ones; nothing is recorded, no class is asked",
    )
    take_policies: Callable[[Tensor, str | None, bool, bool], None] = seam(
        _not_for("subclasses"), asked_by="core.subclasses", set_by="ops.system.policies",
        promise="a tensor whose class answers for its sizes and strides, device or layout",
    )
    write_fake: Callable[[Operator, tuple], None] = seam(
        _not_for("fake"), asked_by="ops.system.inplace", set_by="capture.fake.mode",
        promise="every check of an in-place operator where nothing can be written; the version goes up",
    )
    run_body: Callable[[Operator, tuple], Any] | None = seam(
        None, asked_by="ops.system.dispatch", set_by="capture.fake.mode",
        promise="the body of a composite operator, inside the mode of its fake arguments",
        otherwise="None: the body is called",
    )

    # ---- asked of layers that are loaded then
    package: Callable[[], ModuleType] = seam(
        _without("the package"), set_by="surface.loading",
        asked_by="graph.names graph.codegen cpp.bridge cpp.calls cpp.declarations export.encoding nn.parallel surface.settings "
        "utils.data.distributed utils.tensorboard.graphs",
        promise="the package as users see it, whose attributes are the public names",
    )
    reduce_tensor: Callable[[Tensor], tuple] = seam(
        _without("serialization"), asked_by="ops.make.memory", set_by="surface.loading",
        promise="how pickle makes a tensor again: views of one storage stay views of one",
    )
    load_library: Callable[[Any], None] = seam(
        _without("the layer of C++ extensions"), asked_by="ops.system.packet", set_by="surface.loading",
        promise="a shared library loaded, and the operators that it registers declared",
    )
    load_higher_order: Callable[[], None] = seam(
        _without("capture"), asked_by="ops.system.packet", set_by="surface.loading",
        promise="the operators that take functions, set on `ops.higher_order`",
    )
    compile_function: Callable[..., Callable] = seam(
        _without("capture"), asked_by="nn.module", set_by="surface.loading",
        promise="`torch.compile(function, ...)`",
    )
    functionalize: Callable[[Callable, str], Callable] = seam(
        _without("the layer of ahead-of-time autograd"), asked_by="func", set_by="surface.loading",
        promise="a function without writes to tensors that gives its inputs their new values at the end",
    )
    captured_transform: Callable[[str, Callable, dict, tuple, dict], Any] = seam(
        _without("capture"), asked_by="func.derivatives func.jacobians batching.vmap", set_by="surface.loading",
        promise="a function transform that a captured program calls, as one call of it; NotImplemented where none is captured",
    )
    fake_mode: Callable[..., Any] = seam(
        _without("capture"), asked_by="graph.passes.fake_tensor_prop graph.passes.reinplace library.opcheck", set_by="surface.loading",
        promise="a new `FakeTensorMode`, which admits real tensors or not; and sizes that depend on data or not",
    )
    differentiated_ahead: Callable[[Callable, bool], Callable] = seam(
        _without("the layer of ahead-of-time autograd"), asked_by="library.opcheck", set_by="surface.loading",
        promise="a function, run by its forward and backward graphs; with dynamic sizes or not",
    )
    compile_ahead: Callable[[Any, list, Callable, str], Callable] = seam(
        _without("the layer of ahead-of-time autograd"), asked_by="capture.front.backends", set_by="surface.loading",
        promise="a graph, run by the forward and backward graphs that `compiler` compiled, cut by the partition named",
    )
    elements_on_device: Callable[[Operator, tuple, device, Tensor | None], Tensor | None] = seam(
        _nothing, asked_by="ops.family.pointwise", set_by="surface.loading",
        promise="an element-wise operator by a printed kernel of a CUDA device, its result new or in the tensor that comes last; "
        "None where there is no such kernel, and nothing was done",
        otherwise="the array library computes it",
    )
    operator_on_device: Callable[[Operator, tuple, device], Any] = seam(
        _nothing, asked_by="ops.system.placement", set_by="surface.loading",
        promise="an operator by the loops that it declares, printed for a CUDA device and for the sizes of the call; "
        "None where there are none, and nothing was done",
        otherwise="the array library computes it",
    )
    plain_on_device: Callable[..., Any] = seam(
        _nothing, asked_by="ops.shape.shapes ops.system.dispatch ops.system.dunders ops.system.general", set_by="surface.loading",
        promise="a call on plain tensors of a CUDA device that is nothing but printed kernels and their record; "
        "None where it may be more, and nothing was done",
        otherwise="the call is dispatched",
    )
    compile_native: Callable[[Any], Callable] = seam(
        _without("the layer of native code"), asked_by="capture.front.backends", set_by="surface.loading",
        promise="a graph as native code; where it cannot be, as operators",
    )
    lower_native: Callable[[Any], Callable] = seam(
        _without("the layer of native code"), asked_by="capture.front.backends", set_by="surface.loading",
        promise="a graph as it is, of which listeners learn what native code has no loops for",
    )
    collecting: Callable[[], Any] = seam(
        _without("the report"), asked_by="capture.front.explain capture.front.explaining", set_by="surface.loading",
        promise="a context that gives an account of what is compiled inside; its `html()` is a page",
    )
    backwards_compiled_by: Callable[[Callable, bool], Any] = seam(
        _without("compiled autograd"), asked_by="capture.front.compile", set_by="surface.loading",
        promise="a context in which backwards run as graphs that `compile(graph_module)` compiled",
    )
    run_region: Callable[[Any, tuple, dict], Any] | None = seam(
        None, asked_by="capture.higher_order.checkpoint", set_by="utils.checkpoint.traced",
        promise="a captured checkpoint region outside a trace: what it does not keep is computed again",
        otherwise="None: the graph is called, and keeps everything",
    )
    wrap_symbol: Callable[[Any, Any], Any] = seam(
        _without("the layer of symbolic numbers"), asked_by="capture.shapes.node", set_by="capture.shapes.numbers",
        promise="the number (int, float or bool) of an expression in the environment of a node",
    )

    # fmt: on
    def __init__(self) -> None:
        for f in fields(self):
            object.__setattr__(self, f.name, f.default)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a seam, once."""
        declared = self.__dataclass_fields__.get(name)
        if declared is None:
            raise AttributeError(f"there is no seam {name!r}{_nearest(name, self.__dataclass_fields__)}")
        if getattr(self, name) is not declared.default:
            raise RuntimeError(f"the seam {name!r} is set already, by {declared.metadata['set_by']}: it is set once")
        if not callable(value):
            raise TypeError(f"the seam {name!r} must be a function, not {type(value).__name__}")
        object.__setattr__(self, name, value)


def _nearest(name: str, names: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def declarations() -> list[Declared]:
    """The declarations of all seams, in the order in which they are written."""
    return [Declared(f.name, **f.metadata) for f in fields(Seams)]


above = Seams()


# ---- members that layers add to classes below them: class, module, names
EXTENSIONS: dict[str, dict[str, str]] = {
    "Tensor": {
        "core.subclasses": "_make_subclass _make_wrapper_subclass",
        "ops.system.overrides": "__torch_function__",
        "ops.system.dunders": "__div__ __idiv__ __rdiv__ __matmul__ __rmatmul__ __invert__ __contains__ __iter__ __reversed__",
        "ops.make.construct": "__array_wrap__",
        "ops.make.dlpack": "__dlpack__ __dlpack_device__",
        "ops.make.memory": "__deepcopy__ __reduce_ex__",
        "ops.make.python_values": "__array__ __bool__ __complex__ __float__ __format__ __index__ __int__",
        "ops.shape.complex_views": "real imag",
        "ops.shape.shapes": "T H mT mH",
        "ops.layout.named": "names",
        "ops.layout.sparse.construct": "_values",
        "ops.layout.nested": (
            "_get_max_seqlen _get_min_seqlen _lengths _max_seqlen _metadata_cache _min_seqlen _offsets _ragged_idx"
        ),
        "autograd.methods": (
            "backward data detach_ grad grad_dtype grad_fn name register_hook register_post_accumulate_grad_hook retain_grad "
            "retains_grad volatile _backward_hooks _view_func _use_count _grad _grad_fn"
        ),
        "capture.fake.mode": "constant fake_device",
        "joint.functional_tensors": "elem",
        "surface.settings": "is_distributed is_same_size",
    },
    "Node": {"autograd.nodes": "__call__ _input_metadata", "autograd.methods": "register_hook register_prehook"},
    "Generator": {"ops.make.random": "get_state set_state"},
    "UntypedStorage": {
        "ops.make.storages": (
            "bfloat16 bool byte char complex_double complex_float double float half int long short"
        ),
    },
}


def extend(cls: type, module: str, **members: object) -> None:
    """Add the members to a class that `EXTENSIONS` declares for a module: all of them, and none that is there already. Special methods
    get the names under which they are found, because overrides tell functions apart by them."""
    layer = module.partition(".")[2]
    declared = EXTENSIONS[cls.__name__].get(layer, "").split()
    if sorted(declared) != sorted(members):
        raise RuntimeError(f"{layer} adds {sorted(members)} to {cls.__name__}, and declares {sorted(declared)}")
    for name, member in members.items():
        if name in cls.__dict__:
            raise RuntimeError(f"{cls.__name__}.{name} is there already; {layer} may not replace it")
        if name.startswith("__") and isinstance(member, FunctionType):
            member.__name__ = name
        setattr(cls, name, member)
