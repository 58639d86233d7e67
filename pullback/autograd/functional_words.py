"""What `functional` says when a function does not depend on its inputs as it must."""

from __future__ import annotations

from typing import NamedTuple

_STRICT = " This is not allowed in strict mode"

INDEPENDENT = f"The output of the user-provided function is independent of input {{}}.{_STRICT}."
OUTPUT_INDEPENDENT = f"Output {{}} of the user-provided function is independent of input {{}}.{_STRICT}."
OUTPUT = (
    "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode."
)
GRADIENT = (
    f"The gradient with respect to input {{}} is independent of the inputs of the user-provided function.{_STRICT}."
)
JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is "
    f"independent of the input.{_STRICT}. You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (this would be violated by a linear function for example)."
)
HESSIAN = (
    "The hessian of the user-provided function with respect to input {} is independent of the input."
    f"{_STRICT}. You should ensure that your function is thrice differentiable and that the hessian depends on the "
    "inputs."
)
V_OF_OUTPUT = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a single element."
)
V_OF_INPUT = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor with a single element."
)
TOGETHER = (
    "torch.autograd.functional.jacobian: `strict=True` and {} are not supported together{}. Please either set "
    "`strict=False` or {}."
)
FORWARD_TOGETHER = (
    'torch.autograd.functional.jacobian: `{}` and `strategy="forward-mode"` are not supported together (yet). Please '
    'either set `{}` or `strategy="reverse-mode"`.'
)


class Stage(NamedTuple):
    """The words for one kind of derivative: for a part that is absent, and for one that is constant."""

    absent: str
    constant: str


_JACOBIAN_CONSTANT = (
    f"The jacobian of the user-provided function is independent of input {{}}.{_STRICT} when create_graph=True."
)
_HESSIAN_CONSTANT = (
    f"The hessian of the user-provided function is independent of input {{}}.{_STRICT} when create_graph=True."
)

BACK = Stage(INDEPENDENT, _JACOBIAN_CONSTANT)
BACK_TRICK = Stage(
    "The gradient with respect to the input is independent of entry {} in the grad_outputs when using the double "
    f"backward trick to compute forward mode gradients.{_STRICT}.",
    _JACOBIAN_CONSTANT,
)
DOUBLE_BACK = Stage(
    f"The jacobian of the user-provided function is independent of input {{}}.{_STRICT}.", _HESSIAN_CONSTANT
)
DOUBLE_BACK_TRICK = Stage(
    f"The hessian of the user-provided function is independent of entry {{}} in the grad_jacobian.{_STRICT} as it "
    "prevents from using the double backward trick to replace forward mode AD.",
    _HESSIAN_CONSTANT,
)
