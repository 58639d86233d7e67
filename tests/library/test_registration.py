"""Libraries: operators defined at run time, kernels registered for them, and all of it taken back."""

import gc
import warnings

import pytest

import pullback as torch
from pullback.library import Library, _scoped_library, define, fallthrough_kernel, get_kernel, impl


@pytest.fixture
def lib():
    with _scoped_library("t_reg", "FRAGMENT") as result:
        yield result


ops = torch.ops.t_reg


def test_define_and_impl(lib):
    assert lib.define("f(Tensor x, int n=2) -> Tensor") == "f"
    lib.impl("f", lambda x, n=2: x * n, "CPU")
    x = torch.ones(2)
    assert ops.f(x).tolist() == [2, 2]
    assert ops.f(x, n=3).tolist() == ops.f.default(x, 3).tolist() == [3, 3]
    assert str(ops.f.default._schema) == "t_reg::f(Tensor x, int n=2) -> Tensor"
    assert repr(ops.f.default) == "<OpOverload(op='t_reg.f', overload='default')>"
    assert ops.f.overloads() == ["default"]


def test_kernels_see_what_was_written(lib):
    seen = []
    lib.define(
        "f(Tensor x, int[] a, float f=1, *, str s='a', bool? b=None, Scalar k=2, ScalarType? d=None, Device? v=None) -> Tensor"
    )
    lib.impl("f", lambda *a, **k: (seen.append((a[1:], k)), a[0].clone())[1], "CPU")
    x = torch.ones(1)
    ops.f(x, (1, 2))
    ops.f(x, [1, 2], 3, s="q", b=True, k=2.5, d=torch.float64, v="cpu")
    assert seen[0] == (([1, 2],), {})
    assert seen[1] == (
        ([1, 2], 3.0),
        {"s": "q", "b": True, "k": 2.5, "d": torch.float64, "v": torch.device("cpu")},
    )
    assert type(seen[1][0][1]) is float


def test_results_of_every_kind(lib):
    x = torch.ones(3)
    for returns, value, expected in (
        ("()", None, None),
        ("int", 3, 3),
        ("float", 1, 1.0),
        ("bool", True, True),
        ("str", "a", "a"),
        ("Tensor[]", (x + 1,), [[2, 2, 2]]),
        ("(Tensor, Tensor?)", (x + 1, None), ([2, 2, 2], None)),
        ("(Tensor a, int b)", [x + 1, 2], ([2, 2, 2], 2)),
    ):
        with _scoped_library("t_ret", "DEF") as own:
            own.define(f"f(Tensor x) -> {returns}")
            own.impl("f", lambda x, value=value: value, "CPU")
            out = torch.ops.t_ret.f(x)
            result = (
                type(out)(v.tolist() if isinstance(v, torch.Tensor) else v for v in out)
                if isinstance(out, (tuple, list))
                else out
            )
            assert result == expected, returns


@pytest.mark.parametrize(
    ("returns", "value", "words"),
    [
        ("()", 1, "to return None but it returned something else instead"),
        ("Tensor", 3, "Unable to cast 3 to Tensor"),
        ("int", "a", "expected the kernel to return int, got str"),
        ("(Tensor, Tensor)", (1,), "expected the kernel to return 2 values, got 1 values"),
    ],
)
def test_results_of_the_wrong_kind(lib, returns, value, words):
    lib.define(f"f(Tensor x) -> {returns}")
    lib.impl("f", lambda x: value, "CPU")
    with pytest.raises(RuntimeError, match=words):
        ops.f(torch.ones(1))


