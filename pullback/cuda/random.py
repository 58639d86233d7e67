"""Random numbers of CUDA devices. Seeding for devices that may come is allowed; there is no state to read."""

from __future__ import annotations

from .absent import needs_device


def manual_seed(seed: int) -> None:
    """Seed the device in use: there is none to seed."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all devices: there are none."""
    int(seed)


def seed() -> None:
    """Seed the device in use at random: there is none to seed."""


def seed_all() -> None:
    """Seed all devices at random: there are none."""


def get_rng_state_all() -> list:
    """One state for each device."""
    return []


def set_rng_state_all(new_states) -> None:
    """One state for each device: anything but none at all needs devices."""
    if list(new_states):
        set_rng_state()


get_rng_state = needs_device("get_rng_state", "The state of a device's generator.")
set_rng_state = needs_device("set_rng_state", "Set the state of a device's generator.")
initial_seed = needs_device("initial_seed", "The seed of the device in use.")
