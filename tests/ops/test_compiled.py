"""The operator table's row for native code: what is compiled is what operators give, and it is native.

Every operator that claims loops (it declares `lower=`, its kernel is element-wise, or it is a view) runs on its samples in every
dtype it takes. Many calls are one graph and so one library: the C compiler runs once for a share of the table in one dtype.
Always holds: a call is native, or its rule gave the reason why it is not; an operator that declares a rule is native somewhere.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

import pullback as torch
from pullback.capture.fake.mode import DynamicOutputShapeException
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import Native, segment
from pullback.ops.family.pointwise import POINTWISE
from pullback.ops.family.view import VIEW
from pullback.ops.system.dispatch import dispatch
from pullback.ops.system.operator import Operator
from pullback.runtime.build import NoCompiler, compiler
from tests.ops.checks import rebuild, results, tensors_in, to_numpy
from tests.ops.samples import samples_of
from tests.ops.test_table import TABLE, describe

try:
    compiler()
except NoCompiler:
    pytest.skip("no C compiler", allow_module_level=True)

SHARES = 4  # of the table: one library each
# How far from the operators' result, relative to its largest element: sums in another order, functions of our own.
TOLERANCE = {
    torch.float64: 1e-11, torch.complex128: 1e-11, torch.float32: 2e-5, torch.complex64: 2e-5, torch.float16: 2e-3,
    torch.bfloat16: 2e-2,
}  # fmt: skip
COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64}
WHOLE = (torch.float64, torch.float32)  # dtypes in which all samples run; in others, the first of each operator
EXACT = (torch.float32, torch.bfloat16)  # dtypes in which bits are looked at
DTYPES = (*WHOLE, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.bool)
CLAIMING = {
    k: op
    for k, op in TABLE.items()
    if op.body is None and (op.lower is not None or op.family in (POINTWISE, VIEW)) and not op.schema.is_mutable
}
# Views that are computed where only the graph itself sees them: a copy of them is what comes out here.
INSIDE = ("_conj", "_neg_view", "view_as_real", "view_as_complex")
# Operators that declare a rule, of which no sample is native; and why.
NEVER: dict[str, str] = {}


class Call(NamedTuple):
    """One call of an operator, and what it gives."""

    key: str
    op: Operator
    args: tuple
    expected: list

    def __str__(self) -> str:
        return f"{self.key}({describe(self.args)})"


def cast(t, d):
    """A sample's tensor in another dtype: floats become `d`, what is no number of its kind stays; None: there is no such."""
    if t.dtype is torch.float64:
        return t.to(d)
    return t.to(COMPLEX[d]) if t.dtype.is_complex and d in COMPLEX else None if t.dtype.is_complex else t


def given_out(key: str, result) -> list:
    return [t.clone() for t in results(result)] if key in INSIDE else results(result)


def calls(keys: list[str], d) -> Iterator[Call]:
    """The calls of some operators in one dtype that operators do not refuse."""
    for key in keys:
        op = TABLE[key]
        for number, (args, _) in enumerate(samples_of(op)):
            tensors = [cast(t, d) for t in tensors_in(args)]
            if any(t is None for t in tensors) or d not in WHOLE and number:
                continue
            given = rebuild(args, tensors)
            try:
                expected = given_out(key, dispatch(op, given))
            except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError):
                continue
            yield Call(key, op, given, expected)


def traced(some: list[Call]):
    """One graph of all calls, which gives the results of each; and the calls that it has."""
    inside: list[Call] = []

    def run(*tensors):
        given, result = iter(tensors), []
        inside.clear()
        for call in some:
            args = rebuild(call.args, given)
            try:
                result.append(tuple(given_out(call.key, dispatch(call.op, args))))
                inside.append(call)
            except DynamicOutputShapeException:  # a mask as an index: no graph has it
                continue
        return tuple(result)

    tensors = [t for call in some for t in tensors_in(call.args)]
    return make_fx(run, tracing_mode="fake")(*tensors), tensors, inside


