"""Captured modules: their tables, hooks, flags and state; optimizers; what training does."""

import pytest

import pullback as torch
from pullback import nn
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()


@torch.compiler.disable
def note(log, value):
    log.append(value)


@case
def attributes_of_all_kinds():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(3, 3)
            self.register_buffer("count", torch.zeros(()))
            self.scale, self.names, self.table = 2, ["a"], {"k": 1}
            self.fn = lambda x: x + 1
            self.plain = [nn.Linear(3, 3)]

        def forward(self, x):
            self.scale += 1
            self.names.append(str(self.scale))
            self.table["k"] += 1
            self.count += 1
            return self.fn(self.lin(x)) * self.scale + self.plain[0](x) + self.table["k"]

    m = M()
    return m, lambda i: (x_of(i),), lambda: (m.scale, m.names, m.table, m.count)


@case
def buffer_replaced():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            self.mean = self.mean * 0.9 + x * 0.1
            return x - self.mean

    m = M()
    return m, lambda i: (x_of(i),), lambda: (m.mean, list(m._buffers))


@case
def attribute_becomes_buffer_and_parameter():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = None
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x):
            if self.cache is None:
                self.cache = x * 2
            return self.cache * self.w

    m = M()
    return m, lambda i: (x_of(i),), lambda: (m.cache, list(m._parameters), "cache" in m.__dict__)


@case
def containers_of_modules():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(3, 3) for _ in range(3)])
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.ReLU()})
            self.body = nn.Sequential(nn.Linear(3, 3), nn.Tanh())
            self.ws = nn.ParameterList([nn.Parameter(torch.ones(3))])
            self.wd = nn.ParameterDict({"w": nn.Parameter(torch.ones(3) * 2)})

        def forward(self, x, which):
            for i, layer in enumerate(self.layers):
                x = layer(x) + i
            x = self.layers[-1](x) + self.layers[0:2][1](x)
            for name, head in self.heads.items():
                x = head(x) + len(name)
            x = self.heads[which](x) if which in self.heads else x
            return self.body(x) * self.ws[0] * self.wd["w"] + self.body[0](x) + len(self.layers)

    m = M()
    return m, lambda i: (x_of(i), "abz"[i])


@case
def parameters_iterated():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x):
            total = 0
            for name, p in self.named_parameters():
                total = total + p.sum() * len(name)
            for m in self.children():
                x = m(x)
            return (
                x + total,
                len(list(self.parameters())),
                [n for n, _ in self.named_modules()],
                sorted(self.state_dict()),
            )

    m = M()
    return m, lambda i: (x_of(i),)


@case
def training_flag():
    m = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

    def arguments(i):
        m.train(i != 1)
        torch.manual_seed(i)
        return (x_of(i, 4, 3),)

    return m, arguments, lambda: (m.training, m[1].running_mean, m[1].num_batches_tracked)


@case
def mode_switched_inside():
    m = nn.Dropout(0.5)

    def f(x):
        m.eval()
        y = m(x)
        m.train()
        return y, m.training

    return f, lambda i: (x_of(i),), lambda: m.training


@case
def hooks_added_between_calls():
    m, log = nn.Linear(3, 3), []
    handles = []

    def f(x):
        return m(x) * 2

    def arguments(i):
        if i == 1:
            handles.append(m.register_forward_hook(lambda mod, args, out: log.append("after") or out + 1))
            handles.append(m.register_forward_pre_hook(lambda mod, args: (args[0] * 3,)))
        elif i == 2:
            handles[0].remove()
        return (x_of(i),)

    return f, arguments, lambda: log


@case
def hooks_on_compiled_module():
    m, log = nn.Linear(3, 3), []
    m.register_forward_hook(lambda mod, args, kwargs, out: log.append(len(kwargs)) or out * 2, with_kwargs=True)
    return m, lambda i: (x_of(i),), lambda: log


@case
def module_called_with_keywords():
    class M(nn.Module):
        def forward(self, x, *, k=1, **more):
            return x * k + sum(more.values())

    m = M()

    def f(x):
        return m(x) + m(x, k=2) + m(x=x, k=3, z=4) + m.forward(x)

    return f, lambda i: (x_of(i),)


@case
def module_argument_changes():
    ms = [nn.Linear(3, 3), nn.Linear(3, 3), nn.ReLU()]

    def f(m, x):
        return m(x) * 2

    return f, lambda i: (ms[i], x_of(i))


@case
def parameter_replaced_between_calls():
    m = nn.Linear(3, 3)

    def f(x):
        return m(x)

    def arguments(i):
        if i == 1:
            m.weight = nn.Parameter(torch.eye(3) * 5)
        elif i == 2:
            m.weight.data.mul_(2)
        return (x_of(i),)

    return f, arguments


@case
def submodule_replaced_between_calls():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x):
            return self.act(x)

    m = M()

    def arguments(i):
        m.act = [nn.ReLU(), nn.Tanh(), nn.ReLU()][i]
        return (x_of(i),)

    return m, arguments


@case
def requires_grad_changes():
    m = nn.Linear(3, 3)

    def f(x):
        y = m(x)
        return y.requires_grad, y.detach()

    def arguments(i):
        m.requires_grad_(i != 1)
        return (x_of(i),)

    return f, arguments


@case
def inherited_forward_with_super():
    class A(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x):
            return x * self.w

    class B(A):
        def forward(self, x):
            return super().forward(x) + 1

    return B(), lambda i: (x_of(i),)


@case
def module_with_break():
    log = []

    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        def forward(self, x):
            y = x * self.w
            note(log, "inner")
            return y + 1

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            y = self.inner(x)
            return self.inner(y) * self.calls

    m = M()
    return m, lambda i: (x_of(i),), lambda: (log, m.calls)


@case
def module_getattr():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.inner, name)

        def forward(self, x):
            return x @ self.weight + self.inner.bias

    return M(), lambda i: (x_of(i, 2, 3),)


@case
def property_of_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))

        @property
        def doubled(self):
            return self.w * 2

        @doubled.setter
        def doubled(self, value):
            self.k = value

        def forward(self, x):
            self.doubled = 4
            return x * self.doubled + self.k

    m = M()
    return m, lambda i: (x_of(i),), lambda: m.k


@case
def missing_attribute_of_module():
    class M(nn.Module):
        def forward(self, x):
            try:
                return x * self.nothing
            except AttributeError as error:
                return x, str(error), hasattr(self, "no"), getattr(self, "no", 3)

    return M(), lambda i: (x_of(i),)


@case
def module_made_inside():
    def f(x):
        torch.manual_seed(0)
        return nn.Linear(3, 2)(x)

    return f, lambda i: (x_of(i),)


@case
def functional_call_of_module():
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(3))
            self.scale = 1

        def forward(self, x):
            return x * self.w * self.scale

    m = M()

    def f(x):
        return torch.func.functional_call(m, {"w": x * 2}, (x,))

    def arguments(i):
        m.scale = i + 1
        return (x_of(i),)

    return f, arguments


@case
def training_step():
    m = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    opt = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    def f(x):
        opt.zero_grad()
        loss = m(x).pow(2).mean()
        loss.backward()
        opt.step()
        return loss.detach()

    return (
        f,
        lambda i: (x_of(i, 2, 3),),
        lambda: ([p.detach() for p in m.parameters()], [p.grad for p in m.parameters()]),
    )


@case
def training_step_with_adam_and_schedule():
    m = nn.Linear(3, 1)
    opt = torch.optim.Adam(m.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 1, 0.5)

    def f(x):
        loss = m(x).pow(2).mean()
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        schedule.step()
        return loss.item()

    return f, lambda i: (x_of(i, 2, 3),), lambda: ([p.detach() for p in m.parameters()], opt.param_groups[0]["lr"])


@case
def gradient_clipping():
    m = nn.Linear(3, 1)

    def f(x):
        m.zero_grad()
        m(x).sum().backward()
        norm = nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        return norm.detach()

    return f, lambda i: (x_of(i, 2, 3),), lambda: [p.grad for p in m.parameters()]


@case
def embedding_and_attention():
    torch.manual_seed(0)
    e, a = nn.Embedding(10, 4), nn.MultiheadAttention(4, 2, batch_first=True)

    def f(ids):
        x = e(ids)
        return a(x, x, x)[0].detach()

    return f, lambda i: (torch.tensor([[1, 2, 3 + i]]),)


@case
def lstm_state():
    m = nn.LSTM(3, 4, batch_first=True)
    state = [None]

    def f(x):
        out, state[0] = m(x, state[0])
        return out.detach()

    return f, lambda i: (x_of(i, 1, 2, 3),), lambda: [None if s is None else [t.detach() for t in s] for s in state]


@case
def distributions_from_outside():
    def f(d, x):
        return d.log_prob(x), d.mean

    return f, lambda i: (torch.distributions.Normal(torch.tensor(float(i)), torch.tensor(1.0 + i)), x_of(i))


@case
def distributions_inside():
    def f(x):
        d = torch.distributions.Normal(x, 1.0)
        torch.manual_seed(0)
        return d.log_prob(x + 1), d.rsample()

    return f, lambda i: (x_of(i),)


@case
def module_given_to_native_functions():
    from pullback.utils.checkpoint import checkpoint

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.calls = 1, 0

        def forward(self, x):
            self.calls += 1
            return x * self.scale

    m = M()

    def f(x):
        return checkpoint(m, x, use_reentrant=False), torch.func.vmap(m)(x), torch.func.grad(lambda v: m(v).sum())(x)

    def arguments(i):
        m.scale = i + 1
        return (x_of(i),)

    return f, arguments, lambda: m.calls


@case
def hooks_added_and_removed_inside():
    m = nn.Linear(3, 3)

    def f(x):
        handle = m.register_forward_hook(lambda mod, args, out: out * 2)
        y = m(x)
        handle.remove()
        return y, m(x), len(m._forward_hooks)

    return f, lambda i: (x_of(i),)


@case
def attribute_of_module_deleted():
    m = nn.Linear(3, 3)
    m.extra = 1

    def f(x):
        if hasattr(m, "extra"):
            del m.extra
            return m(x)
        m.extra = 2
        return m(x) * 2

    return f, lambda i: (x_of(i),), lambda: hasattr(m, "extra")


@case
def state_dict_loaded_inside():
    m = nn.Linear(3, 3)

    def f(x):
        m.load_state_dict({k: v * 2 for k, v in m.state_dict().items()})
        return m(x)

    return f, lambda i: (x_of(i),), lambda: [p.detach() for p in m.parameters()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_modules(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_modules_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)
