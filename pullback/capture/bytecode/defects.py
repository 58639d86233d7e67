"""Tells an error of the capture itself from one of the program that is interpreted.

In: what a step raised. Out: a `Break` to raise in its place where it is a defect of this package: the program must never see it, since a
handler of its own might take it for an error of its own and go another way than it does in Python. Told by what no step does on
the program's behalf: a name of ours that does not exist, or an attribute that an object of ours does not have, read in our code.
"""

from __future__ import annotations

import dis
import os
import warnings

from .signals import Break

__all__ = ["as_break"]

_HOME = os.path.dirname(os.path.dirname(__file__)) + os.sep
_RAISES = {dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]}
_READS_ATTRIBUTE = {dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR") if name in dis.opmap}


def as_break(raised: BaseException) -> Break | None:
    """The break that stands for a defect of the capture, with a warning that says so; None for what the program raises."""
    if not isinstance(raised, (NameError, AttributeError)) or not _is_defect(raised):
        return None
    reason = f"the capture itself fails: {type(raised).__name__}: {raised}"
    warnings.warn(f"compile: {reason}; the program runs on without a graph here", RuntimeWarning, stacklevel=2)
    return Break(reason)


def _is_defect(raised: NameError | AttributeError) -> bool:
    trace = raised.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(_HOME):
        return False
    read = trace.tb_frame.f_code.co_code[trace.tb_lasti]
    if isinstance(raised, NameError):
        return read not in _RAISES
    # What programs read is read by `getattr`.
    return read in _READS_ATTRIBUTE and type(raised.obj).__module__.startswith(__package__.rpartition(".")[0])
