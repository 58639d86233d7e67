"""Mutation testing of operator rules: break one rule at a time, run the rows of the operator table that own it.

    python -m tests.mutation                       200 mutants, drawn from all rules
    python -m tests.mutation --sample 0            every mutant
    python -m tests.mutation --kind vjp --only sin those of one kind, of operators whose name contains a word

Comes in: the registry. A mutant is one instruction of the code of a vjp, jvp, vmap, meta or lowering rule that is exchanged
(`+` and `-`, `*` and `/`, a comparison, a sign, a branch, a method by its sibling). Goes out: the mutants that no check
notices, by operator, and the share that was noticed. What always holds: a rule is put back before the next is broken; a mutant
that raises, or does not end, is noticed. `EQUIVALENT` names the places where a change cannot be seen, each with its reason.
"""

from __future__ import annotations

import argparse
import dis
import importlib
import linecache
import os
import random
import signal
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from pullback.ops.system.operator import Missing, Operator
from pullback.ops.system.record import plan_of
from tests.ops.references import REFERENCES
from tests.ops.test_table import TABLE, applies, test_operator, test_reference
from tests.ops.xfail import XFAIL

KINDS = ("vjp", "jvp", "vmap", "meta", "lower")
ROWS = {  # which checks of the table own a rule
    "vjp": ("gradient", "second_gradient", "forward", "batched_gradient"),
    "jvp": ("forward", "batched_gradient"),
    "vmap": ("vmap", "batched_gradient"),
    "meta": ("meta", "out", "inplace", "vmap"),
    "lower": (),
}
SHARING = 6  # of the operators that share a rule, this many are run
SECONDS = 60  # a mutant that takes longer is noticed
_SWAPPED = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*"}
_SIBLINGS = {
    "cos": "sin", "sin": "cos", "cosh": "sinh", "sinh": "cosh", "exp": "log", "log": "exp", "sum": "mean", "mean": "sum",
    "amax": "amin", "amin": "amax", "real": "imag", "unsqueeze": "squeeze", "floor": "ceil", "tanh": "sin", "neg": "abs",
    "sqrt": "abs", "square": "abs", "reciprocal": "abs", "sign": "abs", "sgn": "abs", "maximum": "minimum",
    "minimum": "maximum", "cumsum": "cumprod", "logical_not": "bool", "conj": "clone", "triu": "tril", "tril": "triu",
}  # fmt: skip
# (operator, kind, change, a part of the line it is in): why the change makes no difference to any result
EQUIVALENT: dict[tuple[str, str, str, str], str] = {
    ("repeat", "vmap", "< -> >=", "missing < 0"): "without the rule, examples are repeated one by one",
    ("repeat", "vmap", "- -> +", "missing = len(repeats)"): "without the rule, examples are repeated one by one",
    ("expand", "vmap", "< -> >=", "missing < 0 or any"): "without the rule, examples are expanded one by one",
    ("t", "vmap", "> -> <=", "t.ndim > 3"): "without the rule, examples are transposed one by one",
    ("tril", "vmap", "> -> <=", "args[0].ndim > 2"): "without the rule, examples are cut one by one",
    ("index_add", "vmap", "IS_OP inverted", "for i in tensors"): "without the rule, examples are added one by one",
    ("index_add", "vmap", "- -> +", "for i in tensors"): "without the rule, examples are added one by one",
    ("index_add", "vmap", "== -> !=", "for i in tensors"): "without the rule, examples are added one by one",
    ("index_select", "vmap", "!= -> ==", "index.ndim != 2"): "without the rule, examples are picked one by one",
    ("repeat", "vjp", "< -> >=", "i < lead or r != 1"): "sums over one copy change nothing",
    ("nll_loss_backward", "vmap", "unsqueeze -> squeeze", "expand((size"): "expand adds the dimension as well",
    ("_to_copy", "vjp", "<= -> >", "is_complex <= "): "the engine casts gradients to the dtype of their argument",
    ("renorm", "vjp", "+ -> -", "norm + _TINY"): "next to a norm it is nothing",
    ("_linalg_eigh", "vjp", "- -> +", "inner - diagonal_matrix"): "what is there is zero, or was refused",
    ("linalg_eig", "vjp", "- -> +", "inner - diagonal_matrix"): "what is there is zero, or was refused",
    ("linalg_eig", "vjp", "+ -> -", "gaps + diagonal_matrix"): "the diagonal is taken away in the next line",
    ("_linalg_det", "vjp", "!= -> ==", "pivot != 0"): "the product of the pivots is the determinant",
    ("_linalg_det", "vjp", "!= -> ==", "result != result"): "of matrices without elements alone",
    ("_linalg_det", "vjp", "* -> /", "_parity(pivots)"): "a parity is one or minus one",
    ("index_put", "vjp", "== -> !=", "math.prod(values_shape)"): "of tensors without data alone",
    ("index_put", "vjp", "sum -> mean", "masked_fill(~hit"): "of tensors without data alone",
    ("index_put", "lower", "IS_OP inverted", "d is out.dtype"): "numbers may pass through memory of their own",
    ("index_put", "lower", "IS_OP inverted", "target is out"): "numbers may pass through memory of their own",
    ("convolution", "lower", "IS_OP inverted", "found is out"): "numbers may pass through memory of their own",
    ("convolution", "lower", "!= -> ==", "out.strides"): "an operator that is not lowered runs as it is",
    ("convolution_backward", "lower", "!= -> ==", "gradient.strides"): "an operator that is not lowered runs as it is",
    ("native_layer_norm_backward", "vmap", "unsqueeze -> squeeze", "expand((size"): "expand adds the dimension as well",
    ("_linalg_det", "vjp", "+ -> -", "pivot * 0 + eps"): "a matrix next to the singular one, on its other side",
    ("_linalg_det", "vjp", "** -> *", "eps**0.5"): "where two formulas of one gradient take turns",
    ("_linalg_det", "vjp", "* -> /", "eps**0.5"): "where two formulas of one gradient take turns",
    ("_linalg_det", "vjp", "<= -> >", "eps**0.5"): "where two formulas of one gradient take turns",
    ("_linalg_det", "vjp", "amax -> amin", "eps**0.5"): "where two formulas of one gradient take turns",
    ("_linalg_det", "vjp", "amin -> amax", "eps**0.5"): "where two formulas of one gradient take turns",
    ("_linalg_eigh", "vjp", "+ -> -", "gaps + diagonal_matrix"): "the diagonal is taken away in the next line",
    ("roll", "lower", "- -> +", "out.narrow(dim, shift, n - shift)"): "the loop goes over the other window",
    ("mode", "lower", "- -> +", "values.narrow(dim, k, n - 1)"): "the loop goes over the other window",
    ("index_put", "vjp", "IS_OP inverted", "is_mask"): "of tensors without data alone",
    (
        "native_batch_norm",
        "vmap",
        "== -> !=",
        "first == 5 and not",
    ): "without the rule, examples are normalized one by one",
    ("max", "vjp", "< -> >=", "ambient.mode < modes.LISTENING"): "the shorter way and the longer one give the same",
}
# Tests outside the table that own a rule: of arguments at which the table cannot compare with differences.
OTHERS: dict[tuple[str, str], str | tuple[str, ...]] = {
    (
        "_linalg_det",
        "vjp",
    ): "linalg.test_linalg:test_the_gradient_of_a_determinant_at_a_singular_matrix_is_its_adjugate",
    ("xlogy.Tensor", "vjp"): "elementwise.test_special:test_slopes_of_products_with_the_logarithm_of_a_number",
    **{
        (key, "vjp"): f"test_corners:test_{name}"
        for key, name in (
            ("pow.Scalar", "powers_of_zero_are_flat_where_the_exponent_is_not_negative"),
            ("pow.Tensor_Tensor", "powers_of_zero_are_flat_where_the_exponent_is_not_negative"),
            ("nan_to_num", "no_gradient_passes_what_a_number_took_the_place_of"),
            ("copysign.Scalar", "no_gradient_passes_what_a_number_took_the_place_of"),
            ("logcumsumexp", "no_gradient_passes_what_a_number_took_the_place_of"),
            ("amax", "equals_share_the_gradient_of_an_extreme"),
            ("max", "equals_share_the_gradient_of_an_extreme"),
            ("unbind.int", "pieces_that_nobody_used_have_no_gradient"),
            ("_linalg_eigh", "eigenvalues_alone"),
            ("linalg_qr", "the_first_factor_alone_of_a_wide_matrix"),
        )
    },
    ("linalg_solve_triangular", "vmap"): "test_corners:test_a_triangle_for_all_examples_and_one_for_each",
    ("linalg_pinv.atol_rtol_tensor", "vmap"): "test_corners:test_each_matrix_has_its_own_tolerance",
    ("median", "lower"): "test_corners:test_medians_among_numbers_that_are_none?median,nanmedian",
    ("median.dim", "lower"): "test_corners:test_medians_among_numbers_that_are_none?median,nanmedian",
    ("mode", "lower"): "test_corners:test_the_mode_of_many",
    (
        "index_reduce",
        "lower",
    ): "test_corners:test_compiled_reductions_by_index_round_narrow_floats_as_operators_do?prod,amax",
    ("topk", "lower"): "test_corners:test_compiled_choices_among_equals_are_those_of_operators",
    ("max_pool2d_with_indices", "lower"): "test_corners:test_compiled_pools_with_a_border_and_gaps",
    ("convolution", "lower"): (
        "test_corners:test_compiled_transposed_convolutions_add_their_bias_once",
        "test_corners:test_compiled_convolutions_add_their_bias_without_the_library",
        "test_corners:test_compiled_convolutions_lie_as_those_of_operators_do",
    ),
    ("addmm", "lower"): "test_corners:test_compiled_products_keep_their_factors",
    ("linalg_vector_norm", "lower"): "test_corners:test_compiled_norms_overflow_no_sooner_than_their_result",
    ("native_batch_norm", "vmap"): "test_corners:test_statistics_that_examples_share_move_once",
    ("linalg_eig", "vjp"): "test_corners:test_eigenvalues_alone_of_a_matrix_that_is_not_symmetric",
    ("_safe_softmax", "lower"): "test_corners:test_rows_of_nothing_are_zero",
    ("special_xlog1py", "vjp"): "elementwise.test_special:test_slopes_of_products_with_the_logarithm_of_a_number",
}


