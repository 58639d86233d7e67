"""The parts of sparse tensors as operators: `ops.aten.crow_indices`, `ops.aten._nnz` and their kin, which are methods otherwise."""

from __future__ import annotations

from ...family.base import composite


def _part(name: str):
    def get(self):
        return getattr(self, name)()

    return composite(f"{name}(Tensor(a) self) -> Tensor(a)", function=False, method=False)(get)


crow_indices, col_indices, ccol_indices, row_indices = (
    _part(name) for name in ("crow_indices", "col_indices", "ccol_indices", "row_indices")
)


@composite("_nnz(Tensor self) -> int", function=False, method=False)
def nnz(self):
    return self._nnz()
