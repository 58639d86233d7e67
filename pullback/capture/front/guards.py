"""When a captured graph may be used again.

`Guards` holds what a capture depended on: the structure of the arguments, the metadata and aliasing of tensors, the
values of everything else. `why_not` says in words what does not fit, naming arguments as the function does: `L['x']`.
What a function reaches besides its arguments is looked after in `surroundings`.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Sequence

from ...core.node import requires_grad
from ...core.tensor import FAKE, META, Tensor, stride_of
from ...nn.module import Module
from ..trace.subclasses import description

SIMPLE = (int, float, bool, str, bytes, complex, type(None))
DEPTH, LEAVES = 3, 256  # how deep, and into how many values, containers and objects are looked into


def describe(t: Tensor) -> tuple:
    """What a graph depends on of a tensor."""
    keys, place = t.keys & ~(FAKE | META), (tuple(t.array.shape), stride_of(t))
    wants = requires_grad(t)
    own = (not wants or t.is_leaf, description(t) if keys else ())  # a leaf may not be written in place
    return (type(t), t.dtype, t.device, keys, wants, own, *place)


def as_described(t: Tensor, fact: tuple) -> bool:
    """Whether a tensor of the same type is as it was; without shapes in the fact, it may have any."""
    if t.autograd is None and not t.keys:  # most are plain, and of those little is to be looked at
        if t.dtype is not fact[1] or t.device is not fact[2] or fact[3] or fact[4]:
            return False
        return fact[6] is None or (t.array.shape == fact[6] and stride_of(t) == fact[7])
    have = describe(t)
    return have == fact or fact[6] is None and have[:6] == fact[:6]


def source_names(fn: Callable, args: tuple, kwargs: dict) -> list[str]:
    """A name for each leaf of the arguments, by the function's parameters: `L['x']`, `L['xs'][0]`."""
    target = fn.forward if isinstance(fn, Module) else fn
    names: list[str] = []
    for name, value in _bound(target, args, kwargs):
        names += [f"L[{name!r}]{path}" for path in _paths(value)]
    return names


