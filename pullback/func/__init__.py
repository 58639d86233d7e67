"""Function transforms: vmap, grad, vjp, jvp, jacrev, jacfwd, hessian, functional_call."""

from ..batching.batched import debug_unwrap
from ..batching.vmap import chunk_vmap, vmap
from . import custom  # noqa: F401 - custom functions inside vmap
from .derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .rearrange import rearrange
from .stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = [
    "chunk_vmap", "debug_unwrap", "functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
