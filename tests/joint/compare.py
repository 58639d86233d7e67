"""What a program does, run in two forms, and where the forms differ.

`functional(program, mode)` compares values and gradients of a program with those of its functionalized graph.
`observe(program, prepare)` runs a program in some form and says all that can be seen of it from outside: results,
arguments and what they share memory with, gradients; `differences` compares two such observations.
"""

from __future__ import annotations

import collections
import random
import warnings
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

import pullback as torch
from pullback.capture.trace.make_fx import make_fx
from pullback.joint.functionalize import Functionalization

from .programs import Program

TOLERANCE = {
    np.dtype(np.float64): 1e-6,
    np.dtype(np.float32): 1e-3,
    np.dtype(np.complex64): 1e-3,
    np.dtype(np.complex128): 1e-6,
}


def array(t) -> np.ndarray:
    return t.detach().resolve_conj().resolve_neg().numpy().copy()


def same_values(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    tolerance = TOLERANCE.get(a.dtype)
    if tolerance is None:
        return bool((a == b).all())
    with np.errstate(all="ignore"):
        return np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def cotangents(heads: list, seed: int) -> list:
    torch.manual_seed(seed + 2)
    return [torch.randn(tuple(h.shape), dtype=h.dtype) for h in heads]


def is_differentiable(t) -> bool:
    return isinstance(t, torch.Tensor) and t.requires_grad and not t.is_leaf


def is_wanted(t) -> bool:
    return isinstance(t, torch.Tensor) and t.requires_grad


# ---- functionalized graphs
def joint(program: Program, whole: Callable, context: Callable) -> Callable:
    """A function of a program's roots that gives its results, what its roots hold afterwards, and gradients."""

    def run(*roots):
        torch.manual_seed(program.seed + 1)
        with context() as mode:
            wanted = [r.detach().requires_grad_() if is_differentiable(r) else r for r in roots]
            taken = [w.clone() if is_differentiable(r) else w for w, r in zip(wanted, roots, strict=True)]
            results, arguments = whole(*taken)
            tensors = [r for r in results if isinstance(r, torch.Tensor)]
            heads = list({id(t): t for t in (*tensors, *arguments) if is_differentiable(t)}.values())
            sources = [w for w in wanted if is_wanted(w)]
            gradients: tuple | list = []
            if heads and sources:
                given = [torch.ones_like(h) * 0.5 + h.detach() for h in heads]
                gradients = torch.autograd.grad(heads, sources, given, allow_unused=True)
        read = torch.Tensor.detach if mode is None else mode.value
        out = {"results": tensors, "arguments": arguments, "roots": taken, "gradients": gradients}
        run.layout = {
            k: [None if t is None else layout(t)[: 2 if k == "gradients" else 3] for t in part]
            for k, part in out.items()
        }
        return [read(t) for part in out.values() for t in part if t is not None]

    return run


def layout(t) -> tuple:
    stride = tuple(s if n > 1 else 0 for n, s in zip(t.shape, t.stride(), strict=True)) if t.numel() else ()
    return t.dtype.name if hasattr(t.dtype, "name") else str(t.dtype), tuple(t.shape), stride


def functional(program: Program, mode: str = "fake") -> list[str]:
    """How the functionalized graph of a program differs from the program."""
    roots, whole = program.load_whole(torch)
    eager = joint(program, whole, nullcontext)
    expected = attempt(program, lambda: [array(t) for t in eager(*roots())])
    traced = joint(program, whole, Functionalization)
    given = roots()
    before = [array(t) for t in given]
    graph = attempt(program, lambda: make_fx(traced, tracing_mode=mode)(*given))
    if isinstance(expected, Exception) and not isinstance(graph, Exception):
        # what data decides, the graph itself raises
        return raised(expected, attempt(program, lambda: graph(*given)))
    if isinstance(graph, Exception):
        return raised(expected, graph)
    out = [
        f"tracing wrote root {i}"
        for i, (t, b) in enumerate(zip(given, before, strict=True))
        if not same_values(array(t), b)
    ]
    out += [f"the graph has {node.format_node()}" for node in graph.graph.nodes if is_impure(node)]
    actual = attempt(program, lambda: [array(t) for t in graph(*given)])
    if isinstance(actual, Exception):
        return [f"the graph raises {describe(actual)}"]
    out += [
        f"the graph wrote root {i}"
        for i, (t, b) in enumerate(zip(given, before, strict=True))
        if not same_values(array(t), b)
    ]
    out += [f"{k}: {part} traced {traced.layout[k]}" for k, part in eager.layout.items() if part != traced.layout[k]]
    names = [f"{k} {i}" for k, part in eager.layout.items() for i, one in enumerate(part) if one is not None]
    if len(actual) != len(expected):
        return out or ["another count of results"]
    out += [
        f"{n}: {e.tolist()} but {a.tolist()}"
        for n, e, a in zip(names, expected, actual, strict=True)
        if not same_values(e, a)
    ]
    return out


def is_impure(node) -> bool:
    op = node.target
    arguments = getattr(getattr(op, "schema", None), "arguments", ())
    return node.op == "call_function" and (
        getattr(op, "inplace_of", None) is not None or any(a.writes for a in arguments)
    )


def attempt(program: Program, call: Callable):
    """What a call gives, or the exception it raised."""
    torch.manual_seed(program.seed + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:  # whatever a program may raise
            return error


def describe(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:300]}"


refusals: collections.Counter = collections.Counter()  # what was refused, and how often
REFUSED = ("inputs that share memory, of which one is written",)  # what compiled forms may refuse, as PyTorch's do


def raised(expected, actual) -> list[str]:
    """Where one form of a program raised: the other must too, and the like."""
    if isinstance(actual, NotImplementedError) or str(actual).startswith(REFUSED):
        if not isinstance(expected, Exception):
            refusals[str(actual)] += 1
        return []
    if not isinstance(expected, Exception):
        return [f"only the graph raises {describe(actual)}"]
    if not isinstance(actual, Exception):
        return [f"the graph does not raise {describe(expected)}"]
    if not isinstance(actual, type(expected)) and not isinstance(expected, type(actual)):
        return [f"the graph raises {describe(actual)}, not {describe(expected)}"]
    return []


# ---- what is seen from outside
def observe(program: Program, prepare: Callable) -> dict:
    """All that can be seen of a program in the form that `prepare(f, make)` gives it."""
    make, f = program.load(torch)
    form = attempt(program, lambda: prepare(f, make))
    if isinstance(form, Exception):
        return {"call": form}
    arguments, watched = make()
    versions = [t._version for t in watched]
    results = attempt(program, lambda: form(*arguments))
    if isinstance(results, Exception):
        return {"call": results}
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    try:
        return seen_of(program, results, tensors, arguments, watched, versions)
    except RuntimeError as error:  # a result that autograd refuses to follow any further
        return {"call": error}


def seen_of(program: Program, results: list, tensors: list, arguments: list, watched: list, versions: list) -> dict:
    """The parts of an observation."""
    seen = {"others": [r if not isinstance(r, torch.Tensor) else None for r in results]}
    seen["results"] = [facts(t) for t in tensors]
    seen["watched"] = [facts(t) for t in watched]
    seen["written"] = [t._version > v for t, v in zip(watched, versions, strict=True)]
    known = [*watched, *tensors]
    seen["same"] = [next(i for i, k in enumerate(known) if k is t) for t in tensors]
    seen["memory"] = memory(known)
    seen["gradients"] = gradients(program, [*tensors, *arguments], watched)
    seen["after"] = probe([*tensors, *watched])
    return seen


def facts(t) -> tuple:
    """A tensor's class, layout, place in the graph, and value."""
    return (*layout(t), t.requires_grad, t.is_leaf, type(t).__name__, array(t))


def memory(tensors: list) -> list:
    """Which tensors share memory, and how far apart they begin: of each, the first one on its storage, and the distance.

    Tensors without elements begin nowhere: arrays keep no strides of theirs by which a view of them could be placed.
    """
    first: dict = {}
    origins: dict = {}
    out = []
    for i, t in enumerate(tensors):
        storage = t.untyped_storage()._cdata
        where = t.storage_offset() * t.element_size()
        at = first.setdefault(storage, i)
        out.append((at, where - origins.setdefault(storage, where)) if t.numel() else at)
    return out


def gradients(program: Program, tensors: list, watched: list):
    """Gradients of all leaves, from a random choice of results, twice."""
    heads = list({id(t): t for t in tensors if is_differentiable(t)}.values())
    leaves = [t for t in watched if t.requires_grad and t.is_leaf]
    if not heads or not leaves:
        return []
    rng = random.Random(program.seed)
    if len(heads) > 1 and rng.random() < 0.5:
        if isinstance(
            attempt(program, lambda: run_whole(heads, leaves)), Exception
        ):  # compiled, there is one backward of them all
            return RuntimeError("backward")
        heads = rng.sample(heads, rng.randint(1, len(heads)))
    given = cotangents(heads, program.seed)

    def twice():
        torch.autograd.backward(heads, given, retain_graph=True)
        torch.autograd.backward(heads, given)
        return [None if t.grad is None else array(t.grad) for t in leaves]

    return attempt(program, twice)


def run_whole(heads: list, leaves: list) -> None:
    """A backward from all results, which leaves no gradients."""
    torch.autograd.grad(heads, leaves, [torch.ones_like(h) for h in heads], retain_graph=True, allow_unused=True)


def probe(tensors: list) -> list:
    """What tensors hold after each was written, where it can be."""
    for i, t in enumerate(tensors):
        try:
            with torch.no_grad():
                t.detach().mul_(i + 2) if t.dtype.is_floating_point else t.detach().logical_not_()
        except RuntimeError:
            continue
    return [array(t) for t in tensors]


def differences(expected: dict, actual: dict) -> list[str]:
    """How two observations differ, as sentences."""
    if "call" in expected or "call" in actual:
        if isinstance(expected.get("gradients"), Exception):  # such a program may as well raise when it is compiled
            return []
        if "is a view" in str(expected.get("call")) or "A view was created" in str(expected.get("call")):
            return []  # compiled, such a view is made anew, and may be used
        return raised(expected.get("call"), actual.get("call"))
    out = []
    for part, values in expected.items():
        out += [f"{part}: {reason}" for reason in unequal(values, actual[part])]
        if out:
            break
    return out


def unequal(a, b) -> list[str]:
    if isinstance(a, Exception) and isinstance(
        b, Exception
    ):  # a backward that cannot be: each form finds its own reason
        return []
    if isinstance(a, Exception) or isinstance(b, Exception):
        return raised(a, b)
    if a is None and isinstance(b, np.ndarray):  # a compiled backward gives zeros where nothing depends on an input
        return [] if not b.any() else [f"None but {b.tolist()}"]
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return [] if same_values(a, b) else [f"{a.tolist()} but {b.tolist()}"]
    if isinstance(a, (list, tuple)) and type(a) is type(b) and len(a) == len(b):
        return [f"{i}: {reason}" for i, (x, y) in enumerate(zip(a, b, strict=True)) for reason in unequal(x, y)]
    return [] if type(a) is type(b) and a == b else [f"{a} but {b}"]
