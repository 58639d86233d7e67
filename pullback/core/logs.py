"""Logs of what the compiler does, switched on by name: `TORCH_LOGS="graph_code,guards"`, or `set_logs(guards=True)`.

Names are of two kinds: components, which have a level (`dynamo=logging.DEBUG`, `+dynamo`), and artifacts, which are on or
off. A component at the level DEBUG turns its artifacts on. What is on is written to stderr, line by line, by handlers of
this module, unless the program has handlers of its own on the root logger. Nothing is made to be logged while it is off:
callers ask `artifacts[name]` first.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterable

COMPONENTS = {
    "dynamo": ("graph_breaks", "recompiles", "guards", "graph_code", "bytecode"),
    "aot": ("aot_graphs", "aot_joint_graph"),
    "inductor": ("output_code", "perf_hints"),
    "dynamic": (),
    "fake_tensor": (),
}
ARTIFACTS = (
    "graph", "graph_code", "graph_breaks", "guards", "recompiles", "aot_graphs", "aot_joint_graph", "output_code",
    "bytecode", "compiled_autograd", "compiled_autograd_verbose", "perf_hints",
)  # fmt: skip
# Names that PyTorch logs something for, and this package nothing.
INERT = frozenset(
    "autograd ddp_graphs distributed c10d ddp pp fsdp dtensor onnx export graph_sizes trace_source trace_call trace_bytecode "
    "output_graph schedule post_grad_graphs pre_grad_graphs inductor_metrics ir_pre_fusion ir_post_fusion fusion overlap "
    "cudagraphs cudagraph_static_inputs benchmarking autotuning kernel_code sym_node recompiles_verbose verbose_guards "
    "compute_dependencies async_compile custom_format_test_artifact graph_region_expansion hierarchical_compile "
    "caching loop_ordering loop_tiling graph_cse dynamo_graph annotation side_effects cutlass triton".split()
)
VARIABLE = "TORCH_LOGS"
artifacts: dict[str, bool] = dict.fromkeys(ARTIFACTS, False)


def logger(name: str) -> logging.Logger:
    """The logger of a component or artifact."""
    return logging.getLogger(f"torch._dynamo.{name}")


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of an artifact, by the module that asks for it and its name."""
    if artifact_name not in ARTIFACTS and artifact_name not in INERT:
        raise ValueError(f"Artifact name: {artifact_name!r} not registered, there are {', '.join(ARTIFACTS)}")
    return logger(artifact_name)


def set_logs(*, all: int | None = None, modules: dict | None = None, **named) -> None:
    """Set levels of components (an int) and turn artifacts on or off (a bool); what is not named is off."""
    if os.environ.get(VARIABLE):
        warnings.warn(f"{VARIABLE} is set: this call of set_logs is ignored", stacklevel=2)
        return
    _set(named, all, modules or {})


def _set(named: dict, all: int | None = None, modules: dict | None = None) -> None:
    known = {*COMPONENTS, *ARTIFACTS}
    for name in set(named) - known:
        if name not in INERT:
            raise ValueError(f"set_logs: no component or artifact {name!r}; there are {', '.join(sorted(known))}")
        warnings.warn(f"set_logs: nothing is logged for {name!r} here", stacklevel=3)
    levels = {c: named.get(c, logging.WARNING if all is None else all) for c in COMPONENTS}
    shown = {a for c, level in levels.items() if level <= logging.DEBUG for a in COMPONENTS[c]}
    for component, level in levels.items():
        logger(component).setLevel(level)
    for name in ARTIFACTS:
        artifacts[name] = bool(named.get(name, name in shown))
        logger(name).setLevel(logging.DEBUG if artifacts[name] else logging.WARNING)
    for module, level in (modules or {}).items():
        logging.getLogger(module).setLevel(level)
    _attach()


def settings_of(text: str) -> tuple[dict, dict]:
    """(names, modules) with what `TORCH_LOGS` says of them: `+` is DEBUG, `-` is ERROR, nothing is INFO or on."""
    names: dict = {}
    modules: dict = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        sign, name = (part[0], part[1:]) if part[0] in "+-" else ("", part)
        level = {"+": logging.DEBUG, "-": logging.ERROR, "": logging.INFO}[sign]
        if "." in name:
            modules[name] = level
        elif name == "all":
            names.update(dict.fromkeys(COMPONENTS, level))
        else:
            names[name] = sign != "-" if name in ARTIFACTS else level
    return names, modules


class Stderr(logging.Handler):
    """Writes records to what is stderr at the time, each line with when and what it is of."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers:  # the program has its own, which get the record too
            return
        moment = logging.Formatter("%(asctime)s", "%m%d %H:%M:%S").format(
            logging.makeLogRecord({"created": record.created})
        )
        name = record.name.rpartition(".")[2]
        mark = f"[__{name}] " if name in artifacts else ""
        head = f"{record.levelname[0]}{moment} {record.process} {record.filename}:{record.lineno}] {mark}"
        print("\n".join(_prefixed(head, record.getMessage().splitlines())), file=sys.stderr)


def _prefixed(head: str, lines: Iterable[str]) -> list[str]:
    return [head + line for line in lines] or [head]


_handler = Stderr()


def _attach() -> None:
    base = logging.getLogger("torch")
    if _handler not in base.handlers:
        base.addHandler(_handler)


if os.environ.get(VARIABLE):
    _set(settings_of(os.environ[VARIABLE])[0], None, settings_of(os.environ[VARIABLE])[1])
