"""`backward` and `grad`: arguments checked, roots and inputs turned into edges, then the engine."""

from __future__ import annotations

import numpy as np

from ..batching.vmap import vmap
from ..core.errors import warn_once
from ..core.modes import CAPTURE, LISTENING, TRANSFORM, ambient, is_grad_enabled
from ..core.node import GradientEdge, Node, edge_of, requires_grad
from ..core.objects import edge as edge_of_plain
from ..core.objects import make_tensor, starting
from ..core.tensor import PLAIN, Tensor
from ..ops.eager.functions import bypassing
from ..ops.make.factories import ones
from ..ops.make.like import ones_like
from ..ops.system.overrides import any_overridden, call_overridden, has_override
from .engine import run_graph


def calculate_shape(output, grad, is_grads_batched: bool) -> tuple:
    """The shapes of an output and its gradient as messages give them; nested tensors as tables of sizes."""
    out_shape = output._nested_tensor_size() if output.is_nested else output.shape
    grad_shape = grad._nested_tensor_size() if grad.is_nested else grad.shape[1:] if is_grads_batched else grad.shape
    return out_shape, grad_shape


def _as_list(x) -> list:
    return [x] if isinstance(x, (Tensor, GradientEdge, Node)) else list(x)


def _is_tensor_like(x) -> bool:
    """Whether an object that is no tensor handles functions of tensors itself."""
    return not isinstance(x, (Tensor, tuple, list)) and has_override(type(x))


def implicit_gradients(outputs: list, grads, batched: bool = False) -> list:
    """Cotangents of the outputs, ones for scalars where none is given; shapes are checked."""
    given = [None] * len(outputs) if grads is None else list(grads)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    return [_gradient_of(i, out, g, batched) for i, (out, g) in enumerate(zip(outputs, given, strict=True))]


@bypassing("ones_like.default")
def _plain_ones(out: Tensor) -> Tensor | None:
    """The gradient of a plain result with respect to itself, where it has one element and a gradient; else None."""
    array = out._array
    if array.size != 1 or not out.dtype.is_floating_point or not requires_grad(out):
        return None
    return make_tensor(_units[array.dtype].copy() if array.ndim == 0 else np.ones(array.shape, array.dtype), out.dtype)


class _Units(dict):
    """A one of no dimensions, by NumPy's dtype."""

    def __missing__(self, dtype: np.dtype) -> np.ndarray:
        self[dtype] = result = np.ones((), dtype)
        return result


_units = _Units()


def _gradient_of(i: int, out, g, batched: bool):
    if g is None and out.__class__ in PLAIN and not out._keys and ambient.mode < LISTENING:
        result = _plain_ones(out)
        if result is not None:
            return result
    edge = isinstance(out, GradientEdge)
    shape, dtype, _ = out.node.outputs[out.output_nr] if edge else (tuple(out.shape), out.dtype, None)
    if g is None:
        if edge:
            if _numel(shape) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            return ones(shape, dtype=dtype)
        if not requires_grad(out):
            return None
        if out.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not dtype.is_floating_point:
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {dtype}")
        return ones_like(out)
    if not isinstance(g, Tensor):
        raise TypeError("gradients can be either Tensors or None, but got " + type(g).__name__)
    have = tuple(g.shape)[1:] if batched else tuple(g.shape)
    if have != tuple(shape):
        lead = (
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
            if batched
            else "Mismatch in shape: "
        )
        tail = (
            " If you only want some tensors in `grad_output` to be considered batched, consider using vmap."
            if batched
            else ""
        )
        raise RuntimeError(
            f"{lead}grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape if not edge else list(shape)}.{tail}"
        )
    if dtype.is_complex != g.dtype.is_complex:
        raise RuntimeError(
            f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{i}] has a dtype of {g.dtype} and output[{i}] has a dtype of {dtype}."
        )
    return g


def _numel(shape) -> int:
    n = 1
    for s in shape:
        n *= s
    return n


def root_edges(outputs: list) -> list:
    """Where gradients of the outputs enter the graph."""
    edges = []
    for i, out in enumerate(outputs):
        edge = (out.node, out.output_nr) if isinstance(out, GradientEdge) else edge_of(out)
        if edge is None:
            raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
        edges.append(edge)
    return edges


def input_edges(inputs: list) -> list:
    """Where gradients of the inputs arrive."""
    edges = []
    for t in inputs:
        found = edge_of_plain(t) if t.__class__ in PLAIN else None
        if found is not None:
            edges.append(found)
        elif isinstance(t, GradientEdge):
            edges.append((t.node, t.output_nr))
        elif isinstance(t, Node):
            edges.append((t, 0))
        else:
            if not requires_grad(t):
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            edges.append(edge_of(t) or _NOWHERE)
    return edges


_NOWHERE = (Node(), 0)  # of a view that was made before its base was told to require grad: no gradient arrives there


