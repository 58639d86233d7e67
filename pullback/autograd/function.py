"""Functions with a backward of the user's own.

`class F(Function)` states `forward` and `backward` (or `vjp`), and perhaps `setup_context`, `jvp`, `vmap`, all static.
`F.apply(*args)` runs the forward with recording off and hangs one node on its outputs; that node is the `ctx` that the
user's functions see, so what they put on it lives exactly as long as the graph. Only tensor arguments have edges; a
gradient for anything else must be None.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import warnings
from collections.abc import Callable
from typing import Any

from ..core import modes
from ..core.layers import above
from ..core.modes import ambient
from ..core.node import Node, NodeMeta, edge_of, next_sequence, raise_freed, unpack
from ..core.size import Size
from ..core.tensor import Tensor
from ..ops.layout.nested.layouts import Structure
from ..ops.layout.nested.operators import nest
from ..ops.make.factories import zeros
from . import saved as saving
from .function_outputs import connect, save_tensors
from .function_tangents import push_tangents
from .hook_calls import users_code
from .nodes import delayed_error

_next_id = itertools.count().__next__
# Attributes of a node that say where it is in the graph and who listens; its backward reads none of them.
_OF_THE_GRAPH = frozenset(
    ("hooked", "pre_hooks", "tensor_pre_hooks", "retain_grad_hooks", "post_hooks", "creation_stack", "user_metadata")
    + ("dirty_ids", "fixed_ids")
)


class FunctionCtx:
    """What `forward` and `backward` share: tensors to save, and what is said of inputs and outputs."""

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `ctx.saved_tensors`; a change in place of one of them before backward is an error."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `ctx.saved_tensors` inside `jvp`."""
        for tensor in tensors:
            if not (isinstance(tensor, Tensor) or tensor is None):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs `forward` changes in place; they must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs) -> None:
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
            "calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether gradients that nobody sent arrive as zeros (the default) or as None."""
        self.materialize_grads = value


class BackwardCFunction(Node, FunctionCtx):
    """The node of a custom function, which is also its `ctx`."""

    _forward_cls: type[Function]
    _autograd_function_id: int
    to_save: tuple | None = None
    saved_for_forward: tuple | None = None
    dirty_tensors: tuple = ()
    non_differentiable: tuple = ()
    holds_numbers = True
    materialize_grads = True
    _materialize_non_diff_grads = True
    _is_pure_view = False
    needs_input_grad: tuple[bool, ...] = ()
    is_tensor: tuple[bool, ...] = ()  # which arguments of `apply` have an edge
    zeros: tuple = ()  # per output, (shape, dtype, device) of a zero gradient; None where the output is no tensor

    def __init__(self) -> None:
        self.edges, self.outputs, self.saved = (), (), []
        self.sequence = next_sequence()

    # ---- what was saved
    @property
    def saved_tensors(self) -> tuple:
        """The tensors given to `save_for_backward`; inside `jvp`, those given to `save_for_forward`."""
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        if self.saved is None:
            raise_freed()
        result = tuple([unpack(entry, self) for entry in self.saved])
        if self._forward_cls.clear_saved_tensors_on_access:
            self.saved = None
        return result

    @property
    def saved_variables(self) -> tuple:
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple:
        if self.saved is None:
            raise_freed()
        return tuple(saving.raw_saved(self, i) for i in range(len(self.saved)))

    def maybe_clear_saved_tensors(self) -> None:
        """Drop what was saved, if the function asks for that."""
        if self._forward_cls.clear_saved_tensors_on_access:
            self.saved = None

    # ---- backward
    def run(self, grads: list, by: Callable | None = None) -> tuple:
        """Gradients of the inputs. `by(function, *args)`: what calls the user's backward, where it is not just called."""
        given = [self._arriving(i, g) for i, g in enumerate(grads)]
        with users_code():
            result = self.apply(*given) if by is None else functools.partial(by, self._get_user_fn(), self)(*given)
        result = result if isinstance(result, tuple) else (result,)
        count = len(self.is_tensor)
        if len(result) > count and all(g is None for g in result[count:]):
            result = result[:count]
        if len(result) != count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got {len(result)})"
            )
        for i, (g, tensor) in enumerate(zip(result, self.is_tensor, strict=True)):
            if not tensor and g is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
            if g is not None and not isinstance(g, Tensor):
                raise RuntimeError(f"expected Variable or None (got {type(g).__name__})")
        return tuple(g for g, tensor in zip(result, self.is_tensor, strict=True) if tensor)

    def _arriving(self, i: int, g: Tensor | None) -> Tensor | None:
        """A gradient as `backward` sees it: zeros stand for one that nobody sent."""
        if g is not None or not self.materialize_grads or self.zeros[i] is None:
            return g
        if self.outputs[i] is None and not self._materialize_non_diff_grads:
            return None

        shape, dtype, device = self.zeros[i]
        if shape and isinstance(shape[0], Structure):
            structure, ragged_idx, packed = shape
            return nest(zeros(packed, dtype=dtype, device=device), structure, ragged_idx)
        return zeros(shape, dtype=dtype, device=device)

    def saved_state(self, differentiable: bool = False) -> dict:
        """What was saved, what the user put on the node, and what is known of inputs and outputs."""
        return {
            **self.users_attributes(),
            "saved": self.saved,
            "outputs": [o and (Size(o[0]), *o[1:]) for o in self.outputs],
        }

    def users_attributes(self) -> dict:
        """What `forward` put on the node, and what is known of inputs and outputs."""
        return {name: value for name, value in self.__dict__.items() if name not in _OF_THE_GRAPH}

    def _get_user_fn(self) -> Callable:
        backward, vjp = self._forward_cls.backward, self._forward_cls.vjp
        if backward is not Function.backward and vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return vjp if vjp is not Function.vjp else backward

    def apply(self, *args):
        """Call the user's backward."""
        if self._forward_cls.boxed_grads_call:
            return self._get_user_fn()(self, list(args))
        return self._get_user_fn()(self, *args)

    def apply_boxed(self, *args):
        return self._get_user_fn()(self, *args)

    def apply_jvp(self, *args):
        """Call the user's jvp."""
        return self._forward_cls.jvp(self, *args)

    def _compiled_autograd_key(self) -> tuple:
        return self._forward_cls._compiled_autograd_key(self)

    def __repr__(self) -> str:
        return f"<torch.autograd.function.{type(self).__name__} object at {id(self):#x}>"


