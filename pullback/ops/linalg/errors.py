"""What goes wrong in linear algebra, in PyTorch's words.

In: `info` codes as LAPACK returns them, one per matrix, and the name of the function that was called.
Out: nothing where every code is zero; otherwise an error that names the first matrix that failed and why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..system.operator import export


class _LinAlgError(RuntimeError):
    """A matrix was singular, not positive-definite, or an iteration did not converge.

    >>> try:
    ...     torch.linalg.inv(torch.zeros(2, 2))
    ... except torch.linalg.LinAlgError:
    ...     print("singular")
    singular
    """


LinAlgError = _LinAlgError  # the public name; the class is called as PyTorch's is, which tracebacks show
export("linalg", "LinAlgError", LinAlgError)
export("linalg", "common_notes", {})


_SINGULAR = (
    "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular."
)
_NOT_DEFINITE = (
    "The factorization could not be completed because the input is not positive-definite "
    "(the leading minor of order {0} is not positive-definite)."
)
_ZERO_PIVOT = (
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the "
    "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
)
# By a word in the function's name, in the order in which they are looked for.
_REASONS: tuple[tuple[str, str, type[RuntimeError]], ...] = (
    ("inv", _SINGULAR, LinAlgError),
    ("solve", "The solver failed because the input matrix is singular.", LinAlgError),
    ("cholesky", _NOT_DEFINITE, LinAlgError),
    ("lu_factor", _ZERO_PIVOT, RuntimeError),
    ("ldl_factor", "D[{0},{0}] is exactly zero, so that the factors cannot be used to solve.", LinAlgError),
)


def raise_for_info(info: Any, name: str, is_matrix: bool) -> None:
    """Raise for the first non-zero code in `info`, an integer array."""
    if not info.any():
        return
    codes = info.reshape(-1)
    first = int((codes != 0).argmax())
    code = int(codes[first])
    where = "" if is_matrix else f"(Batch element {first}): "
    if code < 0:
        raise RuntimeError(f"{name}: {where}Argument {-code} has illegal value.")
    for word, reason, error in _REASONS:
        if word in name:
            raise error(f"{name}: {where}{reason.format(code)}")
    raise RuntimeError(f"{name}: {where}Unknown error code: {code}.")


@contextmanager
def without_ex() -> Iterator[None]:
    """Let the errors of `f_ex(..., check_errors=True)` speak in the name of `f`, which is what the user called."""
    try:
        yield
    except RuntimeError as error:
        name, _, rest = str(error).partition("_ex: ")
        if not rest:
            raise
        raise type(error)(f"{name}: {rest}") from None
