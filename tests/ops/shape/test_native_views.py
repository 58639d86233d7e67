"""Views in C: the geometry, memory, history and refusals are those of the rules."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.core import small
from pullback.ops.system.operator import registry

KEYS = (
    "select.int", "slice.Tensor", "diagonal.default", "unfold.default", "expand.default", "as_strided.default", "alias.default",
    "view_as_real.default", "view_as_complex.default",
)  # fmt: skip
if any(registry[key].native is None for key in KEYS):
    pytest.skip("the extensions are not built", allow_module_level=True)

DTYPES = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool, torch.complex64)


def sources(dtype):
    """Row-major, transposed, with gaps, from the middle, with sizes of 1, without dimensions."""
    x = torch.arange(48).reshape(4, 6, 2).to(dtype)
    return [x, x.transpose(0, 2), x[:, ::2], x[1:, 2:4], x[:1], x[:, :1, :1], x[1, 2, 1], x.clone()[:, 1], x[2]]


FORMS = {
    "select.int": [(d, i) for d in (-3, -1, 0, 1) for i in (-2, 0, 1, 7)],
    "slice.Tensor": [(d, a, b, s) for d in (0, -1, 1) for a in (None, 1, -2, 9) for b in (None, 3, -1, 0) for s in (1, 2)],
    "diagonal.default": [(k, a, b) for k in (0, 1, -1, 9) for a, b in ((0, 1), (1, 0), (-1, -2), (0, 0))],
    "unfold.default": [(d, n, s) for d in (0, -1) for n, s in ((1, 1), (2, 1), (2, 2), (3, 1), (0, 1), (9, 1), (1, 0))],
    "expand.default": [(n, False) for n in ((4, 6, 2), (3, 4, 6, 2), (-1, 6, -1), (4, 6), (2, 1, 4, 6, 2), (5, 4, 3, 2), (7,), ())],
    "as_strided.default": [(n, s, o) for n, s in (((2, 2), (1, 2)), ((3,), (0,)), ((), ()), ((4, 40), (1, 1)), ((2,), (-1,)), ((2, 2), (1,))) for o in (None, 0, 3)],
    "alias.default": [()],
    "view_as_real.default": [()],
    "view_as_complex.default": [()],
}  # fmt: skip


def by_rules(op, args):
    try:
        return op.family.execute(op, args)
    except (RuntimeError, IndexError):
        return None


@pytest.mark.parametrize("key", KEYS)
def test_geometry_and_memory_are_those_of_the_rules(key: str):
    op, taken = registry[key], 0
    for x in [x for dtype in DTYPES for x in sources(dtype)]:
        for rest in FORMS[key]:
            expected, found = by_rules(op, (x, *rest)), op.native((x, *rest))
            if found is None:
                continue
            assert expected is not None, f"{key} refuses {x.shape}, {rest}"
            taken += 1
            assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype), (
                x.shape,
                rest,
            )
            assert found.storage_offset() == expected.storage_offset() and found.data_ptr() == expected.data_ptr()
            assert torch.equal(found, expected)
            assert found._base is (x if x._base is None else x._base) and found._is_view()
    assert taken > 3


def test_what_is_not_sure_is_left_to_the_rules():
    x = torch.zeros(3, 4)
    for key, rest in [
        ("as_strided.default", ((2,), (1,), 11)),
        ("as_strided.default", ((13,), (1,), None)),
        ("select.int", (0, 3)),
        ("slice.Tensor", (0, 2, 2, 1)),
        ("expand.default", ((1, 3, 4), False)),
    ]:
        assert registry[key].native((x, *rest)) is None
    assert registry["select.int"].native((x.to(torch.bfloat16), 0, 0)) is None
    assert registry["view_as_complex.default"].native((torch.zeros(5)[1:3],)) is None
    with pytest.raises(RuntimeError, match="setStorage|out of bounds"):
        x.as_strided((13,), (1,))
    part = x[1]  # more than a view of its own elements, within its storage
    assert part.as_strided((3, 4), (4, 1), 0).shape == (3, 4)


def test_views_write_what_they_show_and_count_versions():
    x = torch.zeros(3, 3)
    x.diagonal().fill_(1.0)
    x.as_strided((2,), (1,), 3).add_(4)
    assert x.tolist() == [[1, 0, 0], [4, 5, 0], [0, 0, 1]] and x._version == 2
    z = torch.zeros(2, dtype=torch.complex64)
    torch.view_as_real(z)[:, 1] = 3
    assert z.tolist() == [3j, 3j]
    assert torch.view_as_complex(torch.view_as_real(z))._base is z


def test_gradients_go_through():
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    calls = [
        lambda x: x.diagonal(1), lambda x: x.unfold(1, 2, 1), lambda x: x.as_strided((2, 2), (1, 1)), lambda x: torch.broadcast_to(x, (4, 2, 3)),
        lambda x: x.diagonal().as_strided((2,), (4,)), lambda x: torch.view_as_real(torch.complex(x, x)).select(-1, 1),
    ]  # fmt: skip
    for call in calls:
        assert torch.autograd.gradcheck(call, (x,)) and call(x).grad_fn is not None
    with torch.no_grad():
        quiet = x.diagonal()
    assert quiet.grad_fn is None and not quiet.requires_grad
    y = torch.zeros(2, 2)
    part = y.diagonal()
    part.mul_(x[0, :2])
    assert y.grad_fn is not None


def test_modes_subclasses_and_overrides_see_the_call():
    class Kept(torch.Tensor):
        pass

    assert type(torch.zeros(2, 2).as_subclass(Kept).diagonal()) is Kept
    assert torch.vmap(lambda x: x.diagonal())(torch.arange(8.0).reshape(2, 2, 2)).tolist() == [[0, 3], [4, 7]]
    library = torch.library.Library("aten", "IMPL")
    library.impl("diagonal", lambda *args, **kwargs: "overridden", "CPU")
    try:
        assert torch.zeros(2, 2).diagonal() == "overridden"
    finally:
        library._destroy()
    assert small.view_of("none.default", None) is None


INDICES = [
    (slice(1, 3), slice(2, None)), (slice(None), 1), (0, slice(None, None, 2)), (-1, -2), (slice(None), slice(None)), (..., 1), (1, ..., slice(0, 1)),
    (slice(0, 4), slice(1, 9, 3), 1), (..., slice(-3, -1), 0), (slice(2, 1), 0), (slice(1, None),), (slice(None),), (None, 1), (7, 0),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_by_python_s_own_index(index) -> None:
    for x in [x for dtype in DTYPES for x in sources(dtype) if x.ndim == 3]:
        try:
            expected = x.numpy()[index]
        except IndexError:
            with pytest.raises(IndexError):
                x[index]
            continue
        found = x[index]
        assert found.shape == expected.shape and found.tolist() == expected.tolist()
        if expected.size:
            assert found.data_ptr() == expected.ctypes.data and found._base is (x if x._base is None else x._base)
            strides = tuple(s // x.itemsize for s, n in zip(expected.strides, expected.shape) if n > 1)
            assert tuple(s for s, n in zip(found.stride(), found.shape) if n > 1) == strides


def test_parts_keep_history_and_are_made_again() -> None:
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
    y = x * 1
    y[1, 1:, ::2].mul_(3)
    assert x.grad is None and y.grad_fn is not None
    (g,) = torch.autograd.grad(y.sum(), x)
    assert g.tolist() == [[[1.0] * 4] * 3, [[1.0] * 4, [3, 1, 3, 1], [3, 1, 3, 1]]]
    z = torch.zeros(3, 4)
    part = z[1:, 1]
    part.add_(torch.ones(2, requires_grad=True))
    assert z.grad_fn is not None and part.grad_fn is not None
    with torch.no_grad():
        quiet = x[0, 1:]
    assert not quiet.requires_grad
    first, second = torch.zeros(5, 2).tensor_split(2)
    assert (first.shape, second.shape) == ((3, 2), (2, 2)) and second._base is first._base
    assert [p.tolist() for p in torch.arange(3).tensor_split(5)] == [[0], [1], [2], [], []]
    assert all(p.grad_fn is not None for p in x.tensor_split(3, 1))


def test_a_dimension_in_parts() -> None:
    x = torch.arange(24.0).reshape(2, 12)
    for sizes in ((3, 4), (-1, 4), (12,), (2, -1, 3), torch.Size([6, 2])):
        found = x.unflatten(1, sizes)
        assert found.data_ptr() == x.data_ptr() and torch.equal(found, x.reshape(2, *sizes))
    assert x.t().unflatten(0, (3, 4)).stride() == (4, 1, 12)
    for sizes in ((5, -1), (-1, -1), (-2, 6), (3, 3), ()):
        with pytest.raises(RuntimeError, match="unflatten"):
            x.unflatten(1, sizes)
    assert torch.zeros(0, 4).unflatten(0, (0, 3)).shape == (0, 3, 4)
