"""The optional extensions: what setup.py builds is what the package looks for, of all the headers that it reads."""

import re
import runpy
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "pullback" / "core"


@pytest.fixture
def built(monkeypatch) -> dict[str, setuptools.Extension]:
    """What setup.py would build, by name."""
    told: dict = {}
    monkeypatch.setattr(setuptools, "setup", lambda **options: told.update(options))
    runpy.run_path(str(ROOT / "setup.py"))
    return {extension.name: extension for extension in told["ext_modules"]}


def test_setup_builds_every_extension_that_has_a_source(built):
    assert set(built) == {f"pullback.core.{path.stem}" for path in SOURCES.glob("_*.c")}
    assert all(extension.optional for extension in built.values())


def test_extensions_are_built_again_where_a_header_that_they_read_has_changed(built):
    def read(file: Path) -> set[str]:
        found = set(re.findall(r'#(?:include|define TEMPLATE) "(\w+\.h)"', file.read_text()))
        return found.union(*(read(SOURCES / name) for name in found if name != file.name))

    for name, extension in built.items():
        assert {Path(p).name for p in extension.depends} == read(SOURCES / f"{name.rpartition('.')[2]}.c"), name
