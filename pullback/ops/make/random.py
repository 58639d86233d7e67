"""Random numbers drawn into tensors, or from parameters that are tensors; and the states of generators.

Every draw is one call of a fill or a sampler of `core.random_*`, which have PyTorch's streams; here are the schemas,
the gradients (zero, except for gamma numbers) and the public forms. Without a generator the default one is used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager

from ...core import dtype as dtypes
from ...core import modes
from ...core import random as generators
from ...core.arrays import empty_like
from ...core.device import device
from ...core.geometry import broadcast_shapes
from ...core.layers import extend
from ...core.modes import ambient
from ...core.random import Generator, default_generator, draw
from ...core.random_gradients import dirichlet_grad, standard_gamma_grad
from ...core.random_integers import fill_random, fill_random_range, multinomial
from ...core.random_rejection import binomial, dirichlet, poisson, standard_gamma
from ...core.random_streams import (
    fill_bernoulli,
    fill_cauchy,
    fill_exponential,
    fill_geometric,
    fill_log_normal,
    fill_normal,
    fill_uniform,
    normal,
)
from ...core.tensor import META, TRANSFORMED, Tensor, wrap
from ..family.base import operator
from ..system.calls import front, make_function
from ..system.general import resize_output
from ..system.operator import NONDIFFERENTIABLE, NOT_IMPLEMENTED, Operator, Spec, export, missing
from ..system.scalars import exact_out
from .factories import finish
from .like import zeros_like

SEEDED = ("nondeterministic_seeded",)
GENERATOR = "Generator? generator=None"


# ---- in-place draws
def filling(schema: str, fill: Callable, inplace_schema: str | None = None, **options) -> Operator:
    """Declare draws that do not look at what was there: `fill(generator, array, *parameters)`; gradients are zero.

    The in-place form is the one in use, the functional form is what functionalization makes of it.
    """

    def write(target: Tensor, *args) -> None:
        *parameters, generator = args
        if not target._keys & META:
            draw(fill, generator, target._array, *map(_array, parameters))

    def kernel(xp, self, *args):
        *parameters, generator = args
        return draw(fill, generator, empty_like(self), *parameters)

    op = operator(
        schema,
        kernel=kernel,
        meta=_like_first,
        write=write,
        vjp={"self": _zeros},
        tags=SEEDED,
        **{"function": False, "method": False, "inplace": True, **options},
    )
    if inplace_schema is not None:
        op.inplace = inplace = Operator(inplace_schema, op.family, vjp=op.vjp, tags=SEEDED)
        inplace.inplace_of = op
    return op


def _array(value):
    return value._array if isinstance(value, Tensor) else value


def _zeros(g):
    return zeros_like(g)


def _like_first(self, *args) -> Spec:
    return Spec(self._array.shape, self.dtype)


uniform_op = filling(f"uniform(Tensor self, float from=0., float to=1., *, {GENERATOR}) -> Tensor", fill_uniform)
normal_op = filling(
    f"normal_functional(Tensor self, float mean=0., float std=1., *, {GENERATOR}) -> Tensor",
    fill_normal,
    f"normal_(Tensor(a!) self, float mean=0., float std=1., *, {GENERATOR}) -> Tensor(a!)",
    node="NormalBackward0",
    inplace="hidden",
)
export("Tensor", "normal_", make_function("normal_", normal_op, inplace=True))
filling(f"log_normal(Tensor self, float mean=1., float std=2., *, {GENERATOR}) -> Tensor", fill_log_normal)
filling(f"cauchy(Tensor self, float median=0., float sigma=1., *, {GENERATOR}) -> Tensor", fill_cauchy)
exponential_op = filling(f"exponential(Tensor self, float lambd=1., *, {GENERATOR}) -> Tensor", fill_exponential)
filling(f"geometric(Tensor self, float p, *, {GENERATOR}) -> Tensor", fill_geometric)
random_from = filling(
    f"random.from(Tensor self, int from, int? to, *, {GENERATOR}) -> Tensor", fill_random_range, inplace="hidden"
)


def _up_to(gen, out, to: int):
    return fill_random_range(gen, out, 0, to)


random_to = filling(
    f"random.to(Tensor self, int to, *, {GENERATOR}) -> Tensor",
    _up_to,
    inplace="hidden",
    number=1,
)
random_all = filling(f"random(Tensor self, *, {GENERATOR}) -> Tensor", fill_random, inplace="hidden", number=2)


@front("Tensor.random_")
def random_(self, *bounds, generator=None, **named) -> Tensor:
    """`random_()`, `random_(to)`, `random_(from, to)`."""
    names = ("from", "to")[: len(bounds) + len(named)] if "from" in named or len(bounds) + len(named) == 2 else ("to",)
    values = dict(zip(names, bounds, strict=False)) | named
    if len(values) != len(bounds) + len(named) or not set(values) <= {"from", "to"} or set(values) == {"from"}:
        got = ", ".join([type(b).__name__ for b in bounds] + [f"{k}={type(v).__name__}" for k, v in named.items()])
        raise TypeError(f"random_() received an invalid combination of arguments - got ({got})")
    op = (random_all, random_to, random_from)[len(values)]
    return op.inplace(self, *(values[n] for n in names if n in values), generator=generator)


def check_unbatched(name: str, out: Tensor) -> None:
    """`out=` of a random operation is no example of a batch: it is not said which numbers examples share."""
    if out._keys & TRANSFORMED or ambient.mode & modes.TRANSFORM:
        raise RuntimeError(
            f"vmap: We do not support calling out variants of random operations inside of vmap: {name}(out=...). "
            "Please use non-out variants as a workaround"
        )


def drawn_into(name: str, out: Tensor, shape, draw: Callable) -> Tensor:
    """`out=`: the numbers are drawn where they will stay, in the order of that memory."""
    check_unbatched(name, out)
    if modes.is_grad_enabled() and out.requires_grad:
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, "
            "but one of the arguments requires grad."
        )
    if out._array.shape != tuple(shape):
        resize_output(out, tuple(shape))
    with modes.no_grad():
        return draw(out)


# ---- draws from given parameters
def sampling(schema: str, sample: Callable, meta: Callable, vjp, **options) -> Operator:
    """Declare draws whose parameters are tensors: `sample(generator, *arrays)`; the generator is the last argument."""

    def kernel(xp, *args):
        *parameters, generator = args
        if xp.__name__ != "numpy":
            from ...core.random_philox import sample_on_device

            where = next(p.device.id for p in parameters if hasattr(p, "dtype"))
            return sample_on_device(
                xp, sample, generator or generators.generator_of(device("cuda", where)), *parameters
            )
        return sample(generator or default_generator, *parameters)

    return operator(
        schema,
        kernel=kernel,
        meta=meta,
        vjp=vjp,
        tags=SEEDED,
        samples=True,
        **{"function": False, "method": False, **options},
    )


def _like_both(first, second, *args) -> Spec:
    return Spec(broadcast_shapes(first._array.shape, second._array.shape), first.dtype)


def _categories(self, num_samples, *args) -> Spec:
    return Spec((*self._array.shape[:-1], num_samples), dtypes.int64)


def _ones_and_zeros(gen, p):
    return fill_bernoulli(gen, p.copy("C"), p)


bernoulli_own = sampling(
    f"bernoulli(Tensor self, *, {GENERATOR}) -> Tensor",
    _ones_and_zeros,
    _like_first,
    {"self": _zeros},
)
bernoulli_each = filling(
    f"bernoulli.Tensor(Tensor self, Tensor p, *, {GENERATOR}) -> Tensor",
    fill_bernoulli,
    inplace="hidden",
    number=1,
    samples=True,
)
bernoulli_all = filling(
    f"bernoulli.p(Tensor self, float p, *, {GENERATOR}) -> Tensor",
    fill_bernoulli,
    f"bernoulli_.float(Tensor(a!) self, float p=0.5, *, {GENERATOR}) -> Tensor(a!)",
    inplace="hidden",
    number=2,
)


@front("torch.bernoulli", "Tensor.bernoulli")
def bernoulli(input, p=None, *, generator=None, out=None) -> Tensor:
    """Ones with the probabilities in `input`, or with probability `p` in its shape."""
    if out is not None:
        given = input if p is None else p
        return drawn_into("bernoulli", out, input.shape, lambda o: bernoulli_(o, given, generator=generator))
    return bernoulli_own(input, generator=generator) if p is None else bernoulli_all(input, p, generator=generator)


@front("Tensor.bernoulli_")
def bernoulli_(self, p=0.5, *, generator=None) -> Tensor:
    """Ones with probability `p`, a number or a tensor."""
    return (bernoulli_each if isinstance(p, Tensor) else bernoulli_all).inplace(self, p, generator=generator)


normal_tensor_float = sampling(
    f"normal.Tensor_float(Tensor mean, float std=1., *, {GENERATOR}) -> Tensor",
    normal,
    _like_first,
    {"mean": _zeros},
    number=1,
)
normal_float_tensor = sampling(
    f"normal.float_Tensor(float mean, Tensor std, *, {GENERATOR}) -> Tensor",
    normal,
    lambda mean, std, generator: Spec(std._array.shape, std.dtype),
    {"std": _zeros},
    number=2,
)
normal_tensor_tensor = sampling(
    f"normal.Tensor_Tensor(Tensor mean, Tensor std, *, {GENERATOR}) -> Tensor",
    normal,
    _like_both,
    {"mean": _zeros, "std": _zeros},
    number=3,
)


def normal_of(mean, std, generator, out) -> Tensor:
    """Normal numbers where the mean or the standard deviation, or both, are tensors."""
    if not isinstance(mean, Tensor):
        op = normal_float_tensor
    else:
        op = normal_tensor_tensor if isinstance(std, Tensor) else normal_tensor_float
    return finish(op(mean, std, generator=generator), out=out)


sampling(
    f"multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, {GENERATOR}) -> Tensor",
    multinomial,
    _categories,
    NONDIFFERENTIABLE,
    function=True,
    method=True,
    check_out=exact_out,
)
sampling(f"poisson(Tensor self, {GENERATOR}) -> Tensor", poisson, _like_first, {"self": _zeros}, function=True)
sampling(
    f"binomial(Tensor count, Tensor prob, {GENERATOR}) -> Tensor",
    binomial,
    _like_both,
    {"count": NOT_IMPLEMENTED, "prob": NOT_IMPLEMENTED},
    function=True,
    node="NotImplemented",
)
gamma_grad = operator(
    "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor",
    kernel=lambda xp, self, output: standard_gamma_grad(self, output),
    meta=_like_both,
    vjp={"self": missing("_standard_gamma_grad"), "output": NOT_IMPLEMENTED},
    method=False,
)
sampling(
    f"_standard_gamma(Tensor self, {GENERATOR}) -> Tensor",
    standard_gamma,
    _like_first,
    {"self": lambda g, self, out: g * gamma_grad(self, out)},
    function=True,
    node="StandardGammaBackward0",
)
operator(
    "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor",
    kernel=lambda xp, x, alpha, total: dirichlet_grad(x, alpha, total),
    meta=_like_first,
    vjp={"x": NOT_IMPLEMENTED, "alpha": NOT_IMPLEMENTED, "total": NOT_IMPLEMENTED},
    method=False,
)
sampling(
    f"_sample_dirichlet(Tensor self, {GENERATOR}) -> Tensor",
    dirichlet,
    _like_first,
    {"self": NOT_IMPLEMENTED},
    function=True,
    node="NotImplemented",
)


# ---- generators and their states
def _get_state(self: Generator) -> Tensor:
    """The state as a uint8 tensor."""
    return wrap(self.state_bytes(), dtypes.uint8)


def _set_state(self: Generator, new_state: Tensor) -> Generator:
    """Take over a state that `get_state` has given."""
    if not isinstance(new_state, Tensor):
        raise TypeError(f"expected a torch.ByteTensor, but got {type(new_state).__name__}")
    if new_state.device.type != "cpu":
        raise TypeError("RNG state must be a torch.ByteTensor")
    self.set_state_bytes(new_state._array)
    return self


extend(Generator, __name__, get_state=_get_state, set_state=_set_state)


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


@modes.outside_graphs("it sets the state of random numbers")
def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextmanager
def fork_rng(devices=None, enabled: bool = True, _caller="fork_rng", _devices_kw="devices", device_type=None):
    """Run a block after which the default generators are as they were before."""
    if not enabled or device_type == "meta":
        yield
        return
    before = generators.states()
    try:
        yield
    finally:
        generators.set_states(before)


def thread_safe_generator() -> Generator | None:
    """The generator of a data loader's own thread; None elsewhere, which stands for the default generator."""
    return None


for _name, _value in {
    "Generator": Generator, "default_generator": default_generator, "manual_seed": generators.manual_seed,
    "seed": generators.seed, "initial_seed": generators.initial_seed, "get_rng_state": get_rng_state,
    "set_rng_state": set_rng_state, "thread_safe_generator": thread_safe_generator,
}.items():  # fmt: skip
    export("torch", _name, _value)
    export("random", _name, _value)
export("random", "fork_rng", fork_rng)
