"""The operators behind `torchvision.io` (`torch.ops.image.*`): images as files and as bytes, through Pillow.

Images are (channels, height, width) of uint8 (PNG files of 16 bits: uint16), files are flat tensors of bytes. `mode` is the
number of channels that is asked for (1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha), 0 for those of the file.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ..core.tensor import Tensor, wrap
from .registration import Library

_libraries: list[Library] = []  # operators live as long as their library
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}


def _pillow() -> Any:
    try:
        import PIL.Image
        import PIL.ImageOps
    except ImportError as error:
        raise ImportError("torchvision.io reads and writes images with Pillow here: pip install pillow") from error
    return PIL


def read_file(filename: str) -> Tensor:
    """The bytes of a file."""
    return wrap(np.fromfile(filename, np.uint8))


def write_file(filename: str, data: Tensor) -> None:
    if data.dtype.name != "uint8" or data.dim() != 1:
        raise RuntimeError(
            f"Input tensor to write to file should be 1-dimensional uint8, got {data.dtype} {tuple(data.shape)}"
        )
    Path(filename).write_bytes(data.numpy().tobytes())


def _opened(data: Tensor, *formats: str) -> Any:
    if data.dtype.name != "uint8" or data.dim() != 1 or not data.numel():
        raise RuntimeError(f"Expected a non empty 1-dimensional tensor of bytes, got {data.dtype} {tuple(data.shape)}")
    pillow = _pillow()
    try:
        return pillow.Image.open(io.BytesIO(data.numpy().tobytes()), formats=formats or None)
    except pillow.UnidentifiedImageError as error:
        kinds = " or ".join(formats) or "any format that Pillow knows"
        raise RuntimeError(f"Unsupported image file: the bytes are no image of {kinds}") from error


def _channels(image: Any, mode: int) -> np.ndarray:
    """An image of Pillow's as (channels, height, width)."""
    if image.mode.startswith("I;16") and mode in (0, 1):
        return np.asarray(image).astype(np.uint16)[None]
    if mode == 0:
        usual = {"1": "L", "P": "RGBA" if "transparency" in image.info else "RGB"}
        image = image if image.mode in _MODES.values() else image.convert(usual.get(image.mode, "RGB"))
    else:
        image = image.convert(_MODES[mode])
    array = np.array(image)
    return np.ascontiguousarray(array[None] if array.ndim == 2 else array.transpose(2, 0, 1))


def _decoded(image: Any, mode: int, turn: bool) -> Tensor:
    if mode == 1 and image.format == "JPEG":
        image.draft("L", image.size)  # the file has the grey values themselves
    if turn:
        image = _pillow().ImageOps.exif_transpose(image)
    return wrap(_channels(image, mode))


def decode_png(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return _decoded(_opened(data, "PNG"), mode, apply_exif_orientation)


def decode_jpeg(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    return _decoded(_opened(data, "JPEG"), mode, apply_exif_orientation)


def decode_webp(data: Tensor, mode: int) -> Tensor:
    return _decoded(_opened(data, "WEBP"), mode, False)


def decode_gif(data: Tensor) -> Tensor:
    """(frames, 3, height, width), or (3, height, width) of a file with one."""
    image = _opened(data, "GIF")
    frames = []
    for k in range(getattr(image, "n_frames", 1)):
        image.seek(k)
        frames.append(_channels(image.convert("RGB"), 3))
    return wrap(frames[0] if len(frames) == 1 else np.stack(frames))


def decode_image(data: Tensor, mode: int, apply_exif_orientation: bool = False) -> Tensor:
    image = _opened(data)
    if image.format == "GIF":
        return decode_gif(data)
    return _decoded(image, mode, apply_exif_orientation)


def _encoded(data: Tensor, kind: str, **options: Any) -> Tensor:
    if data.dtype.name != "uint8" or data.dim() != 3 or data.size(0) not in (1, 3):
        raise RuntimeError(
            f"encode_{kind.lower()}: an image of uint8 with 1 or 3 channels, (C, H, W), was expected, got {data.dtype} "
            f"{tuple(data.shape)}"
        )
    array = data.detach().cpu().numpy()
    image = _pillow().Image.fromarray(array[0] if len(array) == 1 else np.ascontiguousarray(array.transpose(1, 2, 0)))
    file = io.BytesIO()
    image.save(file, kind, **options)
    return wrap(np.frombuffer(bytearray(file.getbuffer()), np.uint8))


def encode_png(data: Tensor, compression_level: int) -> Tensor:
    return _encoded(data, "PNG", compress_level=compression_level)


def encode_jpeg(data: Tensor, quality: int) -> Tensor:
    return _encoded(data, "JPEG", quality=quality)


_OPERATORS = {
    "read_file(str filename) -> Tensor": read_file,
    "write_file(str filename, Tensor data) -> ()": write_file,
    "decode_png(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_png,
    "decode_jpeg(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_jpeg,
    "decode_webp(Tensor data, int mode) -> Tensor": decode_webp,
    "decode_gif(Tensor data) -> Tensor": decode_gif,
    "decode_image(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor": decode_image,
    "encode_png(Tensor data, int compression_level) -> Tensor": encode_png,
    "encode_jpeg(Tensor data, int quality) -> Tensor": encode_jpeg,
}


def define() -> None:
    """Register the operators, once."""
    if _libraries:
        return
    library = Library("image", "DEF")
    _libraries.append(library)
    for schema, function in _OPERATORS.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
