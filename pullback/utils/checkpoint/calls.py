"""`checkpoint` and `checkpoint_sequential`: arguments checked, then one of the two variants."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext

from ...core import modes
from ...core.modes import ambient
from .explain import Explainer
from .recompute import DETERMINISM_CHECKS, Frame, run_checkpointed, settings
from .reentrant import CheckpointFunction
from .state import Surroundings

_EXPLICIT = (
    "{}: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint without "
    "use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the "
    "current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences "
    "between the two variants."
)


def noop_context_fn() -> tuple:
    """Contexts for the forward and the recomputation that do nothing."""
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable, *args, use_reentrant: bool | None = None, context_fn: Callable[[], tuple] = noop_context_fn,
    determinism_check: str = "default", debug: bool = False, early_stop: bool = True, **kwargs,
):  # fmt: skip
    """`function(*args, **kwargs)`, whose intermediate values are not kept for backward but computed again then."""
    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("torch.utils.checkpoint"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if ambient.mode & (modes.CAPTURE | modes.DISPATCH) and ambient.mode & modes.GRAD:
        from .traced import call_traced

        result = call_traced(function, args, kwargs, None if context_fn is noop_context_fn else context_fn, preserve)
        if result is not NotImplemented:
            return result
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if settings.debug is None else settings.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in DETERMINISM_CHECKS:
        raise ValueError(f"determinism_check should be one of {list(DETERMINISM_CHECKS)}, but got {determinism_check}")
    explainer = Explainer() if debug else None
    forward_context, recompute_context = explainer.contexts() if explainer is not None else context_fn()
    surroundings = Surroundings(preserve)
    again = _recomputation(function, kwargs, surroundings, recompute_context, explainer)
    stop = early_stop if settings.early_stop is None else settings.early_stop
    explain = explainer.explain if explainer is not None else None
    frame = Frame(again, stop, DETERMINISM_CHECKS[determinism_check], explain)
    return run_checkpointed(function, frame, forward_context, args, kwargs)


def _recomputation(
    function: Callable, kwargs: dict, surroundings: Surroundings, context, explainer: Explainer | None
) -> Callable:
    def again(*args) -> None:
        inner = explainer.contexts()[1] if explainer is not None else context
        with surroundings.again(), inner:
            function(*args, **kwargs)

    return again


def checkpoint_sequential(functions, segments: int, input, use_reentrant: bool | None = None, **kwargs):
    """Run functions one after the other, in `segments` checkpointed pieces; the last piece is not checkpointed."""
    if use_reentrant is None:
        warnings.warn(_EXPLICIT.format("torch.utils.checkpoint.checkpoint_sequential"), stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    chain = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(chain) // segments
    starts = range(0, size * (segments - 1), size) if size else range(0)
    for start in starts:
        piece = _one_after_the_other(chain[start : start + size])
        input = checkpoint(piece, input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _one_after_the_other(chain[len(starts) * size :])(input)


def _one_after_the_other(functions: list[Callable]) -> Callable:
    def run(x):
        for function in functions:
            x = function(x)
        return x

    return run
