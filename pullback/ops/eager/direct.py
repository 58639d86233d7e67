"""The last plain case, which every operator has by itself: plain tensors go to the operator's family, past the dispatcher.

Where nothing listens, every tensor is plain and every other value has the type that the schema names already, a call needs no overrides,
no conversion and no layers: it is the body of a composite operator, or the kernel of another and its record. `lines_of(call)` is that case
as source, nothing for operators whose calls always take more (in-place forms, arguments of types that are not listed here);
`names_of(op)` is what the source names. Names that end in an underscore are its own: no parameter has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.dtype import by_numpy, dtype
from ...core.objects import make_tensor
from ...core.tensor import PLAIN
from .text import Call, all_of, block
from .views import is_unheard, may_have_history

if TYPE_CHECKING:
    from ..system.operator import Operator
    from ..system.schema import Argument

__all__ = ["is_written", "lines_of", "names_of"]

NUMBERS = frozenset((int, float, bool, complex))
MARK = "# past the dispatcher"  # the first line of the case
# The condition that a value is of its type as it is.
_EXACT = {
    "int": "{v}.__class__ is int", "SymInt": "{v}.__class__ is int", "float": "({v}.__class__ is float or {v}.__class__ is int)",
    "bool": "{v}.__class__ is bool", "Scalar": "{v}.__class__ in NUMBERS", "str": "{v}.__class__ is str", "ScalarType": "{v}.__class__ is DTYPE",
}  # fmt: skip
_LISTS = {"int": "int", "SymInt": "int", "bool": "bool", "float": "float"}


# ---- conditions
def _tensor_condition(v: str, a: Argument, strict: bool) -> str:
    if a.is_list:
        return f"all_plain({v})"
    plain = f"{v}.__class__ in PLAIN and not {v}._keys"
    if a.optional:
        return f"({v} is None or {plain})"
    return plain if strict else f"({plain} or {v}.__class__ in NUMBERS)"


def _value_condition(v: str, a: Argument) -> str | None:
    """None where values of the type are left to the general path."""
    may_lack = a.optional or a.has_default and a.default is None
    if a.is_list:
        kind = _LISTS.get(a.base)
        fits = None if kind is None else f"(c_{v} := as_tuple({v}, {kind}, {a.list_size})) is not None"
    else:
        fits = _EXACT.get(a.base)
        fits = None if fits is None else fits.format(v=v)
    if not may_lack:
        return fits
    if fits is None:
        return f"{v} is None"
    return f"(((c_{v} := None) is {v}) or {fits})" if a.is_list else f"({v} is None or {fits})"


def _conditions(call: Call) -> list[str] | None:
    op = call.op
    strict = op.declared.strict or op.body is None and not op.family.takes_numbers
    tensors, values = [], []
    for v, a in call.arguments:
        if a.base == "Tensor":
            tensors.append(_tensor_condition(v, a, strict))
        elif a.is_tensor:
            return None  # lists with gaps
        elif (condition := _value_condition(v, a)) is None:
            return None
        else:
            values.append((a.is_list, condition))
    return [*tensors, *call.no_out, *[condition for _, condition in sorted(values, key=lambda pair: pair[0])]]


def _history(call: Call, views_apart: bool = False, written: int = 0) -> str:
    """The condition that a gradient may be wanted; with `views_apart`, views of tensors without history are looked through. Of the first
    arguments, those that are `written`, the base must be without history too: it would hear of the write."""
    found = []
    for i, (v, a) in enumerate(call.arguments):
        if a.is_tensor:
            alone = f"{v}.__class__ in PLAIN and {v}._autograd is not None"
            if views_apart:
                alone += f" and may_have_history({v})" if i >= written else f" and not is_unheard({v})"
            found.append(f"any_history({v})" if a.is_list else alone)
    return " or ".join(found)


# ---- the case
def lines_of(call: Call) -> list[str]:
    """See the module's docstring."""
    op = call.op
    if call.inplace:
        return _inplace_lines(call)
    if op.body is None and (op.family.direct is None or op.kernel is op.vjp is None):
        return []
    conditions = _conditions(call)
    if conditions is None:
        return []
    given = [f"c_{v}" if a.is_list and a.base in _LISTS else v for v, a in call.arguments]
    values = ", ".join(given)
    history = _history(call, views_apart=op.is_view)
    if op.body is not None:
        run = [*_native_body_lines(op, _history(call, views_apart=True), values), f"return direct_body({values})"]
        return [MARK, *block(f"if {all_of('ambient.mode < 2', *conditions)}:", *run)]
    recorded = (
        block(f"if ambient_ and ({history}):", f"return op.record(out_, {values})")
        if op.differentiable and history
        else []
    )
    if op.is_view:
        recorded = [line.replace("return ", "") for line in recorded]
    run = block("if ambient_ < 2:", *_run(call, given), *recorded, "return out_")
    return [MARK, *block(f"if {all_of(*conditions) or 'True'}:", "ambient_ = ambient.mode", *run)]


def _native_body_lines(op: Operator, history: str, values: str) -> list[str]:
    """A function in C stands for the body of a composite operator where nothing is recorded."""
    if op.native is None:
        return []
    packed = "return out_ if out_.__class__ is not tuple else pack_results(op, out_)"
    asked = [f"out_ = native(({values},))", *block("if out_ is not None:", packed)]
    return block(f"if not ambient.mode or not ({history or False}):", *asked)


