"""Constructors of subclasses that exported programs may call."""

import pytest

import pullback as torch
from pullback.surface.constructors import mark_subclass_constructor_exportable


class Marked(torch.Tensor):
    @mark_subclass_constructor_exportable
    def __init__(self, data):
        self.seen = True


def test_marked_constructors():
    assert Marked(torch.ones(2)).seen
    with pytest.raises(RuntimeError, match="can only be applied on subclass tensor.__init__"):
        mark_subclass_constructor_exportable(lambda x: x)


def test_classes_that_cannot_be_taken_apart_are_refused_in_export():
    class Program(torch.nn.Module):
        def forward(self, x):
            return x + Marked(torch.ones(2)).sum()

    with pytest.raises(RuntimeError, match="Can't intercept Marked in export"):
        torch.export.export(Program(), (torch.ones(2),))
