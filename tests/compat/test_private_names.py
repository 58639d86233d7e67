"""Functions behind PyTorch's private names, which packages call: what each answers, and what it refuses."""

import pytest

import pullback as torch
from pullback.compat import functions
from pullback.compat import private_names as names
from pullback.library.aliasing import is_alias_of


def test_numbers_of_devices():
    assert names.get_device_index(3) == 3
    assert names.get_device_index(torch.device("cuda", 1)) == 1
    assert names.get_device_index("cpu", allow_cpu=True) == -1
    with pytest.raises(ValueError, match="Expected a non cpu device, but got: cpu"):
        names.get_device_index("cpu")
    with pytest.raises(ValueError, match="with a specified index or an integer, but got: None"):
        names.get_device_index(None)


def test_device_types():
    assert names.get_device_module("cuda") is torch.cuda
    with pytest.raises(RuntimeError, match="Device 'nothing' does not have a corresponding module"):
        names.get_device_module("nothing")
    assert names.get_available_device_type() == ("cuda" if torch.cuda.is_available() else None)
    assert names.get_accelerator().type == (names.get_available_device_type() or "cpu")
    assert names.get_default_device() == "cpu"
    assert names.is_compile_supported("cpu") and not names.is_compile_supported("meta")
    assert names.is_dynamo_supported()


def test_casts_of_autocast():
    x, y = torch.ones(2), torch.ones(2, dtype=torch.float64)
    given = {"a": [x, y, "word"], "b": (torch.arange(2), 3)}
    result = names.cast(given, "cpu", torch.bfloat16)
    assert result["a"][0].dtype is torch.bfloat16 and result["a"][1] is y and result["a"][2] == "word"
    assert result["b"][0].dtype is torch.int64 and result["b"][1] == 3


def test_modes_and_transforms():
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    assert not names.is_function_mode_enabled() and names.count_function_modes() == 0
    with Mode():
        assert names.is_function_mode_enabled() and names.count_function_modes() == 1
    seen = []
    torch.func.vmap(lambda x: seen.append(names.are_transforms_active()) or x)(torch.ones(2))
    assert seen == [True] and not names.are_transforms_active()


def test_memory():
    x = torch.ones(4)
    assert is_alias_of(x, x[1:]) and not is_alias_of(x, x.clone())
    assert names.element_size(torch.float64) == 8
    assert list(names.tqdm([1, 2])) == [1, 2]


def test_checks():
    functions.assert_async(torch.tensor(1))
    with pytest.raises(RuntimeError, match="got zero"):
        functions.assert_async(torch.tensor(0))
    with pytest.raises(RuntimeError, match="is ambiguous"):
        functions.assert_async(torch.ones(2))
    functions.check_tensor_all(torch.ones(2, dtype=torch.bool))
    with pytest.raises(TypeError, match="bool"):
        functions.check_tensor_all(torch.ones(2))
    with pytest.raises(ValueError, match="these words"):
        functions.check_tensor_all_with(ValueError, torch.zeros(1, dtype=torch.bool), lambda: "these words")
    with pytest.raises(RuntimeError, match="True for every element"):
        functions.check_tensor_all(torch.zeros(1, dtype=torch.bool))
    with pytest.raises(RuntimeError, match="torch.profiler.profile is"):
        functions.no_cuda_profile()


def test_seeds_and_short_names_of_dtypes():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    assert torch.equal(names.with_a_seed(torch.rand, 3), names.with_a_seed(torch.rand, 3))
    assert torch.equal(torch.get_rng_state(), before)
    assert names.DTYPE_ABBRS[torch.bfloat16] == "bf16" and names.DTYPE_ABBRS[torch.int64] == "i64"


def test_names_of_the_processor():
    assert torch.ops.mkldnn._is_mkldnn_bf16_supported() and torch.ops.mkldnn._is_mkldnn_fp16_supported()
    assert torch.cpu._is_amx_fp16_supported() in (True, False)


def test_calls_as_text():
    assert (
        names.render_call(torch.sum, [torch.ones(2, 3)], {"dim": 0}) == "torch.sum(tensor([...], size=(2, 3)), dim=0)"
    )
    text = names.render_call(torch.ops.aten.sin.default, [[torch.ones(2, dtype=torch.int)], None, "a"], {})
    assert text == "aten.sin.default([tensor([...], size=(2,), dtype=torch.int32)], None, 'a')"


def test_modules_that_may_be_missing():
    assert names.try_import("imaplib").IMAP4 and names.try_import("a_module_that_is_nowhere") is None
