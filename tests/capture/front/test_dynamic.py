"""What users mark on tensors, and which graphs tensors with other marks run."""

import pytest

import pullback as torch
from pullback.capture.front import dynamic
from pullback.capture.shapes.errors import ConstraintViolationError


@pytest.fixture
def compiled():
    torch.compiler.reset()

    def backend(graph, inputs):
        counts.append(graph)
        return graph.forward

    def run(x):
        made(x)
        return len(counts)

    counts: list = []
    made = torch.compile(lambda x: x + 1, backend=backend)
    return run


def marked(mark, *args, **named):
    x = torch.ones(4, 3)
    mark(x, *args, **named)
    return x


MARKS = [dynamic.mark_dynamic, dynamic.maybe_mark_dynamic, dynamic.mark_static, dynamic.mark_unbacked]


@pytest.mark.parametrize("mark", MARKS)
def test_graphs_are_run_with_the_same_marks_and_with_fewer(compiled, mark):
    assert compiled(marked(mark, [0])) == 1
    assert compiled(marked(mark, 0)) == 1
    assert compiled(marked(mark, [])) == compiled(torch.ones(4, 3)) == 1
    assert compiled(marked(mark, [0, 1])) == 2


@pytest.mark.parametrize("first", MARKS)
@pytest.mark.parametrize("then", MARKS)
def test_graphs_are_not_run_with_other_marks(compiled, first, then):
    compiled(marked(first, 0))
    assert compiled(marked(then, 0)) == (1 if first is then else 2)


def test_names_and_bounds_of_unbacked_sizes_are_marks_too(compiled):
    assert compiled(marked(dynamic.mark_unbacked, 0, shape_id="rows", max=9)) == 1
    assert compiled(marked(dynamic.mark_unbacked, 0, shape_id="rows", max=9)) == 1
    assert compiled(marked(dynamic.mark_unbacked, 0, shape_id="rows", max=8)) == 2
    assert compiled(marked(dynamic.mark_unbacked, 0, shape_id="other", max=9)) == 3
    assert compiled(torch.ones(4, 3)) == 3


def rows(n):
    x = torch.ones(n, 3)
    dynamic.mark_unbacked(x, 0, shape_id="rows")
    return x


def test_sizes_of_one_name_are_one_symbol():
    torch.compiler.reset()
    made = torch.compile(lambda x, y: x + 1 if x.size(0) == y.size(0) else y, backend="eager", fullgraph=True)
    assert made(rows(4), rows(4)).sum() == 24 and made(rows(1), rows(1)).sum() == 6
    with pytest.raises(AssertionError, match="one shape_id .'rows'. are equal, but .* is 5, not 4"):
        made(rows(4), rows(5))


def test_bounds_of_unbacked_sizes_are_known_and_kept():
    def bounded(n):
        x = torch.ones(n, 3)
        dynamic.mark_unbacked(x, 0, min=2, max=6)
        return x

    torch.compiler.reset()
    made = torch.compile(lambda x: x * 2 if x.size(0) < 7 else x, backend="eager", fullgraph=True)
    assert made(bounded(2)).sum() == 12 and made(bounded(6)).sum() == 36
    with pytest.raises(ConstraintViolationError, match=r"lie in \[2, 6\], but is 7"):
        made(bounded(7))


def test_strict_unbacked_sizes_must_stay_symbols():
    def function(x):
        torch._check(x.size(0) == 4)
        return x + 1

    torch.compiler.reset()
    x = torch.ones(4, 3)
    dynamic.mark_unbacked(x, 0)
    torch.compile(function, backend="eager", fullgraph=True)(x)
    torch.compiler.reset()
    x = torch.ones(4, 3)
    dynamic.mark_unbacked(x, 0, strict=True)
    with pytest.raises(ConstraintViolationError, match="specialized it to be a constant"):
        torch.compile(function, backend="eager", fullgraph=True)(x)
