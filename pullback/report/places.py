"""Where nodes come from: the lines of the user's code that their metadata names."""

from __future__ import annotations

import re

from ..graph import Node

_PLACE = re.compile(r'File "([^"]+)", line (\d+)')


def line_of(node: Node) -> tuple[str, int] | None:
    """(file, line) of the innermost line of the user's that a node is of; text of our own that graphs run as is none."""
    found = [p for p in _PLACE.findall(node.meta.get("stack_trace") or "") if not p[0].startswith("<eval_with_key>")]
    return (found[-1][0], int(found[-1][1])) if found else None
