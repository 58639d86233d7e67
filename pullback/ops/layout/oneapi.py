"""What MKL-DNN says of the processor. There is none here: every dtype is computed everywhere."""

from __future__ import annotations

from ..family.base import composite


def _supported(name: str) -> None:
    composite(f"{name}() -> bool", library="mkldnn", function=False, method=False, out=False)(lambda: True)


_supported("_is_mkldnn_bf16_supported")
_supported("_is_mkldnn_fp16_supported")
