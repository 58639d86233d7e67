"""Autocast: what operators are cast to is what they declare, and is what PyTorch documents for each device."""

from __future__ import annotations

import pytest

import pullback as torch
from pullback.amp.autocast import policy_of
from pullback.ops.system.operator import registry

LOWER_ON_CPU = "conv1d conv2d conv3d bmm mm linalg_vecdot baddbmm addmm addbmm linear matmul conv_tbc conv_transpose2d scaled_dot_product_attention"
FLOAT32_ON_CPU = (
    "avg_pool3d binary_cross_entropy grid_sampler_2d polar prod quantile nanquantile trace cholesky inverse mse_loss nll_loss kl_div "
    "adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_unpool2d max_unpool3d reflection_pad1d reflection_pad2d "
    "replication_pad1d replication_pad2d replication_pad3d geqrf svd triangular_solve"
)
KEPT_ON_CPU = "linalg_norm linalg_vector_norm linalg_cross linalg_diagonal linalg_matrix_power linalg_matrix_exp fft_fftshift fft_ifftshift"
FLOAT32_ON_CUDA = "acos asin cosh cumprod cumsum dist erfinv exp expm1 log log10 log1p log2 pow reciprocal rsqrt sinh softplus sum tan softmax log_softmax"
WIDEST_ON_CUDA = "addcdiv addcmul atan2 bilinear cat cross dot index_put scatter_add stack tensordot"


def overloads(names: str):
    return [op for op in registry.values() if op.namespace == "aten" and op.name in names.split()]


@pytest.mark.parametrize(
    "device, names, policy",
    [
        ("cpu", LOWER_ON_CPU, "lower"),
        ("cpu", FLOAT32_ON_CPU, "float32"),
        ("cpu", "fft_fft fft_irfftn linalg_cond linalg_svdvals linalg_inv", "float32"),
        ("cpu", "stack cat index_copy", "widest"),
        ("cpu", KEPT_ON_CPU, "kept"),
        ("cpu", "add mul relu softmax cumsum exp mv addmv convolution reflection_pad3d adaptive_max_pool2d", None),
        (
            "cuda",
            "mm bmm addmm linear matmul conv1d conv2d conv3d conv_transpose2d gru_cell lstm_cell prelu addr",
            "lower",
        ),
        ("cuda", FLOAT32_ON_CUDA, "float32"),
        ("cuda", WIDEST_ON_CUDA, "widest"),
        ("cuda", "add mul relu linalg_inv", None),
    ],
)
def test_policies(device, names, policy):
    found = overloads(names)
    assert {op.name for op in found} == set(names.split())
    assert {op.name: policy_of(op, device) for op in found} == dict.fromkeys(names.split(), policy)


def test_products_that_are_one_sum_keep_their_precision_on_cpus():
    x, square = torch.ones(3), torch.ones(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        kept = (
            torch.inner(x, x),
            torch.inner(x[None], x),
            torch.tensordot(x, x, 1),
            torch.mv(square, x),
            torch.linalg.norm(x),
        )
        lower = (torch.inner(square, x), torch.tensordot(square, square, 1), square @ x)
        bilinear = torch.nn.functional.bilinear(square, square, torch.ones(2, 3, 3))
        assert torch.linalg.norm(square.bfloat16()).dtype is torch.bfloat16
    assert {t.dtype for t in (*kept, bilinear)} == {torch.float32} and {t.dtype for t in lower} == {torch.bfloat16}


def test_lower_precision():
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 3) @ torch.ones(3, 2)).dtype is torch.bfloat16
        assert torch.nn.functional.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2)).dtype is torch.bfloat16
        assert (torch.ones(2) + torch.ones(2)).dtype is torch.float32


def test_range_is_kept_in_float32():
    narrow = torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert narrow.prod().dtype is torch.float32
        assert torch.linalg.inv(torch.eye(2, dtype=torch.bfloat16)).dtype is torch.float32
        assert torch.nn.functional.mse_loss(narrow, narrow).dtype is torch.float32
        assert torch.softmax(narrow, 0).dtype is torch.bfloat16


def test_arguments_meet_in_the_widest():
    wide, narrow = torch.ones(2), torch.ones(2, dtype=torch.bfloat16)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.cat([narrow, wide]).dtype is torch.float32
        assert torch.stack([narrow, narrow]).dtype is torch.bfloat16


