"""Operators that put their results into tensors that they are given: `ops.aten.add.out`, `ops.aten.topk.values`.

In: the overloads of a name, and the overload asked for. Out: an operator whose last keywords are the tensors that are written,
made at the first question. What always holds: it computes what the overload without them computes, by that overload, and
treats what it is given as public functions treat `out=`; nothing lists it among the overloads that a call may mean.
"""

from __future__ import annotations

from ..system.general import write_out
from ..system.operator import Operator, unregister
from ..system.schema import argument_texts
from .base import PLAIN_FAMILY

# Which overload an `out` is of, where it is not the first of these, nor `<overload>_out` of `<overload>`.
_FIRST = ("default", "Tensor", "Tensor_Tensor", "correction")
_NAMES: dict[str, str | None] = {
    **{f"{name}.{overload}": base for name in ("max", "min") for overload, base in (("out", "other"), ("unary_out", "default"))},
    **{f"{name}.{overload}": base for name in ("all", "any") for overload, base in (("out", "dim"), ("all_out", "default"))},
    **{f"{name}.out": "dim" for name in ("mean", "std", "var")},
    "arange.out": None,  # of its end alone, for which there is no overload here
    "arange.start_out": "start_step",
    "bernoulli.float_out": "p",
    "div.out_mode": "Tensor_mode",
    "mean.dtype_out": "default",
    "norm.dtype_out": "ScalarOpt_dim_dtype",
    "norm.out": "ScalarOpt_dim",
    "normal.out": None,  # of a tensor that says the shape alone
    "prod.int_out": "dim_int",
    "sum.IntList_out": "dim_IntList",
}  # fmt: skip

_OF_NEW_TENSORS = ("dtype", "layout", "device", "pin_memory")  # what the tensor that is given says instead


def out_form(name: str, overloads: dict[str, Operator], overload: str) -> Operator | None:
    """The operator of this overload that writes what it is given, of those that give new tensors; None where there is none."""
    base = _base(name, overloads, overload)
    if base is None or not base.declared.out or base.is_view or base.inplace_of is not None:
        return None
    returns = [r for r, _ in base.schema.returns]
    if not returns or any(r != "Tensor" for r in returns):
        return None
    return _make(base, overload)


def _base(name: str, overloads: dict[str, Operator], overload: str) -> Operator | None:
    if (key := f"{name}.{overload}") in _NAMES:
        return overloads.get(_NAMES[key] or "")
    if overload == "out":
        return next((overloads[o] for o in _FIRST if o in overloads), next(iter(overloads.values()), None))
    if overload.endswith("_out"):
        return overloads.get(overload[: -len("_out")])
    named = (op for op in overloads.values() if len(op.schema.returns) > 1)
    return next((op for op in named if op.schema.returns[0][1] == overload), None)  # "values" of (values, indices)


def _make(base: Operator, overload: str) -> Operator:
    arguments = base.schema.arguments
    makes = any(a.name == "layout" for a in arguments)
    kept = [i for i, a in enumerate(arguments) if not (makes and a.name in _OF_NEW_TENSORS)]
    returns = [name for _, name in base.schema.returns]
    names = (
        returns
        if len(returns) > 1 and all(returns)
        else ["out"]
        if len(returns) == 1
        else [f"out{i}" for i in range(len(returns))]
    )
    marks = [f"Tensor({chr(ord('a') + i)}!)" for i in range(len(names))]
    texts, starred, written = [], False, argument_texts(base.text)
    for i in kept:
        if arguments[i].kwarg_only and not starred:
            texts.append("*")
            starred = True
        texts.append(written[i])
    texts += ([] if starred else ["*"]) + [f"{mark} {n}" for mark, n in zip(marks, names, strict=True)]
    results = (
        marks[0]
        if len(marks) == 1
        else f"({', '.join(f'{m} {n}' if returns[0] else m for m, n in zip(marks, names, strict=True))})"
    )

    def body(*args):
        given, outs = args[: len(kept)], args[len(kept) :]
        values = [a.default for a in arguments]
        for i, v in zip(kept, given, strict=True):
            values[i] = v
        if makes:
            for i, a in enumerate(arguments):
                if a.name in ("dtype", "device"):
                    values[i] = getattr(outs[0], a.name)
        return write_out(base, tuple(values), outs if len(outs) > 1 else outs[0])

    form = Operator(f"{base.name}.{overload}({', '.join(texts)}) -> {results}", PLAIN_FAMILY, body=body)
    unregister(form)  # a call of the packet never means it
    return form
