"""Programs of more than single calls: tensors of drawn shapes, chains of views, functions of several statements, modules that
are trained.

Comes in: a seed and the name of the library to run beside. Goes out: the `Pair` that ran the program. What always holds: what
`Drawn` says.
"""

from __future__ import annotations

import numpy as np

from tests.laws.beside import modules, views
from tests.laws.beside.draw import COMPLEX, FLOATS, OTHERS, Drawn
from tests.laws.beside.steps import CONTEXTS, NESTED, WRITES

SHAPES = (
    (), (), (0,), (1,), (3,), (5,), (2, 3), (3, 3), (1, 4), (2, 0), (4, 1), (2, 3, 4), (1, 2, 1), (0, 2, 3), (2, 1, 3), (1, 2, 3, 4), (2, 3, 2, 2), (2, 2, 1, 2, 3), (17,), (9, 8),
)  # fmt: skip


class Composed(Drawn):
    """One program of all kinds of steps, being drawn and run."""

    def steps(self) -> tuple:
        return (
            *super().steps(), (self.fresh, 3), (self.view, 3), (self.write_view, 5), (self.routine, 5), (self.guarded, 2), (self.train, 3),
        )  # fmt: skip

    def start(self) -> None:
        self.rng.choices((super().start, self.fresh, self.train), (6, 4, 1))[0]()

    def numbers(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.random.default_rng(self.rng.randrange(1 << 31)).standard_normal(shape)

    def fresh(self) -> None:
        """A tensor of a shape and a dtype of its own."""
        p = self.rng.random()
        dtype = self.rng.choice(FLOATS if p < 0.6 else COMPLEX if p < 0.8 else OTHERS)
        self.internal = False
        self.input(self.numbers(self.rng.choice(SHAPES)), dtype, False)

    def view(self) -> None:
        if (x := self._tensor()) is not None:
            name = self.name()
            self.pair.run(f"{name} = {views.view(self.rng, x)}", name)

    def write_view(self) -> None:
        if (x := self._tensor()) is not None:
            line = views.write(self.rng, x, self._tensor() or x)
            if not self.pair.run(line, seed=self.seed):
                self.end()

    def guarded(self) -> None:
        """A write in a context."""
        if (x := self._tensor()) is not None:
            y = self._tensor() or x
            line = views.write(self.rng, x, y) if self.rng.random() < 0.5 else self.rng.choice(WRITES).format(x=x, y=y)
            if not self.pair.run(f"with {self.rng.choice(CONTEXTS)}:\n    {line}", seed=self.seed):
                self.end()

    def routine(self) -> None:
        """A function of several statements, called as it is or transformed."""
        if (x := self._tensor()) is None:
            return
        name = self.name()
        function = f"f{name[1:]}"
        self.pair.run(views.function(self.rng, function, [self._tensor() or x]))
        self.loosen(8.0)
        for _ in range(self.rng.choice((0, 1, 1, 1, 2))):
            function = f"{self.rng.choice(NESTED)}({function})"
        if not self.pair.run(f"{name} = {function}({x})", name, derived=True):
            self.end()
        self.same_order()

    def train(self) -> None:
        """A module of drawn parameters, what it gives, and some steps of an optimizer."""
        rng, pair = self.rng, self.pair
        text, inputs = rng.choice(modules.MODULES)
        module, state = (
            f"m{self.count}",
            rng.choice(modules.STATES[:3] if "parametrizations" in text else modules.STATES),
        )
        if not pair.run(f"{module} = torch.nn.{text}{state}", seed=self.seed):
            return
        parameters = self.name()
        pair.run(f"{parameters} = list({module}.parameters())", parameters)
        dtype = (
            "bfloat16"
            if "bfloat" in state
            else "float16"
            if "half" in state
            else "float64"
            if "double" in state
            else "float32"
        )
        self.internal = rng.random() < 0.5
        names = [self.input(self.numbers(s), dtype, True) if isinstance(s, tuple) else s for s in inputs]
        self.loosen(64.0)
        called, out = f"{module}({', '.join(names)})", self.name()
        if rng.random() < 0.25:
            called = f"compiled({module})({', '.join(names)})"
        if not names or not pair.run(f"{out} = {called}", out, seed=self.seed, derived=True):
            return
        self.same_order()
        if rng.random() < 0.8 and pair.ours[parameters]:
            level = any(word in text for word in modules.LEVEL) or dtype in ("float16", "bfloat16")
            plain = 3 if level else -2 if "double" not in state else None
            self.optimize(called, parameters, modules.OPTIMIZERS[:plain])
        state = self.name()
        pair.run(f"{state} = [b * 1 for b in {module}.buffers()]", state)

    def optimize(self, called: str, parameters: str, optimizers: tuple[str, ...]) -> None:
        rng, pair = self.rng, self.pair
        optimizer, schedule = f"o{self.count}", ""
        text = rng.choice(optimizers).format(p=modules.groups(rng, parameters), a=parameters)
        if not pair.run(f"{optimizer} = torch.optim.{text}"):
            return
        self.loosen(1e3)
        if text.startswith("LBFGS") or rng.random() < 0.2:
            ran = pair.run(modules.closed(called, optimizer), seed=self.seed)
        else:
            if rng.random() < 0.4:
                schedule = f"s{self.count}"
                pair.run(f"{schedule} = torch.optim.lr_scheduler.{rng.choice(modules.SCHEDULES).format(o=optimizer)}")
            ran = pair.run(modules.training(rng, called, parameters, optimizer, schedule), seed=self.seed)
        if not ran:
            self.end()
        if not text.startswith("LBFGS"):  # it may keep more or less for its next step
            state = self.name()
            pair.run(f"{state} = flat({optimizer}.state_dict())", state, derived=True)
