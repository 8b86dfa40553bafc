"""Claims of method "exact" that once were false, each with the call that showed it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

import blockl0
from blockl0.exact.last_columns import finish
from blockl0.exact.stages import Stages
from blockl0.exact.watch import Watch
from blockl0.problem.problem import as_problem
from blockl0.run import Incumbent, Run


def least_loss(X, y, k):
    """The optimum by enumeration."""
    losses = [
        0.5 * np.sum((y - X[:, list(S)] @ np.linalg.lstsq(X[:, list(S)], y, rcond=None)[0]) ** 2)
        for S in combinations(range(X.shape[1]), k)
    ]
    return min(losses)


@pytest.mark.parametrize("gap", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(2))
def test_a_bound_reached_with_a_gap_is_no_higher_than_the_optimum(gap, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((30, 21)), rng.standard_normal(30)
    result = blockl0.solve(
        X, y, n_nonzero_coefs=3, method="exact", gap=gap, random_state=0, node_limit=10**6
    )
    assert result.lower_bound <= least_loss(X, y, 3) * (1 + 1e-9)
    assert result.status in (blockl0.Status.OPTIMAL, blockl0.Status.GAP)
    assert result.status is blockl0.Status.GAP or result.gap == 0.0


def test_few_columns_without_a_bound_are_enumerated_to_the_end():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 22)), rng.standard_normal(10)
    result = blockl0.solve(X, y, n_nonzero_coefs=4, method="exact", random_state=0)
    assert result.status is blockl0.Status.OPTIMAL
    assert result.objective == pytest.approx(least_loss(X, y, 4), rel=1e-8)


def test_what_the_enumeration_finds_is_kept():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((8, 140)), rng.standard_normal(8)
    problem = as_problem(X, y, n_nonzero_coefs=4)
    w = problem.zero()
    w[:4] = np.linalg.lstsq(X[:, :4], y, rcond=None)[0]
    start = Incumbent.at(problem, w)
    search = Stages(problem, start, Watch(), 0.0, 4e9)
    best = np.inf
    while not search.is_stuck and not search.is_finished:
        search.advance(20_000)
        assert search.incumbent.objective <= best
        best = search.incumbent.objective
    assert best < start.objective


def test_the_included_columns_alone_are_counted():
    H, c = np.eye(3), np.array([2.0, 0.1, 0.1])
    found = finish(H, c, np.array([0]), np.array([1, 2]), 2, 1e-15, 3.0, 5.0, -10.0)
    assert found is not None
    assert found.bound == pytest.approx(-2.0, rel=1e-9)
    assert found.doubts == []


def test_what_is_no_number_is_in_doubt():
    H, c = np.eye(3), np.array([2.0, np.nan, 0.1])
    found = finish(H, c, np.array([0]), np.array([1, 2]), 1, 1e-15, 3.0, 0.0, -10.0)
    assert found is not None
    assert [doubt.tolist() for doubt in found.doubts] == [[0]]


def test_a_time_limit_is_kept_while_the_first_bound_is_made():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 900)) + rng.standard_normal((1200, 1))
    y = X[:, ::90].sum(axis=1) + 5.0 * rng.standard_normal(1200)
    problem = as_problem(X, y, n_nonzero_coefs=10, ridge=0.1)
    search = Stages(
        problem, Incumbent.at(problem, problem.zero()), Watch(Run(problem, 0.0)), 0.0, 4e9
    )
    search.advance(5)
    assert not search.is_finished
    assert search.bound <= blockl0.solve(X, y, n_nonzero_coefs=10, ridge=0.1).objective
