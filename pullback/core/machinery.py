"""Which frames of a traceback are machinery: dispatch, the engine, the compiler and the code they generate.

What is shown to users leaves them out (`surface/tracebacks.py`, anomaly mode); `PULLBACK_TRACEBACK=full` keeps them, and so does
`TORCHDYNAMO_VERBOSE=1`.
"""

from __future__ import annotations

import os

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ROOMS = "core runtime ops batching autograd func profiler graph capture joint backward codegen surface".split()
_CALL = os.path.join(_HERE, "nn", "module.py")  # what stands between the call of a module and its forward
MACHINERY = (*(os.path.join(_HERE, room) + os.sep for room in _ROOMS), _CALL, "<pullback", "<captured", "<native call>")


def is_full() -> bool:
    """Whether the user asked for every frame, in our words or in PyTorch's."""
    asked = os.environ.get
    return asked("PULLBACK_TRACEBACK", "") == "full" or asked("TORCHDYNAMO_VERBOSE", "0") not in ("", "0")


def is_machinery(filename: str) -> bool:
    return filename.startswith(MACHINERY)
