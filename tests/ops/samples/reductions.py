"""Samples of reductions, scans, sorts and softmax: shapes and dims from the schema, further ones by name."""

from __future__ import annotations

import pullback as torch
from pullback.ops.system.operator import Operator

from .make import Make, call

DISTINCT = {
    "amax", "amin", "max", "min", "argmax", "argmin", "median", "nanmedian", "cummax", "cummin", "sort", "argsort",
    "topk", "kthvalue", "mode", "aminmax", "msort", "quantile", "nanquantile", "hash_tensor",
}  # fmt: skip
EMPTY_RAISES = {
    "amax", "amin", "max", "min", "argmax", "argmin", "median", "nanmedian", "kthvalue", "mode", "aminmax", "topk",
}  # fmt: skip
NO_LISTS = {"hash_tensor"}


def reduction_samples(op: Operator, make: Make) -> list:
    """Every way to say which dimensions go."""
    names = op.schema.index
    data = make.distinct if op.name in DISTINCT else make
    empty = (
        []
        if op.name in EMPTY_RAISES
        else [call(make(0, 3), *(((1,) if _is_list(op) else 1,) if "dim" in names else ()))]
    )
    if "dim" not in names:
        return [call(data(2, 3)), call(data()), call(data(2, 1, 3)), *empty]
    dims = [0, -1] + ([(0, 2), (-1, 0), (1,)] if _is_list(op) else [])
    dims += [None] if op.schema.arguments[names["dim"]].optional else []
    calls = [call(data(2, 3, 4), dim=(d,) if _is_list(op) and isinstance(d, int) else d) for d in dims]
    if "keepdim" in names:
        calls += [
            call(data(2, 3, 4), dim=(d,) if _is_list(op) and isinstance(d, int) else d, keepdim=True) for d in dims[1:3]
        ]
    if "correction" in names:
        calls += [call(data(2, 3), dim=(1,), correction=c) for c in (0, 2, 0.5)]
    return calls + [call(data(), dim=(0,) if _is_list(op) else 0)] * (op.name not in ("var", "std")) + empty


def _is_list(op: Operator) -> bool:
    return op.schema.arguments[op.schema.index["dim"]].is_list


def along_samples(op: Operator, make: Make) -> list:
    """Scans, sorts, softmax: first, middle and last dimension, 0-d tensors, none of a kind."""
    data = make.distinct if op.name in DISTINCT else make
    extra = {"k": 1} if "k" in op.schema.index else {}
    extra |= {"stable": True} if "stable" in op.schema.index else {}
    extra |= {"half_to_float": False} if "half_to_float" in op.schema.index else {}
    calls = [call(data(2, 3, 4), dim=d, **extra) for d in (0, 1, -1)] + [call(data(), dim=0, **extra)]
    if "keepdim" in op.schema.index:
        calls.append(call(data(2, 3, 4), dim=1, keepdim=True, **extra))
    if "descending" in op.schema.index:
        calls.append(call(data(3, 4), dim=1, descending=True, **extra))
    if op.name in ("topk", "kthvalue"):
        calls += [call(data(3, 5), 3, dim=1), call(data(3, 5), 2, dim=0)]
    if op.name == "topk":
        calls.append(call(data(3, 5), 2, largest=False))
    if op.name in ("topk", "kthvalue", "mode"):  # as many elements as native code takes
        calls.append(call(make.ints(50, 3, 700), dim=1, **extra))
    if op.name == "cumprod":
        calls.append(call(_with_zeros(make(3, 4)), dim=1))
    if op.name not in EMPTY_RAISES:
        calls.append(call(make(0, 3), dim=1, **extra))
    return calls


def _with_zeros(t):
    t = t.clone()
    t[0, 1] = 0
    t[1, 0] = t[1, 2] = 0
    return t


def scan_of(dims=(0, -1)):
    return lambda m: [call(m(2, 3, 4), d) for d in dims]


