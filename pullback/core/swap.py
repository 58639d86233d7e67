"""Two tensors change places: every name of the one means the other."""

from __future__ import annotations

import weakref

from .tensor import Tensor

_FACTS = tuple(name for name in Tensor.__slots__ if not name.startswith("__"))


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange all that two tensors are: memory, history, class, attributes."""
    if t1.grad_fn is not None or t2.grad_fn is not None:
        raise RuntimeError("Cannot swap tensors that a graph has recorded: only leaves can be swapped")
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefcount(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    if sorted(t1.class_slots) != sorted(t2.class_slots):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    names = (*_FACTS, *t1.class_slots)
    facts = [{name: getattr(t, name) for name in names if hasattr(t, name)} for t in (t1, t2)]
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for t, result in zip((t1, t2), reversed(facts), strict=True):
        for name in names:
            if name in result:
                setattr(t, name, result[name])
            elif hasattr(t, name):
                delattr(t, name)
    for t in (t1, t2):  # a graph that has used a leaf would add to another tensor than its names mean now
        a = t._autograd
        node = a.accumulator() if a is not None and a.accumulator is not None else None
        if node is not None:
            node.variable = t
            node.register_prehook(_poisoned)
            a.accumulator = None


def _poisoned(gradients):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a "
        "tensor that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should not "
        "change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve "
        "this, please only change the device/dtype before running forward (or after both forward and backward)."
    )
