"""Random operators that are computed again: the state of the generator saved, and set for one call.

`run_and_save_rng_state(op, *args)` gives (the state before, the result). `run_with_rng_state(state, op, *args)` gives the
result that the operator has from that state, and leaves the generator as it was.
"""

from __future__ import annotations

from ...core.tensor import Tensor
from ...ops.random import get_rng_state, set_rng_state
from ..fake import unset_fake_temporarily
from .base import HigherOrderOperator, autograd_not_implemented


def _get_state() -> Tensor:
    """The state, as a real tensor whatever traces."""
    with unset_fake_temporarily():
        return get_rng_state()


class RunAndSaveRngState(HigherOrderOperator):
    """`run_and_save_rng_state(op, *args)`."""

    def __init__(self) -> None:
        super().__init__("run_and_save_rng_state", cacheable=True)

    def plain(self, op, *args, **kwargs):
        return _get_state(), op(*args, **kwargs)

    def fake_rule(self, mode, op, *args, **kwargs):
        with mode:
            return mode.from_tensor(_get_state(), static_shapes=True), op(*args, **kwargs)


class RunWithRngState(HigherOrderOperator):
    """`run_with_rng_state(state, op, *args)`."""

    def __init__(self) -> None:
        super().__init__("run_with_rng_state", cacheable=True)

    def plain(self, rng_state, op, *args, **kwargs):
        before = _get_state()
        set_rng_state(rng_state)
        try:
            return op(*args, **kwargs)
        finally:
            set_rng_state(before)

    def fake_rule(self, mode, rng_state, op, *args, **kwargs):
        with mode:
            return op(*args, **kwargs)


run_and_save_rng_state = RunAndSaveRngState()
run_with_rng_state = RunWithRngState()
for _op in (run_and_save_rng_state, run_with_rng_state):
    _op.py_autograd_impl(autograd_not_implemented(_op, deferred_error=True))
