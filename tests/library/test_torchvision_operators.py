"""torchvision's operators: cases whose results are known, and gradients against differences."""

import pytest

import pullback as torch
from pullback.library import torchvision_operators as vision

BOXES = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10.5]])


@pytest.fixture(scope="module", autouse=True)
def defined():
    vision.define()


def test_nms_keeps_the_best_of_what_overlaps():
    scores = torch.tensor([0.9, 0.8, 0.7, 0.95])
    assert torch.ops.torchvision.nms(BOXES, scores, 0.5).tolist() == [3, 2]
    assert torch.ops.torchvision.nms(BOXES, scores, 0.99).tolist() == [3, 0, 1, 2]
    assert torch.ops.torchvision.nms(torch.zeros(0, 4), torch.zeros(0), 0.5).shape == (0,)
    with pytest.raises(RuntimeError, match="boxes should be a 2d tensor"):
        torch.ops.torchvision.nms(torch.zeros(3), scores, 0.5)


def ramp() -> torch.Tensor:
    """An image whose value is 10 y + x: bilinear samples of it are exact."""
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    return (10 * y + x).reshape(1, 1, 8, 8)


def test_roi_align_of_a_ramp_gives_the_values_at_the_middles():
    rois = torch.tensor([[0.0, 1, 2, 5, 6]])
    out = torch.ops.torchvision.roi_align(ramp(), rois, 1.0, 2, 2, 2, True)
    middles = torch.tensor([[10 * 2.5 + 1.5, 10 * 2.5 + 3.5], [10 * 4.5 + 1.5, 10 * 4.5 + 3.5]])
    torch.testing.assert_close(out[0, 0], middles)
    shifted = torch.ops.torchvision.roi_align(ramp(), rois, 1.0, 2, 2, 2, False)
    torch.testing.assert_close(shifted[0, 0], middles + 5.5)
    assert torch.ops.torchvision.roi_align(ramp(), torch.zeros(0, 5), 1.0, 2, 2, 2, True).shape == (0, 1, 2, 2)


def test_roi_pool_takes_the_largest_and_says_where():
    out, where = torch.ops.torchvision.roi_pool(ramp(), torch.tensor([[0.0, 0, 0, 3, 3]]), 1.0, 2, 2)
    assert out[0, 0].tolist() == [[11, 13], [31, 33]] and where[0, 0].tolist() == [[9, 11], [25, 27]]
    g = torch.ops.torchvision._roi_pool_backward(
        torch.ones(1, 1, 2, 2), torch.tensor([[0.0, 0, 0, 3, 3]]), where, 1.0, 2, 2, 1, 1, 8, 8
    )
    assert g.nonzero()[:, 2:].tolist() == [[1, 1], [1, 3], [3, 1], [3, 3]]


def test_position_sensitive_pools_read_a_channel_for_each_cell():
    image = torch.arange(8.0).reshape(1, 8, 1, 1).expand(1, 8, 6, 6).contiguous()
    rois = torch.tensor([[0.0, 0, 0, 5, 5]])
    for out, mapping in (
        torch.ops.torchvision.ps_roi_align(image, rois, 1.0, 2, 2, 2),
        torch.ops.torchvision.ps_roi_pool(image, rois, 1.0, 2, 2),
    ):
        torch.testing.assert_close(out, torch.arange(8.0).reshape(1, 2, 2, 2))
        assert mapping.tolist() == torch.arange(8).reshape(1, 2, 2, 2).tolist()


def test_a_deformed_convolution_without_offsets_is_a_convolution():
    x, w = torch.randn(2, 4, 6, 5), torch.randn(6, 2, 3, 3)
    geometry = (2, 1, 1, 0, 1, 2, 2, 2)  # strides, pads, dilations, groups, offset groups
    want = torch.nn.functional.conv2d(x, w, torch.ones(6), (2, 1), (1, 0), (1, 2), 2)
    offset, mask = torch.zeros(2, 2 * 2 * 9, *want.shape[2:]), torch.ones(2, 2 * 9, *want.shape[2:])
    got = torch.ops.torchvision.deform_conv2d(x, w, offset, mask, torch.ones(6), *geometry, True)
    torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_gradients():
    image = torch.randn(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)
    rois = torch.tensor([[0.0, 0.3, 0.6, 3.7, 4.1]], dtype=torch.float64)
    align = lambda x: vision.roi_align(x, rois, 1.0, 2, 2, 2, True)
    assert torch.autograd.gradcheck(align, image)
    g = torch.randn(1, 2, 2, 2, dtype=torch.float64)
    (want,) = torch.autograd.grad(align(image), image, g)
    got = torch.ops.torchvision._roi_align_backward(g, rois, 1.0, 2, 2, 1, 2, 5, 5, 2, True)
    torch.testing.assert_close(got, want)
    x = torch.randn(1, 2, 4, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(2, 2, 2, 2, dtype=torch.float64, requires_grad=True)
    offset = (0.3 * torch.randn(1, 8, 3, 3, dtype=torch.float64)).requires_grad_()
    mask = torch.rand(1, 4, 3, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, dtype=torch.float64, requires_grad=True)
    deform = lambda *t: vision.deform_conv2d(*t, 1, 1, 0, 0, 1, 1, 1, 1, True)
    assert torch.autograd.gradcheck(deform, (x, w, offset, mask, bias))


def test_kernels_at_autocast_keys_are_called_under_autocast():
    library = torch.library.Library("vision_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    seen = []
    library.impl("twice", lambda x: (seen.append(1), x * 3)[1], "AutocastCPU")
    x = torch.ones(2)
    assert torch.ops.vision_test.twice(x).tolist() == [2, 2] and not seen
    with torch.autocast("cpu"):
        assert torch.ops.vision_test.twice(x).tolist() == [3, 3] and seen


def test_no_regions_have_no_gradient():
    x = torch.randn(1, 2, 8, 8, requires_grad=True)
    torch.ops.torchvision.roi_align(x.detach(), torch.zeros(0, 5), 1.0, 2, 2, 2, True)
    grad = torch.ops.torchvision._roi_align_backward(
        torch.zeros(0, 2, 2, 2), torch.zeros(0, 5), 1.0, 2, 2, 1, 2, 8, 8, 2, True
    )
    assert grad.shape == (1, 2, 8, 8) and not grad.any()


def test_regions_are_aligned_in_their_order():
    """Regions with other numbers of samples are computed apart; results keep the order of the regions."""
    x = torch.arange(64.0).reshape(1, 1, 8, 8)
    rois = torch.tensor([[0.0, 0, 0, 7, 7], [0, 1, 1, 2, 2], [0, 0, 0, 6, 6], [0, 3, 3, 4, 4]])
    together = torch.ops.torchvision.roi_align(x, rois, 1.0, 2, 2, 0, True)
    alone = [torch.ops.torchvision.roi_align(x, r[None], 1.0, 2, 2, 0, True) for r in rois]
    assert torch.equal(together, torch.cat(alone))
