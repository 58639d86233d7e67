"""Operators that write their arguments, as one pure call.

`auto_functionalized(op, **arguments)` copies the arguments that the operator's schema says are written, runs the operator
on the copies, and gives (results..., copies...). Functionalization makes the copies the values of the arguments.
"""

from __future__ import annotations

from ...core import tree
from ...core.tensor import Tensor
from ...ops.system.operator import Operator
from .base import HigherOrderOperator


class AutoFunctionalized(HigherOrderOperator):
    """`torch.ops.higher_order.auto_functionalized(op, **arguments)`."""

    def __init__(self) -> None:
        super().__init__("auto_functionalized", cacheable=True)

    def __call__(self, _mutable_op: Operator, /, **kwargs):
        if not written_arguments(_mutable_op):
            raise AssertionError(f"Cannot auto-functionalize op {_mutable_op}")
        return super().__call__(_mutable_op, **kwargs)

    def plain(self, _mutable_op: Operator, **kwargs):
        names = written_arguments(_mutable_op)
        copies = {n: tree.tree_map_only(Tensor, lambda t: t.clone(), kwargs[n]) for n in names if n in kwargs}
        out = _mutable_op(**{**kwargs, **copies})
        return (*own_results(_mutable_op, out, list(copies.values())), *copies.values())

    def autograd(self, _mutable_op: Operator, **kwargs):
        raise RuntimeError(f"Autograd not implemented for {self} of {_mutable_op}")


def own_results(op: Operator, out, written: list) -> tuple:
    """What an operator gives besides the arguments that it wrote; (None,) where that is nothing.

    A written argument that the schema gives back is its copy; one that the kernel gives back unsaid is a result too.
    """
    results = () if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
    given = {id(t) for t in tree.tree_leaves(written)}
    said = {a.alias for a in op.schema.arguments if a.writes}
    pairs = zip(results, op.schema.returns, strict=False)
    return tuple(r.clone() if id(r) in given else r for r, back in pairs if back.alias not in said) or (None,)


def written_arguments(op: Operator) -> list[str]:
    """The names of the arguments that an operator writes."""
    return [a.name for a in op.schema.arguments if a.writes]


auto_functionalized = AutoFunctionalized()


def run(mode, op: Operator, args: tuple):
    """Under functionalization: run a writing operator on values, and make what it wrote the values of its arguments."""
    given = dict(zip([a.name for a in op.schema.arguments], args, strict=False))
    names = [n for n in written_arguments(op) if given.get(n) is not None]
    _check_apart(op, [t for n in names for t in tree.tree_leaves(given[n]) if isinstance(t, Tensor)])
    values = {n: mode.argument(v) for n, v in given.items() if not is_omitted(op, n, v)}
    out = auto_functionalized(op, **values)
    for name, new in zip(names, out[len(out) - len(names) :], strict=True):
        _assign(mode, given[name], new)
    return in_order(op, given, out[: len(out) - len(names)])


def _check_apart(op: Operator, targets: list[Tensor]) -> None:
    """Each written argument gets a copy of its own, so a write through one must not be seen through another."""
    for i, t in enumerate(targets):
        if any(t is o or t._memory is not None and t._memory is o._memory for o in targets[:i]):
            raise NotImplementedError(f"{op} writes to two arguments that share memory: this cannot be functionalized")


def is_omitted(op: Operator, name: str, value) -> bool:
    argument = op.schema.arguments[op.schema.index[name]]
    return value is None and argument.has_default and argument.default is None


def _assign(mode, target, new) -> None:
    if isinstance(target, Tensor):
        mode.assign(target, new)
    else:
        for t, n in zip(target, new, strict=True):
            if t is not None:
                mode.assign(t, n)


def in_order(op: Operator, given: dict, result: tuple):
    """The operator's results in its schema's order: written arguments that it gives back are the arguments themselves."""
    rest = iter(() if result == (None,) else result)
    back = {a.alias: given[a.name] for a in op.schema.arguments if a.writes}
    out = [back[r.alias] if r.alias in back else next(rest) for r in op.schema.returns]
    return out[0] if len(out) == 1 else tuple(out) if out else None
