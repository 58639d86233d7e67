"""The call of a graph that is one library: straight-line Python, written for that graph.

`runner(native)` gives a function of the graph's arguments: it checks that they are plain, allocates the outputs, makes the one
native call and wraps what came out. Whatever does not fit goes to `general`. Native code does not look at the mode of recording:
the function may be called with it on, if `general` may.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType

import numpy as np

from ..core.modes import LISTENING, ambient
from ..core.tensor import wrap
from ..core.threads import thread_count
from ..graph.node import Node


def runner(native, general: Callable) -> Callable:
    """See the module's docstring."""
    (segment,) = native.segments
    names = {n: f"a{k}" for k, n in enumerate(native.placeholders)}
    scope: dict = {
        "ambient": ambient, "general": general, "empty": np.empty, "array": np.array, "wrap": wrap, "take": segment.rooms.take, "give": segment.rooms.give,
        "segment": segment,  # which lives as long as the function
        "call": segment.library.call if segment.library is not None else None, "threads": segment.threads or thread_count,
    }  # fmt: skip
    given = ", ".join(names[n] for n in native.placeholders)
    inputs = [names[n] for n in segment.given]
    held = [f"array({a}, given{k})" if k in segment.numbers else f"{a}._array" for k, a in enumerate(inputs)]
    busy = [f"ambient.mode >= {LISTENING}"]
    for k, (a, v) in enumerate(zip(inputs, segment.source.inputs, strict=True)):
        scope[f"given{k}"] = v.dtype.numpy if k in segment.numbers else v.dtype
        if k in segment.numbers:
            continue
        busy.append(f"{a}._keys or {a}.dtype is not given{k}")
    if segment.engine is not None:
        scope |= {"ready": segment.ready, "failed": segment.failed, "done": segment.engine.done}
        busy.append(f"not ready({', '.join(held)})")
    lines = [f"def run({given}):", f"    if {' or '.join(busy)}:", f"        return general({given})"]
    for k, m in enumerate(segment.makers):
        scope[f"dtype{k}"], scope[f"kind{k}"] = m.dtype.numpy, m.dtype
        back = "" if m.back is None else f".transpose({m.back})"
        lines.append(f"    o{k} = empty({m.shape}, dtype{k}){back}")
    if not segment.empty:
        outs = [f"o{k}" for k in range(len(segment.makers))]
        arrays = [*held, *outs]
        lines += [
            "    here = take()",
            f"    wrong = call(({''.join(f'{a}, ' for a in arrays)}), here[1], threads())",
            *([f"    if wrong: failed(wrong, here, {', '.join(outs)})"] if segment.engine is not None else []),
            "    give(here)",
            "    if wrong:",
            f"        return general({given})",
        ]
        if segment.engine is not None:
            lines.append(f"    done(({''.join(f'{o}, ' for o in outs) if segment.open_ended else ''}))")
    lines += [f"    t{k} = wrap(o{k}, kind{k})" for k in range(len(segment.makers))]
    lines.append(f"    return {_results(native, segment, names, inputs, scope)}")
    exec(_compiled("\n".join(lines)), scope)
    return scope["run"]


@functools.lru_cache(maxsize=4)
def _compiled(text: str) -> CodeType:
    """The code of a text; the last ones are kept, because a graph that records has two functions of one text."""
    return compile(text, "<native call>", "exec")


def _results(native, segment, names: dict, inputs: list[str], scope: dict) -> str:
    """The expression of what the graph returns."""
    result: dict[Node, str] = dict(names)
    for k, (node, (kind, at, value)) in enumerate(zip(segment.results, segment.places, strict=True)):
        base = inputs[at] if kind == "given" else f"t{at}"
        if value is None:
            result[node] = base
            continue
        from .segment import view

        scope["view"], scope[f"value{k}"] = view, value
        result[node] = f"view({base}, value{k})"

    def text(x) -> str:
        if isinstance(x, Node):
            return result[x]
        if isinstance(x, (tuple, list)):
            inner = ", ".join(text(i) for i in x)
            return f"({inner}{',' if len(x) == 1 else ''})" if isinstance(x, tuple) else f"[{inner}]"
        name = f"constant{len(scope)}"
        scope[name] = x
        return name

    repeated = [n for n in segment.results if "view(" in result[n]]
    if len(set(repeated)) != len(repeated):
        raise AssertionError("a result is made twice")
    return text(native.output)
