"""Optimizers: trajectories against the published updates, options, state, hooks, refusals."""

import copy
import math
import pickle

import pytest

import pullback as torch
from pullback import optim

ALL = [
    (optim.SGD, dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1)), (optim.Adam, dict(lr=0.05, amsgrad=True)),
    (optim.AdamW, dict(lr=0.05)), (optim.Adamax, {}), (optim.NAdam, dict(weight_decay=0.1)), (optim.RAdam, {}),
    (optim.RMSprop, dict(centered=True, momentum=0.5)), (optim.Rprop, {}), (optim.Adagrad, dict(lr_decay=0.1)),
    (optim.Adadelta, {}), (optim.ASGD, dict(t0=2, lambd=0.01)), (optim.Adafactor, {}), (optim.Muon, {}),
]  # fmt: skip
NAMES = [cls.__name__ for cls, _ in ALL]


def problem(dtype=torch.float64):
    p = torch.tensor([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], dtype=dtype, requires_grad=True)

    def loss():
        return ((p - 0.5) ** 2).sum() + torch.sin(3 * p).sum()

    return p, loss


def steps(opt, loss, count):
    for _ in range(count):
        opt.zero_grad()
        loss().backward()
        opt.step()


@pytest.mark.parametrize(("cls", "options"), ALL, ids=NAMES)
def test_loss_goes_down(cls, options):
    p, loss = problem()
    before = loss().item()
    steps(cls([p], **options), loss, 30)
    assert loss().item() < before


@pytest.mark.parametrize(("cls", "options"), ALL, ids=NAMES)
def test_state_travels(cls, options):
    p, loss = problem()
    opt = cls([p], **options)
    steps(opt, loss, 3)
    kept, value = copy.deepcopy(opt.state_dict()), p.detach().clone()
    steps(opt, loss, 2)
    wanted = p.detach().clone()
    p.data.copy_(value)
    other = cls([p], **options)
    other.load_state_dict(pickle.loads(pickle.dumps(kept)))
    steps(other, loss, 2)
    assert torch.allclose(p.detach(), wanted, rtol=1e-6)  # counters of single precision take the parameter's dtype


@pytest.mark.parametrize(("cls", "options"), [c for c in ALL if c[0] is not optim.Muon], ids=[n for n in NAMES if n != "Muon"])  # fmt: skip
def test_maximize_is_the_negated_loss(cls, options):
    p, loss = problem()
    q, other = problem()
    steps(cls([p], maximize=True, **options), loss, 3)
    opt = cls([q], **options)
    for _ in range(3):
        opt.zero_grad()
        (-other()).backward()
        opt.step()
    assert torch.allclose(p, q, rtol=1e-12)


def test_adam_by_hand():
    p = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    opt = optim.Adam([p], lr=0.1)
    m = v = 0.0
    x = 1.0
    for t in range(1, 5):
        opt.zero_grad()
        (p**2).sum().backward()
        opt.step()
        g = 2 * x
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        x -= 0.1 * (m / (1 - 0.9**t)) / (math.sqrt(v / (1 - 0.999**t)) + 1e-8)
        assert abs(p.item() - x) < 1e-12


def test_complex_parameters_are_pairs_of_real_ones():
    z = torch.tensor([1 + 2j, -1j], dtype=torch.complex128, requires_grad=True)
    x = torch.view_as_real(z.detach()).clone().requires_grad_()
    for cls in (optim.Adam, optim.RMSprop, optim.Adagrad, optim.SGD):
        a, b = cls([z], lr=0.1), cls([x], lr=0.1)
        for _ in range(3):
            a.zero_grad(), b.zero_grad()
            (z * z.conj()).real.sum().backward()
            (x * x).sum().backward()
            a.step(), b.step()
        assert torch.allclose(torch.view_as_real(z.detach()), x.detach())


def test_differentiable_step_has_a_gradient_of_the_rate():
    lr = torch.tensor(0.1, dtype=torch.float64, requires_grad=True)
    w = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    p = w.clone()
    opt = optim.SGD([p], lr=lr, differentiable=True)
    p.grad = torch.tensor([3.0, 4.0], dtype=torch.float64)
    opt.step()
    p.sum().backward()
    assert lr.grad.item() == -7.0


def test_lbfgs_finds_the_minimum():
    for search in (None, "strong_wolfe"):
        p = torch.tensor([-1.2, 1.0], dtype=torch.float64, requires_grad=True)
        opt = optim.LBFGS([p], max_iter=100, line_search_fn=search, lr=1 if search else 0.1)

        def closure(p=p, opt=opt):
            opt.zero_grad()
            loss = (p[0] - 3) ** 2 + 5 * (p[1] + 1) ** 2 + p[0] * p[1]
            loss.backward()
            return loss

        for _ in range(5):
            opt.step(closure)
        assert p.grad.abs().max().item() < 1e-3


