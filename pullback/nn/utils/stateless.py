"""`functional_call`, under the name it had before it moved to `torch.func`."""

from __future__ import annotations

import warnings

from ...func.stateless import functional_call as _functional_call


def functional_call(
    module, parameters_and_buffers: dict, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """Call a module with other tensors in the place of its parameters and buffers."""
    warnings.warn(
        "This API is deprecated as of PyTorch 2.0 and will be removed in a future version of PyTorch. Please use "
        "`torch.func.functional_call` instead, which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return _functional_call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
