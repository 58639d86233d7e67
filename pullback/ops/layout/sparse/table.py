"""How an operator reaches its sparse rule.

Comes in: an operator and canonical arguments of which at least one is sparse, without history (autograd has done its
work above). Goes out: what the rule for that operator gives. Operators that exist for sparse tensors alone are declared
with `layout_operator` and bring their own `run`; all others have a rule in their declaration, where this package puts it
(`@sparse_rule`), or raise what PyTorch raises.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ....core import device as devices
from ....core.layers import above
from ....core.tensor import FAKE, META, SPARSE, Tensor
from ...family.base import Family
from ...system.calls import export_operator
from ...system.declaration import REQUIRED, Declaration
from ...system.execute import execute
from ...system.operator import Operator, rule_of
from .layouts import backend_name, is_sparse
from .without_data import execute_without_data, stand_in


def sparse_rule(*names: str) -> Callable:
    """Make `function(op, *args)` the sparse rule of the operators named (all overloads)."""
    return rule_of("sparse", *names)


class LayoutDeclaration(Declaration):
    """What an operator of a layout may declare; it has no public name unless it says so."""

    kind = "a layout operator"

    run: Callable = REQUIRED
    """`run(*args)`: tensors without history in, tensors out."""
    function: bool = False
    method: bool | None = False
    out: bool = False
    strict: bool = True


class LayoutFamily(Family):
    """Operators that make, take apart or convert sparse tensors: `run(*args)` takes and gives tensors."""

    declares = LayoutDeclaration
    takes_layouts = True

    def execute(self, op: Operator, args: tuple):
        return op.declared.run(*[without_history(a) for a in args])

    def run_meta(self, op: Operator, args: tuple):
        return execute_without_data(op, tuple(without_history(a) for a in args), op.declared.run)


class LayoutViewFamily(LayoutFamily):
    """Those of them whose result is a view of the first argument: writes to either are seen in both, history included."""

    is_view = True


LAYOUT = LayoutFamily()
LAYOUT_VIEW = LayoutViewFamily()


def layout_operator(schema: str, run, family: LayoutFamily = LAYOUT, **options) -> Operator:
    """Declare an operator of this family."""
    return export_operator(Operator(schema, family, run=run, **options))


def without_history(a):
    """A tensor (or the tensors of a list) as data alone."""
    if isinstance(a, Tensor):
        return a if a._autograd is None else a.shallow()
    if a.__class__ is tuple and a and isinstance(a[0], Tensor):
        return tuple(without_history(x) for x in a)
    return a


def execute_sparse(op: Operator, args: tuple, keys: int = SPARSE):
    """The sparse rule of an operator, on its arguments, of which `keys` are the keys."""
    if keys & FAKE:
        return above.execute_fake(op, args)
    if keys & META:
        return _on_meta(op, args)
    return run_rule(op, args)


def run_rule(op: Operator, args: tuple):
    """The same where the arguments have data."""
    if isinstance(op.family, LayoutFamily):
        return op.family.execute(op, args)
    return rule_for(op, args)(*[without_history(a) for a in args])


def rule_for(op: Operator, args: tuple) -> Callable:
    """`rule(*args)`: the sparse rule of an operator, or PyTorch's error where it has none."""
    if isinstance(op.family, LayoutFamily):
        return op.declared.run
    if op.declared.sparse is None:
        raise not_implemented(op, args)
    return partial(op.declared.sparse, op)


def without_data(op: Operator, args: tuple):
    """The rule of an operator on arguments without data: results on device meta."""
    return execute_without_data(op, tuple(without_history(a) for a in args), rule_for(op, args))


def _on_meta(op: Operator, args: tuple):
    """On device meta, or on the device that the call names."""
    device = next((a for a in args if isinstance(a, devices.device)), devices.meta)
    if device is devices.meta:
        return without_data(op, args)
    if op.name == "_to_copy":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return run_rule(op, (stand_in(args[0]), *args[1:]))


def not_implemented(op: Operator, args: tuple) -> NotImplementedError:
    """PyTorch's error for an operator that a layout does not have."""
    backend = next((backend_name(t) for t in op.tensors(args) if is_sparse(t)), "SparseCPU")
    name = op.qualified_name
    return NotImplementedError(
        f"Could not run '{name}' with arguments from the '{backend}' backend. This could be because the operator "
        f"doesn't exist for this backend. "
        f"'{name}' is only available for dense tensors: convert with to_dense() first."
    )


def refuse_dense(name: str, t: Tensor) -> NotImplementedError:
    """PyTorch's error for a sparse operator on a dense tensor."""
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the '{backend_name(t)}' backend. This could be because the "
        f"operator doesn't exist for "
        f"this backend. 'aten::{name}' is only available for these backends: [SparseCPU]."
    )


def run_dense(op: Operator, *args):
    """An operator on plain tensors, under autograd."""
    keys = 0
    for t in op.tensors(args):
        keys |= t._keys
    return execute(op, args, keys)
