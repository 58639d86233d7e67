"""Random programs with much Python in them, compiled and not: `python -m tests.capture.fuzz --count 1000 --seed 0`.

Each program is called four times; before each call something that it reads is changed. Values, gradients, effects, printed
text and errors must be those of plain Python, for every backend, with and without compiled autograd.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import io
import time
import traceback
import warnings
from collections.abc import Callable

import pullback as torch
from pullback.backward.switch import enable
from tests.capture.object_programs import Objects
from tests.capture.override_programs import Overriding
from tests.capture.python_programs import Generator, LaterHooks

STEPS = 4
KINDS = {"python": Generator, "hooks": LaterHooks, "overrides": Overriding, "objects": Objects}


def generate(seed: int, length: int = 7, kind: str = "python") -> str:
    """The source of a program."""
    return KINDS[kind](seed, length).program()


def plain(f: Callable) -> Callable:
    return f


def by(backend: str) -> Callable:
    return lambda f: torch.compile(f, backend=backend)


TARGETS: dict[str, tuple[Callable, Callable]] = {
    "eager": (by("eager"), contextlib.nullcontext),
    "aot_eager": (by("aot_eager"), contextlib.nullcontext),
    "inductor": (by("inductor"), contextlib.nullcontext),
    "compiled autograd": (by("aot_eager"), lambda: enable(by("aot_eager"))),
}


def shown(value, depth: int = 4):
    """A value as something to compare."""
    if isinstance(value, torch.Tensor):
        plain = value.detach().as_subclass(torch.Tensor).tolist()
        return (type(value).__name__, str(value.dtype), value.requires_grad, value.is_leaf, plain)
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    if isinstance(value, dict):
        return {str(k): shown(v, depth - 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[shown(v, depth - 1) for v in value]]
    if depth == 0:
        return type(value).__name__
    names = [*getattr(value, "__dict__", ()), *getattr(type(value), "__slots__", ())]
    return {"class": type(value).__name__, **{n: shown(getattr(value, n), depth - 1) for n in names}}


def same(a, b) -> bool:
    """Whether two shown values are the same, up to rounding."""
    if isinstance(a, float) and isinstance(b, (float, int)) or isinstance(b, float) and isinstance(a, int):
        return a == b or a != a and b != b or abs(a - b) <= 1e-4 * max(1.0, abs(a), abs(b))
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return a == b


def run(source: str, compiled: Callable, around: Callable) -> list:
    """All that can be seen of a program: what each call gave and left."""
    world: dict = {"__name__": "fuzzed"}
    exec(compile(source, "<fuzzed>", "exec", dont_inherit=True), world)
    world.update(box=world["Box"](1.0), items=[0.5, 1.0, 1.5], shape=3, leaf=True)
    f, seen = compiled(world["program"]), []
    for step in range(STEPS):
        text, out = io.StringIO(), None
        world["change"](step, world)
        leaf = torch.linspace(0.1, 1.0, world["shape"], requires_grad=True)
        x = leaf if world["leaf"] else leaf * 1
        try:
            with around(), contextlib.redirect_stdout(text):
                out = f(x, world["box"], world["items"], step)
                total = [t for t in tensors(out) if t.requires_grad and t.grad_fn is not None]
                if total:
                    sum(t.sum() for t in total).backward()
        except Exception as error:
            seen.append(("raises", type(error).__name__, str(error)[:80]))
        modes = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        state = [world[n] for n in ("LOG", "TABLE", "G", "box", "items")] + [
            world["Global"].calls,
            world["peek"](),
            modes,
        ]
        module = world["MOD"]
        seen.append(
            [
                shown(out),
                shown(leaf.grad),
                shown(module.weight.grad),
                shown(module.seen),
                module.calls,
                text.getvalue(),
                *map(shown, state),
            ]
        )
    return seen


def tensors(value) -> list:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors(v)]
    return tensors(value.a) if type(value).__name__ == "Point" else []


PARTS = (
    "result",
    "x.grad",
    "weight.grad",
    "buffer",
    "module calls",
    "text",
    "LOG",
    "TABLE",
    "G",
    "box",
    "items",
    "Global",
    "closure",
    "grad mode",
)


def differences(source: str, target: str) -> list[str]:
    """How a compiled program differs from itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = run(source, plain, contextlib.nullcontext)
        try:
            have = run(source, *TARGETS[target])
        except Exception as error:
            return [f"comparing raises {type(error).__name__}: {error}\n{traceback.format_exc()}"]
    for a, b in zip(want, have, strict=False):
        if isinstance(a, list) and isinstance(b, list):
            for part, p, q in zip(PARTS, a, b, strict=True):
                if not same(p, q):
                    return [f"{part}: {q}, not {p}"]
        elif b[0] == "raises" and b[1] == "FreedError":
            return []  # a refusal: values that one graph gives share their history, so one backward frees that of all
        elif a != b:
            return [f"{b}, not {a}"]
    return [] if len(want) == len(have) else ["one raises more often"]


def shrink(source: str, target: str, first: str) -> str:
    """A shorter program that differs in the same part."""
    lines = source.split("\n")
    start = lines.index("def program(x, box, items, step):") + 1
    kind, i = first.split(":")[0], len(lines) - 1
    while i >= start:
        fewer = lines[:i] + lines[i + 1 :]
        with contextlib.suppress(Exception):
            compile("\n".join(fewer), "<fuzzed>", "exec")
            found = differences("\n".join(fewer), target)
            if found and found[0].split(":")[0] == kind:
                lines = fewer
        i -= 1
    return "\n".join(lines[start - 1 :])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--length", type=int, default=7)
    parser.add_argument("--kind", choices=sorted(KINDS), default="python")
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--show", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    targets, started = options.target or list(TARGETS), time.time()
    counts: collections.Counter = collections.Counter()
    for seed in range(options.seed, options.seed + options.count):
        if time.time() - started > options.seconds:
            break
        target = targets[seed % len(targets)]
        source = generate(seed, options.length, options.kind)
        found = differences(source, target)
        counts["programs"] += 1
        if found:
            counts["different"] += 1
            if counts["different"] <= options.show:
                print(f"# seed {seed}, {target}: {found[0][:600]}", flush=True)
                print(shrink(source, target, found[0]), flush=True)
    print(dict(counts), f"{time.time() - started:.0f} s")


if __name__ == "__main__":
    main()
