"""Recorded results of operators, computed again on a CUDA device: values, dtypes, shapes, gradients.

    python tests/cuda/vectors.py FOLDER [--jobs 14] [--json FILE] [--only NAME] [--device cuda] [--compile]

FOLDER has one .npz file for each operator: cases as JSON under "__cases__" and their arrays beside them. All tensors of a
case are moved to the device, and all results must be there. The last lines say how many operators agree in all of their
cases, and which were computed over the CPU since CuPy refused them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TOLERANCE = {
    "float64": (1e-7, 1e-9), "complex128": (1e-7, 1e-9), "float32": (2e-5, 1e-5), "complex64": (2e-5, 1e-5),
    "float16": (2e-3, 1e-3), "bfloat16": (2e-2, 1e-2),
}  # fmt: skip


class Case:
    """One call: what it is given, and what should come of it."""

    def __init__(self, torch, case: dict, arrays: dict, device: str):
        self.torch, self.arrays, self.device, self.case = torch, arrays, device, case
        self.args = [self.value(v) for v in case["args"]]
        self.kwargs = {k: self.value(v) for k, v in case["kwargs"].items()}

    def value(self, v):
        if isinstance(v, list):
            return [self.value(x) for x in v]
        if not isinstance(v, dict):
            return self.device if v == "cpu" else v
        kind, content = next((k, v[k]) for k in _KINDS if k in v)
        return _KINDS[kind](self, content, v)

    def tensor(self, name: str, v: dict):
        t = self.torch.from_numpy(np.array(self.arrays[name]))
        t = t.view(self.torch.bfloat16) if v["dt"] == "bfloat16" else t
        t = t.to(self.device)
        return t.requires_grad_(True) if v.get("rg") else t

    def run(self, function) -> str | None:
        """What is wrong, if anything."""
        with self.torch.device(self.device):
            out = list(tensors(self.torch, function(*self.args, **self.kwargs)))
        want = list(tensors(self.torch, self.value(self.case["out"])))
        if len(out) != len(want):
            return f"{len(out)} results, expected {len(want)}"
        for i, (g, w) in enumerate(zip(out, want, strict=True)):
            if said := self.compare(g, w, f"result {i}"):
                return said
        return self.run_backward(out) if "grads" in self.case else None

    def run_backward(self, out: list) -> str | None:
        torch = self.torch
        given = [t for t in tensors(torch, [self.args, list(self.kwargs.values())]) if t.requires_grad]
        outs = [t for t in out if t.requires_grad and (t.is_floating_point() or t.is_complex())]
        cotangents = [self.value(c) for c in self.case["ct"]]
        found = torch.autograd.grad(outs, given, cotangents, allow_unused=True)
        for i, (g, v) in enumerate(zip(found, self.case["grads"], strict=False)):
            w = None if v is None else self.value(v)
            if g is None or w is None:
                there = g if w is None else w
                if there is not None and np.any(host(there)):
                    return f"gradient {i}: {'missing' if g is None else 'unexpected'}"
            elif said := self.compare(g, w, f"gradient {i}"):
                return said
        return None

    def compare(self, got, want, what: str) -> str | None:
        if got.device.type != self.device:
            return f"{what}: on {got.device}"
        if tuple(got.shape) != tuple(want.shape) or got.dtype is not want.dtype:
            return f"{what}: {tuple(got.shape)} {got.dtype}, expected {tuple(want.shape)} {want.dtype}"
        relative, absolute = TOLERANCE.get(str(want.dtype).split(".")[-1], (0, 0))
        g, w = host(got), host(want)
        if np.allclose(g, w, relative, absolute, equal_nan=True) if relative else np.array_equal(g, w):
            return None
        distance = np.nanmax(np.abs(np.asarray(g, complex) - np.asarray(w, complex))) if g.size else 0
        return f"{what}: values differ by up to {distance:.3g}"


_KINDS = {
    "T": Case.tensor,
    "dtype": lambda c, x, v: getattr(c.torch, x),
    "device": lambda c, x, v: c.torch.device(c.device),
    "attr": lambda c, x, v: getattr(c.torch, x),
    "f": lambda c, x, v: float(x),
    "c": lambda c, x, v: complex(*x),
    "ellipsis": lambda c, x, v: ...,
    "slice": lambda c, x, v: slice(*map(c.value, x)),
    "tuple": lambda c, x, v: tuple(map(c.value, x)),
    "list": lambda c, x, v: [c.value(y) for y in x],
}


def tensors(torch, value) -> Iterator:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors(torch, v)


def host(t) -> np.ndarray:
    t = t.detach().cpu().resolve_conj().resolve_neg()
    return np.asarray((t.float() if str(t.dtype).endswith("bfloat16") else t).numpy())


def function_of(torch, spec: dict):
    if spec["kind"] == "method":
        return getattr(torch.Tensor, spec["name"])
    found = torch
    for part in spec["name"].split("."):
        found = getattr(found, part)
    return found


def check(job: tuple[str, str, bool, bool]) -> dict:
    """One operator, all cases."""
    path, device, fuse, compiled = job
    from pullback.compat.torch import install

    install()
    import torch

    torch.backends.cudnn.allow_tf32 = False
    if fuse:
        from pullback.ops.system import fused

        fused.FROM = 0
    data = np.load(path)
    spec = json.loads(bytes(data["__cases__"]))
    arrays = {k: data[k] for k in data.files if k != "__cases__"}
    wrong, refused, start = [], set(), time.time()
    function = function_of(torch, spec)
    for i, case in enumerate(spec["cases"]):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                called = torch.compile(function) if compiled else function
                error = Case(torch, case, arrays, device).run(called)
            except Exception as e:
                where = traceback.extract_tb(e.__traceback__)[-1]
                error = f"{type(e).__name__}: {e} ({Path(where.filename).name}:{where.lineno})"
        refused |= {str(w.message) for w in said if "computed on the CPU" in str(w.message)}
        if error:
            wrong.append(f"case {i}: {error[:300]}")
    label = spec["name"] + (f"[{spec['variant']}]" if spec["variant"] else "")
    return {
        "name": label, "cases": len(spec["cases"]), "wrong": wrong, "over_cpu": sorted(refused), "seconds": time.time() - start,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--json")
    parser.add_argument("--only")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--fuse", action="store_true", help="trace kernels for small arrays, too")
    parser.add_argument("--compile", action="store_true", help="each call by a graph of its own")
    options = parser.parse_args()
    paths = sorted(str(p) for p in Path(options.folder).glob("*.npz") if not options.only or options.only in p.name)
    with multiprocessing.get_context("spawn").Pool(options.jobs) as pool:
        rows = pool.map(check, [(p, options.device, options.fuse, options.compile) for p in paths], chunksize=4)
    if options.json:
        Path(options.json).write_text("\n".join(map(json.dumps, rows)))
    for row in rows:
        if row["wrong"]:
            print(f"{row['name']}: {len(row['wrong'])} of {row['cases']}; {row['wrong'][0]}")
    over = sorted({text.split(" was computed")[0] for row in rows for text in row["over_cpu"]})
    cases, wrong = sum(r["cases"] for r in rows), sum(len(r["wrong"]) for r in rows)
    print("over the CPU:", " ".join(over))
    print(f"{sum(not r['wrong'] for r in rows)} of {len(rows)} operators agree; {cases - wrong} of {cases} cases")


if __name__ == "__main__":
    main()
