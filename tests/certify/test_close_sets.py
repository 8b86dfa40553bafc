"""Sets that are nearly as good as the chosen one are counted, and said beside what is proven."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import solve
from blockl0.certify import words
from blockl0.certify.close_sets import count_close
from blockl0.certify.levels import Choice, ProofStatus
from blockl0.problem import as_problem


def target(loss: str, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a target with noise of size one around a predictor."""
    y = eta + rng.standard_normal(eta.size)
    if loss == "poisson":
        return rng.poisson(np.exp(0.3 * y)).astype(float)
    return {"squared": y, "logistic": np.sign(y), "softmax": np.digitize(y, [-0.5, 0.5])}[loss]


@pytest.mark.parametrize("loss", ["squared", "logistic", "poisson", "softmax"])
@pytest.mark.parametrize("ridge", [0.1, 3.0])
def test_exchanges_within_a_share_are_those_of_enumeration(loss, ridge):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 9))
    y, how = target(loss, X[:, 0], rng), {"loss": loss, "ridge": ridge}
    found = solve(X, y, n_nonzero_coefs=3, keep=[0], **how)
    problem = as_problem(X, y, n_nonzero_coefs=5, keep=[0], **how)

    def value(columns: list[int]) -> float:
        return solve(X[:, columns], y, n_nonzero_coefs=3, **how).objective

    chosen = found.support.tolist()
    others = np.setdiff1d(np.arange(9), chosen).tolist()
    values = np.array([
        value(sorted([*(c for c in chosen if c != i), j])) for i in chosen if i != 0 for j in others
    ])  # fmt: skip
    for share in (0.0, 0.01, 0.05, 10.0):
        is_close = values <= (1.0 + share) * found.objective
        assert count_close(problem, found.coef, share) == np.count_nonzero(is_close)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_exchanges_of_groups_that_pay(loss):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((60, 9))
    y, groups = target(loss, X[:, 0], rng), [0, 0, 1, 2, 2, 2, 3, 4, 4]
    costs, price = np.array([2.0, 1.0, 3.0, 1.0, 2.0]), 0.7
    how = {"loss": loss, "ridge": 0.2}
    problem = as_problem(
        X, y, n_nonzero_coefs=2, feature_groups=groups, costs=costs[groups], alpha=price, **how
    )

    def value(units: list[int]) -> float:
        columns = np.isin(groups, units)
        fit = solve(X[:, columns], y, n_nonzero_coefs=int(columns.sum()), **how)
        return fit.objective + price * costs[units].sum()

    def coef(units: list[int]) -> np.ndarray:
        w, columns = np.zeros(9), np.flatnonzero(np.isin(groups, units))
        w[columns] = solve(X[:, columns], y, n_nonzero_coefs=columns.size, **how).coef
        return w

    others = [[0, 2], [0, 3], [0, 4], [1, 2], [1, 3], [1, 4]]
    for share in (0.01, 0.05, 0.2):
        ceiling = (1.0 + share) * value([0, 1])
        expected = sum(value(units) <= ceiling for units in others)
        assert count_close(problem, coef([0, 1]), share) == expected


def test_nothing_is_counted_where_nothing_can_be_exchanged_or_all_fit(rng):
    X = rng.standard_normal((30, 4))
    y = X[:, 0] - X[:, 1]
    for given, expected in (({"n_nonzero_coefs": 4}, None), ({"n_nonzero_coefs": 2}, 0)):
        problem = as_problem(X, y, **given)
        coef = np.array([1.0, -1.0, *([1.0, 1.0] if given["n_nonzero_coefs"] == 4 else [0.0, 0.0])])
        assert count_close(problem, coef) == expected
    assert count_close(as_problem(X, y, n_nonzero_coefs=2), np.zeros(4)) is None
    bounded = as_problem(X, y, n_nonzero_coefs=2, bounds=(-1.0, 1.0))
    assert count_close(bounded, np.array([1.0, -1.0, 0.0, 0.0])) is None


def test_close_sets_and_the_penalty_are_said_beside_the_proof():
    some, penalized = Choice(2, 2, 9), Choice(2, 2, 9, has_ridge=True)
    assert words.question(some) == "Is there a better set of 2 for these rows?"
    assert words.question(Choice(1, 2, 9)) == "Is there a better set of up to 2 for these rows?"
    assert words.answer(ProofStatus("optimal")) == "No (proven)"
    said = words.sentence(ProofStatus("optimal", n_close=30), some)
    assert said == (
        "Proven: no other 2 columns fit these rows better. But 30 sets that differ in one column "
        "are within 0.5\N{NO-BREAK SPACE}% of the objective."
    )
    assert "But one set that differs in one column is within" in words.short(
        ProofStatus("swaps", n_close=1), some
    )
    for kind in ("optimal", "pairs", "swaps", "single", "tried"):
        known = ProofStatus(kind, n_tried=3, n_possible=14)
        assert "for this ridge penalty." in words.short(known, penalized)
        assert "ridge" not in words.short(known, some)
    assert "for this ridge penalty." in words.proven(ProofStatus("optimal"), penalized, ["a"] * 9)
