"""What tests of generated programs look at."""

from __future__ import annotations

import pytest

from pullback.codegen import Native, program


@pytest.fixture
def made(monkeypatch) -> list[Native]:
    """The programs that are built."""
    found: list[Native] = []
    build = Native.build
    monkeypatch.setattr(program.Native, "build", lambda self: (found.append(self), build(self))[1])
    return found
