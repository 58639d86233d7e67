"""Samples of views, of what rearranges, joins, splits and indexes."""

from __future__ import annotations

import pullback as torch

from .make import Make, call

COPIED = (
    "alias", "as_strided", "diagonal", "expand", "permute", "_reshape_alias", "select.int", "slice.Tensor",
    "split.Tensor", "split_with_sizes", "t", "transpose.int", "unbind.int", "unfold", "unsqueeze", "view_as_complex",
    "view_as_real", "detach", "view", "view.dtype", "squeeze", "squeeze.dim", "squeeze.dims",
)  # fmt: skip


def indices_of(m: Make) -> list[tuple]:
    """Index tuples for a (3, 4, 2) tensor."""
    return [
        (m.ints(3, 5),), (None, m.ints(4, 2, 3)), (m.ints(3, 2), m.ints(4, 2)), (m.ints(3, 2, 1), None, m.ints(2, 3)),
        (m.mask(3, 4),), (m.ints(3, low=-3),),
    ]  # fmt: skip


def _views(m: Make) -> dict:
    return {
        "alias": [call(m(2, 3))],
        "view": [call(m(2, 6), (3, 4)), call(m(2, 6), (-1,)), call(m(), (1, 1)), call(m(0, 3), (3, 0)), call(m(2, 6), (2, 3, 2))],
        "_reshape_alias": [call(m(2, 6), (3, 4), (4, 1))],
        "expand": [call(m(2, 1), (2, 3)), call(m(3), (2, -1)), call(m(), (2, 2))],
        "transpose.int": [call(m(2, 3, 4), 0, -1), call(m(2, 3), 1, 0), call(m(), 0, 0)],
        "t": [call(m(2, 3)), call(m(3)), call(m())],
        "permute": [call(m(2, 3, 4), (2, 0, 1)), call(m(2, 3), (-1, 0)), call(m(), ())],
        "squeeze": [call(m(2, 1, 3)), call(m(1, 1)), call(m(2, 3))],
        "squeeze.dim": [call(m(2, 1, 3), 1), call(m(2, 1, 3), 0), call(m(), 0)],
        "squeeze.dims": [call(m(2, 1, 1), (1, 2)), call(m(2, 1, 3), (0, -2))],
        "unsqueeze": [call(m(2, 3), 0), call(m(2, 3), -1), call(m(), 0)],
        "select.int": [call(m(2, 3, 4), 1, 2), call(m(2, 3), -1, -1)],
        "slice.Tensor": [call(m(5, 3), 0, 1, 4), call(m(5, 3), 0, None, None, 2), call(m(2, 5), -1, -3, 100), call(m(5), 0, 4, 1)],
        "diagonal": [call(m(3, 4)), call(m(3, 4), 1), call(m(3, 4), -1), call(m(2, 3, 4), 0, 0, 2), call(m(2, 3, 4), 1, -1, 1)],
        "unfold": [call(m(6), 0, 3, 2), call(m(2, 5), 1, 2, 1), call(m(4, 2), 0, 3, 1), call(m(), 0, 1, 1)],
        "split.Tensor": [call(m(5, 2), 2), call(m(2, 4), 2, 1), call(m(2, 3), 5, -1)],
        "split_with_sizes": [call(m(5, 2), (2, 3)), call(m(2, 4), (1, 0, 3), 1)],
        "unbind.int": [call(m(2, 3)), call(m(2, 3), -1)],
        "as_strided": [call(m(3, 4), (2, 2), (4, 1)), call(m(3, 4), (2, 3), (1, 1), 2), call(m(6), (3, 3), (1, 1))],
        "_unsafe_view": [call(m(2, 6), (3, 4))],
        "view_as_real": [call(torch.complex(m.real(2, 3), m.real(2, 3)))],
        "view_as_complex": [call(m.real(2, 3, 2)), call(m.real(2))],
        "view.dtype": [call(m.real(2, 4), torch.float32), call(m.real(2, 4), torch.int64), call(m.real(), torch.int64)],
        "_conj": [call(m(2, 3))], "_neg_view": [call(m(2, 3))],
        "detach": [call(m(2, 3))],
        "reshape": [call(m(2, 6), (3, 4)), call(m(2, 6).t(), (3, 4)), call(m(), (1,)), call(m(0, 3), (0,))],
        "flatten.using_ints": [call(m(2, 3, 4)), call(m(2, 3, 4), 1), call(m(2, 3, 4), 0, 1), call(m())],
        "view_as": [call(m(2, 6), m(3, 4))], "reshape_as": [call(m(2, 6), m(3, 4))],
        "expand_as": [call(m(1, 3), m(2, 3))], "broadcast_to": [call(m(1, 3), (2, 3))], "ravel": [call(m(2, 3)), call(m())],
        "unflatten.int": [call(m(2, 6), 1, (2, 3)), call(m(6, 2), 0, (-1, 3))],
        "swapaxes": [call(m(2, 3), 0, 1)], "swapdims": [call(m(2, 3), 0, 1)], "adjoint": [call(m(2, 3)), call(m(2, 3, 4))],
        "narrow": [call(m(5, 2), 0, 1, 3)], "narrow_copy": [call(m(5, 2), 0, 1, 3)],
        "chunk": [call(m(5, 2), 3), call(m(2, 4), 2, 1)],
        "linalg_diagonal": [call(m(2, 3, 4)), call(m(3, 4), offset=1)],
        "positive": [call(m(2, 3))], "conj": [call(m(2, 3))], "resolve_conj": [call(m(2, 3))], "resolve_neg": [call(m(2, 3))],
        "conj_physical": [call(m(2, 3))],
        "slice_inverse": [call(m(4, 2), m(2, 2), 0, 1, 3)],
    }  # fmt: skip