@dataclass
class Mutant:
    """One rule with one instruction exchanged."""

    keys: list[str]  # the operators that have the rule
    kind: str
    functions: list[types.FunctionType]  # that have the code: closures of one definition
    code: types.CodeType
    change: str
    line: int

    def source(self) -> str:
        return linecache.getline(self.functions[0].__code__.co_filename, self.line).strip()

    def __str__(self) -> str:
        where = f"{self.functions[0].__code__.co_filename.rpartition('pullback/')[2]}:{self.line}"
        return f"{self.keys[0]:32} {self.kind:6} {where}: {self.change} in {self.source()}"


# ---- mutants of one code object
def mutants_of(code: types.CodeType) -> Iterator[tuple[types.CodeType, str, int]]:
    """The code with one instruction exchanged, the exchange in words, and its line; code inside it included."""
    for step in dis.get_instructions(code):
        raw = bytearray(code.co_code)
        exchanged = _exchange(step, raw)
        if exchanged is not None:
            yield code.replace(co_code=bytes(raw)), exchanged, step.positions.lineno
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_GLOBAL") and step.argval in _SIBLINGS:
            names = tuple(_SIBLINGS[n] if n == step.argval else n for n in code.co_names)
            yield code.replace(co_names=names), f"{step.argval} -> {_SIBLINGS[step.argval]}", step.positions.lineno
    for i, inner in enumerate(code.co_consts):
        if isinstance(inner, types.CodeType):
            for mutated, change, line in mutants_of(inner):
                constants = (*code.co_consts[:i], mutated, *code.co_consts[i + 1 :])
                yield code.replace(co_consts=constants), change, line


