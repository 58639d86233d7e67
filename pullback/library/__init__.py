"""`torch.library`: operators of the user's own, and kernels for operators there are.

In: schemas, functions and rules, registered while the program runs. Out: operators like all others, under `torch.ops`.
What always holds: what a library registered goes when the library goes, and a call that has no kernel, no fake rule or
no backward says which is missing.
"""

from __future__ import annotations

from .custom import CustomOpDef, custom_op
from .fake import get_ctx
from .functions import (
    define,
    get_kernel,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from .inference import infer_schema
from .kernels import fallthrough_kernel
from .opcheck import opcheck
from .registration import Library, _scoped_library
from .triton import triton_op, wrap_triton

__all__ = [
    "Library", "impl", "define", "fallthrough_kernel", "impl_abstract", "register_autocast", "register_autograd", "register_fake", "register_kernel",
    "register_torch_dispatch", "register_vmap", "get_ctx", "get_kernel", "custom_op", "triton_op", "wrap_triton", "infer_schema", "opcheck",
    "CustomOpDef", "_scoped_library",
]  # fmt: skip
