"""Nodes know in which submodules, and by which functions, they were made, where that is asked for."""

from __future__ import annotations

import pullback as torch
from pullback import nn
from pullback.capture.trace.make_fx import make_fx
from pullback.graph import traceback


class Inner(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x):
        return torch.cos(self.inner(x)) + torch.cos(x)


def traced(**options) -> dict:
    mod = Outer()

    def run(x):
        return mod(x)

    run._orig_mod = mod
    graph = make_fx(run, **options)(torch.ones(2))
    assert not traceback.current_meta
    return {n.name: n.meta for n in graph.graph.nodes if n.op == "call_function"}


def test_modules_and_functions():
    meta = traced(record_module_stack=True)
    assert list(meta["sin"]["nn_module_stack"]) == ["", "inner"] and list(meta["cos"]["nn_module_stack"]) == [""]
    assert "Inner" in meta["sin"]["nn_module_stack"]["inner"][1]
    assert meta["sin"]["torch_fn"][0] == "sin_1" and meta["cos_1"]["torch_fn"][0] == "cos_2"


def test_only_what_is_asked_for():
    meta = traced(record_module_stack=True, _disable_torch_fn_metadata_mode=True)
    assert all("torch_fn" not in m and "nn_module_stack" in m for m in meta.values())
    assert not any("torch_fn" in m or "nn_module_stack" in m for m in traced().values())
