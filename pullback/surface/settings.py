"""Process-wide and per-thread settings with PyTorch's names: default dtype and device, threads, determinism, questions about objects."""

from __future__ import annotations

import warnings

from ..core.cupy_library import use_matmul_precision
from ..core.device import device as device_type
from ..core.dtype import dtype as dtype_type
from ..core.layers import above, extend
from ..core.modes import ambient, process
from ..core.storage import UntypedStorage
from ..core.tensor import Tensor
from ..core.threads import set_thread_count, tell_blas, thread_count
from ..ops.layout.nested.layouts import is_jagged
from ..ops.make.construct import TYPED
from ..ops.make.storages import TypedStorage
from ..ops.system.offers import for_programs

public: dict[str, object] = {}


def _public(function):
    public[function.__name__] = function
    return function


@_public
def set_default_dtype(d: dtype_type) -> None:
    """Says which dtype floating-point numbers have for which none is named.

    >>> torch.set_default_dtype(torch.float64)
    >>> torch.ones(1).dtype
    torch.float64
    >>> torch.set_default_dtype(torch.float32)
    """
    if not isinstance(d, dtype_type):
        raise TypeError(f"invalid dtype object: only floating-point types are supported as the default type, got {d!r}")
    if not d.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    ambient.default_dtype = d


@_public
def get_default_dtype() -> dtype_type:
    """The dtype of floating-point numbers for which none is named.

    >>> torch.get_default_dtype()
    torch.float32
    """
    return ambient.default_dtype


@_public
def set_default_tensor_type(t) -> None:
    """Sets the default dtype by the name of an old class.

    >>> torch.set_default_tensor_type("torch.FloatTensor")
    """
    if isinstance(t, str):
        t = TYPED[t.rpartition(".")[2]]
    if not isinstance(t, type):
        raise TypeError("invalid type object")
    if hasattr(t, "check_available"):  # a name for CUDA tensors
        t.check_available()
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    set_default_dtype(t.dtype)  # type: ignore[attr-defined]


@_public
def set_default_device(device) -> None:
    """Says on which device tensors are made for which none is named.

    >>> torch.set_default_device("meta")
    >>> torch.ones(2).device
    device(type='meta')
    >>> torch.set_default_device(None)
    """
    ambient.default_device = device


@_public
def get_default_device() -> device_type:
    """The device of tensors for which none is named.

    >>> torch.get_default_device()
    device(type='cpu')
    """
    return ambient.default_device


@_public
def set_num_threads(n: int) -> None:
    """How many threads large element-wise work, reductions and matrix products use.

    >>> torch.set_num_threads(torch.get_num_threads())
    """
    if not isinstance(n, int):
        raise TypeError(f"set_num_threads expects an int, but got {type(n).__name__}")
    if not 0 < n < 1 << 31:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {n}")
    set_thread_count(n)


@_public
def get_num_threads() -> int:
    """How many threads one operator uses.

    >>> torch.get_num_threads() >= 1
    True
    """
    return thread_count()


@_public
def init_num_threads() -> None:
    """Sets the number of threads to what the environment says.

    >>> torch.init_num_threads()
    """
    process.threads = None


_interop: list[int | None] = [None]


@_public
def set_num_interop_threads(n: int) -> None:
    """Says how many threads run different operators.

    >>> torch.set_num_interop_threads(torch.get_num_interop_threads())
    """
    if not 0 < n < 1 << 31:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer, but got {n}")
    _interop[0] = n


@_public
def get_num_interop_threads() -> int:
    """How many threads run different operators.

    >>> torch.get_num_interop_threads() >= 1
    True
    """
    return _interop[0] or thread_count()


@_public
def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Says whether operators must give the same numbers each time, or raise.

    >>> torch.use_deterministic_algorithms(True)
    >>> torch.use_deterministic_algorithms(False)
    """
    for name, value in (("'mode' (position 1)", mode), ("'warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument {name} must be bool, not {type(value).__name__}"
            )
    before = process.deterministic
    process.deterministic, process.deterministic_warn_only = mode, warn_only
    if mode is not before:
        tell_blas()


@_public
def are_deterministic_algorithms_enabled() -> bool:
    """Whether operators must give the same numbers each time, or raise.

    >>> torch.are_deterministic_algorithms_enabled()
    False
    """
    return process.deterministic


@_public
def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether operators that may give other numbers each time warn instead of raising.

    >>> torch.is_deterministic_algorithms_warn_only_enabled()
    False
    """
    return process.deterministic_warn_only


@_public
def set_deterministic_debug_mode(debug_mode) -> None:
    """Says what operators do that may give other numbers each time: "default", "warn" or "error".

    >>> torch.set_deterministic_debug_mode("default")
    """
    if not isinstance(debug_mode, (str, int)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    words: dict[str | int, int] = {"default": 0, "warn": 1, "error": 2}
    level = words.get(debug_mode, debug_mode)
    if level not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, or 'default', 'warn', 'error', got {debug_mode!r}"
        )
    use_deterministic_algorithms(level > 0, warn_only=level == 1)


