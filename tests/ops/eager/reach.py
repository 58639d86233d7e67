"""Public calls and the operators they reach: what dispatch modes see of a call is what an override must see too.

Comes in: the operators' samples, Python's operators, index expressions, layers. Goes out: `reached()`, for each operator
the calls that reach it. Always holds: calls may be repeated; they leave their arguments as they were.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Iterator

import pullback as torch
from pullback.ops.system.operator import Operator, exports, key_of
from pullback.ops.system.overrides import TorchDispatchMode, call_form
from tests.ops.samples import exempt, functional_operators, samples_of

F = torch.nn.functional
Call = tuple[str, Callable]
BY_VALUES = (
    "ops.aten.cumprod_backward.default",
    *(f"torch._foreach_{name}" for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")),
    *(f"ops.aten._foreach_{name}.Tensor" for name in ("addcmul", "addcmul_", "addcdiv", "addcdiv_")),
)  # what is computed depends on values, which are not read where a mode looks on


class Watch(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self):
        super().__init__()
        self.seen: list[Operator] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func)
        return func(*args, **(kwargs or {}))


def public_functions(op: Operator) -> Iterator[tuple[str, Callable]]:
    """The public functions of an operator: generated, choosing between overloads, or hand-written under its name."""
    for space, table in exports.items():
        for name, function in table.items():
            own, several = getattr(function, "operator", None), getattr(function, "operators", ())
            is_inplace = name.endswith("_") and not op.name.endswith("_")
            if own is op and not is_inplace or op in several or own is None and not several and name == op.name:
                yield f"{space}.{name}", function


def sampled_calls() -> Iterator[Call]:
    """Every public function of every operator, on its first sample; in-place forms on copies."""
    for op in functional_operators():
        if exempt(key_of(op)) or not samples_of(op):
            continue
        args, kwargs = call_form(op, samples_of(op)[0][0])
        for name, function in public_functions(op):
            yield name, functools.partial(function, *args, **kwargs)
        yield f"ops.{op}", functools.partial(op, *args, **kwargs)
        inplace = getattr(op, "inplace_function", None)
        if inplace is not None and isinstance(args[0], torch.Tensor):
            yield f"Tensor.{inplace.__name__}", functools.partial(_on_copy, inplace, args, kwargs)


def _on_copy(function, args, kwargs):
    function(args[0].clone(), *args[1:], **kwargs)


def _grown() -> torch.Tensor:
    return torch.arange(12.0).reshape(3, 4).clone()


def python_calls() -> Iterator[Call]:
    """Python's operators and index expressions."""
    whole = _grown().to(torch.int64) + 1
    for name in "add sub mul truediv floordiv mod pow lt le gt ge eq ne matmul".split():
        function = getattr(operator, name)
        yield (
            f"__{name}__",
            functools.partial(function, _grown(), _grown().t().clone() if name == "matmul" else _grown()),
        )
        if name != "matmul":
            yield f"__{name}__ number", functools.partial(function, _grown(), 2.0)
            yield f"__r{name}__ number", functools.partial(function, 2.0, _grown())
            yield f"__i{name}__", lambda f=getattr(operator, f"i{name}", function): f(_grown(), 2.0)
    for name in "and_ or_ xor lshift rshift".split():
        for pair in ((whole, whole), (whole, 2), (2, whole)):
            yield name, functools.partial(getattr(operator, name), *pair)
    for name in "neg abs pos".split():
        yield name, functools.partial(getattr(operator, name), _grown())
    yield "invert", functools.partial(operator.invert, whole)
    indices = (
        0,
        -1,
        slice(1, 3),
        (1, 2),
        (slice(None), 1),
        (Ellipsis, 0),
        None,
        torch.tensor([0, 2]),
        (0, slice(1, 3)),
    )
    for index in indices:
        yield f"x[{index}]", functools.partial(operator.getitem, _grown(), index)
        yield f"x[{index}] = 1", lambda i=index: operator.setitem(_grown(), i, 1.0)
    yield "item", torch.tensor(2.0).item
    yield "iter", lambda: list(_grown())
    yield "new_empty_strided", functools.partial(_grown().new_empty_strided, (2, 3), (3, 1))


