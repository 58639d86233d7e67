"""Loop nests over one buffer are laid over each other by `locate`: the iteration it names wrote the element that is read."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from pullback.core import dtype as dtypes
from pullback.core.geometry import contiguous_strides
from pullback.ops.lowering.expressions import const, index, load, loads, make, walk
from pullback.ops.lowering.loops import Buffer, Compute, Value, locate

SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def address(indices, strides, offset: int) -> int:
    return offset + sum(i * s for i, s in zip(indices, strides, strict=True))


@st.composite
def reads(draw):
    """(sizes of the writer's loops, dims, strides and offset of a reader that stays inside)."""
    sizes = draw(SIZES)
    places = list(contiguous_strides(tuple(sizes)))
    v = Value(Buffer("b", dtypes.float32, 1), sizes, places)
    for _ in range(draw(st.integers(0, 4))):
        kind, d = draw(st.integers(0, 4)), draw(st.integers(0, len(v.shape) - 1))
        if kind == 0:
            v = v.permute(draw(st.permutations(range(len(v.shape)))))
        elif kind == 1 and v.shape[d] > 1:
            start = draw(st.integers(0, v.shape[d] - 1))
            v = v.narrow(d, start, draw(st.integers(1, v.shape[d] - start)))
        elif kind == 2:
            v = v.unsqueeze(d)
        elif kind == 3 and v.shape[d] == 1:
            v = v.expand([3 if k == d else n for k, n in enumerate(v.shape)])
        elif kind == 4 and d + 1 < len(v.shape) and v.strides[d] == v.strides[d + 1] * v.shape[d + 1]:
            shape = [*v.shape[:d], v.shape[d] * v.shape[d + 1], *v.shape[d + 2 :]]
            v = Value(v.buffer, shape, [*v.strides[:d], *v.strides[d + 1 :]], v.offset)
    return sizes, places, v


@settings(max_examples=300, deadline=None, derandomize=True)
@given(reads())
def test_the_iteration_that_wrote_what_is_read(case):
    sizes, places, v = case
    dims, strides, offset = list(v.shape), list(v.strides), v.offset
    for _ in range(8):
        rows = locate(dims, strides, offset, sizes, places, 0)
        if not isinstance(rows, tuple):
            break
        k, inner = rows  # the reader's loop k, split
        dims[k : k + 1] = [dims[k] // inner, inner]
        strides[k : k + 1] = [strides[k] * inner, strides[k]]
    assert rows is not None, "windows of a dense buffer can always be located"
    for at in itertools.product(*[range(n) for n in dims]):
        found = [base + sum(step * at[k] for k, step in terms) for terms, base in rows]
        assert all(0 <= i < n for i, n in zip(found, sizes, strict=True))
        assert address(found, places, 0) == address(at, strides, offset)


def test_what_was_never_written_is_not_located():
    assert locate([4], [1], 4, [2, 2], [4, 1], 0) is None  # between two rows of a padded buffer


def test_splitting_keeps_every_address():
    b = Buffer("b", dtypes.float32, 12)
    step = Compute(b, 0, (12,), (1,), load(b, 0, (2,)))
    halves = step.split(0, 4)
    assert halves.dims == (3, 4) and halves.strides == (4, 1) and halves.expr.args[2] == (8, 2)
    assert Compute(b, 0, (3, 1), (1, 0), const(1.0, dtypes.float32), "sum", {1}).squeezed().reduce is None


def test_loads_of_an_expression_are_each_given_once_indices_first() -> None:
    buffer, rows = Buffer("b", dtypes.float32, 8), Buffer("rows", dtypes.int64, 8)
    row = load(rows, 0, (1,))
    taken = load(buffer, 0, (0,), ((row, 1, 8),))
    total = make("add", dtypes.float32, make("multiply", dtypes.float32, taken, taken), load(buffer, 1, (1,)))
    assert [e.args[:2] for e in loads(total)] == [(rows, 0), (buffer, 0), (buffer, 1)]
    assert loads(total) is loads(total)
    assert walk(index(0)) == [index(0)] and loads(index(0)) == []
    assert taken.cost == 2 and total.cost == 7  # of what stands twice, twice
