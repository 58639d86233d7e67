"""Gradients of each sample of a batch: `call_for_per_sample_grads(module)(x)`.

In: a module, and the batch that it is called with. Out: what the module gives. When a loss of it is differentiated, each
parameter that requires a gradient gets `grad_sample`, with a gradient for every sample (the first dimension), in the place of
`grad`. Always holds: the module sees one sample at a time (a batch of one), so that what mixes samples cannot give wrong
gradients: batch norm in training raises.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd.function import Function
from ...batching.vmap import vmap
from ...core.tensor import Tensor
from ...func import functional_call
from ..module import Module


class _ForEachSample(Function):
    """A parameter once for each sample; its gradients are kept for each, and not summed."""

    @staticmethod
    def forward(ctx: Any, parameter: Tensor, count: int, factor: int) -> Tensor:
        ctx.parameter, ctx.factor = parameter, factor
        return parameter.detach().expand(count, *parameter.shape)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, None]:  # type: ignore[override]
        parameter, gradient = ctx.parameter, gradient * ctx.factor if ctx.factor != 1 else gradient
        before = getattr(parameter, "grad_sample", None)
        parameter.grad_sample = gradient.detach() if before is None else before + gradient.detach()
        return None, None, None


def _batch_size(tensors: list[Tensor], dim: int) -> int:
    sizes = {t.shape[dim] for t in tensors if t.ndim > dim}
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able and so ExpandedWeights cannot "
            "compute the batch size from the inputs. Please specify it explicitly"
        )
    if len(sizes) > 1:
        one, other = sorted(sizes)[:2]
        raise RuntimeError(
            f"When computing batch size, found at least one input with batch size {one} and one with batch size {other}. "
            "Please specify it explicitly using the batch size kwarg in call_for_per_sample_grads"
        )
    return sizes.pop()


def _checked(module: Any, batch_size: Any, loss_reduction: str) -> None:
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if batch_size is not None and not isinstance(batch_size, int):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Gradients of samples are added to those that are there, which is incorrect for multiple calls without "
                f"clearing them in between: set the grad_sample of {name} to None"
            )


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """A function that calls the module so that backward sets `grad_sample` on its parameters.

    `loss_reduction` says how the loss joins samples: for a mean, gradients are multiplied by their number.
    """
    _checked(module, batch_size, loss_reduction)
    dim = 0 if batch_first else 1

    def call(*args: Any, **kwargs: Any) -> Any:
        given = [v for v in (*args, *kwargs.values()) if isinstance(v, Tensor)]
        count = batch_size or _batch_size(given, dim)
        factor = count if loss_reduction == "mean" else 1
        parameters = {
            name: _ForEachSample.apply(p, count, factor) for name, p in module.named_parameters() if p.requires_grad
        }
        where = [dim if isinstance(v, Tensor) and v.ndim > dim and v.shape[dim] == count else None for v in args]
        named = {
            k: dim if isinstance(v, Tensor) and v.ndim > dim and v.shape[dim] == count else None
            for k, v in kwargs.items()
        }

        def one(parameters: dict[str, Tensor], args: tuple, kwargs: dict[str, Any]) -> Any:
            alone = [v if d is None else v.unsqueeze(dim) for v, d in zip(args, where, strict=True)]
            rest = {k: v if named[k] is None else v.unsqueeze(dim) for k, v in kwargs.items()}
            result = functional_call(module, parameters, tuple(alone), rest)
            if isinstance(result, Tensor) and result.ndim > dim and result.shape[dim] != 1:
                raise RuntimeError(
                    f"Expected ExpandedWeights to have batch size matching input, but for one sample of {count} the module gave "
                    f"{result.shape[dim]}: does it read tensors that no argument is, or contains?"
                )
            return _each(result, dim)

        dims = (dict.fromkeys(parameters, 0), tuple(where), named)
        return vmap(one, in_dims=dims, out_dims=dim, randomness="different")(parameters, args, kwargs)

    return call


def _each(result: Any, dim: int) -> Any:
    """Several results without their batch of one."""
    if isinstance(result, Tensor):
        return result.squeeze(dim)
    if isinstance(result, (tuple, list)):
        return type(result)([_each(r, dim) for r in result])
    return {k: _each(v, dim) for k, v in result.items()} if isinstance(result, dict) else result
