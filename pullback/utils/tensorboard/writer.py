"""`SummaryWriter`: training curves for TensorBoard, written by the file writers of the package `tensorboard`.

In: tags and values, which `summary.py` makes messages of. Out: event files in a folder.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

import numpy as np
from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary


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

    def _add(self, message: Any, global_step: int | None, walltime: float | None) -> None:
        self._get_file_writer().add_summary(message, global_step, walltime)

    def add_scalar(
        self,
        tag: str,
        scalar_value,
        global_step=None,
        walltime=None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        message = summary.scalar(tag, scalar_value, new_style=new_style, double_precision=double_precision)
        self._add(message, global_step, walltime)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step=None, walltime=None) -> None:
        """Curves of one picture: each in a folder of its own."""
        assert self.all_writers is not None or self._get_file_writer()
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            writer = self.all_writers.get(folder)  # type: ignore[union-attr]
            if writer is None:
                writer = self.all_writers[folder] = FileWriter(folder, *self._arguments[1:])  # type: ignore[index]
            writer.add_summary(summary.scalar(main_tag, value), global_step, walltime)

    def add_tensor(self, tag: str, tensor, global_step=None, walltime=None) -> None:
        value = summary.tensor_util.make_tensor_proto(summary.as_array(tensor))
        self._add(summary._summary(tag, tensor=value, metadata=summary._metadata("tensor")), global_step, walltime)

    def add_histogram(
        self, tag: str, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None
    ) -> None:
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self, tag: str, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None
    ) -> None:  # fmt: skip
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        message = summary.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(message, global_step, walltime)

    def add_image(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "CHW") -> None:
        self._add(summary.image(tag, img_tensor, dataformats=dataformats), global_step, walltime)

    def add_images(self, tag: str, img_tensor, global_step=None, walltime=None, dataformats: str = "NCHW") -> None:
        """A batch of images, side by side."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag: str, figure, global_step=None, close: bool = True, walltime=None) -> None:
        pixels, formats = figure_to_image(figure, close), "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, pixels, global_step, walltime, formats)

    def add_video(self, tag: str, vid_tensor, global_step=None, fps=4, walltime=None) -> None:
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(self, tag: str, snd_tensor, global_step=None, sample_rate: int = 44100, walltime=None) -> None:
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag: str, text_string: str, global_step=None, walltime=None) -> None:
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_pr_curve(
        self, tag: str, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None
    ) -> None:
        self._add(summary.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_custom_scalars(self, layout: dict) -> None:
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(
        self, tag: str, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None
    ) -> None:
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    def add_hparams(
        self, hparam_dict: dict, metric_dict: dict, hparam_domain_discrete=None, run_name=None, global_step=None
    ) -> None:
        if not (isinstance(hparam_dict, dict) and isinstance(metric_dict, dict)):
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        messages = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self.log_dir, run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for message in messages:
                writer._add(message, global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose: bool = False, use_strict_trace: bool = True) -> None:
        """The graph of a model, as `torch.export` records it."""
        from .graphs import graph

        drawn, stats = graph(model, input_to_model, verbose, use_strict_trace)
        writer = self._get_file_writer()
        run = event_pb2.TaggedRunMetadata(tag="step1", run_metadata=stats.SerializeToString())
        writer.add_event(event_pb2.Event(graph_def=drawn.SerializeToString()))
        writer.add_event(event_pb2.Event(tagged_run_metadata=run))

    def add_embedding(
        self, mat, metadata=None, label_img=None, global_step=None, tag: str = "default", metadata_header=None
    ) -> None:
        """Points of many dimensions, for the projector."""
        from .embeddings import write_embedding

        write_embedding(self.log_dir, mat, metadata, label_img, global_step, tag, metadata_header)

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


def figure_to_image(figures: Any, close: bool = True) -> np.ndarray:
    """The pixels of a figure of matplotlib in the order channel, height, width; of a list of figures, a batch of them."""
    if isinstance(figures, list):
        return np.stack([figure_to_image(figure, close) for figure in figures])
    return np.moveaxis(_drawn(figures, close), 2, 0)


def _drawn(figure: Any, close: bool) -> np.ndarray:
    """The pixels of a figure of matplotlib."""
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]
    if close:
        import matplotlib.pyplot as plt

        plt.close(figure)
    return pixels


__all__ = ["FileWriter", "SummaryWriter"]
