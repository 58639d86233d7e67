"""NumPy in graphs: every function that is known computes what NumPy computes, of the same dtype, shape and class."""

import copy

import numpy as np
import pytest

import pullback as torch
from pullback.capture.bytecode.arrays import world  # noqa: F401 (it fills the table)
from pullback.capture.bytecode.arrays.traced import TABLE

F = np.linspace(-2.0, 3.0, 12).reshape(3, 4)
G = F.astype(np.float32) + 0.25
P = np.abs(F) + 0.5
U = np.clip(F / 4, -0.9, 0.9)
I = np.arange(-4, 8).reshape(3, 4)  # noqa: E741
J = (np.arange(12).reshape(3, 4) % 5).astype(np.int32)
B = F > 0
C = F + 1j * G
V = np.array([0.5, -1.0, 2.0, 7.0])

UFUNCS = {
    **dict.fromkeys("minimum fmax fmin greater greater_equal less less_equal".split(), [(F, G), (I, 0), (J, 2.5), (F, V)]),
    **dict.fromkeys("logaddexp logaddexp2".split(), [(F, G), (I, F), (G, 2)]),
    **dict.fromkeys("sqrt log log2 log10 log1p arccosh".split(), [(P + 1,), (P.astype(np.float32) + 1,)]),
    **dict.fromkeys("arcsin arccos arctanh".split(), [(U,)]),
    **dict.fromkeys("bitwise_and bitwise_or bitwise_xor gcd lcm".split(), [(J, J.T.reshape(3, 4)), (J, 3)]),
    **dict.fromkeys("left_shift right_shift".split(), [(J, 2)]),
    **dict.fromkeys("logical_and logical_or logical_xor".split(), [(B, F), (B, ~B)]),
    **dict.fromkeys("floor_divide remainder fmod".split(), [(F, 0.7), (I, 3), (I, J), (J, I), (G, F)]),
    "power": [(P, F), (I, 2), (J, 3.0), (G, 2)], "float_power": [(P, F)], "arctan2": [(F, G)], "hypot": [(F, G), (F, I)],
    "logical_not": [(B,), (I,)], "invert": [(B,), (J,)], "conjugate": [(C,), (F,)], "heaviside": [(F, 0.5)],
    "nextafter": [(F, P)], "copysign": [(P, F)], "reciprocal": [(P,)], "isnan": [(F,), (C,)], "signbit": [(F,)],
    "absolute": [(F,), (I,), (C,)], "negative": [(F,), (I,)], "rint": [(F,)], "sign": [(F,), (I,)],
    "square": [(F,), (I,), (C,)], "positive": [(F,)], "true_divide": [(F, G), (I, 2), (J, J + 1), (F, V), (2, P)],
    "subtract": [(F, G), (I, 2.5), (G, 1), (3, I)], "maximum": [(F, G), (I, 0)], "fabs": [(F,)],
}  # fmt: skip
TWO = [(F, G), (G, 2), (I, F), (F, V), (J, 2), (C, F), (B, B)]
CALLS = {
    np.array: [(F,), ([F, F],), ([F[0], 1.0 * I[0]],), (G, np.float64)], np.asarray: [(F,), (F, np.float32)],
    np.asanyarray: [(F,)], np.ascontiguousarray: [(F.T,)], np.zeros: [((2, 3),), (3, np.int32)], np.ones: [((2, 3),)],
    np.full: [((2, 2), 7), ((2,), 1.5)], np.zeros_like: [(F,), (I, np.float32)], np.ones_like: [(G,)], np.full_like: [(I, 2.7)],
    np.arange: [(5,), (1, 7, 2), (0.0, 1.0, 0.25)], np.linspace: [(0, 1, 5)], np.eye: [(3,)], np.copy: [(F,)],
    np.reshape: [(F, (4, 3)), (F, -1)], np.ravel: [(F,), (F.T,)], np.transpose: [(F,), (F, (1, 0))], np.swapaxes: [(F, 0, 1)],
    np.moveaxis: [(F, 0, 1)], np.squeeze: [(F[None],), (F[None], 0)], np.expand_dims: [(F, 1), (F, (0, 3))],
    np.atleast_1d: [(F,)], np.atleast_2d: [(V,)], np.vstack: [((F, I),)], np.hstack: [((F, G),)], np.dstack: [((F, F),)],
    np.column_stack: [((V, V),)], np.concatenate: [((F, I),), ((F, G), 1), ((F, V), None)], np.stack: [((F, G),), ((F, G), -1)],
    np.split: [(F, 2, 1)], np.array_split: [(V, 3)], np.tile: [(V, 2), (F, (2, 1))], np.repeat: [(F, 2), (F, 2, 1)],
    np.roll: [(F, 1), (F, 1, 0)], np.meshgrid: [(V, V[:2])], np.sum: [(F,), (I, 0), (B,), (J, 1), (G, (0, 1))],
    np.prod: [(F,), (J, 0)], np.mean: [(F,), (I,), (G, 1)], np.std: [(F,), (I, 0), (G, 1)], np.var: [(F,), (F, None, None, None, 1)],
    np.max: [(F,), (I, 0)], np.min: [(F,), (I, 1)], np.amax: [(F,)], np.amin: [(F,)], np.argmax: [(F,), (I, 1)], np.argmin: [(F,), (I, 0)],
    np.any: [(B,), (I, 0)], np.all: [(B,), (F, 1)], np.cumsum: [(F,), (J, 0)], np.cumprod: [(F, 1)],
    np.where: [(B, F, 0), (B, I, F), (B, G, 1)], np.clip: [(F, -1, 1), (I, 0, 3), (G, 0, None)], np.sort: [(F[::-1].copy(), 0)],
    np.take: [(F, [0, 2], 0), (F, J % 3), (V, 1)], np.take_along_axis: [(F, J[:, :2].astype(np.int64) % 4, 1)], np.diff: [(F,), (I, 1, 0)],
    np.nan_to_num: [(np.array([np.nan, 1.0, np.inf]),)], np.isclose: [(F, F + 1e-9), (I, F)], np.round: [(F,), (F, 1), (I,)], np.around: [(F,)],
    np.real: [(F,), (C,)], np.imag: [(C,)], np.matmul: [(F, F.T), (I, V)], np.dot: [(F, V), (F, F.T), (F, 2.0)], np.inner: [(F, G)],
    np.outer: [(V, V)], np.tensordot: [(F, F.T, 1)], np.einsum: [("ij,kj->ik", F, I)], np.trace: [(F,), (J,)], np.diag: [(V,), (V, 1)],
    np.tril: [(F,), (F, 1)], np.triu: [(I,)], np.fft.fft: [(F,), (G,)], np.fft.ifft: [(C,)], np.fft.rfft: [(F,)], np.fft.irfft: [(C,)],
    np.fft.hfft: [(C,)], np.fft.ihfft: [(F,)], np.fft.fftshift: [(F,)], np.fft.ifftshift: [(F, 0)], np.linalg.norm: [(F,), (V, 1), (F, None, 1)],
    np.linalg.det: [(F[:3, :3] + np.eye(3),)], np.result_type: [(F, G)], np.issubdtype: [(np.float32, np.floating)], np.shape: [(F,)], np.ndim: [(F,)],
    np.size: [(F,), (F, 0)], np.iscomplexobj: [(C,)], np.isrealobj: [(F,)], np.can_cast: [(np.float32, np.float64)], np.promote_types: [("i4", "f4")],
    np.identity: [(3,)], np.tri: [(3,)], np.logspace: [(0, 1, 4)], np.geomspace: [(1, 8, 4)], np.fft.fftfreq: [(8,)], np.fft.rfftfreq: [(8,)],
}  # fmt: skip
REFUSED = {
    np.empty,
    np.empty_like,
    np.argsort,
    np.flip,
    np.flipud,
    np.fliplr,
    np.broadcast_to,
    np.diagonal,
}  # tested below


