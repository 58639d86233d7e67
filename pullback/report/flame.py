"""A profile as one HTML file: a table of kinds, one of lines, and a flame graph that can be searched and zoomed."""

from __future__ import annotations

import html
import json
import linecache
from typing import Any

from .page import HERE, TEMPLATE
from .sampling import KINDS, Profile


def data_of(profile: Profile, lines: int = 40) -> dict[str, Any]:
    """What the page shows: text and numbers."""
    return {
        "seconds": profile.seconds,
        "looks": profile.looks,
        "kinds": [[kind, profile.by_kind[kind]] for kind in KINDS if kind in profile.by_kind],
        "lines": [
            [file, line, name, linecache.getline(file, line).strip(), seconds]
            for (file, line, name), seconds in sorted(profile.by_line.items(), key=lambda item: -item[1])[:lines]
        ],
        "tree": profile.root.as_data(),
    }


def flame_page(profile: Profile, title: str = "Where the time went") -> str:
    """The page, as text."""
    return TEMPLATE.format(
        title=html.escape(title),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "builders.js").read_text(encoding="utf-8") + (HERE / "flame.js").read_text(encoding="utf-8"),
        data=json.dumps(data_of(profile)).replace("</", "<\\/"),
    )
