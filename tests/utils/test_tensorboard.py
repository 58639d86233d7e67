"""What is written for TensorBoard can be read back."""

import pytest

pytest.importorskip("tensorboard")

import pullback as torch
from pullback import nn
from pullback.utils.tensorboard import SummaryWriter
from pullback.utils.tensorboard.summary import hparams


def read(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventAccumulator(str(folder))
    log.Reload()
    return log


def test_curves_histograms_pictures_and_words(tmp_path):
    with SummaryWriter(tmp_path) as w:
        for step in range(3):
            w.add_scalar("loss", torch.tensor(0.5 * step), step)
        w.add_histogram("weights", torch.tensor([-1.0, 0.0, 0.25, 2.0]))
        w.add_image("picture", torch.rand(3, 4, 5))
        w.add_images("pictures", torch.rand(10, 1, 4, 5))
        w.add_audio("sound", torch.zeros(10), sample_rate=8000)
        w.add_text("word", "hello")
        w.add_pr_curve("curve", torch.tensor([1, 0, 1]), torch.tensor([0.9, 0.2, 0.4]))
        w.add_graph(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), torch.ones(1, 2))
    log = read(tmp_path)
    assert [(e.step, e.value) for e in log.Scalars("loss")] == [(0, 0.0), (1, 0.5), (2, 1.0)]
    histogram = log.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (-1.0, 2.0, 4.0, 1.25)
    assert sum(histogram.bucket) == 4 and len(histogram.bucket) == len(histogram.bucket_limit)
    assert [(i.height, i.width) for i in log.Images("picture") + log.Images("pictures")] == [(4, 5), (8, 40)]
    assert log.Audio("sound")[0].sample_rate == 8000
    assert {"word/text_summary", "curve"} <= set(log.Tags()["tensors"])
    assert {"linear", "relu"} <= {n.name.rpartition("/")[2] for n in log.Graph().node}


def test_precision_and_recall_count_by_threshold(tmp_path):
    from tensorboard.util.tensor_util import make_ndarray

    from pullback.utils.tensorboard.summary import pr_curve

    message = pr_curve("c", torch.tensor([1, 0, 1, 0]), torch.tensor([0.9, 0.8, 0.3, 0.1]), num_thresholds=3)
    table = make_ndarray(message.value[0].tensor)  # thresholds 0, 0.5, 1
    assert table[0].tolist() == [2, 1, 0] and table[1].tolist() == [2, 1, 0]
    assert table[2].tolist() == [0, 1, 2] and table[3].tolist() == [0, 1, 2]
    assert table[4].tolist() == [0.5, 0.5, 0.0] and table[5].tolist() == [1.0, 0.5, 0.0]


def test_hyperparameters_of_a_run(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_hparams({"lr": 0.1, "name": "a", "deep": True}, {"score": 3.0}, run_name="run")
    assert read(tmp_path / "run").Scalars("score")[0].value == 3.0
    assert len(hparams({"lr": 0.1}, {"score": 1.0}, {"lr": [0.1, 0.2]})) == 3
    with pytest.raises(ValueError, match="int, float, str, bool"):
        hparams({"lr": object()}, {})


def test_points_for_the_projector(tmp_path):
    with SummaryWriter(tmp_path) as w:
        w.add_embedding(torch.eye(3), metadata=["a", "b", "c"], label_img=torch.rand(3, 3, 4, 4), global_step=2)
    assert "tensors.tsv" in (tmp_path / "projector_config.pbtxt").read_text()
    assert (tmp_path / "00002" / "default" / "metadata.tsv").read_text().split() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="#labels"):
        SummaryWriter(tmp_path).add_embedding(torch.eye(3), metadata=["a"])
