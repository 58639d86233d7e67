"""Compiled functions notice when what they reach besides their arguments changes."""

import pullback as torch
from pullback import nn

FACTOR = 2.0
HELD = {"scale": 3.0}


def check(f, change, x=None, backend: str = "aot_eager") -> None:
    """`f` compiled is right before and after `change()`, and the change does change its result."""
    x = torch.ones(2, 2) if x is None else x
    run = torch.compile(f, backend=backend, fullgraph=True)
    before = f(x)
    torch.testing.assert_close(run(x), before)
    change()
    assert not torch.equal(f(x), before)
    torch.testing.assert_close(run(x), f(x))


def test_globals() -> None:
    def change() -> None:
        global FACTOR
        FACTOR += 1

    check(lambda x: x * FACTOR, change)
    check(lambda x: x * HELD["scale"], lambda: HELD.update(scale=HELD["scale"] + 1))


def test_containers_of_tensors() -> None:
    weights = [torch.ones(2), torch.ones(2)]
    check(lambda x: x + weights[0] * weights[1], lambda: weights.__setitem__(1, torch.zeros(2)))
    named = {"w": torch.ones(2)}
    check(lambda x: x + named["w"], lambda: named.update(w=torch.zeros(2)))


def test_attributes_of_objects() -> None:
    class Model:
        def __init__(self) -> None:
            self.weight, self.scale = torch.ones(2), 1.0

        def forward(self, x):
            return x * self.weight * self.scale

    model = Model()
    check(model.forward, lambda: setattr(model, "weight", torch.zeros(2)))
    model = Model()
    check(model.forward, lambda: setattr(model, "scale", 4.0))


def test_attributes_of_modules() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = 2.0
            self.inner = nn.Linear(2, 2, bias=False)

        def forward(self, x):
            return self.inner(x) * self.scale

    model = Scaled()
    check(model, lambda: setattr(model, "scale", 5.0))
    check(model, lambda: setattr(model, "inner", nn.Linear(2, 2, bias=False)))
    check(model, lambda: model.inner._parameters.update(weight=nn.Parameter(torch.zeros(2, 2))))
    check(model, lambda: model.register_forward_hook(lambda m, args, out: out + 1))


def test_parameters_given_for_one_call() -> None:
    model = nn.Linear(2, 2, bias=False)
    run, x = torch.compile(model), torch.ones(1, 2)
    run(x)
    given = {"_orig_mod.weight": torch.full((2, 2), 7.0)}
    torch.testing.assert_close(torch.func.functional_call(run, given, (x,)), torch.full((1, 2), 14.0))
    torch.testing.assert_close(run(x), model(x))


def test_recording_of_a_parameter() -> None:
    model = nn.Linear(2, 2)
    run, x = torch.compile(model), torch.ones(1, 2)
    assert run(x).requires_grad
    model.requires_grad_(False)
    assert not run(x).requires_grad
    model.requires_grad_(True)
    run(x).sum().backward()
    assert model.weight.grad is not None


def test_values_written_in_place_need_no_new_graph() -> None:
    result = []
    weight = torch.ones(2)
    run = torch.compile(lambda x: x * weight, backend=lambda module, inputs: result.append(module) or module)
    run(torch.ones(2))
    weight.mul_(3)
    torch.testing.assert_close(run(torch.ones(2)), torch.full((2,), 3.0))
    assert len(result) == 1


def test_another_size_of_a_closed_over_tensor() -> None:
    weight = torch.ones(2)
    check(lambda x: x.sum() * weight.sum() * weight.shape[0], lambda: setattr(weight, "data", torch.ones(5)))


def test_reasons_are_named() -> None:
    scale, reasons = 2.0, []

    def f(x):
        return x * scale

    run = torch.compile(f, guard_fail_fn=lambda failure: reasons.append(failure[0]))
    run(torch.ones(1))
    scale = 3.0
    run(torch.ones(1))
    with torch.no_grad():
        run(torch.ones(1))
    assert reasons[0] == "L['scale'] == 2.0  (it is 3.0)"
    assert "grad mode" in reasons[1]


def test_side_effects_are_done_at_every_call() -> None:
    seen, table, x = [], {"n": 1}, torch.ones(1)

    def appends(x):
        seen.append(x * 2)
        return x

    run = torch.compile(appends, fullgraph=True)
    run(x), run(x * 2)
    assert [t.item() for t in seen] == [2.0, 4.0]

    def counts(x):
        table["n"] += 1
        return x * table["n"]

    run = torch.compile(counts, fullgraph=True)
    assert [run(x).item() for _ in range(4)] == [2.0, 3.0, 4.0, 5.0]
    assert table["n"] == 5

    def fills(x, out):
        out.append(x * 3)
        return x

    out: list = []
    torch.compile(fills, fullgraph=True)(x, out)
    assert [o.item() for o in out] == [3.0]

    count = 0

    def rebinds(x):
        nonlocal count
        count += 1
        return x

    run = torch.compile(rebinds, fullgraph=True)
    run(x), run(x)
    assert count == 2


def test_side_effects_on_objects() -> None:
    class Memory:
        last = None
        history: list

        def __init__(self) -> None:
            self.history = []

    memory = Memory()

    def remember(x):
        memory.last = x * 2
        memory.history.append(x)
        return x

    run = torch.compile(remember, fullgraph=True)
    run(torch.ones(1)), run(torch.ones(1) * 3)
    assert memory.last.item() == 6.0 and [t.item() for t in memory.history] == [1.0, 3.0]
