"""`torch` as an alias of pullback.

`install()` makes `import torch` and every `torch.x` mean pullback's. Public modules are found by their own names;
`PRIVATE` is the table of names that programs reach for inside PyTorch, and where they live here.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types

from ..surface.homes import Aliased, exists
from .compile_rows import OBJECTS, VARIABLES
from .compile_rows import ROWS as COMPILE_ROWS
from .fake_rows import ROWS as FAKE_ROWS
from .fx_rows import RENAMED
from .fx_rows import ROWS as FX_ROWS
from .higher_order_rows import ROWS as HIGHER_ORDER_ROWS
from .library_rows import C_ROWS as LIBRARY_C_ROWS
from .library_rows import ROWS as LIBRARY_ROWS
from .nn_rows import ROWS as NN_ROWS
from .shape_rows import ROWS as SHAPE_ROWS

# "module": {name: "home:attribute"}. Rows of a module that exists here are set on it; other modules are made of rows.
PRIVATE: dict[str, dict[str, str]] = {
    "torch": {
        "_C": "torch._C:",
        "_VF": "torch._VF:",
        "_dynamo": "torch._dynamo:",
        "_functorch": "torch._functorch:",
        "_inductor": "torch._inductor:",
        "_logging": "torch._logging:",
        "_guards": "torch._guards:",
        "_prims_common": "torch._prims_common:",
        "_subclasses": "torch._subclasses:",
        "types": "torch.types:",
    },
    "torch.autograd": {
        "_force_original_view_tracking": "pullback.autograd.views:original_view_tracking",
        "_unsafe_preserve_version_counter": "pullback.autograd.versions:unsafe_preserve_version_counter",
        "_calculate_shape": "pullback.autograd.calls:calculate_shape",
        "torch": "pullback:",
        "_functions": "torch.autograd._functions:",
        "_profiler_enabled": "pullback.autograd.profiler:profiler_enabled",
    },
    "torch._C": {
        "is_grad_enabled": "pullback.core.modes:is_grad_enabled",
        "_debug_only_are_vmap_fallback_warnings_enabled": "pullback.batching.examples:are_loop_warnings_enabled",
        "_debug_only_display_vmap_fallback_warnings": "pullback.batching.examples:display_loop_warnings",
        "_WeakTensorRef": "pullback.core.weak:WeakTensorRef",
        "DisableTorchFunction": "pullback.ops.system.overrides:DisableTorchFunction",
        "DisableTorchFunctionSubclass": "pullback.ops.system.overrides:DisableTorchFunctionSubclass",
        "_disabled_torch_function_impl": "pullback.core.tensor:disabled_torch_function",
        "_disabled_torch_dispatch_impl": "pullback.core.tensor:disabled_torch_dispatch",
        "has_lapack": "pullback:has_lapack",
        "Generator": "pullback.core.random:Generator",
        "_current_graph_task_id": "pullback.autograd.engine:current_graph_task_id",
        "_current_autograd_node": "pullback.autograd.engine:current_node",
        "_will_engine_execute_node": "pullback.autograd.engine:will_execute",
        "_current_graph_task_execution_order": "pullback.autograd.engine:execution_order",
        "_set_cached_tensors_enabled": "pullback.autograd.cached_tensors:set_enabled",
        "_add_cached_tensor": "pullback.autograd.cached_tensors:add",
        "_remove_cached_tensor": "pullback.autograd.cached_tensors:remove",
        "_is_cached_tensor": "pullback.autograd.cached_tensors:is_cached",
        "_dynamo": "torch._C._dynamo:",
        "_functions": "torch._C._functions:",
        "_autograd": "torch._C._autograd:",
        "_profiler": "torch._C._profiler:",
        **LIBRARY_C_ROWS,
    },
    "torch._jit_internal": {
        "is_scripting": "pullback.surface.jit:is_scripting",
        "export": "pullback.surface.jit:export",
        "ignore": "pullback.surface.jit:ignore",
        "unused": "pullback.surface.jit:unused",
        "Final": "pullback.surface.jit:Final",
        "Future": "pullback.surface.futures:Future",
    },
    "torch._VF": {"*": "pullback", "unique_dim": "pullback.ops.reduce.searching:unique_dim"},
    "torch.autograd._functions": {"Resize": "pullback.autograd.legacy_functions:Resize"},
    "torch._C._functions": {
        "AccumulateGrad": "pullback.core.node:AccumulateGrad",
        "UndefinedGrad": "pullback.autograd.nodes:UndefinedGrad",
        "DelayedError": "pullback.autograd.nodes:DelayedError",
    },
    "torch._C._autograd": {
        "SavedTensor": "pullback.autograd.saved:SavedTensor",
        "_unsafe_set_version_counter": "pullback.autograd.versions:unsafe_set_version_counter",
        "_profiler_enabled": "pullback.autograd.profiler:profiler_enabled",
        "kineto_available": "pullback.autograd.profiler:kineto_available",
    },
    "torch._C._profiler": {
        "ProfilerActivity": "pullback.profiler:ProfilerActivity",
        "RecordScope": "pullback.profiler:RecordScope",
    },
    "torch.profiler.profiler": {
        "ProfilerAction": "pullback.profiler:ProfilerAction",
        "profile": "pullback.profiler:profile",
        "schedule": "pullback.profiler:schedule",
        "tensorboard_trace_handler": "pullback.profiler:tensorboard_trace_handler",
    },
    "torch._tensor": {
        "Tensor": "pullback:Tensor",
        "_rebuild_from_type_v2": "pullback.serialization.tensors:rebuild_from_type",
    },
    "torch._utils": {  # the functions that plain pickles name
        name: f"pullback.serialization.tensors:{name[1:]}"
        for name in (
            "_rebuild_tensor",
            "_rebuild_tensor_v2",
            "_rebuild_tensor_v3",
            "_rebuild_parameter",
            "_rebuild_parameter_with_state",
            "_rebuild_sparse_tensor",
            "_rebuild_meta_tensor_no_storage",
        )
    },  # fmt: skip
    "torch.storage": {
        "UntypedStorage": "pullback:UntypedStorage",
        "TypedStorage": "pullback:TypedStorage",
        "_load_from_bytes": "pullback.serialization.files:load_from_bytes",
    },
    "torch.export.decomp_utils": {"CustomDecompTable": "pullback.export.decompositions:CustomDecompTable"},
    "torch.types": {"Number": "pullback.library.inference:Number", "Device": "pullback:device"},
    "torch.return_types": {},
    "torch.utils._python_dispatch": {
        "TorchDispatchMode": "pullback.ops.system.overrides:TorchDispatchMode",
        "is_traceable_wrapper_subclass": "pullback.capture.trace.subclasses:is_wrapper",
        "is_traceable_wrapper_subclass_type": "pullback.capture.trace.subclasses:is_traceable_wrapper_subclass_type",
        "return_and_correct_aliasing": "pullback.capture.trace.subclasses:return_and_correct_aliasing",
        "transform_subclass": "pullback.capture.trace.subclasses:transform_subclass",
    },
    "torch.utils": {"_pytree": "torch.utils._pytree:"},
    "torch.utils._pytree": {
        "tree_flatten": "pullback.core.tree:tree_flatten",
        "tree_unflatten": "pullback.core.tree:tree_unflatten",
        "tree_map": "pullback.core.tree:tree_map",
        "tree_map_only": "pullback.core.tree:tree_map_only",
        "tree_leaves": "pullback.core.tree:tree_leaves",
    },
    "torch.distributions.utils": {
        name: f"pullback.distributions.parameters:{name}"
        for name in (
            "broadcast_all",
            "clamp_probs",
            "euler_constant",
            "lazy_property",
            "logits_to_probs",
            "probs_to_logits",
            "tril_matrix_to_vec",
            "vec_to_tril_matrix",
            "_standard_normal",
            "_sum_rightmost",
        )
    },
    "torch._ops": {
        "HigherOrderOperator": "pullback.capture.higher_order.base:HigherOrderOperator",
        "OpOverload": "pullback.ops.system.operator:Operator",
        "OpOverloadPacket": "pullback.ops.system.packet:OpOverloadPacket",
        "ops": "pullback:ops",
    },
    "torch._functorch.partitioners": {
        "default_partition": "pullback.joint.partition:default_partition",
        "min_cut_rematerialization_partition": "pullback.joint.partition:min_cut_rematerialization_partition",
        "draw_graph": "pullback.joint.picture:draw_graph",
        "get_default_op_list": "pullback.joint.costs:get_default_op_list",
        "OpTypes": "pullback.joint.costs:OpTypes",
    },
    **NN_ROWS,
    **LIBRARY_ROWS,
    **FX_ROWS,
    **HIGHER_ORDER_ROWS,
    **SHAPE_ROWS,
    **FAKE_ROWS,
    **COMPILE_ROWS,
}


class _Finder(Aliased):
    """Serves `torch.x` from `pullback.x`, or from the table."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch" and not fullname.startswith("torch.") and fullname not in PRIVATE:
            return None
        if self.home(fullname) is None and fullname not in PRIVATE and fullname not in OBJECTS:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def home(self, fullname: str) -> str | None:
        name = _own_name(fullname)
        return name if exists(name) else None

    def create_module(self, spec):
        if spec.name in OBJECTS:
            return _resolve(OBJECTS[spec.name])
        return _Private(spec.name) if self.home(spec.name) is None else super().create_module(spec)