class FunctionMeta(type):
    """Gives each Function class its node class, named after it."""

    def __init__(cls, name: str, bases: tuple, attrs: dict) -> None:
        module = attrs.get("__module__", __name__)
        body = {"_forward_cls": cls, "_autograd_function_id": _next_id(), "__module__": module}
        cls._backward_cls = NodeMeta(name + "Backward", (BackwardCFunction,), body)
        super().__init__(name, bases, attrs)


def _of_nodes_only(name: str):
    """An attribute that graphs' nodes have and an instance of a Function has not."""

    def invalid(self, *args):
        raise RuntimeError(
            f"Attribute '{name}' is invalid for this instance of _C._FunctionBase. Accessing this attribute directly "
            "on an instance of autograd.Function is a legacy access pattern that is no longer supported. For examples "
            "on how to use new-style autograd functions, see "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function "
        )

    return invalid


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of custom functions: override the static methods and call `apply` on the class."""

    generate_vmap_rule = False  # whether vmap may map over forward, backward and jvp themselves
    clear_saved_tensors_on_access = False
    boxed_grads_call = False  # whether backward takes one list of gradients instead of one argument each
    computes_only: bool | None = None  # whether backward only computes; None: its Python is read to see
    _backward_cls: type[BackwardCFunction]

    def __init__(self, *args, **kwargs) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    name, register_hook, register_prehook, _register_hook_dict, _sequence_nr, _set_sequence_nr = map(
        _of_nodes_only,
        ("name", "register_hook", "register_prehook", "_register_hook_dict", "_sequence_nr", "_set_sequence_nr"),
    )
    next_functions, _input_metadata = map(property, map(_of_nodes_only, ("next_functions", "_input_metadata")))

    @property
    def metadata(self):
        raise RuntimeError(
            "You attempted to access the anomaly metadata of a custom autograd function but the underlying PyNode has "
            "already been deallocated.  The most likely reason this occurred is because you assigned x.grad_fn to a "
            "local variable and then let the original variable get deallocated.  Don't do that!  If you really have no "
            "way of restructuring your code so this is the case, please file an issue reporting that you are affected "
            "by this."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. Takes `ctx` first, unless `setup_context` is overridden."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> Any:
        """Save what backward needs, from the inputs and the output of `forward`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Gradients of the arguments from gradients of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward  # the same under another name: a class overrides one of them

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Tangents of the outputs from tangents of the arguments."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        """(outputs, their batch dimensions), for arguments with batch dimensions `in_dims`."""
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run the function on tensors and anything else, and record it where a gradient is wanted."""
        if cls.setup_context is not Function.setup_context:
            args, kwargs = with_defaults(cls.forward, args, kwargs)
        if ambient.mode & modes.TRANSFORM:
            return above.apply_batched(cls, args, kwargs)
        if ambient.mode & modes.CAPTURE:
            return ambient.captures[-1].call(cls.apply, args, kwargs)
        return call(cls, args, kwargs)

    @staticmethod
    def _compiled_autograd_key(ctx) -> tuple:
        return (ctx._autograd_function_id,)

    @classmethod
    def users_backward(cls) -> Callable:
        """The Python that a backward runs."""
        return cls.vjp if cls.vjp is not Function.vjp else cls.backward


