"""Products of matrices and vectors: mm, bmm, mv, dot and their kin, the `add...` forms, and what is built from them.

Tensors in, tensors out. Operands of one call have one dtype (nothing is promoted, except in `outer`, `kron` and `addr`,
which multiply elements). `matmul` and `linear` have no rules of their own: they choose among the operators here.
"""

from __future__ import annotations

from math import prod

from ...core import dtype as dtypes
from ...core import modes
from ...core.geometry import broadcast_shapes
from ...core.layers import above
from ...core.tensor import NESTED, Tensor, wrap
from ..eager.products import ProductCase
from ..eager.straight import FunctionCase
from ..elementwise.arithmetic import conj
from ..elementwise.array_kernels import number
from ..family.base import composite
from ..family.contraction import CONTRACTION, added_product_flops, contraction, product, product_flops, rounded_product
from ..shape.shapes import unsafe_view
from ..system.calls import export_operator
from ..system.operator import Operator, export, exports
from ..system.scalars import exact_out
from . import contraction_shapes as shapes
from . import contraction_shortcuts as shortcuts
from .contraction_lowering import lower_addmm, lower_mm, lower_mv, lower_unsafe_view


def scaled(g: Tensor, factor):
    """`g` times the conjugate of a coefficient that is mostly 1."""
    return g if factor.__class__ is int and factor == 1 else g * conj(factor)


def coefficient(value, array):
    """`alpha` or `beta` as a number of the arrays' kind; integers drop fractions, as PyTorch's integer kernels do."""
    value = real(value, array.dtype.kind == "c")
    return int(value) if array.dtype.kind in "iub" else value


def real(factor, is_complex: bool):
    """A factor that shape rules let pass, without the imaginary part that is zero where numbers are real."""
    return factor.real if isinstance(factor, complex) and not is_complex else factor


def _combine(xp, addend, result, beta, alpha):
    """beta * addend + alpha * made, where a beta of zero means that the addend is not read."""
    beta, alpha = coefficient(beta, result), coefficient(alpha, result)
    if alpha != 1:
        result = xp.multiply(result, number(xp, alpha, result))
    if beta == 0:
        return result
    if beta != 1:
        addend = xp.multiply(addend, number(xp, beta, result))
    return xp.add(result, addend)


# ---- two matrices
def _column_major(info) -> bool:
    return info.stride[0] == 1 and info.stride[1] == info.shape[0] and info.shape[0] > 1


def mm_left_grad(g, mat2, info):
    """d/d mat1 of mat1 @ mat2, laid out in memory as mat1 is: what reaches a transposed weight is contiguous there."""
    if _column_major(info):
        return conj(mat2).mm(g.t()).t()
    return g.mm(conj(mat2.t()))


def mm_right_grad(g, mat1, info):
    """d/d mat2 of mat1 @ mat2, laid out in memory as mat2 is."""
    if _column_major(info):
        return g.t().mm(conj(mat1)).t()
    return conj(mat1.t()).mm(g)


def _batched(t, dim, rank: int):
    """The batch first, then ones up to `rank` dimensions, so that operands of several ranks meet; unbatched as it "
    "is."""
    if dim is None or not isinstance(t, Tensor):
        return t
    t = t.movedim(dim, 0)
    missing = rank - (t.ndim - 1)
    return t.reshape(t.shape[0], *(1,) * missing, *t.shape[1:]) if missing > 0 else t


def _vmap_product(args, dims, size):
    rank = 2 if args[0].ndim - (dims[0] is not None) == 2 else 3
    return _batched(args[0], dims[0], rank).matmul(_batched(args[1], dims[1], rank)), 0


def _vmap_added(rank: int):
    """The rule of the operators that compute beta * self + alpha * (left @ right)."""

    def rule(args, dims, size):
        addend, left, right = (_batched(a, d, rank) for a, d in zip(args[:3], dims[:3], strict=True))
        beta, alpha = args[3:]
        if left.dtype in SEPARATELY_ROUNDED:
            result = left.matmul(right)
            result = result if alpha == 1 else result * real(alpha, left.dtype.is_complex)
            if beta == 0:
                return result, 0 if _has_batch(dims[1:3]) else None
            return result + (addend if beta == 1 else addend * real(beta, left.dtype.is_complex)), 0
        return _as_one_batch(addend, left, right, dims, size, {"beta": beta, "alpha": alpha}), 0

    return rule


# What an element loses by a rounding between product, factor and sum is what the operator itself loses there.
SEPARATELY_ROUNDED = (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128)


