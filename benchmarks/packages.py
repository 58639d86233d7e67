"""Training steps of models of `transformers` (GPT-2, Llama, BERT, ViT), eager and compiled, beside PyTorch.

    python benchmarks/packages.py --python ENV/bin/python --reference REFERENCE/bin/python [--only llama] [--sizes tiny] [--modes eager]

In: two interpreters with `transformers`, one under `pullback alias`, one with PyTorch. Out: a table of seconds a step (forward,
backward, AdamW) and of ratios. Each interpreter is one process for the whole run; they take turns, round by round, so that a busy
machine is busy for both, and the best round counts. Steps are timed by processor time, of one thread. The losses of both must agree, or
the row says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any

SIZES = {  # layers, width, heads, batch, length (for ViT: side of the picture)
    "tiny": (2, 64, 4, 2, 32),
    "small": (4, 256, 8, 4, 128),
}
MODELS = ("gpt2", "llama", "bert", "vit")
ROUNDS, STEPS = 5, 3


# ------------------------------------------------------------------------------------------------------- in the workers
def make(model: str, size: str) -> tuple[Any, dict[str, Any]]:
    """A model and the arguments of a call that gives a loss."""
    import torch
    import transformers as t

    layers, width, heads, batch, length = SIZES[size]
    torch.manual_seed(0)
    ids = torch.randint(0, 500, (batch, length))
    if model == "gpt2":
        config = t.GPT2Config(
            vocab_size=500, n_positions=length, n_embd=width, n_layer=layers, n_head=heads,
            resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False,
        )  # fmt: skip
        return t.GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}
    common = {
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": 4 * width,
    }
    if model == "llama":
        config = t.LlamaConfig(
            vocab_size=500, num_key_value_heads=heads // 2, max_position_embeddings=length, use_cache=False, **common
        )
        return t.LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}
    common |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    if model == "bert":
        config = t.BertConfig(vocab_size=500, max_position_embeddings=length, **common)
        return t.BertForMaskedLM(config), {"input_ids": ids, "labels": ids}
    config = t.ViTConfig(image_size=length, patch_size=8, num_labels=10, **common)
    pixels = torch.randn(batch, 3, length, length)
    return t.ViTForImageClassification(config), {"pixel_values": pixels, "labels": torch.arange(batch)}


class Training:
    """A model in training; `round` makes a few steps and gives the seconds of one."""

    def __init__(self, model: str, size: str, compiled: bool) -> None:
        import torch

        self.model, self.arguments = make(model, size)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-4)
        self.call = torch.compile(self.model) if compiled else self.model
        self.losses: list[float] = []

    def step(self) -> None:
        self.optimizer.zero_grad()
        loss = self.call(**self.arguments).loss
        loss.backward()
        self.optimizer.step()
        self.losses.append(float(loss))

    def round(self) -> float:
        start = time.process_time()
        for _ in range(STEPS):
            self.step()
        return (time.process_time() - start) / STEPS


def work() -> None:
    """Read commands (lines of JSON) and answer them: `[model, size, compiled]` makes a training, `"round"` measures it."""
    import torch

    torch.set_num_threads(1)
    training: Training | None = None
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if command == "round":
                assert training is not None
                answer: Any = training.round()
            elif command == "losses":
                assert training is not None
                answer = training.losses[:3]
            else:
                training = Training(*command)
                start = time.perf_counter()
                training.step()
                answer = time.perf_counter() - start
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]}
        print("@" + json.dumps(answer), flush=True)


# --------------------------------------------------------------------------------------------------------- in the parent
class Worker:
    """One interpreter, asked by lines."""

    def __init__(self, python: str) -> None:
        self.process = subprocess.Popen(
            [python, "-W", "ignore", __file__, "--worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, command: Any) -> Any:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("@"):
                answer = json.loads(line[1:])
                if isinstance(answer, dict):
                    raise RuntimeError(answer["error"])
                return answer
        raise RuntimeError("the process ended")


def measure(workers: list[Worker], case: list) -> str:
    """The row of one case."""
    name = f"{case[0]} {case[1]} {'compiled' if case[2] else 'eager'}"
    try:
        first = [worker.ask(case) for worker in workers]
        rounds = [[worker.ask("round") for worker in workers] for _ in range(ROUNDS)]
        losses = [worker.ask("losses") for worker in workers]
    except RuntimeError as error:
        return f"| {name} | {error} | | | | |"
    ours, theirs = (min(column) for column in zip(*rounds, strict=True))
    same = all(abs(a - b) <= 1e-3 * abs(b) for a, b in zip(*losses, strict=True))
    agree = "yes" if same else f"no: {losses}"
    return (
        f"| {name} | {ours * 1e3:.1f} ms | {theirs * 1e3:.1f} ms | {ours / theirs:.2f} | "
        f"{first[0]:.1f} s, {first[1]:.1f} s | {agree} |"
    )


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--python", default=sys.executable)
    p.add_argument("--reference")
    p.add_argument("--only", default=",".join(MODELS))
    p.add_argument("--sizes", default=",".join(SIZES))
    p.add_argument("--modes", default="eager,compiled")
    p.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = p.parse_args()
    if args.worker:
        work()
        return 0
    workers = [Worker(args.python), Worker(args.reference or p.error("--reference is needed"))]
    print("| step | pullback | PyTorch | ratio | first step | same losses |\n| - | - | - | - | - | - |")
    for size in args.sizes.split(","):
        for model in args.only.split(","):
            for mode in args.modes.split(","):
                print(measure(workers, [model, size, mode == "compiled"]), flush=True)
    for worker in workers:
        worker.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
