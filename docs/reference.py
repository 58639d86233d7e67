"""The reference: a page for each public module, made of signatures and docstrings when the site is built.

mkdocs calls `on_files` (see `hooks` in mkdocs.yml). What always holds: every public name of a module is on its page.
"""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterator

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

MODULES = (
    "", "nn", "nn.functional", "nn.init", "nn.utils", "optim", "optim.lr_scheduler", "autograd", "func", "linalg", "fft", "special",
    "signal.windows", "sparse", "nested", "distributions", "utils.data", "utils.checkpoint", "amp", "profiler", "library", "export",
    "distributed", "cuda", "random", "testing",
)  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    import pullback

    pages = {f"reference/{name or 'torch'}.md": module_page(name) for name in MODULES}
    pages["reference/Tensor.md"] = class_page("torch.Tensor", pullback.Tensor)
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    config.nav[-1] = {"Reference": sorted(pages)}
    return files


def module_page(name: str) -> str:
    module = importlib.import_module(f"pullback.{name}" if name else "pullback")
    title = f"torch.{name}" if name else "torch"
    parts = [f"# {title}", paragraph(inspect.getdoc(module) if name else "Tensors, and what can be done with them.")]
    for own, value in public(module):
        parts += entry(own, value)
    return "\n\n".join(parts) + "\n"


def class_page(title: str, cls: type) -> str:
    parts = [f"# {title}", paragraph(inspect.getdoc(cls))]
    for own in sorted(n for n in dir(cls) if not n.startswith("_")):
        parts += entry(own, inspect.getattr_static(cls, own))
    return "\n\n".join(parts) + "\n"


def public(module: types.ModuleType) -> Iterator[tuple[str, object]]:
    """The names of a module that its users call, constants and modules left out."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in sorted(set(names)):
        value = getattr(module, name, None)
        if callable(value) and getattr(value, "__module__", "") not in ("typing", "collections.abc"):
            yield name, value


def entry(name: str, value: object) -> list[str]:
    """A heading, the call, and what is said of it."""
    value = getattr(value, "__func__", value)
    try:
        call = f"{name}{inspect.signature(value)}"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        call = name
    return [
        f"## {name}",
        f"```python\n{call}\n```",
        paragraph(inspect.getdoc(value) if callable(value) else getattr(value, "__doc__", "")),
    ]


def paragraph(text: str | None) -> str:
    """A docstring as Markdown: examples and indented lines are code, the rest as it is; what looks like markup is not."""
    parts = []
    for block in (text or "").strip().split("\n\n"):
        if block.startswith(">>> "):
            parts.append(f"```pycon\n{block}\n```")
        else:
            lines = block.splitlines()
            parts.append("\n".join(line if line.startswith("    ") else line.replace("<", "&lt;") for line in lines))
    return "\n\n".join(parts)