def _as_one_batch(addend, left, right, dims, size: int, factors: dict):
    """All examples by one `baddbmm`: it rounds narrow floats once, and drops fractions of factors of integers."""
    left, right = (
        t if d is not None else t.expand(size, *t.shape) for t, d in zip((left, right), dims[1:3], strict=True)
    )
    shape = (*left.shape[:-1], right.shape[-1])
    count = prod(shape[:-2])
    flat = [t.reshape(count, *t.shape[-2:]) for t in (addend.expand(shape), left, right)]
    return baddbmm.function(*flat, **factors).reshape(shape)


def _has_batch(dims) -> bool:
    return any(d is not None for d in dims)


mm = contraction(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    lower=lower_mm,
    meta=shapes.mm,
    check_out=exact_out,
    kernel=rounded_product,
    plain=ProductCase("matmul"),
    vjp={
        "self": lambda g, mat2, self_info: mm_left_grad(g, mat2, self_info),
        "mat2": lambda g, self, mat2_info: mm_right_grad(g, self, mat2_info),
    },
    jvp={"self": lambda t, mat2: t.mm(mat2), "mat2": lambda t, self: self.mm(t)},
    vmap=_vmap_product,
    autocast_cpu="lower",
    autocast_cuda="lower",
    narrow=True,
    opaque="mixed",
    flops=product_flops,
)


addmm = contraction(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    lower=lower_addmm,
    meta=shapes.addmm,
    check_out=exact_out,
    inplace_words=shapes.bad_inplace,
    kernel=lambda xp, self, mat1, mat2, beta, alpha: _combine(xp, self, product(xp, mat1, mat2), beta, alpha),
    plain=ProductCase("addmm"),
    inplace=True,
    vjp={
        "self": lambda g, beta, self_shape: scaled(g.sum(0) if self_shape == g.shape[1:] else g, beta),
        "mat1": lambda g, mat2, mat1_info, alpha: scaled(mm_left_grad(g, mat2, mat1_info), alpha),
        "mat2": lambda g, mat1, mat2_info, alpha: scaled(mm_right_grad(g, mat1, mat2_info), alpha),
    },
    jvp={
        "self": lambda t, out, beta: scaled(t, beta).expand(out.shape),
        "mat1": lambda t, mat2, alpha: scaled(t.mm(mat2), alpha),
        "mat2": lambda t, mat1, alpha: scaled(mat1.mm(t), alpha),
    },
    vmap=_vmap_added(2),
    autocast_cpu="lower",
    autocast_cuda="lower",
    narrow=True,
    opaque="mixed",
    flops=added_product_flops,
)


# ---- batches of matrices
def _summed_product(xp, batch1, batch2):
    """The sum over a batch of matrix products, as one product of longer matrices."""
    b, n, m = batch1.shape
    return product(
        xp, batch1.transpose(1, 0, 2).reshape(n, b * m), batch2.reshape(b * m, -1 if batch2.size else batch2.shape[2])
    )


bmm = contraction(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    lower=lower_mm,
    meta=shapes.bmm,
    check_out=exact_out,
    kernel=rounded_product,
    narrow=True,
    plain=FunctionCase(shortcuts.bmm),
    vjp={
        "self": lambda g, mat2: g.bmm(conj(mat2.transpose(1, 2))),
        "mat2": lambda g, self: conj(self.transpose(1, 2)).bmm(g),
    },
    jvp={"self": lambda t, mat2: t.bmm(mat2), "mat2": lambda t, self: self.bmm(t)},
    vmap=_vmap_product,
    autocast_cpu="lower",
    autocast_cuda="lower",
    opaque="mixed",
    flops=product_flops,
)

baddbmm = contraction(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    lower=lower_addmm,
    meta=shapes.baddbmm,
    check_out=exact_out,
    inplace_words=shapes.bad_inplace,
    kernel=lambda xp, self, batch1, batch2, beta, alpha: _combine(xp, self, product(xp, batch1, batch2), beta, alpha),
    inplace=True,
    plain=FunctionCase(shortcuts.baddbmm),
    vjp={
        "self": lambda g, beta: scaled(g, beta),
        "batch1": lambda g, batch2, alpha: scaled(g.bmm(conj(batch2.transpose(1, 2))), alpha),
        "batch2": lambda g, batch1, alpha: scaled(conj(batch1.transpose(1, 2)).bmm(g), alpha),
    },
    vmap=_vmap_added(3),
    autocast_cpu="lower",
    autocast_cuda="lower",
    flops=added_product_flops,
)