def test_sparse_adam_leaves_other_rows_alone():
    p = torch.zeros(4, 2, requires_grad=True)
    opt = optim.SparseAdam([p], lr=0.1)
    p.grad = torch.sparse_coo_tensor(torch.tensor([[1, 3]]), torch.ones(2, 2), (4, 2))
    opt.step()
    assert p[0].tolist() == [0.0, 0.0] and p[1, 0].item() < -0.09
    p.grad = torch.ones(4, 2)
    with pytest.raises(RuntimeError, match="does not support dense gradients"):
        opt.step()


def test_groups_names_and_repr():
    a, b = (torch.zeros(2, requires_grad=True) for _ in range(2))
    opt = optim.SGD([{"params": [a], "lr": 0.5}, {"params": [b]}], lr=0.1)
    assert [g["lr"] for g in opt.param_groups] == [0.5, 0.1]
    assert "Parameter Group 1" in repr(opt) and "    lr: 0.5" in repr(opt)
    named = optim.SGD([("a", a), ("b", b)], lr=0.1)
    assert named.param_groups[0]["param_names"] == ["a", "b"]
    with pytest.raises(ValueError, match="more than one parameter group"):
        opt.add_param_group({"params": [a]})
    with pytest.raises(ValueError, match="with/without names"):
        named.add_param_group({"params": [torch.zeros(1, requires_grad=True)]})


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: optim.SGD([], lr=0.1), ValueError, "optimizer got an empty parameter list"),
        (lambda p: optim.SGD(p, lr=0.1), TypeError, "iterable of Tensors or dicts"),
        (lambda p: optim.SGD([p * 2], lr=0.1), ValueError, "can't optimize a non-leaf Tensor"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda p: optim.SGD([p], lr=1, nesterov=True), ValueError, "Nesterov momentum requires"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.5)), ValueError, "Invalid beta parameter at index 1: 1.5"),
        (lambda p: optim.Adam([p], eps=-1), ValueError, "Invalid epsilon value: -1"),
        (lambda p: optim.Adam([p], fused=True, foreach=True), RuntimeError, "cannot be `True` together"),
        (lambda p: optim.Adadelta([p], rho=2), ValueError, "Invalid rho value: 2"),
        (lambda p: optim.Rprop([p], etas=(1, 2)), ValueError, "Invalid eta values"),
        (lambda p: optim.Muon([p]), ValueError, "Muon only supports 2D parameters"),
        (lambda p: optim.SGD({p}, lr=0.1).add_param_group({"params": {p}}), TypeError, "ordered collections"),
        (lambda p: optim.SGD(["x"], lr=0.1), TypeError, "can only optimize Tensors, but one of the params is str"),
    ],
)
def test_refusals(make, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        make(torch.zeros(2, requires_grad=True))


def test_hooks_run_once_around_the_outermost_step():
    seen = []

    class Twice(optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    p, loss = problem()
    opt = Twice([p], lr=0.01)
    handles = [
        opt.register_step_pre_hook(lambda o, args, kwargs: seen.append("before")),
        opt.register_step_post_hook(lambda o, args, kwargs: seen.append("after")),
        optim.optimizer.register_optimizer_step_post_hook(lambda o, args, kwargs: seen.append("global")),
    ]
    steps(opt, loss, 1)
    assert seen == ["before", "after", "global"]
    for h in handles:
        h.remove()
    steps(opt, loss, 1)
    assert len(seen) == 3


def test_state_dict_hooks():
    p, _ = problem()
    opt = optim.SGD([p], lr=0.1)
    opt.register_state_dict_post_hook(lambda o, d: {**d, "extra": 1})
    opt.register_load_state_dict_pre_hook(lambda o, d: {k: v for k, v in d.items() if k != "extra"})
    kept = opt.state_dict()
    assert kept["extra"] == 1 and kept["state"] == {}
    opt.load_state_dict(kept)
    with pytest.raises(ValueError, match="different number of parameter groups"):
        opt.load_state_dict({"state": {}, "param_groups": []})


def test_zero_grad_and_closure():
    p, loss = problem()
    opt = optim.SGD([p], lr=0.1)
    loss().backward()
    opt.zero_grad(set_to_none=False)
    assert p.grad.abs().sum().item() == 0
    opt.zero_grad()
    assert p.grad is None

    def closure():
        assert torch.is_grad_enabled()
        result = loss()
        result.backward()
        return result

    assert opt.step(closure).item() > 0


def test_swap_in_other_parameters():
    p, loss = problem()
    opt = optim.Adam([p], lr=0.1)
    steps(opt, loss, 2)
    other = p.detach().clone().requires_grad_()
    other.grad = torch.ones_like(other)
    kept = p.detach().clone()
    with optim.swap_in_optimizer_params_and_state(opt, {"p": other}, opt.state_dict()):
        opt.step()
    assert torch.equal(p.detach(), kept) and not torch.equal(other.detach(), kept)
    assert opt.param_groups[0]["params"][0] is p
