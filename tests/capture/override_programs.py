"""Random programs with tensors of classes that take calls over, and modes that do."""

from __future__ import annotations

from tests.capture.python_programs import Generator

OVERRIDING = """
from pullback.ops.system.overrides import TorchDispatchMode


class Scaled(torch.Tensor):
    factor = 2.0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function.__name__ != "__get__":  # a transform asks for sizes as often as it likes
            LOG.append((cls.__name__, function.__name__, len(types)))
        out = super().__torch_function__(function, types, args, kwargs or {})
        return out * cls.factor if function.__name__ in ("sin", "add", "stack") else out


class Shifted(Scaled):
    factor = 0.5


class Wrapped:
    def __init__(self, value):
        self.value, self.count = value, 0

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        for arg in args:
            if isinstance(arg, Wrapped):
                arg.count += 1
        args = [arg.value if isinstance(arg, Wrapped) else arg for arg in args]
        return function(*args, **(kwargs or {})) * G


WRAPPED = Wrapped(torch.ones(1) * 0.5)


class Calls(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        LOG.append(("mode", function.__name__))
        out = function(*args, **(kwargs or {}))
        return out * G if function.__name__ in ("sin", "add", "stack") else out


class Operators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        return out * 2 if "sin" in str(function) else out
"""


class Overriding(Generator):
    """Programs with tensors of classes that take calls over (`__torch_function__`)."""

    def compute(self, depth: int) -> list[str]:
        if self.random.random() < 0.6:
            return super().compute(depth)
        self.made += 1
        t, new = self.tensor(), f"t{self.made}"
        kinds = [
            "{t}.as_subclass(Scaled)", "{t}.as_subclass(Shifted)", "{t}.as_subclass(torch.Tensor)", "torch.add({t}, WRAPPED)",
            "torch.mul(WRAPPED, {t})", "torch.nn.functional.relu({t})", "({t} * 0.5).add_({u})", "torch.cat([{t}, {u}])[:len({t})]",
            "({t} if isinstance({u}, Scaled) else {t} * 0.5)", "({t} + len(type({u}).__name__))", "{t} + WRAPPED.count * 0.1",
        ]  # fmt: skip
        self.tensors.append(new)
        return [f"{new} = {self.pick(kinds).format(t=t, u=self.tensor())}"]

    def context(self, depth: int) -> list[str]:
        if self.random.random() < 0.5:
            return super().context(depth)
        block = self.pick(["torch.DisableTorchFunctionSubclass()", "Calls()", "Operators()"])
        return [f"with {block}:", *self.block(depth - 1)]

    def change(self, step: int) -> list[str]:
        if self.random.random() < 0.6:
            return super().change(step)
        c = self.constant()
        kinds = [
            f"Scaled.factor = {c}", f"Shifted.factor = {c}", f"WRAPPED.value = torch.ones(1) * {c}",
            "Shifted.__torch_function__ = classmethod(lambda cls, f, t, a=(), k=None: (LOG.append('new'), super(Shifted, cls).__torch_function__(f, t, a, k))[1])",
        ]  # fmt: skip
        return [f"if step == {step}:", f"    {self.pick(kinds)}"]

    def program(self) -> str:
        return super().program().replace("def program(", OVERRIDING + "\n\ndef program(", 1)
