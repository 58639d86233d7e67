"""`torch.utils.tensorboard`: what TensorBoard shows, written by the file writers of the package `tensorboard`.

`summary.py` makes messages of tensors, `graphs.py` of models, and `writer.py` writes them to files.
"""

from __future__ import annotations

try:
    import tensorboard  # noqa: F401
except ImportError as error:
    raise ImportError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard") from error

from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
