"""Products with weights of four bits, two in a byte: `_weight_int4pack_mm_for_cpu` and `_dyn_quant_matmul_4bit`.

In: weights as a quantizer gives them. Out: packed weights, which only the product of the same pair of operators reads, and products in the
dtype of the input. What always holds: the low half of a byte comes before the high half, and a stored 8 stands for zero.
"""

from __future__ import annotations

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite, operator
from ..system.operator import NONDIFFERENTIABLE, Spec

_GROUPS = (32, 64, 128, 256)
_FLOATS = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def _refuse(name: str, *conditions: tuple[bool, str]) -> None:
    for wrong, words in conditions:
        if wrong:
            raise RuntimeError(f"{name}{words}")


# ---- int4pack: a scale and a zero for each group of a row
def _check_pack(weight: Tensor, innerKTiles: int) -> None:
    shape = weight._array.shape
    _refuse(
        "_convert_weight_to_int4pack_cpu : ",
        (len(shape) != 2, "expect weight to be 2D tensor."),
        (weight.dtype is not dtypes.int32, "expect weight to be kInt."),
    )
    _refuse(
        "_convert_weight_to_int4pack_cpu : ",
        (shape[0] % 16 != 0, "expect N to be dividable by 16"),
        (shape[1] % 2 != 0, "expect K to be dividable by 2"),
    )


def _pack(xp, weight, tiles):
    return (weight[:, ::2] & 15 | (weight[:, 1::2] & 15) << 4).astype(xp.uint8)


def _unpacked(xp, packed):
    """The numbers of packed rows, from -8 to 7."""
    halves = xp.stack((packed & 15, packed >> 4), axis=-1)
    return halves.reshape(packed.shape[0], -1).astype(xp.float32) - 8


