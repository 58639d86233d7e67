"""What modules refuse, in which words, and how they write themselves."""

import pytest

import pullback as torch
from pullback import nn
from pullback.nn.batchnorm import _BatchNorm
from pullback.nn.loss import LinearCrossEntropyOptions


def check(table):
    """Each row is a call, the error it must raise and words of its message."""
    for call, error, words in table:
        with pytest.raises(error, match=words):
            call()


def test_shapes_of_unflatten():
    check(
        [
            (lambda: nn.Unflatten(1, 6), TypeError, "must be a tuple of ints, but found type int"),
            (lambda: nn.Unflatten(1, (2, "a")), TypeError, "element of type str at pos 1"),
            (lambda: nn.Unflatten("c", [2]), TypeError, "must be a tuple of tuples, but found type list"),
            (lambda: nn.Unflatten("c", (("a", 2), 3)), TypeError, "element of type int at pos 1"),
            (lambda: nn.Unflatten(1.5, (2, 3)), TypeError, "invalid argument type for dim parameter"),
        ]
    )
    assert repr(nn.Unflatten(1, (2, 3))) == "Unflatten(dim=1, unflattened_size=(2, 3))"
    named = torch.ones(2, 6, names=("n", "c"))
    by_name = nn.Unflatten("c", (("a", 2), ("b", 3)))
    assert by_name(named).names == ("n", "a", "b") and by_name(named).shape == (2, 2, 3)
    with pytest.raises(RuntimeError, match="Name 'c' not found in"):
        by_name(torch.ones(2, 6, names=("n", "d")))


def test_arguments_of_factories():
    assert nn.factory_kwargs(None) == {}
    assert nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"device": 2}}) == {"dtype": 1, "device": 2}
    check(
        [
            (lambda: nn.factory_kwargs({"size": 3}), TypeError, "unexpected kwargs {'size'}"),
            (lambda: nn.factory_kwargs({"dtype": 1, "factory_kwargs": {"dtype": 2}}), TypeError, "specified twice"),
        ]
    )


def test_losses():
    with pytest.warns(UserWarning, match="size_average and reduce"):
        assert nn.MSELoss(size_average=False).reduction == "sum"
    check(
        [
            (lambda: LinearCrossEntropyOptions(acc_policy="fast"), ValueError, "invalid acc_policy: 'fast'"),
            (lambda: LinearCrossEntropyOptions(chunking_method="ratio"), ValueError, "invalid chunking_method"),
            (lambda: LinearCrossEntropyOptions(chunking_method="aspect_ratio:0"), ValueError, "'aspect_ratio:0'"),
            (lambda: LinearCrossEntropyOptions(batch_chunk_size=0), ValueError, "must be positive int or None, got 0"),
            (lambda: LinearCrossEntropyOptions(acc_dtype=torch.int8), ValueError, "acc_dtype must be one of"),
            (lambda: nn.LinearCrossEntropyLoss(2, 3, weight=torch.ones(2)), RuntimeError, r"to be \(3,\), got \(2,\)"),
            (lambda: nn.LinearCrossEntropyLoss(2, 3, label_smoothing=2), RuntimeError, "in range \\[0, 1\\], got 2"),
        ]
    )
    assert LinearCrossEntropyOptions(chunking_method="aspect_ratio:2").chunking_method == "aspect_ratio:2"


def test_a_linear_layer_and_its_loss():
    torch.manual_seed(0)
    loss = nn.LinearCrossEntropyLoss(4, 3, bias=True, label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 3.0]))
    x, y = torch.randn(5, 4), torch.tensor([0, 2, 1, 1, 0])
    expected = nn.functional.cross_entropy(loss.linear(x), y, loss.weight, label_smoothing=0.1)
    assert torch.allclose(loss(x, y), expected)
    assert "in_features=4, num_classes=3, out_features=(), bias=True, reduction=mean" in repr(loss)


