"""What `TORCH_LOGS` and `set_logs` turn on is printed."""

import logging
import os
import subprocess
import sys

import pytest

from pullback.core import logs

PROGRAM = """
import pullback as torch

def f(x, n):
    y = x.sin() * n
    if x.shape[0] > 3:
        y = y + 1
    print("between")
    return y.cos().sum()

run = torch.compile(f, backend="BACKEND")
for size in (3, 4, 5):
    x = torch.ones(size, requires_grad=True)
    run(x, 2).backward()
"""


def errors_of(setting: str, backend: str = "aot_eager") -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("BACKEND", backend)],
        env={**os.environ, "TORCH_LOGS": setting}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "between\n" * 3
    return done.stderr


def test_what_is_named_is_printed():
    text = errors_of("graph_breaks,recompiles,guards,graph_code,graph,aot_graphs,aot_joint_graph,dynamic")
    assert "[__graph_breaks] a graph of f ends at <string>:8 in f: it prints" in text
    assert "[__recompiles] f is compiled again: tensor 'x' size mismatch at index 0. expected 3, actual 4" in text
    assert "[__guards] check_tensor(L['x'], torch.float32, size=[3], requires_grad=True)" in text
    assert '[__graph_code]     def forward(self, L_x_: "f32[3]"):' in text and "[__graph] graph():" in text
    assert text.count("[__aot_graphs] backward graph") >= 2 and "[__aot_joint_graph] joint graph" in text
    assert "create_symbol s77 = 4 for L['x'].size()[0]" in text and "eval s77 > 3 [guard added]" in text


def test_what_is_not_named_is_not():
    assert errors_of("graph_breaks").count("\n") == errors_of("graph_breaks").count("[__graph_breaks]") > 0


def test_names_and_signs():
    assert logs.settings_of("+dynamo,-guards, graph_code,torch.nn") == (
        {"dynamo": logging.DEBUG, "guards": False, "graph_code": True},
        {"torch.nn": logging.INFO},
    )


def test_a_component_turns_its_artifacts_on():
    logs.set_logs(dynamo=logging.DEBUG, guards=False)
    try:
        assert logs.artifacts["graph_code"] and not logs.artifacts["guards"] and not logs.artifacts["aot_graphs"]
    finally:
        logs.set_logs()
    assert not any(logs.artifacts.values())


def test_unknown_names():
    with pytest.raises(ValueError, match="no component or artifact 'gaurds'"):
        logs.set_logs(gaurds=True)
    with pytest.warns(UserWarning, match="nothing is logged for 'schedule' here"):
        logs.set_logs(schedule=True)