def test_float64_and_integers_are_left_alone():
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 2, dtype=torch.float64) @ torch.ones(2, 2, dtype=torch.float64)).dtype is torch.float64
        assert (torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64)).dtype is torch.int64


def test_norms_keep_their_precision_and_distances_take_float32_on_cpus():
    x = torch.arange(12.0).reshape(3, 4).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.norm(x).dtype is torch.linalg.vector_norm(x).dtype is torch.bfloat16
        assert torch.nn.functional.cosine_similarity(x, x).dtype is torch.bfloat16
        assert torch.cdist(x, x).dtype is torch.float32
        image = torch.ones(1, 1, 3, 3, dtype=torch.bfloat16)
        assert (
            torch.nn.functional.grid_sample(image, torch.zeros(1, 2, 2, 2), align_corners=False).dtype is torch.float32
        )


def test_availability_by_name():
    assert torch.amp.is_autocast_available(device_type="cpu") and not torch.amp.is_autocast_available("xla")


def test_old_names_are_deprecated():
    with (
        pytest.warns(FutureWarning, match=r"`torch.cpu.amp.autocast\(args...\)` is deprecated"),
        torch.cpu.amp.autocast(),
    ):
        assert torch.is_autocast_enabled("cpu")
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.autocast\(args...\)` is deprecated"):
        torch.cuda.amp.autocast(enabled=False)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_of_another_dtype(kind):
    layer, x = getattr(torch.nn, kind)(1, 1, 2).to(torch.bfloat16), torch.randn(1, 2, 1)
    with pytest.raises(ValueError, match="RNN input dtype .* does not match weight dtype"):
        layer(x)
    with torch.autocast("cpu"):
        assert layer(x)[0].isfinite().all()


def test_a_layer_in_one_call():
    bias, x, w = torch.randn(2), torch.randn(3, 4), torch.randn(4, 2)
    plain = torch.addmm(bias, x, w)
    assert torch._addmm_activation(bias, x, w).equal(plain.relu())
    assert torch._addmm_activation(bias, x, w, use_gelu=True).equal(torch.nn.functional.gelu(plain))
    with torch.autocast("cpu"):
        assert torch._addmm_activation(bias, x, w).dtype is torch.bfloat16


@pytest.mark.parametrize(("kind", "given"), [("LSTM", "bfloat16"), ("GRU", "float32")])
def test_an_lstm_is_cast_as_a_whole_and_other_layers_by_their_products(kind, given):
    layer, x = getattr(torch.nn, kind)(3, 4, 2, bidirectional=True), torch.randn(5, 2, 3, requires_grad=True)
    with torch.autocast("cpu"):
        out, state = layer(x)
    out.sum().backward()
    state = state if isinstance(state, tuple) else (state,)
    assert {t.dtype for t in (out, *state)} == {getattr(torch, given)}
    assert x.grad.dtype is torch.float32 and layer.weight_hh_l0.grad.dtype is torch.float32
    torch.testing.assert_close(out.float(), layer(x)[0], rtol=0, atol=0.03)


def test_bodies_of_cast_operators_are_not_cast_again():
    narrow = torch.rand(4, 4).bfloat16()
    wide, other = narrow.float(), torch.rand(4, 4)
    probabilities = torch.rand(8, 8).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        loss = torch.nn.functional.binary_cross_entropy(probabilities, probabilities)
        assert torch.nn.functional.bilinear(other, other, torch.ones(2, 4, 4)).dtype is torch.float32
        assert torch.linalg.norm(narrow).dtype is torch.linalg.matrix_power(narrow, 3).dtype is torch.bfloat16
        assert torch.linalg.matrix_exp(narrow).dtype is torch.linalg.matmul(wide, other).dtype is torch.bfloat16
        spectrum = torch.stft(narrow.reshape(-1), 4, window=torch.ones(4), return_complex=True)
        assert spectrum.dtype is torch.complex64
    probabilities = probabilities.float()
    assert loss.equal(torch.nn.functional.binary_cross_entropy(probabilities, probabilities))


def test_results_that_the_caller_allotted_are_computed_in_their_dtype():
    x, y = torch.rand(3, 3), torch.rand(3, 3)
    out = torch.empty(3, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.mm(x, y, out=out) is out and torch.mm(x, y).dtype is torch.bfloat16
    assert out.equal(x @ y)
