"""Nearly perfect fits with columns that are combinations of others but for their last digits.

What is called optimal there is compared with an enumeration in long double.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import blockl0
from blockl0.exact.few_columns import Subsets
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import PRECISION, rounding_of
from blockl0.problem.problem import as_problem
from blockl0.search.local_search import LocalSearch
from long_double import lowest

KINDS = ("groups", "bounds", "groups+bounds", "columns")
FEW, MANY = 6, 400


def draw(kind, seed):
    """Columns at distances of 1e-15 ... 1e-7, and a target with a residual of 1e-12 ... 1e-3."""
    rng = np.random.default_rng([seed, *kind.encode()])
    n = int(rng.integers(2, 5))
    m = n + int(rng.integers(0, 10))
    X, w = rng.standard_normal((m, n)), rng.standard_normal(n)
    for _ in range(int(rng.integers(1, 3))):
        j = int(rng.integers(n))
        others = np.delete(np.arange(n), j)
        X[:, j] = X[:, others] @ rng.integers(-2, 3, n - 1)
        X[:, j] += 10.0 ** rng.uniform(-15.0, -7.0) * rng.standard_normal(m)
    y = X @ w + 10.0 ** rng.uniform(-12.0, -3.0) * rng.standard_normal(m)
    if rng.random() < 0.5:
        i, j = rng.choice(n, 2, replace=False)
        X[:, j] = X[:, i] + 10.0 ** rng.uniform(-8.0, -3.0) * y
    given: dict = {}
    groups, low, high = np.arange(n), np.full(n, -np.inf), np.full(n, np.inf)
    if "groups" in kind:
        groups = rng.integers(0, int(rng.integers(1, n + 1)), n)
        given["feature_groups"] = groups
    if "bounds" in kind:
        size = float(rng.choice([0.5, 2.0, 10.0]))
        low, high = np.full(n, -size), np.full(n, rng.choice([size, np.inf]))
        given["bounds"] = (low, high)
    given["n_nonzero_coefs"] = int(rng.integers(1, len(set(groups.tolist())) + 1))
    return X, y, given, (groups.tolist(), given["n_nonzero_coefs"], low, high)


@cache
def truth_of(kind, seed):
    """The least objective and its rounding, for all methods."""
    X, y, _, choice = draw(kind, seed)
    return lowest(X, y, *choice)


def check(kind, seed, method):
    X, y, given, _ = draw(kind, seed)
    result = blockl0.solve(X, y, random_state=0, method=method, **given)
    truth, rounding = truth_of(kind, seed)
    own = PRECISION * (np.linalg.norm(y) + np.abs(result.coef) @ np.linalg.norm(X, axis=0))
    slack = rounding_of(as_problem(X, y, **given), result.coef) + own * np.linalg.norm(
        y - X @ result.coef
    )
    slack += 2.0 * rounding + 1e-10 * result.objective
    if result.lower_bound is not None:
        assert result.lower_bound <= float(truth) + slack, (kind, seed, method)
    if str(result.status) == "optimal":
        assert result.objective <= float(truth) + slack, (kind, seed, method)
    return str(result.status) == "optimal"


@pytest.mark.parametrize("method", ["refit", "exact"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_called_optimal_is(kind, method):
    for seed in range(FEW):
        check(kind, seed, method)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_that_are_called_optimal_are(kind, monkeypatch):
    found = [check(kind, seed, "refit") for seed in range(FEW, FEW + MANY)]
    monkeypatch.setattr(LocalSearch, "exhaust", lambda self, incumbent, run: (incumbent, False))
    found += [check(kind, seed, "exact") for seed in range(FEW, FEW + MANY)]
    assert np.mean(found) > 0.2  # most of them can be told


def twins(distance=3e-14, residual=1e-8, seed=0):
    """A column and the same a little nearer to the target."""
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal((2, 15))
    u -= x * (u @ x) / (x @ x)
    size = np.linalg.norm(x) / np.linalg.norm(u)
    return np.column_stack([x, x + distance * size * u]), x + residual * size * u


STRUCTURES = (
    {"feature_groups": [0, 1]},
    {"bounds": (-10.0, 10.0)},
    {"positive": True},
    {"bounds": (-10.0, 10.0), "feature_groups": [1, 0]},
)


@pytest.mark.parametrize("given", STRUCTURES)
@pytest.mark.parametrize("method", ["refit", "exact"])
def test_structures_decide_as_finely_as_columns(given, method):
    """The second column is within 1e-13 of the first, and lower by six digits of the objective."""
    for seed in range(4):
        X, y = twins(seed=seed)
        for nearer in (0, 1):
            plain = blockl0.solve(X, y, n_nonzero_coefs=1, random_state=0, method=method)
            found = blockl0.solve(X, y, n_nonzero_coefs=1, random_state=0, method=method, **given)
            assert str(found.status) == "optimal"
            assert plain.support.tolist() == found.support.tolist() == [1 - nearer]
            assert found.objective == pytest.approx(plain.objective, rel=1e-8)
            X = X[:, ::-1]


def test_several_responses_decide_as_finely_as_one():
    X, y = twins()
    given = {"n_nonzero_coefs": 1, "random_state": 0}
    found = blockl0.solve(X, np.column_stack([y, 2.0 * y]), **given)
    assert str(found.status) == "optimal" and found.support.tolist() == [1]
    # and with room for both, of which only one can be in
    found = blockl0.solve(X, np.column_stack([y, 2.0 * y]), n_nonzero_coefs=2, random_state=0)
    assert str(found.status) == "optimal" and found.support.tolist() == [1]


@pytest.mark.parametrize("method", ["refit", "exact"])
def test_a_choice_inside_a_group_that_matters_is_not_called_optimal(method):
    X, y = twins()
    given = {"n_nonzero_coefs": 1, "feature_groups": [0, 0], "random_state": 0}
    result = blockl0.solve(X, y, method=method, **given)
    assert result.n_nonzero == 1 and len(result.support) == 1
    assert str(result.status) == "converged"
    # where the residual is so large that nothing can be gained, it is
    X, y = twins(residual=1e-2)
    assert str(blockl0.solve(X, y, method=method, **given).status) == "optimal"


def test_what_an_exchange_may_gain():
    """A fit keeps one of two columns; with the other one in its place it is lower by the doubt."""
    for distance in (3e-15, 1e-14, 8e-14):
        X, y = twins(distance)
        problem = as_problem(X, y, n_nonzero_coefs=1, feature_groups=[0, 0])
        fits, both = make_fits(problem), np.arange(2)
        kept = fits.coef_on(both)
        values = [np.longdouble(0)] * 2
        for j in range(2):
            x, target = X[:, j].astype(np.longdouble), y.astype(np.longdouble)
            r = target - x * (x @ target) / (x @ x)
            values[j] = 0.5 * r @ r
        gain = abs(float(values[0] - values[1]))
        assert fits.doubt(both, kept) == pytest.approx(gain, rel=0.2)
        assert fits.doubt(both[:1], fits.coef_on(both[:1])) == 0.0
    X, y = twins(1e-10)
    fits = make_fits(as_problem(X, y, n_nonzero_coefs=1, feature_groups=[0, 0]))
    assert fits.doubt(both, fits.coef_on(both)) == np.inf


def test_subsets_round_as_their_best_point_does():
    """What is rounding beside the first point is none beside a much better one."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((20, 3))
    y = X[:, 0] + 1e-9 * rng.standard_normal(20)
    problem = as_problem(X, y, n_nonzero_coefs=1, feature_groups=[0, 1, 2])
    fits = make_fits(problem)
    start = fits.on(np.array([1]))
    subsets = Subsets(problem, fits, start.w, start.value, 1.0)
    assert subsets.tolerance == rounding_of(problem, start.w)
    best = fits.on(np.array([0]))
    subsets._take(best.w, best.value)
    assert subsets.tolerance == rounding_of(problem, best.w) < 1e-8 * rounding_of(problem, start.w)


