"""Derivatives of functions of tensors: jacobian, hessian, and products with vectors.

Each takes a function of one tensor or several and gives results in the same form: a single tensor for a single one, a
tuple for a tuple. With `create_graph` results can be differentiated again; with `strict` it is an error if an output
does not depend on an input. A product of a Jacobian with a vector from the right is taken by differentiating the
product from the left, which is linear in its vector.
"""

from __future__ import annotations

from collections.abc import Callable

from ..batching.vmap import vmap
from ..core import modes
from ..core.layers import above
from ..core.modes import set_grad_enabled
from ..core.tensor import Tensor
from ..ops.system.operator import public
from . import forward_ad
from . import functional_words as words
from .calls import grad

zeros_like, stack = public("torch", "zeros_like"), public("torch", "stack")


# ---- arguments and results
def _tensors(x, what: str, function: str) -> tuple[bool, tuple]:
    """(whether it was a tuple, the tensors)."""
    many = isinstance(x, tuple)
    for i, t in enumerate(x if many else (x,)):
        if not isinstance(t, Tensor):
            where = f"the value at index {i}" if many else f"the given {what}"
            raise TypeError(
                f"The {what} given to {function} must be either a Tensor or a tuple of Tensors but {where} has type "
                f"{type(t)}."
            )
    return many, x if many else (x,)


def _outputs(x, function: str, strict: bool) -> tuple[bool, tuple]:
    many, result = _tensors(x, "outputs of the user-provided function", function)
    _check_live(result, words.OUTPUT, strict)
    return many, result


def _tracked(inputs: tuple, create_graph: bool, live: bool = True) -> tuple:
    """Inputs as this function differentiates them: connected to their history only where results must be."""
    return tuple(
        (x.clone() if x.is_sparse else x.view_as(x)) if create_graph and x.requires_grad
        else x.detach().requires_grad_(live)
        for x in inputs
    )  # fmt: skip


def _settled(results, create_graph: bool):
    """Results without history, unless it was asked for."""
    if create_graph:
        return results
    return tuple(r.detach() if isinstance(r, Tensor) else _settled(r, create_graph) for r in results)


def _as_given(results: tuple, many: bool):
    return results if many else results[0]


def _vector(v, like: tuple, many: bool, function: str, create_graph: bool, complaint: str) -> tuple | None:
    """The vector of a product, checked against what it multiplies."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(complaint)
        return None
    _, given = _tensors(v, "v", function)
    given = _tracked(given, create_graph, live=False)
    if len(given) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}."
            if many
            else "The given v should contain a single Tensor."
        )
    for i, (g, t) in enumerate(zip(given, like, strict=True)):
        if g.shape != t.shape:
            lead = f"Entry {i} in " if many else ""
            raise RuntimeError(f"{lead}v has invalid size: should be {t.shape} but got {g.shape}.")
    return given


def _check_live(tensors: tuple, complaint: str, strict: bool) -> None:
    """In strict mode every one must be there and depend on the inputs."""
    if not strict:
        return
    for i, t in enumerate(tensors):
        if t is None:
            raise RuntimeError(words.INDEPENDENT.format(i))
        if not t.requires_grad:
            raise RuntimeError(complaint.format(i))


def _gradients(outputs: tuple, inputs: tuple, gs: tuple | None = None, **options) -> tuple:
    """Gradients of those outputs that have any; None where nothing leads to an input."""
    given = zip(outputs, gs or (None,) * len(outputs), strict=True)
    pairs = [(o, g) for o, g in given if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return grad([o for o, _ in pairs], inputs, [g for _, g in pairs], allow_unused=True, **options)


def _filled(grads: tuple, like: tuple, strict: bool, create_graph: bool, stage: words.Stage) -> tuple:
    """Zeros for gradients that are not there, which in strict mode is an error."""
    result = []
    for i, (g, t) in enumerate(zip(grads, like, strict=True)):
        if g is None and strict:
            raise RuntimeError(stage.absent.format(i))
        if g is not None and strict and create_graph and not g.requires_grad:
            raise RuntimeError(stage.constant.format(i))
        result.append(zeros_like(t) if g is None else g)
    return tuple(result)


def _finish(grads: Callable[[], tuple], create_graph: bool) -> tuple:
    """The last gradient computation: recorded if it must be, else as the caller's mode says."""
    if not create_graph:
        return grads()
    with set_grad_enabled(True):
        return grads()