def _copies(m: Make) -> dict:
    """The `_copy` forms take what their views take."""
    views = _views(m)
    renamed = {n: n.replace(".", "_copy.", 1) if "." in n else f"{n}_copy" for n in views}
    return {renamed[n]: views[n] for n in COPIED}


def _arranging(m: Make) -> dict:
    return {
        "to.dtype": [call(m(2, 3), torch.float64), call(m(2, 3), torch.complex128)],
        "to.device": [call(m(2, 3), "cpu", torch.float64, False, True)], "to.other": [call(m(2, 3), torch.ones(1, dtype=torch.float64))],
        "to.dtype_layout": [call(m(2, 3), dtype=torch.complex128)], "contiguous": [call(m(2, 3)), call(m(2, 3).t())],
        "clone": [call(m(2, 3)), call(m())], "_to_copy": [call(m(2, 3)), call(m(2, 3), dtype=torch.complex128)],
        "slice_backward": [call(m(3, 2), (5, 2), 0, 1, 4, 1), call(m(2, 2), (2, 5), 1, 0, 4, 2)],
        "select_backward": [call(m(2, 4), (2, 3, 4), 1, 2)],
        "diagonal_backward": [call(m(3), (3, 4), 0, 0, 1), call(m(2, 2), (2, 3, 2), 0, 1, 2)],
        "unfold_backward": [call(m(2, 3), (6,), 0, 3, 2), call(m(2, 4, 2), (2, 5), 1, 2, 1)],
        "_as_strided_read": [call(m(3, 4), (3, 4), (4, 1), 0, (2, 2), (4, 1), 1), call(m(3, 4), (3, 4), (4, 1), 0, (3, 3), (1, 1), 0)],
        "_as_strided_backward": [call(m(2, 2), (3, 4), (4, 1), 0, (2, 2), (4, 1), 1), call(m(3, 3), (3, 4), (4, 1), 0, (3, 3), (1, 1), 0)],
        "_as_strided_write": [call(m(3, 4), m(2, 2), (3, 4), (4, 1), 0, (2, 2), (4, 1), 1)],
        "copy": [call(m(2, 3), m(2, 3)), call(m(2, 3), m(3))],
        "fill.Scalar": [call(m(2, 3), 1.5)], "fill.Tensor": [call(m(2, 3), m())], "zero": [call(m(2, 3))],
        "sum_to_size": [call(m(2, 3), (1, 3)), call(m(2, 3, 4), (3, 1)), call(m(2, 3), ())],
        "_block_diag": [call((m(2, 3), m(1, 2))), call((m(2, 2),)), call((m(0, 2), m(2, 1), m(1, 0)))],
        "cat": [call((m(2, 3), m(1, 3))), call((m(2, 3), m(2, 2)), 1), call((m(2), m(0), m(3)), -1), call((m(2, 3),)), call((m(0), m(2, 3)), 0)],
        "stack": [call((m(2, 3), m(2, 3))), call((m(2, 3), m(2, 3), m(2, 3)), 1), call((m(), m()), -1)],
        **{n: [call((m(2, 3), m(2, 3))), call((m(2), m(2)))] for n in ("hstack", "vstack", "dstack", "column_stack")},
        "combinations": [call(m(4)), call(m(3), 2, True), call(m(4), 3)],
        "unsafe_split.Tensor": [call(m(5, 2), 2)], "unsafe_split_with_sizes": [call(m(5, 2), (2, 3))], "unsafe_chunk": [call(m(5, 2), 2)],
        "_chunk_cat": [call((m(4, 3), m(2, 3)), 0, 2)],
        "select_scatter": [call(m(2, 3), m(2), 1, 1), call(m(2, 3), m(3), 0, -1), call(m(2, 3), m(3), -2, 0)],
        "slice_scatter": [call(m(5, 2), m(3, 2), 0, 1, 4), call(m(5), m(3), 0, None, None, 2)],
        "diagonal_scatter": [call(m(3, 4), m(3)), call(m(3, 4), m(3), 1), call(m(2, 3, 3), m(2, 3), 0, 1, 2)],
        "as_strided_scatter": [call(m(3, 4), m(2, 2), (2, 2), (4, 1), 1)],
        "flip": [call(m(2, 3), (0,)), call(m(2, 3), (0, -1)), call(m(), ())], "fliplr": [call(m(2, 3))], "flipud": [call(m(2, 3))],
        "roll": [call(m(2, 3), (1,)), call(m(2, 3), (1, -2), (0, 1)), call(m(4), (5,), (0,)), call(m(2, 3), (1,), (-1,)), call(m(), (1,))],
        "repeat": [call(m(2, 3), (2, 1)), call(m(3), (2, 2)), call(m(), (3,))], "tile": [call(m(2, 3), (2,)), call(m(2), (2, 2))],
        "repeat_interleave.Tensor": [call(torch.tensor([1, 0, 2]), output_size=3)],
        "tril": [call(m(3, 4)), call(m(2, 3, 3), 1), call(m(3, 3), -1)], "triu": [call(m(3, 4)), call(m(2, 3, 3), 1), call(m(3, 3), -1)],
        "rot90": [call(m(2, 3)), call(m(2, 3), 2), call(m(2, 3, 4), -1, (0, 2))],
        "diag": [call(m(3)), call(m(3, 4)), call(m(3), 1), call(m(3, 4), -1)], "diagflat": [call(m(2, 2)), call(m(3), 1)],
        "diag_embed": [call(m(2, 3)), call(m(3), 1), call(m(2, 3), -1, 0, 2)],
        "vander": [call(m(3)), call(m(3), 4, True)],
        "nonzero_static": [call(m.mask(3, 4), size=4)],
    }  # fmt: skip


