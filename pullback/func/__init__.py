"""Function transforms: vmap, grad, vjp, jvp, jacrev, jacfwd, hessian, functional_call."""

from ..batching.vmap import chunk_vmap, vmap
from . import custom  # noqa: F401 - custom functions inside vmap
from .derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .stateless import functional_call, stack_module_state

__all__ = [
    "chunk_vmap", "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip
