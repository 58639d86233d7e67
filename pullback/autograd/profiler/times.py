"""How times, shares and amounts of memory are written, and the names under which events answer for them."""

from __future__ import annotations

UNITS = (("s", 1e6), ("ms", 1e3), ("us", 1.0))
_BYTES = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))


def format_time(time_us: float) -> str:
    """Microseconds in the unit that suits them: `12.500ms`."""
    for unit, size in UNITS[:2]:
        if time_us >= size:
            return f"{time_us / size:.3f}{unit}"
    return f"{time_us:.3f}us"


def format_time_in(time_us: float, unit: str | None) -> str:
    """Microseconds in a given unit ("s", "ms", "us"), or in the one that suits them."""
    return format_time(time_us) if unit is None else f"{time_us / dict(UNITS)[unit]:.3f}{unit}"


def format_share(time_us: float, total_us: float) -> str:
    """A part of a whole in percent; where the whole is nothing, so is the part."""
    return f"{time_us * 100 / total_us:.2f}%" if total_us else "NaN" if time_us else "0.00%"


def format_memory(nbytes: float) -> str:
    """A number of bytes in the unit that suits it: `1.50 KB`."""
    for unit, size in _BYTES:
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _written(name: str) -> property:
    return property(lambda self: format_time(getattr(self, name)), doc=f"`{name}`, with its unit.")


class FormattedTimesMixin:
    """Times as text, and means from totals. Whoever inherits has `count` and the totals."""

    count: int
    cpu_time_total: float
    device_time_total: float

    cpu_time_str = _written("cpu_time")
    device_time_str = _written("device_time")
    cpu_time_total_str = _written("cpu_time_total")
    device_time_total_str = _written("device_time_total")
    self_cpu_time_total_str = _written("self_cpu_time_total")
    self_device_time_total_str = _written("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        """Mean time of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Mean time of a call on a device other than the CPU."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time
