"""Kernels of eager operators, printed from the rules that compiled graphs are lowered by.

Out: `pullback/core/native_elements.h`, C text that the extension `core/_elements.c` is made of: for each element-wise operator
whose kernel can be read as an expression (`ops/lowering/elements`), a loop over contiguous elements, in single precision and,
where no function of the C library is called, in double. Operators that are one ufunc of the array library stay that ufunc,
unless it is one that the array library does not vectorise.

    python -m pullback.codegen.eager          writes the file
    python -m pullback.codegen.eager --check  says whether it is up to date

What always holds: a kernel whose flow depends on a number's value is not printed, and runs by the array library, as does
everything where the extension is not built. Attributes that are words or truth values make one kernel each.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core import dtype as dtypes
from ..core.dtype import dtype
from ..ops.elementwise.updates import UPDATES
from ..ops.family.pointwise import POINTWISE, pointwise_declaration
from ..ops.lowering.elements import ELEMENTS, Element, Unlowerable
from ..ops.lowering.expressions import Expr, forget, load, walk
from ..ops.lowering.loops import Buffer
from ..ops.system.operator import Operator, key_of, registry
from .lower import scalar_rule
from .printers.c_prelude import BITS, FUSED, POLYNOMIALS
from .printers.c_prelude import PAIRS as PAIR_FUNCTIONS
from .printers.c_scalars import BUILTIN, C_TYPES, INFIX, OURS, OURS_DOUBLE, PAIRS, UNVECTORISED, number, operation

TARGET = Path(__file__).parent.parent / "core" / "native_elements.h"
MASKS = ("mask", "condition")  # arrays that take no part in promotion, and are boolean
WORDS = {"approximate": ("none", "tanh"), "rounding_mode": (None, "trunc", "floor")}
NUMBERS = ("float", "Scalar", "int")
# Ufuncs of which the array library has no vector loops, or half as wide ones.
SLOW = UNVECTORISED | {"reciprocal", "copysign", "logical_and", "logical_or", "logical_xor", "logical_not"}
LETTERS = {dtypes.float32: "f", dtypes.float64: "d", dtypes.bool: "?"}
# What vectorises: not the functions that call the C library.
SIMPLE = frozenset(INFIX) | frozenset(BUILTIN) | (frozenset(PAIRS) - {"remainder", "floor_divide"}) | {
    "const", "load", "cast", "where", "negative", "isnan", "isinf", "isfinite", "logical_not", "invert"
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """One loop: arrays come first, then numbers, then results."""

    name: str  # `gelu.default:none`
    arrays: tuple[Buffer, ...]
    numbers: tuple[Buffer, ...]
    results: tuple[Expr, ...]

    @property
    def symbol(self) -> str:
        kind = LETTERS[self.results[0].dtype if self.results[0].dtype is not dtypes.bool else self.arrays[0].dtype]
        return re.sub(r"\W", "_", self.name) + f"_{kind}"

    @property
    def types(self) -> str:
        return "".join(LETTERS[b.dtype] for b in (*self.arrays, *self.numbers)) + "".join(
            LETTERS[e.dtype] for e in self.results
        )


def kernels() -> Iterator[Kernel]:
    """All kernels, in the order of their names."""
    for op in sorted(registry.values(), key=key_of):
        if op.family is POINTWISE and is_ours(op) and op.namespace == "aten" and op.inplace_of is None:
            for fixed in variants(op):
                yield from both(functools.partial(of_operator, op, fixed))
    for name in UPDATES:
        yield from both(functools.partial(of_update, name))


def is_ours(op: Operator) -> bool:
    """Whether there is something to print: a kernel, or a ufunc that the array library does not vectorise."""
    return op.kernel is not None or pointwise_declaration(op).ufunc in SLOW


def both(read: Callable[[dtype], Kernel | None]) -> Iterator[Kernel]:
    """A kernel in single precision, and in double where it is worth it; without the first there is none."""
    single = read(dtypes.float32)
    if single is None:
        return
    yield single
    double = read(dtypes.float64)
    if double is not None:
        yield double


def variants(op: Operator) -> Iterator[tuple]:
    """The values of attributes that are no numbers: each argument's value, `Ellipsis` where a number or array goes."""
    choices: list[tuple] = []
    for a, is_operand in zip(op.schema.arguments, POINTWISE._operand_mask(op), strict=True):
        if a.is_tensor or is_operand or a.base in NUMBERS:
            choices.append((..., None) if a.optional else (...,))
        elif a.base == "bool":
            choices.append((False, True))
        elif a.name in WORDS:
            choices.append(WORDS[a.name])
        else:
            return
    yield from itertools.product(*choices)


def words_of(op: Operator, fixed: tuple) -> list[str]:
    """What tells one variant from another: the values of arguments that have a choice, `*` for a number or array."""
    has_choice = [a.optional or not (a.is_tensor or a.base in NUMBERS) for a in op.schema.arguments]
    return ["*" if v is ... else str(v) for v, chosen in zip(fixed, has_choice, strict=True) if chosen]


