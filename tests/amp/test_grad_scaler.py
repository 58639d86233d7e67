"""GradScaler: scaling, skipped steps, growth, refusals, state."""

import math
import pickle

import pytest

import pullback as torch


def setup(**options):
    p = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    return p, torch.optim.SGD([p], lr=0.5), torch.amp.GradScaler("cpu", **{"init_scale": 8.0, **options})


def iterate(p, optimizer, scaler, factor):
    optimizer.zero_grad()
    scaler.scale((p * torch.tensor(factor)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_good_steps_are_taken_and_grow_the_scale():
    p, optimizer, scaler = setup(growth_interval=2)
    iterate(p, optimizer, scaler, [1.0, 2.0])
    assert p.tolist() == [0.5, 1.0] and scaler.get_scale() == 8.0
    iterate(p, optimizer, scaler, [1.0, 2.0])
    assert p.tolist() == [0.0, 0.0] and scaler.get_scale() == 16.0


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_bad_steps_are_skipped_and_shrink_the_scale(bad):
    p, optimizer, scaler = setup()
    iterate(p, optimizer, scaler, [bad, 1.0])
    assert p.tolist() == [1.0, 2.0] and scaler.get_scale() == 4.0


def test_the_scale_never_grows_to_infinity():
    p, optimizer, scaler = setup(growth_interval=1, init_scale=2.0**127)
    iterate(p, optimizer, scaler, [0.0, 0.0])
    assert scaler.get_scale() == 2.0**127


def test_unscaled_gradients_can_be_looked_at():
    p, optimizer, scaler = setup()
    scaler.scale(p.sum()).backward()
    assert p.grad.tolist() == [8.0, 8.0]
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)


def test_refusals():
    p, optimizer, scaler = setup()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(p.sum())
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: None)
    with pytest.raises(ValueError, match="Tensor or an iterable"):
        scaler.scale(3)
    with pytest.raises(AssertionError, match="growth factor"):
        setup(growth_factor=1.0)


def test_scaling_of_structures():
    _, _, scaler = setup()
    one = torch.ones(1)
    pair, (inner,) = scaler.scale((one, [one]))
    assert pair.item() == inner.item() == 8.0


def test_state():
    p, optimizer, scaler = setup()
    iterate(p, optimizer, scaler, [1.0, 1.0])
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    copied = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict() == copied.state_dict() == scaler.state_dict()
    assert scaler.state_dict()["_growth_tracker"] == 1
    with pytest.raises(RuntimeError, match="state dict is empty"):
        other.load_state_dict({})
    scaler.update(3.0)
    assert scaler.get_scale() == 3.0


def test_disabled_does_nothing():
    p, optimizer, scaler = setup(enabled=False)
    assert scaler.scale(p) is p and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    p.sum().backward()
    scaler.step(optimizer)
    scaler.update()
    assert p.tolist() == [0.5, 1.5]


class Scaling(torch.optim.SGD):
    """An optimizer that divides gradients by the scale itself."""

    _step_supports_amp_scaling = True

    def step(self, closure=None):
        self.told = (self.grad_scale, self.found_inf.item())
        for p in self.param_groups[0]["params"]:
            p.grad /= 1.0 if self.grad_scale is None else self.grad_scale
        return super().step(closure)


def test_optimizers_that_divide_by_the_scale_are_told_it():
    p = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer, scaler = Scaling([p], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    assert p.item() == 0.5 and optimizer.told == (torch.tensor(8.0), 0.0) and not hasattr(optimizer, "grad_scale")
    scaler.update()
    scaler.unscale_(optimizer)
    p.grad.fill_(math.inf)
    scaler.step(optimizer)
    assert optimizer.told == (None, 0.0)  # what was divided before is not looked at again
    scaler.update()
    scaler.step(optimizer)
    assert optimizer.told[1] == 1.0


def test_optimizers_that_take_the_scaler_get_it():
    class Taking(Scaling):
        def step(self, closure=None, *, grad_scaler=None):
            self.told = grad_scaler

    p = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer, scaler = Taking([p], lr=0.5), torch.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale(p.sum()).backward()
    with pytest.warns(FutureWarning, match="stop passing itself"):
        scaler.step(optimizer)
    assert optimizer.told is scaler
    scaler.update()
