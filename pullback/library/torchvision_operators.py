"""torchvision's operators (`torch.ops.torchvision.*`), which its wheel has compiled against PyTorch's C++ alone.

torchvision's Python asks for its shared library; here `define()` answers instead. Each operator is written in operators of
ours; the gradients that torchvision calls by name (`_roi_align_backward`, ...) are those that autograd finds of the same
function. Boxes are (x1, y1, x2, y2), regions (image, x1, y1, x2, y2), as in torchvision.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..autograd import grad
from ..core.modes import enable_grad
from ..core.tensor import Tensor, wrap
from ..ops.system.operator import public
from .registration import Library

_libraries: list[Library] = []  # operators live as long as their library
_REGION = "Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width"
_BACK = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_DEFORM = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
    "SymInt offset_groups, bool use_mask"
)


def _t(name: str) -> Callable:
    return public("torch", name)


# ---------------------------------------------------------------------------------------------------------------- boxes
def nms(dets: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Indices of the boxes that no better box overlaps by more than the threshold, best first."""
    if dets.dim() != 2 or dets.size(1) != 4:
        raise RuntimeError(f"boxes should be a 2d tensor with 4 elements in dimension 1, got {tuple(dets.shape)}")
    if scores.dim() != 1 or scores.size(0) != dets.size(0):
        raise RuntimeError(
            f"boxes and scores should have same number of elements in dimension 0, got {dets.size(0)} and {tuple(scores.shape)}"
        )
    boxes = dets.detach().cpu().double().numpy()
    order = np.argsort(-scores.detach().cpu().double().numpy(), kind="stable")
    x1, y1, x2, y2 = boxes.T
    areas = (x2 - x1) * (y2 - y1)
    kept: list[int] = []
    while order.size:
        best, order = order[0], order[1:]
        kept.append(int(best))
        width = np.minimum(x2[best], x2[order]) - np.maximum(x1[best], x1[order])
        height = np.minimum(y2[best], y2[order]) - np.maximum(y1[best], y1[order])
        both = width.clip(0) * height.clip(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            order = order[~(both / (areas[best] + areas[order] - both) > iou_threshold)]
    return wrap(np.array(kept, np.int64)).to(dets.device)


# -------------------------------------------------------------------------------------------------------------- regions
def _bilinear(images: Tensor, image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """Values at real places: images (N, C, H, W); image, y, x of one shape (K, ...); result (K, ..., C). Outside is 0."""
    height, width = images.shape[2:]
    outside = (y < -1.0) | (y > height) | (x < -1.0) | (x > width)
    y, x = y.clamp(min=0), x.clamp(min=0)
    y0, x0 = y.floor().long().clamp(max=height - 1), x.floor().long().clamp(max=width - 1)
    y1, x1 = (y0 + 1).clamp(max=height - 1), (x0 + 1).clamp(max=width - 1)
    ly = _t("where")(y0 >= height - 1, y * 0, y - y0)
    lx = _t("where")(x0 >= width - 1, x * 0, x - x0)
    last = images.permute(0, 2, 3, 1)  # channels last: one gather takes them all
    value = (
        last[image, y0, x0] * ((1 - ly) * (1 - lx)).unsqueeze(-1)
        + last[image, y0, x1] * ((1 - ly) * lx).unsqueeze(-1)
        + last[image, y1, x0] * (ly * (1 - lx)).unsqueeze(-1)
        + last[image, y1, x1] * (ly * lx).unsqueeze(-1)
    )
    return value.masked_fill(outside.unsqueeze(-1), 0)


def _bilinear_in_zeros(images: Tensor, image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """`_bilinear` where the image is surrounded by zeros, which samples near its edge are mixed with."""
    height, width = images.shape[2:]
    y0, x0 = y.floor(), x.floor()
    last = images.permute(0, 2, 3, 1)
    total = None
    for row, of_row in ((y0, 1 - (y - y0)), (y0 + 1, y - y0)):
        for column, of_column in ((x0, 1 - (x - x0)), (x0 + 1, x - x0)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            at = last[image, row.long().clamp(0, height - 1), column.long().clamp(0, width - 1)]
            part = at * (of_row * of_column * inside).unsqueeze(-1)
            total = part if total is None else total + part
    return total


def _align(input: Tensor, rois: Tensor, corners: tuple, ph: int, pw: int, rows: int, columns: int) -> Tensor:
    """The averages over the cells of regions with `rows` x `columns` samples in a cell: (K, C, ph, pw)."""
    start_h, start_w, height, width = corners
    arange, each = _t("arange"), (-1, 1, 1)
    y = start_h.view(each) + (arange(ph).unsqueeze(1) + (arange(rows) + 0.5) / rows) * (height / ph).view(each)
    x = start_w.view(each) + (arange(pw).unsqueeze(1) + (arange(columns) + 0.5) / columns) * (width / pw).view(each)
    shape = (len(rois), ph, pw, rows, columns)
    y = y.reshape(-1, ph, 1, rows, 1).expand(shape).to(input.dtype)
    x = x.reshape(-1, 1, pw, 1, columns).expand(shape).to(input.dtype)
    image = rois[:, 0].long().view(-1, 1, 1, 1, 1).expand(shape)
    return _bilinear(input, image, y, x).mean((3, 4)).permute(0, 3, 1, 2)


def roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned) -> Tensor:
    """Each region as a grid of averages of bilinear samples."""
    offset, least = (0.5, 0.0) if aligned else (0.0, 1.0)
    return _align_all(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, offset, least)


def _align_all(
    input: Tensor, rois: Tensor, scale: float, ph: int, pw: int, ratio: int, offset: float, least: float
) -> Tensor:
    """The averages over the cells of all regions, which are at least `least` wide and high."""
    if not len(rois):
        return input.new_zeros((0, input.size(1), ph, pw))
    start_w, start_h, end_w, end_h = (rois[:, 1:] * scale - offset).unbind(1)
    height, width = end_h - start_h, end_w - start_w
    if least:
        height, width = height.clamp(min=least), width.clamp(min=least)
    corners = (start_h, start_w, height, width)
    cells, places = [], []
    for (rows, columns), members in _alike(height.detach(), width.detach(), ph, pw, ratio).items():
        for start in range(0, len(members), _TOGETHER):
            at = wrap(np.array(members[start : start + _TOGETHER]))
            cells.append(_align(input, rois[at], tuple(c[at] for c in corners), ph, pw, rows, columns))
        places += members
    return _t("cat")(cells)[wrap(np.argsort(np.array(places), kind="stable"))]


_TOGETHER = 64  # regions whose samples are in memory at a time


def _alike(height: Tensor, width: Tensor, ph: int, pw: int, ratio: int) -> dict[tuple[int, int], list[int]]:
    """The regions by the number of samples in their cells: `ratio` in each direction, or one for about each pixel."""
    if ratio > 0:
        return {(ratio, ratio): list(range(len(height)))}
    groups: dict[tuple[int, int], list[int]] = {}
    for k, (h, w) in enumerate(zip(height.tolist(), width.tolist(), strict=True)):
        groups.setdefault((max(1, int(np.ceil(h / ph))), max(1, int(np.ceil(w / pw)))), []).append(k)
    return groups


def _edges(start: float, size: float, cells: int, limit: int) -> list[tuple[int, int]]:
    """The whole pixels of each cell along one axis."""
    return [
        (
            min(max(int(np.floor(i * size / cells) + start), 0), limit),
            min(max(int(np.ceil((i + 1) * size / cells) + start), 0), limit),
        )
        for i in range(cells)
    ]


def roi_pool(input, rois, spatial_scale, pooled_height, pooled_width) -> tuple[Tensor, Tensor]:
    """The largest value of each cell of each region, and where it was in its channel (-1: the cell is empty)."""
    n, channels, height, width = len(rois), *input.shape[1:]
    out = input.new_zeros((n, channels, pooled_height, pooled_width))
    where = _t("full")((n, channels, pooled_height, pooled_width), -1).int()
    for k, region in enumerate(rois.tolist()):
        x1, y1, x2, y2 = (int(np.floor(v * spatial_scale + 0.5)) for v in region[1:])
        rows = _edges(y1, max(y2 - y1 + 1, 1), pooled_height, height)
        columns = _edges(x1, max(x2 - x1 + 1, 1), pooled_width, width)
        for i, (top, bottom) in enumerate(rows):
            for j, (left, right) in enumerate(columns):
                if bottom <= top or right <= left:
                    continue
                cell = input[int(region[0]), :, top:bottom, left:right].reshape(channels, -1)
                best, at = cell.max(1)
                out[k, :, i, j] = best
                span = right - left
                where[k, :, i, j] = ((at // span + top) * width + at % span + left).int()
    return out, where


def _roi_pool_backward(
    grad_out, rois, argmax, spatial_scale, pooled_height, pooled_width, batch_size, channels, height, width
):
    result = grad_out.new_zeros((batch_size, channels, height * width))
    for k, image in enumerate(rois[:, 0].long().tolist()):
        at = argmax[k].reshape(channels, -1).long()
        result[image].scatter_add_(1, at.clamp(min=0), grad_out[k].reshape(channels, -1) * (at >= 0))
    return result.reshape(batch_size, channels, height, width)


def _own_channels(channels: int, ph: int, pw: int) -> Tensor:
    """Position-sensitive pooling: the channel that each cell of each result channel reads: (C', ph, pw)."""
    if channels % (ph * pw):
        raise RuntimeError(
            f"input channels must be a multiple of pooling height * pooling width, got {channels} and {ph}x{pw}"
        )
    return _t("arange")(channels).reshape(-1, ph, pw)


def _pick(cells: Tensor, own: Tensor) -> Tensor:
    """Of (K, C, ph, pw), for each cell the channel that is its own: (K, C', ph, pw)."""
    return cells.gather(1, own.unsqueeze(0).expand(cells.size(0), *own.shape))


def _mapping(own: Tensor, n: int) -> Tensor:
    return own.int().unsqueeze(0).expand(n, *own.shape).contiguous()


def ps_roi_align(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio) -> tuple[Tensor, Tensor]:
    """`roi_align` where every cell reads a channel of its own."""
    own = _own_channels(input.size(1), pooled_height, pooled_width)
    cells = _align_all(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, 0.5, 0.1)
    return _pick(cells, own), _mapping(own, len(rois))


def ps_roi_pool(input, rois, spatial_scale, pooled_height, pooled_width) -> tuple[Tensor, Tensor]:
    """The average of each cell of each region, where every cell reads a channel of its own."""
    own = _own_channels(input.size(1), pooled_height, pooled_width)
    height, width = input.shape[2:]
    regions = []
    for region in rois.tolist():
        x1, y1, x2, y2 = (round(v) * spatial_scale for v in (region[1], region[2], region[3] + 1, region[4] + 1))
        rows = _real_edges(y1, max(y2 - y1, 0.1), pooled_height, height)
        columns = _real_edges(x1, max(x2 - x1, 0.1), pooled_width, width)
        image = input[int(region[0])]
        cells = [
            image[:, a:b, c:d].mean((1, 2)) if b > a and d > c else image.new_zeros(image.size(0))
            for a, b in rows
            for c, d in columns
        ]
        regions.append(_t("stack")(cells, 1).reshape(-1, pooled_height, pooled_width))
    stacked = _t("stack")(regions) if regions else input.new_zeros((0, input.size(1), pooled_height, pooled_width))
    return _pick(stacked, own), _mapping(own, len(rois))


def _real_edges(start: float, size: float, cells: int, limit: int) -> list[tuple[int, int]]:
    step = size / cells
    return [
        (
            min(max(int(np.floor(i * step + start)), 0), limit),
            min(max(int(np.ceil((i + 1) * step + start)), 0), limit),
        )
        for i in range(cells)
    ]


# --------------------------------------------------------------------------------------------------------- convolution
def deform_conv2d(
    input, weight, offset, mask, bias, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups, use_mask
) -> Tensor:  # fmt: skip
    """A convolution whose kernel reads at places that are moved by `offset`, weighted by `mask`."""
    n, channels, height, width = input.shape
    out_channels, _, kh, kw = weight.shape
    out_h = (height + 2 * pad_h - dilation_h * (kh - 1) - 1) // stride_h + 1
    out_w = (width + 2 * pad_w - dilation_w * (kw - 1) - 1) // stride_w + 1
    arange = _t("arange")
    shift = offset.reshape(n, offset_groups, kh, kw, 2, out_h, out_w)
    base_y = (arange(out_h) * stride_h - pad_h).reshape(1, 1, 1, 1, out_h, 1) + (arange(kh) * dilation_h).reshape(
        1, 1, kh, 1, 1, 1
    )
    base_x = (arange(out_w) * stride_w - pad_w).reshape(1, 1, 1, 1, 1, out_w) + (arange(kw) * dilation_w).reshape(
        1, 1, 1, kw, 1, 1
    )
    y, x = shift[:, :, :, :, 0] + base_y, shift[:, :, :, :, 1] + base_x  # (n, og, kh, kw, oh, ow)
    images = input.reshape(n * offset_groups, channels // offset_groups, height, width)
    image = arange(n * offset_groups).reshape(n, offset_groups, 1, 1, 1, 1).expand(y.shape)
    columns = _bilinear_in_zeros(images, image, y, x)  # (n, og, kh, kw, oh, ow, c)
    if use_mask:
        columns = columns * mask.reshape(n, offset_groups, kh, kw, out_h, out_w, 1)
    columns = columns.permute(0, 1, 6, 2, 3, 4, 5).reshape(n, groups, channels // groups * kh * kw, out_h * out_w)
    product = weight.reshape(1, groups, out_channels // groups, -1) @ columns
    return product.reshape(n, out_channels, out_h, out_w) + bias.reshape(1, -1, 1, 1)


# ------------------------------------------------------------------------------------------------------------ gradients
def _gradient_of(function: Callable, shape: tuple, grad_out: Tensor, *arguments) -> Tensor:
    """The gradient of a function of an image, which is linear in it: its values do not matter, only its shape."""
    with enable_grad():
        x = grad_out.new_zeros(shape, requires_grad=True)
        out = function(x, *arguments)
        out = out[0] if isinstance(out, tuple) else out
    if not out.requires_grad:  # there are no regions
        return grad_out.new_zeros(shape)
    (result,) = grad(out, x, grad_out, allow_unused=True)
    return grad_out.new_zeros(shape) if result is None else result


def _roi_align_backward(g, rois, scale, ph, pw, batch_size, channels, height, width, sampling_ratio, aligned):
    return _gradient_of(
        roi_align, (batch_size, channels, height, width), g, rois, scale, ph, pw, sampling_ratio, aligned
    )


def _ps_roi_align_backward(g, rois, mapping, scale, ph, pw, sampling_ratio, batch_size, channels, height, width):
    return _gradient_of(ps_roi_align, (batch_size, channels, height, width), g, rois, scale, ph, pw, sampling_ratio)


def _ps_roi_pool_backward(g, rois, mapping, scale, ph, pw, batch_size, channels, height, width):
    return _gradient_of(ps_roi_pool, (batch_size, channels, height, width), g, rois, scale, ph, pw)


def _deform_conv2d_backward(g, input, weight, offset, mask, bias, *geometry):
    with enable_grad():
        leaves = [t.detach().requires_grad_() for t in (input, weight, offset, mask, bias)]
        out = deform_conv2d(*leaves, *geometry)
    found = grad(out, leaves, g, allow_unused=True)
    return tuple(leaf.new_zeros(leaf.shape) if d is None else d for leaf, d in zip(leaves, found, strict=True))


_OPERATORS: dict[str, Callable] = {
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor": nms,
    f"roi_align({_REGION}, int sampling_ratio, bool aligned) -> Tensor": roi_align,
    f"_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, {_BACK}, "
    "int sampling_ratio, bool aligned) -> Tensor": _roi_align_backward,
    f"roi_pool({_REGION}) -> (Tensor, Tensor)": roi_pool,
    "_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, SymInt "
    f"pooled_width, {_BACK}) -> Tensor": _roi_pool_backward,
    f"ps_roi_align({_REGION}, int sampling_ratio) -> (Tensor, Tensor)": ps_roi_align,
    "_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, int sampling_ratio, {_BACK}) -> Tensor": _ps_roi_align_backward,
    f"ps_roi_pool({_REGION}) -> (Tensor, Tensor)": ps_roi_pool,
    "_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, SymInt pooled_height, "
    f"SymInt pooled_width, {_BACK}) -> Tensor": _ps_roi_pool_backward,
    f"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, {_DEFORM}) -> Tensor": deform_conv2d,
    "_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
    f"{_DEFORM}) -> (Tensor, Tensor, Tensor, Tensor, Tensor)": _deform_conv2d_backward,
    "_cuda_version() -> int": lambda: -1,
}
# Declared, because torchvision registers rules for them by name; they need quantized tensors, which are not here.
_QUANTIZED = (
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"qroi_align({_REGION}, int sampling_ratio, bool aligned) -> Tensor",
)


def define() -> None:
    """Register the operators, once."""
    if _libraries:
        return
    library = Library("torchvision", "DEF")
    _libraries.append(library)
    for schema, function in _OPERATORS.items():
        library.define(schema)
        library.impl(schema.partition("(")[0], function, "CompositeExplicitAutograd")
    for schema in _QUANTIZED:
        library.define(schema)
