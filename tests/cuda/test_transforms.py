"""What stands above operators, on CUDA tensors: function transforms, graphs, checkpoints, other layouts, recurrence."""

from __future__ import annotations

import copy

import pullback as torch
from pullback import nn
from pullback.capture.front.backends import lookup_backend
from pullback.nn import functional as F


def close(a, b, tolerance=1e-4):
    assert a.is_cuda, a.device
    assert torch.allclose(a.cpu(), b, rtol=tolerance, atol=tolerance), (a, b)


def test_function_transforms(cuda):
    def f(x):
        return (x.sin() * x).sum()

    x = torch.randn(4, 3)
    on = x.to(cuda)
    close(torch.func.vmap(torch.func.grad(f))(on), torch.func.vmap(torch.func.grad(f))(x))
    close(torch.func.hessian(f)(on[0]), torch.func.hessian(f)(x[0]))
    close(torch.func.jvp(torch.tanh, (on,), (on,))[1], torch.func.jvp(torch.tanh, (x,), (x,))[1])
    close(torch.func.jacrev(torch.exp)(on[0]), torch.func.jacrev(torch.exp)(x[0]))


def test_compiled_functions(cuda):
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    theirs = copy.deepcopy(ours).cuda()
    for backend in ("eager", "aot_eager", "inductor"):
        torch.compiler.reset()
        counted = []

        def seen(gm, args, counted=counted, backend=backend):
            counted.append(gm)
            return lookup_backend(backend)(gm, args)

        step = torch.compile(lambda x: theirs(x).square().mean(), backend=seen)
        for size in (3, 3, 3):
            x = torch.randn(size, 4)
            theirs.zero_grad()
            ours.zero_grad()
            got, want = step(x.cuda()), ours(x).square().mean()
            got.backward()
            want.backward()
            close(got.detach(), want.detach())
            close(theirs[0].weight.grad, ours[0].weight.grad)
        assert len(counted) == 1, backend


def test_a_compiled_training_step(cuda):
    torch.manual_seed(0)
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), 0.05)
    x, y = torch.randn(32, 4, device=cuda), torch.randn(32, 1, device=cuda)

    @torch.compile
    def step():
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    losses = [step().item() for _ in range(8)]
    assert losses[-1] < losses[0] and all(p.is_cuda for p in model.parameters())


def test_checkpoints_and_saved_tensors(cuda):
    x = torch.randn(50, device=cuda, requires_grad=True)
    for reentrant in (False, True):
        x.grad = None
        y = torch.utils.checkpoint.checkpoint(lambda t: F.dropout(t * t, 0.5), x, use_reentrant=reentrant)
        y.sum().backward()  # what was dropped in the forward is dropped in the recomputation
        close(x.grad, torch.where(y.detach().cpu() != 0, 4 * x.detach().cpu(), torch.zeros(())))
    with torch.random.fork_rng():
        first = torch.rand(3, device=cuda)
    assert torch.rand(3, device=cuda).equal(first)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    (g,) = torch.autograd.grad(y.sum(), x)
    close(g, 2 * x.detach().cpu())


def test_sparse(cuda):
    dense = torch.tensor([[0.0, 1, 0], [2, 0, 3]])
    sparse = dense.cuda().to_sparse()
    assert sparse.is_cuda and sparse.is_sparse and sparse.to_dense().cpu().equal(dense)
    close(torch.sparse.mm(sparse, torch.ones(3, 2, device=cuda)), dense @ torch.ones(3, 2))
    close((sparse + sparse).to_dense(), dense * 2)
    close(dense.cuda().to_sparse_csr() @ torch.ones(3, 2, device=cuda), dense @ torch.ones(3, 2))
    assert sparse.cpu().to_dense().equal(dense) and dense.to_sparse().cuda().to_dense().is_cuda


def test_recurrence_and_distributions(cuda):
    torch.manual_seed(0)
    for kind in (nn.LSTM, nn.GRU):
        ours = kind(3, 4, 2, batch_first=True, bidirectional=True)
        theirs = copy.deepcopy(ours).cuda()
        x = torch.randn(2, 5, 3)
        close(theirs(x.cuda())[0].detach(), ours(x)[0].detach())
    d = torch.distributions.Normal(torch.zeros(3, device=cuda), torch.ones(3, device=cuda))
    assert d.rsample((4,)).is_cuda and d.log_prob(d.sample()).is_cuda
    assert torch.distributions.Categorical(logits=torch.zeros(3, device=cuda)).sample((5,)).is_cuda


def test_tensors_of_other_devices_keep_their_errors(cuda):
    model = nn.Linear(3, 2).cuda()
    try:
        model(torch.ones(1, 3))
    except RuntimeError as error:
        assert "two devices" in str(error)
    else:
        raise AssertionError("a model on one device took an input of another")


def test_data_loader_pins(cuda):
    data = torch.utils.data.TensorDataset(torch.arange(8.0), torch.arange(8))
    for x, y in torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True):
        assert x.is_pinned() and y.is_pinned() and x.cuda(non_blocking=True).is_cuda
