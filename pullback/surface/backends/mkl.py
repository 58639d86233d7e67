"""Intel's MKL: not called from here (NumPy's BLAS is whichever it was built with)."""

from __future__ import annotations

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    return False


class verbose:
    """Would print what MKL does inside a block: it does nothing."""

    def __init__(self, enable: int):
        self.enable = enable

    def __enter__(self):
        if self.enable != VERBOSE_OFF:
            raise RuntimeError("Failed to set MKL into verbose mode: MKL is not available.")
        return self

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""
