"""Learning-rate schedules: rates by closed form, combination, state, refusals; averages of weights."""

import math
import warnings

import pytest

import pullback as torch
from pullback import nn, optim
from pullback.optim import lr_scheduler as lrs
from pullback.optim import swa_utils
from pullback.optim.lr_scheduler.base import _enable_get_lr_call


def optimizer(lr=1.0, groups=1):
    ps = [torch.zeros(1, requires_grad=True) for _ in range(groups)]
    return optim.SGD([{"params": [p]} for p in ps], lr=lr, momentum=0.9)


def rates(opt, schedule, count, *args):
    result = [opt.param_groups[0]["lr"]]
    for _ in range(count):
        opt.step()
        schedule.step(*args)
        result.append(opt.param_groups[0]["lr"])
    return result


@pytest.mark.parametrize(
    ("make", "rate"),
    [
        (lambda o: lrs.LambdaLR(o, lambda n: 0.5**n), lambda n: 0.5**n),
        (lambda o: lrs.MultiplicativeLR(o, lambda n: 0.5), lambda n: 0.5**n),
        (lambda o: lrs.StepLR(o, 3, 0.5), lambda n: 0.5 ** (n // 3)),
        (lambda o: lrs.MultiStepLR(o, [2, 5], 0.1), lambda n: 0.1 ** ((n >= 2) + (n >= 5))),
        (lambda o: lrs.ConstantLR(o, 0.5, 4), lambda n: 0.5 if n < 4 else 1.0),
        (lambda o: lrs.LinearLR(o, 0.5, 1.0, 4), lambda n: 0.5 + 0.5 * min(n, 4) / 4),
        (lambda o: lrs.ExponentialLR(o, 0.9), lambda n: 0.9**n),
        (lambda o: lrs.PolynomialLR(o, 6, 2.0), lambda n: (1 - min(n, 6) / 6) ** 2),
        (lambda o: lrs.CosineAnnealingLR(o, 5, 0.1), lambda n: 0.1 + 0.45 * (1 + math.cos(math.pi * n / 5))),
        (lambda o: lrs.CosineAnnealingWarmRestarts(o, 3), lambda n: 0.5 * (1 + math.cos(math.pi * (n % 3) / 3))),
    ],
)
def test_rates(make, rate):
    opt = optimizer()
    assert rates(opt, make(opt), 9) == pytest.approx([rate(n) for n in range(10)])


def test_one_cycle_moves_momentum_the_other_way():
    opt = optimizer()
    schedule = lrs.OneCycleLR(opt, max_lr=1.0, total_steps=10)
    momenta, result = [opt.param_groups[0]["momentum"]], [opt.param_groups[0]["lr"]]
    for _ in range(9):
        opt.step(), schedule.step()
        momenta.append(opt.param_groups[0]["momentum"])
        result.append(opt.param_groups[0]["lr"])
    assert result[0] == pytest.approx(0.04) and max(result) == pytest.approx(1.0) and result[-1] < 1e-5
    assert momenta[0] == 0.95 and min(momenta) == pytest.approx(0.85) and momenta[-1] == pytest.approx(0.95)
    with pytest.raises(ValueError, match="Tried to step 11 times"):
        for _ in range(2):
            schedule.step()


def test_cyclic_modes():
    for mode, top in (("triangular", 1.0), ("triangular2", 0.5)):
        opt = optimizer()
        result = rates(opt, lrs.CyclicLR(opt, 0.0, 1.0, 2, mode=mode), 8)
        assert result[2] == pytest.approx(1.0) and result[4] == pytest.approx(0.0) and result[6] == pytest.approx(top)


def test_plateau():
    opt = optimizer()
    schedule = lrs.ReduceLROnPlateau(opt, factor=0.5, patience=1, cooldown=1)
    seen = []
    for value in (1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9):
        schedule.step(value)
        seen.append(opt.param_groups[0]["lr"])
    assert seen == [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]


def test_sequential_and_chained():
    opt = optimizer()
    parts = [lrs.ConstantLR(opt, 0.1, 100), lrs.ExponentialLR(opt, 0.5)]
    result = rates(opt, lrs.SequentialLR(opt, parts, [3]), 5)
    assert result == pytest.approx([0.1, 0.1, 0.1, 1.0, 0.5, 0.25])
    opt = optimizer()
    chained = lrs.ChainedScheduler([lrs.ConstantLR(opt, 0.1, 2), lrs.ExponentialLR(opt, 0.9)])
    assert rates(opt, chained, 3) == pytest.approx([0.1, 0.09, 0.81, 0.729])
    assert chained.get_last_lr() == [opt.param_groups[0]["lr"]]


def test_state_travels():
    opt = optimizer()
    schedule = lrs.LambdaLR(opt, lambda n: 1 / (1 + n))
    rates(opt, schedule, 3)
    kept = schedule.state_dict()
    assert kept["lr_lambdas"] == [None] and "optimizer" not in kept
    other = optimizer()
    again = lrs.LambdaLR(other, lambda n: 1 / (1 + n))
    again.load_state_dict(kept)
    other.step()
    again.step()
    assert again.get_last_lr() == pytest.approx([0.2])


def test_a_rate_that_is_a_tensor_stays_one():
    lr = torch.tensor(1.0)
    opt = optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    schedule = lrs.ExponentialLR(opt, 0.5)
    opt.step(), schedule.step()
    assert opt.param_groups[0]["lr"] is lr and lr.item() == 0.5


def test_warnings_and_refusals():
    opt = optimizer()
    schedule = lrs.StepLR(opt, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step"):
        schedule.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        schedule.get_lr()
    with pytest.raises(TypeError, match="int is not an Optimizer"):
        lrs.StepLR(3, 2)
    with pytest.raises(KeyError, match="initial_lr"):
        lrs.StepLR(optimizer(), 2, last_epoch=3)
    with pytest.raises(ValueError, match="define either total_steps OR"):
        lrs.OneCycleLR(optimizer(), 1.0)
    with pytest.raises(ValueError, match="max_lr must have the same length"):
        lrs.OneCycleLR(optimizer(), [1.0, 2.0], total_steps=3)
    with pytest.raises(ValueError, match="mode x is unknown"):
        lrs.ReduceLROnPlateau(optimizer(), "x")


def test_averages_of_weights():
    model = nn.Linear(1, 1, bias=False)
    mean, moving = swa_utils.AveragedModel(model), swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9))  # fmt: skip
    for value in (1.0, 2.0, 6.0):
        model.weight.data.fill_(value)
        mean.update_parameters(model), moving.update_parameters(model)
    assert mean.module.weight.item() == pytest.approx(3.0)
    assert moving.module.weight.item() == pytest.approx(0.9 * (0.9 * 1 + 0.1 * 2) + 0.1 * 6)
    assert mean.n_averaged.item() == 3


def test_swalr_ends_at_its_rate():
    opt = optimizer()
    schedule = swa_utils.SWALR(opt, 0.1, anneal_epochs=4, anneal_strategy="linear")
    assert rates(opt, schedule, 6) == pytest.approx([1.0, 0.775, 0.55, 0.325, 0.1, 0.1, 0.1])


def test_batch_norm_statistics_anew():
    model = nn.Sequential(nn.BatchNorm1d(2))
    data = [torch.tensor([[0.0, 2.0], [2.0, 4.0]]), torch.tensor([[4.0, 6.0], [6.0, 8.0]])]
    swa_utils.update_bn(data, model)
    assert model[0].running_mean.tolist() == pytest.approx([3.0, 5.0])
    assert model[0].momentum == 0.1 and model.training


def test_rates_asked_for_by_a_step_of_ones_own():
    scheduler = torch.optim.lr_scheduler.StepLR(torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0), 1)
    with pytest.warns(UserWarning, match="use `get_last_lr\\(\\)`"):
        scheduler.get_lr()
    with warnings.catch_warnings(), _enable_get_lr_call(scheduler):
        warnings.simplefilter("error")
        assert scheduler.get_lr() == [1.0]
    assert not scheduler._get_lr_called_within_step


def test_a_cycle_loads_what_an_early_version_kept():
    def rates(scheduler):
        kept = []
        for _ in range(9):
            kept.append(scheduler.get_last_lr()[0])
            scheduler.optimizer.step()
            scheduler.step()
        return kept

    def scheduled():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0, momentum=0.9)
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=25.0, total_steps=10, anneal_strategy="linear")

    old = scheduled()
    state = old.state_dict()
    del state["_anneal_func_type"], old._anneal_func_type
    old.load_state_dict({**state, "anneal_func": type(old)._annealing_linear})
    assert rates(old) == pytest.approx(rates(scheduled()))


@pytest.mark.parametrize("mode, second", [("triangular", 1.0), ("triangular2", 0.5), ("exp_range", 0.25)])
def test_the_function_that_scales_a_cycle(mode, second):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, 1, 5, mode=mode, gamma=0.5, cycle_momentum=False)
    assert scheduler._scale_fn_ref(2) == scheduler.scale_fn(2) == second
    assert "_scale_fn_ref" not in scheduler.state_dict()
