"""What training libraries import of PyTorch's insides: line searches, steps of `autograd.functional`, scales of mixed precision."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pullback

from ..amp.grad_scaler import OptState
from ..autograd import functional
from ..core.tensor import Tensor
from ..optim.line_search import DECREASE, FLATTEN, Point, cubic_minimum, strong_wolfe


# ---- optimizers
def cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds: tuple | None = None) -> float:
    """`torch.optim.lbfgs._cubic_interpolate`: where the cubic through two points with their slopes is smallest."""
    return cubic_minimum(Point(x1, f1, g1, g1), Point(x2, f2, g2, g2), bounds)


def strong_wolfe_search(
    obj_func: Callable, x: Any, t: float, d: Tensor, f: float, g: Tensor, gtd: Any,
    c1: float = DECREASE, c2: float = FLATTEN, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[float, Tensor, float, int]:  # fmt: skip
    """`torch.optim.lbfgs._strong_wolfe`: (value, gradient, distance, evaluations) of a step along `d`."""
    if (c1, c2) != (DECREASE, FLATTEN):
        raise ValueError(f"_strong_wolfe: expected the constants {DECREASE} and {FLATTEN}, got {c1} and {c2}")
    start = Point(0.0, f, g, float(gtd))
    best, evaluations = strong_wolfe(lambda step: obj_func(x, step, d), t, d, start, tolerance_change, max_ls)
    return best.value, best.gradient, best.t, evaluations


# ---- autograd.functional
def as_tuple(inp: Any, arg_name: str | None = None, fn_name: str | None = None) -> tuple[bool, tuple]:
    """(whether it was a tuple, the tensors as one)."""
    if arg_name is None and fn_name is None:
        return isinstance(inp, tuple), inp if isinstance(inp, tuple) else (inp,)
    return functional._tensors(inp, str(arg_name), str(fn_name))


def unpacked(res: tuple, to_unpack: bool | tuple[bool, bool]) -> Any:
    """Results as their caller wrote the arguments: for each level whether it was a tuple."""
    if isinstance(to_unpack, tuple):
        outer, inner = to_unpack
        rows = res if inner else tuple(row[0] for row in res)
        return rows if outer else rows[0]
    return res if to_unpack else res[0]


def standard_basis(tensors: tuple, tensor_numels: tuple) -> tuple:
    """Unit vectors for all elements of the tensors, each split over the tensors."""
    sizes = tuple(t.numel() for t in tensors)
    if tuple(tensor_numels) != sizes:
        raise AssertionError(f"expected the numbers of elements {sizes}, got {tuple(tensor_numels)}")
    return functional._basis(tensors)


# ---- mixed precision
def fresh_scaler_state() -> dict:
    """What a gradient scaler knows of an optimizer before its step."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def update_scale(
    scale: Tensor, growth_tracker: Tensor, found_inf: Tensor, growth: float, backoff: float, interval: int
) -> Tensor:
    """The scale of the next step, in place: smaller after gradients that were not finite, larger after `interval` good steps."""
    if bool(found_inf):
        scale.mul_(backoff)
        growth_tracker.zero_()
        return scale
    growth_tracker.add_(1)
    if int(growth_tracker) == interval:
        larger = scale * growth
        if bool(larger.isfinite()):
            scale.copy_(larger)
        growth_tracker.zero_()
    return scale


def int8_matmul(input: Tensor, weight: Tensor, scales: Tensor) -> Tensor:
    """`input @ weight.T * scales` for weights in 8 bits, with a scale for each of their rows."""
    if weight.dtype is not pullback.int8:
        raise RuntimeError(f"_weight_int8pack_mm: expected a weight of int8, got {weight.dtype}")
    return pullback.mm(input, weight.to(input.dtype).mT) * scales.to(input.dtype)


# ---- processes
def set_vital(vital: str, attr: str, value: str) -> bool:
    """A note of what a run used; kept only where TORCH_VITAL asks for notes, which nothing here prints: never."""
    return False


def free_port() -> int:
    """A port that nothing listens on."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as s:
        s.bind(("localhost", 0))
        return int(s.getsockname()[1])


# ---- names
class ScriptMethod:
    """A compiled method of a scripted module. Here those are Python's methods: nothing is one."""

    def __new__(cls, *args: Any, **kwargs: Any):
        raise TypeError("ScriptMethod: methods of scripted modules are methods of Python; none can be made")


class ModuleState:
    """The base of what composable functions of PyTorch note about a module. Here those keep it in the module's class
    (`FSDPModule`), so no module has such a state."""


class FlatShardState(ModuleState):
    """What `FullyShardedDataParallel` would note about a module: that class is not built here."""


def module_state(module: Any) -> ModuleState | None:
    """The state of a module, which none has here: see `ModuleState`."""
    return None


PUBLIC = sorted(name for name in dir(pullback) if not name.startswith("_"))  # `torch.__all__`
FUNCTIONAL = [  # `torch.functional.__all__`
    "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "block_diag", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "norm", "meshgrid", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot",
    "unique", "unique_consecutive", "unravel_index",
]  # fmt: skip