def _spread(g, batch_shape):
    return g.unsqueeze(0).expand(batch_shape[0], *g.shape)


addbmm = contraction(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    meta=shapes.addbmm,
    kernel=lambda xp, self, batch1, batch2, beta, alpha: _combine(
        xp, self, _summed_product(xp, batch1, batch2), beta, alpha
    ),
    inplace=True,
    vjp={
        "self": lambda g, beta: scaled(g, beta),
        "batch1": lambda g, batch2, batch1_shape, alpha: scaled(
            _spread(g, batch1_shape).bmm(conj(batch2.transpose(1, 2))), alpha
        ),
        "batch2": lambda g, batch1, batch1_shape, alpha: scaled(
            conj(batch1.transpose(1, 2)).bmm(_spread(g, batch1_shape)), alpha
        ),
    },
    autocast_cpu="lower",
    autocast_cuda="lower",
)


# ---- a matrix and a vector
def _vmap_mv(args, dims, size):
    mat, vec = _batched(args[0], dims[0], 2), _batched(args[1], dims[1], 1)
    return mat.matmul(vec.unsqueeze(-1)).squeeze(-1), 0


mv = contraction(
    "mv(Tensor self, Tensor vec) -> Tensor",
    lower=lower_mv,
    meta=shapes.mv,
    check_out=exact_out,
    kernel=product,
    vjp={"self": lambda g, vec: g.outer(conj(vec)), "vec": lambda g, self: conj(self.t()).mv(g)},
    jvp={"self": lambda t, vec: t.mv(vec), "vec": lambda t, self: self.mv(t)},
    vmap=_vmap_mv,
    autocast_cuda="lower",
    flops=product_flops,
)

addmv = contraction(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    meta=shapes.addmv,
    check_out=exact_out,
    inplace_words=shapes.bad_inplace,
    kernel=lambda xp, self, mat, vec, beta, alpha: _combine(xp, self, product(xp, mat, vec), beta, alpha),
    inplace="function",
    vjp={
        "self": lambda g, beta: scaled(g, beta),
        "mat": lambda g, vec, alpha: scaled(g.outer(conj(vec)), alpha),
        "vec": lambda g, mat, alpha: scaled(conj(mat.t()).mv(g), alpha),
    },
    autocast_cuda="lower",
    flops=added_product_flops,
)


# ---- two vectors
def _vmap_dot(args, dims, size):
    x, y = _batched(args[0], dims[0], 1), _batched(args[1], dims[1], 1)
    return (x * y).sum(-1, dtype=x.dtype), 0


dot = contraction(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    lower=lower_mv,
    meta=shapes.dot,
    check_out=shapes.dot_out,
    kernel=lambda xp, x, y: xp.dot(x, y),
    vjp={"self": lambda g, tensor: g * conj(tensor), "tensor": lambda g, self: g * conj(self)},
    jvp={"self": lambda t, tensor: t.dot(tensor), "tensor": lambda t, self: self.dot(t)},
    vmap=_vmap_dot,
    autocast_cuda="widest",
)

vdot = contraction(
    "vdot(Tensor self, Tensor other) -> Tensor",
    meta=shapes.dot,
    check_out=shapes.dot_out,
    kernel=lambda xp, x, y: xp.vdot(x, y),
    vjp={"self": lambda g, other: conj(g) * other, "other": lambda g, self: g * self},
    vmap=lambda args, dims, size: _vmap_dot((conj(args[0]), args[1]), dims, size),
    autocast_cuda="widest",
)


# ---- built from these
def _matmul(self, other):
    shapes.require_tensors(matmul, (self, other))
    if (self._keys | other._keys) & NESTED:
        return above.nested_layer(matmul, (self, other))
    a, b = self.ndim, other.ndim
    if not a or not b:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a}D and {b}D")
    if a == 1 and b == 1:
        return self.dot(other)
    if a == 2 and b == 1:
        return self.mv(other)
    if a == 1 and b == 2:
        return unsafe_view(self.unsqueeze(0).mm(other), (other.shape[1],))  # no view: it may be written as any result
    if a == 2 and b == 2:
        return self.mm(other)
    if b <= 2 and (a > 2):
        return _folded(self, other)
    return _batched_matmul(self, other)


def _folded(self, other):
    """(..., n, m) times one matrix or vector: the leading dimensions become rows."""
    *lead, m = self.shape
    rows = self.reshape(-1, m) if m and self.numel() else self.reshape(_count(lead), m)
    if other.ndim == 1:
        return unsafe_view(rows.mv(other), tuple(lead))
    return unsafe_view(rows.mm(other), (*lead, other.shape[1]))


