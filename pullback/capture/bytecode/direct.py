"""The short way to an entry: a function of the arguments themselves, for calls that need no frame.

In: an entry that captured a whole function, and the function. Out: `direct(args, kwargs)`, which gives what the entry gives, or
`MISS` before anything is done. It has the entry's own lines, tests included; arguments stand where the entry reads locals of a
frame. What always holds: it says MISS wherever the long way would do more than run the entry (other stances, checked calls,
modes that want the program itself, keywords, another code object), so a call that it takes is one that the entry would have had.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import CellType, CodeType, FunctionType
from typing import Any

from ...core import modes
from ...core.modes import ambient
from ...nn.module import Module
from ..front.config import config
from ..front.stance import state
from .binding import is_positional
from .conditions import compiled

AS_IT_IS = (
    modes.TRANSFORM | modes.FUNCTION | modes.DISPATCH | modes.CAPTURE | modes.FORWARD
)  # where programs run uncompiled


def forward_of(module: Module) -> Any:
    """What a module's `forward` is now: an attribute of its own, or its class's."""
    return module.__dict__.get("forward") or type(module).forward


def direct(text: str, run: Callable, function: FunctionType, first: tuple, module: Module | None) -> Callable | None:
    """The short way to an entry with this text; None where there is none. `first`: arguments that every call gets before its own;
    `module`: whose `forward` the function is, if it is one's."""
    code = function.__code__
    if not text.startswith(OPENING) or not is_positional(code):
        return None
    body = text[len(OPENING) :]
    if re.search(r"\bframes\b", body):
        return None
    scope = run.__globals__  # type: ignore[attr-defined]  # the entry is a function
    scope.update(state=state, config=config, ambient=ambient, its_function=function, its_code=code)
    scope.update({f"first{k}": value for k, value in enumerate(first)})
    own = code.co_argcount - len(first)
    refused = f"kwargs or len(args) != {own} or its_function.__code__ is not its_code or ambient.mode & {AS_IT_IS}"
    refused += " or state.disabled or state.stance.name != 'default' or config.verify"
    if module is not None:
        scope.update(its_module=module, its_forward=forward_of(module), forward_of=forward_of)
        refused += " or its_module._is_hooked() or forward_of(its_module) is not its_forward"
    lines = [f"if {refused}: return MISS"]
    given = [*[f"first{k}" for k in range(len(first))], *[f"given{k}" for k in range(own)]]
    if own:
        lines.append(f"{', '.join(given[len(first) :])}, = args")
    body = _with_arguments(body, code, function, given, lines, scope)
    return compiled("\n".join(["def direct(args, kwargs):", *("    " + line for line in lines), body]), scope, "direct")


OPENING = "def entry(frames):\n    l0, s0, e0 = frames[0].locals, frames[0].stack, frames[0].cells\n"


def _with_arguments(
    body: str, code: CodeType, function: FunctionType, given: list[str], lines: list[str], scope: dict
) -> str:
    """The entry's lines with arguments in the place of locals; what they still read of a frame is made by `lines`."""
    names = dict(zip(code.co_varnames, given, strict=False))
    shared = [name for name in code.co_cellvars if name in names]
    for name, value in names.items():
        if name not in shared:
            body = body.replace(f"l0[{name!r}]", value)
    if re.search(r"\bl0\b", body):
        lines.append(f"l0 = {{{', '.join(f'{n!r}: {v}' for n, v in names.items() if n not in shared)}}}")
    if re.search(r"\be0\b", body):
        scope.update(
            its_closure=dict(zip(code.co_freevars, function.__closure__ or (), strict=True)), CellType=CellType
        )
        cells = [f"{n!r}: CellType({names.get(n, '')})" for n in code.co_cellvars]
        lines.append(f"e0 = {{{', '.join([*cells, '**its_closure'])}}}" if cells else "e0 = its_closure")
    if re.search(r"\bs0\b", body):
        lines.append("s0 = []")
    return body
