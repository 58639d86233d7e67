"""Names of functions that no `__torch_function__` is asked about: they make tensors, or set and read what holds for all of them.

`NAMES` goes from a module or class to names in it. What is not here (by another version, or another device) is left out by whoever
looks them up.
"""

from __future__ import annotations

_DTYPES = [f"{do}_autocast_{device}_dtype" for do in ("get", "set") for device in ("cpu", "gpu", "ipu", "xla")]
_SWITCHES = [f"{do}_autocast_{device}_enabled" for do in ("is", "set") for device in ("cache", "cpu", "ipu", "xla")]
NAMES: dict[str, list[str]] = {
    "torch": [
        # making tensors
        "arange", "as_tensor", "asarray", "bartlett_window", "blackman_window", "empty", "empty_permuted", "empty_strided", "eye",
        "from_file", "from_numpy", "frombuffer", "full", "hamming_window", "hann_window", "kaiser_window", "linspace", "logspace",
        "normal", "ones", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "range",
        "scalar_tensor", "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor",
        "sparse_csc_tensor", "sparse_csr_tensor", "tensor", "tril_indices", "triu_indices", "vander", "zeros",
        # what holds for all
        *_DTYPES, *_SWITCHES, "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
        "get_autocast_dtype", "get_rng_state", "initial_seed", "is_anomaly_check_nan_enabled", "is_anomaly_enabled",
        "is_autocast_enabled", "is_grad_enabled", "is_inference_mode_enabled", "manual_seed", "seed", "set_anomaly_enabled",
        "set_autocast_dtype", "set_autocast_enabled", "set_printoptions", "set_rng_state", "thread_safe_generator",
        # of shapes, dtypes, functions and files
        "broadcast_shapes", "can_cast", "compile", "cond", "fork", "load", "promote_types", "result_type", "save", "vmap", "wait",
    ],
    "torch.Tensor": [
        "__delattr__", "__dir__", "__getattribute__", "__hash__", "__init__", "__init_subclass__", "__new__", "__setattr__",
        "__subclasshook__", "__torch_dispatch__", "__torch_function__", "_make_subclass", "_make_wrapper_subclass", "as_subclass",
        "new_empty", "new_empty_strided", "new_full", "new_ones", "new_tensor", "new_zeros",
    ],
    "torch.nn.init": [
        "calculate_gain", "constant", "dirac", "eye", "kaiming_normal", "kaiming_uniform", "normal", "orthogonal", "sparse",
        "uniform", "xavier_normal", "xavier_uniform",
    ],
}  # fmt: skip