# ---- products
def vjp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(outputs, v^T J)."""
    with modes.masked(0, modes.GRAD):
        many_in, xs = _tensors(inputs, "inputs", "vjp")
        xs = _tracked(xs, create_graph)
        many_out, outputs = _outputs(func(*xs), "vjp", strict)
        v = _vector(v, outputs, many_out, "vjp", create_graph, words.V_OF_OUTPUT)
    result = _finish(lambda: _gradients(outputs, xs, v, create_graph=create_graph), create_graph)
    result = _filled(result, xs, strict, create_graph, words.BACK)
    outputs, result = _settled(outputs, create_graph), _settled(result, create_graph)
    return _as_given(outputs, many_out), _as_given(result, many_in)


def jvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(outputs, J v)."""
    with modes.masked(0, modes.GRAD):
        many_in, xs = _tensors(inputs, "inputs", "jvp")
        xs = _tracked(xs, create_graph)
        v = _vector(v, xs, many_in, "jvp", create_graph, words.V_OF_INPUT)
        many_out, outputs = _outputs(func(*xs), "jvp", strict)
        seeds = tuple(zeros_like(o, requires_grad=True) for o in outputs)
        pulled = _gradients(outputs, xs, seeds, create_graph=True)
        _check_live(pulled, words.GRADIENT, strict)
    result = _finish(lambda: _gradients(pulled, seeds, v, create_graph=create_graph), create_graph)
    result = _filled(result, outputs, strict, create_graph, words.BACK_TRICK)
    outputs, result = _settled(outputs, create_graph), _settled(result, create_graph)
    return _as_given(outputs, many_out), _as_given(result, many_out)


def _single(x, function: str, strict: bool) -> tuple:
    """The output of a function to scalars."""
    many, result = _outputs(x, function, strict)
    if many:
        raise RuntimeError(f"The function given to {function} should return a single Tensor")
    if result[0].numel() != 1:
        raise RuntimeError(f"The Tensor returned by the function given to {function} should contain a single element")
    return result


def _scalar_gradient(func: Callable, inputs, v, create_graph: bool, strict: bool, name: str) -> tuple:
    """What vhp and hvp start with: (whether inputs are a tuple, inputs, v, outputs, gradients)."""
    many, xs = _tensors(inputs, "inputs", name)
    xs = _tracked(xs, create_graph)
    v = _vector(v, xs, many, name, create_graph, words.V_OF_INPUT)
    outputs = _single(func(*xs), name, strict)
    jac = _gradients(outputs, xs, create_graph=True)
    _check_live(jac, words.JACOBIAN, strict)
    return many, xs, v, outputs, jac