SAMPLES = {
    "aminmax": lambda m: [call(m.distinct(2, 3)), call(m.distinct(2, 3), dim=1), call(m.distinct(2, 3, 4), dim=0, keepdim=True), call(m.distinct(), dim=0)],
    **dict.fromkeys(("_is_all_true", "_is_any_true"), lambda m: [call(m.ints(3, 2, 3) > 0), call(m.ints(3) > 9)]),
    "prod": lambda m: [call(m(2, 3)), call(m()), call(_with_zeros(m(3, 4))), call(m(0, 2))],
    "prod.dim_int": lambda m: [call(m(2, 3, 4), 1), call(m(2, 3), 0, keepdim=True), call(_with_zeros(m(3, 4)), 1), call(_with_zeros(m(3, 4)), 0), call(m(0, 2), 0), call(m(), 0)],
    "logsumexp": lambda m: [call(m(2, 3, 4), d) for d in ((0,), (-1,), (0, 2), (0, 1, 2))] + [call(m(2, 3), (1,), keepdim=True), call(m(), (0,))],
    "count_nonzero": lambda m: [call(m(2, 3)), call(m(2, 3), 1), call(m())],
    "nanmean": lambda m: [call(m(2, 3)), call(m(2, 3), (1,)), call(m(2, 3), (0,), keepdim=True)],
    **{f"{n}.dim": lambda m: [call(m(2, 3, 4), (1,)), call(m(2, 3), (0, 1), False), call(m(2, 3), (0,), True, True)] for n in ("var", "std", "var_mean", "std_mean")},
    **dict.fromkeys(("var", "std", "var_mean", "std_mean"), lambda m: [call(m(2, 3)), call(m(5), False)]),
    **{f"{n}.correction": lambda m: [call(m(2, 3, 4)), call(m(2, 3, 4), (1,)), call(m(2, 3), (0,), correction=0, keepdim=True), call(m(2, 3), (0, 1), correction=0.5)] for n in ("var_mean", "std_mean")},
    "value_selecting_reduction_backward": lambda m: [call(m(2), 1, m.ints(3, 2), (2, 3), False), call(m(2, 1), 1, m.ints(3, 2, 1), (2, 3), True)],
    "cumprod_backward": lambda m: [call(m(2, 3), x := m.positive(2, 3), 1, x.cumprod(1))],
    "cummaxmin_backward": lambda m: [call(m(2, 3), m(2, 3), m.ints(3, 2, 3), 1)],
    "_affine_scan": lambda m: [call(m(2, 3), m(2, 3), 1), call(m(4, 3), m(4, 3), 0)],
    "diff": lambda m: [call(m(2, 4)), call(m(4, 2), 2, 0), call(m(2, 3), 1, -1, m(2, 1), m(2, 2))],
    **dict.fromkeys(("trapezoid.x", "trapz.x", "cumulative_trapezoid.x"), lambda m: [call(m(2, 4), m(2, 4)), call(m(4, 2), m(4), dim=0)]),
    **dict.fromkeys(("trapezoid.dx", "trapz.dx", "cumulative_trapezoid.dx"), lambda m: [call(m(2, 4)), call(m(4, 2), dx=0.5, dim=0)]),
    "msort": lambda m: [call(m.distinct(4, 3))],
    **dict.fromkeys(("quantile", "nanquantile"), lambda m: [call(m.distinct(4, 3), m.real(2, low=0.1, high=0.9)), call(m.distinct(4, 3), m.real(2, low=0.1, high=0.9), 1), call(m.distinct(4, 3), m.real(low=0.1, high=0.9), 0, True)]),
    **dict.fromkeys(("quantile.scalar", "nanquantile.scalar"), lambda m: [call(m.distinct(4, 3), 0.3), call(m.distinct(4, 3), 0.6, 1), *(call(m.distinct(4, 3), 0.3, 0, True, interpolation=i) for i in ("lower", "higher", "midpoint", "nearest"))]),
    "searchsorted.Tensor": lambda m: [call(m.sorted(2, 5), m.real(2, 3)), call(m.sorted(5), m.real(2, 3), right=True)],
    "searchsorted.Scalar": lambda m: [call(m.sorted(5), 0.3)],
    "bucketize.Tensor": lambda m: [call(m.real(2, 3), m.sorted(4)), call(m.real(2, 3), m.sorted(4), right=True, out_int32=True)],
    "bucketize.Scalar": lambda m: [call(0.3, m.sorted(4))],
    "isin.Tensor_Tensor": lambda m: [call(m.ints(5, 2, 3), m.ints(5, 2)), call(m.ints(5, 2, 3), m.ints(5, 2), invert=True)],
    "isin.Tensor_Scalar": lambda m: [call(m.ints(3, 2, 3), 1)],
    "isin.Scalar_Tensor": lambda m: [call(1, m.ints(3, 2, 3))],
    "histc": lambda m: [call(m.real(9), 4, -2, 2)],
    "bincount": lambda m: [call(m.ints(4, 6), minlength=5)],
    "_histogramdd_from_bin_tensors": lambda m: [call(m.real(6, 2), (torch.linspace(-2, 2, 4, dtype=torch.float64), torch.linspace(-2, 2, 3, dtype=torch.float64)))],
    "_histogramdd_bin_edges": lambda m: [call(m.real(6, 2), (3, 2), range=(-2.0, 2.0, -2.0, 2.0))],
    "_histogramdd_from_bin_cts": lambda m: [call(m.real(6, 2), (3, 2), range=(-2.0, 2.0, -2.0, 2.0))],
    "histogram.bins_tensor": lambda m: [call(m.real(8), torch.linspace(-2, 2, 5, dtype=torch.float64)), call(m.real(8), torch.linspace(-2, 2, 5, dtype=torch.float64), density=True)],
    "histogram.bin_ct": lambda m: [call(m.real(8), 4, range=(-2.0, 2.0))],
    "segment_reduce": lambda m: [call(m.distinct(5, 2), r, lengths=torch.tensor([2, 3]), unsafe=True) for r in ("sum", "mean", "max", "min", "prod")] + [call(m.distinct(5, 2, 3), "sum", lengths=torch.tensor([2, 3]), unsafe=True), call(m.distinct(5, 2), "sum", offsets=torch.tensor([0, 2, 5]), unsafe=True)],
    "_segment_reduce_backward": lambda m: [call(m.real(2, 2), m.real(2, 2), m.distinct(5, 2), "sum", lengths=torch.tensor([2, 3]))],
    "cov": lambda m: [call(m(3, 5)), call(m(3, 5), correction=0), call(m(5)), call(m(3, 4), fweights=torch.tensor([1, 2, 1, 3]), aweights=torch.tensor([0.5, 1.0, 2.0, 1.5], dtype=torch.float64))],
    "corrcoef": lambda m: [call(m(3, 5)), call(m(5))],
    "_softmax_backward_data": lambda m: [call(m.real(2, 3), torch.softmax(m.real(2, 3), 1), d, torch.float64) for d in (1, -2)],
    "_log_softmax_backward_data": lambda m: [call(m.real(2, 3), torch.log_softmax(m.real(2, 3), 1), 1, torch.float64)],
    "_masked_softmax": lambda m: [call(m.real(2, 3), torch.tensor([[True, False, False], [False, True, False]]), 1, 2)],
    **dict.fromkeys(("softmax.int", "log_softmax.int"), lambda m: [call(m.real(2, 3), 1), call(m.real(2, 3, 4), 0), call(m.real(2, 3).float(), 1, torch.float64), call(m.real(), 0)]),
    **dict.fromkeys(("max.other", "min.other"), lambda m: [call(m.real(2, 3), m.real(2, 3)), call(m.real(2, 3), m.real(3))]),
}  # fmt: skip
