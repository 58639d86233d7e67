"""Models from the hub: entry points of a `hubconf.py` in a local folder. What needs the network raises.

model = hub.load("path/to/folder", "resnet18", source="local", pretrained=False)
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

_HUBCONF = "hubconf.py"
_dir: str | None = None


def get_dir() -> str:
    """Where downloaded repositories and weights would be kept."""
    if _dir is not None:
        return _dir
    home = os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.join(os.path.expanduser(home), "hub")


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


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    raise RuntimeError(
        f"hub: {url} would have to be downloaded, which is not supported; download it to {dst} by other means"
    )


def load_state_dict_from_url(
    url: str, model_dir: str | None = None, map_location=None, progress: bool = True, check_hash: bool = False,
    file_name: str | None = None, weights_only: bool = False,
):  # fmt: skip
    """Weights of a file that is in the cache already; a file that is not raises."""
    path = os.path.join(model_dir or os.path.join(get_dir(), "checkpoints"), file_name or url.rpartition("/")[2])
    if not os.path.exists(path):
        download_url_to_file(url, path)
    from ..serialization import load

    return load(path, map_location=map_location, weights_only=weights_only)