def test_tables_of_rows():
    table = nn.Embedding(5, 2, padding_idx=-1, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True)
    assert repr(table) == (
        "Embedding(5, 2, padding_idx=4, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, sparse=True)"
    )
    bag = nn.EmbeddingBag(5, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, padding_idx=0)
    assert repr(bag) == (
        "EmbeddingBag(5, 2, max_norm=1.0, norm_type=1.0, scale_grad_by_freq=True, mode='mean', padding_idx=0)"
    )
    with pytest.raises(AssertionError, match="Shape of weight does not match"):
        nn.Embedding(5, 2, _weight=torch.ones(4, 2))
    bag = nn.EmbeddingBag.from_pretrained(torch.eye(3), mode="sum")
    assert bag(torch.tensor([0, 2, 2]), torch.tensor([0, 1])).tolist() == [[1, 0, 0], [0, 0, 2]]
    assert not bag.weight.requires_grad


def test_classes_that_are_few():
    check(
        [
            (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, []), ValueError, "cutoffs should be a sequence"),
            (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]), ValueError, "sorted in an increasing order"),
        ]
    )
    head = nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6], div_value=2.0)
    before = head.tail[0][0].weight.clone()
    head.reset_parameters()
    assert not torch.equal(before, head.tail[0][0].weight)
    x = torch.randn(4)
    alone = head(x, torch.tensor(7))
    assert alone.output.shape == () and torch.allclose(alone.output, head(x[None], torch.tensor([7])).output[0])
    assert torch.allclose(alone.output, head.log_prob(x[None])[0, 7], atol=1e-6)
    check(
        [
            (lambda: head(x, torch.ones(1, 1).long()), RuntimeError, "multi-target not supported"),
            (lambda: head(torch.ones(2, 4), torch.tensor([1])), RuntimeError, "same size in the batch dimension"),
            (lambda: head(torch.ones(1, 4), torch.tensor(1)), RuntimeError, "0D target tensor expects 1D input"),
        ]
    )


def test_layers_to_fuse():
    bn = nn.BatchNorm1d(3)
    linear = nn.Linear(2, 4)
    fuse = nn.utils.fusion.fuse_linear_bn_eval
    check([(lambda: fuse(linear, bn), AssertionError, "Fusion only for eval!")])
    linear.eval(), bn.eval()
    check(
        [
            (lambda: fuse(linear, bn), AssertionError, "got linear.out_features=4 and bn.num_features=3"),
            (lambda: fuse(nn.Linear(2, 3).eval(), nn.BatchNorm1d(3, track_running_stats=False).eval()), AssertionError,
             "must not be None"),
        ]
    )  # fmt: skip
    conv, norm = nn.ConvTranspose1d(2, 3, 2, bias=False).eval(), nn.BatchNorm1d(3).eval()
    norm.running_mean.copy_(torch.tensor([1.0, -1.0, 0.5]))
    x = torch.randn(2, 2, 4)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm, transpose=True)
    assert torch.allclose(fused(x), norm(conv(x)), atol=1e-5) and conv.bias is None


def test_modules_without_drawn_weights():
    class Odd(nn.Module):
        pass

    check(
        [
            (lambda: nn.utils.skip_init(dict), RuntimeError, "Expected a Module; got <class 'dict'>"),
            (lambda: nn.utils.skip_init(Odd), RuntimeError, "must support a 'device' arg"),
        ]
    )


def test_implementations_of_attention():
    from pullback.nn import attention

    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list"):
        with attention.sdpa_kernel("math"):
            pass
    assert repr(attention.SDPBackend.MATH) == "<SDPBackend.MATH: 0>"
    check(
        [
            (lambda: attention.activate_flash_attention_impl("FA9"), ValueError, "Unknown flash attention impl 'FA9'"),
            (lambda: attention.activate_flash_attention_impl("FA3"), ImportError, "'FA3' is not installed"),
        ]
    )
    seen = []
    attention.register_flash_attention_impl("mine", register_fn=lambda: seen.append(1))
    assert "mine" in attention.list_flash_attention_impls()
    attention.activate_flash_attention_impl("mine")
    assert seen == [1] and attention.current_flash_attention_impl() == "mine"
    attention._active.clear()
    del attention._registered["mine"]