def compiled(graph, monkeypatch) -> Native:
    """The graph as native code, which does not run its operators where a call does not fit: that is an error."""
    result = Native(graph)
    ours = [s.nodes for s in result.segments]
    run_nodes = segment.run_nodes

    def checked(nodes, values):
        assert not any(nodes is s for s in ours), "a native call did not fit its arguments"
        run_nodes(nodes, values)

    monkeypatch.setattr(segment, "run_nodes", checked)
    monkeypatch.setattr(result, "general", lambda *args: pytest.fail("a native call did not fit its arguments"))
    result.build()
    return result


def difference(got, want) -> str | None:
    """What is different in a result, in words."""
    if got.dtype is not want.dtype or tuple(got.shape) != tuple(want.shape):
        return f"{got.dtype}{tuple(got.shape)}, expected {want.dtype}{tuple(want.shape)}"
    pairs = zip(got.stride(), want.stride(), want.shape, strict=True)
    if want.numel() > 1 and any(a != b for a, b, n in pairs if n != 1):
        return f"strides {got.stride()}, expected {want.stride()}"
    a, b = to_numpy(got), to_numpy(want)
    finite = b[np.isfinite(b)] if b.dtype.kind in "fc" else b
    scale = float(np.abs(finite).max()) if finite.size and b.dtype.kind in "fc" else 0.0
    close = np.isclose(a, b, rtol=0, atol=TOLERANCE.get(want.dtype, 0) * max(scale, 1e-3), equal_nan=True)
    return None if close.all() else f"\n  {a[~close][:4]}, expected\n  {b[~close][:4]}"


def refused(graph, result: Native) -> dict[Operator, set[str]]:
    """The reasons of the operators that have none."""
    found: dict[Operator, set[str]] = defaultdict(set)
    for node in graph.graph.nodes:
        if node.name in result.reasons and isinstance(node.target, Operator):
            found[node.target].add(result.reasons[node.name])
    return found


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("d", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
def test_compiled_is_eager_and_native(d, share: int, monkeypatch) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        graph, tensors, some = traced(list(calls(sorted(CLAIMING)[share::SHARES], d)))
        result = compiled(graph, monkeypatch)
        got = result(*tensors)
    wrong = []
    for call, outs in zip(some, got, strict=True):
        for number, (g, w) in enumerate(zip(outs, call.expected, strict=True)):
            different = difference(g, w)
            if different:
                wrong.append(f"{call}, result {number}: {different}")
    assert not wrong, f"{len(wrong)} results differ:\n" + "\n".join(wrong[:20])
    for op, reasons in refused(graph, result).items():
        assert "no rule" not in reasons, f"{op} claims loops and has no rule"
    if d is torch.float64:
        whole = {str(n.target) for n in graph.graph.nodes if n.name not in result.reasons}
        never = [c.key for c in some if c.op.lower is not None and str(c.op) not in whole and c.key not in NEVER]
        assert not never, f"operators whose rule never applies: {sorted(set(never))}"


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("d", EXACT, ids=lambda d: str(d).removeprefix("torch."))
def test_bits_are_eager_ones_with_deterministic_algorithms(d, share: int, monkeypatch) -> None:
    torch.use_deterministic_algorithms(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph, tensors, some = traced(list(calls(sorted(CLAIMING)[share::SHARES], d)))
            result = compiled(graph, monkeypatch)
            got = result(*tensors)
    finally:
        torch.use_deterministic_algorithms(False)
    wrong = [str(c) for c, outs in zip(some, got, strict=True) if not all(map(same_bits, outs, c.expected))]
    assert not wrong, f"{len(wrong)} calls give other bits:\n" + "\n".join(wrong[:20])
    assert sum(len(s.nodes) for s in result.segments) > len(some) / 3  # many have loops nevertheless


def same_bits(got, want) -> bool:
    """Whether two results are the same, signs of zeros too; one NaN is as good as another."""
    a, b = to_numpy(got), to_numpy(want)
    signs = np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else True
    return bool((((a == b) & signs) | ((a != a) & (b != b))).all())


def test_every_exception_is_of_an_operator_with_a_rule() -> None:
    assert not [k for k in NEVER if k not in CLAIMING or CLAIMING[k].lower is None]
