"""Fake rules from records of calls."""

import io

import pytest

import pullback as torch
from pullback.capture.fake.mode import FakeTensorMode, UnsupportedOperatorException
from pullback.capture.shapes.environment import ShapeEnv
from pullback.library import profiles
from pullback.library.profiles import MissingOpProfile, OpProfile, TensorMetadata


def metadata(rank=2, dtype=torch.float32):
    return TensorMetadata(rank, dtype, torch.device("cpu"), torch.strided)


PROFILES = {"t_profiles.f.default": {OpProfile((metadata(), None), metadata(1, torch.int64))}}


def test_a_profile_stands_in_for_a_fake_rule():
    with torch.library._scoped_library("t_profiles", "DEF") as lib:
        lib.define("f(Tensor x, int n) -> Tensor")
        lib.impl("f", lambda x, n: x.sum(1).long() * n, "CPU")
        mode = FakeTensorMode(shape_env=ShapeEnv(allow_dynamic_output_shape_ops=True))
        x = mode.from_tensor(torch.ones(3, 3))
        with profiles.unsafe_generate_fake_kernels(PROFILES), mode:
            out = torch.ops.t_profiles.f(x, 2)
            assert out.ndim == 1 and out.dtype is torch.int64
            with pytest.raises(MissingOpProfile, match="t_profiles::f"):
                torch.ops.t_profiles.f(mode.from_tensor(torch.ones(3)), 2)
        with mode, pytest.raises(UnsupportedOperatorException):
            torch.ops.t_profiles.f(x, 2)


def test_profiles_as_text():
    pytest.importorskip("yaml")
    buffer = io.BytesIO()
    profiles.save_op_profiles(PROFILES, buffer)
    assert profiles.load_op_profiles(io.BytesIO(buffer.getvalue())) == PROFILES
    text = buffer.getvalue().decode().replace("torch_version: '2.", "torch_version: '1.")
    with pytest.raises(RuntimeError, match="outdated profile"):
        profiles.read_profiles_from_yaml(text)
