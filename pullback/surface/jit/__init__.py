"""TorchScript's names, without a compiler: nothing is compiled here.

Scripting and tracing give the Python function or module back behind the interface that programs expect (`ScriptFunction`,
`ScriptModule`), so that code which scripts itself runs, differentiates and can be compiled by `torch.compile`. What a
compiler would have made does not exist: graphs, code and archives raise. Python control flow stays what it is: a traced
function is not frozen to the path its example took, and `is_scripting()` is always False.
"""

from __future__ import annotations

from ..futures import Future
from .annotations import (
    Attribute,
    Final,
    TracerWarning,
    _unwrap_optional,  # noqa: F401
    annotate,
    export,
    ignore,
    interface,
    isinstance_of,
    overload,
    unused,
)
from .fork import fork, wait
from .functions import (
    CompilationUnit,
    Error,
    ScriptFunction,
    is_scripting,
    is_tracing,
    script,
    script_if_tracing,
    script_method,
    trace,
    trace_module,
)
from .graphs import _get_trace_graph as _get_trace_graph
from .modules import RecursiveScriptModule, ScriptModule, TopLevelTracedModule, TracedModule
from .modules import ScriptObject as ScriptObject
from .settings import (
    enable_onednn_fusion,
    export_opnames,
    freeze,
    fuser,
    last_executed_optimized_graph,
    load,
    onednn_fusion_enabled,
    optimize_for_inference,
    optimized_execution,
    run_frozen_optimizations,
    save,
    set_fusion_strategy,
    strict_fusion,
)

isinstance = isinstance_of
_fork, _wait = fork, wait
_overload = _overload_method = overload
_script_if_tracing = script_if_tracing

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
    "TopLevelTracedModule", "TracedModule", "TracerWarning", "annotate", "enable_onednn_fusion", "export", "export_opnames", "fork",
    "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "last_executed_optimized_graph",
    "load", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "run_frozen_optimizations", "save",
    "script", "script_if_tracing", "script_method", "set_fusion_strategy", "strict_fusion", "trace", "trace_module",
    "unused", "wait",
]  # fmt: skip