def _bound(fn: Callable, args: tuple, kwargs: dict) -> list[tuple[str, object]]:
    """(parameter, value) in the order in which the arguments flatten; more than the signature takes are numbered."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "args")
    out = [(named[i] if i < len(named) else f"{rest}_{i - len(named)}", v) for i, v in enumerate(args)]
    return out + [(k, kwargs[k]) for k in sorted(kwargs)]


def _paths(value) -> list[str]:
    """Where each leaf is inside a value, in the order of flattening."""
    if isinstance(value, dict):
        keys = sorted(value) if type(value) is dict and all(isinstance(k, str) for k in value) else list(value)
        return [f"[{k!r}]{p}" for k in keys for p in _paths(value[k])]
    if isinstance(value, (tuple, list)):
        return [f"[{i}]{p}" for i, v in enumerate(value) for p in _paths(v)]
    return [""]


class Guards:
    """The conditions of one captured graph."""

    def __init__(self, flat: list, spec, names: list[str] | None = None):
        self.spec = spec
        self.names = (
            names if names is not None and len(names) == len(flat) else [f"argument {i}" for i in range(len(flat))]
        )
        self.facts = [describe(a) if isinstance(a, Tensor) else (type(a), as_fact(a)) for a in flat]
        self.sharing = sharing(flat)
        self.sizes, self.places = None, []  # conditions on symbolic sizes, and of which arguments
        self.key = (str(spec), tuple(str(f) for f in self.facts), self.sharing)
        self._sort()

    def _sort(self) -> None:
        """The facts in the order in which they are tested: kinds of all, then values, then tensors."""
        facts = list(enumerate(self.facts))
        self.kinds = [f[0] for f in self.facts]
        self.tensors = [(i, f) for i, f in facts if len(f) > 2]
        self.values = [(i, f[1]) for i, f in facts if len(f) == 2]

    def relax(self, contexts: dict, examples: dict[int, Tensor], env) -> None:
        """Let sizes differ as far as the capture's own conditions (`env`) allow; `examples`: the fakes, by place."""
        self.facts = [
            f[:6] + (None, None) if i in contexts else (int,) if i in examples and f[0] is int else f
            for i, f in enumerate(self.facts)
        ]
        self._sort()
        self.places = list(examples)
        self.sizes = env.compile_guards(list(examples.values()), [self.names[i] for i in self.places])

    def hold(self, flat: list, spec) -> bool:
        if spec != self.spec or list(map(type, flat)) != self.kinds:
            return False
        for i, value in self.values:
            if flat[i] is not value and not same_value(flat[i], value):
                return False
        for i, fact in self.tensors:
            if not as_described(flat[i], fact):
                return False
        if self.sizes is not None and not self.sizes(*[flat[i] for i in self.places]):
            return False
        return sharing(flat) == self.sharing

    def why_not(self, flat: list, spec) -> str | None:
        """What does not fit, in words; None where everything does."""
        if spec != self.spec:
            return f"the arguments have another structure: {spec}, expected {self.spec}"
        for name, a, fact in zip(self.names, flat, self.facts, strict=True):
            reason = tensor_mismatch(name, a, fact) if isinstance(a, Tensor) and len(fact) > 2 else None
            if (
                reason is None
                and not isinstance(a, Tensor)
                and (type(a) is not fact[0] or len(fact) > 1 and not same_value(a, fact[1]))
            ):
                reason = (
                    f"{name} == {fact[-1]!r}  (it is {a!r})" if len(fact) == 2 else f"{name} is a tensor  (it is {a!r})"
                )
            if reason is not None:
                return reason
        if self.sizes is not None:
            reason = self.sizes.explain(*[flat[i] for i in self.places])
            if reason is not None:
                return reason
        return self._sharing_mismatch(flat)

    def _sharing_mismatch(self, flat: list) -> str | None:
        """How tensors are the same or share memory in another way."""
        now = sharing(flat)
        if now == self.sharing:
            return None
        names = [n for n, a in zip(self.names, flat, strict=True) if isinstance(a, Tensor)]
        return sharing_mismatch(names, self.sharing, now)

    def __str__(self) -> str:
        lines = []
        for name, fact in zip(self.names, self.facts, strict=True):
            if len(fact) > 2:
                kind, dtype, device, _, wants, _, shape, stride = fact
                lines.append(
                    f"check_tensor({name}, {kind.__name__}, {dtype}, device={device}, requires_grad={wants}, size={list(shape)}, stride={list(stride)})"
                )
            else:
                lines.append(f"{name} == {fact[1]!r}")
        return "\n".join(lines)


def tensor_mismatch(name: str, t: Tensor, fact: tuple) -> str | None:
    """The first way in which a tensor is not as it was, in PyTorch's words."""
    kind, dtype, device, keys, wants, inside, shape, stride = fact
    if not isinstance(t, Tensor):
        return f"expected type of '{name}' to be a tensor type, {kind.__name__}, but found {type(t).__name__}"
    have = describe(t)
    if have[0] is not kind:
        return f"expected type of '{name}' to be a tensor type, {kind.__name__}, but found {have[0].__name__}"
    if have[1] is not dtype:
        return f"tensor '{name}' dtype mismatch. expected {dtype.scalar_name}, actual {have[1].scalar_name}"
    if have[2] is not device:
        return f"tensor '{name}' device mismatch. expected {device}, actual {have[2]}"
    if have[3] != keys:
        return f"tensor '{name}' dispatch key set mismatch. expected {keys:#x}, actual {have[3]:#x}"
    if have[4] != wants:
        return f"tensor '{name}' requires_grad mismatch. expected requires_grad={int(wants)}"
    if have[5][0] != inside[0]:
        return f"tensor '{name}' is_leaf mismatch. expected is_leaf={inside[0]}"
    if have[5] != inside:
        return f"tensor '{name}' of type {kind.__name__} has another context, other attributes or other parts"
    if shape is None:
        return None
    if len(have[6]) != len(shape):
        return f"tensor '{name}' rank mismatch. expected {len(shape)}, actual {len(have[6])}"
    for word, old, new in (("size", shape, have[6]), ("stride", stride, have[7])):
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b:
                return f"tensor '{name}' {word} mismatch at index {i}. expected {a}, actual {b}"
    return None


