"""Samples of operators that make tensors, and of what does not belong in the table, with the reason."""

from __future__ import annotations

from .make import Make, call


def table(m: Make) -> dict:
    windows = {
        f"{n}_window.periodic": [call(5, True), call(1, False), call(4, False)]
        for n in ("bartlett", "blackman", "hann")
    }
    return windows | {
        "zeros": [call((2, 3))], "ones": [call(())], "full": [call((2, 3), 1.5), call((2,), 3)], "scalar_tensor": [call(1.5)],
        "arange": [call(5), call(2.5)], "arange.start": [call(1, 5)], "eye": [call(3)],
        "arange.start_step": [call(0, 5, 1), call(1.0, 2.0, 0.25)], "range.step": [call(0.0, 2.0, 0.5)],
        "linspace": [call(0, 1, 5), call(2.0, -1.0, 1)], "logspace": [call(0, 2, 5), call(0, 3, 4, 2.0)], "eye.m": [call(2, 3)],
        "new_zeros": [call(m(2, 3), (4, 5))], "new_ones": [call(m(2, 3), (4,))], "new_full": [call(m(2, 3), (4, 5), 1.5)],
        "lift_fresh_copy": [call(m(2, 3))], "zeros_like": [call(m(2, 3))], "ones_like": [call(m(2, 3))], "full_like": [call(m(2, 3), 1.5)],
        "tril_indices": [call(3, 4), call(3, 4, 1)], "triu_indices": [call(3, 4), call(3, 4, -1)],
        "fft_fftfreq": [call(5), call(4, 0.5)], "fft_rfftfreq": [call(5), call(4, 0.5)],
        "hamming_window.periodic_alpha_beta": [call(5, True, 0.5, 0.4)], "kaiser_window.beta": [call(5, True, 3.0)],
    }  # fmt: skip


RANDOM = "draws random numbers: its streams are checked in tests/core/test_random.py and tests/ops/make/test_random.py"
UNSET = "its numbers are whatever the memory holds"
SHAPE = "the shape of its result depends on the numbers: no metadata without them"
PYTHON = "where Python values and tensors meet: checked in tests/capture"
WRITES = "writes its arguments: checked where it is declared"

GIVES_NOTHING = "raises or gives nothing: checked in tests/ops/make/test_assertions.py"
LAYOUT = "takes or gives sparse or nested tensors: checked with those layouts, in tests/sparse and tests/nested"
OPAQUE = "takes or gives tensors of an opaque layout: checked in tests/ops/layout/test_opaque.py"
LAYOUTS = ("_sparse_", "_to_sparse", "_nested_")  # names that belong to a layout, by how they start

EXEMPT: dict[str, str] = {
    **dict.fromkeys(
        ("_jagged_to_padded_dense_forward", "_padded_dense_to_jagged_forward"),
        "cuts by the numbers of an argument; tested in tests/ops/layout/nested/test_padding.py",
    ),
    "_pin_memory": "needs a device; tested in tests/cuda",
    "_efficientzerotensor": "its results are not written; tested in tests/ops/make/test_zero_tensors.py",
    **dict.fromkeys(
        (
            "set_", "set_.source_Tensor", "set_.source_Storage", "set_.source_Storage_storage_offset", "set_.source_Tensor_storage_offset", "resize_", "resize_as_",
            "is_set_to", "record_stream",
        ),
        "changes or asks for the memory under a tensor; tested in tests/ops/make/test_memory_operators.py",
    ),
    "_scaled_mm": "takes 8-bit floats alone; tested in tests/ops/linalg/test_scaled.py",
    "is_pinned": "gives a Python value; tested in tests/cuda",
    "is_nonzero": "gives a Python value; tested in tests/export/test_trace.py",
    "where": "gives as many elements as hold; tested in tests/ops/elementwise/test_selection.py",
    "_grouped_mm": "cuts by the numbers of an argument; tested in tests/nn",
    **dict.fromkeys((
        "fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine.tensor_qparams",
        "fake_quantize_per_tensor_affine_cachemask", "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams",
        "fake_quantize_per_channel_affine", "fake_quantize_per_channel_affine_cachemask",
        "_fake_quantize_learnable_per_tensor_affine", "_fake_quantize_learnable_per_channel_affine",
        "fused_moving_avg_obs_fake_quant",
    ), "its gradient is none of the steps that it computes; tested in tests/ops/network/test_fake_quantize.py"),
    "_int_mm": "takes bytes alone; tested in tests/ops/linalg/test_contraction.py",
    **dict.fromkeys((
        "_convert_weight_to_int4pack_for_cpu", "_weight_int4pack_mm_for_cpu", "_dyn_quant_pack_4bit_weight", "_dyn_quant_matmul_4bit",
    ), "takes packed numbers of four bits; tested in tests/ops/linalg/test_packed_weights.py"),
    **dict.fromkeys(("empty.memory_format", "empty_strided", "empty_like", "new_empty", "new_empty_strided"), UNSET),
    **dict.fromkeys((
        "rand", "rand.generator", "randn", "randn.generator", "randperm", "randperm.generator", "randint",
        "randint.generator", "randint.low", "randint.low_generator", "rand_like", "rand_like.generator", "randn_like",
        "randn_like.generator", "randint_like", "randint_like.generator", "randint_like.low_dtype",
        "randint_like.low_generator_dtype", "normal.float_float", "_rrelu_noise", "rrelu_with_noise", "rrelu_with_noise_", "rrelu_with_noise_functional",
        "uniform", "normal_functional",
        "log_normal", "cauchy", "exponential", "geometric", "random.from", "random.to", "random", "bernoulli",
        "bernoulli.Tensor", "bernoulli.p", "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor",
        "multinomial", "poisson", "binomial", "_standard_gamma", "_sample_dirichlet", "native_dropout",
    ), RANDOM),
    **dict.fromkeys((
        "_unique2", "_unique", "unique_dim", "unique_dim_consecutive", "unique_consecutive", "nonzero", "argwhere",
        "nonzero_numpy",
    ), SHAPE),
    **dict.fromkeys((
        "_native_batch_norm_legit", "batch_norm_update_stats", "dropout_", "feature_dropout_", "alpha_dropout_",
        "feature_alpha_dropout_", "embedding_renorm",
    ), WRITES),
    **dict.fromkeys((
        "_nnz", "crow_indices", "col_indices", "ccol_indices", "row_indices", "sparse_mask", "values", "_values", "_to_dense", "_coalesce", "sspaddmm", "hspmm", "sparse_sampled_addmm",
    ), LAYOUT),
    **dict.fromkeys((
        "lift_fresh", "_local_scalar_dense", "sym_size.int", "sym_stride.int", "sym_storage_offset", "sym_numel", "sym_size",
        "sym_stride", "size", "stride", "dim", "numel", "is_contiguous", "is_contiguous.memory_format", "sym_is_contiguous",
        "is_strides_like_format", "is_non_overlapping_and_dense", "is_same_size",
    ), PYTHON),
    **dict.fromkeys(("_assert_scalar", "_assert_async", "_assert_async.msg", "_assert_tensor_metadata", "sym_constrain_range", "sym_constrain_range_for_size"), GIVES_NOTHING),
    **dict.fromkeys(("to_mkldnn", "_mkldnn_to_dense", "_mkldnn_reshape"), OPAQUE),
}  # fmt: skip
