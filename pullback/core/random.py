"""The random generator: a Mersenne twister whose CPU streams are PyTorch's.

In comes a seed or a saved state; out come 32-bit words, 64-bit words, and floats and doubles in [0, 1), in the order in
which PyTorch's CPU generator hands them out. `random_streams` turns them into distributions.

What always holds: same seed, same words. `state_bytes` has PyTorch's 5056-byte layout, so states travel between the
two. A generator's lock is held while numbers are drawn, so that two threads never see the same word or tear the state.
The engine is made at the first draw: importing this module does not load NumPy's random module.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

from . import device as devices
from .cupy_library import device_count, loaded
from .extension import extension
from .modes import outside_graphs

DEFAULT_SEED = 67280421310721
STATE_WORDS = 624
SMALL_DRAW = 2048  # below this many words the engine's own call is cheaper than RandomState's

# PyTorch's `CPUGeneratorImplState`: the state of its first generator, then what was added later.
STATE_LAYOUT = np.dtype(
    {
        "names": ["seed", "left", "seeded", "next", "state", "normal", "normal_valid", "float_normal", "float_valid"],
        "formats": ["<u8", "<i4", "<i4", "<u8", ("<u8", STATE_WORDS), "<f8", "<i4", "<f4", "u1"],
        "offsets": [0, 8, 12, 16, 24, 5024, 5040, 5048, 5052],
        "itemsize": 5056,
    }
)


class Generator:
    """A source of random numbers with its own seed and state.

    `next_normal` is the second value of the last Box-Muller pair, kept for the next normal number; whoever reads or
    sets it, or draws more than once for one result, holds `lock`.

    >>> generator = torch.Generator().manual_seed(0)
    >>> torch.rand(2, generator=generator)
    tensor([0.4963, 0.7682])
    """

    __slots__ = (
        "device", "lock", "next_normal", "_next_float_normal", "_seed", "_fresh", "_engine", "_bulk", "__weakref__",
    )  # fmt: skip

    def __new__(cls, device: devices.device | str | None = "cpu"):
        if cls is Generator and device is not None and devices.device(device).type == "cuda":
            from .random_philox import PhiloxGenerator

            cls = PhiloxGenerator
        return object.__new__(cls)

    def __init__(self, device: devices.device | str | None = "cpu"):
        device = devices.cpu if device is None else devices.device(device)
        if device.type != "cpu":
            raise RuntimeError(f"Cannot make a generator for device type '{device.type}': only cpu has one")
        self.device = devices.cpu
        self.lock = threading.RLock()
        self._engine: Any = None  # NumPy's, made at first need
        self._bulk: Any = None
        self._reseed(DEFAULT_SEED)

    # ---- seeds
    @outside_graphs("it seeds random numbers")
    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`, which is any integer of 64 bits; a negative one stands for `seed + 2**64`."""
        if type(seed) is not int:
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        with self.lock:
            self._reseed(seed % (1 << 64))
        return self

    @outside_graphs("it seeds random numbers")
    def seed(self) -> int:
        """Start the stream of a seed that the system chooses, and return that seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        with self.lock:
            self._reseed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed that started the current stream."""
        return self._seed

    def _reseed(self, seed: int) -> None:
        self._seed = seed
        self._fresh = True
        self.next_normal: float | None = None
        self._next_float_normal: float | None = None
        if self._bulk is not None:
            self._bulk.seed(seed & 0xFFFFFFFF)

    # ---- state
    def state_bytes(self) -> np.ndarray:
        """The whole state as 5056 bytes, in PyTorch's layout."""
        out = np.zeros((), STATE_LAYOUT)
        with self.lock:
            state = self._loaded().state["state"]
            used = state["pos"]
            out["seed"], out["seeded"] = self._seed, 1
            out["left"] = STATE_WORDS + 1 - used
            # Nothing drawn since seeding: PyTorch says "one left, next is the first", not "next is past the last".
            out["next"] = 0 if self._fresh else used
            out["state"] = state["key"]
            if self.next_normal is not None:
                out["normal"], out["normal_valid"] = self.next_normal, 1
            if self._next_float_normal is not None:
                out["float_normal"], out["float_valid"] = self._next_float_normal, 1
        return out.reshape(1).view(np.uint8)

    def set_state_bytes(self, state: np.ndarray) -> None:
        """Take over a state that `state_bytes`, or PyTorch, has given."""
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        size = STATE_LAYOUT.itemsize
        if state.size != size:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {size} but found the input RNG state size to be {state.size}"
            )
        given = np.ascontiguousarray(state).reshape(-1).view(STATE_LAYOUT)[0]
        left, following = int(given["left"]), int(given["next"])
        # `next` follows from `left`, except right after seeding, where it is 0 with one left.
        fresh = left == 1 and following == 0
        if not given["seeded"] or not 0 < left <= STATE_WORDS or not (fresh or following == STATE_WORDS + 1 - left):
            raise RuntimeError("Invalid mt19937 state")
        with self.lock:
            key = given["state"].astype(np.uint32)
            self._loaded().state = {"bit_generator": "MT19937", "state": {"key": key, "pos": STATE_WORDS + 1 - left}}
            self._seed = int(given["seed"])
            self._fresh = fresh
            self.next_normal = float(given["normal"]) if given["normal_valid"] else None
            self._next_float_normal = float(given["float_normal"]) if given["float_valid"] else None

    def clone_state(self) -> Generator:
        """A generator of its own that goes on from the same state."""
        return _restore(self.state_bytes())

    def __reduce__(self):
        return (_restore, (self.state_bytes(),))

    def __setstate__(self, state: tuple) -> None:
        """Take over what PyTorch's files keep: the seed, an offset (none on the CPU), and the state as a tensor."""
        self.set_state_bytes(state[2]._array)

    def get_offset(self) -> int:
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        raise RuntimeError("CPU Generator does not use offset")

    def graphsafe_get_state(self) -> Generator:
        raise NotImplementedError("graphsafe_get_state is not supported in this Generator")

    def graphsafe_set_state(self, state: Generator) -> Generator:
        raise NotImplementedError("graphsafe_set_state is not supported in this Generator")

    # ---- draws
    def _loaded(self) -> Any:
        """The engine, made and seeded at first need."""
        if self._engine is None:
            from numpy.random import MT19937, RandomState

            self._engine = MT19937(0)
            # Its streams are frozen for good, and it fills large arrays faster than `random_raw` does.
            self._bulk = RandomState(self._engine)
            self._bulk.seed(self._seed & 0xFFFFFFFF)
        return self._engine

    def words(self, count: int) -> np.ndarray:
        """The next `count` words of 32 bits, as uint32."""
        with self.lock:
            engine = self._engine or self._loaded()
            if count:
                self._fresh = False
            if count < SMALL_DRAW:
                return engine.random_raw(count).astype(np.uint32)
            return self._bulk.randint(0, 1 << 32, count, np.uint32)

    def words64(self, count: int) -> np.ndarray:
        """The next `count` words of 64 bits, as uint64: of two 32-bit words the first is the upper half."""
        pairs = self.words(2 * count).reshape(count, 2)
        out = np.empty((count, 2), "<u4")
        out[:, 1], out[:, 0] = pairs[:, 0], pairs[:, 1]
        return out.view("<u8").reshape(count)

    def floats(self, count: int) -> np.ndarray:
        """The next `count` float32 numbers in [0, 1): the low 24 bits of one word each."""
        words = self.words(count)
        words &= np.uint32((1 << 24) - 1)
        out = words.view(np.int32).astype(np.float32)
        out *= np.float32(2.0**-24)
        return out

    def doubles(self, count: int) -> np.ndarray:
        """The next `count` float64 numbers in [0, 1): the low 53 bits of two words each."""
        words = self.words64(count)
        words &= np.uint64((1 << 53) - 1)
        out = words.view(np.int64).astype(np.float64)
        out *= 2.0**-53
        return out

    def mark(self) -> tuple[dict, bool]:
        """Where the stream of words stands now, for `rewind`. The caller holds the lock until then."""
        return self._loaded().state, self._fresh

    def rewind(self, mark: tuple[dict, bool], words: int) -> None:
        """Go back to a mark and from there `words` words ahead: what was drawn beyond them counts as not drawn."""
        engine = self._loaded()
        engine.state, fresh = mark
        self._fresh = fresh and not words
        if words:
            engine.random_raw(words, output=False)


