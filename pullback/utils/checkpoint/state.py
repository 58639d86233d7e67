"""What a recomputation must find as the forward did: the random stream and autocast."""

from __future__ import annotations

from contextlib import contextmanager

from ...amp.autocast import casting
from ...core import modes
from ...core import random as generators
from ...core.device import device
from ...core.modes import ambient
from ...core.tensor import Tensor
from ...core.tree import tree_leaves


class DefaultDeviceType:
    """Which kind of device to keep random states of, where the arguments do not say."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._default_device_type or "cpu"


def get_device_states(*args) -> tuple[list[int], list]:
    """(numbers of the devices that arguments are on, their random states): the CPU is not among them."""
    found = [t for t in tree_leaves(args) if isinstance(t, Tensor) and t.device.type not in ("cpu", "meta")]
    if any(not t.is_cuda for t in found):
        raise NotImplementedError(f"random states of device type '{found[0].device.type}' cannot be kept")
    numbers = sorted({t.get_device() for t in found})
    return numbers, [generators.generator_of(device("cuda", n)).get_state() for n in numbers]


def set_device_states(devices: list, states: list, *, device_type: str | None = None) -> None:
    """Give devices their random states back."""
    for number, state in zip(devices, states, strict=True):
        generators.generator_of(device("cuda", number)).set_state(state)


class Surroundings:
    """The random stream and autocast as they are now."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.random = generators.states() if preserve_rng_state else None
        self.autocast = dict(ambient.autocast) if ambient.mode & modes.AUTOCAST else {}

    @contextmanager
    def again(self):
        """A block that runs as if it were then; afterwards all is as before."""
        random = generators.states() if self.random is not None else None
        try:
            if self.random is not None:
                generators.set_states(self.random)
            with casting(self.autocast) if self.autocast else modes.masked(modes.AUTOCAST):
                yield
        finally:
            if random is not None:
                generators.set_states(random)
