"""`torch.utils.cpp_extension`: C++ sources to Python modules and operators, now or by a setup script.

In: C++ that includes `torch/extension.h` (this package's own headers, in `cpp/include`). Out: a module, or operators under
`torch.ops`. What was built is kept by content; a compiler that is missing, or that refuses, is an error with its words.
Nothing here is for CUDA, HIP or SYCL: what asks for those raises. Nothing heavy is imported before something is built.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..cpp.setup_commands import BuildExtension

__all__ = [
    "BuildExtension", "CUDAExtension", "CppExtension", "SyclExtension", "check_compiler_is_gcc",
    "check_compiler_ok_for_platform", "get_compiler_abi_compatibility_and_version", "get_cxx_compiler",
    "get_default_build_root", "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
    "verify_ninja_availability",
]  # fmt: skip

IS_WINDOWS = sys.platform == "win32"
IS_MACOS = sys.platform.startswith("darwin")
IS_LINUX = sys.platform.startswith("linux")
CUDA_HOME = CUDNN_HOME = ROCM_HOME = SYCL_HOME = None
IS_HIP_EXTENSION = False
LIB_EXT = ".so"
OTHER_KINDS = (".cu", ".cuh", ".hip", ".sycl")


# ---- the compiler
def get_cxx_compiler() -> str:
    """The command of the C++ compiler: CXX, or the first of c++, g++, clang++ there is."""
    from ..cpp.compiler import cxx_compiler

    return cxx_compiler()


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether a compiler is there and can be used."""
    words = shlex.split(compiler)
    return bool(words) and shutil.which(words[0]) is not None


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether a compiler is GCC."""
    return check_compiler_ok_for_platform(compiler) and "Free Software Foundation" in _version(compiler)


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, tuple[int, ...]]:
    """(whether what a compiler builds can be loaded, its version): headers only, so any compiler's can."""
    if not check_compiler_ok_for_platform(compiler):
        return False, (0, 0, 0)
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", _version(compiler))
    return True, tuple(int(n or 0) for n in found.groups()) if found else (0, 0, 0)


def _version(compiler: str) -> str:
    result = subprocess.run([*shlex.split(compiler), "--version"], capture_output=True, text=True)
    return result.stdout + result.stderr


def is_ninja_available() -> bool:
    """Whether ninja is there. It is not used: translation units are compiled side by side without it."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Raise where ninja is not there."""
    if not is_ninja_available():
        raise RuntimeError("Ninja is required to load C++ extensions (pip install ninja to get it)")


# ---- places
def get_default_build_root() -> str:
    """The folder below which extensions are built: TORCH_EXTENSIONS_DIR, or one of the user's cache."""
    from ..cpp.compiler import cache_root

    return str(cache_root())


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Folders with the headers of extensions."""
    _refuse_devices(device_type)
    from ..cpp.compiler import include_paths as folders

    return folders() if torch_include_dirs else []


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: str | None = None
) -> list[str]:
    """Folders with libraries to link with: none, the headers are all there is."""
    _refuse_devices(device_type)
    return []


def _refuse_devices(kind: str | bool) -> None:
    if kind not in ("cpu", False):
        raise OSError(
            f"C++ extensions are built for the CPU only, {'cuda' if kind is True else kind!r} was asked for: CUDA_HOME environment "
            "variable is not set, and pullback has no CUDA headers"
        )


# ---- sources
def load(
    name: str,
    sources: str | Sequence[str],
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    is_standalone: bool = False,
    keep_intermediates: bool = True,
) -> ModuleType | str:
    """Compile C++ files and load the result: the module, or the library's path where `is_python_module` is False."""
    files = [Path(s).expanduser().absolute() for s in _listed(sources)]
    _refuse_others(with_cuda, with_sycl, is_standalone)
    for file in files:
        if file.suffix in OTHER_KINDS:
            raise OSError(
                f"{file}: C++ extensions are built for the CPU only; sources for CUDA, HIP and SYCL are not supported"
            )
        if not file.exists():
            raise FileNotFoundError(f"load: the source {file} does not exist")
    folder = Path(build_directory or _folder_of(name)).expanduser().absolute()
    return _built(name, files, folder, extra_cflags, extra_ldflags, extra_include_paths, verbose, is_python_module)