def _inplace_lines(call: Call) -> list[str]:
    """A function in C, or the family, writes plain tensors without history, where there is one that takes the call."""
    form, conditions = call.op.inplace, _conditions(call)
    if form is None or conditions is None or form.native is call.op.native is None and not is_written(call.op):
        return []
    recorded = f"ambient.mode == 0 or ambient.mode == 1 and not ({_history(call, views_apart=True, written=1)})"
    values = ", ".join([f"c_{v}" if a.is_list and a.base in _LISTS else v for v, a in call.arguments])
    native = [f"out_ = native(({values},))", *block("if out_ is not None:", "return out_")]
    own = block(f"if write_plain(record, ({values},)):", f"return {call.arguments[0][0]}")
    by_copy = block(f"if copy_plain(functional_native, ({values},)):", f"return {call.arguments[0][0]}")
    run = [
        *(native if form.native is not None else []),
        *(own if is_written(call.op) else by_copy if call.op.native is not None and form.native is None else []),
    ]
    return [MARK, *block(f"if {all_of(*conditions, f'({recorded})')}:", *run)]


def is_written(op: Operator) -> bool:
    """Whether the family itself puts results of plain calls into their first argument."""
    declared = op.declared
    return op.family.write_plain is not None and op.body is None and declared.expanded is None and not declared.scatters


def _run(call: Call, given: list[str]) -> list[str]:
    """The result `out_`: by a function in C where there is one that takes it, by the kernel itself where the family adds nothing to
    it, else by the family."""
    lines = _run_kernel(call, given)
    if call.op.is_view:
        lines = [*lines, f"mark_views(op, out_, ({', '.join(given)},))"]
    if call.op.native is None:
        return lines
    several = block("elif out_.__class__ is tuple:", "out_ = pack_results(op, out_)")
    return [f"out_ = native(({', '.join(given)},))", *block("if out_ is None:", *lines), *several]


def _run_kernel(call: Call, given: list[str]) -> list[str]:
    op = call.op
    alone = op.family.direct == "kernel" and op.declared.strides is None
    if not alone or any(a.is_tensor and a.is_list for _, a in call.arguments):
        return [f"out_ = execute(op, ({', '.join(given)},))"]
    checks = [f"direct_check({', '.join(given)})"] if op.declared.check is not None else []
    arrays = [_array(v, a) if a.is_tensor else g for g, (v, a) in zip(given, call.arguments, strict=True)]
    run = f"direct_kernel(np, {', '.join(arrays)})"
    if len(op.schema.returns) == 1 and not op.schema.returns[0][0].endswith("[]"):
        return [*checks, f"out_ = as_tensor({run})"]
    return [*checks, f"out_ = wrap_outputs(op, {run}, cpu)"]


def _array(v: str, a: Argument) -> str:
    return f"({v} if {v} is None else {v}._array)" if a.optional else f"{v}._array"


def names_of(op: Operator) -> dict:
    """What those lines name."""
    family = op.family
    return {
        "all_plain": all_plain, "any_history": any_history, "as_tuple": as_tuple, "NUMBERS": NUMBERS, "DTYPE": dtype,
        "direct_body": op.body, "direct_kernel": op.kernel, "direct_check": op.declared.check, "execute": family.execute_plain,
        "wrap_outputs": family.wrap_outputs, "as_tensor": as_tensor,
        "native": op.native, "functional_native": (op.inplace_of or op).native, "copy_plain": copy_plain, "record": op.inplace_of or op, "write_plain": family.write_plain, "may_have_history": may_have_history, "is_unheard": is_unheard,
    }  # fmt: skip


# ---- what the lines call
MOST_COPIED = 1 << 12  # elements that are sooner copied than written where they lie by all the rules


def copy_plain(native, args: tuple) -> bool:
    """Write few elements by the function in C of the functional operator, whose result is copied; False, and nothing is written, where it does not
    take the call, or memory of which operands may be views is written."""
    target = args[0]
    out = target._array
    if target._memory is not None or out.size > MOST_COPIED or any(a is target for a in args[1:]):
        return False
    found = native(args)
    if found.__class__ is not target.__class__ or found.dtype is not target.dtype or found._array.shape != out.shape:
        return False
    out[...] = found._array
    target._counter[0] += 1
    return True


def all_plain(tensors) -> bool:
    """Whether a value is a list or tuple of plain tensors."""
    if tensors.__class__ is not list and tensors.__class__ is not tuple:
        return False
    for t in tensors:
        if t.__class__ not in PLAIN or t._keys:
            return False
    return True


def any_history(tensors) -> bool:
    return any(t._autograd is not None for t in tensors)


def as_tuple(value, kind: type, size: int | None) -> tuple | None:
    """A list of values of one type as a tuple, a lone one as often as the schema says; None where it is not that."""
    cls = value.__class__
    if cls is kind:
        return None if size is None else (value,) * size
    if cls is not list and not isinstance(value, tuple):
        return None
    for v in value:
        if v.__class__ is not kind:
            return None
    return tuple(value)


def as_tensor(array):
    """A tensor around a kernel's result: an array of its own, or one that is copied, in row-major order."""
    if array.__class__ is not np.ndarray:
        array = np.asarray(array)
    elif array.base is not None or not array.flags.c_contiguous:
        array = array.copy() if array.base is not None else np.ascontiguousarray(array)
    return make_tensor(array, by_numpy[array.dtype])
