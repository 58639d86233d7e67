"""How derivatives are checked against differences.

In slow mode whole Jacobians are compared; in fast mode only `v^T J u` for random `v` and `u`. Complex outputs are
checked as their real and imaginary parts; in forward mode complex inputs are. Beyond the numbers it is checked that
backward is the same twice, is linear in its cotangent, takes absent cotangents, and can be batched, as the caller
asks.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass

from ..core.dtype import float64
from ..core.random import Generator
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import gradcheck_words as words
from .calls import grad
from .gradcheck_extras import (
    batched_backward,
    batched_forward,
    linear_in_cotangent,
    undefined_backward,
    undefined_forward,
)
from .jacobians import (
    GradcheckError,
    as_tuple,
    backward_columns,
    call_on,
    content_of,
    densified,
    differentiable,
    entries,
    equal_within,
    forward_jacobian,
    forward_row,
    is_inexact,
    is_strided,
    numerical_column,
    numerical_jacobian,
    unit_cotangents,
    wanted,
)  # fmt: skip

allclose, promote, rand = public("torch", "allclose"), public("torch", "result_type"), public("torch", "rand")


@dataclass
class Options:
    """The caller's choices that every part of the check needs."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    masked: bool | None


@dataclass
class Case:
    """One comparison: a function of real outputs (or real inputs, in forward mode) at a point."""

    fn: Callable
    inputs: tuple
    results: tuple  # all that the function returned
    outputs: tuple  # those that are differentiable
    forward: bool = False
    complex_indices: tuple = ()
    imaginary: bool = False

    def words_for(self, analytical: Tensor, numerical: Tensor, output: int, source: int) -> str:
        split = (source if self.forward else output) in self.complex_indices
        return words.mismatch(analytical, numerical, output, source, split, self.imaginary, self.forward)


def check(
    func: Callable, inputs, options: Options, raise_exception: bool, check_undefined_grad: bool,
    check_batched_grad: bool, check_batched_forward_grad: bool, check_forward_ad: bool, check_backward_ad: bool,
    fast_mode: bool,
) -> bool:  # fmt: skip
    """See `gradcheck.gradcheck`."""
    try:
        given = as_tuple(inputs)
        _check_inputs(given, check_forward_ad)
        results = func(*given)
        outputs = differentiable(results)
        _check_outputs(outputs)
        compare = _fast if fast_mode else _slow
        if check_backward_ad:
            for case in _backward_cases(func, given, as_tuple(results), outputs):
                compare(case, options)
        if check_forward_ad:
            for case in _forward_cases(func, given, as_tuple(results), outputs):
                compare(case, options)
                if check_undefined_grad:
                    undefined_forward(case.fn, case.inputs, _directions(case, options)[0])
        if check_batched_forward_grad:
            batched_forward(func, given)
        if check_backward_ad:
            for i, o in enumerate(outputs):
                if check_batched_grad:
                    batched_backward(given, o, i)
            linear_in_cotangent(outputs, given, options.masked)
            if check_undefined_grad:
                undefined_backward(func, outputs, given)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check_inputs(inputs: tuple, forward: bool) -> None:
    for i in wanted(inputs):
        x = inputs[i]
        if str(x.dtype).rpartition(".")[2] not in ("float64", "complex128"):
            warnings.warn(words.NOT_DOUBLE.format(i), stacklevel=3)
        if x.is_mkldnn:  # it has no strides
            if forward:
                raise ValueError("MKLDNN inputs are not support for forward AD gradcheck.")
            continue
        content = content_of(x)
        if any(step <= 0 and size > 1 for step, size in zip(content.stride(), content.shape, strict=True)):
            raise RuntimeError(words.STRIDE_ZERO.format(i))
    if not wanted(inputs):
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )


def _check_outputs(outputs: tuple) -> None:
    for o in outputs:
        if not is_strided(o):
            kind = "MKLDNN" if "mkldnn" in str(o.layout) else "Sparse"
            raise ValueError(
                f"{kind} output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                "of fn for gradcheck."
            )


# ---- real and imaginary parts
def _backward_cases(func: Callable, inputs: tuple, results: tuple, outputs: tuple):
    """The function as it is, or the imaginary and then the real parts of its complex outputs."""
    if not any(isinstance(o, Tensor) and o.is_complex() for o in results):
        yield Case(func, inputs, results, outputs)
        return
    split = tuple(i for i, o in enumerate(outputs) if o.is_complex())
    for part in ("imag", "real"):

        def of_part(*given, part=part):
            result = as_tuple(func(*given))
            return tuple(getattr(o, part) if isinstance(o, Tensor) and o.is_complex() else o for o in result)

        result = of_part(*inputs)
        yield Case(of_part, inputs, result, differentiable(result), False, split, part == "imag")


