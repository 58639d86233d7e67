"""Messages of TensorBoard, made of numbers, arrays and tensors.

In: a tag and values. Out: a `Summary` of TensorBoard's protocol, not written anywhere yet (`writer.py` does that).
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from tensorboard.compat.proto import summary_pb2
from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
from tensorboard.util import tensor_util


def as_array(value: Any) -> np.ndarray:
    """Numbers, arrays and tensors as an array."""
    if not hasattr(value, "detach"):
        return np.asarray(value)
    plain = value.detach().cpu()
    return (plain.float() if "bfloat16" in str(plain.dtype) else plain).numpy()


def _summary(tag: str, **value: Any) -> Summary:
    return Summary(value=[Summary.Value(tag=tag, **value)])


def _metadata(plugin: str, content: bytes = b"", **more: Any) -> SummaryMetadata:
    return SummaryMetadata(plugin_data=SummaryMetadata.PluginData(plugin_name=plugin, content=content), **more)


def scalar(
    name: str, tensor: Any, collections: Any = None, new_style: bool = False, double_precision: bool = False
) -> Summary:
    number = float(as_array(tensor).squeeze())
    if not new_style:
        return _summary(name, simple_value=number)
    kept = np.asarray(number, np.float64 if double_precision else np.float32)
    return _summary(name, tensor=tensor_util.make_tensor_proto(kept), metadata=_metadata("scalars"))


def default_bins() -> np.ndarray:
    """Edges of bins that grow by a tenth each, on both sides of zero."""
    right = 1e-12 * 1.1 ** np.arange(int(np.log(1e20 / 1e-12) / np.log(1.1)) + 1)
    return np.concatenate([-right[::-1], [0.0], right])


def histogram(name: str, values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Summary:
    flat = as_array(values).astype(np.float64).ravel()
    if flat.size == 0:
        raise ValueError("The input has no element.")
    counts, edges = np.histogram(flat, bins=default_bins() if isinstance(bins, str) and bins == "tensorflow" else bins)
    if max_bins is not None and len(counts) > max_bins:
        step = -(-len(counts) // max_bins)
        counts, edges = np.add.reduceat(counts, range(0, len(counts), step)), np.append(edges[:-1:step], edges[-1])
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = filled[0], filled[-1] + 1
    limits, kept = edges[first : last + 1], counts[first:last]
    return histogram_raw(
        name, np.min(flat), np.max(flat), flat.size, flat.sum(), flat.dot(flat), limits.tolist(), [0, *kept.tolist()]
    )


def histogram_raw(
    name: str,
    min: float,
    max: float,
    num: float,
    sum: float,
    sum_squares: float,
    bucket_limits: list,
    bucket_counts: list,
) -> Summary:
    """A histogram whose counts are known."""
    message = summary_pb2.HistogramProto(
        min=min, max=max, num=num, sum=sum, sum_squares=sum_squares, bucket_limit=bucket_limits, bucket=bucket_counts
    )
    return _summary(name, histo=message)


def as_pixels(image: Any, dataformats: str) -> np.ndarray:
    """An image (or a batch of them, laid out side by side) in the order height, width, channel, as bytes."""
    pixels, formats = as_array(image), dataformats.upper()
    if pixels.ndim != len(formats):
        raise ValueError(f"size of input tensor and input format are different: shape {pixels.shape}, format {formats}")
    if pixels.dtype != np.uint8:
        pixels = (pixels.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)
    pixels = pixels.transpose([formats.index(c) for c in "NHWC" if c in formats])
    if "N" in formats:
        pixels = _grid(pixels)
    pixels = pixels if "C" in formats else pixels[..., None]
    return np.repeat(pixels, 3, axis=2) if pixels.shape[2] == 1 else pixels


def _grid(batch: np.ndarray) -> np.ndarray:
    """Images of a batch in rows of eight."""
    count, height, width, channels = batch.shape
    columns = min(count, 8)
    rows = -(-count // columns)
    room = np.zeros((rows * columns, height, width, channels), batch.dtype)
    room[:count] = batch
    return room.reshape(rows, columns, height, width, channels).swapaxes(1, 2).reshape(rows * height, -1, channels)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    return _summary(tag, image=make_image(as_pixels(tensor, dataformats), rescale))


def make_image(pixels: np.ndarray, rescale: float = 1) -> Any:
    from PIL import Image

    height, width, channels = pixels.shape
    picture = Image.fromarray(pixels)
    if rescale != 1:
        picture = picture.resize((int(width * rescale), int(height * rescale)))
    out = io.BytesIO()
    picture.save(out, format="PNG")
    return Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue())


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Frames (batch, time, channel, height, width) as an animated picture."""
    from PIL import Image

    frames = as_array(tensor)
    if frames.dtype != np.uint8:
        frames = (frames * 255).clip(0, 255).astype(np.uint8)
    shown = [_grid(frames[:, t].transpose(0, 2, 3, 1)) for t in range(frames.shape[1])]
    shown = [np.repeat(f, 3, axis=2) if f.shape[2] == 1 else f for f in shown]
    out, pictures = io.BytesIO(), [Image.fromarray(f) for f in shown]
    pictures[0].save(
        out, format="GIF", save_all=True, append_images=pictures[1:], duration=max(1, round(1000 / fps)), loop=0
    )
    height, width, channels = shown[0].shape
    return _summary(
        tag, image=Summary.Image(height=height, width=width, colorspace=channels, encoded_image_string=out.getvalue())
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """A wave of numbers from -1 to 1, as a WAV file of 16 bits."""
    import wave

    samples = as_array(tensor).squeeze()
    if samples.ndim != 1:
        raise ValueError(f"input tensor should be 1 dimensional, got shape {samples.shape}")
    coded = (samples.clip(-1, 1) * 32767).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(coded.tobytes())
    message = Summary.Audio(
        sample_rate=sample_rate, num_channels=1, length_frames=len(samples), content_type="audio/wav",
        encoded_audio_string=out.getvalue(),
    )  # fmt: skip
    return _summary(tag, audio=message)


def text(tag: str, text: str) -> Summary:
    tensor = tensor_util.make_tensor_proto(np.array([text.encode()], dtype=object))
    return _summary(f"{tag}/text_summary", metadata=_metadata("text"), tensor=tensor)


def hparams(hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None) -> tuple:
    """(what was tried, with which values, how it ended): the three messages of a run with hyperparameters."""
    import time

    from google.protobuf.struct_pb2 import Value
    from tensorboard.plugins.hparams import metadata
    from tensorboard.plugins.hparams.api_pb2 import Experiment, HParamInfo, MetricInfo, MetricName, Status
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData, SessionEndInfo, SessionStartInfo

    if not isinstance(hparam_dict, dict):
        raise TypeError("parameter: hparam_dict should be a dictionary, nothing logged.")
    if not isinstance(metric_dict, dict):
        raise TypeError("parameter: metric_dict should be a dictionary, nothing logged.")
    plain = {k: _plain(k, v) for k, v in hparam_dict.items() if v is not None}
    infos = [_hparam_info(HParamInfo, k, v, (hparam_domain_discrete or {}).get(k)) for k, v in plain.items()]
    metrics = [MetricInfo(name=MetricName(tag=name)) for name in metric_dict]
    start = SessionStartInfo(start_time_secs=time.time())
    for name, value in plain.items():
        start.hparams[name].CopyFrom(_protocol_value(Value, value))
    end = SessionEndInfo(status=Status.Value("STATUS_SUCCESS"), end_time_secs=time.time())
    parts = {
        metadata.EXPERIMENT_TAG: HParamsPluginData(experiment=Experiment(hparam_infos=infos, metric_infos=metrics)),
        metadata.SESSION_START_INFO_TAG: HParamsPluginData(session_start_info=start),
        metadata.SESSION_END_INFO_TAG: HParamsPluginData(session_end_info=end),
    }
    return tuple(
        _summary(tag, metadata=metadata.create_summary_metadata(data), tensor=metadata.NULL_TENSOR)
        for tag, data in parts.items()
    )


def _protocol_value(kind: Any, value: Any) -> Any:
    if isinstance(value, bool):
        return kind(bool_value=value)
    return kind(string_value=value) if isinstance(value, str) else kind(number_value=value)


def _plain(name: str, value: Any) -> Any:
    """A hyperparameter as a number, a bool or a string."""
    if isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "detach") or isinstance(value, np.generic | np.ndarray):
        return as_array(value).item()
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor: " + f"{name}={value!r}")


