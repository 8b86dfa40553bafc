"""Columns close to each other within bounds and in groups, and fits that are nearly perfect.

The truth comes from other columns of the same span: x and x + du are x and u, which are far from
each other, and a coefficient of x + du of at least zero is one of u of at least zero.
"""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import blockl0
from blockl0.errors import OutOfReachError
from blockl0.moves.single_moves import CheckCost, CheckedPoint, UnitMoves
from blockl0.problem.bounded import bounded_least_squares
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import least_squares
from blockl0.problem.problem import as_problem
from blockl0.search import settled
from structures import best_near, draw, fit_value

DISTANCES = (3e-8, 1e-7, 3e-7, 1e-5)


def pair(seed, distance, m=16):
    """x, x + du and two more, of which u and the third matter; and the same with u itself."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    u = rng.standard_normal(m)
    u *= np.linalg.norm(X[:, 0]) / np.linalg.norm(u)
    signal = 0.3 * X[:, 2] + u
    X[:, 1] = X[:, 0] + distance * u
    apart = X.copy()
    # as rounding has made it
    apart[:, 1] = (X[:, 1] - X[:, 0]) / distance
    return X, apart, signal + 0.1 * rng.standard_normal(m), rng


@pytest.mark.parametrize("distance", DISTANCES)
def test_close_columns_within_bounds_are_told_apart(distance):
    for seed in range(4):
        X, apart, y, _ = pair(seed, distance)
        expected = 0.5 * np.sum(
            (y - apart[:, :2] @ np.linalg.lstsq(apart[:, :2], y, rcond=None)[0]) ** 2
        )
        given = {"n_nonzero_coefs": 2, "positive": [1]}
        for method in ("refit", "exact"):
            found = blockl0.solve(X, y, method=method, random_state=0, **given)
            assert found.objective == pytest.approx(expected, rel=1e-7)
            # coefficients of 1/distance: the objective itself is rounded by so much more
            slack = 1e-9 + 1e-15 / distance
            assert found.lower_bound is None or found.lower_bound <= expected * (1.0 + slack)
        worse = np.zeros(4)
        worse[[0, 2]] = least_squares(X[:, [0, 2]], y)
        assert not blockl0.certify(X, y, worse, level=2, **given).holds


@pytest.mark.parametrize("distance", (6e-8, 1e-6))
def test_close_columns_of_other_losses_within_bounds(distance):
    for seed in range(3):
        X, apart, signal, rng = pair(seed, distance, m=40)
        y = rng.poisson(np.exp(0.3 * signal)).astype(float)
        given = {"loss": "poisson", "positive": [1], "n_nonzero_coefs": 2}
        expected = blockl0.solve(apart[:, :2], y, random_state=0, **given).objective
        found = blockl0.solve(X[:, :2], y, random_state=0, **given).objective
        assert found == pytest.approx(expected, rel=1e-9)
        worse = np.zeros(4)
        some = blockl0.solve(X[:, [0, 2]], y, random_state=0, loss="poisson", n_nonzero_coefs=2)
        worse[[0, 2]] = some.coef
        if some.objective > expected * (1.0 + 1e-6):
            assert not blockl0.certify(X, y, worse, level=2, **given).holds


def lowest(A, b, low, high):
    """The least ½‖b − Ax‖² within bounds over all active sets."""
    values, k = [], A.shape[1]
    for at in product((0, 1, 2), repeat=k):
        x = np.select([np.equal(at, 1), np.equal(at, 2)], [low, high], 0.0)
        free = np.equal(at, 0)
        if not np.isfinite(x).all():
            continue
        x[free] = np.linalg.lstsq(A[:, free], b - A @ x, rcond=None)[0]
        if (x >= low).all() and (x <= high).all():
            values.append(0.5 * np.sum((b - A @ x) ** 2))
    return min(values)


@pytest.mark.parametrize("distance", (*DISTANCES, 1.0))
def test_active_sets_are_the_best_of_all(distance):
    for seed in range(20):
        rng = np.random.default_rng([seed, 3])
        A = rng.standard_normal((8, 4))
        A[:, 1] = A[:, 0] + distance * A[:, 1]
        A /= np.linalg.norm(A, axis=0)
        B = rng.standard_normal((8, 2)) * [1.0, 1e3]
        low = -np.where(rng.random(4) < 0.5, 0.0, rng.random(4))
        high = np.where(rng.random(4) < 0.5, np.inf, rng.random(4))
        V, _ = bounded_least_squares(A, B, low, high)
        assert (V.T >= low).all() and (V.T <= high).all()
        for b, v in zip(B.T, V.T, strict=True):
            here = 0.5 * np.sum((b - A @ v) ** 2)
            assert here <= lowest(A, b, low, high) * (1.0 + 1e-9)


def test_what_is_said_of_columns_between_dependent_and_apart():
    """Of a group with two columns 1e-10 apart a fit keeps one: the other may be better."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 3))
    X[:, 1] = X[:, 0] + 1e-10 * rng.standard_normal(12)
    X[:, 2] = X[:, 0] + 1e-5 * X[:, 2]
    y = X[:, 2] - X[:, 0] + 1e-8 * rng.standard_normal(12)
    given = {"feature_groups": [0, 0, 1], "n_nonzero_coefs": 2}
    for method in ("refit", "exact"):
        found = blockl0.solve(X, y, method=method, random_state=0, **given)
        best = min(
            fit_value(draw("groups", 0)._replace(X=X, y=y, given={}), [j, 2]) for j in (0, 1)
        )
        assert str(found.status) != "optimal" or found.objective <= best * (1.0 + 1e-8)
        assert found.lower_bound is None or found.lower_bound <= best * (1.0 + 1e-8)


