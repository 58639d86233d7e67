"""Operators that take functions: control flow, checkpointing, and wrappers that tracing keeps whole."""

from __future__ import annotations

from .associative_scan import associative_scan
from .auto_functionalized import auto_functionalized
from .auto_functionalized_v2 import auto_functionalized_v2
from .base import HigherOrderOperator
from .checkpoint import tag_activation_checkpoint, wrap_activation_checkpoint
from .cond import cond
from .flex_attention import flex_attention_op
from .hints import hints_wrapper
from .map import map
from .out_dtype import out_dtype
from .rng import run_and_save_rng_state, run_with_rng_state
from .scan import scan
from .trace_wrapped import trace_wrapped
from .while_loop import while_loop
from .while_loop_stack_output import while_loop_stack_output_op
from .wrap import wrap

__all__ = [
    "HigherOrderOperator", "associative_scan", "auto_functionalized", "auto_functionalized_v2", "cond", "flex_attention_op", "hints_wrapper", "map", "out_dtype",
    "run_and_save_rng_state", "run_with_rng_state", "scan", "tag_activation_checkpoint", "trace_wrapped", "while_loop",
    "while_loop_stack_output_op", "wrap", "wrap_activation_checkpoint",
]  # fmt: skip
