"""A graph module as a Python package.

In: a module and a folder. Out: `module.py` with its generated code, the parameters in `state_dict.pt`, and a file for
each submodule that cannot be written as one line. What always holds: importing the folder gives a class that computes
the same.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from .codegen import indented

_ONE_LINE = frozenset(("Linear", "Conv1d", "Conv2d", "Conv3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"))
_HEAD = """
import torch
from math import inf
from math import nan
NoneType = type(None)
import torch
from torch import device
import torch.fx._pytree as fx_pytree
import torch.utils._pytree as pytree

from torch.nn import *
class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
"""


def write_folder(module: Any, folder: Any, name: str) -> None:
    """Write a graph module into a folder."""
    from ..serialization import save

    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    buffers = {name: value for name, value in module._buffers.items() if value is not None}
    save({**module.state_dict(), **buffers}, folder / "state_dict.pt")
    lines, pickled = [], []
    for child, value in module.named_children():
        if type(value).__name__ in _ONE_LINE:
            lines.append(f"setattr(self, '{child}', {value!r})")
            continue
        save(value, folder / f"{child}.pt")
        pickled.append(child)
        shown = repr(value).replace("\r", " ").replace("\n", " ")
        lines.append(f"setattr(self, '{child}', torch.load(r'{folder / child}.pt', weights_only=False)) # {shown}")
    for buffer, value in buffers.items():
        empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
        lines.append(f"self.register_buffer('{buffer}', {empty})")
    for parameter, value in module._parameters.items():
        if value is not None:
            empty = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
            lines.append(f"setattr(self, '{parameter}', torch.nn.Parameter({empty}))")
    lines.append(f"self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
    body = "".join(f"        {line}\n" for line in lines)
    (folder / "module.py").write_text(f"{_HEAD.format(name=name)}{body}{indented(module.code)}\n")
    (folder / "__init__.py").write_text("from .module import *")
    if pickled:
        warnings.warn(
            f"Was not able to save the following children modules as reprs -saved as pickled files instead: {pickled}",
            stacklevel=3,
        )