def nearly_perfect(kind, seed):
    """A problem of a kind whose target is a combination of its columns, nearly."""
    case, rng = draw(kind, seed), np.random.default_rng([seed, 11])
    X, given = rng.standard_normal((12, case.X.shape[1])), dict(case.given)
    if X.shape[1] > 2:
        X[:, 1] = X[:, 0] + 10.0 ** rng.uniform(-5.0, -1.0) * X[:, 1]
    truth = rng.standard_normal((X.shape[1], *case.y.shape[1:]))
    y = X @ truth
    y += 10.0 ** rng.uniform(-10.0, -3.0) * rng.standard_normal(y.shape)
    if "alpha" in given:
        given["alpha"] = 1e-4 * float(np.sum(y**2)) * rng.random()
    given.pop("keep", None)
    if "ridge" in given:
        given["ridge"] = 1e-8
    return case._replace(X=X, y=y, given=given)


@pytest.mark.parametrize("kind", ["groups", "groups+bounds", "groups+costs", "responses", "all"])
def test_certificates_of_nearly_perfect_fits(kind):
    certify_nearly_perfect(kind, range(12))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["groups", "groups+bounds", "groups+costs", "responses", "all"])
def test_many_certificates_of_nearly_perfect_fits(kind):
    certify_nearly_perfect(kind, range(12, 60))


def certify_nearly_perfect(kind, seeds):
    for seed in seeds:
        case, rng = nearly_perfect(kind, seed), np.random.default_rng(seed)
        coef = blockl0.solve(case.X, case.y, random_state=0, effort="fast", **case.given).coef
        for point in (coef, np.where(rng.random(coef.shape) < 0.5, coef, 0.0)):
            try:
                found = blockl0.certify(case.X, case.y, point, level=1, **case.given)
            except OutOfReachError:
                continue
            if found.holds:
                least = best_near(case, point, swaps=False)
                slack = 1e-8 * found.objective + 1e-13 * case.scale
                assert least >= found.objective - 3.0 * slack, (kind, seed)


@pytest.mark.parametrize("kind", ["groups", "responses", "bounds", "groups+bounds", "groups+costs"])
def test_limits_of_moves_are_none_of_them_too_high(kind):
    """No move is excluded that a fit says is better, whichever support it starts from."""
    for seed in range(12):
        case = nearly_perfect(kind, seed)
        problem = as_problem(case.X, case.y, **case.given)
        fits = make_fits(problem)
        moves = UnitMoves(problem, fits)
        for size in range(min(problem.n_units, problem.sparsity.budget) + 1):
            for chosen in combinations(range(problem.n_units), size):
                units = np.array(chosen, dtype=np.int64)
                fit = fits.minimum(problem.units.columns(units))
                here = fit.value + problem.cost(units)
                ceiling = here - 1e-8 * here - 1e-13 * case.scale
                point, cost = (
                    CheckedPoint(fit.w, units, here, ceiling, True),
                    CheckCost(None, np.inf, np.inf),
                )
                listed = {after.tobytes() for after in moves.suspects(point, cost)}
                for after in moves.moves(point, cost):
                    there = fits.minimum(problem.units.columns(after)).value + problem.cost(after)
                    assert there >= ceiling or after.tobytes() in listed, (kind, seed, units, after)