def _hparam_info(kind: Any, name: str, value: Any, domain: Any) -> Any:
    from google.protobuf import struct_pb2

    names = {bool: "DATA_TYPE_BOOL", str: "DATA_TYPE_STRING"}
    info = kind(name=name, type=names.get(type(value), "DATA_TYPE_FLOAT64"))
    if domain is not None:
        values = struct_pb2.ListValue()
        values.extend(list(domain))
        info.domain_discrete.CopyFrom(values)
    return info


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Summary:
    """Precision and recall at thresholds from 0 to 1."""
    truth, score = as_array(labels).ravel().astype(bool), as_array(predictions).ravel().astype(np.float64)
    weight = (
        np.ones_like(score) if weights is None else np.broadcast_to(as_array(weights).astype(np.float64), score.shape)
    )
    num_thresholds = min(num_thresholds, 127)
    bucket = np.floor(score * (num_thresholds - 1)).astype(int)
    counts = [np.bincount(bucket[side], weight[side], num_thresholds)[::-1].cumsum()[::-1] for side in (truth, ~truth)]
    found, wrong = counts
    return pr_curve_raw(
        tag, found, wrong, wrong[0] - wrong, found[0] - found,
        found / np.maximum(1e-7, found + wrong), found / np.maximum(1e-7, found[0]), num_thresholds,
    )  # fmt: skip


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Summary:
    """A precision-recall curve whose counts are known."""
    from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

    content = PrCurvePluginData(version=0, num_thresholds=min(num_thresholds, 127)).SerializeToString()
    table = np.stack([as_array(row) for row in (tp, fp, tn, fn, precision, recall)]).astype(np.float32)
    return _summary(tag, metadata=_metadata("pr_curves", content), tensor=tensor_util.make_tensor_proto(table))