@functools.lru_cache(maxsize=4096)
def _signature(function: Callable) -> tuple[inspect.Signature, int]:
    """A signature, and how many arguments fill it without defaults (-1: any number)."""
    signature = inspect.signature(function)
    plain = all(p.kind is p.POSITIONAL_OR_KEYWORD for p in signature.parameters.values())
    return signature, len(signature.parameters) if plain else -1


def with_defaults(function: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Arguments as `setup_context` sees them: all of them, in order."""
    signature, count = _signature(function)
    if len(args) == count and not kwargs:
        return args, kwargs
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def call(cls: type[Function], args: tuple, kwargs: dict, by: Callable | None = None, profiled: bool = False):
    """Run a function's forward, connect its outputs, save what it asks for, push tangents through.

    `by(function, args, kwargs)`: what calls the user's functions, where they are not just called. `profiled`: the
    profiler has had this call.
    """
    mode = ambient.mode
    if mode & modes.PROFILE and not profiled:
        return above.profiled_function(cls, args, kwargs, functools.partial(call, by=by, profiled=True))
    ctx = cls._backward_cls()
    ctx.is_tensor = is_tensor = tuple([isinstance(a, Tensor) for a in args])
    tensors = args if all(is_tensor) else tuple([a for a in args if isinstance(a, Tensor)])
    edges = tuple([edge_of(t) for t in tensors])
    live = iter(edges)
    ctx.needs_input_grad = tuple([tensor and next(live) is not None for tensor in is_tensor])
    recording = bool(mode & modes.GRAD) and any(edges)
    ctx.edges = edges if recording else (None,) * len(edges)
    try:
        return _run(cls, ctx, args, kwargs, tensors, recording, by or _just_called)
    finally:  # what was only said to this call; kept on the node it would be a cycle
        said = ctx.__dict__
        for name in ("to_save", "dirty_tensors", "non_differentiable", "saved_for_forward"):
            said.pop(name, None)


def _just_called(function: Callable, args: tuple, kwargs: dict):
    return function(*args, **kwargs)


def _run(
    cls: type[Function],
    ctx: BackwardCFunction,
    args: tuple,
    kwargs: dict,
    tensors: tuple,
    recording: bool,
    by: Callable,
):
    separate = cls.setup_context is not Function.setup_context
    before = ambient.change(modes.GRAD | modes.FORWARD)
    switched, ambient.forward_off = ambient.forward_off, True
    try:
        raw = by(cls.forward, args if separate else (ctx, *args), kwargs)
        if separate:
            by(cls.setup_context, (ctx, args, raw), {})
    finally:
        ambient.restore(before)
        ambient.forward_off = switched
    results = raw if isinstance(raw, tuple) else (raw,)
    outputs = connect(ctx, results, tensors, recording, separate)
    if before & modes.FORWARD and ambient.forward_levels:
        push_tangents(ctx, args, results, outputs)
    if recording:
        save_tensors(ctx)
        if before & modes.ANOMALY:
            above.note_creation(ctx)
    return outputs if isinstance(raw, tuple) else outputs[0]


def once_differentiable(fn: Callable) -> Callable:
    """For a `backward` that must not be differentiated: it runs unrecorded, and differentiating its result raises."""

    @functools.wraps(fn)
    def wrapper(ctx, *args, **kwargs):
        with modes.masked(modes.GRAD):
            result = fn(ctx, *args, **kwargs)
        wanted = any(isinstance(a, Tensor) and a.requires_grad for a in args)
        if not ambient.mode & modes.GRAD or not wanted:
            return result
        results = result if isinstance(result, tuple) else (result,)
        return delayed_error(
            "trying to differentiate twice a function that was marked with @once_differentiable", results
        )

    return wrapper


class InplaceFunction(Function):
    """A Function with a flag for working in place."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """The base of functions of nested inputs from before static methods: a name to inherit, it cannot be applied."""

    @staticmethod
    def forward(*args: Any) -> Any:
        raise NotImplementedError("NestedIOFunction has no static forward: its `forward_extended` is not supported")

    def forward_extended(self, *input: Any) -> None:
        """Forward on nested inputs, to be overridden."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """Backward on nested gradients, to be overridden."""
        raise NotImplementedError