def load_inline(
    name: str,
    cpp_sources: str | Sequence[str],
    cuda_sources: str | Sequence[str] | None = None,
    sycl_sources: str | Sequence[str] | None = None,
    functions: str | Sequence[str] | Mapping[str, str] | None = None,
    extra_cflags: Sequence[str] | None = None,
    extra_cuda_cflags: Sequence[str] | None = None,
    extra_sycl_cflags: Sequence[str] | None = None,
    extra_ldflags: Sequence[str] | None = None,
    extra_include_paths: str | Sequence[str] | None = None,
    build_directory: str | None = None,
    verbose: bool = False,
    with_cuda: bool | None = None,
    with_sycl: bool | None = None,
    is_python_module: bool = True,
    with_pytorch_error_handling: bool = True,
    keep_intermediates: bool = True,
    use_pch: bool = False,
    no_implicit_headers: bool = False,
) -> ModuleType | str:
    """Compile C++ text and load the result. `functions`: names (with docstrings, in a mapping) to bind in the module."""
    if cuda_sources or sycl_sources:
        raise OSError(
            "load_inline: C++ extensions are built for the CPU only; cuda_sources and sycl_sources are not supported"
        )
    _refuse_others(with_cuda, with_sycl, False)
    parts = [] if no_implicit_headers else ["#include <torch/extension.h>"]
    parts += _listed(cpp_sources)
    if functions is not None:
        parts.append(_bindings(functions))
    folder = Path(build_directory or _folder_of(name)).expanduser().absolute()
    text = ("\n".join(parts) + "\n").encode()
    source = folder / f"{name}_{hashlib.sha256(text).hexdigest()[:8]}.cpp"  # another text is another file
    from ..cpp.compiler import write_whole

    write_whole(source, text)
    return _built(name, [source], folder, extra_cflags, extra_ldflags, extra_include_paths, verbose, is_python_module)


def _listed(given: str | os.PathLike | Sequence | None) -> list:
    if given is None:
        return []
    return [given] if isinstance(given, (str, os.PathLike)) else list(given)


def _refuse_others(with_cuda: bool | None, with_sycl: bool | None, is_standalone: bool) -> None:
    if with_cuda or with_sycl:
        _refuse_devices("cuda" if with_cuda else "sycl")
    if is_standalone:
        raise NotImplementedError("is_standalone=True: the headers need a Python process, so no executable is built")


def _folder_of(name: str) -> str:
    return os.path.join(get_default_build_root(), name)


def _bindings(functions: str | Sequence[str] | Mapping[str, str]) -> str:
    """The C++ that binds functions by their names."""
    docs = functions if isinstance(functions, Mapping) else {f: f for f in _listed(functions)}
    lines = [f'  m.def("{f}", torch::wrap_pybind_function({f}), {_quoted(d)});' for f, d in docs.items()]
    return "\n".join(["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {", *lines, "}"])


def _quoted(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _built(
    name: str, files: list[Path], folder: Path, cflags, ldflags, include, verbose: bool, is_python_module: bool
) -> Any:
    """The library of some files, compiled where needed and loaded."""
    if not name.isidentifier():
        raise ValueError(f"the name of an extension must be an identifier of Python and C++, got {name!r}")
    from ..cpp.compiler import build
    from ..cpp.loading import load_library, load_module

    folder.mkdir(parents=True, exist_ok=True)
    path = build(
        name, files, folder, cflags=_listed(cflags), ldflags=_listed(ldflags), include=_listed(include), verbose=verbose
    )
    if verbose:
        print(f"Loading extension module {name}...", flush=True)
    if is_python_module:
        return load_module(name, path)
    load_library(path)
    return str(path)


# ---- setup scripts
def CppExtension(name: str, sources: Sequence[str], *args, **kwargs):
    """A `setuptools.Extension` with the folders and flags of C++ extensions; build it with `BuildExtension`."""
    from ..cpp.setup_commands import extension

    return extension(name, sources, *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args, **kwargs):
    """Extensions for CUDA are not supported: raises."""
    _refuse_devices("cuda")


def SyclExtension(name: str, sources: Sequence[str], *args, **kwargs):
    """Extensions for SYCL are not supported: raises."""
    _refuse_devices("sycl")


def __getattr__(name: str):
    if name == "BuildExtension":  # stands on setuptools, which is slow to import and need not be there
        from ..cpp.setup_commands import BuildExtension

        return BuildExtension
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
