"""Products of matrices in 8-bit floats, each with scales that give its numbers back: `scaled_mm`, `_scaled_mm`.

A scale belongs to a whole matrix (one number) or to a row of the left and a column of the right one. The product is computed
in float32 and rounded once, to the dtype that is asked for. Written in other operators.
"""

from __future__ import annotations

from enum import Enum

from ...core import dtype as dtypes
from ...core.tensor import Tensor
from ..family.base import composite
from ..system.calls import front
from .grouped import grouped_mm


class ScalingType(Enum):
    """What one scale belongs to."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """How the scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _fits(scale: Tensor, sizes: tuple[int, int]) -> bool:
    return scale.numel() == 1 or tuple(scale.shape) == sizes


def _is_float8(t: Tensor) -> bool:
    return t.dtype.name.startswith("float8")


def _check(mat_a: Tensor, mat_b: Tensor, scale_a: Tensor, scale_b: Tensor) -> None:
    if mat_a.dim() != 2 or mat_b.dim() != 2 or mat_a.size(1) != mat_b.size(0):
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied: {tuple(mat_a.shape)} and {tuple(mat_b.shape)} are not (M, K) and (K, N)"
        )
    wanted = (mat_a.size(0), 1), (1, mat_b.size(1))
    if not (_is_float8(mat_a) and _is_float8(mat_b) and _fits(scale_a, wanted[0]) and _fits(scale_b, wanted[1])):
        raise ValueError(
            "Invalid scaling configuration.\n"
            "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
            f"- For RowWise scaling, a and b should be float8, scale_a should be {wanted[0]} and scale_b should be {wanted[1]}.\n"
            f"Got a.dtype()={mat_a.dtype.scalar_name}, scale_a.size()={list(scale_a.shape)}, "
            f"b.dtype()={mat_b.dtype.scalar_name}, scale_b.size()={list(scale_b.shape)}"
        )


@composite(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, "
    "ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor"
)
def _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum):
    """`(self * scale_a) @ (mat2 * scale_b) + bias`; a result in 8 bits is multiplied by `scale_result`."""
    _check(self, mat2, scale_a, scale_b)
    wanted = out_dtype or self.dtype
    result = self.float().mm(mat2.float()) * (scale_a * scale_b)
    if bias is not None:
        result = result + bias.float()
    if scale_result is not None and wanted.name.startswith("float8"):
        result = result * scale_result
    return result.to(wanted)


def _only(values, name: str):
    """The one of a list of one."""
    if isinstance(values, (list, tuple)):
        if len(values) != 1:
            raise NotImplementedError(f"{name}: scales in several levels are not supported (got {len(values)})")
        return values[0]
    return values


def _check_recipes(*recipes) -> None:
    for recipe in recipes:
        if _only(recipe, "scale_recipe") not in (ScalingType.TensorWise, ScalingType.RowWise):
            raise NotImplementedError(f"scales of type {recipe} are not supported: TensorWise and RowWise are")


@front("nn.functional.scaled_mm")
def scaled_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None,
    bias: Tensor | None = None, output_dtype=dtypes.bfloat16, contraction_dim=(), use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """The product of two scaled matrices; the recipes (`ScalingType`) say what the scales belong to."""
    _check_recipes(scale_recipe_a, scale_recipe_b)
    return _scaled_mm(
        mat_a, mat_b, _only(scale_a, "scale_a"), _only(scale_b, "scale_b"), bias, out_dtype=output_dtype,
        use_fast_accum=use_fast_accum,
    )  # fmt: skip


@front("nn.functional.scaled_grouped_mm")
def scaled_grouped_mm(
    mat_a: Tensor, mat_b: Tensor, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None,
    bias: Tensor | None = None, offs: Tensor | None = None, output_dtype=dtypes.bfloat16, contraction_dim=(),
    use_fast_accum: bool = False,
) -> Tensor:  # fmt: skip
    """`grouped_mm` of scaled matrices: a scale for each row of `mat_a` and each column of each matrix of `mat_b`."""
    _check_recipes(scale_recipe_a, scale_recipe_b)
    if mat_b.dim() != 3:
        raise NotImplementedError("scaled_grouped_mm: mat_b must be 3-D, one matrix for each group")
    left, right = _only(scale_a, "scale_a"), _only(scale_b, "scale_b")
    result = grouped_mm(mat_a.float() * left.unsqueeze(-1), mat_b.float() * right.unsqueeze(-2), offs=offs, bias=bias)
    return result.to(output_dtype)
