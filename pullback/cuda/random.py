"""Random numbers of CUDA devices: one generator for each. Seeding for devices that may come is allowed without any."""

from __future__ import annotations

import os

from ..core.cupy_library import device_count
from ..core.device import current
from ..core.device import device as device_type
from ..core.random import Generator, generator_of, seed_devices
from .absent import index_of, on_device


def _generator(device=None) -> Generator:
    return generator_of(device_type("cuda", index_of(device)))


def manual_seed(seed: int) -> None:
    """Seed the device in use; without one, those that may come."""
    if device_count():
        _generator().manual_seed(int(seed))
    else:
        seed_devices(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed all devices."""
    seed_devices(int(seed))


def seed() -> None:
    """Seed the device in use at random."""
    if device_count():
        seed_devices(int.from_bytes(os.urandom(8), "little"), current["cuda"])


def seed_all() -> None:
    """Seed all devices at random, with one number."""
    seed_devices(int.from_bytes(os.urandom(8), "little"))


@on_device
def initial_seed(cupy) -> int:
    """The seed of the device in use."""
    return _generator().initial_seed()


@on_device
def get_rng_state(cupy, device="cuda"):
    """The state of a device's generator."""
    return _generator(device).get_state()


@on_device
def set_rng_state(cupy, new_state=None, device="cuda") -> None:
    """Set the state of a device's generator."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list:
    """One state for each device."""
    return [get_rng_state(i) for i in range(device_count())]


def set_rng_state_all(new_states) -> None:
    """One state for each device: anything but none at all needs devices."""
    for i, state in enumerate(new_states):
        set_rng_state(state, i)
