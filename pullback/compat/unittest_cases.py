"""What tests of programs for PyTorch are written with (`torch.testing._internal.common_utils`, `torch._dynamo.test_case`): test
cases that compare tensors, tests with parameters, states that are put back.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import random
import sys
import tempfile
import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from .. import as_tensor, get_default_dtype, get_rng_state, manual_seed, set_default_dtype, set_rng_state
from ..core.dtype import dtype as Dtype
from ..core.tensor import Tensor
from ..surface.compiler import reset
from ..testing import assert_close

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform == "darwin"
IS_LINUX = sys.platform == "linux"
SEED = 1234
_NUMBERS = (int, float, complex, np.number)


class TestCase(unittest.TestCase):
    """A test case that starts from one seed, and whose `assertEqual` takes tensors and numbers as equal that differ by rounding."""

    maxDiff = None

    def setUp(self) -> None:
        super().setUp()
        set_rng_seed(SEED)

    def assertEqual(
        self, x: Any, y: Any, msg: Any = None, *, atol: float | None = None, rtol: float | None = None,
        equal_nan: bool = True, exact_dtype: bool = True, exact_device: bool = False, exact_layout: bool = False,
        exact_stride: bool = False,
    ) -> None:  # fmt: skip
        """Fail where two values differ: tensors, arrays and numbers by more than rounding, all else at all."""
        options = dict(
            rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=exact_device, check_dtype=exact_dtype,
            check_layout=exact_layout, check_stride=exact_stride,
        )  # fmt: skip
        self._compare(x, y, _words(msg), options)

    def _compare(self, x: Any, y: Any, msg: Callable[[str], str], options: dict) -> None:
        arrays = (Tensor, np.ndarray)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            super().assertEqual(set(x), set(y), msg("the keys differ"))
            for key in x:
                self._compare(x[key], y[key], msg, options)
        elif isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
            super().assertEqual(len(x), len(y), msg(f"{len(x)} members and {len(y)}"))
            for one, other in zip(x, y):
                self._compare(one, other, msg, options)
        elif isinstance(x, arrays) or isinstance(y, arrays):
            if not all(isinstance(v, (*arrays, *_NUMBERS, list, tuple)) for v in (x, y)):
                self.fail(msg(f"{x!r} and {y!r} cannot be compared"))
            both = isinstance(x, arrays) and isinstance(y, arrays)
            checks = (
                options if both else {**options, "check_dtype": False, "check_layout": False, "check_stride": False}
            )
            assert_close(as_tensor(x), as_tensor(y), msg=msg, **checks)
        elif (
            isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS) and not isinstance(x, bool) and not isinstance(y, bool)
        ):
            assert_close(x, y, msg=msg, **{**options, "check_dtype": False})
        else:
            super().assertEqual(x, y, msg(f"{x!r} != {y!r}"))

    def assertNotEqual(self, x: Any, y: Any, msg: Any = None, **options: Any) -> None:  # type: ignore[override]
        """Fail where `assertEqual` would pass."""
        with self.assertRaises(AssertionError, msg=msg):
            self.assertEqual(x, y, **options)


class CompiledTestCase(TestCase):
    """A test case each of whose tests begins, and leaves the process, without compiled graphs (`torch._dynamo.test_case`)."""

    def setUp(self) -> None:
        super().setUp()
        reset()

    def tearDown(self) -> None:
        reset()
        super().tearDown()


def _words(msg: Any) -> Callable[[str], str]:
    if callable(msg):
        return msg
    return lambda words: words if msg is None else f"{words}\n{msg}"


def run_tests(argv: list[str] | None = None) -> None:
    """Run the tests of the module that is the program."""
    unittest.main(argv=argv)


def run_compiled_tests(needs: str | tuple[str, ...] = ()) -> None:
    """As `run_tests`; without doing anything where a package that they need is not installed."""
    missing = [name for name in ((needs,) if isinstance(needs, str) else needs) if not _installed(name)]
    if missing:
        print(f"run_tests: skipped, because these are not installed: {', '.join(missing)}", file=sys.stderr)
        return
    run_tests()


def _installed(name: str) -> bool:
    if name == "cuda":
        from .. import cuda

        return cuda.is_available()
    return find_spec(name) is not None


class subtest:
    """One choice of `parametrize` with a name, and with decorators for the test that is made of it."""

    def __init__(self, arg_values: Any, name: str | None = None, decorators: Iterable[Callable] = ()) -> None:
        self.arg_values, self.name, self.decorators = arg_values, name, tuple(decorators)


def parametrize(arg_str: str, arg_values: Iterable, name_fn: Callable | None = None) -> Callable:
    """A test for each of these values of its arguments, which `instantiate_parametrized_tests` makes: `parametrize("a,b", [(1, 2)])`."""
    names = [name.strip() for name in arg_str.split(",") if name.strip()]
    if not names:
        raise ValueError("parametrize: arg_str names no argument")
    choices = [_choice(names, value, name_fn) for value in arg_values]

    def decorate(test: Callable) -> Callable:
        test.__dict__.setdefault("_parameters", []).append(choices)
        return test

    return decorate


def _choice(names: list[str], value: Any, name_fn: Callable | None) -> tuple[str, dict, tuple]:
    """(the end of the test's name, its arguments, its decorators) of one choice."""
    given = value if isinstance(value, subtest) else subtest(value)
    values = (given.arg_values,) if len(names) == 1 else tuple(given.arg_values)
    if len(values) != len(names):
        raise RuntimeError(f"Expected # values == # arg names, but got: {len(values)} values and {len(names)} names")
    if given.name is not None:
        name = given.name
    elif name_fn is not None:
        name = name_fn(*values)
    else:
        name = "_".join(f"{key}_{_in_words(v)}" for key, v in zip(names, values))
    return name, dict(zip(names, values)), given.decorators


def _in_words(value: Any) -> str:
    if isinstance(value, Dtype):
        return str(value).removeprefix("torch.")
    return str(getattr(value, "__name__", value)).replace(".", "_").replace(" ", "_")


def instantiate_parametrized_tests(generic_cls: type) -> type:
    """The class, with a test for each choice of its tests' parameters in the place of the tests that have some."""
    for name, test in list(vars(generic_cls).items()):
        parameters = getattr(test, "_parameters", None)
        if not parameters:
            continue
        delattr(generic_cls, name)
        for choices in itertools.product(*reversed(parameters)):
            made = _with_arguments(test, {key: value for _, given, _ in choices for key, value in given.items()})
            for decorator in itertools.chain.from_iterable(decorators for _, _, decorators in choices):
                made = decorator(made)
            made.__name__ = "_".join([name, *[words for words, _, _ in choices]])
            if hasattr(generic_cls, made.__name__):
                raise RuntimeError(f"instantiate_parametrized_tests: {made.__name__} would be made twice")
            setattr(generic_cls, made.__name__, made)
    return generic_cls


def _with_arguments(test: Callable, given: dict) -> Callable:
    @functools.wraps(test)
    def made(self: Any, *args: Any, **kwargs: Any) -> Any:
        return test(self, *args, **given, **kwargs)

    return made


def set_rng_seed(seed: int = SEED) -> None:
    """Start all streams of random numbers (ours, Python's, NumPy's) at a seed."""
    manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


@contextlib.contextmanager
def freeze_rng_state() -> Iterator[None]:
    """A block after which the stream of random numbers goes on as if it had not been."""
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)