def composed_calls() -> Iterator[Call]:
    """Functions and layers that are made of several operators."""
    x, w, b = _grown(), torch.ones(2, 4), torch.ones(2)
    yield "linear", functools.partial(F.linear, x, w)
    yield "linear with bias", functools.partial(F.linear, x, w, b)
    yield "linear of a batch", functools.partial(F.linear, x[None].clone(), w, b)
    for shapes in ((3, 3), ((2, 3), 3), (3, (3, 2)), ((2, 3), (3, 2)), ((4, 2, 3), (4, 3, 2)), ((4, 2, 3), (3, 2))):
        yield f"matmul {shapes}", functools.partial(torch.matmul, *[torch.ones(s) for s in shapes])
    for shape in ((2, 3), (2, 3, 1, 1)):
        target = torch.zeros((2, *shape[2:]), dtype=torch.int64)
        scores = torch.ones(shape, requires_grad=True)
        yield f"cross_entropy {shape}", functools.partial(torch.nn.functional.cross_entropy, scores, target)
    yield "matmul of four dimensions", functools.partial(torch.matmul, torch.ones(2, 2, 2, 3), torch.ones(2, 2, 3, 2))
    yield "sum of one dimension", functools.partial(torch.sum, x, 1)
    yield "softmax", functools.partial(F.softmax, x, -1)
    yield "layer_norm", functools.partial(F.layer_norm, x, (4,), torch.ones(4), torch.ones(4))
    yield "view", functools.partial(x.view, 4, 3)
    yield "reshape", functools.partial(x.reshape, (4, 3))
    yield "flatten", functools.partial(torch.flatten, x)
    yield "chunk", functools.partial(torch.chunk, x, 2, 1)
    yield "split", functools.partial(torch.split, x, 2, 1)
    yield "relu_", lambda: F.relu(x.clone(), inplace=True)
    yield "tensor", functools.partial(torch.tensor, [1.0, 2.0])
    for factory in (torch.zeros, torch.ones, torch.empty):
        yield factory.__name__, functools.partial(factory, (2, 3))
    for factory, *args in (
        (torch.rand, 3), (torch.randn, 3), (torch.rand_like, x), (torch.randn_like, x), (torch.randperm, 3),
        (torch.randint, 5, (3,)), (torch.randint, 1, 5, (3,)),
    ):  # fmt: skip
        yield factory.__name__, functools.partial(factory, *args)
        yield f"{factory.__name__} by a generator", functools.partial(factory, *args, generator=torch.Generator())
    for cell in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN):
        yield cell.__name__, functools.partial(cell(4, 3), x[:, None].clone())
    yield "backward with sums", _backward_with_sums


def _backward_with_sums() -> None:
    x = _grown().requires_grad_()
    (x * 2 + x * 3 + x * 4).sum().backward()


def compositions() -> Iterator[Call]:
    """Operators that are written in others, and have a plain case of their own."""
    x = _grown()
    yield "linear.default", functools.partial(F.linear, x, torch.ones(2, 4))
    yield "batch_norm.default", functools.partial(F.batch_norm, x, None, None, training=True)
    yield "scaled_dot_product_attention.default", functools.partial(F.scaled_dot_product_attention, x, x, x)
    yield "matmul.default", functools.partial(operator.matmul, x, x.t().clone())
    yield "reshape.default", functools.partial(x.reshape, (4, 3))
    yield "unflatten.int", functools.partial(x.unflatten, 1, (2, 2))
    yield "flatten.using_ints", functools.partial(torch.flatten, x)
    yield "chunk.default", functools.partial(torch.chunk, x, 2)
    yield "narrow.default", functools.partial(torch.narrow, x, 0, 1, 2)
    yield "square.default", functools.partial(torch.square, x)
    yield "max.other", functools.partial(torch.max, x, x)
    yield "min.other", functools.partial(torch.min, x, x)
    yield "arange.default", functools.partial(torch.arange, 3)
    yield "arange.start", functools.partial(torch.arange, 1, 3)
    yield "eye.default", functools.partial(torch.eye, 2)
    heads = _grown().reshape(1, 2, 3, 2)
    yield "scaled_dot_product_attention.default", functools.partial(F.scaled_dot_product_attention, heads, heads, heads)
    for name in ("add", "sub", "mul", "div"):
        for overload, other in (("List", [x]), ("Scalar", 2.0), ("ScalarList", [2.0])):
            function = exports["torch"][f"_foreach_{name}_"]
            yield f"_foreach_{name}_.{overload}", lambda f=function, other=other: f([_grown()], other)
    for name in ("sqrt", "neg", "abs"):
        yield f"_foreach_{name}_.default", lambda f=exports["torch"][f"_foreach_{name}_"]: f([_grown()])


@functools.cache
def reached() -> dict[str, list[Call]]:
    """The calls that reach each operator, by its key. Modes see what a composition is made of; it is reached by its name."""
    found: dict[str, list[Call]] = {key: [(key, call)] for key, call in compositions()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, call in (*sampled_calls(), *python_calls(), *composed_calls()):
            if name in BY_VALUES:
                continue
            watch = Watch()
            try:
                call()
                with watch:
                    call()
            except (RuntimeError, TypeError, ValueError, NotImplementedError):
                continue  # not the function's own way to be called
            for op in dict.fromkeys(watch.seen):
                if op.namespace == "aten":
                    found.setdefault(key_of(op), []).append((name, call))
    return found