def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Compute gradients of the leaves that `tensors` depend on, and add them to their `.grad`."""
    if ambient.mode & CAPTURE:
        ambient.captures[-1].refuse(
            "it calls backward(), which adds to .grad of tensors that are no results of the graph"
        )

    if _is_tensor_like(tensors):
        return call_overridden(
            backward, ((tensors,),), {"grad_tensors": grad_tensors, "retain_graph": retain_graph, "create_graph": create_graph,
                                      "inputs": inputs},
        )  # fmt: skip
    if ambient.mode & TRANSFORM:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use functorch.grad or functorch.vjp instead or call backward() outside of functorch transforms."
        )
    if grad_variables is not None:
        import warnings

        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    if inputs is not None and not isinstance(inputs, (Tensor, GradientEdge)) and not len(inputs):
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = _as_list(tensors)
    grads = implicit_gradients(outputs, None if grad_tensors is None else _as_list(grad_tensors))
    keep = create_graph if retain_graph is None else retain_graph
    edges = root_edges(outputs)
    if create_graph:
        warn_once(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can cause a memory leak. We "
            "recommend using autograd.grad when creating the graph to avoid this. If you have to use this function, make sure to reset the .grad fields "
            "of your parameters to None after use to break the cycle and avoid the leak."
        )
    if inputs is None:
        run_graph(edges, grads, keep, create_graph)
        return
    targets = _as_list(inputs)
    for t in targets:
        if isinstance(t, Tensor) and requires_grad(t) and not t.is_leaf:
            t.retain_grad()
    run_graph(edges, grads, keep, create_graph, input_edges(targets), accumulate_inputs=True)


def backward_from_scalar(out: Tensor, keep_graph: bool) -> bool:
    """`backward(out)` where nobody listens to calls and `out` is a plain tensor: whether that was all; nothing is done where not."""
    one = _plain_ones(out)
    if one is not None:
        run_graph([edge_of(out)], [one], keep_graph, False)
    return one is not None


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False, only_inputs: bool = True,
         allow_unused: bool | None = None, is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple:  # fmt: skip
    """Gradients of `outputs` with respect to `inputs`, returned."""
    offered = (outputs.__class__ not in PLAIN or inputs.__class__ not in PLAIN) and any_overridden((outputs, inputs))
    if ambient.mode < LISTENING and only_inputs and not (is_grads_batched or materialize_grads or offered):
        result = _plain_gradients(
            outputs, inputs, grad_outputs, create_graph if retain_graph is None else retain_graph, create_graph
        )
        if result is not None:
            if not allow_unused and None in result:
                raise RuntimeError(UNUSED)
            return result
    if ambient.mode & CAPTURE:
        given = (
            outputs,
            inputs,
            grad_outputs,
            retain_graph,
            create_graph,
            only_inputs,
            allow_unused,
            is_grads_batched,
            materialize_grads,
        )
        return ambient.captures[-1].call(grad, given, {})
    if offered:
        wrap = lambda x: (x,) if isinstance(x, Tensor) or _is_tensor_like(x) else tuple(x)
        options = {
            "grad_outputs": grad_outputs, "retain_graph": retain_graph, "create_graph": create_graph,
            "only_inputs": only_inputs, "allow_unused": bool(allow_unused), "is_grads_batched": is_grads_batched,
            "materialize_grads": materialize_grads,
        }  # fmt: skip
        return call_overridden(grad, (wrap(outputs), wrap(inputs)), options)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    outputs, targets = _as_list(outputs), _as_list(inputs)
    if not targets:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    grads = implicit_gradients(outputs, None if grad_outputs is None else _as_list(grad_outputs), is_grads_batched)
    keep = create_graph if retain_graph is None else retain_graph
    edges, wanted = root_edges(outputs), input_edges(targets)
    if is_grads_batched:
        result = _batched(edges, wanted, grads, create_graph)
    else:
        result = tuple(run_graph(edges, grads, keep, create_graph, wanted))
    if materialize_grads:
        if any(g is None and not isinstance(t, Tensor) for g, t in zip(result, targets, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        return tuple(
            t.new_zeros(t.shape, requires_grad=create_graph and is_grad_enabled()) if g is None else g
            for g, t in zip(result, targets, strict=True)
        )
    if not allow_unused and any(g is None for g in result):
        raise RuntimeError(UNUSED)
    return result


UNUSED = "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."


def _plain_gradients(outputs, inputs, gradients, keep_graph: bool, create_graph: bool) -> tuple | None:
    """What `grad` gives for plain tensors, one by one or in lists; None where there is more to say of one, and nothing was done."""
    if gradients is None:
        several = outputs.__class__ in (
            tuple,
            list,
        )  # and neither objects like tensors, which come later, nor iterators
        out = outputs[0] if several and len(outputs) == 1 else outputs
        gradients = _plain_ones(out) if out.__class__ in PLAIN and not out._keys else None
        if gradients is None:
            return None
    found = starting(outputs, gradients, inputs)
    return None if found is None else tuple(run_graph(found[0], found[1], keep_graph, create_graph, found[2]))


def _batched(edges: list, wanted: list, grads: list, create_graph: bool) -> tuple:
    """One backward per row of the gradients, all at once by vmap."""
    unused: list = []

    def one(*gs):
        got = run_graph(edges, list(gs), True, create_graph, wanted)
        unused[:] = [g is None for g in got]
        return tuple(g for g in got if g is not None)

    result = iter(vmap(one)(*grads))
    return tuple(None if empty else next(result) for empty in unused)
