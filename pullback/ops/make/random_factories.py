"""New tensors of random numbers: rand, randn, randint, randperm, normal, and their `_like` forms.

Sizes or a tensor to be like come in, and the options of every factory; a tensor comes out, drawn from the generator
given or from the default one. `out=` is drawn in place, in the order of its memory.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core import dtype as dtypes
from ...core import modes
from ...core.arrays import library
from ...core.cupy_library import device_count
from ...core.device import device, indexed
from ...core.modes import ambient
from ...core.random import Generator, draw, generator_of
from ...core.random_integers import fill_random_range, randperm
from ...core.random_streams import fill_normal, fill_uniform
from ...core.storage import new_array
from ...core.tensor import Tensor, wrap
from ..eager.functions import overridden_operators
from ..family.factory import factory
from ..system.calls import front
from ..system.dispatch import dispatch
from ..system.operator import Operator, Spec, key_of
from .factories import _options, _sized, empty_op, finish, sizes_from
from .like import _like_spec, check_input
from .random import GENERATOR, SEEDED, check_unbatched, drawn_into, normal_of, normal_op, random_from, uniform_op

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_LIKE = f"{_OPTIONS}, MemoryFormat? memory_format=None"


# ---- operators
def drawing(schema: str, overload: str, shape: Callable, fill: Callable) -> tuple[Operator, Operator]:
    """Two factories: one for the default generator, and one, called `overload`, that is given a generator.

    `schema` has a name and the arguments before the generator. `shape` sees all others; `fill(generator, array,
    *arguments)` draws.
    """
    head, _, arguments = schema.rstrip(")").partition("(")
    is_like = arguments.startswith("Tensor")
    tail = _LIKE if is_like else _OPTIONS
    count = arguments.count(",") + 1

    def kernel(xp, spec: Spec, *args):
        return fill(None, _blank(xp, spec), *args[:count])

    def kernel_given(xp, spec: Spec, *args):
        return fill(args[count], _blank(xp, spec), *args[:count])

    def shape_given(*args) -> Spec:
        return shape(*args[:count], *args[count + 1 :])

    given = f"{head.partition('.')[0]}.{overload}({arguments}, *, Generator? generator, {tail}) -> Tensor"
    return (
        factory(
            f"{head}({arguments}, *, {tail}) -> Tensor",
            shape=shape,
            kernel=kernel,
            tags=SEEDED,
            reads_shape_only=is_like,
        ),
        factory(given, shape=shape_given, kernel=kernel_given, tags=SEEDED, reads_shape_only=is_like),
    )


def _blank(xp, spec: Spec):
    if spec.dtype.numpy is None:
        raise NotImplementedError(f"random numbers are not implemented for '{spec.dtype.scalar_name}'")
    if (
        ambient.mode & modes.PROFILE and spec.stride is None and xp.__name__ == "numpy"
    ):  # profiles show the allocation as the call it is
        with modes.masked(~modes.PROFILE):
            return dispatch(empty_op, (spec.shape, spec.dtype, None, None, None, None))._array
    return new_array(spec.shape, spec.dtype, spec.stride, xp)


def _integers(*args) -> Spec:
    *_, size, dtype, layout, device, pin_memory = args
    return _sized(size, dtype or dtypes.int64, layout, device, pin_memory)


def _permutation(n, dtype, *rest) -> Spec:
    return _sized((n,), dtype or dtypes.int64, *rest)


def _fill_permutation(gen: Generator, out, n: int):
    return draw(_permuted, gen, out, n)


def _permuted(gen: Generator, out, n: int):
    out[...] = randperm(gen, n, out.dtype)
    return out


def _from_zero(gen: Generator, out, high: int, size=None):
    return draw(fill_random_range, gen, out, 0, high)


def _uniform(gen: Generator, out, size_or_like):
    return draw(fill_uniform, gen, out)


def _standard(gen: Generator, out, size_or_like):
    return draw(fill_normal, gen, out)


rand_ops = drawing("rand(SymInt[] size)", "generator", _sized, _uniform)
randn_ops = drawing("randn(SymInt[] size)", "generator", _sized, _standard)
randperm_ops = drawing("randperm(SymInt n)", "generator", _permutation, _fill_permutation)
randint_ops = drawing("randint(SymInt high, SymInt[] size)", "generator", _integers, _from_zero)
randint_low_ops = drawing(
    "randint.low(SymInt low, SymInt high, SymInt[] size)",
    "low_generator",
    _integers,
    lambda gen, out, low, high, size: draw(fill_random_range, gen, out, low, high),
)
rand_like_ops = drawing("rand_like(Tensor self)", "generator", _like_spec, _uniform)
randn_like_ops = drawing("randn_like(Tensor self)", "generator", _like_spec, _standard)
randint_like_ops = drawing(
    "randint_like(Tensor self, SymInt high)",
    "generator",
    _like_spec,
    lambda gen, out, like, high: draw(fill_random_range, gen, out, 0, high),
)
randint_like_low_ops = drawing(
    "randint_like.low_dtype(Tensor self, SymInt low, SymInt high)",
    "low_generator_dtype",
    _like_spec,
    lambda gen, out, like, low, high: draw(fill_random_range, gen, out, low, high),
)
normal_sized = factory(
    f"normal.float_float(float mean, float std, SymInt[] size, *, {GENERATOR}, {_OPTIONS}) -> Tensor",
    shape=lambda mean, std, size, generator, *rest: _sized(size, *rest),
    kernel=lambda xp, spec, mean, std, size, generator, *_: draw(fill_normal, generator, _blank(xp, spec), mean, std),
    tags=SEEDED,
)


# ---- public forms
OPTIONS = frozenset(("dtype", "layout", "device", "pin_memory", "requires_grad", "names"))


def make(name: str, ops: tuple, leading: tuple, generator, options: dict, out: Tensor | None = None) -> Tensor:
    """Call the one of the two factories that fits, on arguments as the user gave them."""
    op = ops[generator is not None]
    last = (options.pop("memory_format", None),) if isinstance(leading[0], Tensor) else ()
    given = () if generator is None else (generator,)
    if not options and out is None:
        return dispatch(op, op.convert((*leading, *given, None, None, None, None, *last)))
    if unknown := options.keys() - OPTIONS:
        raise TypeError(f"{name}() got an unexpected keyword argument '{min(unknown)}'")
    if out is not None:
        check_unbatched(name, out)
    like = leading[0] if isinstance(leading[0], Tensor) else None
    dtype, layout, device = _options(
        name, op, options.get("dtype"), options.get("layout"), options.get("device"), out, like
    )
    args = op.convert((*leading, *given, dtype, layout, device, options.get("pin_memory"), *last))
    return finish(dispatch(op, args), options.get("requires_grad", False), out, names=options.get("names"))


def make_into(name: str, out: Tensor, shape: tuple, options: dict, draw: Callable) -> Tensor:
    """The same with `out=`."""
    dtype = options.get("dtype") or out.dtype
    if dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    return finish(drawn_into(name, out, shape, draw), options.get("requires_grad", False))


def invalid(name: str, *values) -> TypeError:
    got = ", ".join(type(v).__name__ for v in values)
    return TypeError(f"{name}() received an invalid combination of arguments - got ({got})")


def _drawn_on_device(shape: tuple, where: device | str, normal: bool) -> Tensor | None:
    """New numbers, where a call names a CUDA device and nothing else and nothing listens; None where it may be more than that."""
    if where.__class__ is not device and (where.__class__ is not str or not where.startswith("cuda")):
        return None
    where, dtype = indexed(where), ambient.default_dtype
    if where.type != "cuda" or device_count() != 1 or ambient.mode & ~modes.GRAD or overridden_operators:
        return None
    if dtype.category != 2 or dtype.itemsize < 4 or any(s.__class__ is not int or s < 0 for s in shape):
        return None
    fill = getattr(generator_of(where), "fill_new", None)
    if fill is None:
        return None
    return wrap(fill(library(where).ndarray(shape, dtype.numpy), int(normal), 0.0, 1.0), dtype, where)


def _make_sized(name: str, ops: tuple, fill: Operator):
    normal = fill is normal_op

    def make_sized(*size, generator=None, out=None, **options):
        given = options.pop("size", None)
        if not size and given is None:
            raise invalid(name)
        shape = sizes_from(name, size, given)
        if generator is None and out is None and len(options) == 1 and "device" in options:
            result = _drawn_on_device(shape, options["device"], normal)
            if result is not None:
                return result
        if out is not None:
            return make_into(name, out, shape, options, lambda o: fill.inplace(o, generator=generator))
        return make(name, ops, (shape,), generator, options)

    make_sized.__name__ = make_sized.__qualname__ = name
    return front(f"torch.{name}", past=tuple(map(key_of, ops)))(make_sized)


def _make_like(name: str, ops: tuple):
    def make_like(input, *, generator=None, **options):
        check_input(name, input)
        return make(name, ops, (input,), generator, options)

    make_like.__name__ = make_like.__qualname__ = name
    return front(f"torch.{name}", past=tuple(map(key_of, ops)))(make_like)


rand = _make_sized("rand", rand_ops, uniform_op)
randn = _make_sized("randn", randn_ops, normal_op)
rand_like = _make_like("rand_like", rand_like_ops)
randn_like = _make_like("randn_like", randn_like_ops)


def _bounds(name: str, given: tuple, low, high) -> tuple:
    """(high,) or (low, high), from positions and names."""
    bounds = (*given, *(b for b in (low, high) if b is not None))
    if not 1 <= len(bounds) <= 2:
        raise invalid(name, *bounds)
    return bounds


@front("torch.randint", past=tuple(map(key_of, (*randint_ops, *randint_low_ops))))
def randint(*given, low=None, high=None, size=None, generator=None, out=None, **options) -> Tensor:
    """`randint(high, size)`, `randint(low, high, size)`."""
    if size is None:
        if not given:
            raise invalid("randint")
        *given, size = given
    bounds = _bounds("randint", tuple(given), low, high)
    if out is not None:
        low, high = bounds if len(bounds) == 2 else (0, *bounds)
        shape = sizes_from("randint", (size,))
        return make_into(
            "randint", out, shape, options, lambda o: random_from.inplace(o, low, high, generator=generator)
        )
    ops = randint_ops if len(bounds) == 1 else randint_low_ops
    return make("randint", ops, (*bounds, size), generator, options)


@front("torch.randint_like")
def randint_like(input, *given, low=None, high=None, generator=None, **options) -> Tensor:
    """`randint_like(input, high)`, `randint_like(input, low, high)`."""
    bounds = _bounds("randint_like", given, low, high)
    ops = randint_like_ops if len(bounds) == 1 else randint_like_low_ops
    return make("randint_like", ops, (input, *bounds), generator, options)


def _randperm(n, *, generator=None, out=None, **options) -> Tensor:
    """The numbers 0 to n - 1 in random order."""
    return make("randperm", randperm_ops, (n,), generator, options, out)


def _number(value):
    """The number of a tensor without dimensions that no gradient is wanted of; anything else as it is."""
    alone = isinstance(value, Tensor) and not value._array.shape and not value.requires_grad
    return value.item() if alone else value


def _normal(mean, std=1.0, size=None, *, generator=None, out=None, **options) -> Tensor:
    """`normal(mean, std)` with a tensor for one or both, or `normal(mean, std, size)`."""
    if size is not None:
        mean, std = _number(mean), _number(std)
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        if size is not None or options:
            raise invalid("normal", mean, std, size, *options)
        return normal_of(mean, std, generator, out)
    if size is None:
        raise invalid("normal", mean, std)
    shape = sizes_from("normal", (size,))
    if out is not None:
        return make_into("normal", out, shape, options, lambda o: normal_op.inplace(o, mean, std, generator=generator))
    requires_grad = options.pop("requires_grad", False)
    return finish(normal_sized(mean, std, shape, generator=generator, **options), requires_grad)


_randperm.__name__, _normal.__name__ = "randperm", "normal"
front("torch.randperm", past=tuple(map(key_of, randperm_ops)))(_randperm)
front("torch.normal")(_normal)
