"""Functions behind names of PyTorch that packages import: what each does."""

import warnings

import pytest

import pullback as torch
from pullback.compat import package_names as names
from pullback.nn import common_types


def test_a_warning_is_heard_once():
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for _ in range(2):
            names.warn_once("heard once in this test")
    assert [str(w.message) for w in heard] == ["heard once in this test"]


def test_default_devices_of_blocks_and_functions():
    with names.DeviceContext("meta"):
        assert torch.ones(1).device.type == "meta"
    assert names.set_device("meta")(torch.ones)(2).device.type == "meta"

    @names.set_device("meta")
    def each():
        yield torch.ones(2)

    assert [t.device.type for t in each()] == ["meta"]
    assert torch.ones(1).device.type == "cpu"


def test_a_backward_for_some_inputs_is_no_place_for_another():
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(names.is_checkpoint_valid())
            return g * 2

    x = torch.ones(1, requires_grad=True)
    Look.apply(x).backward()
    torch.autograd.grad(Look.apply(x), x)
    assert seen == [True, False] and names.is_checkpoint_valid()


def test_unscaled_gradients_say_whether_all_were_finite():
    found, grads = torch.zeros(1), [torch.full((2,), 4.0), torch.ones(1)]
    names.unscale_lists(grads, found, torch.tensor(0.5))
    assert grads[0].tolist() == [2.0, 2.0] and found.item() == 0
    names.unscale_lists([torch.tensor([float("inf")])], found, torch.tensor(0.5))
    assert found.item() == 1


def test_masks_and_dtypes_of_attention():
    mask = names.canonical_mask(torch.tensor([True, False]), "mask", None, "", torch.float32)
    assert mask.tolist() == [-float("inf"), 0.0]
    with pytest.warns(UserWarning, match="mismatched mask and other"):
        names.canonical_mask(torch.tensor([True]), "mask", torch.float32, "other", torch.float32)
    assert names.none_or_dtype(None) is None and names.none_or_dtype(mask) is torch.float32
    with pytest.raises(RuntimeError, match="must be None or torch.Tensor"):
        names.none_or_dtype(3)


def test_a_sigmoid_that_stays_inside():
    ends = names.clipped_sigmoid(torch.tensor([-1000.0, 0.0, 1000.0]))
    assert 0 < ends[0] and ends[1] == 0.5 and ends[2] < 1


def test_cuda_and_triton_are_asked_for():
    calls = []
    names.when_cuda_starts(lambda: calls.append(1))
    assert len(calls) == torch.cuda.is_available() == (not torch.cuda.amp.common.amp_definitely_not_available())
    assert not names.has_triton() and isinstance(names.has_triton_package(), bool)


def test_sizes_of_layers_in_annotations():
    assert common_types._size_2_t == int | tuple[int, int]


def test_tensors_over_devices():
    from pullback.cuda import comm

    x = torch.arange(6.0).requires_grad_()
    parts = comm.scatter(x, ["cpu", "cpu"], [2, 4])
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3, 4, 5]]
    joined = comm.gather(parts, destination="cpu")
    assert torch.autograd.grad((joined * 2).sum(), x)[0].tolist() == [2] * 6
    assert [t.tolist() for t in comm.broadcast(x, ["cpu"] * 2)] == [x.tolist()] * 2
    assert comm.reduce_add([x, x]).tolist() == (2 * x).tolist()
    assert comm.reduce_add_coalesced([[x, x + 1], [x, x]])[1].tolist() == (2 * x + 1).tolist()
    assert len(comm.broadcast_coalesced([x, x], ["cpu"])[0]) == 2
    with pytest.raises(ValueError, match="one shape"):
        comm.reduce_add([x, x[:2]])
    with pytest.raises(RuntimeError, match="Exactly one"):
        comm.broadcast(x)


def test_parameters_of_kernels_are_kept_and_not_searched_for():
    names.update_triton("op", "device", (0,), (1, 2), {"stages": 3})
    assert names.get_meta_triton("op", (1, 2), "device", (0,)) == {"stages": 3}
    assert names.get_meta_triton("op", (9, 9), "device", (0,)) is None
    with pytest.raises(NotImplementedError, match="Triton"):
        names.minimize_triton()
    with pytest.raises(NotImplementedError, match="instructions of CUDA"):
        names.inline_asm_elementwise(torch.ones(1), asm_str="")


def test_nothing_waits_for_a_collective():
    with pytest.raises(TypeError, match="have arrived"):
        names.AsyncCollectiveTensor(torch.ones(1))
    assert names.jit_state


def test_data_can_be_taken_over_from_tensors_of_one_kind():
    x = torch.ones(2)
    assert names.has_compatible_shallow_copy_type(x, x.double())
    assert not names.has_compatible_shallow_copy_type(x, x.to_sparse())
    assert not names.has_compatible_shallow_copy_type(x, x.to("meta"))


def test_switches_may_be_set_in_a_block_though_they_are_frozen(monkeypatch):
    from pullback.surface.backends import cudnn, switches

    monkeypatch.setattr(switches, "_frozen", True)
    with pytest.raises(RuntimeError, match="not allowed to set"):
        cudnn.benchmark = False
    with switches.unfrozen():
        cudnn.benchmark = cudnn.benchmark
    assert switches.flags_frozen()


def test_objects_of_torchscript_are_asked_for_and_never_there():
    assert not isinstance(torch.nn.Linear(1, 1), torch.ScriptObject)
    with pytest.raises(TypeError, match="No constructor defined"):
        torch.ScriptObject()


def test_switches_of_absent_compilers_are_remembered():
    switch = names.Switch(True)
    assert switch.set(False) is True and switch.get() is False and switch.set(True) is False


def test_tensors_in_groups_of_a_dtype_and_size():
    a, b, c, d = torch.ones(2), torch.ones(2), torch.ones(1, dtype=torch.int64), torch.ones(3)
    groups = list(names.take_tensors([a, b, c, d], 16))
    assert [[t.numel() for t in g] for g in groups] == [[2, 2], [3], [1]]


def test_rows_of_packages_lead_somewhere():
    from pullback.compat.package_rows import ROWS
    from pullback.compat.torch import _resolve

    for module in ("torch._C", "torch._C._onnx", "torch._C._distributed_rpc", "torch._utils", "torch.backends"):
        assert all(_resolve(home) is not None for home in ROWS[module].values())
    assert _resolve(ROWS["torch.utils.data._utils.pin_memory"]["pin_memory"])("text") == "text"