@_public
def get_deterministic_debug_mode() -> int:
    """0, 1 (warn) or 2 (raise) for operators that may give other numbers each time.

    >>> torch.get_deterministic_debug_mode()
    0
    """
    return 0 if not process.deterministic else 1 if process.deterministic_warn_only else 2


@_public
def set_float32_matmul_precision(precision: str) -> None:
    """Says how exactly matrices of float32 are multiplied: "highest", "high" or "medium".

    >>> torch.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision} is not one of 'highest', 'high', or 'medium' in set_float32_matmul_precision")
    use_matmul_precision(precision)


@_public
def get_float32_matmul_precision() -> str:
    """How exactly matrices of float32 are multiplied.

    >>> torch.get_float32_matmul_precision()
    'highest'
    """
    return process.matmul_precision


@_public
def set_warn_always(b: bool) -> None:
    """Says whether warnings that appear once appear every time.

    >>> torch.set_warn_always(False)
    """
    process.warn_always = bool(b)


@_public
def is_warn_always_enabled() -> bool:
    """Whether warnings that appear once appear every time.

    >>> torch.is_warn_always_enabled()
    False
    """
    return process.warn_always


@_public
def set_flush_denormal(mode: bool) -> bool:
    """Denormal numbers are never flushed here; the answer says that the mode was not set.

    >>> supported = torch.set_flush_denormal(False)
    """
    if mode:
        warnings.warn("set_flush_denormal: denormal numbers are kept, flushing is not supported", stacklevel=2)
    return False


@_public
def is_tensor(obj) -> bool:
    """Whether something is a tensor.

    >>> torch.is_tensor([1.0])
    False
    """
    return isinstance(obj, Tensor)


@_public
def is_storage(obj) -> bool:
    """Whether something is the memory of tensors.

    >>> torch.is_storage(torch.ones(1).untyped_storage())
    True
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


@_public
def typename(obj) -> str:
    """The name of the class of something, with its module.

    >>> torch.typename([])
    'list'
    """
    if isinstance(obj, Tensor):
        return obj.type()
    module = getattr(obj, "__module__", "") or ""
    name = getattr(obj, "__qualname__", None) or type(obj).__name__
    return f"{module}.{name}" if module and module != "builtins" else name


def _question(name: str, says: str, answer: object):
    """A function that asks a tensor by its method; `answer` is that of a matrix of ones."""

    def ask(input):
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
        return getattr(input, name)()

    ask.__name__ = name
    ask.__doc__ = f"{says}\n\n>>> torch.{name}(torch.ones(2, 3))\n{answer}"
    for_programs.add(ask.__code__)
    return _public(ask)


for _name, _says, _answer in (
    ("is_floating_point", "Whether the dtype of a tensor is one of floating-point numbers.", True),
    ("is_complex", "Whether the dtype of a tensor is complex.", False),
    ("is_signed", "Whether the dtype of a tensor has negative numbers.", True),
    ("is_conj", "Whether a tensor is a view whose numbers are to be conjugated when they are read.", False),
    ("is_neg", "Whether a tensor is a view whose numbers are to be negated when they are read.", False),
    ("is_inference", "Whether a tensor was made in `inference_mode`.", False),
    ("numel", "How many elements a tensor has.", 6),
    ("get_device", "The number of the device of a tensor; -1 for the CPU.", -1),
):
    _question(_name, _says, _answer)


@_public
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> torch.is_same_size(torch.ones(2), torch.zeros(2))
    True
    """
    if input.is_nested is not other.is_nested:
        raise RuntimeError("Expected both self and other to be nested tensors.")
    if input.is_nested and not is_jagged(input):
        ours, theirs = input._nested_tensor_size(), other._nested_tensor_size()
        return ours.shape == theirs.shape and bool((ours == theirs).all())
    return input.shape == other.shape


@_public
def is_distributed(input: Tensor) -> bool:
    """Whether a tensor is spread over processes by an old interface: False.

    >>> torch.is_distributed(torch.ones(1))
    False
    """
    return False


@_public
def is_vulkan_available() -> bool:
    """Whether there is a Vulkan device: no.

    >>> torch.is_vulkan_available()
    False
    """
    return False


@_public
def compiled_with_cxx11_abi() -> bool:
    """Whether C++ strings are those of C++11: True.

    >>> torch.compiled_with_cxx11_abi()
    True
    """
    return True


@_public
def get_device_module(device=None):
    """The module of a kind of device, such as `torch.cuda`.

    >>> torch.get_device_module("cuda").__name__.rpartition(".")[2]
    'cuda'
    """
    name = device_type(device).type if device is not None else "cpu"
    module = getattr(above.package(), name, None)
    if module is None:
        raise RuntimeError(f"Device module '{name}' is not available")
    return module


@_public
def get_file_path(*parts: str) -> str:
    """A path inside the installed package.

    >>> import os
    >>> os.path.isdir(torch.get_file_path("nn"))
    True
    """
    import os

    return os.path.join(os.path.dirname(os.path.dirname(__file__)), *parts)


public["has_lapack"] = public["has_spectral"] = True
public["has_mkl"] = public["has_openmp"] = public["has_cuda"] = False
extend(Tensor, __name__, is_same_size=is_same_size, is_distributed=is_distributed)
