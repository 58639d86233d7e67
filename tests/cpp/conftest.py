"""Extensions of `sources/`, each built once for a session and its workers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pullback.utils.cpp_extension as cpp

SOURCES = Path(__file__).parent / "sources"


def pytest_collection_modifyitems(items):
    if not cpp.check_compiler_ok_for_platform(cpp.get_cxx_compiler()):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason="no C++ compiler"))


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    """`build("lltm")`: the module of a source; with `is_python_module=False`, its operators."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "extensions"  # shared by all workers
    result = {}

    def load(name: str, **options):
        if name not in result:
            result[name] = cpp.load(name, [SOURCES / f"{name}.cpp"], build_directory=str(folder / name), **options)
        return result[name]

    return load