def samples(function):
    if isinstance(function, np.ufunc) and function is not np.matmul:
        return UFUNCS.get(function.__name__) or (TWO if function.nin == 2 else [(F,), (G,)])
    return CALLS[function]


def compare(got, want):
    assert type(got) is type(want), (type(got), type(want))
    if isinstance(want, (tuple, list)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            compare(g, w)
    elif isinstance(want, (np.ndarray, np.generic)):
        assert got.dtype == want.dtype and got.shape == want.shape, (got.dtype, want.dtype, got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=2e-5 if want.dtype.char in "efF" else 1e-11, atol=1e-12)
    else:
        assert got == want


def check(f, *args, backend="eager", fullgraph=True):
    theirs, ours = copy.deepcopy(args), copy.deepcopy(args)
    with np.errstate(all="ignore"):
        want = f(*theirs)
        got = torch.compile(f, backend=backend, fullgraph=fullgraph)(*ours)
    compare(got, want)
    compare(list(ours), list(theirs))


@pytest.mark.parametrize("function", [f for f in TABLE if f not in REFUSED], ids=lambda f: f.__name__)
def test_functions_compute_what_numpy_computes(function):
    for args in samples(function):
        given = [a for a in args if isinstance(a, np.ndarray)] if args and isinstance(args[0], np.ndarray) else []
        rest = args[len(given) :]
        check(lambda *arrays: function(*arrays, *rest), *given)  # noqa: B023
        check(lambda: function(*args))  # noqa: B023


def test_arrays_are_inputs_and_results():
    def f(a, x):
        b = a * 2 + x.numpy()
        return b, b[0], b[0, 1], b.T, torch.from_numpy(b), a.sum()

    a, x = F.copy(), torch.ones(3, 4)
    graphs = []
    out = torch.compile(f, backend=lambda g, _: graphs.append(g) or g, fullgraph=True)(a, x)
    for got, want in zip(out, f(a, x), strict=True):
        compare(np.asarray(got), np.asarray(want))
        assert type(got) is type(want)
    assert len(graphs) == 1


def test_one_graph_for_arrays_of_the_same_kind():
    graphs = []
    f = torch.compile(lambda a: np.sin(a) + 1, backend=lambda g, _: graphs.append(g) or g, dynamic=False)
    for a in (F, F + 1, -F):
        compare(f(a), np.sin(a) + 1)
    assert len(graphs) == 1
    compare(f(G), np.sin(G) + 1)
    assert len(graphs) == 2


def test_writes_reach_the_array_and_the_tensor_that_shares_its_memory():
    def f(a, x):
        a[1] = 7
        a += 1
        v = x.numpy()
        v[0] = -1
        return a

    a, x = F.copy(), torch.ones(3, 4)
    out = torch.compile(f, fullgraph=True)(a, x)
    assert out is a and (a[1] == 8).all() and a[0, 0] == F[0, 0] + 1
    assert (x[0] == -1).all() and (x[1] == 1).all()


def test_results_share_memory_as_in_numpy():
    a = F.copy()
    view = torch.compile(lambda a: a.reshape(4, 3).T, fullgraph=True)(a)
    a[0, 0] = 100
    assert view[0, 0] == 100
    x = torch.zeros(3)
    array = torch.compile(lambda x: x.numpy(), fullgraph=True)(x)
    x[1] = 5
    assert array[1] == 5


def test_scalars_of_arrays_are_copies():
    def f(a):
        s = a[0, 0]
        a[0, 0] = 9
        return s

    check(f, F)


def test_views_that_tensors_do_not_have_are_never_lost():
    def backwards(a):
        b = np.flip(a, 0)
        a[0] = 5
        return b + 0

    def kept(a):
        return np.flip(a, 0)

    for f in (backwards, kept, lambda a: a[::-1], lambda a: np.broadcast_to(a[0], (3, 4)), lambda a: np.diagonal(a)):
        check(f, F, fullgraph=False)
    check(lambda a: np.flip(a, 0) + np.broadcast_to(a[0], (3, 4)) * 2, F)
    a = F.copy()
    out = torch.compile(kept)(a)
    a[0, 0] = 100
    assert out[-1, 0] == 100


def test_what_depends_on_data_ends_the_graph():
    def f(a):
        b = a + 1
        if b.sum() > 0:
            b = b * 2
        return b[b > 1], int(b.max()), f"{b[0, 0]:.3f}", np.argsort(a), np.unique(a)

    check(f, F, fullgraph=False)


def test_errors_are_those_of_numpy():
    for f in (
        lambda a: a + np.zeros(5), lambda a: a[7], lambda a: a.nothing, lambda a: np.reshape(a, (5, 5)), lambda a: np.sum(a, axis=4),
        lambda a: bool(a), lambda a: len(a[0, 0]),
    ):  # fmt: skip
        with pytest.raises(Exception) as want:
            f(F)
        with pytest.raises(type(want.value)) as got:
            torch.compile(f)(F)
        assert str(got.value).splitlines()[0] == str(want.value)
    with pytest.raises(RuntimeError, match="Can't call numpy"):
        torch.compile(lambda x: x.numpy())(torch.ones(2, requires_grad=True))


def test_classes_and_descriptions():
    def f(a, info):
        return (
            isinstance(a, np.ndarray),
            type(a) is np.ndarray,
            isinstance(a[0, 0], np.floating),
            a.dtype.name,
            info.max,
        )

    run = torch.compile(f, fullgraph=True)
    for info in (np.finfo(np.float32), np.finfo(np.float16), np.iinfo(np.int8)):
        assert run(F, info) == f(F, info)


def test_numpy_scalars_are_conditions():
    run = torch.compile(lambda x, s: x * float(s), fullgraph=True)
    for s in (np.float32(2), np.float32(3), np.int64(3), np.float32(-0.0), np.float32(0.0)):
        assert run(torch.ones(2), s).numpy().tobytes() == (torch.ones(2) * float(s)).numpy().tobytes()


def test_tensors_and_arrays_index_and_convert():
    def f(x, i):
        return x[i], x[i[:1]], torch.as_tensor(i, dtype=torch.float32), torch.tensor(i) + 1

    x, i = torch.arange(5.0), np.array([3, 1])
    for got, want in zip(torch.compile(f, fullgraph=True)(x, i), f(x, i), strict=True):
        assert torch.equal(got, want) and got.dtype is want.dtype


def test_arrays_from_globals_closures_and_attributes():
    class Box:
        table = np.arange(3.0)

    box, other = Box(), np.ones(3)
    run = torch.compile(lambda x: x + torch.from_numpy(box.table) + torch.from_numpy(other), fullgraph=True)
    assert run(torch.zeros(3)).tolist() == [1.0, 2.0, 3.0]
    box.table = np.full(3, 5.0)
    other[0] = 10
    assert run(torch.zeros(3)).tolist() == [15.0, 6.0, 6.0]


def test_what_numpy_does_and_tensors_do_not_ends_the_graph():
    for f, args in (
        (np.tril, (V,)), (np.argmax, (C,)), (np.max, (C,)), (np.absolute, (B,)), (np.rint, (C,)), (np.round, (C,)), (np.transpose, (np.array(1.0),)),
        (lambda a: np.power(a, -1.0), (J + 1,)),
    ):  # fmt: skip
        check(f, *args, fullgraph=False)


def test_writes_that_numpy_refuses_raise_its_errors():
    def put(a, b):
        a[...] = b

    def add(a, b):
        a += b

    for f, a, b in ((put, V, F), (add, V[None, :1], F), (add, J, F), (put, V, "x")):
        with pytest.raises((TypeError, ValueError)) as want:
            f(a.copy(), b)
        with pytest.raises(type(want.value)) as got:
            torch.compile(f)(a.copy(), b)
        assert str(got.value).splitlines()[0] == str(want.value)
