"""Tensors on a CUDA device: making, moving, reading, writing, viewing, and what two devices in one call mean."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest

import pullback as torch
from pullback.core.tensor import CUDA


@pytest.mark.parametrize(
    "make",
    [
        lambda d: torch.ones(2, 3, device=d),
        lambda d: torch.tensor([[1.0, 2, 3], [4, 5, 6]], device=d),
        lambda d: torch.full((2, 3), 7, device=d),
        lambda d: torch.arange(6, device=d).reshape(2, 3),
        lambda d: torch.empty_strided((2, 3), (1, 2), device=d).zero_(),
        lambda d: torch.zeros(2, 3).to(d),
        lambda d: torch.zeros(2, 3).cuda(),
        lambda d: torch.zeros(2, 3).to("cuda", non_blocking=True),
        lambda d: torch.zeros(2, 3).pin_memory().to(d),
        lambda d: torch.ones(3, 2).T.to(d),
        lambda d: torch.randn(2, 3, device="cuda"),
        lambda d: torch.ones_like(torch.zeros(2, 3, device=d)),
        lambda d: torch.zeros(2, 3, device=d).new_ones(2, 3),
    ],
)
def test_made_on_the_device(cuda, make):
    t = make(cuda)
    assert t.device is cuda and t.is_cuda and t._keys & CUDA and t.shape == (2, 3)
    assert t.cpu().device.type == "cpu" and t.cpu().cuda().equal(t)


def test_default_device_is_used(cuda):
    with torch.device("cuda"):
        assert torch.ones(3).is_cuda and torch.tensor([1.0]).is_cuda and torch.rand(2).is_cuda
    assert not torch.ones(3).is_cuda


def test_numbers_and_text(cuda):
    t = torch.arange(6, device=cuda).reshape(2, 3)
    assert t.tolist() == [[0, 1, 2], [3, 4, 5]] and t[1, 2].item() == 5 and bool(t[0, 1])
    assert "device='cuda:0'" in repr(t) and "[3, 4, 5]" in repr(t)
    assert torch.tensor(1.5, dtype=torch.bfloat16, device=cuda).item() == 1.5
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu"):
        t.numpy()
    assert t.numpy(force=True).sum() == 15


def test_strides_and_views(cuda):
    t = torch.arange(24.0, device=cuda).reshape(2, 3, 4)
    v = t.permute(2, 0, 1)[1:, :, ::2]
    assert v.stride() == (1, 12, 8) and v.storage_offset() == 1 and not v.is_contiguous()
    assert v.data_ptr() == t.data_ptr() + 4 and v.untyped_storage().data_ptr() == t.data_ptr()
    want = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)[1:, :, ::2]
    assert np.array_equal(v.cpu().numpy(), want)
    v.mul_(2)
    want *= 2
    assert np.array_equal(v.cpu().numpy(), want) and t._version == 1
    assert (v + 1).stride() == (torch.ones(2, 3, 4).permute(2, 0, 1)[1:, :, ::2] + 1).stride()
    assert t.view(torch.int32).shape == (2, 3, 4) and t.unfold(2, 2, 1).shape == (2, 3, 3, 2)


def test_indexing(cuda):
    t, host = torch.arange(12.0, device=cuda).reshape(3, 4), torch.arange(12.0).reshape(3, 4)
    for index in (1, -1, slice(1, None), (slice(None), 2), [0, 2], torch.tensor([2, 0]), host > 5, (..., None, 1)):
        assert t[index].cpu().equal(host[index]), index
    assert t[torch.tensor([2, 0], device=cuda)].is_cuda and t[t > 5].shape == (6,)
    t[0], t[1, 1:3], t[t > 10] = -1, torch.tensor([7.0, 8.0], device=cuda), 0
    host[0], host[1, 1:3], host[host > 10] = -1, torch.tensor([7.0, 8.0]), 0
    assert t.cpu().equal(host)
    with pytest.raises((IndexError, RuntimeError), match="out of bounds"):  # said when the host waits for the device
        t[torch.tensor([0, 9], device=cuda)].cpu()


def test_copies_between_devices(cuda):
    a, b = torch.zeros(2, 3), torch.arange(6.0, device=cuda).reshape(3, 2).T
    assert a.copy_(b).equal(b.cpu()) and b.copy_(torch.ones(3), non_blocking=True).sum().item() == 6
    a[0] = b[1] * 4
    assert a[0].tolist() == [4, 4, 4] and a.device.type == "cpu"
    same = b.to(cuda)
    assert same is b and b.to(cuda, copy=True) is not b and b.double().dtype is torch.float64


def test_two_devices_in_one_call(cuda):
    on, off = torch.ones(3, device=cuda), torch.ones(3)
    words = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
    for call in (
        lambda: on + off,
        lambda: off * on,
        lambda: torch.cat([on, off]),
        lambda: on.add_(off),
        lambda: on @ off,
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    assert (on + torch.tensor(2.0)).tolist() == [3, 3, 3] and (torch.tensor(2.0) * on).is_cuda
    assert torch.where(on > 0, on, torch.tensor(0.0)).is_cuda and on.add_(torch.tensor(1.0)).tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match=words):
        off + torch.tensor(1.0, device=cuda)
    with pytest.raises(RuntimeError, match="Expected out tensor to have device cuda:0, but got cpu instead"):
        torch.add(on, on, out=off)


def test_dtypes(cuda):
    for d in (torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.uint8, torch.bool, torch.complex64):
        t = torch.tensor([0, 1, 3], device=cuda).to(d)
        assert t.dtype is d and (t + t).dtype is d and t.cpu().equal(torch.tensor([0, 1, 3]).to(d))
    with pytest.raises(NotImplementedError, match="float8_e4m3fn tensors are not supported on cuda:0"):
        torch.zeros(2, device=cuda).to(torch.float8_e4m3fn)


def test_storages_and_files(cuda):
    t = torch.arange(4.0, device=cuda)
    assert t.untyped_storage().nbytes() == 16 and t.untyped_storage().device is cuda
    inplace = copy.deepcopy(t[1:])
    assert inplace.device is cuda and inplace.tolist() == [1, 2, 3]
    assert pickle.loads(pickle.dumps(t)).cpu().equal(t.cpu())
    file = io.BytesIO()
    torch.save({"t": t}, file)
    for where, kind in ((None, "cuda"), ("cpu", "cpu")):
        file.seek(0)
        again = torch.load(file, map_location=where)["t"]
        assert again.device.type == kind and again.tolist() == [0, 1, 2, 3]


def test_resizes_and_sets(cuda):
    t = torch.arange(4.0, device=cuda)
    assert t.resize_(6).shape == (6,) and t[:4].tolist() == [0, 1, 2, 3]
    other = torch.empty(0, device=cuda).set_(t)
    assert other.data_ptr() == t.data_ptr() and other.device is cuda


def test_dlpack(cuda):
    t = torch.arange(4.0, device=cuda)
    again = torch.from_dlpack(t)
    assert again.data_ptr() == t.data_ptr() and again.device is cuda and t.__dlpack_device__() == (2, 0)


@pytest.mark.parametrize("d", [torch.complex64, torch.complex128])
def test_complex_quotients_are_those_of_the_cpu(cuda, d):
    inf = float("inf")
    x = torch.tensor([0j, 1 + 2j, -3j, 2 + 0j, 1 + 1j, 0j, complex(inf, 1)], dtype=d)
    y = torch.tensor([complex(inf, 0), complex(0, inf), 2 + 1j, 1 + 3j, 0j, 0j, 2 + 0j], dtype=d)
    got, want = (x.to(cuda) / y.to(cuda)).cpu(), x / y
    assert torch.allclose(torch.view_as_real(got), torch.view_as_real(want), equal_nan=True), (got, want)
    root = torch.zeros(5, dtype=d, device=cuda, requires_grad=True)
    (grad,) = torch.autograd.grad(torch.linalg.norm(root), root)
    assert grad.abs().sum().item() == 0


def test_long_rows_are_sorted_as_on_the_cpu(cuda):
    x = torch.randn(3, 20000)
    x[:, ::50] = float("nan")
    x[:, 1::50] = -0.0
    for t in (x, x.double(), x.half(), (x * 3).nan_to_num().to(torch.int8), x.t()):
        for descending in (False, True):
            for dim in (0, 1):
                got, want = (s.sort(stable=True, dim=dim, descending=descending) for s in (t.to(cuda), t))
                assert torch.allclose(got[0].cpu().double(), want[0].double(), equal_nan=True), (
                    t.dtype,
                    descending,
                    dim,
                )
                assert got[1].cpu().equal(want[1])
                at = t.to(cuda).argsort(dim=dim, descending=descending, stable=True)
                assert at.cpu().equal(t.argsort(dim=dim, descending=descending, stable=True))
