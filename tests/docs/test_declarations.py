"""The table of options in docs/architecture.md says what the fields of declarations say. Run as a script, this writes it."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import pullback as torch
import pullback.library  # noqa: F401 - a family of its own
from pullback.capture.trace.make_fx import make_fx
from pullback.codegen import compile_graph
from pullback.core.geometry import wrap_dim
from pullback.ops.eager.text import PlainCase
from pullback.ops.family.base import operator
from pullback.ops.layout.sparse.conversion import to_dense
from pullback.ops.layout.sparse.table import run_dense, sparse_rule
from pullback.ops.lowering import NotLowerable
from pullback.ops.system.declaration import REQUIRED, Declaration
from pullback.ops.system.operator import Spec, exports, registry, unregister

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
    return "\n".join(lines + plain_cases())


def plain_cases() -> list[str]:
    """The kinds of `plain=`: what they are given, which declarations take them, what they do."""
    lines = [
        "**Plain cases** (`plain=`). How plain calls go past the dispatcher; `ops/eager/` has one file for each kind.",
        "",
    ]
    lines += ["| case | of | what plain calls do |", "|---|---|---|"]
    for case in sorted(PlainCase.__subclasses__(), key=lambda c: c.__name__):
        parameters = list(inspect.signature(case).parameters.values()) if case.__init__ is not object.__init__ else []
        call = f"{case.__name__}({', '.join(str(p.replace(annotation=p.empty)) for p in parameters)})"
        own = [cls for cls in families() if cls is Declaration or cls.kinds != cls.__mro__[1].kinds]
        owners = [f"`{cls.__name__}`" for cls in own if case in cls.kinds["plain"]]
        lines.append(f"| `{call}` | {', '.join(owners)} | {' '.join(inspect.getdoc(case).split())} |")
    return [*lines, ""]


def test_the_page_shows_the_options():
    assert TABLE.search(PAGE.read_text(encoding="utf-8")).group() == table(), (
        "write it: python tests/docs/test_declarations.py"
    )


def test_every_option_is_documented_at_its_field():
    for cls in families():
        inherited = cls.__mro__[1].defaults if cls is not Declaration else {}
        undocumented = [name for name, text in fields(cls).items() if not text and name not in inherited]
        assert not undocumented, cls
        assert all(text is None or text.endswith(".") for text in fields(cls).values()), cls


def test_every_plain_case_says_what_it_does():
    cases = PlainCase.__subclasses__()
    assert cases and all(case.__doc__ for case in cases)


def test_the_operator_of_the_page_works():
    """The blocks of "Adding another operator", of "... a lowering rule" and of "... a rule for a layout", in one file."""
    sections = PAGE.read_text(encoding="utf-8").split("### ")
    named = ("Adding another operator", "Adding a lowering rule", "Adding a rule for a layout")
    texts = [s for s in sections if s.startswith(named)]
    names = {
        "operator": operator,
        "Spec": Spec,
        "wrap_dim": wrap_dim,
        "sparse_rule": sparse_rule,
        "run_dense": run_dense,
        "NotLowerable": NotLowerable,
        "to_dense": to_dense,
    }
    source = "".join(re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1) for text in texts)
    try:
        exec(source, names)
        function = exports["torch"]["spread"]
        x = torch.tensor([[1.0, 5.0, 2.0], [7.0, 3.0, 4.0]], dtype=torch.float64, requires_grad=True)
        assert function(x, 1).tolist() == [4.0, 4.0]
        assert torch.autograd.gradcheck(lambda t: function(t, 1), (x,))
        assert function(x.detach().to("meta"), 0).shape == (3,)
        assert torch.func.vmap(lambda row: function(row, 0))(x).tolist() == [4.0, 4.0]
        assert function(x.detach().to_sparse(), 1).tolist() == [4.0, 4.0]
        registry["spread.default"].lower = names["lower_spread"]
        result = compile_graph(make_fx(lambda t: function(t * 2, 1), tracing_mode="fake")(x.detach()))
        assert result.native and result(x.detach()).tolist() == [8.0, 8.0]
    finally:
        unregister(registry["spread.default"])
        del exports["torch"]["spread"], exports["Tensor"]["spread"]


if __name__ == "__main__":
    PAGE.write_text(TABLE.sub(lambda _: table(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")
