"""The table of options in docs/architecture.md says what the fields of declarations say. Run as a script, this writes it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pullback  # noqa: F401 - declares all families
import pullback.library  # noqa: F401
from pullback.ops.system.declaration import REQUIRED, Declaration

PAGE = Path(__file__).resolve().parents[2] / "docs" / "architecture.md"
TABLE = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- /options -->)", re.DOTALL)


def families() -> list[type[Declaration]]:
    """Declarations, those of families after the one of all operators."""
    found = [Declaration]
    for cls in found:
        found += sorted(cls.__subclasses__(), key=lambda c: c.__name__)
    return [cls for cls in found if cls.__module__.startswith("pullback.")]


def fields(cls: type[Declaration]) -> dict[str, str | None]:
    """The fields that a class declares itself, with the strings under them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]
    found: dict[str, str | None] = {}
    for statement, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign):
            text = isinstance(following, ast.Expr) and getattr(following.value, "value", None)
            found[statement.target.id] = text if isinstance(text, str) else None  # type: ignore[union-attr]
    return found


def shown(value: object) -> str:
    if value is REQUIRED:
        return "required"
    return f"`{value.__name__}`" if callable(value) else f"`{value!r}`" if value not in (None, (), {}) else ""


def table() -> str:
    lines: list[str] = []
    for cls in families():
        given = fields(cls)
        lines += [f"**{cls.kind.partition(' ')[2].capitalize()}** (`{cls.__name__}`). {cls.__doc__}", ""]
        defaults = [f"`{name}` {shown(cls.defaults[name]) or '`None`'}" for name, text in given.items() if text is None]
        if defaults:
            lines += [f"Other defaults: {', '.join(defaults)}.", ""]
        rows = [(name, shown(cls.defaults[name]), text) for name, text in given.items() if text is not None]
        if rows:
            lines += ["| option | default | meaning |", "|---|---|---|"]
            lines += [f"| `{name}` | {default} | {' '.join(text.split())} |" for name, default, text in rows] + [""]
    return "\n".join(lines)


def test_the_page_shows_the_options():
    assert TABLE.search(PAGE.read_text(encoding="utf-8")).group() == table(), "write it: python tests/docs/test_declarations.py"


def test_every_option_is_documented_at_its_field():
    for cls in families():
        inherited = cls.__mro__[1].defaults if cls is not Declaration else {}
        undocumented = [name for name, text in fields(cls).items() if not text and name not in inherited]
        assert not undocumented, cls
        assert all(text is None or text.endswith(".") for text in fields(cls).values()), cls


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
