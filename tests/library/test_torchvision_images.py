"""The operators of `torchvision.io`: what is written is read again."""

import pytest

import pullback as torch
from pullback.library import torchvision_images

pytest.importorskip("PIL")


@pytest.fixture
def image():
    torchvision_images.define()
    return torch.arange(3 * 4 * 5).reshape(3, 4, 5).to(torch.uint8)


def test_png_and_files(image, tmp_path):
    ops = torch.ops.image
    data = ops.encode_png(image, 6)
    assert data.dtype is torch.uint8 and torch.equal(ops.decode_png(data, 0), image)
    ops.write_file(str(tmp_path / "a.png"), data)
    assert torch.equal(ops.decode_image(ops.read_file(str(tmp_path / "a.png")), 3), image)
    assert ops.decode_png(data, 1).shape == (1, 4, 5) and ops.decode_png(data, 4)[3].tolist() == [[255] * 5] * 4


def test_jpeg(image):
    data = torch.ops.image.encode_jpeg(torch.full((1, 8, 8), 100, dtype=torch.uint8), 90)
    assert torch.ops.image.decode_jpeg(data, 0).tolist() == [[[100] * 8] * 8]


def test_errors(image):
    with pytest.raises(RuntimeError, match="no image of PNG"):
        torch.ops.image.decode_png(torch.ops.image.encode_jpeg(image, 90), 0)
    with pytest.raises(RuntimeError, match="1 or 3 channels.*torch.float32"):
        torch.ops.image.encode_png(image.float(), 6)
    with pytest.raises(RuntimeError, match="1-dimensional"):
        torch.ops.image.write_file("x", image)