@pytest.mark.parametrize("rest", [5e-15, 3e-14, 8e-14])
@pytest.mark.parametrize("residual", [1e-2, 1.0])
@pytest.mark.parametrize("angle", [1e-3, 1e-5, 1e-7])
def test_two_columns_that_may_come_at_once_leave_the_optimum_unsaid(rest, residual, angle):
    """Their shares in the others are nearly parallel, so that together they have huge coefficients.

    A column that is left out gains next to nothing where it takes the place of another one.
    """
    rng = np.random.default_rng(0)
    a, b, u, z = np.linalg.qr(rng.standard_normal((30, 4)))[0].T
    third = 0.9 * (a + b) / np.sqrt(2.0) + rest * u
    X = np.column_stack([a, b, third, 0.63 * (a + (1.0 + angle) * b) - rest * u])
    y = a - 0.7 * b + residual * (u + z)
    L = np.longdouble
    w = blockl0.solve(X[:, 2:], y, n_nonzero_coefs=2).coef
    r = y.astype(L) - X[:, 2:].astype(L) @ w.astype(L)
    other = 0.5 * float(r @ r)
    for labels, k in (([0, 0, 0, 0], 1), ([0, 1, 1, 1], 2)):
        given = {"feature_groups": labels, "n_nonzero_coefs": k}
        for method in ("refit", "exact"):
            result = blockl0.solve(X, y, random_state=0, method=method, **given)
            slack = 1e-10 * other
            if str(result.status) == "optimal":
                assert result.objective <= other + slack
            if result.lower_bound is not None:
                assert result.lower_bound <= other + slack
