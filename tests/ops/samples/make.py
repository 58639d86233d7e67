"""`Make`: where the numbers of the samples come from, and `call`: how a sample is written.

Comes in: a seed and whether numbers are complex. Goes out: tensors of float64 (or complex128), the same for the same
seed. Always holds: two makers of different seeds give tensors of the same shapes with different numbers, which is what
the check of vmap stacks.
"""

from __future__ import annotations

import numpy as np

import pullback as torch


def call(*args, **kwargs) -> tuple[tuple, dict]:
    """One call of an operator: its arguments by position and by the schema's names."""
    return args, kwargs


class Make:
    """Tensors of random numbers; called with a shape it gives uniform ones between -2 and 2."""

    def __init__(self, seed: int = 0, is_complex: bool = False):
        self.rng = np.random.default_rng(seed)
        self.is_complex = is_complex

    def __call__(self, *shape: int) -> torch.Tensor:
        return self.between(-2, 2, *shape)

    def between(self, low: float, high: float, *shape: int) -> torch.Tensor:
        a = self.rng.uniform(low, high, shape)
        return torch.tensor(np.asarray(a + 1j * self.rng.uniform(-1, 1, shape) if self.is_complex else a))

    def real(self, *shape: int, low: float = -2, high: float = 2) -> torch.Tensor:
        """Real numbers, whatever the maker makes."""
        return torch.tensor(np.asarray(self.rng.uniform(low, high, shape)))

    def positive(self, *shape: int) -> torch.Tensor:
        return self.between(0.5, 2, *shape)

    def unit(self, *shape: int) -> torch.Tensor:
        return self.between(0.1, 0.9, *shape)

    def distinct(self, *shape: int) -> torch.Tensor:
        """Real numbers at least 0.1 apart: no ties, and none within reach of a difference quotient."""
        n = int(np.prod(shape))
        return torch.tensor(np.asarray((self.rng.permutation(n).reshape(shape) - n / 2) * 0.25 + 0.1))

    def ints(self, high: int, *shape: int, low: int = 0) -> torch.Tensor:
        return torch.tensor(np.asarray(self.rng.integers(low, high, shape)))

    def order(self, n: int) -> torch.Tensor:
        """Each of 0 .. n-1 once."""
        return torch.tensor(self.rng.permutation(n))

    def mask(self, *shape: int) -> torch.Tensor:
        """Some true, some false; as many of each for every seed."""
        n = int(np.prod(shape))
        return torch.tensor(np.asarray(self.rng.permutation(np.arange(n) % 2 == 0).reshape(shape)))

    # ---- matrices
    def square(self, *shape: int) -> torch.Tensor:
        """Square matrices far from singular."""
        return self(*shape, shape[-1]) + 4 * torch.eye(shape[-1], dtype=torch.float64)

    def definite(self, *shape: int) -> torch.Tensor:
        """Hermitian positive definite matrices."""
        a = self(*shape, shape[-1])
        return a @ a.mH + 2 * torch.eye(shape[-1], dtype=torch.float64)

    def spread(self, *shape: int) -> torch.Tensor:
        """Hermitian matrices whose eigenvalues are well apart."""
        a = self(*shape, shape[-1])
        return (a + a.mH) * 0.2 + torch.diag(torch.arange(shape[-1], dtype=torch.float64) * 2 + 1)

    def sorted(self, *shape: int) -> torch.Tensor:
        return torch.tensor(np.sort(self.rng.uniform(-2, 2, shape), axis=-1))