def test_paths_of_modules():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    check(
        [
            (lambda: model.set_submodule("", nn.ReLU()), ValueError, "without a target name"),
            (lambda: model.set_submodule("0", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
            (lambda: model.set_submodule("9", nn.ReLU(), strict=True), AttributeError, "has no attribute `9`"),
            (lambda: model.set_submodule("0.weight", nn.ReLU()), AttributeError, "`weight` is not an nn.Module"),
            (lambda: model.get_submodule("0.weight"), AttributeError, "`weight` is not an nn.Module"),
            (lambda: model.get_parameter("0.training"), AttributeError, "`training` is not an nn.Parameter"),
            (lambda: model.get_buffer("1.weight"), AttributeError, "`weight` is not a buffer"),
            (lambda: model.get_buffer("1.nothing"), AttributeError, "BatchNorm1d has no attribute `nothing`"),
            (lambda: model.train("no"), ValueError, "training mode is expected to be boolean"),
        ]
    )
    assert model.get_buffer("1.running_mean") is model[1].running_mean
    model.set_submodule("2", nn.ReLU())
    assert isinstance(model[2], nn.ReLU)
    model(torch.ones(3, 2)).sum().backward(create_graph=True)
    model.zero_grad(set_to_none=False)
    assert model[0].weight.grad.tolist() == [[0, 0], [0, 0]] and not model[0].weight.grad.requires_grad


def test_copies_that_share_their_history():
    model, x = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1, affine=False)).eval(), torch.ones(4, 2)
    parallel = nn.parallel
    first, second = parallel.replicate(model, ["cpu", "cpu"])
    out = parallel.parallel_apply([first, second], [x[:2], (x[2:],)])
    assert torch.equal(torch.cat(out), model(x)) and not list(first.parameters())
    torch.cat(out).sum().backward()
    assert torch.allclose(model[0].weight.grad, torch.full((1, 2), 4.0), atol=1e-4)
    assert not parallel.replicate(model, ["cpu"], detach=True)[0](x).requires_grad
    assert torch.equal(parallel.data_parallel(model, x, ["cpu", "cpu"]), model(x))
    assert torch.equal(parallel.data_parallel(model, x, ["cpu"]), model(x))
    with pytest.raises(AssertionError, match="number of modules 1 is not equal to the number of inputs 2"):
        parallel.parallel_apply([first], [x, x])
    lazy = nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="can't be used with `DataParallel`"):
        parallel.replicate(lazy, ["cpu"])


def test_names_and_classes_of_attributes():
    class Taking(nn.Module):
        def __init__(self):
            super().__init__(3)

    class Early(nn.Module):
        def __init__(self, value):
            self.value = value

    module = nn.Module()
    module.register_buffer("count", torch.zeros(1))
    check(
        [
            (Taking, TypeError, "takes 1 positional argument but 2 were given"),
            (lambda: nn.Module(size=1), TypeError, "unexpected keyword argument 'size'"),
            (lambda: Early(nn.Parameter(torch.ones(1))), AttributeError, "cannot assign parameters? before Module.__init__"),
            (lambda: Early(nn.ReLU()), AttributeError, "cannot assign module before Module.__init__"),
            (lambda: module.register_buffer("b", 3), TypeError, "cannot assign 'int' object to buffer 'b'"),
            (lambda: setattr(module, "count", "x"), TypeError, "cannot assign 'str' as buffer 'count'"),
            (lambda: module.register_parameter("w", torch.ones(1)), TypeError, "object to parameter 'w'"),
        ]
    )  # fmt: skip
    module.count = nn.Buffer(torch.ones(2), persistent=False)
    assert not module.state_dict() and module.count.tolist() == [1, 1]
    module.child = nn.ReLU()
    assert {"count", "child"} <= set(dir(module))
    del module.count, module.child
    assert not list(module.buffers()) and not list(module.children())
    with pytest.warns(FutureWarning, match="nn.Container is deprecated"):
        assert [n for n, _ in nn.Container(a=nn.ReLU()).named_children()] == ["a"]


def test_norms_of_unknown_inputs():
    class Plain(_BatchNorm):
        pass

    with pytest.raises(NotImplementedError, match="Plain does not say what inputs it takes"):
        Plain(2)(torch.ones(2, 2))
    with pytest.raises(ValueError, match=r"expected 2D or 3D input \(got 4D input\)"):
        nn.BatchNorm1d(2)(torch.ones(1, 2, 2, 2))