def _forward_cases(func: Callable, inputs: tuple, results: tuple, outputs: tuple):
    """The function as it is, or as a function of the imaginary and then the real parts of its complex inputs."""
    split = tuple(i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.is_complex())
    if not split:
        yield Case(func, inputs, results, outputs, True)
        return
    for part in ("imag", "real"):

        def of_part(*given, part=part):
            whole = list(given)
            for i in split:
                whole[i] = inputs[i].real + given[i] * 1j if part == "imag" else given[i] + inputs[i].imag * 1j
            return as_tuple(func(*whole))

        parts = tuple(getattr(x, part) if i in split else x for i, x in enumerate(inputs))
        result = of_part(*parts)
        yield Case(of_part, parts, result, differentiable(result), True, split, part == "imag")


# ---- slow mode: whole Jacobians
def _close(a: Tensor, b: Tensor, rtol: float, atol: float) -> bool:
    dtype = promote(a.reshape(-1)[:1], b.reshape(-1)[:1]) if a.numel() else a.dtype
    return bool(allclose(a.to(dtype), b.to(dtype), rtol, atol))


def _slow(case: Case, options: Options) -> None:
    at = case.inputs if options.masked else densified(case.inputs)
    numerical = [numerical_jacobian(case.fn, at, i, case.results, options.eps) for i in wanted(at)]
    if not case.outputs:
        if any((matrix != 0).any() for matrices in numerical for matrix in matrices):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    chosen = [o for o in case.results if is_inexact(o)]
    live = [k for k, o in enumerate(chosen) if o.requires_grad]
    if case.forward:
        result = [forward_jacobian(case.fn, case.inputs, i, options.check_grad_dtypes) for i in wanted(case.inputs)]
        analytical = [[matrices[k] for matrices in result] for k in live]
    else:
        analytical = [_backward_jacobian(case, chosen[k], options) for k in live]
    for output, (k, matrices) in enumerate(zip(live, analytical, strict=True)):
        for source, a in enumerate(matrices):
            n = numerical[source][k]
            if not _close(a, n, options.rtol, options.atol):
                raise GradcheckError(case.words_for(a, n, output, source))


def _backward_jacobian(case: Case, output: Tensor, options: Options, gs: list[Tensor] | None = None) -> list[Tensor]:
    """Columns by backward, run twice: both must agree."""
    gs = unit_cotangents(output.detach()) if gs is None else gs
    first, _, types = backward_columns(output, case.inputs, gs)
    second, _, _ = backward_columns(output, case.inputs, gs)
    if not types and options.check_grad_dtypes:
        raise GradcheckError("Gradient has dtype mismatch")
    if not equal_within(first, second, options.nondet_tol):
        raise GradcheckError(words.not_reentrant(options.nondet_tol))
    return first


# ---- fast mode: products with random vectors
def _vector(x: Tensor, generator: Generator, real: bool = True) -> Tensor:
    """Random numbers for the entries of a tensor, of length 1 in all."""
    content = content_of(x)
    result = rand(content.numel(), generator=generator).to(float64 if content.dtype is float64 else content.dtype)
    result = result.real if real and result.is_complex() else result
    return (result / result.norm()).reshape(content.shape)


def _directions(case: Case, options: Options) -> tuple[list[tuple], list[Tensor] | None]:
    """Per input a direction (two for a complex one), per output a cotangent (none in forward mode)."""
    generator = Generator()
    us = []
    for i in wanted(case.inputs):
        x = case.inputs[i]
        us.append(tuple(_vector(x, generator) for _ in range(2 if x.is_complex() else 1)))
    vs = None if case.forward else [_vector(o, generator, real=False) for o in case.outputs]
    return us, vs


def _fast(case: Case, options: Options) -> None:
    us, vs = _directions(case, options)
    numerical = [_numerical_product(case, i, u, options) for i, u in zip(wanted(case.inputs), us, strict=True)]
    if not case.outputs and not case.forward:
        if any(t.numel() and t.abs().max().item() > options.nondet_tol for ts in numerical for t in ts):
            raise GradcheckError("Numerical gradient for function expected to be zero")
        return
    chosen = [o for o in case.results if is_inexact(o)]
    live = [k for k, o in enumerate(chosen) if o.requires_grad] if not case.forward else list(range(len(chosen)))
    for source, (place, u) in enumerate(zip(wanted(case.inputs), us, strict=True)):
        rows = forward_row(case.fn, case.inputs, place, u[0], options.check_grad_dtypes) if case.forward else []
        for output, k in enumerate(live):
            n = numerical[source][k]
            if case.forward:
                a, atol = rows[k], options.atol * float(u[0].sum())
            else:
                v = vs[output]
                n = (n * v.reshape(-1)).sum()
                columns = _backward_jacobian(case, case.outputs[output], options, [v])
                a = _product(columns[source].reshape(-1), _dense(case.inputs[place], u))
                atol = options.atol * sum(float(part.sum()) for part in u) * float(v.sum())
            if not _close(a, n, options.rtol, atol):
                raise GradcheckError(
                    case.words_for(a, n, output, source) + _slow_words(case, options, source, output, place, k)
                )