def _count(sizes) -> int:
    n = 1
    for s in sizes:
        n = n * s
    return n


def _batched_matmul(self, other):
    """Batches on both sides: they broadcast, and become one dimension for bmm."""
    vector_left, vector_right = self.ndim == 1, other.ndim == 1
    left = self.unsqueeze(0) if vector_left else self
    right = other.unsqueeze(-1) if vector_right else other
    lead = broadcast_shapes(left.shape[:-2], right.shape[:-2])
    (n, m), (k, p) = left.shape[-2:], right.shape[-2:]
    total = _count(lead)
    flat_left = left.expand(*lead, n, m).reshape(total, n, m)
    flat_right = right.expand(*lead, k, p).reshape(total, k, p)
    shape = (*lead, *(() if vector_left else (n,)), *(() if vector_right else (p,)))
    return unsafe_view(flat_left.bmm(flat_right), shape)


class UnsafeView(type(CONTRACTION)):  # type: ignore[misc]
    """Gives a fresh result another shape: the same memory, and no view, since nobody else holds the source."""

    def execute(self, op: Operator, args: tuple):
        t, size = args
        return wrap(t._array.reshape(op.meta_rule(t, size).shape), t.dtype, t.device)


export_operator(
    Operator(
        "_unsafe_view(Tensor self, SymInt[] size) -> Tensor",
        UnsafeView(),
        lower=lower_unsafe_view,
        meta=shapes.unsafe_view,
        function=False,
        method=False,
        vjp=lambda g, self_shape: g.reshape(self_shape),
        vmap=lambda args, dims, size: (args[0].movedim(dims[0], 0).reshape(size, *args[1]), 0),
        cost="cheap",
        opaque="mixed",
    )
)


matmul = export_operator(
    Operator(
        "matmul(Tensor self, Tensor other) -> Tensor",
        CONTRACTION,
        body=_matmul,
        plain=(ProductCase("matmul", recorded_as=mm), FunctionCase(shortcuts.matmul)),
        check_out=exact_out,
        autocast_cpu="lower",
        autocast_cuda="lower",
    )
)


def _linear(input, weight, bias=None):
    shapes.require_tensors(linear, (input, weight, bias))
    if input._keys & NESTED:
        return above.nested_layer(linear, (input, weight, bias))
    if not input.ndim or not weight.ndim:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {input.ndim}D and {weight.ndim}D"
        )
    transposed = weight.t()
    if bias is None:
        return input.matmul(transposed)
    if input.ndim == 2:
        return bias.addmm(input, transposed)
    if weight.ndim == 2 and bias.ndim <= 1:
        *lead, features = input.shape
        result = bias.addmm(input.reshape(_count(lead), features), transposed)
        return result.view((*lead, weight.shape[0]))
    return input.matmul(transposed) + bias


linear = export_operator(
    Operator(
        "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
        CONTRACTION,
        body=_linear,
        plain=FunctionCase(shortcuts.linear),
        public="nn.functional.linear",
        out=False,
        autocast_cpu="lower",
        autocast_cuda="lower",
    )
)


@composite(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="lower",
    autocast_cuda="lower",
)
def addmm_activation(self, mat1, mat2, beta, alpha, use_gelu):
    """A layer in one call: a product, a bias, and `relu` or `gelu`."""
    result = self.addmm(mat1, mat2, beta=beta, alpha=alpha)
    return exports["nn.functional"]["gelu"](result) if use_gelu else result.relu()


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    method=False,
    out=False,
    autocast_cpu="widest",
    autocast_cuda="widest",
)
def bilinear(input1, input2, weight, bias=None):
    if input1.ndim != input2.ndim:
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}")
    for d in range(input1.ndim - 1):
        if input1.shape[d] != input2.shape[d]:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {d}: got {input1.shape[d]} and "
                f"{input2.shape[d]}"
            )
    for i, t in ((1, input1), (2, input2)):
        if t.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {t.shape[-1]} but expected "
                f"{weight.shape[i]}"
            )
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        )
    lead = tuple(input1.shape[:-1])
    features, left, right = weight.shape
    rows = _count(lead)
    spread = weight.permute(1, 0, 2).reshape(left, features * right)
    with modes.masked(modes.AUTOCAST):  # it is one call
        inner = input1.reshape(rows, left).mm(spread).reshape(rows, features, right)
        result = inner.bmm(input2.reshape(rows, right, 1)).reshape(*lead, features)
    return result if bias is None else result + bias


export("nn.functional", "bilinear", bilinear.function)
