"""Capabilities of each method, declared with it and checked before it runs.

A method is a function (problem, run, *, init, rng, **its own options) -> Result. `@method` names it
and declares what it takes; other problems are refused with the names of methods that take them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations as subsets
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from blockl0.problem.problem import Problem, as_problem
from blockl0.result import Result
from blockl0.units import Columns

LISTED = 3
"""Methods named in a refusal, at most."""

_COMMON = ("problem", "run", "init", "rng")


@dataclass(frozen=True)
class Method:
    """A method and its capabilities.

    Attributes
    ----------
    name : str
    solve : callable
    losses : "any", "bounded" or "quadratic"
        The losses it takes: all, those whose curvature has a bound, or the squared one.
    forms : tuple of str
        "budget" if it takes a budget, "price" if it takes a price; with both also the two together.
    intercept : bool
        Whether it takes an intercept inside the objective, see `Problem.has_intercept`.
    several_outputs : bool
        Whether it takes losses with several predictors per sample.
    start : bool
        Whether it takes a starting point.
    reduces : bool
        Whether tall data may be replaced by their triangular factor; see
        `blockl0.problem.factors`. The result is still for all rows.
    units : tuple of type
        What a budget may count; see `blockl0.units`.
    bounds, costs, responses : bool
        Whether it supports bounds on coefficients, costs of single units, and several responses.
    """

    name: str
    solve: Callable[..., Result]
    losses: str = "any"
    forms: tuple[str, ...] = ("budget", "price")
    intercept: bool = True
    several_outputs: bool = False
    start: bool = True
    reduces: bool = False
    units: tuple[type, ...] = (Columns,)
    bounds: bool = False
    costs: bool = False
    responses: bool = False

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Its own options with their defaults, from its signature."""
        parameters = inspect.signature(self.solve).parameters
        return {name: p.default for name, p in parameters.items() if name not in _COMMON}

    def refusal(self, problem: Problem) -> str | None:
        """Say in a sentence why it refuses a problem; None if it takes it."""
        price, budget = problem.sparsity
        loss = problem.loss
        # structure first: its refusal says more than that of a loss
        reason = self._structure_refusal(problem)
        if reason is not None:
            return reason
        if price > 0.0 and "price" not in self.forms:
            return (
                f"takes a budget (`n_nonzero_coefs`) and no price, got alpha={price:g}; leave "
                "`alpha` out"
            )
        if budget < problem.n_units and "budget" not in self.forms:
            return (
                f"takes a price (`alpha`) and no budget, got n_nonzero_coefs={budget}; leave "
                "`n_nonzero_coefs` out"
            )
        if self.losses == "quadratic" and not loss.is_quadratic:
            return f"solves loss='squared' only, got loss={loss.name!r}"
        if loss.n_outputs > 1 and not (self.several_outputs or loss.takes_responses):
            return f"takes losses with one predictor for a sample, got loss={loss.name!r}"
        if self.losses == "bounded" and not np.isfinite(loss.curvature_bound):
            return (
                f"needs a quadratic above the loss, but loss={loss.name!r} has unbounded curvature"
            )
        if problem.has_intercept and not self.intercept:
            return f"has no intercept for loss={loss.name!r}; center the columns, or do without one"
        return None

    def _structure_refusal(self, problem: Problem) -> str | None:
        """Say why it refuses groups, bounds, costs or several responses; None if it does not."""
        loss, n_responses = problem.loss, problem.y.shape[1] if problem.y.ndim == 2 else 1
        if not isinstance(problem.units, self.units):
            return "chooses columns one by one and knows no `feature_groups`"
        if problem.bounds is not None and not self.bounds:
            return "knows no `bounds` and no `positive`"
        if problem.bounds is not None and not loss.takes_bounds:
            return (
                f"bounds coefficients that mean something by themselves, and those of "
                f"loss={loss.name!r} do only beside those of the other classes"
            )
        if problem.costs is not None and not self.costs:
            return "has one price for all columns and knows no `costs`"
        if n_responses > 1 and not self.responses:
            return f"takes one response, got `y` with {n_responses}"
        return None

    def check(self, problem: Problem, init: Any = None) -> None:
        """Refuse a problem or start that it does not take, naming methods that do."""
        if init is not None and not self.start:
            raise ValueError(f"method={self.name!r} always starts at zero; leave `init` out.")
        reason = self.refusal(problem)
        if reason is not None:
            able = [other for other in METHODS.values() if other.refusal(problem) is None]
            # the most general ones first, starting with the default
            able.sort(key=lambda other: (other.losses != "any", other.name != "refit"))
            listed = ", ".join(repr(other.name) for other in able[:LISTED])
            link = ", or" if ";" in reason else ";"
            remedy = f"{link} use method={listed}." if able else "; no method can."
            raise ValueError(f"method={self.name!r} {reason}{remedy}")


STRUCTURES: dict[str, dict[str, Any]] = {
    "groups": {"feature_groups": ["a", "b", "a"]},
    "bounds": {"positive": True},
    "responses": {},
    "costs": {"costs": [1.0, 2.0, 1.0]},
}
"""Structures of a problem beyond plain columns, for three columns; responses come from y."""


class Combination(NamedTuple):
    """A problem with some structures, a loss and a storage of X, and why a method refuses it."""

    structures: tuple[str, ...]
    loss: str
    storage: str
    method: str
    reason: str | None


def combinations(
    targets: dict[str, Any], storages: dict[str, Callable[[Any], Any]]
) -> Iterator[Combination]:
    """Yield all combinations of structures, losses, storages and methods.

    Parameters
    ----------
    targets : dict
        A target (3,) for each loss.
    storages : dict
        Functions that store an array (3, 3), by name.
    """
    X = np.eye(3) + 0.5
    names = tuple(STRUCTURES)
    chosen = [part for k in range(len(names) + 1) for part in subsets(names, k)]
    for structures, (loss, y), storage in product(chosen, targets.items(), storages):
        target = np.asarray(y, dtype=np.float64)
        if "responses" in structures:
            target = np.column_stack([target, target[::-1]])
        given = {name: value for part in structures for name, value in STRUCTURES[part].items()}
        for known in METHODS.values():
            form = {"alpha": 1.0} if "price" in known.forms else {"n_nonzero_coefs": 1}
            try:
                problem = as_problem(storages[storage](X), target, loss=loss, **form, **given)
            except ValueError as error:
                reason: str | None = str(error)
            else:
                reason = known.refusal(problem)
            yield Combination(structures, loss, storage, known.name, reason)


METHODS: dict[str, Method] = {}
"""All methods by name, registered when the modules of `blockl0.solve` are imported."""


def method(name: str, **capabilities: Any) -> Callable[[Any], Any]:
    """Register a function as a method, with its capabilities; see `Method`."""

    def register(function: Any) -> Any:
        METHODS[name] = Method(name, function, **capabilities)
        return function

    return register
