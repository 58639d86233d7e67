"""Models from the hub: entry points of a `hubconf.py` in a local folder. What needs the network raises.

model = hub.load("path/to/folder", "resnet18", source="local", pretrained=False)
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import zipfile

_HUBCONF = "hubconf.py"
HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")  # the beginning of the hash in the name of a file
_dir: str | None = None


def get_dir() -> str:
    """Where downloaded repositories and weights would be kept."""
    if _dir is not None:
        return _dir
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d: str | os.PathLike) -> None:
    """Choose that folder."""
    global _dir
    _dir = os.path.expanduser(d)


def _local(repo_or_dir: str, source: str) -> str:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise RuntimeError(
            f"hub: {repo_or_dir!r} would have to be downloaded, which is not supported; use source='local' and a folder"
        )
    return os.path.expanduser(repo_or_dir)


def _hubconf(folder: str) -> ModuleType:
    """The module of a folder's hubconf.py, with the folder on the path while it is imported."""
    path = os.path.join(folder, _HUBCONF)
    if not os.path.isfile(path):
        raise FileNotFoundError(f"hub: there is no {_HUBCONF} in {folder}")
    loader = importlib.machinery.SourceFileLoader("hubconf", path)
    module = ModuleType("hubconf")
    module.__file__ = path
    sys.path.insert(0, folder)
    try:
        loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _entry(module: ModuleType, name: str):
    missing = [d for d in getattr(module, "dependencies", ()) if importlib.util.find_spec(d) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    found = getattr(module, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def load(
    repo_or_dir: str, model: str, *args, source: str = "github", trust_repo=None, force_reload: bool = False,
    verbose: bool = True, skip_validation: bool = False, **kwargs,
):  # fmt: skip
    """Call an entry point of a local folder's hubconf.py."""
    return _entry(_hubconf(_local(repo_or_dir, source)), model)(*args, **kwargs)


def list(
    github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo=None, verbose: bool = True
) -> Sequence[str]:
    """Entry points of a folder (repositories cannot be downloaded)."""
    folder = _local(github, "local" if os.path.isdir(github) else "github")
    return [name for name, value in vars(_hubconf(folder)).items() if callable(value) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo=None
) -> str | None:
    """The docstring of an entry point of a folder."""
    folder = _local(github, "local" if os.path.isdir(github) else "github")
    return _entry(_hubconf(folder), model).__doc__


def _get_torch_home() -> str:
    """Where PyTorch's programs keep what they download."""
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(home)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Download a file, with a progress bar; it is at its place only when it is whole and its hash begins as it should."""
    import hashlib
    import tempfile
    import urllib.request

    from rich.progress import Progress

    folder = os.path.dirname(os.path.abspath(dst))
    os.makedirs(folder, exist_ok=True)
    digest = hashlib.sha256()
    handle, partial = tempfile.mkstemp(dir=folder, prefix=".download-")
    try:
        with urllib.request.urlopen(url) as source, open(handle, "wb") as file, Progress(disable=not progress) as bar:
            size = source.headers.get("Content-Length")
            task = bar.add_task(os.path.basename(dst), total=int(size) if size else None)
            while block := source.read(1 << 16):
                file.write(block)
                digest.update(block)
                bar.advance(task, len(block))
        if hash_prefix is not None and not digest.hexdigest().startswith(hash_prefix):
            raise RuntimeError(f'invalid hash value (expected "{hash_prefix}", got "{digest.hexdigest()}")')
        os.replace(partial, dst)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)


def _safe_extract_zip(archive: zipfile.ZipFile, folder: str) -> None:
    """Unpack an archive; nothing of it where a name leads out of the folder."""
    root = os.path.realpath(folder)
    for written in archive.namelist():
        name = written.replace("\\", "/")  # as some systems part folders
        if name.startswith("/") or re.match("[A-Za-z]:", name):
            raise ValueError(f"Archive entry has an absolute path, which is not allowed: {written}")
        if os.path.commonpath((root, os.path.realpath(os.path.join(root, name)))) != root:
            raise ValueError(f"Archive entry leads out of the folder by directory traversal: {written}")
    archive.extractall(folder)


def _legacy_zip_load(path: str, model_dir: str, map_location=None, weights_only: bool = False):
    """The weights in an archive of one file."""
    import zipfile

    from ..serialization import load

    with zipfile.ZipFile(path) as archive:
        files = archive.infolist()
        if len(files) != 1:
            raise RuntimeError(f"Only one file (not dir) is allowed in the zipfile, but {path} has {len(files)}")
        _safe_extract_zip(archive, model_dir)
    return load(os.path.join(model_dir, files[0].filename), map_location=map_location, weights_only=weights_only)


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location=None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
):  # fmt: skip
    """Weights of a file, from the cache or downloaded to it."""
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or url.rpartition("/")[2])
    if not os.path.exists(path):
        found = HASH_REGEX.search(os.path.basename(path)) if check_hash else None
        download_url_to_file(url, path, found[1] if found else None, progress)
    from ..serialization import load

    return load(path, map_location=map_location, weights_only=weights_only)
