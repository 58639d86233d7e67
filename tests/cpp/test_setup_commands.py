"""`CppExtension` and `BuildExtension` of a `setup.py`: names, flags and what is refused."""

import pytest

setuptools = pytest.importorskip("setuptools")

from setuptools.command.build_ext import build_ext  # noqa: E402

from pullback.cpp import setup_commands  # noqa: E402
from pullback.cpp.compiler import STANDARD, include_paths  # noqa: E402


def command(**options):
    return setup_commands.BuildExtension.with_options(**options)(setuptools.Distribution())


@pytest.fixture
def built(monkeypatch):
    """The extensions that reach setuptools' own builder."""
    seen = []
    monkeypatch.setattr(build_ext, "build_extension", lambda self, ext: seen.append(ext))
    return seen


def test_an_extension_finds_the_headers():
    made = setup_commands.extension("my.ops", ["a.cpp"], include_dirs=["mine"])
    assert made.include_dirs == ["mine", *include_paths()] and made.language == "c++" and made.sources == ["a.cpp"]


def test_flags(built):
    given = setup_commands.extension("my.ops", ["a.cpp"], extra_compile_args={"cxx": ["-O1"]})
    command(use_ninja=False).build_extension(given)
    assert built[0].extra_compile_args == ["-DTORCH_EXTENSION_NAME=ops", "-fvisibility=hidden", STANDARD, "-O1"]
    assert given.extra_compile_args == {"cxx": ["-O1"]}  # the user's object is left alone
    command().build_extension(setup_commands.extension("x", ["a.cpp"], extra_compile_args=["-std=c++20"]))
    assert STANDARD not in built[1].extra_compile_args
    with pytest.raises(OSError, match="flags for nvcc are not supported"):
        command().build_extension(setup_commands.extension("x", [], extra_compile_args={"nvcc": ["-O3"]}))


def test_names_of_files():
    plain, short = command(), command(no_python_abi_suffix=True)
    assert "cpython" in plain.get_ext_filename("ops")
    assert short.get_ext_filename("ops") == "ops.so" and short.get_ext_filename("my.ops") == "my/ops.so"
