"""How far results of element-wise functions are from the exact ones, eager and in generated code: the table of `docs/numerics.md`.

`python tests/docs/test_ulps.py` writes the table. The test measures again and fails where a function is further off than its row says.
float64 is held to NumPy's extended precision, where the machine has it, other dtypes to its float64. Every function that expressions of
generated code may call (`ops/lowering/elements.py`) is in a row.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import pullback as torch
import pullback.nn.functional as F
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, compile_graph
from pullback.ops.lowering.elements import _FLOAT_FUNCTIONS
from pullback.runtime.build import NoCompiler, compiler

PAGE = Path(__file__).parents[2] / "docs" / "numerics.md"
BEGIN, END = "<!-- ulps: written by tests/docs/test_ulps.py -->", "<!-- end of ulps -->"
COUNT = 20_000


def _erf(x):
    """By its series near zero, and by the continued fraction of its complement further out."""
    near = np.abs(x) < 2
    z = np.where(near, x, 0)
    term, total = z, z
    for n in range(1, 60):
        term = -term * z * z / n
        total = total + term / (2 * n + 1)
    w = np.where(near, 3, np.abs(x))
    fraction = np.zeros_like(w)
    for n in range(120, 0, -1):
        fraction = (n / x.dtype.type(2)) / (w + fraction)
    root = np.sqrt(x.dtype.type(np.pi) if x.dtype == np.float64 else np.arctan(x.dtype.type(1)) * 4)
    far = np.copysign(1 - np.exp(-w * w) / (root * (w + fraction)), x)
    return np.where(near, 2 / root * total, far)


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _erfc(x):
    """Where nothing is lost by taking the error function from 1."""
    return 1 - _erf(x)


# function: (ours, exact, lowest and highest argument, for each argument)
FUNCTIONS: dict[str, tuple[Callable, Callable, tuple[float, float], *tuple[tuple[float, float], ...]]] = {
    "exp": (torch.exp, np.exp, (-80, 80)),
    "expm1": (torch.expm1, np.expm1, (-20, 20)),
    "log": (torch.log, np.log, (1e-6, 1e6)),
    "log1p": (torch.log1p, np.log1p, (-0.999, 1e4)),
    "exp2": (torch.exp2, np.exp2, (-100, 100)),
    "log2": (torch.log2, np.log2, (1e-6, 1e6)),
    "log10": (torch.log10, np.log10, (1e-6, 1e6)),
    "sinh": (torch.sinh, np.sinh, (-80, 80)),
    "cosh": (torch.cosh, np.cosh, (-80, 80)),
    "asinh": (torch.asinh, np.arcsinh, (-1e4, 1e4)),
    "acosh": (torch.acosh, np.arccosh, (1, 1e4)),
    "atanh": (torch.atanh, np.arctanh, (-0.9999, 0.9999)),
    "asin": (torch.asin, np.arcsin, (-1, 1)),
    "acos": (torch.acos, np.arccos, (-1, 1)),
    "atan": (torch.atan, np.arctan, (-100, 100)),
    "atan2": (torch.atan2, np.arctan2, (-10, 10), (-10, 10)),
    "sin": (torch.sin, np.sin, (-30, 30)),
    "cos": (torch.cos, np.cos, (-30, 30)),
    "tan": (torch.tan, np.tan, (-1.5, 1.5)),
    "tanh": (torch.tanh, np.tanh, (-10, 10)),
    "sqrt": (torch.sqrt, np.sqrt, (0, 1e6)),
    "rsqrt": (torch.rsqrt, lambda x: 1 / np.sqrt(x), (1e-6, 1e6)),
    "hypot": (torch.hypot, np.hypot, (-100, 100), (-100, 100)),
    "pow": (torch.pow, np.power, (0.1, 20), (-5, 5)),
    "erf": (torch.erf, _erf, (-4, 4)),
    "erfc": (torch.erfc, _erfc, (-4, 0.5)),
    "sigmoid": (torch.sigmoid, lambda x: 1 / (1 + np.exp(-x)), (-30, 30)),
    "silu": (F.silu, lambda x: x / (1 + np.exp(-x)), (-30, 30)),
    "softplus": (F.softplus, _softplus, (-15, 15)),
    "logsigmoid": (F.logsigmoid, lambda x: -_softplus(-x), (-15, 15)),
}
WAYS = {"eager": ("float32", "float64"), "generated code": ("float32", "float64", "float16", "bfloat16")}
COLUMNS = [(way, d) for way, dtypes in WAYS.items() for d in dtypes]
EXACT = {"true_divide", "reciprocal", "copysign"}  # of expressions: rounded once


def oracle(d: str) -> type:
    return np.longdouble if d == "float64" else np.float64


def arguments(name: str, d: str) -> list[torch.Tensor]:
    rng = np.random.default_rng(0)
    return [torch.from_numpy(rng.uniform(*span, COUNT)).to(getattr(torch, d)) for span in FUNCTIONS[name][2:]]


def numbers(t: torch.Tensor, d: str) -> np.ndarray:
    """A tensor as the oracle's numbers, which hold it exactly."""
    return (t if d == "float64" else t.double()).numpy().astype(oracle(d))


