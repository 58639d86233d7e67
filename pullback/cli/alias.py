"""`pullback alias`: make `import torch` mean pullback in this environment, for every process, and tell pip so.

Two small packages (`torch`, `functorch`) and a distribution record go into the environment's site-packages. The packages
hand over to `compat` when they are imported, so scripts, notebooks, workers and subprocesses need no switch. The record is
what `pip` and `importlib.metadata` read: a distribution `torch` whose version satisfies what packages ask for, with a
RECORD by which `pip uninstall torch` takes everything out again.

A package that asks for a newer torch than this one would still make pip bring PyTorch in. In a virtual environment a
constraint in its `pip.conf` prevents that: pip then looks for a version of the package that this torch satisfies.

What always holds: a real PyTorch is never touched, and a failed attempt leaves nothing behind.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from ..surface.version import TORCH

__all__ = ["alias", "installed"]

DISTRIBUTION = f"torch-{TORCH}.dist-info"
MARK = "Written by `pullback alias`"
_PACKAGES = {
    "torch": f'"""{MARK}: `import torch` means pullback here."""\n\nfrom pullback.compat.torch import install\n\ninstall()\n',
    "functorch": f'"""{MARK}: the old name of `torch.func`."""\n\nfrom pullback.compat.torch import install, take_over\n\ninstall()\ntake_over(__name__)\n',
}
_METADATA = f"""Metadata-Version: 2.1
Name: torch
Version: {TORCH}
Summary: pullback under the name of torch, written by `pullback alias`
Requires-Python: >=3.11
Requires-Dist: pullback

`import torch` means pullback in this environment. `pullback alias --remove` takes the alias away.
"""
_WHEEL = "Wheel-Version: 1.0\nGenerator: pullback\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


_CONSTRAINTS = f"{DISTRIBUTION}/constraints.txt"
_CONFIGURATION = "[install]\nconstraint = {constraints}\n"


class Refused(Exception):
    """The alias cannot be made or removed; the message says why and what to do."""


def _files() -> dict[str, str]:
    """Every file of the alias by its path in site-packages, but for the RECORD of them."""
    return {
        **{f"{name}/__init__.py": text for name, text in _PACKAGES.items()},
        f"{DISTRIBUTION}/METADATA": _METADATA,
        f"{DISTRIBUTION}/WHEEL": _WHEEL,
        f"{DISTRIBUTION}/INSTALLER": "pullback\n",
        f"{DISTRIBUTION}/top_level.txt": "functorch\ntorch\n",
        _CONSTRAINTS: f"torch=={TORCH}\n",
    }


def _record(files: dict[str, str]) -> str:
    """The RECORD: path, hash and size of each file; its own line has neither."""
    lines = []
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{path},sha256={digest},{len(text.encode())}")
    file, text = _configuration(_site())
    ours = sys.prefix != sys.base_prefix and (not file.exists() or file.read_text() == text)
    owned = [f"{os.path.relpath(file, _site())},,"] if ours else []
    return "\n".join([*lines, *owned, f"{DISTRIBUTION}/RECORD,,", ""])


def _site() -> Path:
    return Path(sysconfig.get_path("purelib"))


def installed() -> importlib.metadata.Distribution | None:
    """The distribution called torch in this environment, whoever wrote it."""
    try:
        return importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def is_alias(found: importlib.metadata.Distribution) -> bool:
    return found.version.endswith("+pullback")


def _check_removable() -> None:
    found = installed()
    if found is not None and not is_alias(found):
        raise Refused(
            f"there is no alias here to remove: torch {found.version} ({found.locate_file('')}) is PyTorch itself."
        )


def _check_free(site: Path) -> None:
    """Refuse where another torch is in the way."""
    found = installed()
    if found is not None and not is_alias(found):
        raise Refused(
            f"PyTorch {found.version} is installed in this environment ({found.locate_file('')}). The alias would hide it: "
            "uninstall it first (pip uninstall torch), or make another environment for pullback."
        )
    for name in _PACKAGES:
        file = site / name / "__init__.py"
        if (site / name).exists() and not (file.exists() and MARK in file.read_text(errors="replace")):
            raise Refused(f"{site / name} exists and is not an alias of pullback; move it away first.")


def _install(site: Path) -> None:
    """Write all files beside their places first, then move them in: an interrupted run leaves no half alias."""
    _check_free(site)
    files = _files()
    files[f"{DISTRIBUTION}/RECORD"] = _record(files)
    try:
        staging = Path(tempfile.mkdtemp(prefix=".pullback-alias-", dir=site))
    except OSError as error:
        raise Refused(f"Cannot write to {site}: {error.strerror}. Use a virtual environment of your own.") from None
    try:
        for path, text in files.items():
            (staging / path).parent.mkdir(parents=True, exist_ok=True)
            (staging / path).write_text(text)
        _remove_files(site)
        for name in sorted(os.listdir(staging)):
            os.replace(staging / name, site / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _configuration(site: Path) -> tuple[Path, str]:
    """The settings of pip for this environment, and what they are while the alias is there."""
    return Path(sys.prefix) / "pip.conf", _CONFIGURATION.format(constraints=site / _CONSTRAINTS)


def _configure_pip(site: Path) -> str:
    """Hold pip to this torch; what to tell the user where that cannot be done."""
    file, text = _configuration(site)
    if sys.prefix == sys.base_prefix:
        return "This is no virtual environment: a package that wants a newer torch can still make pip install PyTorch."
    if file.exists() and file.read_text() != text:
        return f"{file} exists: add `constraint = {site / _CONSTRAINTS}` to its section [install], so that pip keeps this torch."
    file.write_text(text)
    return ""


def _remove_files(site: Path) -> list[str]:
    """Take out what an alias of any version put there; the names of what went."""
    gone = []
    file, text = _configuration(site)
    if file.exists() and file.read_text() == text:
        file.unlink()
        gone.append(file.name)
    for name in (*_PACKAGES, *(p.name for p in site.glob("torch-*+pullback.dist-info"))):
        if (site / name).is_dir():
            shutil.rmtree(site / name)
            gone.append(name)
    return gone


def _status() -> int:
    found = installed()
    if found is None:
        print("No alias: `import torch` finds nothing here. `pullback alias` makes it mean pullback.")
    elif is_alias(found):
        print(f"torch {found.version} in {found.locate_file('')} means pullback.")
    else:
        print(f"torch {found.version} in {found.locate_file('')} is PyTorch itself, not an alias of pullback.")
    return 0 if found is not None and is_alias(found) else 1


def alias(remove: bool = False, status: bool = False) -> int:
    """Make, remove or report the alias; the exit status says whether it is as was asked (`status`: whether it is there)."""
    if status:
        return _status()
    site = _site()
    try:
        if remove:
            _check_removable()
            gone = _remove_files(site)
            print(f"Removed from {site}: {', '.join(gone)}." if gone else "There was no alias here.")
        else:
            _install(site)
            advice = _configure_pip(site)
            print(f"`import torch` now means pullback in {sys.prefix} (as torch {TORCH}).")
            if advice:
                print(advice)
    except Refused as refusal:
        print(f"pullback alias: {refusal}", file=sys.stderr)
        return 1
    return 0
