"""The optional extensions: what setup.py builds is what the package looks for."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_setup_builds_every_extension_that_has_a_source():
    calls = [n for n in ast.walk(ast.parse((ROOT / "setup.py").read_text())) if isinstance(n, ast.Call)]
    built = {c.args[0].value for c in calls if getattr(c.func, "id", "") == "Extension"}
    sources = {f"pullback.core.{path.stem}" for path in (ROOT / "pullback" / "core").glob("_*.c")}
    assert built == sources