def of_operator(op: Operator, fixed: tuple, d: dtype) -> Kernel | None:
    """The kernel of an operator, or None where it has no loop of this kind."""
    forget()
    arrays: list[Buffer] = []
    numbers: list[Buffer] = []
    values: list[Any] = []
    declared = pointwise_declaration(op)
    for a, is_operand, value in zip(op.schema.arguments, POINTWISE._operand_mask(op), fixed, strict=True):
        if value is not ...:
            values.append(value)
            continue
        if a.is_tensor and not is_operand and a.name not in MASKS:
            return None
        kind = d if is_operand or not a.is_tensor else dtypes.bool
        buffer = Buffer(a.name, kind, 1, "input")
        (arrays if a.is_tensor else numbers).append(buffer)
        values.append(Element(load(buffer, 0, (1,))))
    if not arrays:
        return None
    result = declared.result
    wanted = d if result is None else result(d) if callable(result) else result
    name = ":".join([key_of(op), *words_of(op, fixed)])
    try:
        output = scalar_rule(op)(*values)
    except (Unlowerable, TypeError, ValueError, AttributeError, RuntimeError):  # arguments that do not go together
        return None
    if not isinstance(output, Element) or output.expr.dtype is not wanted or wanted not in LETTERS:
        return None
    kernel = Kernel(name, tuple(arrays), tuple(numbers), (output.expr,))
    alone = declared.constant is not None or declared.ufunc in SLOW or _limits(kernel)
    return printable(kernel, 1 if alone else 2)


def _limits(kernel: Kernel) -> bool:
    """Whether it is the larger or smaller of an array and one number, which the array library does not vectorise."""
    return bool(kernel.numbers) and kernel.results[0].op in ("maximum", "minimum")


def of_update(name: str, d: dtype) -> Kernel | None:
    forget()
    rule, arrays, numbers = UPDATES[name]
    buffers = [Buffer(f"x{k}", d, 1, "input") for k in range(arrays + numbers)]
    results = rule(ELEMENTS, *[Element(load(b, 0, (1,))) for b in buffers])
    return printable(Kernel(name, tuple(buffers[:arrays]), tuple(buffers[arrays:]), tuple(e.expr for e in results)))


def printable(kernel: Kernel, least: int = 2) -> Kernel | None:
    """The kernel where it is more than one operation (or `least`) and everything in it vectorises."""
    single = kernel.arrays[0].dtype is dtypes.float32 or kernel.symbol.endswith("_f")
    found = {e for result in kernel.results for e in walk(result)}
    if any(e.op not in SIMPLE and e.op not in (OURS if single else OURS_DOUBLE) for e in found):
        return None
    if (
        any(e.dtype not in LETTERS for e in found)
        or sum(1 + (e.op in OURS) for e in found if e.op not in ("load", "const")) < least
    ):
        return None
    return kernel


def text_of(kernel: Kernel) -> str:
    """The C function."""
    names: dict[Expr, str] = {}
    loads: list[tuple[Expr, str]] = []
    for k, b in enumerate((*kernel.arrays, *kernel.numbers)):
        kind, element = C_TYPES[b.dtype], load(b, 0, (1,))
        is_array = k < len(kernel.arrays)
        pointer = f"const {kind} *x{k} = (const {kind} *)a[{k}];"
        loads.append((element, pointer if is_array else f"const {kind} x{k} = *(const {kind} *)a[{k}];"))
        names[element] = f"x{k}[i]" if is_array else f"x{k}"
    first = len(kernel.arrays) + len(kernel.numbers)
    body: list[str] = []
    named: dict[Expr, str] = {}

    def value(e: Expr) -> str:
        if e.op == "const":
            return number(e.args[0], e.dtype)
        if e not in named:
            text = names[e] if e.op == "load" else operation(e, [value(x) for x in e.args])
            named[e] = f"v{len(named)}"
            body.append(f"const {'i32' if e.dtype is dtypes.bool else C_TYPES[e.dtype]} {named[e]} = {text};")
        return named[e]

    stores = [f"y{k}[i] = {value(e)};" for k, e in enumerate(kernel.results)]
    inner = "\n".join(f"        {line}" for line in (*body, *stores))
    lines = [line for element, line in loads if element in named]
    lines += [f"{C_TYPES[e.dtype]} *y{k} = ({C_TYPES[e.dtype]} *)a[{first + k}];" for k, e in enumerate(kernel.results)]
    head = "\n".join(f"    {line}" for line in lines)
    return (
        f"static void V({kernel.symbol})(i64 n, char *const *a) {{\n{head}\n    SIMD\n"
        f"    for (i64 i = 0; i < n; i++) {{\n{inner}\n    }}\n}}\n"
    )


def text() -> str:
    """The whole file."""
    functions, rows = [], []
    for kernel in kernels():
        functions.append(text_of(kernel))
        rows.append(
            f'ROW({kernel.symbol}, "{kernel.name}", {len(kernel.arrays)}, {len(kernel.numbers)}, {len(kernel.results)}, "{kernel.types}")'
        )
    return (
        "/* Written by `python -m pullback.codegen.eager` from the rules of operators: do not edit. */\n"
        f"#if defined(HELPERS)\n{BITS}{POLYNOMIALS}{PAIR_FUNCTIONS}\n#elif defined(ROW)\n"
        + "\n".join(rows)
        + f"\n#else\n#undef f_exp2\n#define f_exp2 V(exp2)\n#undef f_erf\n#define f_erf V(erf)\n#undef d_erf\n#define d_erf V(erf_double){FUSED}\n"
        + "\n".join(functions)
        + "#endif\n"
    )


def main(arguments: list[str]) -> int:
    if "--check" in arguments:
        return 0 if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text() else 1
    TARGET.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
