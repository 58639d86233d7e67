"""`torch.distributed.checkpoint`: state that many ranks save and any other number loads."""

from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, TensorStorageMetadata
from .planner import DefaultLoadPlanner, DefaultSavePlanner, LoadPlanner, SavePlanner
from .state_dict_loader import load, load_state_dict
from .state_dict_saver import async_save, save, save_state_dict
from .storage import CheckpointException, FileSystemReader, FileSystemWriter, StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "DefaultLoadPlanner", "DefaultSavePlanner",
    "FileSystemReader", "FileSystemWriter", "LoadPlanner", "Metadata", "SavePlanner", "StorageReader", "StorageWriter",
    "TensorStorageMetadata", "async_save", "load", "load_state_dict", "save", "save_state_dict",
]  # fmt: skip
