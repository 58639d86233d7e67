"""Which of the user's lines an instruction of a graph's code stands for."""

from __future__ import annotations

import gc
import sys

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.graph import lines


def graph_of_two():
    def f(x):
        a = x.sin()
        return a.cos()

    module = make_fx(f)(torch.randn(3))
    for node, stack in zip(
        [n for n in module.graph.nodes if n.op == "call_function"], ("first", "second"), strict=True
    ):
        node.meta["stack_trace"] = stack
    module.recompile()
    return module


def test_each_call_has_the_stack_of_its_node():
    module, found = graph_of_two(), []
    entered: list = []

    def watch(frame, event, arg):
        if event == "c_call" or event == "call":
            outer = frame if event == "c_call" else frame.f_back
            while outer is not None and outer.f_code is not type(module).forward.__code__:
                outer = outer.f_back
            if outer is not None:
                found.append(lines.stack_behind(outer, outer.f_lasti))
                entered.append(outer.f_code)

    sys.setprofile(watch)
    try:
        module(torch.randn(3))
    finally:
        sys.setprofile(None)
    assert [s for k, s in enumerate(found) if s and s not in found[:k]] == ["first", "second"]
    assert lines.stack_behind(sys._getframe(), 0) is None


def frame_of(module):
    """The frame of a run of a graph."""
    frames: list = []
    code = type(module).forward.__code__
    sys.setprofile(lambda frame, event, arg: frames.append(frame) if frame.f_code is code else None)
    try:
        module(torch.randn(3))
    finally:
        sys.setprofile(None)
    return frames[0]


def test_code_that_is_gone_is_forgotten():
    frame = frame_of(graph_of_two())
    key = id(frame.f_code)
    lines.stack_behind(frame, frame.f_lasti)
    assert key in lines._stacks
    del frame
    gc.collect()
    assert key not in lines._stacks
