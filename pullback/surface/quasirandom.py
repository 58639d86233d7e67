"""`SobolEngine`: points that fill the unit cube evenly.

The direction numbers are Joe and Kuo's, as SciPy carries them; points come in Gray code order. Scrambling multiplies
each direction number by a random lower triangular matrix of bits and shifts by random bits; both are drawn as PyTorch draws
them, so the same seed gives the same points.
"""

from __future__ import annotations

import numpy as np

from ..core.random import Generator
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .settings import get_default_dtype


class SobolEngine:
    """Draws points of a Sobol sequence, one after the other."""

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._directions = _directions(dimension, self.MAXBIT)
        self._shift = np.zeros(dimension, np.int64)
        if scramble:
            self._scramble()
        self._state = self._shift.copy()
        self.num_generated = 0

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = Generator()
            generator.manual_seed(self.seed)
        randint = public("torch", "randint")
        bits, dims = self.MAXBIT, self.dimension
        shift = randint(2, (dims, bits), generator=generator).numpy()
        self._shift = shift @ (1 << np.arange(bits))
        matrices = np.tril(randint(2, (dims, bits, bits), generator=generator).numpy()) | np.eye(bits, dtype=np.int64)
        rows = matrices @ (1 << np.arange(bits - 1, -1, -1))  # each row of bits as a number: (dims, bits)
        scrambled = np.zeros_like(self._directions)
        for place in range(bits):  # bit `place` of the result is the parity of row AND direction
            both = rows[:, bits - 1 - place, None] & self._directions
            scrambled |= (np.bitwise_count(both).astype(np.int64) & 1) << place
        self._directions = scrambled

    def _steps(self, n: int) -> np.ndarray:
        """The next n states after the present one; steps are counted from the first point, which has none of its own."""
        first = max(self.num_generated - 1, 0)
        numbers = np.arange(first, first + n)
        rightmost_zero = np.bitwise_count(numbers & ~(numbers + 1))  # as many ones as end the number
        steps = self._directions[:, rightmost_zero].T
        return np.bitwise_xor.accumulate(np.concatenate([self._state[None], steps]), axis=0)[1:]

    def draw(self, n: int = 1, out: Tensor | None = None, dtype=None) -> Tensor:
        """The next `n` points, one in each row."""
        if dtype is None:
            dtype = get_default_dtype()
        states = np.empty((0, self.dimension), np.int64)
        if n and self.num_generated == 0:
            states, n = self._state[None].copy(), n - 1
        if n:
            more = self._steps(n)
            self._state = more[-1].copy()
            states = np.concatenate([states, more])
        self.num_generated += len(states)
        points = public("torch", "from_numpy")(states / 2.0**self.MAXBIT).to(dtype)
        if out is None:
            return points
        out.resize_(points.shape).copy_(points)
        return out

    def draw_base2(self, m: int, out: Tensor | None = None, dtype=None) -> Tensor:
        """The next 2**m points; all points drawn so far must be a power of two again."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points have been "
                f"previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        self._state, self.num_generated = self._shift.copy(), 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip n points."""
        skipped = n - 1 if self.num_generated == 0 and n else n
        if skipped > 0:
            self._state = self._steps(skipped)[-1].copy()
        self.num_generated += n
        return self

    def __repr__(self) -> str:
        words = [f"dimension={self.dimension}"]
        if self.scramble:
            words.append("scramble=True")
        if self.seed is not None:
            words.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(words)})"


def _directions(dimension: int, bits: int) -> np.ndarray:
    """The direction numbers as integers of `bits` bits: (dimension, bits)."""
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimension, scramble=False, bits=bits)._sv, np.int64)  # type: ignore[attr-defined]
