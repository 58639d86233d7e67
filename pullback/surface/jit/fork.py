"""`fork` and `wait`: a call whose result is asked for later.

In: a function and its arguments. Out: a complete `Future`. As in PyTorch's Python, the call runs at once, in the thread
that makes it, so modes, profilers and recording see it where it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..futures import Future, check_future


def fork(func: Callable, *args: Any, **kwargs: Any) -> Future:
    """Call a function, or a module's forward; its result or its error waits in a future.

    >>> torch.jit.wait(torch.jit.fork(torch.neg, torch.tensor([1.0])))
    tensor([-1.])
    """
    future: Future = Future()
    try:
        result = func(*args, **kwargs)
    except Exception as error:  # whatever it is, `wait` raises it
        future.set_exception(error)
    else:
        future.set_result(result)
    return future


def wait(future: Future) -> Any:
    """The result of a future.

    >>> torch.jit.wait(torch.jit.fork(torch.neg, torch.tensor([1.0])))
    tensor([-1.])
    """
    check_future(future)
    return future.wait()
