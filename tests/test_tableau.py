"""The swept tableau: every number it reads off equals a least squares fit from scratch."""

from __future__ import annotations

import numpy as np
import pytest

import oracles
from blockl0.tableau import Tableau, descend

N = 9


@pytest.fixture
def quadratic(rng):
    X = rng.standard_normal((14, N)) + 0.7 * rng.standard_normal((14, 1))
    Q, p, _ = oracles.quadratic_of(X, rng.standard_normal(14))
    return Q, p


def value_on(Q, p, support):
    return oracles.smooth(Q, p, oracles.fit_on(Q, p, sorted(support)))


def test_entries_are_schur_complement_gradient_inverse_and_coefficients(quadratic):
    Q, p = quadratic
    tableau = Tableau(Q, p)
    for j in (4, 1, 7):
        tableau.toggle(j)
    S, U = [1, 4, 7], [0, 2, 3, 5, 6, 8]
    inverse = np.linalg.inv(Q[np.ix_(S, S)])
    w = oracles.fit_on(Q, p, S)
    schur = Q[np.ix_(U, U)] - Q[np.ix_(U, S)] @ inverse @ Q[np.ix_(S, U)]
    np.testing.assert_allclose(tableau.A[np.ix_(U, U)], schur, atol=1e-10)
    np.testing.assert_allclose(tableau.A[np.ix_(S, S)], -inverse, atol=1e-10)
    np.testing.assert_allclose(tableau.A[np.ix_(S, U)], inverse @ Q[np.ix_(S, U)], atol=1e-10)
    np.testing.assert_allclose(tableau.b[U], (Q @ w + p)[U], atol=1e-10)
    np.testing.assert_allclose(tableau.b[S], -w[S], atol=1e-10)
    assert tableau.value == pytest.approx(value_on(Q, p, S))
    assert tableau.support.tolist() == S


def test_toggling_twice_changes_nothing(quadratic):
    Q, p = quadratic
    tableau = Tableau(Q, p)
    for j in (4, 1, 7, 1, 7, 4):
        tableau.toggle(j)
    np.testing.assert_allclose(tableau.A, Q, atol=1e-10)
    np.testing.assert_allclose(tableau.b, p, atol=1e-10)
    assert tableau.value == pytest.approx(0.0, abs=1e-10)
    assert tableau.support.size == 0


def test_additions_removals_and_swaps_are_priced_with_the_support_refitted(quadratic):
    Q, p = quadratic
    tableau, S = Tableau(Q, p), {1, 4, 7}
    for j in S:
        tableau.toggle(j)
    gains, costs = tableau.add_gains(), tableau.drop_costs()
    for j in range(N):
        if j in S:
            assert gains[j] == -np.inf
            assert costs[j] == pytest.approx(value_on(Q, p, S - {j}) - tableau.value)
        else:
            assert costs[j] == np.inf
            assert gains[j] == pytest.approx(tableau.value - value_on(Q, p, S | {j}))
    swaps = {
        (i, j): value_on(Q, p, (S - {j}) | {i}) - tableau.value
        for i in set(range(N)) - S
        for j in S
    }
    change, i, j = tableau.best_swap(np.zeros(N, dtype=bool))
    assert (i, j) == min(swaps, key=swaps.get)
    assert change == pytest.approx(swaps[i, j])
    kept = np.zeros(N, dtype=bool)
    kept[j] = True
    assert tableau.best_swap(kept)[2] != j


def test_no_swap_with_an_empty_or_a_full_support(quadratic):
    tableau, kept = Tableau(*quadratic), np.zeros(N, dtype=bool)
    assert tableau.best_swap(kept)[0] == np.inf
    for j in range(N):
        tableau.toggle(j)
    assert tableau.best_swap(kept)[0] == np.inf


def test_columns_in_the_span_of_the_support_are_never_added(rng):
    X = rng.standard_normal((14, 5))
    X = np.column_stack([X, X[:, 0], X[:, 1] + X[:, 2], np.zeros(14)])
    Q, p, _ = oracles.quadratic_of(X, rng.standard_normal(14))
    tableau = Tableau(Q, p)
    for j in (0, 1, 2):
        tableau.toggle(j)
    gains = tableau.add_gains()
    assert np.all(gains[5:] == -np.inf) and np.all(gains[3:5] > -np.inf)


@pytest.mark.parametrize(("price", "budget"), [(0.0, 3), (0.3, N), (0.1, 4), (0.0, 0), (1e9, N)])
def test_descent_ends_where_no_single_move_helps(quadratic, price, budget):
    Q, p = quadratic
    none = np.zeros(N, dtype=bool)
    for start in ([], [0, 5, 8][:budget]):
        tableau = descend(Q, p, price, budget, np.array(start, dtype=np.int64), none)
        S = set(tableau.support.tolist())
        assert len(S) <= budget
        value = value_on(Q, p, S) + price * len(S)
        assert tableau.value + price * len(S) == pytest.approx(value, abs=1e-9)
        neighbours = [S - {j} for j in S] + [
            (S - {j}) | {i} for i in set(range(N)) - S for j in S | {i}
        ]
        for T in neighbours:
            if len(T) <= budget:
                assert value_on(Q, p, T) + price * len(T) >= value - 1e-8


def test_descent_leaves_kept_columns_in(quadratic):
    Q, p = quadratic
    kept = np.zeros(N, dtype=bool)
    kept[[2, 6]] = True
    assert descend(Q, p, 1e9, N, np.array([2, 6]), kept).support.tolist() == [2, 6]
    assert {2, 6} <= set(descend(Q, p, 0.0, 4, np.array([2, 6]), kept).support.tolist())
