"""Averaged models, closed forms of schedules, and the errors of both."""

import pytest

import pullback as torch
from pullback.optim import lr_scheduler as schedules
from pullback.optim import swa_utils


def optimizer(lr: float = 1.0, **options):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr, **options)


@pytest.mark.parametrize(
    "make, rates",
    [
        (lambda o: schedules.StepLR(o, 2, 0.5), [1.0, 1.0, 0.5, 0.5, 0.25]),
        (lambda o: schedules.MultiStepLR(o, [1, 3], 0.5), [1.0, 0.5, 0.5, 0.25, 0.25]),
        (lambda o: schedules.ConstantLR(o, 0.25, 2), [0.25, 0.25, 1.0, 1.0, 1.0]),
        (lambda o: schedules.LinearLR(o, 0.5, 1.0, 2), [0.5, 0.75, 1.0, 1.0, 1.0]),
        (lambda o: schedules.PolynomialLR(o, 4, 1.0), [1.0, 0.75, 0.5, 0.25, 0.0]),
    ],
    ids=["step", "steps", "constant", "linear", "polynomial"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_jump_to_an_epoch_is_where_steps_lead(make, rates):
    o = optimizer()
    schedule, seen = make(o), []
    for _ in rates:
        seen.append(o.param_groups[0]["lr"])
        o.step()
        schedule.step()
    assert seen == pytest.approx(rates)
    for epoch, rate in enumerate(rates):
        again = make(fresh := optimizer())
        again.step(epoch)
        assert fresh.param_groups[0]["lr"] == pytest.approx(rate)


def test_what_schedules_refuse():
    o = optimizer()
    for make, words in (
        (lambda: schedules.LambdaLR(o, [abs, abs]), "Expected 1 lr_lambdas, but got 2"),
        (lambda: schedules.ConstantLR(o, 2.0), "between 0 and 1"),
        (lambda: schedules.LinearLR(o, 0.0), "greater than 0"),
        (lambda: schedules.LinearLR(o, 0.5, 2.0), "between 0 and 1"),
        (lambda: schedules.ReduceLROnPlateau(o, factor=1.5), "Factor should be < 1.0"),
        (lambda: schedules.ReduceLROnPlateau(o, min_lr=[0.1, 0.2]), "expected 1 min_lrs, got 2"),
        (lambda: schedules.ReduceLROnPlateau(o, threshold_mode="far"), "threshold mode far is unknown"),
        (lambda: schedules.CyclicLR(o, 0.1, 1.0, mode="round", cycle_momentum=False), "mode is invalid"),
        (lambda: schedules.OneCycleLR(o, 1.0, total_steps=10, pct_start=2.0), "between 0 and 1 pct_start"),
        (lambda: schedules.OneCycleLR(o, 1.0, total_steps=10, anneal_strategy="up"), "one of 'cos' or 'linear'"),
    ):
        with pytest.raises(ValueError, match=words):
            make()


def test_a_plateau_of_what_should_grow():
    o = optimizer()
    schedule = schedules.ReduceLROnPlateau(o, mode="max", patience=0, factor=0.5, min_lr=[0.2], threshold_mode="abs")
    for metric in (1.0, 2.0, 2.0, 2.0, 2.0, 2.0):
        schedule.step(metric)
    assert o.param_groups[0]["lr"] == pytest.approx(0.2)
    again = schedules.ReduceLROnPlateau(optimizer())
    again.load_state_dict(schedule.state_dict())
    assert again.best == 2.0 and again.mode == "max"


def test_averages_of_a_model():
    model = torch.nn.Linear(1, 1)
    for avg_fn, wanted in ((None, 2.0), (swa_utils.get_swa_avg_fn(), 2.0), (swa_utils.get_ema_avg_fn(0.5), 2.5)):
        averaged = swa_utils.AveragedModel(model, device="cpu", avg_fn=avg_fn)
        for value in (1.0, 2.0, 3.0):
            with torch.no_grad():
                model.weight.fill_(value)
            averaged.update_parameters(model)
        expected = {2.0: 2.0, 2.5: 0.5 * (0.5 * 1 + 0.5 * 2) + 0.5 * 3}[wanted]
        assert averaged.module.weight.item() == pytest.approx(expected)
        assert averaged(torch.ones(1, 1)).shape == (1, 1)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        swa_utils.AveragedModel(model, avg_fn=abs, multi_avg_fn=abs)
    with pytest.raises(ValueError, match="Invalid decay value 2"):
        swa_utils.get_ema_avg_fn(2)
    swa_utils.update_bn([torch.ones(2, 1)], model)  # nothing to do without batch norm
    with pytest.raises(ValueError, match="anneal_strategy must be one of"):
        swa_utils.SWALR(optimizer(), 0.1, anneal_strategy="up")
    with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0"):
        swa_utils.SWALR(optimizer(), 0.1, anneal_epochs=-1)


def test_hooks_of_state_dicts_and_steps():
    o, seen = optimizer(), []
    o.register_state_dict_pre_hook(lambda it: seen.append("before saving"))
    o.register_load_state_dict_post_hook(lambda it: seen.append("after loading"))
    o.load_state_dict(o.state_dict())
    assert seen == ["before saving", "after loading"]
    handle = o.register_step_pre_hook(lambda it, args, kwargs: "no pair")
    with pytest.raises(RuntimeError):
        o.step()
    handle.remove()
    with pytest.raises(TypeError, match="param_group must be a dict"):
        o.add_param_group([1])


def test_a_differentiable_nadam_has_gradients_in_its_state():
    def step(product, weight):
        p = weight.clone()
        p.grad = torch.tensor([0.3, 0.7], dtype=torch.float64)
        optimizer = torch.optim.NAdam([p], lr=0.9, differentiable=True)
        ones = torch.ones(2, dtype=torch.float64)
        optimizer.state[p].update(
            step=torch.tensor(10.0, dtype=torch.float64),
            mu_product=product.clone(),
            exp_avg=ones,
            exp_avg_sq=ones.clone(),
        )
        optimizer.step()
        return p

    product = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(step, (product, weight))
    (gradient,) = torch.autograd.grad(step(product, weight).sum(), product)
    assert gradient.abs() > 1e-3
