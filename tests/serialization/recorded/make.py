"""Makes the files beside it, with PyTorch itself: `python make.py` where torch 2.13 is installed."""

import pickle
from collections import OrderedDict
from pathlib import Path

import torch
from torch import nn

HERE = Path(__file__).parent
DTYPES = (
    "bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu"
).split()


def tensors() -> dict:
    torch.manual_seed(0)
    base = torch.arange(12.0).view(3, 4)
    with_state = nn.Parameter(torch.ones(2))
    with_state.tag = "mine"
    attribute = torch.ones(2)
    attribute.note = 7
    return {
        "dtypes": {d: torch.tensor([0, 1, 2]).to(getattr(torch, d)) for d in DTYPES},
        "base": base, "transposed": base.t(), "row": base[1], "strided": base[:, ::2],
        "empty": torch.empty(0, 3), "scalar": torch.tensor(2.5), "grad": torch.ones(2, requires_grad=True),
        "conj": torch.tensor([1 + 2j]).conj(), "neg": torch.tensor([1 + 2j]).conj().imag,
        "parameter": nn.Parameter(torch.ones(2)), "frozen": nn.Parameter(torch.ones(2), False),
        "with_state": with_state, "attribute": attribute, "meta": torch.empty(2, 3, device="meta"),
        "coo": torch.eye(3).to_sparse(), "csr": torch.eye(3).to_sparse_csr(), "csc": torch.eye(3).to_sparse_csc(),
        "bsr": torch.eye(4).to_sparse_bsr((2, 2)),
        "size": torch.Size([2, 3]), "dtype": torch.bfloat16, "device": torch.device("cuda", 1), "layout": torch.sparse_csr,
        "ordered": OrderedDict(a=1), "plain": [1, -5, 1 << 70, 2.5, None, True, "x", b"ab", {1, 2}, 1j, (1, 2, 3, 4)],
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
    }  # fmt: skip


def training() -> dict:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.arange(15.0).view(5, 3) / 10
    for _ in range(3):
        opt.zero_grad()
        model(x).square().sum().backward()
        opt.step()
    model.eval()
    return {"model": model, "state": model.state_dict(), "opt": opt.state_dict(), "x": x, "y": model(x).detach()}


def main() -> None:
    result = tensors()
    torch.save(result, HERE / "tensors.pt")
    torch.save({k: result[k] for k in ("base", "transposed", "row", "parameter")}, HERE / "stream.pt",
               _use_new_zipfile_serialization=False)  # fmt: skip
    trained = training()
    torch.save(trained.pop("model"), HERE / "module.pt")
    torch.save(trained, HERE / "training.pt")
    encoder = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    x = torch.ones(1, 3, 4)
    torch.save({"model": encoder, "x": x, "y": encoder(x).detach()}, HERE / "encoder.pt")
    (HERE / "plain.pickle").write_bytes(pickle.dumps(torch.arange(3.0)))


if __name__ == "__main__":
    main()