def _exchange(step: dis.Instruction, raw: bytearray) -> str | None:
    """Exchange one instruction in place; what was done, or None where there is nothing to exchange."""
    at = step.offset
    if step.opname == "BINARY_OP":
        symbol = step.argrepr.rstrip("=")
        other = _SWAPPED.get(symbol)
        if other is None:
            return None
        raw[at + 1] = next(i for i, (_, s) in enumerate(dis._nb_ops) if s == other)  # type: ignore[attr-defined]
        return f"{symbol} -> {other}"
    if step.opname == "UNARY_NEGATIVE":
        raw[at] = dis.opmap["NOP"]
        return "-x -> x"
    if step.opname == "COMPARE_OP":
        others = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
        if step.argval not in others:
            return None
        raw[at + 1] = raw[at + 1] ^ dis.cmp_op.index(step.argval) ^ dis.cmp_op.index(others[step.argval])
        return f"{step.argval} -> {others[step.argval]}"
    if step.opname in ("IS_OP", "CONTAINS_OP"):
        raw[at + 1] ^= 1
        return f"{step.opname} inverted"
    return None


# ---- rules
def rules_of(op: Operator) -> Iterator[tuple[str, types.FunctionType]]:
    """(kind, function) of an operator's rules."""
    if op.differentiable and op.body is None:
        for rule in plan_of(op).rules:
            if isinstance(rule.function, types.FunctionType) and not isinstance(rule.function, Missing):
                yield "vjp", rule.function
    jvps = op.jvp.values() if isinstance(op.jvp, dict) else (op.jvp,)
    yield from (("jvp", f) for f in jvps if isinstance(f, types.FunctionType))
    for kind, found in (("vmap", op.vmap), ("meta", op.meta_rule), ("lower", op.lower)):
        if isinstance(found, types.FunctionType):
            yield kind, found