def test_writing_is_seen_and_counted(lib):
    lib.define("f(Tensor(a!) x, Tensor y) -> ()")
    lib.impl("f", lambda x, y: (x.add_(y), None)[1], "CPU")
    lib.define("g(Tensor(a!) x) -> ()")

    def by_array(x):
        x.numpy()[...] = 7

    lib.impl("g", by_array, "CPU")
    x = torch.zeros(2)
    assert ops.f(x, torch.ones(2)) is None
    assert x.tolist() == [1, 1] and x._version == 1
    ops.g(x)
    assert x.tolist() == [7, 7] and x._version == 2
    saved = torch.ones(2, requires_grad=True) * 2
    out = saved * saved
    with torch.no_grad():
        ops.g(saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def test_argument_errors(lib):
    lib.define("f(Tensor x, int y=1) -> Tensor")
    lib.impl("f", lambda x, y=1: x + y, "CPU")
    x = torch.ones(2)
    decl = r"t_reg::f\(Tensor x, int y=1\) -> Tensor"
    for args, kwargs, words in (
        ((3,), {}, r"t_reg::f\(\) Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'."),
        ((x, 1.5), {}, "Expected a value of type 'int' for argument 'y' but instead found type 'float'"),
        (([x],), {}, "instead found type 'list'"),
        ((), {}, rf"t_reg::f\(\) is missing value for argument 'x'. Declaration: {decl}"),
        ((x, 1, 2), {}, r"expected at most 2 argument\(s\) but received 3 argument\(s\)"),
        ((x,), {"z": 1}, f"Unknown keyword argument 'z' for operator 't_reg::f'. Schema: {decl}"),
        ((x,), {"x": x}, "Argument 'x' specified both as positional and keyword argument"),
    ):
        with pytest.raises(RuntimeError, match=words):
            ops.f(*args, **kwargs)


def test_overloads(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.int(int x) -> int")
    lib.impl("f", lambda x: x + 1, "CompositeImplicitAutograd")
    lib.impl("f.int", lambda x: x + 1, "CompositeExplicitAutograd")
    assert ops.f(2) == 3 and ops.f.int(2) == 3
    assert ops.f(torch.ones(1)).tolist() == [2]
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        ops.f("a")
    with pytest.raises(AttributeError, match="has no overload name 'nosuch'"):
        ops.f.nosuch


def test_missing_kernels(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.define("n(int x) -> int")
    with pytest.raises(NotImplementedError, match="Could not run 't_reg::f' with arguments from the 'CPU' backend"):
        ops.f(torch.ones(1))
    with pytest.raises(NotImplementedError, match="there was no fake impl or Meta kernel registered"):
        ops.f(torch.ones(1, device="meta"))
    with pytest.raises(NotImplementedError, match="There were no tensor arguments to this function"):
        ops.n(1)


def test_composite_kernels(lib):
    lib.define("i(Tensor x) -> Tensor")
    lib.impl("i", lambda x: x * 2, "CompositeImplicitAutograd")
    lib.define("e(Tensor x) -> Tensor")
    lib.impl("e", lambda x: x * 2, "CompositeExplicitAutograd")
    x = torch.ones(2, requires_grad=True)
    ops.i(x).sum().backward()
    assert x.grad.tolist() == [2, 2]
    assert ops.e(torch.ones(2, device="meta")).shape == (2,)
    assert ops.i(torch.ones(2, device="meta")).device.type == "meta"
    assert torch.vmap(ops.i)(torch.ones(2, 3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match="We should not register a meta kernel directly to the operator 'i'"):
        lib.impl("i", lambda x: x, "Meta")


def test_kernels_may_come_before_the_definition(lib):
    lib.impl("later", lambda x: x + 1, "CPU")
    lib.define("later(Tensor x) -> Tensor")
    assert ops.later(torch.ones(1)).tolist() == [2]


def test_the_last_kernel_counts_and_gives_way(lib):
    lib.define("f(Tensor x) -> Tensor")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.impl("f", lambda x: x + 1, "CPU")
        with _scoped_library("t_reg", "IMPL") as other:
            other.impl("f", lambda x: x + 10, "CPU")
            assert ops.f(torch.zeros(1)).item() == 10
        assert ops.f(torch.zeros(1)).item() == 1
        with pytest.raises(
            RuntimeError, match="there's already a kernel registered from python overriding f's behavior"
        ):
            lib.impl("f", lambda x: x, "CPU", allow_override=False)


def test_what_a_library_defined_goes_with_it():
    with _scoped_library("t_gone", "DEF") as own:
        own.define("f(Tensor x) -> Tensor")
        own.impl("f", lambda x: x + 1, "CPU")
        packet = torch.ops.t_gone.f
        packet(torch.ones(1))
        assert torch.ops.t_gone._dir == ["f"]
    assert not torch.ops.t_gone._dir
    with pytest.raises(AttributeError, match="'_OpNamespace' 't_gone' object has no attribute 'f'"):
        torch.ops.t_gone.f
    with pytest.raises(AttributeError):
        packet(torch.ones(1))
    with pytest.raises(AssertionError, match="Library object has been destroyed"):
        own.impl("f", lambda x: x, "CPU")
    with pytest.raises(AssertionError, match="Library object has been destroyed"):
        own.define("g(Tensor x) -> Tensor")
    again = Library("t_gone", "DEF")
    again.define("f(Tensor x) -> int")
    del again
    gc.collect()
    assert not hasattr(torch.ops.t_gone, "f")


def test_definition_errors(lib):
    own = Library("t_def", "DEF")
    with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY can be used to register the namespace t_def"):
        Library("t_def", "DEF")
    with pytest.raises(ValueError, match="Unsupported kind: X"):
        Library("t_def", "X")
    with pytest.raises(ValueError, match="prim is a reserved namespace"):
        Library("prim", "DEF")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        Library("t_def", "IMPL", "Foo")
    own.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        own.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match=r"Explicitly provided namespace \(q\) in schema string does not match"):
        own.define("q::g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Cannot define an operator inside of a TORCH_LIBRARY_IMPL block"):
        Library("t_def", "IMPL").define("g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Invalid alias_analysis type FOO"):
        own.define("g(Tensor x) -> Tensor", "FOO")
    own._destroy()


def test_impl_errors(lib):
    lib.define("f(Tensor x) -> Tensor")
    with pytest.raises(TypeError, match="Input function is required to be a callable but found type <class 'int'>"):
        lib.impl("f", 3, "CPU")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        lib.impl("f", lambda x: x, "Foo")
    with pytest.raises(RuntimeError, match="either a name or an OpOverload object"):
        lib.impl(3, lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match=r"Explicitly provided namespace \(aten\) in operator name"):
        lib.impl(torch.ops.aten.neg.default, lambda x: x, "CPU")
    with pytest.raises(RuntimeError, match=r"Explicitly provided namespace \(zz\) in operator name"):
        lib.impl("zz::f", lambda x: x, "CPU")
    with pytest.raises(NotImplementedError, match="BackendSelect"):
        lib.impl("f", lambda x: x, "BackendSelect")
    with pytest.raises(NotImplementedError, match="register_vmap"):
        lib.impl("f", lambda x: x, "FuncTorchBatched")


def test_functions_and_decorators(lib):
    define("t_reg::a", "(Tensor x) -> Tensor", lib=lib)

    @impl("t_reg::a", "cpu", lib=lib)
    def _(x):
        return x + 1

    @impl(lib, "a", "Meta")
    def meta(x):
        return torch.empty_like(x)

    @define(lib, "b(Tensor x) -> Tensor")
    def b(x):
        return x + 3

    assert ops.a(torch.ones(1)).item() == 2 and ops.b(torch.ones(1)).item() == 4
    assert ops.a(torch.ones(1, device="meta")).shape == (1,)
    with pytest.raises(ValueError, match='expected schema to look like e.g. "\\(Tensor x\\) -> Tensor"'):
        define("t_reg::z", "z(Tensor x) -> Tensor", lib=lib)
    with pytest.raises(ValueError, match='to be of the form "namespace::name", but got z'):
        define("z", "(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="expected qualname to be instance of str"):
        define(3, "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="device type at start of device string: foo"):
        impl("t_reg::a", "foo", lambda x: x)


def test_get_kernel(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    kernel = get_kernel("t_reg::f", "CPU")
    assert kernel.call_boxed(torch.DispatchKeySet(torch.DispatchKey.CPU), torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="no kernel for CUDA for t_reg::f"):
        get_kernel("t_reg::f", "CUDA")
    with pytest.raises(ValueError, match="Invalid dispatch key: FOO"):
        get_kernel("t_reg::f", "FOO")


def test_the_kernel_of_a_builtin_operator_is_the_registered_one():
    """Which kernel `get_kernel` gives is settled when it is asked; it goes with its library."""
    keys, x = torch.DispatchKeySet(torch.DispatchKey.CPU), torch.ones(1)
    own = get_kernel("aten::neg", "CPU")
    with _scoped_library("aten", "IMPL") as lib:
        lib.impl("neg", lambda x: x + 100, "CPU")
        kernel = get_kernel("aten::neg", "CPU")
        assert kernel.call_boxed(keys, x).item() == 101 and own.call_boxed(keys, x).item() == -1
    with pytest.raises(RuntimeError, match="has been invalidated"):
        kernel.call_boxed(keys, x)
    assert own.call_boxed(keys, x).item() == -1


_SHORT = {"arange": (3,), "arange.start": (1, 3), "eye": (2,)}


def test_kernels_of_the_shorter_forms_of_arange_and_eye():
    """A kernel is called for the form of the operator that it is registered for, and no other."""
    calls = {
        "arange": lambda: torch.arange(3),
        "arange.start": lambda: torch.arange(1, 3),
        "arange.start_step": lambda: torch.arange(1, 6, 2),
        "eye": lambda: torch.eye(2),
        "eye.m": lambda: torch.eye(2, 3),
    }
    plain = {name: call().tolist() for name, call in calls.items()}
    for name, arguments in _SHORT.items():
        with _scoped_library("aten", "IMPL") as lib:
            lib.impl(name, lambda *args, **options: torch.full((1,), 7), "CPU")
            for other, call in calls.items():
                assert call().tolist() == ([7] if other == name else plain[other]), (name, other)
            kernel = get_kernel(f"aten::{name}", "CPU")
            keys = torch.DispatchKeySet(torch.DispatchKey.CPU)
            assert kernel.call_boxed(keys, *arguments).tolist() == [7]
    kernel = get_kernel("aten::arange.start", "CPU")
    assert kernel.call_boxed(torch.DispatchKeySet(torch.DispatchKey.CPU), 2, 4).tolist() == [2, 3]


def test_keyset_and_fallback(lib):
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda keys, x: x + int(keys.has(torch.DispatchKey.CPU)), "CPU", with_keyset=True)
    assert ops.f(torch.zeros(1)).item() == 1
    lib.define("g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match='global namespace "_" but it is t_reg'):
        lib.fallback(lambda *a: 1, "CPU")
    with _scoped_library("_", "IMPL") as everywhere:
        everywhere.fallback(lambda op, x: x + len(op.name), "CPU")
        assert ops.g(torch.zeros(1)).item() == 1
    with pytest.raises(NotImplementedError):
        ops.g(torch.zeros(1))
    with pytest.raises(NotImplementedError, match="should never be called"):
        fallthrough_kernel()


def test_tags(lib):
    lib.define("f(Tensor x) -> Tensor", tags=torch.Tag.pointwise)
    assert torch.Tag.pointwise in ops.f.default.tags
    with pytest.raises(ValueError, match="torch.Tag.inplace requires the first positional argument to be mutable"):
        lib.define("g(Tensor x) -> Tensor", tags=(torch.Tag.inplace,))
    with pytest.raises(ValueError, match="torch.Tag.out must have at least one mutable argument"):
        lib.define("g(Tensor x) -> Tensor", tags=(torch.Tag.out,))
    assert not hasattr(ops, "g")


def test_modes_and_subclasses_see_it(lib):
    from pullback.ops.system.overrides import TorchDispatchMode, TorchFunctionMode

    lib.define("f(Tensor x, int n=2) -> Tensor")
    lib.impl("f", lambda x, n=2: x * n, "CPU")
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, kwargs))
            return func(*args, **(kwargs or {}))

    class Sub(torch.Tensor):
        pass

    x = torch.ones(1)
    with Functions():
        ops.f(x)
    with Calls():
        out = ops.f(x, n=3)
    assert out.item() == 3
    assert seen == [ops.f, (ops.f.default, {})]
    assert type(ops.f(x.as_subclass(Sub))) is Sub
