"""The losses of data parallel and sharding, however a step runs, beside PyTorch's data parallel over gloo.

    python -m tests.distributed.losses [--ranks 1 2 4]          the table, against the numbers that are recorded
    python -m tests.distributed.losses --record PYTHON          records them anew, with the PyTorch of that interpreter

Recorded (`reference_losses.json`): for GPT, PyTorch's DistributedDataParallel with 1, 2 and 4 ranks; for the convnet, one PyTorch
process with the whole batch, since PyTorch has SyncBatchNorm for GPUs alone. The exit status is 1 where a loss is further than
`FAR` from them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = str(HERE / "programs" / "losses.py")
REFERENCE = HERE / "reference_losses.json"
WAYS = ("ddp", "compiled", "compiled autograd", "whole step", "fsdp")
FAR = 2e-5


def run(command: list[str], *arguments: str) -> dict:
    """What the program wrote, started by a command."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "losses.json")
        env = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(
            [*command, PROGRAM, out, *arguments], env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{command} ended with {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        return json.loads(Path(out).read_text())


def ours(ranks: int, ways: tuple[str, ...] = WAYS) -> dict:
    return run([sys.executable, "-m", "pullback", "launch", "-n", str(ranks)], *ways)


def record(python: str) -> None:
    """Write PyTorch's numbers down."""
    launch = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node"]
    found: dict = {"gpt": {}, "convnet": {}}
    for ranks in (1, 2, 4):
        said = run([*launch, str(ranks)], "ddp", *(["whole"] if ranks == 1 else []))
        found["gpt"][str(ranks)] = said["gpt"]["ddp"]
        if ranks == 1:
            found["convnet"] = {"whole": said["convnet"]["whole"]}
            found["gpt"]["whole"] = said["gpt"]["whole"]
    REFERENCE.write_text(json.dumps(found, indent=1) + "\n")


def differences(ranks: int, ways: tuple[str, ...] = WAYS) -> dict[tuple[str, str], float]:
    """{(model, way): the largest difference from PyTorch's losses}."""
    recorded, found = json.loads(REFERENCE.read_text()), ours(ranks, ways)
    expected = {"gpt": recorded["gpt"][str(ranks)], "convnet": recorded["convnet"]["whole"]}
    return {
        (model, way): max(abs(a - b) for a, b in zip(values, expected[model], strict=True))
        for model, by_way in found.items()
        for way, values in by_way.items()
    }


def checkpoints(saved_by: int, loaded_by: tuple[int, ...]) -> float:
    """The largest difference between losses after a checkpoint, by those who saved it and by others who load it."""

    def said(ranks: int, what: str, folder: str) -> list[float]:
        launch = [
            sys.executable,
            "-m",
            "pullback",
            "launch",
            "-n",
            str(ranks),
            str(HERE / "programs" / "checkpoint.py"),
        ]
        out = subprocess.run([*launch, what, folder], capture_output=True, text=True, check=True).stdout
        return [float(word) for word in out.split("losses ")[1].split()]

    with tempfile.TemporaryDirectory() as folder:
        expected = said(saved_by, "save", folder)
        found = [said(ranks, "load", folder) for ranks in loaded_by]
    return max(abs(a - b) for losses in found for a, b in zip(losses, expected, strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--record", metavar="PYTHON")
    args = parser.parse_args()
    if args.record:
        record(args.record)
        return 0
    worst = 0.0
    print(f"| model | ranks | {' | '.join(WAYS)} |\n|{' - |' * (2 + len(WAYS))}")
    for ranks in args.ranks:
        found = differences(ranks)
        for model in ("gpt", "convnet"):
            print(f"| {model} | {ranks} | {' | '.join(f'{found[model, way]:.1e}' for way in WAYS)} |", flush=True)
        worst = max(worst, *found.values())
    if 4 in args.ranks:
        apart = checkpoints(4, (2, 1))
        print(f"a checkpoint of 4 ranks, loaded by 2 and by 1: {apart:.1e} apart")
        worst = max(worst, apart)
    return int(worst > FAR)


if __name__ == "__main__":
    sys.exit(main())