def _numerical_product(case: Case, place: int, u: tuple, options: Options) -> list[Tensor]:
    """J u by differences along `u`, for outputs that are floating-point tensors."""
    x = case.inputs[place]
    steps = tuple(part * options.eps for part in u)
    if is_strided(x):
        call, target = call_on(case.fn, case.inputs), x.data
    else:
        replaced = x.detach().clone().requires_grad_()
        call, target = call_on(case.fn, case.inputs, place, replaced), content_of(replaced)
    column = numerical_column(call, target, steps, options.eps, x.is_complex())
    return [t for t, o in zip(column, case.results, strict=True) if is_inexact(o)]


def _dense(x: Tensor, u: tuple) -> tuple:
    """Directions of a sparse input's entries as flat directions of the dense tensor."""
    if is_strided(x):
        return tuple(part.reshape(-1) for part in u)
    result = []
    for part in u:
        flat = part.new_zeros(x.numel())
        for _, index, at in entries(x):
            flat[at] = part[index]
        result.append(flat)
    return tuple(result)


def _product(row: Tensor, u: tuple) -> Tensor:
    if not row.is_complex():
        return row.dot(u[0].to(row.dtype))
    return row.real.dot(u[0].to(row.real.dtype)) + 1j * row.imag.dot(u[1].to(row.real.dtype))


def _slow_words(case: Case, options: Options, source: int, output: int, place: int, k: int) -> str:
    """The same comparison in slow mode, in words."""
    n = numerical_jacobian(case.fn, case.inputs, place, case.results, options.eps)[k]
    if case.forward:
        a = forward_jacobian(case.fn, case.inputs, place)[k]
    else:
        o = case.outputs[output]
        a = backward_columns(o, case.inputs, unit_cotangents(o.detach()))[0][source]
    return words.in_slow_mode(n, a, _close(a, n, options.rtol, options.atol))


# ---- second derivatives
def second(func: Callable, inputs, grad_outputs, apart: bool) -> tuple[Callable, tuple]:
    """The function that maps inputs and cotangents to gradients, and the point to check it at."""
    given = as_tuple(inputs)
    if grad_outputs is None:
        gs = tuple(_random_like(o, apart) for o in differentiable(func(*given)))
    else:
        gs = as_tuple(grad_outputs)
    sources, live = set(wanted(given)), {i for i, g in enumerate(gs) if g.requires_grad}

    def gradients(*args) -> tuple:
        xs = tuple(x.requires_grad_() if i in sources else x for i, x in enumerate(args[: -len(gs)]))
        outputs = differentiable(func(*xs))
        cotangents = tuple(g.requires_grad_() if i in live else g for i, g in enumerate(args[-len(gs) :]))
        result = grad(outputs, [xs[i] for i in sorted(sources)], cotangents, create_graph=True, allow_unused=True)
        return tuple(g for g in result if g is not None)

    return gradients, given + gs


def _random_like(o: Tensor, apart: bool) -> Tensor:
    """A cotangent with numbers in [-1, 1), perhaps with gaps in memory."""
    shape = (*o.shape[:-1], o.shape[-1] * 2) if apart and o.ndim else tuple(o.shape)
    result = rand(shape, dtype=o.dtype) * 2 - 1
    result = result[..., ::2] if apart and o.ndim else result
    return result.detach().requires_grad_()


# ---- what was public before it was private
def numerical_of_first(fn: Callable, inputs, target, eps: float, grad_out: float) -> tuple:
    """the Jacobian of the first output by differences, per input; `fn` takes the inputs as one tuple."""
    if grad_out != 1.0:
        raise ValueError(words.GRAD_OUT.format("get_numerical_jacobian"))
    given = as_tuple(inputs)
    results = as_tuple(fn(given))
    if any(o.is_complex() for o in results):
        raise ValueError(words.REAL_OUTPUT.format("get_numerical_jacobian"))
    result = as_tuple(given if target is None else target)
    return tuple(numerical_jacobian(lambda *xs: fn(xs), given, i, results, eps, result[i])[0] for i in wanted(result))


def analytical_with_checks(inputs, output: Tensor, nondet_tol: float, grad_out: float) -> tuple:
    """(Jacobians by backward per input, same twice, sizes right, dtypes right)."""
    if grad_out != 1.0:
        raise ValueError(words.GRAD_OUT.format("get_analytical_jacobian"))
    if output.is_complex():
        raise ValueError(words.REAL_OUTPUT.format("get_analytical_jacobian"))
    gs = unit_cotangents(output.detach())
    first, sizes, types = backward_columns(output, as_tuple(inputs), gs)
    second, _, _ = backward_columns(output, as_tuple(inputs), gs)
    return tuple(first), equal_within(first, second, nondet_tol), sizes, types