def _indexing(m: Make) -> dict:
    x = lambda: m(3, 4, 2)
    found = {"index.Tensor": [call(x(), i) for i in indices_of(m)] + [call(x(), (m.ints(3, 0),))]}
    shapes = [torch.zeros(3, 4, 2)[tuple(slice(None) if v is None else v for v in i)].shape for i in indices_of(m)]
    found["index_put"] = [call(x(), i, m(*s), True) for i, s in zip(indices_of(m), shapes, strict=True)]
    found["index_put"] += [
        call(x(), (m.order(3)[:2], m.order(4)[:2]), m(2, 2)),
        call(x(), (m.mask(3, 4),), m()),
        call(x(), (None, m.order(4)), m(2)),
        call(x(), (m.order(3)[:2], m.order(4)[:2]), m(1, 2, 2)),
    ]
    for source, name in (("index.Tensor", "_unsafe_index.Tensor"), ("index_put", "_unsafe_index_put")):
        found[name] = found[source][:3]
    reduces = ("sum", "prod", "mean", "amax", "amin")
    some, ten = (lambda: m.ints(3, 2, 4)), (lambda: m(3, 4))
    return found | {
        "_unsafe_masked_index": [call(ten(), m.mask(5), (m.ints(3, 5), m.ints(4, 5)), 0.5)],
        "_unsafe_masked_index_put_accumulate": [call(ten(), m.mask(5), (m.ints(3, 5), m.ints(4, 5)), m(5))],
        "gather": [call(ten(), 0, some()), call(ten(), 1, m.ints(4, 3, 2)), call(m(), 0, m.ints(1)), call(ten(), 0, m.ints(3, 0, 4))],
        "scatter.src": [call(ten(), 1, torch.stack([m.order(4)[:2] for _ in range(3)]), m(3, 2)), call(m(4), 0, m.order(4)[:2], m(3))],
        "scatter.value": [call(ten(), 0, some(), 1.5)], "scatter_add": [call(ten(), 0, some(), m(2, 4)), call(ten(), 1, m.ints(4, 2, 3), m(3, 4))],
        "scatter_reduce.two": [call(ten(), 0, some(), m(2, 4), r, include_self=s) for r in reduces for s in (True, False)],
        "scatter.reduce": [call(ten(), 0, some(), m(2, 4), reduce=r) for r in ("add", "multiply")],
        "scatter.value_reduce": [call(ten(), 0, some(), 1.5, reduce=r) for r in ("add", "multiply")],
        "index_select": [call(ten(), 0, m.ints(3, 4)), call(ten(), -1, m.ints(4, 2)), call(m(), 0, m.ints(1, 1))],
        "index_add": [call(ten(), 0, m.ints(3, 5), m(5, 4), alpha=2), call(ten(), 1, m.ints(4, 2), m(3, 2)), call(ten(), -2, m.ints(3, 2), m(2, 4))],
        "index_copy": [call(ten(), 0, m.order(3)[:2], m(2, 4)), call(ten(), 1, m.order(4), m(3, 4))],
        "index_fill.int_Scalar": [call(ten(), 0, m.ints(3, 2), 1.5)], "index_fill.int_Tensor": [call(ten(), 1, m.ints(4, 2), m())],
        "index_reduce": [call(ten(), 0, m.ints(3, 5), m(5, 4), r, include_self=s) for r in ("prod", "mean", "amax", "amin") for s in (True, False)],
        "take": [call(ten(), m.ints(12, 2, 2)), call(ten(), m.ints(0, 3, low=-12))], "put": [call(ten(), m.order(12)[:3], m(3)), call(ten(), m.ints(12, 5), m(5), True)],
        "masked_select": [call(ten(), m.mask(3, 4)), call(ten(), torch.tensor([True, False, True, False]))],
        "masked_scatter": [call(ten(), m.mask(3, 4), m(8)), call(ten(), torch.tensor([True, False, True, False]), m(12))],
        "embedding": [call(m(5, 2), m.ints(5, 2, 3)), call(m(5, 2), m.ints(5, 4), 1)],
        "embedding_dense_backward": [call(m(2, 3, 2), m.ints(5, 2, 3), 5, -1, False), call(m(6, 2), m.ints(5, 6), 5, 1, True), call(m(6, 2), m.ints(5, 6), 5, 1, False)],
        "_embedding_bag": [
            call(m(5, 2), m.ints(5, 6), torch.tensor(at), mode=k) for k in (0, 1, 2) for at in ([0, 2, 3], [0, 2, 2])
        ]
        + [call(m(5, 2), m.ints(5, 6), torch.tensor([0, 2, 2]), per_sample_weights=m(6)), call(m(5, 2), m.ints(5, 6), torch.tensor([0, 2, 6]), mode=1, include_last_offset=True, padding_idx=1), call(m(5, 2), torch.tensor([1, 2, 1, 3, 4, 0]), torch.tensor([0, 2, 4]), per_sample_weights=m(6), padding_idx=1)],
    }  # fmt: skip


def table(m: Make) -> dict:
    return _views(m) | _copies(m) | _arranging(m) | _indexing(m)
