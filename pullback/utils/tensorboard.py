"""`SummaryWriter`: training curves for TensorBoard, written by the `tensorboardX`-compatible writers of `tensorboard`.

TensorBoard's own package writes the files; here tensors become what it takes.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np

try:
    from tensorboard.compat.proto import event_pb2, summary_pb2
    from tensorboard.summary.writer.event_file_writer import EventFileWriter
    from tensorboard.util import tensor_util
except ImportError as error:
    raise ImportError("torch.utils.tensorboard needs the package tensorboard: pip install tensorboard") from error


def _array(value: Any) -> np.ndarray:
    """Numbers, arrays and tensors as an array."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") else np.asarray(value)


class FileWriter:
    """Writes events to a file of a folder."""

    def __init__(self, log_dir: str, max_queue: int = 10, flush_secs: int = 120, filename_suffix: str = ""):
        self.event_writer = EventFileWriter(str(log_dir), max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        return self.event_writer.get_logdir()

    def add_event(self, event, step: int | None = None, walltime: float | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(self, summary, global_step: int | None = None, walltime: float | None = None) -> None:
        self.add_event(event_pb2.Event(summary=summary), global_step, walltime)

    def flush(self) -> None:
        self.event_writer.flush()

    def close(self) -> None:
        self.event_writer.close()


class SummaryWriter:
    """Writes scalars, histograms, images and text that TensorBoard shows."""

    def __init__(
        self, log_dir: str | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
        flush_secs: int = 120, filename_suffix: str = "",
    ) -> None:  # fmt: skip
        if not log_dir:
            log_dir = os.path.join("runs", f"{time.strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = str(log_dir), purge_step
        self._arguments = (self.log_dir, max_queue, flush_secs, filename_suffix)
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        if self.file_writer is None:
            self.file_writer = FileWriter(*self._arguments)
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
                self.file_writer.add_event(event_pb2.Event(session_log=start), self.purge_step)
        return self.file_writer

    def get_logdir(self) -> str:
        return self.log_dir

    def _add(self, tag: str, global_step: int | None, walltime: float | None, **value) -> None:
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=tag, **value)])
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        self._add(tag, global_step, walltime, simple_value=float(_array(scalar_value).squeeze()))

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step=None, walltime=None) -> None:
        """Curves of one picture: each in a folder of its own."""
        assert self.all_writers is not None or self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            writer = self.all_writers.get(folder)  # type: ignore[union-attr]
            if writer is None:
                writer = self.all_writers[folder] = FileWriter(folder, *self._arguments[1:])  # type: ignore[index]
            one = summary_pb2.Summary.Value(tag=main_tag, simple_value=float(_array(value).squeeze()))
            writer.add_summary(summary_pb2.Summary(value=[one]), global_step, walltime)

    def add_histogram(
        self, tag: str, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ) -> None:
        flat = _array(values).astype(np.float64).ravel()
        if flat.size == 0:
            raise ValueError("The input has no element.")
        counts, edges = np.histogram(flat, bins=30 if bins == "tensorflow" else bins)
        histogram = summary_pb2.HistogramProto(
            min=flat.min(), max=flat.max(), num=flat.size, sum=flat.sum(), sum_squares=flat.dot(flat),
            bucket_limit=edges[1:].tolist(), bucket=counts.tolist(),
        )  # fmt: skip
        self._add(tag, global_step, walltime, histo=histogram)

    def add_image(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "CHW") -> None:
        import io

        from PIL import Image

        pixels = _array(img_tensor)
        order = [dataformats.upper().index(c) for c in "HWC" if c in dataformats.upper()]
        pixels = pixels.transpose(order)
        if pixels.dtype != np.uint8:
            pixels = (pixels * 255).clip(0, 255).astype(np.uint8)
        if pixels.ndim == 3 and pixels.shape[2] == 1:
            pixels = pixels[:, :, 0]
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, format="PNG")
        image = summary_pb2.Summary.Image(
            height=pixels.shape[0], width=pixels.shape[1], colorspace=1 if pixels.ndim == 2 else pixels.shape[2],
            encoded_image_string=out.getvalue(),
        )  # fmt: skip
        self._add(tag, global_step, walltime, image=image)

    def add_images(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "NCHW") -> None:
        """A batch of images side by side."""
        pixels = _array(img_tensor).transpose([dataformats.upper().index(c) for c in "NCHW"])
        self.add_image(tag, np.concatenate(list(pixels), axis=2), global_step, walltime, "CHW")

    def add_figure(self, tag: str, figure, global_step=None, close: bool = True, walltime=None) -> None:
        figure.canvas.draw()
        pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
        if close:
            import matplotlib.pyplot as plt

            plt.close(figure)
        self.add_image(tag, pixels, global_step, walltime, "HWC")

    def add_text(self, tag: str, text_string: str, global_step=None, walltime=None) -> None:
        metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name="text"))
        tensor = tensor_util.make_tensor_proto(np.array([text_string.encode()], dtype=object))
        self._add(f"{tag}/text_summary", global_step, walltime, metadata=metadata, tensor=tensor)

    def add_hparams(
        self, hparam_dict: dict, metric_dict: dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        from tensorboard.plugins.hparams import summary_v2

        if not (isinstance(hparam_dict, dict) and isinstance(metric_dict, dict)):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        plain = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in hparam_dict.items()}
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            writer._get_file_writer().add_summary(summary_v2.hparams_pb(plain), global_step)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        raise NotImplementedError("SummaryWriter.add_graph is not implemented: it needs TorchScript's graph")

    def flush(self) -> None:
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(self, *error) -> None:
        self.close()


__all__ = ["FileWriter", "SummaryWriter"]