def vhp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(output, v^T H) of a function to scalars."""
    with modes.masked(0, modes.GRAD):
        many, xs, v, outputs, jac = _scalar_gradient(func, inputs, v, create_graph, strict, "vhp")
    result = _finish(lambda: _gradients(jac, xs, v, create_graph=create_graph), create_graph)
    result = _filled(result, xs, strict, create_graph, words.DOUBLE_BACK)
    return _settled(outputs, create_graph)[0], _as_given(_settled(result, create_graph), many)


def hvp(func: Callable, inputs, v=None, create_graph: bool = False, strict: bool = False) -> tuple:
    """(output, H v) of a function to scalars."""
    with modes.masked(0, modes.GRAD):
        many, xs, v, outputs, jac = _scalar_gradient(func, inputs, v, create_graph, strict, "hvp")
        seeds = tuple(zeros_like(x, requires_grad=True) for x in xs)
        pulled = _gradients(jac, xs, seeds, create_graph=True)
        _check_live(jac, words.HESSIAN, strict)
    result = _finish(lambda: _gradients(pulled, seeds, v, create_graph=create_graph), create_graph)
    result = _filled(result, xs, strict, create_graph, words.DOUBLE_BACK_TRICK)
    return _settled(outputs, create_graph)[0], _as_given(_settled(result, create_graph), many)


# ---- whole matrices
def jacobian(
    func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    strategy: str = "reverse-mode",
):  # fmt: skip
    """For each output and input a tensor of shape (*output.shape, *input.shape)."""
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs '
            'than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _by_forward_mode(func, inputs, create_graph, strict, vectorize)
    with modes.masked(0, modes.GRAD):
        many_in, xs = _tensors(inputs, "inputs", "jacobian")
        xs = _tracked(xs, create_graph)
        many_out, outputs = _outputs(func(*xs), "jacobian", strict)
        if vectorize and strict:
            raise RuntimeError(words.TOGETHER.format("`vectorized=True`", "", "`vectorize=False`"))
        rows = _rows_at_once if vectorize else _rows_one_by_one
        result = rows(outputs, xs, create_graph, strict)
    return _matrix(_settled(result, create_graph), many_out, many_in)


def _matrix(blocks: tuple, many_out: bool, many_in: bool):
    return _as_given(tuple(_as_given(row, many_in) for row in blocks), many_out)


def _rows_one_by_one(outputs: tuple, xs: tuple, create_graph: bool, strict: bool) -> tuple:
    """One backward per element of the outputs."""
    result = []
    for i, out in enumerate(outputs):
        columns: list[list] = [[] for _ in xs]
        for element in out.reshape(-1):
            got = _gradients((element,), xs, retain_graph=True, create_graph=create_graph)
            for j, (column, g, x) in enumerate(zip(columns, got, xs, strict=True)):
                if strict and g is None:
                    raise RuntimeError(words.OUTPUT_INDEPENDENT.format(i, j))
                if strict and create_graph and not g.requires_grad:
                    raise RuntimeError(words.BACK.constant.format(i))
                column.append(zeros_like(x) if g is None else g)
        result.append(tuple(_stacked(c, (*out.shape, *x.shape), x) for c, x in zip(columns, xs, strict=True)))
    return tuple(result)


def _stacked(parts: list, shape: tuple, like: Tensor) -> Tensor:
    return stack(parts).view(shape) if parts else like.new_zeros(shape)


def _basis(tensors: tuple) -> tuple:
    """For tensors of n elements in all, n unit vectors, each split over the tensors."""
    total = sum(t.numel() for t in tensors)
    result, at = [], 0
    for t in tensors:
        chunk = t.new_zeros((total, t.numel()))
        chunk[at : at + t.numel()].fill_diagonal_(1)
        result.append(chunk)
        at += t.numel()
    return tuple(result)


def _rows_at_once(outputs: tuple, xs: tuple, create_graph: bool, strict: bool) -> tuple:
    """One backward for all elements, by vmap."""
    sizes = [o.numel() for o in outputs]
    flat = tuple(o.reshape(-1) for o in outputs)
    got = _gradients(flat, xs, _basis(outputs), create_graph=create_graph, is_grads_batched=True)
    got = [x.new_zeros((sum(sizes), *x.shape)) if g is None else g for g, x in zip(got, xs, strict=True)]
    pieces = [g.split(sizes) for g in got]
    return tuple(
        tuple(piece[i].reshape((*o.shape, *x.shape)) for piece, x in zip(pieces, xs, strict=True))
        for i, o in enumerate(outputs)
    )


def _check_forward_mode(inputs, create_graph: bool, strict: bool, vectorize: bool) -> tuple[bool, tuple]:
    """What forward mode cannot do is refused; the inputs otherwise."""
    if create_graph:
        raise NotImplementedError(words.FORWARD_TOGETHER.format("create_graph=True", "create_graph=False"))
    if strict:
        raise RuntimeError(words.FORWARD_TOGETHER.format("strict=True", "strict=False"))
    checked = _tensors(inputs, "inputs", "jacobian")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )
    return checked


def _by_forward_mode(func: Callable, inputs, create_graph: bool, strict: bool, vectorize: bool):
    many_in, xs = _check_forward_mode(inputs, create_graph, strict, vectorize)
    seen: list = []

    def push(*tangents) -> tuple:
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(x, t.view(x.shape)) for x, t in zip(xs, tangents, strict=True)]
            many, outputs = _tensors(func(*duals), "outputs", "jacobian")
            parts = [forward_ad.unpack_dual(o) for o in outputs]
        seen[:] = [many, [tuple(p.shape) for p, _ in parts]]
        return tuple(zeros_like(p) if t is None else t for p, t in parts)

    columns = vmap(push)(*_basis(xs))
    many_out, shapes = seen
    sizes = [x.numel() for x in xs]
    blocks = tuple(
        tuple(
            piece.movedim(0, -1).reshape((*shape, *x.shape)) for piece, x in zip(column.split(sizes), xs, strict=True)
        )
        for column, shape in zip(columns, shapes, strict=True)
    )
    return _matrix(blocks, many_out, many_in)


def hessian(
    func: Callable, inputs, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
):  # fmt: skip
    """Second derivatives of a function to scalars: for each pair of inputs a tensor of both shapes."""
    many, xs = _tensors(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*given) -> Tensor:
        return _single(func(*given), "hessian", strict)[0].squeeze()

    if outer_jacobian_strategy == "forward-mode":
        _check_forward_mode(xs, create_graph, strict, vectorize)
        result = above.forward_over_reverse(scalar, xs)
        return result if many else result[0][0]

    def gradient(*given) -> tuple:
        jac = jacobian(scalar, given, create_graph=True)
        _check_live(jac, words.JACOBIAN, strict)
        return jac

    result = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return result if many else result[0][0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
