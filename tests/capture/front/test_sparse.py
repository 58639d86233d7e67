"""Compiled functions of sparse tensors give what eager ones give, whatever the number of elements of each call."""

from __future__ import annotations

import warnings

import pytest

import pullback as torch

PROGRAMS = {
    "values": lambda x: x._values() * 2,
    "number of elements": lambda x: torch.ones(x._nnz()),
    "coalesced": lambda x: x.coalesce().values() + 1,
    "indices": lambda x: x._indices() + 1,
    "dense": lambda x: x.to_dense() * 2,
    "product": lambda x: torch.sparse.mm(x, torch.ones(3, 2)) + 1,
    "sum": lambda x: (x + x).to_dense(),
    "scaled": lambda x: x * 2,
    "there and back": lambda x: (x.to_dense() * 2).to_sparse()._values() + 1,
    "made inside": lambda x: torch.sparse_coo_tensor(x._indices(), x._values() * 3, (3, 3)).to_dense(),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sparse_tensors_with_other_numbers_of_elements(name, backend):
    program = PROGRAMS[name]
    compiled = torch.compile(program, backend=backend)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # that it runs uncompiled
        for x in (torch.eye(3).to_sparse(), torch.ones(3, 3).to_sparse(), torch.zeros(3, 3).to_sparse()):
            found, wanted = compiled(x), program(x)
            assert found.layout is wanted.layout
            assert torch.equal(found.to_dense(), wanted.to_dense())


def test_writes_to_parts_reach_the_whole():
    def program(x):
        x._values().mul_(2)
        return x._values().sum()

    x = torch.eye(3).to_sparse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        total = torch.compile(program)(x)
    assert total == 6 and x.to_dense().sum() == 6