def _own_name(fullname: str) -> str:
    """The module here that answers to a module of `torch`; it need not exist."""
    head, tail = fullname, ""
    while head:
        if head in RENAMED:
            return RENAMED[head] + tail
        head, dot, part = head.rpartition(".")
        tail = dot + part + tail
    return "pullback" + fullname[len("torch") :]


class _Private(types.ModuleType):
    """A module of the table: each name is fetched from its home when asked for."""

    __path__: list = []

    def __getattr__(self, name: str):
        rows = PRIVATE.get(self.__name__, {})
        home = rows.get(name)
        if home is None and "*" in rows and not name.startswith("__"):
            home = f"{rows['*']}:{name}"
        if home is None:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}' here")
        value = _resolve(home)
        if name not in VARIABLES.get(self.__name__, ()):
            setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value) -> None:
        if name in VARIABLES.get(self.__name__, ()):
            home, _, attribute = PRIVATE[self.__name__][name].partition(":")
            setattr(importlib.import_module(home), attribute, value)
        else:
            super().__setattr__(name, value)


def _resolve(home: str):
    """The object at "module:attribute"."""
    module, _, attribute = home.partition(":")
    value = importlib.import_module(module)
    for part in attribute.split(".") if attribute else ():
        value = getattr(value, part)
    return value


def _answer_private_names(module: types.ModuleType, rows: dict[str, str]) -> None:
    """Let a public module also answer the private names of its rows."""
    before = vars(module).get("__getattr__")

    def answer(name: str):
        if name in rows:
            return _resolve(rows[name])
        if before is not None:
            return before(name)
        raise AttributeError(f"module '{module.__name__}' has no attribute '{name}'")

    if getattr(before, "__name__", "") != "answer":
        module.__getattr__ = answer  # type: ignore[method-assign]


def install() -> None:
    """Make `torch` mean pullback in this process."""
    import pullback

    if not any(isinstance(f, _Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    sys.modules["torch"] = pullback
    for name, rows in PRIVATE.items():
        home = sys.modules.get(_own_name(name))
        if home is not None:
            _answer_private_names(home, rows)
    pullback.torch = pullback  # `torch.torch`, as PyTorch has it
    for name in [m for m in sys.modules if m.startswith("pullback.")]:
        sys.modules.setdefault("torch" + name[len("pullback") :], sys.modules[name])
