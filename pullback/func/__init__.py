"""Function transforms: vmap, grad, vjp, jvp, jacrev, jacfwd, hessian, functional_call."""

from ..batching.batched import debug_unwrap
from ..batching.vmap import chunk_vmap, vmap
from ..core.layers import above
from . import custom  # noqa: F401 - custom functions inside vmap
from .derivatives import grad, grad_and_value, jvp, linearize, vjp
from .jacobians import hessian, jacfwd, jacrev
from .rearrange import rearrange
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state


def functionalize(func, *, remove: str = "mutations"):
    """`func` without writes to tensors (and, with `remove="mutations_and_views"`, without views): its inputs get their new
    values at the end. The layer that traces programs does it, and is loaded then."""
    return above.functionalize(func, remove)


__all__ = [
    "chunk_vmap", "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