def test_a_column_that_was_a_combination_of_what_leaves():
    """x, b and b + dx are resolved together, and without x a fit has to choose among the others."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        a, b, d, other = np.linalg.qr(rng.standard_normal((40, 4)))[0].T
        X = np.column_stack([a, b, b + 10.0 ** rng.uniform(-12.0, -8.2) * a, d])
        y = 5.0 * a + 3.0 * b + 0.1 * other
        given = {"alpha": 1.0, "feature_groups": [0, 1, 1, 2]}
        # the second group alone comes to a and b, at half of the price
        with pytest.raises(OutOfReachError, match="nearly, and not wholly, combinations"):
            blockl0.certify(X, y, np.array([5.0, 3.0, 0.0, 0.0]), level=1, **given)
        found = blockl0.solve(X, y, random_state=0, **given)
        assert found.certificate is None and found.status != "optimal"


def test_an_active_set_that_has_not_come_to_its_end_is_no_fit():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    problem = as_problem(X, X @ [1.0, 2.0, 3.0], n_nonzero_coefs=3, bounds=(0.0, 10.0), ridge=0.0)
    fits, every = make_fits(problem), np.arange(3)
    best = fits.coef_on(every)
    assert fits.doubt(every, best) == 0.0
    best[1] = 0.0  # a bound that holds it back
    assert fits.doubt(every, best) == np.inf


@pytest.mark.parametrize("structure", [{}, {"feature_groups": [2, 0, 1, 3]}, {"bounds": (-9, 9)}])
def test_changes_are_those_of_the_point_and_not_of_its_fit(structure):
    """A fit leaves a cheap column out, with which another one would not be needed."""
    X = np.eye(6)[:, :4]
    X[:, 2] = X[:, 0] + X[:, 1]
    y, point = X[:, 0] - X[:, 1], np.array([0.5, -1.5, 0.5, 0.0])
    given = {"costs": [20.0, 0.5, 0.5, 1.0], "alpha": 1.5e-13 * 0.5 * (y @ y), **structure}
    found = blockl0.certify(X, y, point, level=1, **given)
    assert not found.holds and found.better_coef[0] == 0.0
    assert found.better_objective == pytest.approx(given["alpha"], rel=1e-2)


def test_a_column_nearer_to_the_support_than_its_span_is_known():
    """Three columns 3e-8 and 7e-10 apart: with the third a fit keeps two others, and is lower."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x, u, v = np.linalg.qr(rng.standard_normal((10, 3)))[0].T
        X = np.column_stack([x, x + 4e-8 * u, x + 4e-8 * u + 1e-9 * v])
        y = 100.0 * x + 10.0 * u + 10.0 * v
        given = {"alpha": 1e-14, "feature_groups": [0, 1, 2]}
        point = np.zeros(3)
        point[:2] = least_squares(X[:, :2], y)
        fits = make_fits(as_problem(X, y, **given))
        here, there = (fits.on(np.arange(k)).value for k in (2, 3))
        try:
            found = blockl0.certify(X, y, point, level=1, **given)
        except OutOfReachError:
            continue
        assert not found.holds or there >= here * (1.0 - 1e-6)


@pytest.mark.parametrize("k", [1, 2, 31, 40])
@pytest.mark.parametrize("q", [None, 1, 5, 40, 3000])
def test_least_squares_of_any_number_of_targets(k, q):
    rng = np.random.default_rng(k)
    A = rng.standard_normal((60, k))
    A /= np.sqrt((A**2).sum(axis=0))
    b = rng.standard_normal(60 if q is None else (60, q))
    wanted = np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(least_squares(A, b), wanted, rtol=1e-9, atol=1e-11)


def test_many_responses_of_few_columns():
    rng = np.random.default_rng(0)
    X, Y = rng.standard_normal((60, 10)), rng.standard_normal((60, 40))
    result = blockl0.solve(X, Y, n_nonzero_coefs=1)
    least = min(
        0.5 * ((Y - x[:, None] * (x @ Y) / (x @ x)) ** 2).sum() for x in np.ascontiguousarray(X.T)
    )
    assert result.objective == pytest.approx(least, rel=1e-12)


@pytest.mark.parametrize("k", [6, 12])
def test_a_proof_that_is_given_up_leaves_a_certified_point(k, monkeypatch):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 12)) + 1e6, rng.standard_normal(60)
    whole = blockl0.solve(X, y, n_nonzero_coefs=k, random_state=0)
    assert whole.status is blockl0.Status.OPTIMAL
    begun = []
    monkeypatch.setattr("blockl0.search.settled.PROOF_FITS", 1)
    search = settled.ExactSearch
    monkeypatch.setattr(
        "blockl0.search.settled.ExactSearch",
        lambda *given, **options: begun.append(1) or search(*given, **options),
    )
    given_up = blockl0.solve(X, y, n_nonzero_coefs=k, random_state=0)
    # begun once, not at every point; with all columns there is nothing to choose
    assert len(begun) <= 1
    assert given_up.certificate is not None
    assert given_up.objective >= whole.objective * (1.0 - 1e-9)
    for j in given_up.support if k < 12 else ():
        others = np.setdiff1d(given_up.support, j)
        for i in np.setdiff1d(np.arange(12), given_up.support):
            columns = np.sort(np.append(others, i))
            left = y - X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=1e-14)[0]
            assert 0.5 * left @ left >= given_up.objective - 1e-9 * 0.5 * y @ y