class Pictured:
    """An object as it was: what a capture may have read of it."""

    def __init__(self, value):
        self.text, self.seen = repr(value) if len(repr(value)) < 200 else type(value).__name__, picture(value, DEPTH)

    def __repr__(self) -> str:
        return self.text


def as_fact(value):
    """What a guard keeps of an argument that is no tensor: a simple value, or the picture of an object."""
    return (
        value
        if isinstance(value, SIMPLE) or not hasattr(value, "__dict__") or is_ours(value) or callable(value)
        else Pictured(value)
    )


def same_value(a, b) -> bool:
    if isinstance(b, Pictured):
        return picture(a, DEPTH) == b.seen
    if a is b:
        return True
    if isinstance(a, SIMPLE):
        return a == b
    try:
        return bool(a == b)
    except Exception:  # noqa: BLE001 - an object that cannot be compared is another object
        return False


def same_function(a, b) -> bool:
    """Whether two functions are one: of the same code, with the same values around them."""
    if a is b:
        return True
    if not (isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType)) or a.__code__ is not b.__code__:
        return False
    if a.__defaults__ != b.__defaults__ or a.__kwdefaults__ != b.__kwdefaults__ or a.__globals__ is not b.__globals__:
        return False
    cells = zip(a.__closure__ or (), b.__closure__ or (), strict=True)
    try:
        return all(c is d or same_simple(c.cell_contents, d.cell_contents) for c, d in cells)
    except ValueError:  # a cell that is not filled
        return False


def same_simple(a, b) -> bool:
    return a is b or isinstance(a, SIMPLE) and type(a) is type(b) and a == b


def sharing(flat: Sequence) -> tuple:
    """Which tensors are the same object, and which lie on the same memory (and then where, from the first of them); ()
    where none do. Where they begin in that memory is for those to ask who name places in it."""
    tensors = [a for a in flat if isinstance(a, Tensor)]
    if len({id(a if a.memory is None else a.memory) for a in tensors}) == len(tensors):
        return ()
    objects: dict[int, int] = {}
    memories: dict[int, tuple[int, int]] = {}
    out = []
    for a in tensors:
        number, first = memories.setdefault(id(a if a.memory is None else a.memory), (len(memories), a.offset))
        out.append((objects.setdefault(id(a), len(objects)), number, a.offset - first))
    return tuple(out)


def sharing_mismatch(names: list[str], before: tuple, now: tuple) -> str:
    """Which tensors are now the same object, or no longer are."""
    for i in range(len(names)):
        for j in range(i):
            same = bool(before) and before[i][0] == before[j][0]
            if same != (bool(now) and now[i][0] == now[j][0]):
                return f"{names[j]} is {names[i]}" if same else f"{names[j]} is not {names[i]}"
    return f"tensors share memory in another way: {', '.join(names)}"


def of_package(module: str | None) -> bool:
    """Whether a module belongs to this package, whose functions and classes stay what they are."""
    return isinstance(module, str) and module.partition(".")[0] in ("pullback", "torch")


def is_ours(value) -> bool:
    """Whether an object belongs to this package: it does not change under a program."""
    return of_package(getattr(value, "__module__", None)) and not isinstance(value, (Module, Tensor))


def picture(value, depth: int, budget: list | None = None):
    """A value as something to compare: simple values as they are, tensors by identity and metadata, containers and plain
    objects by what is in them, anything else by identity."""
    if isinstance(value, SIMPLE):
        return (type(value), value)
    if isinstance(value, Tensor):
        return (id(value), describe(value))
    budget = [LEAVES] if budget is None else budget
    budget[0] -= 1
    if depth == 0 or budget[0] < 0 or isinstance(value, Module):
        return id(value)
    if isinstance(value, (list, tuple)):
        return (type(value), tuple([picture(v, depth - 1, budget) for v in value[:LEAVES]]), len(value))
    if isinstance(value, dict):
        return tuple(
            [
                (k if isinstance(k, SIMPLE) else id(k), picture(v, depth - 1, budget))
                for k, v in list(value.items())[:LEAVES]
            ]
        )
    own = getattr(value, "__dict__", None)
    if type(own) is dict and not callable(value) and not is_ours(value):
        return (id(value), picture(own, depth - 1, budget))
    return id(value)
