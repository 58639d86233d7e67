"""Timing statements (`torch.utils.benchmark`): `Timer` measures, `Measurement` is what it gives, `Compare` shows several."""

from .compare import Compare
from .measurement import Measurement, TaskSpec
from .timer import Timer, timer

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "timer"]
