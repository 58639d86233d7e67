"""The non-reentrant variant: saved tensors are forgotten, and made again when backward asks for one.

In the forward, each tensor that the region saves is replaced by a `Holder`. When backward unpacks the first of them,
the region runs again, and the tensors that it saves, in the same order, go to the holders; each is handed out once in
that backward. The recomputation stops as soon as the last holder has its tensor. A region inside a region works
alike: the hooks of the inner one are innermost while it runs.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from contextlib import contextmanager

from ...autograd.engine import current_graph_task_id
from ...autograd.saved import saved_tensors_hooks
from ...core import modes
from ...core import node as nodes
from ...core.modes import ambient
from ...core.tensor import Tensor

_unique = itertools.count(-2, -1).__next__  # for questions outside of a backward: never the number of one

TIP = (
    "\nTip: To see a more detailed error message, either pass `debug=True` "
    "to\n`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\nwith `with "
    "torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable checkpoint-debug mode globally.\n"
)


class CheckpointError(RuntimeError):
    """The recomputation does not match the forward."""


class _Settings:
    debug: bool | None = None
    early_stop: bool | None = None


settings = _Settings()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None):
    """In this block, whether checkpoints explain mismatches at length, whatever their `debug` says."""
    before, settings.debug = settings.debug, enabled
    try:
        yield
    finally:
        settings.debug = before


@contextmanager
def set_checkpoint_early_stop(enable: bool):
    """In this block, whether recomputations stop once all is there, whatever their `early_stop` says."""
    before, settings.early_stop = settings.early_stop, enable
    try:
        yield
    finally:
        settings.early_stop = before


class GraphExecGroup:
    """Backwards in this block share recomputed tensors; each may be used once in all of them together."""

    _current: GraphExecGroup | None = None

    def __enter__(self) -> GraphExecGroup:
        if GraphExecGroup._current is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {GraphExecGroup._current}"
            )
        GraphExecGroup._current = self
        return self

    def __exit__(self, *exc: object) -> None:
        GraphExecGroup._current = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return cls._current


class _Stop(Exception):
    """All tensors are there: the rest of the recomputation is not needed."""

    is_expected = True


class Holder:
    """Stands for one saved tensor; has it for a while in each backward."""

    __slots__ = ("values", "used", "__weakref__")

    def __init__(self) -> None:
        self.values: dict = {}  # backward -> tensor
        self.used: set = set()  # backwards that have taken it


class Frame:
    """One checkpointed call."""

    def __init__(self, again: Callable, early_stop: bool, describe: Callable, explain: Callable | None) -> None:
        self.again, self.early_stop, self.describe, self.explain = again, early_stop, describe, explain
        self.inputs: list = []
        self.holders: list = []  # weak: a holder dies with the node that it was saved for
        self.kinds: list = []  # what `describe` said of each tensor
        self.counts: dict = {}  # backward -> tensors saved by its recomputation so far
        self.done: set = set()  # backwards that have recomputed
        self.forward_completed = self.ignore_mismatch = False

    def keep_inputs(self, args: tuple) -> None:
        self.inputs = [nodes.save(a) if isinstance(a, Tensor) else a for a in args]

    # ---- the forward
    def pack(self, x: Tensor) -> Holder:
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.kinds.append(self.describe(x))
        return holder

    # ---- the backward
    def unpack(self, holder: Holder) -> Tensor:
        try:
            return self._unpack(holder)
        except CheckpointError as e:
            if self.explain is not None:
                self.explain(e)
            raise

    def _unpack(self, holder: Holder) -> Tensor:
        group = GraphExecGroup._current
        backward = group if group is not None else current_graph_task_id()
        if backward == -1:
            backward = _unique()
        if backward not in self.done:
            self._recompute(backward)
        if backward in holder.used:
            overlap = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to "
                "compute gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{overlap if group is not None else ''}If you are calling ctx.saved_tensors in backward, make sure to "
                "do so only once. Otherwise please open an issue with details on your use case."
            )
        holder.used.add(backward)
        return holder.values.pop(backward)

    def _recompute(self, backward) -> None:
        args = [nodes.unpack(entry, None) for entry in self.inputs]
        self.counts[backward] = 0
        hooks = saved_tensors_hooks(lambda x: self._refill(x, backward), lambda x: x)
        try:
            with hooks, modes.masked(0, modes.GRAD):
                self.again(*args)
        except _Stop:
            pass
        self.done.add(backward)
        if not self.ignore_mismatch:
            self._check(backward)

    def _refill(self, x: Tensor, backward) -> Tensor:
        """Give a tensor that the recomputation saves to the holder whose turn it is."""
        x = x.detach() if x.requires_grad else x
        at = self.counts[backward]
        self.counts[backward] = at + 1
        if at >= len(self.holders):
            if self.forward_completed:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass.\n{TIP}"
                )
            self.ignore_mismatch = True  # a backward inside the forward: the rest is still to come
            return x
        holder = self.holders[at]()
        if holder is not None:
            holder.values[backward] = x
        if self.early_stop and at + 1 == len(self.holders):
            raise _Stop
        return x

    def _check(self, backward) -> None:
        count = self.counts[backward]
        if count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of tensors saved "
                f"during recomputation: {count}.\n{TIP}"
            )
        wrong = ""
        for i, (ref, kind) in enumerate(zip(self.holders, self.kinds, strict=True)):
            holder = ref()
            result = self.describe(holder.values[backward]) if holder is not None else kind
            if result != kind:
                wrong += f"tensor at position {i}:\nsaved metadata: {kind}\nrecomputed metadata: {result}\n"
        if wrong:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{wrong}.\n{TIP}"
            )


def describe(x: Tensor) -> dict:
    """What must be the same of a tensor when it is made again."""
    return {"shape": x.shape, "dtype": x.dtype, "device": x.device}


DETERMINISM_CHECKS: dict[str, Callable] = {"default": describe, "none": lambda _: None}


def run_checkpointed(function: Callable, frame: Frame, forward_context, args: tuple, kwargs: dict):
    """The forward of a checkpointed region."""
    if not ambient.mode & modes.GRAD or ambient.recorded_levels:  # tangents that are recorded would not be made again
        return function(*args, **kwargs)
    frame.keep_inputs(args)
    result, returned = None, False
    with saved_tensors_hooks(frame.pack, frame.unpack), forward_context:
        result, returned = function(*args, **kwargs), True
    if not returned:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    frame.forward_completed = True
    return result
