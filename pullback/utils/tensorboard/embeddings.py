"""Points for TensorBoard's projector: tables in a folder of the log, and the list of them that the projector reads."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .summary import as_array


def write_embedding(
    log_dir: str, mat: Any, metadata: Any, label_img: Any, global_step: int | None, tag: str, header: list[str] | None
) -> None:
    table = as_array(mat)
    if table.ndim != 2:
        raise ValueError(f"mat should be 2D, where mat.size(0) is the number of data points; got shape {table.shape}")
    name = os.path.join(f"{global_step or 0:05d}", tag)
    folder = os.path.join(log_dir, name)
    os.makedirs(folder, exist_ok=True)
    np.savetxt(os.path.join(folder, "tensors.tsv"), table, delimiter="\t")
    lines = [f"tensor_name: {f'{tag}:{global_step or 0:05d}'!r}", f"tensor_path: {os.path.join(name, 'tensors.tsv')!r}"]
    if metadata is not None:
        _write_metadata(folder, list(metadata), header, len(table))
        lines.append(f"metadata_path: {os.path.join(name, 'metadata.tsv')!r}")
    if label_img is not None:
        lines.append(_write_sprites(folder, name, as_array(label_img), len(table)))
    with open(os.path.join(log_dir, "projector_config.pbtxt"), "a") as file:
        file.write("embeddings {\n" + "".join(f"  {line}\n" for line in lines).replace("'", '"') + "}\n")


def _write_metadata(folder: str, metadata: list, header: list[str] | None, points: int) -> None:
    if len(metadata) != points:
        raise ValueError(f"#labels should equal with #data points: {len(metadata)} labels, {points} points")
    rows = ["\t".join(map(str, row)) if header else str(row) for row in metadata]
    with open(os.path.join(folder, "metadata.tsv"), "w") as file:
        file.write("\n".join(["\t".join(header), *rows] if header else rows) + "\n")


def _write_sprites(folder: str, name: str, images: np.ndarray, points: int) -> str:
    from PIL import Image

    if len(images) != points:
        raise ValueError(f"#images should equal with #data points: {len(images)} images, {points} points")
    side = int(np.ceil(np.sqrt(points)))
    pixels = (images * 255).clip(0, 255).astype(np.uint8) if images.dtype != np.uint8 else images
    batch = np.zeros((side * side, *pixels.shape[1:]), np.uint8)
    batch[:points] = pixels
    rows = [_grid_row(batch[i * side : (i + 1) * side]) for i in range(side)]
    Image.fromarray(np.concatenate(rows, axis=0).squeeze()).save(os.path.join(folder, "sprite.png"))
    height, width = images.shape[2:]
    path = os.path.join(name, "sprite.png")
    return f"sprite {{ image_path: {path!r} single_image_dim: {width} single_image_dim: {height} }}"


def _grid_row(images: np.ndarray) -> np.ndarray:
    return np.concatenate(list(images.transpose(0, 2, 3, 1)), axis=1)
