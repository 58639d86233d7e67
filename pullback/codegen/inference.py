"""Native code in inference mode, whose tensors it does not know.

In: a call, and arguments of which some are tensors of inference mode. Out: what the call gives for plain tensors on the same memory, with
recording off; what is new of it, and what lies in memory of inference mode, are tensors of inference mode again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import modes
from ..core.modes import LISTENING, ambient
from ..core.tensor import INFERENCE_TENSOR, Tensor, assemble

RECORDING = modes.GRAD | modes.ASKED | modes.INFERENCE


def of_inference(call: Callable, args: Sequence) -> Any:
    """See the module's docstring. NotImplemented outside inference mode, and where somebody listens."""
    if not ambient.mode & modes.INFERENCE or ambient.mode & ~RECORDING >= LISTENING:
        return NotImplemented
    plain = [_plain(a) if isinstance(a, Tensor) and a._keys & INFERENCE_TENSOR else a for a in args]
    before = ambient.change(RECORDING)
    try:
        found = call(*plain)
    finally:
        ambient.restore(before)
    given = {id(p): a for p, a in zip(plain, args, strict=True)}
    lasting = {id(a._memory) for a in args if isinstance(a, Tensor) and not a._keys & INFERENCE_TENSOR} - {id(None)}
    back = lambda r: given[id(r)] if id(r) in given else _marked(r, lasting) if isinstance(r, Tensor) else r
    return type(found)([back(r) for r in found]) if isinstance(found, (tuple, list)) else back(found)


def _plain(t: Tensor) -> Tensor:
    """A plain tensor that is another in all but the mode that it was made in."""
    return assemble(
        Tensor, t._array, t.dtype, t.device, t._keys & ~INFERENCE_TENSOR, None, t._counter, t._memory, t._offset
    )


def _marked(t: Tensor, lasting: set[int]) -> Tensor:
    """A result, of inference mode unless it is a view of what is not."""
    if id(t._memory) not in lasting:
        t._keys |= INFERENCE_TENSOR
    return t
