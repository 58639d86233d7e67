"""The reentrant variant: the region is one custom function whose backward runs it again, and a backward inside."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ...autograd.calls import backward as run_backward
from ...autograd.function import Function
from ...core import modes
from ...core.modes import ambient
from ...core.tensor import Tensor
from .state import Surroundings


def detach_variable(inputs: tuple) -> tuple:
    """Tensors without history that require gradients as before; anything else as it is."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable) -> None:
    """Warn where no gradient can come of it."""
    if not any(isinstance(x, Tensor) and x.requires_grad for x in inputs):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """`apply(function, preserve_rng_state, *args)`."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state: bool, *args):
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state)
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.places])
        with modes.masked(modes.GRAD):
            return run_function(*args)

    @staticmethod
    def backward(ctx, *gs):
        if ambient.tasks and ambient.tasks[-1].needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.others)
        for i, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), modes.masked(0, modes.GRAD):
            outputs = ctx.run_function(*detached)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        live = [(o, g) for o, g in zip(outputs, gs, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not live:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward([o for o, _ in live], [g for _, g in live])
        return (None, None, *(x.grad if isinstance(x, Tensor) else None for x in detached))
