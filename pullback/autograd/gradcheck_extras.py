"""What gradcheck asks of derivatives beyond their numbers: linearity, absent gradients, batches."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from ..batching.vmap import vmap
from ..core.modes import ambient
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import forward_ad
from . import gradcheck_words as words
from .calls import grad
from .jacobians import GradcheckError, as_tuple, differentiable, is_inexact, is_strided, tangents_of, wanted
from .nodes import UndefinedGrad

zeros_like, randn_like = public("torch", "zeros_like"), public("torch", "randn_like")
stack, allclose = public("torch", "stack"), public("torch", "allclose")


def _sources(inputs: tuple) -> list[Tensor]:
    found = [inputs[i] for i in wanted(inputs)]
    if not found:
        raise GradcheckError("no Tensors requiring grad found in input")
    return found


def linear_in_cotangent(outputs: tuple, inputs: tuple, masked: bool | None) -> None:
    """A zero cotangent must give a zero gradient, of the input's own kind."""
    sources = _sources(inputs)
    if not outputs:
        return
    result = grad(outputs, sources, [zeros_like(o) for o in outputs], allow_unused=True)
    for g, x in zip(result, sources, strict=True):
        if g is None:
            continue
        if not is_strided(g):
            _check_sparse(g, x)
            g, x = g.to_dense(), x.to_dense()
        zero = bool(allclose(g, zeros_like(g))) if masked else bool((g == 0).all())
        if not zero:
            raise GradcheckError("backward not multiplied by grad_output")
        same = {"type": g.dtype == x.dtype, "device": g.device == x.device, "size": g.shape == x.shape}
        for what, agrees in same.items():
            if not agrees:
                raise GradcheckError(f"grad is incorrect {what}")


def _check_sparse(g: Tensor, x: Tensor) -> None:
    if g.layout != x.layout:
        raise GradcheckError(f"grad is incorrect layout ({g.layout} is not {x.layout})")
    if g.is_mkldnn:
        return
    kind = str(g.layout).replace("torch.", "").replace("_coo", "")
    for what in ("sparse_dim", "dense_dim"):
        have, want = getattr(g, what)(), getattr(x, what)()
        if have != want:
            raise GradcheckError(f"grad is {kind} tensor, but has incorrect {what} {have}, expected {want}")


# ---- gradients that are absent
def undefined_backward(func: Callable, outputs: tuple, inputs: tuple) -> None:
    """Backward must take absent cotangents: all of them, and each alone."""
    sources = _sources(inputs)
    _without_cotangents([UndefinedGrad()(o) for o in differentiable(func(*inputs))], sources)
    for i in range(len(outputs) if len(outputs) > 1 else 0):
        result = differentiable(func(*inputs))
        _without_cotangents([UndefinedGrad()(o) if i == k else o for k, o in enumerate(result)], sources)


def _without_cotangents(outputs: list, sources: list) -> None:
    if not outputs:
        return
    try:
        result = grad(outputs, sources, [zeros_like(o) for o in outputs], allow_unused=True)
    except RuntimeError as e:
        warnings.warn(words.UNDEFINED, stacklevel=4)
        raise GradcheckError(
            "Expected backward function to handle undefined output grads. Please look at "
            '"Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
        ) from e
    for g in result:
        if g is not None and not (g if is_strided(g) else g.to_dense()).eq(0).all():
            warnings.warn(words.UNDEFINED, stacklevel=4)
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are undefined or zero. Please "
                'look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
            )


def undefined_forward(fn: Callable, inputs: tuple, directions: list[tuple]) -> None:
    """An input without a tangent must count as one with a zero tangent."""
    places = wanted(inputs)
    given = {i: u[0].reshape(inputs[i].shape) for i, u in zip(places, directions, strict=True)}
    for place in places:
        with forward_ad.dual_level():
            zero = tangents_of(fn, inputs, given | {place: zeros_like(inputs[place])})
            absent = tangents_of(fn, inputs, given | {place: None})
            for i, ((_, first), (_, second)) in enumerate(zip(zero, absent, strict=True)):
                if first is not None and second is not None and not allclose(first, second):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {i} when input: {inputs[place]} has an "
                        f"undefined tangent value.  Got: {first} but expected: {second}"
                    )


# ---- batches of gradients
def _vmapped(function: Callable, argument: Tensor, complaint: str) -> tuple:
    def seen_through(x: Tensor) -> tuple:
        ambient.transforms[-1].transparent = True  # custom functions need no batching rule of their own here
        return function(x)

    try:
        return vmap(seen_through)(argument)
    except RuntimeError as e:
        what = words.NO_RANDOMNESS if "called random operation" in str(e) else str(e)
        raise GradcheckError(f"While computing batched gradients, got: {what}\n\n{complaint}") from e


def _compare(result: tuple, expected: list, output: int | None, complaint: str) -> None:
    for i, (have, want) in enumerate(zip(result, expected, strict=True)):
        if not allclose(have, want):
            raise GradcheckError(
                f"For output {i if output is None else output} and input {i}:\n\n{complaint}\n\nGot:\n{have}\n\n"
                f"Expected:\n{want}"
            )


def batched_backward(inputs: tuple, output: Tensor, number: int) -> None:
    """Backward of a batch of cotangents by vmap must equal one after the other."""
    sources = _sources(inputs)

    def pull(g: Tensor) -> tuple:
        created = grad(output, sources, g, retain_graph=True, allow_unused=True)
        return tuple(x.new_zeros(x.shape) if d is None else d for d, x in zip(created, sources, strict=True))

    gs = [randn_like(output).detach() for _ in range(2)]
    each = [pull(g) for g in gs]
    expected = [stack([a, b]) for a, b in zip(*each, strict=True)] if all(map(is_strided, each[0])) else None
    result = _vmapped(pull, stack(gs), words.BATCHED)
    if expected is None:
        raise GradcheckError(f"While computing batched gradients, got sparse gradients\n\n{words.BATCHED}")
    _compare(result, expected, number, words.BATCHED)


def batched_forward(func: Callable, inputs: tuple) -> None:
    """Forward mode on a batch of tangents by vmap must equal one after the other."""
    for place in wanted(inputs):
        if not is_inexact(inputs[place]):
            continue

        def push(tangent: Tensor, place: int = place) -> tuple:
            with forward_ad.dual_level():
                given = [x.detach() if isinstance(x, Tensor) else x for x in inputs]
                given[place] = forward_ad.make_dual(given[place], tangent)
                parts = [forward_ad.unpack_dual(o) for o in as_tuple(func(*given)) if o is not None]
                return tuple(p.new_zeros(p.shape) if t is None else t for p, t in parts)

        tangents = [randn_like(inputs[place]).detach() for _ in range(2)]
        each = [push(t) for t in tangents]
        expected = [stack([a, b]) for a, b in zip(*each, strict=True)]
        _compare(_vmapped(push, stack(tangents), words.BATCHED_FORWARD), expected, None, words.BATCHED_FORWARD)