def _restore(state: np.ndarray) -> Generator:
    generator = Generator()
    generator.set_state_bytes(state)
    return generator


default_generator = Generator()
default_generator.seed()
for _name in ("_draws", "_trials"):
    if (_drawing := extension(_name)) is not None:
        _drawing.use_generators(Generator, default_generator)


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; as in PyTorch, whatever `int` takes is a seed."""
    seed_devices(int(seed))
    return default_generator.manual_seed(int(seed))


# ---- generators of CUDA devices: made at first need
device_generators: dict[int, Generator] = {}
_device_seed: list[int] = []  # the seed of devices whose generators are still to be made


def seed_devices(seed: int, index: int | None = None) -> None:
    """Seed the default generators of all CUDA devices, or of one: those that are there now, and those that come."""
    if index is None:
        _device_seed[:] = [seed]
    for number, generator in device_generators.items():
        if index is None or index == number:
            generator.manual_seed(seed)


def generator_of(where: devices.device) -> Generator:
    """The default generator of a device."""
    if not where.keys:
        return default_generator
    where = devices.indexed(where)
    found = device_generators.get(where.index or 0)
    if found is None:
        found = device_generators[where.index or 0] = Generator(where)
        if _device_seed:
            found.manual_seed(_device_seed[0])
        else:
            found.seed()
    return found


def states() -> dict[int | None, np.ndarray]:
    """The states of all default generators: the CPU's under None, those of CUDA devices in use under their numbers."""
    if loaded.cache_info().currsize:  # devices are in use: one that draws for the first time later on is made now
        for index in range(device_count()):
            generator_of(devices.device("cuda", index))
    return {None: default_generator.state_bytes()} | {i: g.state_bytes() for i, g in device_generators.items()}


def set_states(states: dict[int | None, np.ndarray]) -> None:
    """Take over what `states` has given."""
    for index, state in states.items():
        generator = default_generator if index is None else generator_of(devices.device("cuda", index))
        generator.set_state_bytes(state)


def draw(fill, generator: Generator | None, out, *parameters):
    """`fill(generator, out, *parameters)`, where the array is; without a generator, by the default one of its device."""
    if isinstance(out, np.ndarray):
        generator = generator or default_generator
        if generator.device.type != "cpu":
            raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
        return fill(generator, out, *parameters)
    from .random_philox import draw_on_device

    return draw_on_device(fill, generator or generator_of(devices.device("cuda", out.device.id)), out, *parameters)


def seed() -> int:
    """Seed the default generator with a number that the system chooses, and return that number."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()