def all_mutants(kinds: tuple[str, ...], only: str) -> list[Mutant]:
    """Every mutant of the operators of the table; a rule that several share is broken for all."""
    owners: dict[tuple[str, types.CodeType], list[str]] = {}
    functions: dict[tuple[str, types.CodeType], list[types.FunctionType]] = {}
    for key, op in TABLE.items():
        for kind, function in rules_of(op) if only in key else ():
            if kind in kinds:
                owners.setdefault((kind, function.__code__), []).append(key)
                functions.setdefault((kind, function.__code__), []).append(function)
    return [
        m
        for (kind, own), keys in owners.items()
        for code, change, line in mutants_of(own)
        if not _excused(m := Mutant(keys, kind, functions[kind, own], code, change, line))
    ]


def _excused(m: Mutant) -> bool:
    return any(
        key in m.keys and (kind, change) == (m.kind, m.change) and part in m.source()
        for key, kind, change, part in EQUIVALENT
    )


# ---- running
def noticed(m: Mutant) -> bool:
    """Whether some row of the table that owns the rule fails while it is broken; in a process of its own, since broken
    loops may write anywhere."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        _silence()
        signal.alarm(SECONDS)  # ends the process
        for function in m.functions:
            function.__code__ = m.code
        try:
            for key in dict.fromkeys(m.keys[:SHARING]):
                run_rows(key, m.kind)
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] != 0


def _silence() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")


def run_rows(key: str, kind: str) -> None:
    if kind == "lower":
        run_compiled(key)
    for check in ROWS[kind]:
        if applies(TABLE[key], check) and (key, check) not in XFAIL:
            test_operator(key, check)
    if kind == "meta" and key in REFERENCES:
        test_reference(key)
    others = OTHERS.get((key, kind), ())
    for other in (others,) if isinstance(others, str) else others:
        module, _, test = other.partition(":")
        name, _, cases = test.partition("?")
        for case in cases.split(",") if cases else [None]:
            getattr(importlib.import_module(f"tests.ops.{module}"), name)(*[case] * (case is not None))


def run_compiled(key: str) -> None:
    """The compiled row of one operator, in double precision."""
    from _pytest.monkeypatch import MonkeyPatch

    from pullback import float64
    from pullback.capture.front.config import native
    from tests.ops import test_compiled as row

    with MonkeyPatch.context() as patch:
        patch.setattr(native, "raise_rule_errors", True)
        graph, tensors, some = row.traced(list(row.calls([key], float64)))
        result = row.compiled(graph, patch)
        got = result(*tensors)
    own = [n for n in graph.graph.nodes if n.target is TABLE[key]]
    assert not own or key in row.NEVER or any(n.name not in result.reasons for n in own), f"{key} is never native"
    for call, outs in zip(some, got, strict=True):
        for g, w in zip(outs, call.expected, strict=True):
            assert not row.difference(g, w), str(call)


def main() -> int:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--sample", type=int, default=200, help="how many mutants, 0 for all")
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--kind", choices=KINDS, action="append")
    ap.add_argument("--only", default="")
    args = ap.parse_args()
    mutants = all_mutants(tuple(args.kind or KINDS), args.only)
    chosen = mutants if not args.sample else random.Random(args.seed).sample(mutants, min(args.sample, len(mutants)))
    survivors = []
    for m in chosen:
        if not noticed(m):
            survivors.append(m)
            print("survived", m, flush=True)
    share = 100 * (1 - len(survivors) / max(len(chosen), 1))
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} mutants noticed ({share:.1f}%), of {len(mutants)} in all")
    return share < 98


if __name__ == "__main__":
    sys.exit(main())
