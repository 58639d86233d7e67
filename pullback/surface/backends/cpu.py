"""What the processor offers."""

from __future__ import annotations


def get_cpu_capability() -> str:
    """The widest vector instructions: "AVX512", "AVX2" or "DEFAULT"."""
    from ..cpu import get_capabilities

    found = get_capabilities()
    return (
        "AVX512"
        if found["avx512_f"] and found["avx512_vl"]
        else "AVX2"
        if found["avx2"] and found["fma3"]
        else "DEFAULT"
    )
