"""Checkpoints as files of Hugging Face's layout: not built. The names are here for programs that import them; using them raises."""

from __future__ import annotations

_WORDS = "{} is not implemented: save with torch.distributed.checkpoint.FileSystemWriter, or gather and use safetensors"


class HuggingFaceStorageWriter:
    """Would write a checkpoint as safetensors files."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(_WORDS.format(type(self).__name__))


class HuggingFaceStorageReader:
    """Would read a checkpoint of safetensors files."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(_WORDS.format(type(self).__name__))


def consolidate_safetensors_files(*args, **kwargs):
    raise NotImplementedError(_WORDS.format("consolidate_safetensors_files"))
