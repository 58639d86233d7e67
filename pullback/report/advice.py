"""What to try where a graph ends: advice in a sentence, by the reason that capture gives.

In: the breaks of functions, as (reason, where) pairs. Out: advice, each with the places that it is for. Reasons for which there is
nothing to try are left out.
"""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterable

__all__ = ["advised", "is_library"]

Break = tuple[str, str | None]

ADVICE = (
    (("_local_scalar_dense",), "A number is taken out of a tensor (.item(), int(), float(), an `if` on a tensor). Compute with the tensor (torch.where, clamp), or take the number outside the compiled function."),
    (("dynamic_output", "nonzero", "masked_select"), "The shape of a result depends on the data. Use a mask (torch.where) instead of selecting, or do it outside the compiled function."),
    (("it prints", "it makes text of", "it warns"), "Print after the compiled function, or leave it: what stands before and after is compiled all the same."),
    (("iter of a DataLoader", "iterator that was made outside", "iterates over"), "Compile the step, not the loop over the data: graphs of the step are kept and used for each batch."),
    (("seeds random numbers", "random generator", "random.Random"), "Seed random numbers, and draw Python's, outside the compiled function."),
    (("makes a Parameter", "makes a class", "defines the class"), "Build modules once, outside the compiled function."),
    (("begun elsewhere",), "Put the forward, the loss and backward() into one compiled function: they become one graph."),
    (("hook",), "Register hooks before the function is compiled; torch._dynamo.config.compiled_autograd = True takes them into the graph of the backward."),
    (("mode that looks at all calls",), "Leave modes that look at all calls (profilers, debuggers) around the compiled function, not in it."),
)  # fmt: skip


def advised(breaks: Iterable[Break]) -> dict[str, list[str]]:
    """Advice, and the places that it is for, in the order of the breaks."""
    found: dict[str, list[str]] = {}
    for reason, where in breaks:
        text = next((text for words, text in ADVICE if any(word in reason for word in words)), None)
        if text is not None and where not in found.setdefault(text, []):
            found[text].append(where or "")
    return found


def is_library(where: str | None) -> bool:
    """Whether a place ("file:line in function") is in Python or a package that is installed, not in the user's program."""
    if where is None:
        return False
    paths = sysconfig.get_paths()
    return where.startswith(("<frozen", sys.base_prefix, *(paths[k] for k in ("stdlib", "purelib", "platlib"))))
