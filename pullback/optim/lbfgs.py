"""L-BFGS: a quasi-Newton method that keeps the last steps and gradient changes instead of a matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core import modes
from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..ops.system.operator import public
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer
from .per_parameter import check_lr, number, real_view

cat = public("torch", "cat")


class LBFGS(Optimizer):
    """L-BFGS on all parameters as one vector; `step` takes a closure and may call it many times.

    >>> w = torch.nn.Parameter(torch.tensor([1.0]))
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> first = optimizer.step(closure)
    >>> w.detach()
    tensor([3.])
    """

    def __init__(
        self, params: Iterable, lr: float | Tensor = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ):  # fmt: skip
        check_lr(lr)
        super().__init__(
            params,
            dict(
                lr=lr, max_iter=max_iter, max_eval=max_iter * 5 // 4 if max_eval is None else max_eval,
                tolerance_grad=tolerance_grad, tolerance_change=tolerance_change, history_size=history_size,
                line_search_fn=line_search_fn,
            ),
        )  # fmt: skip
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_gradient(self) -> Tensor:
        parts = []
        for p in self._params:
            g = p.new_zeros(p.shape) if p.grad is None else p.grad.to_dense() if p.grad.is_sparse else p.grad
            parts.append(real_view(g).reshape(-1))
        return cat(parts, 0)

    def _move(self, t: float, direction: Tensor) -> None:
        at = 0
        for p in map(real_view, self._params):
            p.add_(direction[at : at + p.numel()].view_as(p), alpha=t)
            at += p.numel()

    @no_grad()
    def step(self, closure: Callable):
        """One step, of up to `max_iter` iterations; the loss of the first evaluation is returned."""

        def evaluate():
            with modes.masked(0, modes.GRAD):
                return closure()

        group, state = self.param_groups[0], self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        state["func_evals"] += 1
        gradient = self._flat_gradient()
        if gradient.abs().max().item() > group["tolerance_grad"]:
            self._iterate(evaluate, float(first_loss), gradient, group, state)
        return first_loss

    def _iterate(self, evaluate: Callable, loss: float, gradient: Tensor, group: dict, state: dict) -> None:
        lr, small = number(group["lr"]), group["tolerance_change"]
        evaluations = 1
        for n in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            self._remember(gradient, group, state)
            direction = state["d"] = _direction(gradient, state)
            state["prev_flat_grad"], state["prev_loss"] = gradient.clone(), loss
            first = state["n_iter"] == 1
            state["t"] = t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr if first else lr
            slope = gradient.dot(direction).item()
            if slope > -small:
                break
            if group["line_search_fn"] is not None:
                start = Point(0, loss, gradient, slope)
                found, used = self._search(evaluate, t, direction, start, group, group["max_eval"] - evaluations)
                loss, gradient, t = found.value, found.gradient, found.t
                state["t"] = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                used = 0
                if n != group["max_iter"]:  # at the last iteration nobody needs the new value
                    loss, gradient, used = float(evaluate()), self._flat_gradient(), 1
            evaluations += used
            state["func_evals"] += used
            if evaluations >= group["max_eval"] or gradient.abs().max().item() <= group["tolerance_grad"]:
                break
            if (direction * t).abs().max().item() <= small or abs(loss - state["prev_loss"]) < small:
                break

    def _remember(self, gradient: Tensor, group: dict, state: dict) -> None:
        """Add the last step and what it did to the gradient to the history."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return
        y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        ys = y.dot(s).item()
        if ys <= 1e-10:
            return
        for name, value in (("old_dirs", y), ("old_stps", s), ("ro", 1.0 / ys)):
            if len(state[name]) == group["history_size"]:
                state[name].pop(0)
            state[name].append(value)
        state["H_diag"] = ys / y.dot(y).item()

    def _search(self, evaluate: Callable, t: float, direction: Tensor, start: Point, group: dict, limit: int):
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        kept = [p.clone() for p in self._params]

        def at(t: float) -> tuple[float, Tensor]:
            self._move(t, direction)
            loss, gradient = float(evaluate()), self._flat_gradient()
            for p, value in zip(self._params, kept, strict=True):
                p.copy_(value)
            return loss, gradient

        return strong_wolfe(at, t, direction, start, max_evaluations=limit)


def _direction(gradient: Tensor, state: dict) -> Tensor:
    """Minus the inverse Hessian's estimate times the gradient, by the two-loop recursion."""
    q = gradient.neg()
    pairs = list(zip(state["old_dirs"], state["old_stps"], state["ro"], strict=True))
    weights = []
    for y, s, ro in reversed(pairs):
        weights.append(s.dot(q).item() * ro)
        q.add_(y, alpha=-weights[-1])
    r = q * state["H_diag"]
    for (y, s, ro), weight in zip(pairs, reversed(weights), strict=True):
        r.add_(s, alpha=weight - y.dot(r).item() * ro)
    return r
