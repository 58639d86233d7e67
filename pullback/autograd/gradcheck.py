"""Check derivatives against differences: `gradcheck`, and `gradgradcheck` for second derivatives.

The work is in `gradcheck_run`, which is loaded when it is first needed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable


class GradcheckError(RuntimeError):
    """A derivative is wrong."""


def gradcheck(
    func: Callable, inputs, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
    nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False, check_forward_ad: bool = False,
    check_backward_ad: bool = True, fast_mode: bool = False, masked: bool | None = None,
) -> bool:  # fmt: skip
    """Whether the derivatives of `func` at `inputs` agree with differences; raises where they do not."""
    from .gradcheck_run import Options, check

    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    options = Options(eps, atol, rtol, nondet_tol, check_grad_dtypes, masked)
    return check(
        func, inputs, options, raise_exception, check_undefined_grad, check_batched_grad, check_batched_forward_grad,
        check_forward_ad, check_backward_ad, fast_mode,
    )  # fmt: skip


def gradgradcheck(
    func: Callable, inputs, grad_outputs=None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """`gradcheck` of the function that maps inputs and cotangents to gradients."""
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    for name, value in (("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad)):
        if value and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    from .gradcheck_run import second

    gradients, point = second(func, inputs, grad_outputs, gen_non_contig_grad_outputs)
    return gradcheck(
        gradients, point, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev, masked=masked,
    )  # fmt: skip


# ---- names from before these were private
def _warn_deprecated(name: str) -> None:
    from .gradcheck_words import deprecated

    warnings.warn(deprecated(name), FutureWarning, stacklevel=3)


def get_numerical_jacobian(fn: Callable, inputs, target=None, eps: float = 1e-3, grad_out: float = 1.0) -> tuple:
    """Deprecated: the Jacobian of the first output by differences, per input; `fn` takes the inputs as one tuple."""
    from .gradcheck_run import numerical_of_first

    _warn_deprecated("get_numerical_jacobian")
    return numerical_of_first(fn, inputs, target, eps, grad_out)


def get_analytical_jacobian(inputs, output, nondet_tol: float = 0.0, grad_out: float = 1.0) -> tuple:
    """Deprecated: (Jacobians by backward per input, same twice, sizes right, dtypes right)."""
    from .gradcheck_run import analytical_with_checks

    _warn_deprecated("get_analytical_jacobian")
    return analytical_with_checks(inputs, output, nondet_tol, grad_out)


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable, input_idx: int, inputs, outputs, eps: float, input=None, is_forward_ad: bool = False
) -> tuple:
    """The Jacobians of all outputs with respect to one input, by differences."""
    from .jacobians import as_tuple, numerical_jacobian

    return tuple(numerical_jacobian(fn, as_tuple(inputs), input_idx, as_tuple(outputs), eps, input))


__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input", "gradcheck", "gradgradcheck",
]  # fmt: skip