@contextlib.contextmanager
def default_dtype(dtype: Dtype) -> Iterator[None]:
    """A block in which tensors of numbers have another dtype."""
    before = get_default_dtype()
    set_default_dtype(dtype)
    try:
        yield
    finally:
        set_default_dtype(before)


@contextlib.contextmanager
def TemporaryFileName(*args: Any, **kwargs: Any) -> Iterator[str]:
    """The name of a file that is there for the block."""
    with tempfile.NamedTemporaryFile(*args, **kwargs) as file:
        yield file.name


@contextlib.contextmanager
def TemporaryDirectoryName(suffix: str | None = None) -> Iterator[str]:
    """The name of a folder that is there for the block."""
    with tempfile.TemporaryDirectory(suffix=suffix) as folder:
        yield folder


def noncontiguous_like(t: Tensor) -> Tensor:
    """A tensor of the same values that is not contiguous, and wants gradients where the first does."""
    if not t.is_contiguous():  # type: ignore[attr-defined]
        return t
    spaced = t.detach().unsqueeze(-1).expand(*t.shape, 2).clone()  # type: ignore[attr-defined]
    spaced[..., 1] = float("nan") if t.dtype.is_floating_point or t.dtype.is_complex else 0
    return spaced[..., 0].detach().requires_grad_(t.requires_grad)  # type: ignore[attr-defined]
