"""What PyTorch offers around other profilers: marker ranges for NVIDIA's and Intel's tools, and readers of their files.

Neither tool's library is part of this project: asking for a range or a file raises; a disabled range does nothing.
"""

from __future__ import annotations


class _Emit:
    """A block in which each operator would open a range in a foreign tool."""

    tool = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False):
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.entered = False

    def __enter__(self):
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError(f"{self.tool} annotation context manager is not reentrant")
        raise RuntimeError(f"{self.tool} functions not installed. Are you sure you have a {self.tool} build?")

    def __exit__(self, *exc) -> None:
        """Nothing was changed."""


class emit_nvtx(_Emit):
    """Ranges for Nsight: not available."""

    tool = "NVTX"


class emit_itt(_Emit):
    """Ranges for VTune: not available."""

    tool = "ITT"


def load_nvprof(path: str):
    """nvprof's traces are not read here."""
    raise NotImplementedError(f"load_nvprof({path!r}): traces of nvprof are not supported, there is no CUDA profiling")


def parse_nvprof_trace(path: str):
    """nvprof's traces are not read here."""
    raise NotImplementedError(
        f"parse_nvprof_trace({path!r}): traces of nvprof are not supported, there is no CUDA profiling"
    )


class EnforceUnique:
    """Raises when a key is seen twice."""

    def __init__(self) -> None:
        self.seen: set = set()

    def see(self, *key) -> None:
        if key in self.seen:
            raise RuntimeError("duplicate key: " + str(key))
        self.seen.add(key)


class KinetoStepTracker:
    """Steps counted by several requesters (profilers, optimizers): the current step is the largest count."""

    _counts: dict[str, int] = {}
    _current = 0

    @classmethod
    def init_step_count(cls, requester: str) -> None:
        """A requester starts where the count stands."""
        cls._counts[requester] = cls._current

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """Forget a requester; whether it was known."""
        return cls._counts.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """One more step of a requester; the current step comes back."""
        cls._counts[requester] = cls._counts.get(requester, cls._current) + 1
        cls._current = max(cls._current, *cls._counts.values())
        return cls._current

    @classmethod
    def current_step(cls) -> int:
        return cls._current
