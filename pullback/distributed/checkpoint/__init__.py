"""`torch.distributed.checkpoint`: state that many ranks save and any other number loads."""

from .state_dict_loader import load, load_state_dict
from .state_dict_saver import save, save_state_dict
from .storage import CheckpointException, FileSystemReader, FileSystemWriter

__all__ = [
    "CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip
