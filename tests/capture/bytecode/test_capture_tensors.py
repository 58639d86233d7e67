"""Captured programs and tensors: views, writes, attributes, gradients, sizes, transforms, randomness."""

import gc
import weakref

import pytest

import pullback as torch
from pullback import nn
from tests.capture.bytecode.capture_cases import BACKENDS, Cases, x_of

case = Cases()


@torch.compiler.disable
def note(log, value):
    log.append(value)


@case(graphs=1)
def argument_returned():
    def f(x, y):
        return x, [y, x], y + 1

    return f, lambda i: (x_of(i), x_of(i + 1))


@case
def results_shared():
    def f(x):
        y = x * 2
        return y, [y], {"y": y, "v": y.view(-1)}

    return f, lambda i: (x_of(i),)


@case
def views_of_arguments():
    def f(x):
        v = x[1:]
        w = x.view(3, 1)
        return v, w, x.t(), x.detach()

    def g(x):
        v, w, t, d = f(x)
        v.add_(1)
        d.mul_(2)
        return v, w, t, d

    return g, lambda i: (x_of(i),)


@case
def view_returned_then_written_outside():
    kept = []

    def f(x):
        return x[1:], x * 1

    def arguments(i):
        kept.append(x_of(i))
        return (kept[-1],)

    return f, arguments, lambda: kept


@case
def writes_to_arguments():
    def f(x, y):
        x.add_(1)
        x[0] = 5
        y[1:].mul_(2)
        x += y
        torch.sin(y, out=y)
        return x * 2

    return f, lambda i: (x_of(i), x_of(i + 1))


@case
def writes_to_tensors_in_containers():
    state = {"t": torch.zeros(3), "l": [torch.ones(3)]}

    def f(x):
        state["t"].add_(x)
        state["l"][0] = state["l"][0] + x
        state["l"].append(state["t"] * 2)
        return state["t"] + state["l"][0]

    return f, lambda i: (x_of(i),), lambda: state


@case
def write_before_and_after_break():
    log = []

    def f(x):
        x.add_(1)
        note(log, x.clone())
        x.mul_(2)
        note(log, x.clone())
        return x

    return f, lambda i: (x_of(i),), lambda: log


@case
def write_that_fails_half_way():
    def f(x, y):
        x.add_(1)
        x.add_(y)
        return x

    return f, lambda i: (x_of(i), x_of(i, 3 + i % 2))


@case
def aliased_arguments():
    def f(a, b):
        a.add_(1)
        return a + b, b * 2

    def arguments(i):
        base = x_of(i, 6)
        return (base[:3], base[3:]) if i == 0 else (base[:3], base[1:4]) if i == 1 else (base[:3], base[:3])

    return f, arguments


@case
def attributes_of_tensors():
    kept = torch.ones(3)

    def f(x):
        x.tag = 3
        kept.count = getattr(kept, "count", 0) + 1
        y = x * 2
        y.name_of_mine = "y"
        return y, x.tag * kept.count, hasattr(x, "nope"), y.name_of_mine

    return f, lambda i: (x_of(i),), lambda: kept


@case
def metadata():
    def f(x):
        return (
            x.shape, x.dtype, x.device, x.ndim, x.numel(), x.stride(), x.is_contiguous(), x.requires_grad, x.is_leaf, len(x), x.size(0),
            x.layout, x.element_size(), x.dim() == 2, tuple(x.size()), x.T.shape, isinstance(x.shape, tuple), x.storage_offset(),
        )  # fmt: skip

    return f, lambda i: (x_of(i, 2 + i, 3),)


@case
def shapes_in_control_flow():
    def f(x):
        n, m = x.shape
        if n > m:
            x = x.t()
        out = [x.sum() for _ in range(n)]
        return x.reshape(-1, 1) * n, len(out), n * m, [n] * m, f"{n}x{m}"

    return f, lambda i: (x_of(i, 2 + i, 3),)


@case(dynamic=True)
def shapes_all_symbols():
    def f(x, k):
        n = x.shape[0]
        table = {2: "two", 3: "three", 4: "four"}
        return (
            x.view(n, -1)[: n - 1] * k,
            table[n],
            torch.zeros(n, k),
            n + k,
            str(n),
            n == 3,
            max(n, 3),
            n / 2,
            range(n),
        )

    return f, lambda i: (x_of(i, 2 + i, 3), 4 + i)


@case(dynamic=False)
def shapes_all_constants():
    def f(x):
        return x.sum() * x.shape[0]

    return f, lambda i: (x_of(i, 2 + i),)


@case
def shape_kept_outside():
    seen = []

    def f(x):
        seen.append(x.shape[0])
        seen.append(x.shape)
        return x * 2, x.shape[0] * 2

    return f, lambda i: (x_of(i, 2 + i),), lambda: seen


@case
def dtypes_change():
    def f(x):
        return x * 2 + 1, x.dtype

    return f, lambda i: (x_of(i).to([torch.float32, torch.float64, torch.int32][i]),)


@case
def layout_changes():
    def f(x):
        return x.reshape(-1) * 2, x.is_contiguous()

    return f, lambda i: (x_of(i, 2, 3) if i != 1 else x_of(i, 3, 2).t(),)


@case
def gradients_read_and_written():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        if w.grad is not None:
            old = w.grad * 2
        else:
            old = None
        w.grad = x * 2
        return old, w.grad + 1

    return f, lambda i: (x_of(i),), lambda: w


@case
def backward_inside():
    w = torch.ones(3, requires_grad=True)

    def f(x):
        loss = (w * x).pow(2).sum()
        loss.backward()
        g = w.grad.clone()
        if len(x) > 5:
            w.grad = None
        return g, loss.detach()

    return f, lambda i: (x_of(i),), lambda: w.grad


@case
def autograd_grad_inside():
    def f(x):
        x = x.detach().requires_grad_()
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        return g.detach(), h

    return f, lambda i: (x_of(i),)


@case
def gradients_through_the_program():
    def f(x, w):
        y = (x * w).sin()
        return y.sum(), y.detach()

    def run(x, w):
        loss, y = f(x, w)
        loss.backward()
        return loss.detach(), y

    return run, lambda i: (x_of(i), torch.ones(3, requires_grad=True))


@case
def requires_grad_switched():
    def f(x):
        y = x * 2
        y.requires_grad_()
        z = (y * 3).sum()
        return z.requires_grad, x.requires_grad, y.is_leaf

    return f, lambda i: (x_of(i),)


@case
def hooks_on_tensors():
    log = []

    def f(x):
        y = x * 2
        y.register_hook(lambda g: g * 10)
        return y.sum()

    def run(x):
        x = x.requires_grad_()
        f(x).backward()
        return x.grad

    return run, lambda i: (x_of(i),), lambda: log


@case
def custom_function():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, k):
            ctx.save_for_backward(x)
            ctx.k = k
            return x**3 * k

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2 * ctx.k, None

    def f(x, k):
        return Cube.apply(x, k).sum()

    def run(x, k):
        x.requires_grad_()
        loss = f(x, k)
        loss.backward()
        return loss.detach(), x.grad

    return run, lambda i: (x_of(i), i + 1)


@case
def custom_function_compiled():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 7 + ctx.saved_tensors[0]

    w = torch.ones(3, requires_grad=True)

    def f(x):
        return Twice.apply(w * x).sum().detach(), Twice.apply(w).requires_grad

    return f, lambda i: (x_of(i),)


@case
def checkpointed():
    from pullback.utils.checkpoint import checkpoint

    m = nn.Linear(3, 3)

    def f(x):
        return checkpoint(lambda v: m(v).tanh(), x, use_reentrant=False).detach()

    return f, lambda i: (x_of(i),)


@case
def function_transforms():
    k = 2

    def g(x):
        return (x.sin() * k).sum()

    def f(x):
        return (
            torch.func.grad(g)(x),
            torch.func.vmap(lambda v: v * k)(x),
            torch.func.jvp(g, (x,), (x,))[1],
            torch.func.vjp(g, x)[0],
        )

    def arguments(i):
        nonlocal k
        k = i + 2
        return (x_of(i),)

    return f, arguments


@case
def randomness():
    def f(x):
        return x + torch.rand(3), torch.randn_like(x), torch.randint(0, 5, (2,)), torch.randperm(4)

    return f, lambda i: (x_of(i),)


@case
def seed_set_inside():
    def f(x):
        torch.manual_seed(5)
        a = torch.rand(3)
        b = torch.nn.functional.dropout(x, 0.5)
        return a, b, torch.initial_seed()

    return f, lambda i: (x_of(i),)


@case
def generator_object():
    g = torch.Generator().manual_seed(1)

    def f(x):
        return x + torch.rand(3, generator=g)

    return f, lambda i: (x_of(i),), lambda: g.initial_seed()


@case
def tensors_made_of_data():
    def f(x, n, values):
        return (
            torch.tensor([n, 2.0]) + x[:2],
            torch.tensor(values),
            torch.full((2,), n),
            torch.arange(n),
            torch.as_tensor(values) * 2,
            torch.zeros(n, 2),
        )

    return f, lambda i: (x_of(i), i + 1, [i, 2, 3])


@case
def tensor_made_of_outside_list():
    values = [1.0, 2.0]

    def f(x):
        values.append(float(len(values)))
        return torch.tensor(values) * 2, x

    return f, lambda i: (x_of(i),), lambda: values


@case
def constants_closed_over():
    c = torch.tensor([1.0, 2.0, 3.0])

    def f(x):
        return x * c

    def arguments(i):
        c.add_(i)
        return (x_of(i),)

    return f, arguments


@case
def indexing():
    def f(x, idx, mask):
        y = x.clone()
        y[idx] = 0
        y[mask] = 7
        return x[idx], y, x[..., None], x[-1], x[::2], x[[0, 2]], torch.where(mask, x, -x)

    return f, lambda i: (x_of(i), torch.tensor([i % 3, 0]), x_of(i) > 0)


@case
def data_dependent_sizes():
    def f(x):
        picked = x[x > 0]
        where = torch.nonzero(x > 0)
        return picked * 2, where.shape[0], picked.sum(), x.unique()

    return f, lambda i: (x_of(i),)


@case
def comparison_and_identity():
    def f(x, y):
        return x is y, x is x, (x == y).all(), torch.equal(x, y), x is not None, torch.is_tensor(x)

    def arguments(i):
        x = x_of(i)
        return x, (x if i == 1 else x + 1)

    return f, arguments


@case
def tensor_methods_given_as_functions():
    def f(x):
        ops = [torch.sin, torch.Tensor.cos, lambda v: v + 1, x.mul]
        return [op(x) for op in ops], list(map(torch.abs, [x, -x])), sum(map(torch.Tensor.sum, [x, x]))

    return f, lambda i: (x_of(i),)


@case
def lists_and_stacks():
    def f(xs):
        return (
            torch.stack(xs),
            torch.cat(xs, 0),
            xs[0].split(1),
            torch.chunk(xs[-1], 2),
            [a * b for a, b in zip(xs, reversed(xs))],
        )

    return f, lambda i: ([x_of(k) for k in range(2 + i)],)


@case
def default_dtype_changes():
    def f(x):
        return torch.ones(2) * 2, x.double() + torch.tensor(0.5)

    def arguments(i):
        torch.set_default_dtype(torch.float64 if i == 1 else torch.float32)
        return (x_of(i).float(),)

    def state():
        torch.set_default_dtype(torch.float32)

    return f, arguments, state


@case
def tensor_subclass_argument():
    class Mine(torch.Tensor):
        def doubled(self):
            return self * 2

    def f(x):
        return x.doubled() if isinstance(x, Mine) else x * 3

    return f, lambda i: (x_of(i).as_subclass(Mine) if i != 1 else x_of(i),)


@case
def parameter_kept_in_list():
    ps = [nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3) * 2)]

    def f(x):
        ps.reverse()
        return x * ps[0].detach(), isinstance(ps[0], nn.Parameter)

    return f, lambda i: (x_of(i),), lambda: [p.detach() for p in ps]


@case
def data_assigned():
    w = torch.ones(3)

    def f(x):
        w.data = x * 2
        return w + 1

    return f, lambda i: (x_of(i),), lambda: w


@case
def callable_object_given_to_vmap():
    class Scale:
        k = 1

        def __call__(self, x):
            return x * self.k

    s = Scale()

    def f(x):
        return torch.func.vmap(s)(x)

    def arguments(i):
        s.k = i + 1
        return (x_of(i),)

    return f, arguments


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_tensors(make, backend: str) -> None:
    case.run(make, backend)


@pytest.mark.parametrize("make", case, ids=lambda make: make.__name__)
def test_tensors_with_frames_kept(make) -> None:
    case.run(make, "eager", nested=True)


def test_the_gradient_is_one_under_both_of_its_names():
    def f(x, y):
        x._grad = y + 1
        y.grad = x + 2
        return x.grad * 1, y._grad * 1

    tensors = torch.ones(2), torch.ones(2)
    out = torch.compile(f, backend="eager", fullgraph=True)(*tensors)
    assert [t.tolist() for t in (*out, tensors[0].grad, tensors[1].grad)] == [[2.0, 2.0], [3.0, 3.0]] * 2


def test_a_capture_keeps_no_state_of_an_optimizer():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adadelta(model.parameters())
    step = torch.compile(lambda: optimizer.step(), backend="eager")
    model(torch.ones(2)).sum().backward()
    gc.disable()
    try:
        step()
        state = weakref.ref(optimizer.state[model.weight]["square_avg"])
        optimizer = None
        assert state() is None
    finally:
        gc.enable()


def moved(x, y):
    x.data = y
    y.mul_(3)
    x.add_(1)
    return x + 0, x


def emptied(x, y):
    x.data = y
    y.data = torch.zeros(0)
    return x, y


def moved_twice(x, y):
    before = x * 2
    x.data = y * 3
    after = x + 1
    x.data = after
    return before, after, x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("f", [moved, emptied, moved_twice])
def test_a_tensor_from_outside_is_given_other_memory(f, backend):
    compiled = torch.compile(f, backend=backend, fullgraph=True)
    for _ in range(2):
        theirs, ours = ([torch.ones(6), torch.full((6,), 2.0)] for _ in range(2))
        want, got = f(*theirs), compiled(*ours)
        assert [t.tolist() for t in (*got, *ours)] == [t.tolist() for t in (*want, *theirs)]
        assert got[-1] is ours[1 if f is emptied else 0]
        shares = [a.data_ptr() == b.data_ptr() for a, b in (theirs, ours)]
        assert shares[0] == shares[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_gradients_of_a_tensor_that_was_given_other_memory(backend):
    def f(x, y):
        x.data = y
        return (x * x).sum()

    x, y = torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    torch.compile(f, backend=backend)(x, y).backward()
    assert x.grad.tolist() == [6.0, 6.0]