def units(expected: np.ndarray, d: str) -> np.ndarray:
    """The unit in the last place of each number."""
    if d == "bfloat16":  # the exponents of float32, and 16 bits of significand less
        return np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64) * 2**16
    return np.spacing(np.abs(expected).astype(d)).astype(oracle(d))


@functools.cache
def generated(d: str) -> tuple[Native, dict[str, torch.Tensor]]:
    """All functions as one program, and what it gives."""
    given = [arguments(name, d) for name in FUNCTIONS]

    def program(*flat):
        rest = iter(flat)
        return tuple([ours(*[next(rest) for _ in args]) for (ours, *_), args in zip(FUNCTIONS.values(), given)])

    flat = [a for args in given for a in args]
    made = compile_graph(make_fx(program, tracing_mode="fake")(*flat))
    return made, dict(zip(FUNCTIONS, made(*flat), strict=True))


@functools.cache
def measure(name: str, way: str, d: str) -> float:
    """The largest distance from the exact result, in units in the last place of it; where that can be told from infinity and zero."""
    ours, exact, *_ = FUNCTIONS[name]
    args = arguments(name, d)
    found = numbers(ours(*args) if way == "eager" else generated(d)[1][name], d)
    expected = exact(*[numbers(a, d) for a in args])
    info = torch.finfo(getattr(torch, d))
    told = (np.abs(expected) <= info.max) & ((np.abs(expected) >= info.tiny) | (expected == 0))
    return float((np.abs(found - expected)[told] / units(expected, d)[told]).max())


def table() -> str:
    rows = [
        f"| {name} | {' | '.join(f'{np.ceil(2 * measure(name, *c)) / 2:.1f}' for c in COLUMNS)} |" for name in FUNCTIONS
    ]
    head = [f"{way}: {d}" if d == WAYS[way][0] else d for way, d in COLUMNS]
    return "\n".join([f"| function | {' | '.join(head)} |", "| - " * (len(COLUMNS) + 1) + "|", *rows])


def _bounds() -> dict[str, list[float]]:
    text = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")
    ][2:]
    return {name: [float(v) for v in values] for name, *values in rows}


def can_compile() -> bool:
    try:
        return bool(compiler())
    except NoCompiler:
        return False


@pytest.mark.parametrize(("way", "d"), COLUMNS)
def test_results_are_as_near_as_the_page_says(way: str, d: str) -> None:
    if d == "float64" and np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps:
        pytest.skip("no wider type to compare with")
    if way != "eager" and not can_compile():
        pytest.skip("no C compiler")
    bounds = {name: row[COLUMNS.index((way, d))] for name, row in _bounds().items()}
    found = {name: measure(name, way, d) for name in FUNCTIONS}
    # another processor may take another loop of the array library
    assert {name: value for name, value in found.items() if value > bounds[name] + 0.5} == {}


def test_every_function_has_a_row() -> None:
    assert list(_bounds()) == list(FUNCTIONS)


@pytest.mark.skipif(not can_compile(), reason="no C compiler")
@pytest.mark.parametrize("d", WAYS["generated code"])
def test_every_function_that_is_printed_is_in_a_row(d: str) -> None:
    made, _ = generated(d)
    assert made.native, made.reasons
    called = set(re.findall(r"(\w+)\(", "\n".join(made.kernels)))
    assert (set(_FLOAT_FUNCTIONS) | {"power"}) - EXACT - {"expit"} <= called


if __name__ == "__main__":
    before, after = PAGE.read_text(encoding="utf-8").split(BEGIN)[0], PAGE.read_text(encoding="utf-8").split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")
    sys.exit(0)