convert_weight_to_int4pack = operator(
    "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor",
    kernel=_pack,
    check=_check_pack,
    meta=lambda self, tiles: Spec((self._array.shape[0], self._array.shape[1] // 2), dtypes.uint8),
    vjp=NONDIFFERENTIABLE,
    method=False,
)


def _check_int4(self: Tensor, mat2: Tensor, group: int, scales: Tensor) -> None:
    name, k = "_weight_int4pack_mm_cpu", self._array.shape[-1]
    _refuse(
        f"{name} : expect ",
        (self._array.ndim != 2, "A to be 2D tensor."),
        (self.dtype not in _FLOATS, "A to be either 32-bit or 16-bit float tensor."),
        (mat2.dtype is not dtypes.uint8, "B to be uint8 tensor."),
        (mat2._array.ndim != 2 or mat2._array.shape[1] * 2 != k, f"B to be a packed matrix of {k} columns."),
    )
    n = mat2._array.shape[0]
    _refuse(
        f"{name}: expect ",
        (group not in _GROUPS, f"qGroupSize to be 32, 64, 128 or 256, got {group}"),
        (k % group != 0, f"K to be divisible by qGroupSize, got K:{k}, qGroupSize:{group}"),
        (scales._array.shape != (k // group, n, 2), f"qScaleAndZeros to be 3d tensor with sizes [:, {n}, 2]"),
    )
    if scales.dtype is not self.dtype:
        raise RuntimeError(f"expected scalar type {self.dtype.scalar_name} but found {scales.dtype.scalar_name}")


def _int4_product(xp, a, packed, group, scales_and_zeros):
    rows = _unpacked(xp, packed).reshape(packed.shape[0], -1, group)
    scales, zeros = xp.moveaxis(scales_and_zeros.astype(xp.float32), 0, 1)[..., None].transpose(2, 0, 1, 3)
    weight = (rows * scales + zeros).reshape(packed.shape[0], -1)
    return xp.matmul(a.astype(xp.float32), weight.T).astype(a.dtype)


def _product_spec(self: Tensor, mat2: Tensor, group: int, scales: Tensor) -> Spec:
    return Spec((self._array.shape[0], mat2._array.shape[0]), self.dtype)


weight_int4pack_mm = operator(
    "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> Tensor",
    kernel=_int4_product,
    check=_check_int4,
    meta=_product_spec,
    vjp=NONDIFFERENTIABLE,
    method=False,
    cost="compute",
)


# ---- dynamic quantization: the input is rounded to eight bits, row by row
def _check_dynamic_pack(weights, scales, bias, block: int, columns: int, rows: int) -> None:
    name = "_dyn_quant_pack_4bit_weight_cpu"
    wrong = block != columns and (block % 32 != 0 or columns % block != 0)
    _refuse(
        name,
        (weights.dtype is not dtypes.uint8, " : expect weight to be kByte."),
        (wrong, f": Group size should be multiple of 32, in_features [{columns}]. Provided {block}"),
        (weights._array.size * 2 != rows * columns, f": expect {rows * columns // 2} bytes of weights"),
    )


def _dynamic_pack(xp, weights, scales, bias, block, columns, rows):
    parts = [weights, scales] + ([bias] if bias is not None else [])
    return xp.concatenate([part.reshape(-1).astype(xp.float32) for part in parts])


def _dynamic_pack_spec(weights, scales, bias, block, columns, rows) -> Spec:
    more = bias._array.size if bias is not None else 0
    return Spec((weights._array.size + scales._array.size + more,), dtypes.float32)


dyn_quant_pack = operator(
    "_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int block_size, int in_features, int out_features)"
    " -> Tensor",
    kernel=_dynamic_pack,
    check=_check_dynamic_pack,
    meta=_dynamic_pack_spec,
    vjp=NONDIFFERENTIABLE,
    method=False,
)


def _check_dynamic(inp: Tensor, packed: Tensor, block: int, columns: int, rows: int) -> None:
    name, least = "_dyn_quant_matmul_4bit_cpu", rows * columns // 2 + rows * (columns // block)
    _refuse(
        f"{name} : expect ",
        (inp.dtype not in (dtypes.float32, dtypes.bfloat16), "input to be float32 or bfloat16 tensor."),
        (inp._array.ndim != 2 or inp._array.shape[1] != columns, f"input to be a matrix of {columns} columns."),
        (packed._array.size not in (least, least + rows), f"packed weights of {least} numbers, and {rows} of a bias."),
    )


def _rounded_rows(xp, x):
    """(rows in eight bits, the zero of each, the step of each): the range of a row, zero included, in 255 steps."""
    low, high = xp.minimum(x.min(axis=1, keepdims=True), 0), xp.maximum(x.max(axis=1, keepdims=True), 0)
    per_unit = xp.where(low == high, 1.0, 255.0 / xp.where(low == high, 1.0, high - low)).astype(xp.float32)
    below, above = low * per_unit, high * per_unit
    zero = xp.where((-128 + below) + (127 + above) > 0, -128 - below, 127 - above)
    zero = xp.rint(xp.clip(zero, -128, 127))
    return xp.clip(xp.rint(x * per_unit) + zero, -128, 127), zero, 1 / per_unit


def _dynamic_product(xp, inp, packed, block, columns, rows):
    count, groups = rows * columns // 2, columns // block
    weight = _unpacked(xp, packed[:count].astype(xp.uint8).reshape(rows, -1)).reshape(rows, groups, block)
    scales = packed[count : count + rows * groups].reshape(rows, groups, 1)
    quantized, zero, step = _rounded_rows(xp, inp.astype(xp.float32))
    result = xp.matmul(quantized - zero, (weight * scales).reshape(rows, columns).T) * step
    bias = packed[count + rows * groups :]
    return (result + bias if bias.size else result).astype(inp.dtype)


dyn_quant_matmul = operator(
    "_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int out_features) -> Tensor",
    kernel=_dynamic_product,
    check=_check_dynamic,
    meta=lambda inp, packed, block, columns, rows: Spec((inp._array.shape[0], rows), inp.dtype),
    vjp=NONDIFFERENTIABLE,
    method=False,
    cost="compute",
)


@composite(
    "int4mm_packed_weight_cpu(Tensor self, Tensor mat2, Tensor qGroupSize, Tensor qScaleAndZeros) -> Tensor",
    library="quantized",
    function=False,
    method=False,
    out=False,
)
def int4mm_packed_weight(self, mat2, qGroupSize, qScaleAndZeros):
    return weight_int4pack_mm(self, mat2, int(qGroupSize.item()), qScaleAndZeros)
