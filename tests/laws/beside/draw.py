"""A program of a seed: inputs in drawn dtypes and layouts, one to four calls, writes, transforms, gradients.

Comes in: a seed and the name of the library to run beside. Goes out: the `Pair` that ran it. What always holds: a seed gives the
same program, and each statement is drawn from what pullback made of the ones before.
"""

from __future__ import annotations

import random

import numpy as np

from tests.laws.beside.calls import Call, forms_of, table, text_of
from tests.laws.beside.choices import UNDETERMINED
from tests.laws.beside.namespace import LAYOUTS
from tests.laws.beside.pair import MARGIN, Chosen, Ended, Pair
from tests.laws.beside.steps import ANY, BETWEEN, CONTEXTS, NESTED, RANDOM, WRITES

FLOATS = ("float64", "float32", "float64", "float32", "float16", "bfloat16")
COMPLEX = ("complex128", "complex64")
OTHERS = ("int64", "int32", "int16", "int8", "uint8", "bool")
TOTALS = ("total", "weighted")
SIZES = (
    "0",
    "None",
    "None",
    "None, 'transposed'",
    "None, 'sliced'",
    "None, 'offset'",
    "None, 'reversed'",
)  # of tensors for out=
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e30, -1.0, 1.0)


class Drawn:
    """One program being drawn and run."""

    def __init__(self, seed: int, other: str, compiles: bool = True):
        self.rng = random.Random(seed)
        self.seed = seed
        self.arrays: list[np.ndarray] = []
        self.pair = Pair(other, self.arrays, compiles)
        self.count = 0
        self.internal = False

    def run(self) -> Pair:
        """Draw and run all of it."""
        try:
            self._run()
        except Ended:
            pass
        return self.pair

    def _run(self) -> None:
        rng = self.rng
        self.start()
        steps, often = zip(*self.steps(), strict=True)
        for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
            rng.choices(steps, often)[0]()
        if rng.random() < 0.6:
            self.backward()

    def steps(self) -> tuple:
        """What may come next, and how often."""
        return (
            (self.call, 4), (self.any, 6), (self.write, 5), (self.between, 3), (self.nested, 3), (self.backward, 3), (self.random, 1), (self.context, 2),
        )  # fmt: skip

    def start(self) -> None:
        self.call()

    def end(self) -> None:
        """Stop: what a statement that failed leaves is each library's own."""
        raise Ended

    # ---- inputs
    def name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def input(self, array: np.ndarray, dtype: str | None, plain: bool) -> str:
        """A statement that makes a tensor of an array, and its name."""
        rng, kind = self.rng, array.dtype.kind
        if kind in "fc" and dtype is not None:
            array, dtype = self._converted(array, dtype, plain)
        else:
            dtype = str(array.dtype)
        self.arrays.append(array)
        layout = "contiguous" if rng.random() < 0.45 else rng.choice(LAYOUTS)
        grad = dtype in (*FLOATS, *COMPLEX) and not self.internal and rng.random() < 0.6
        name = self.name()
        if kind in "iub" and (plain or layout == "expanded"):  # PyTorch reads some indices without minding strides
            layout = "contiguous"
        elif layout == "expanded" and plain:
            layout = "offset"
        self.pair.run(f"{name} = given({len(self.arrays) - 1}, {dtype!r}, {layout!r}, {grad})", name)
        return name

    def _converted(self, array: np.ndarray, dtype: str, plain: bool) -> tuple[np.ndarray, str]:
        rng = self.rng
        if array.dtype.kind == "c":
            return array.astype(dtype if dtype in COMPLEX else COMPLEX[dtype != "float64"]), (
                dtype if dtype in COMPLEX else COMPLEX[dtype != "float64"]
            )
        if dtype in OTHERS:
            array = (
                array > 0
                if dtype == "bool"
                else np.round(np.abs(array) * 3 if dtype == "uint8" else array * 3).astype(dtype)
            )
            return array, dtype
        array = array.astype(np.float64)
        if not plain and dtype not in COMPLEX and array.size and rng.random() < 0.12:
            array = array.copy()
            array.flat[rng.randrange(array.size)] = rng.choice(SPECIAL)
        if not plain and rng.random() < 0.2:
            array = np.round(array)
        if dtype in COMPLEX:
            return (array + 1j * array.reshape(-1)[::-1].reshape(array.shape)).astype(dtype), dtype
        with np.errstate(all="ignore"):
            return array.astype(np.float32 if dtype == "bfloat16" else dtype), dtype

    def argument(self, value, dtype: str | None, plain: bool) -> str:
        """The text of one argument of a call; arrays become inputs, or a tensor that is there already."""
        if isinstance(value, np.ndarray):
            fit = [
                h.text for h in self.pair.held if tuple(h.ours.shape) == value.shape and h.ours.dtype.is_floating_point
            ]
            if fit and not self.internal and value.dtype.kind == "f" and not plain and self.rng.random() < 0.4:
                return self.rng.choice(fit)
            return self.input(value, dtype, plain)
        if isinstance(value, tuple):
            return "[" + ", ".join(self.argument(v, dtype, plain) for v in value) + "]"
        return repr(value)

    # ---- steps
    def _operator(self) -> tuple[Call, ...]:
        calls = self.rng.choice(table())
        if calls[0].name.startswith("_foreach") and self.rng.random() < 0.8:  # there are many, of few kinds
            calls = self.rng.choice(table())
        return calls

    def draw_call(self, calls: tuple[Call, ...], untracked: bool = False) -> tuple[Call, list[str], bool]:
        """A call of an operator, and the texts of its arguments; `untracked`: none of them asks for a gradient."""
        rng = self.rng
        call = rng.choice(calls)
        fragile = call.name.startswith(FRAGILE)
        p = rng.random()
        dtype = (
            rng.choice(FLOATS[:4] if fragile else FLOATS)
            if p < 0.8
            else rng.choice(OTHERS + COMPLEX)
            if p < 0.96
            else None
        )
        texts = []
        for name, _, value, _ in call.arguments:
            self.internal = call.internal or untracked or _is_fixed(call.name, name)
            own = dtype if rng.random() < 0.97 or not call.pointwise or call.internal else rng.choice(FLOATS + OTHERS)
            texts.append(self.argument(value, own, fragile))
        if fragile or call.name.startswith("special_"):
            self.pair.slack = MARGIN
        return call, texts, call.name in UNDETERMINED

    def call(self) -> None:
        calls = self._operator()
        form = self.rng.choice(forms_of(calls[0], self.pair.torch))
        call, texts, undetermined = self.draw_call(calls, form == "out")
        text = text_of(call, form, texts)
        if text is None:
            text = text_of(call, "aten", texts)
        name = self.name()
        if form == "out":
            text = self._with_out(text)
        nothing = call.name.startswith("_foreach") and call.name.endswith("_")
        ran = self.pair.run(
            f"{name} = {text}",
            "" if nothing else name,
            numbers=not undetermined,
            derived=call.internal,
            signs=call.pointwise and not {call.name, call.key} & SIGNLESS,
        )
        if not ran and ("_(" in text or form == "out"):
            raise Ended
        if call.internal:
            self.same_order()
        if undetermined:
            raise Chosen(UNDETERMINED[call.name])

    def same_order(self) -> None:
        """End where views of what is there would show another order of memory."""
        if any(h.ours.stride() != h.theirs.stride() for h in self.pair.held):
            raise Chosen("in which order the elements of a new tensor lie in memory")

    def _with_out(self, text: str) -> str:
        """The call with a tensor to write to: of the shape of the result, or of another."""
        if text.startswith(
            "torch.range("
        ):  # PyTorch divides by zero where the output has no elements to begin with, and is killed
            return text
        out = self.name()
        free = [h.text for h in self.pair.held if not h.ours.requires_grad and h.text not in text]
        if self.rng.random() < 0.3 and free:
            return f"{text[:-1]}, out={self.rng.choice(free)})"
        if not self.pair.run(f"{out} = blank({text}, {self.rng.choice(SIZES)})", out):
            return text
        return f"{text[:-1]}, out={out})"

    def _tensor(self) -> str | None:
        return self.rng.choice(self.pair.held).text if self.pair.held else None

    def any(self) -> None:
        """A call that takes any tensor."""
        if (x := self._tensor()) is not None:
            name = self.name()
            self.pair.run(f"{name} = {self.rng.choice(ANY).format(x=x)}", name)

    def write(self) -> None:
        if (x := self._tensor()) is not None:
            if not self.pair.run(self.rng.choice(WRITES).format(x=x, y=self._tensor())):
                raise Ended  # what a write that fails leaves is each library's own

    def between(self) -> None:
        if (x := self._tensor()) is not None:
            name = self.name()
            self.pair.run(f"{name} = {self.rng.choice(BETWEEN).format(x=x, y=self._tensor())}", name)

    def random(self) -> None:
        if (x := self._tensor()) is not None:
            name = self.name()
            self.pair.run(f"{name} = {self.rng.choice(RANDOM).format(x=x)}", name, seed=self.seed)

    def context(self) -> None:
        if (x := self._tensor()) is not None:
            name, inner = self.name(), self.rng.choice(ANY + BETWEEN).format(x=x, y=self._tensor())
            self.pair.run(f"with {self.rng.choice(CONTEXTS)}:\n    {name} = {inner}", name)

    def loosen(self, slack: float) -> None:
        """Let what is derived be rounded so many times as often."""
        inexact = any(
            "hardsigmoid" in line.lower() for line in self.pair.lines
        )  # PyTorch's slope is a sixth of float32
        self.pair.slack = max(self.pair.slack, MARGIN if inexact else slack)

    def nested(self) -> None:
        """One to three transforms around a call, of one of its tensors."""
        calls = self._operator()
        call, texts, undetermined = self.draw_call(calls)
        places = [i for i, a in enumerate(call.arguments) if _differentiable(call.name, a)]
        if undetermined or not places:
            return
        at = self.rng.choice(places)
        of, texts[at] = texts[at], "v"
        form = self.rng.choice([f for f in forms_of(call, self.pair.torch) if f not in ("out", "inplace")])
        text = text_of(call, form, texts) or text_of(call, "aten", texts)
        function, name = f"f{self.count}", self.name()
        self.pair.run(f"{function} = lambda v: first({text})")
        self.loosen(8.0)
        for _ in range(self.rng.choice((1, 1, 2, 2, 3))):
            function = f"{self.rng.choice(NESTED)}({function})"
        self.pair.run(f"{name} = {function}({of})", name, derived=True)
        self.same_order()

    def backward(self) -> None:
        rng, held = self.rng, self.pair.held
        roots = [h for h in held if h.ours.requires_grad and not h.ours.is_leaf]
        leaves = [h.text for h in held if h.ours.requires_grad and h.ours.is_leaf]
        if not roots or not leaves:
            return
        root = rng.choice(roots).text
        self.loosen(8.0)
        if rng.random() < 0.4:
            self.pair.run(
                f"{rng.choice(TOTALS)}({root}).backward({rng.choice(('', '', 'retain_graph=True', 'create_graph=True'))})"
            )
            return
        name, asked = self.name(), ", ".join(leaves)
        options = rng.choice(("", "create_graph=True, ", "create_graph=True, ", "retain_graph=True, "))
        ran = self.pair.run(
            f"{name} = torch.autograd.grad({rng.choice(TOTALS)}({root}), [{asked}], {options}allow_unused=True)",
            name,
            derived=True,
        )
        if ran and "create" in options:
            grads = [
                h.text
                for h in held
                if h.text.startswith(f"{name}[") and h.ours.requires_grad and h.theirs.requires_grad
            ]
            if grads:
                second = self.name()
                self.loosen(1e3)
                self.pair.run(
                    f"{second} = torch.autograd.grad({rng.choice(TOTALS)}([{', '.join(grads)}]), [{asked}], allow_unused=True)",
                    second,
                    derived=True,
                )


