"""Whole training steps on an emulated device: parameters and state are written in place, numbers of the host travel along."""

from __future__ import annotations

import re
import shutil

import numpy as np
import pytest

import pullback as torch
from pullback.codegen import Native, program, stages
from tests.codegen.cuda.emulator import EmulatedSegment
from tests.codegen.test_landing import OPTIMIZERS, image, perceptron, training, words


class Hosting(EmulatedSegment):
    """Inputs without dimensions are taken for numbers of the host."""

    def is_hosted(self, node) -> bool:
        return node.op == "placeholder" and not node.meta["val"]._array.shape


@pytest.fixture
def made(monkeypatch):
    if shutil.which("g++") is None:
        pytest.skip("no C++ compiler")
    found: list[Native] = []
    build = Native.build

    def built(self):
        found.append(self)
        build(self)

    monkeypatch.setattr(program.Native, "build", built)
    EmulatedSegment.on_host.flag[:] = 0
    return found


@pytest.mark.parametrize(
    ("make", "optimizer"), [(perceptron, "adam"), (perceptron, "sgd"), (words, "adamw"), (image, "rmsprop")]
)
def test_a_whole_step_is_what_it_is_step_by_step(make, optimizer, made, monkeypatch):
    want = training(make, OPTIMIZERS[optimizer], False)
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    got = training(make, OPTIMIZERS[optimizer], True)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=2e-5)
    last = made[-1]
    assert last.native
    source, written = last.segments[0].source, len(last.module.meta["written"])
    assert len(source.landed) >= written - 8 and not set(source.landed) & set(source.outputs)


def test_numbers_of_the_host_are_those_of_the_run(made, monkeypatch):
    """More of them than one launch takes; a tensor of the wrong dtype, which runs as operators."""
    monkeypatch.setattr(stages, "segment_kind", lambda graph: Hosting)
    numbers = [torch.tensor(float(k), dtype=(torch.float32, torch.float64, torch.int64)[k % 3]) for k in range(520)]
    compiled = torch.compile(lambda x, *n: [x * v for v in n])
    for _ in range(3):
        x = torch.randn(5)
        for got, n in zip(compiled(x, *numbers), numbers, strict=True):
            assert got.dtype is torch.float32 and torch.equal(got, x * n)
        numbers = [n + 3 for n in numbers]
    assert len(made[-1].segments[0].hosted) == 520


def test_memory_that_is_read_and_written_over_has_no_restricted_pointers(made, monkeypatch):
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    x = torch.randn(40, 30)
    g = torch.randn(40, 30)

    @torch.compile
    def f(x, g):
        x.mul_(0.5).add_(g)

    want = x * 0.5 + g
    f(x, g)
    assert torch.equal(x, want)
    head = re.search(r"kernel0\((.*)\)", made[-1].functions[0])[1]
    assert sorted("__restrict__" in p for p in head.split(", ")) == [False, False, True]


def test_an_argument_between_vectors_is_written_where_it_is(made, monkeypatch):
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    f = torch.compile(lambda x: (x.mul_(2), None)[1])
    for offset in (0, 1, 4):
        whole = torch.arange(40.0)
        f(whole[offset : offset + 32])
        want = np.arange(40.0)
        want[offset : offset + 32] *= 2
        np.testing.assert_array_equal(whole.numpy(), want)


def test_a_value_that_a_group_of_threads_computes_is_not_written_over_while_they_may_read_it(made, monkeypatch):
    """The new value is one for each row, and elements of the row are made of it: other threads compute it for themselves."""
    monkeypatch.setattr(stages, "segment_kind", lambda graph: EmulatedSegment)
    x, scale = torch.randn(6, 300), torch.rand(6, 1)

    @torch.compile
    def f(x, scale):
        scale.mul_(0.5).add_(x.sum(1, keepdim=True))
        return x * scale

    want = scale * 0.5 + x.sum(1, keepdim=True)
    got = f(x, scale)
    torch.testing.assert_close(scale, want, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got, x * want, rtol=1e-5, atol=1e-5)
    nests = made[-1].segments[0].source
    assert not nests.landed or len(nests.kernels) > 1