def custom_scalars(layout: dict) -> Summary:
    """Which curves stand together: {category: {title: [kind, [tags]]}}."""
    from tensorboard.plugins.custom_scalar import layout_pb2

    def chart(title: str, kind: str, tags: list[str]) -> Any:
        if kind == "Margin":
            series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
            return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))
        return layout_pb2.Chart(title=title, multiline=layout_pb2.MultilineChartContent(tag=list(tags)))

    categories = [
        layout_pb2.Category(title=name, chart=[chart(title, *lines) for title, lines in charts.items()])
        for name, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    tensor = tensor_util.make_tensor_proto(np.array(content, dtype=object))
    return _summary("custom_scalars__config__", tensor=tensor, metadata=_metadata("custom_scalars"))


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: dict | None, display_name: str | None = None,
         description: str | None = None) -> Summary:  # fmt: skip
    """Points in space, and triangles between them."""
    from tensorboard.plugins.mesh import metadata
    from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData

    kinds = {MeshPluginData.VERTEX: vertices, MeshPluginData.FACE: faces, MeshPluginData.COLOR: colors}
    present = {kind: as_array(value) for kind, value in kinds.items() if value is not None}
    parts = metadata.get_components_bitmask(list(present))
    settings = json.dumps(config_dict or {}, sort_keys=True)
    values = []
    for kind, array in present.items():
        content = metadata.create_summary_metadata(
            tag, display_name or "", kind, parts, list(array.shape), description, json_config=settings
        )
        name = metadata.get_instance_name(tag, kind)
        tensor = tensor_util.make_tensor_proto(array)
        values.append(Summary.Value(tag=name, tensor=tensor, metadata=content))
    return Summary(value=values)