def _is_fixed(operator: str, argument: str) -> bool:
    """Whether PyTorch refuses to differentiate by an argument."""
    if argument in FIXED:
        return True
    return argument in ("weight", "target") and ("loss" in operator or "cross_entropy" in operator)


def _differentiable(operator: str, argument: tuple) -> bool:
    name, _, value, _ = argument
    return isinstance(value, np.ndarray) and value.dtype.kind in "fc" and not _is_fixed(operator, name)


# Where zeros may have either sign: PyTorch's remainders have that of the dividend, ours that of the divisor, as in Python; of two
# equal tensors, and where softshrink gives zero, PyTorch's sign is another in vectors than in what is left of them.
SIGNLESS = frozenset((
    "remainder", "softshrink", "clamp.Tensor", "clamp_min.Tensor", "clamp_max.Tensor", "maximum", "minimum", "fmax", "fmin", "logaddexp2",
))  # fmt: skip
# Calls that keep to what they are given, in every precision.
PRECISE = (
    "special_",
    "digamma",
    "lgamma",
    "mvlgamma",
    "binary_cross",
    "group_norm",
    "native_",
    "layer_norm",
    "_batch_norm",
    "_native",
)
FIXED = (
    "pos_weight",
    "random_samples",
    "_random_samples",
    "atol",
    "rtol",
    "tol",
    "rcond",
    "running_mean",
    "running_var",
    "noise",
)
FRAGILE = (
    "linalg_", "_linalg_", "cholesky", "inverse", "det", "logdet", "slogdet", "matrix_exp", "lu_", "_lu_", "ormqr", "orgqr", "geqrf",
    "triangular", "svd", "qr", "pinverse", "matrix_power", "_ctc", "ctc", "_dirichlet", "embedding_bag", "_embedding_bag", "nuclear",
    "digamma", "lgamma", "mvlgamma", "binary_cross_entropy", "group_norm", "native_", "layer_norm", "_batch_norm", "_native",
    "fractional", "cov", "hinge_embedding", "as_strided_scatter", "cosine", "rnn_", "gru", "lstm", "special_", "polygamma", "conv", "_conv",
    "fft_", "_fft", "grid_sampler", "searchsorted", "bucketize", "scaled_dot", "_scaled_dot", "soft_margin", "instance_norm", "batch_norm",
    "cross_entropy",
)  # fmt: skip
