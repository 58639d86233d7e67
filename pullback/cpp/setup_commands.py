"""C++ extensions in setup scripts: `CppExtension` describes one, `BuildExtension` is the command that builds it.

In: `setup(ext_modules=[CppExtension("name", ["a.cpp"])], cmdclass={"build_ext": BuildExtension})`. Out: a module that is
installed like any other; import `torch` (or pullback) before it is not needed, it imports what it calls.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from .compiler import STANDARD, include_paths

try:
    from setuptools import Extension
    from setuptools.command.build_ext import build_ext
except ImportError as error:  # Python 3.12 and later come without it
    raise ImportError("CppExtension and BuildExtension need setuptools: pip install setuptools") from error


def extension(name: str, sources: Sequence[str], *args, **kwargs) -> Extension:
    """A description of an extension in C++."""
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", ()), *include_paths()]
    kwargs["language"] = "c++"
    return Extension(name, list(sources), *args, **kwargs)


class BuildExtension(build_ext):
    """Builds extensions in C++. `no_python_abi_suffix`: name libraries NAME.so."""

    def __init__(self, *args, **kwargs) -> None:
        self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
        for name in ("use_ninja", "parallel_compile"):  # compilers are called by setuptools
            kwargs.pop(name, None)
        super().__init__(*args, **kwargs)

    @classmethod
    def with_options(cls, **options):
        """A command class with options of its own."""

        class cls_with_options(cls):
            def __init__(self, *args, **kwargs) -> None:
                super().__init__(*args, **{**kwargs, **options})

        return cls_with_options

    def build_extension(self, ext) -> None:
        """Compile one: the module's name and the standard are given to the compiler."""
        ext = copy.copy(ext)
        given = ext.extra_compile_args or []
        if isinstance(given, dict):
            if given.get("nvcc"):
                raise OSError("C++ extensions are built for the CPU only; flags for nvcc are not supported")
            given = given.get("cxx", [])
        standard = [] if any(f.startswith("-std=") for f in given) else [STANDARD]
        short = ext.name.rpartition(".")[2]
        ext.extra_compile_args = [f"-DTORCH_EXTENSION_NAME={short}", "-fvisibility=hidden", *standard, *given]
        super().build_extension(ext)

    def get_ext_filename(self, fullname: str) -> str:
        """The file of an extension, without the part that names Python's ABI where that is wanted."""
        result = super().get_ext_filename(fullname)
        if not self.no_python_abi_suffix:
            return result
        head, *_, tail = result.rsplit("/", 1)[-1].split(".")
        folder = result.rpartition("/")[0]
        return f"{folder}/{head}.{tail}" if folder else f"{head}.{tail}"
