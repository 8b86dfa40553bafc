"""The methods of the comparison: each is its definition, and all keep the promises of `solve`."""

from __future__ import annotations

import itertools
import time
from itertools import combinations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from sklearn.linear_model import Lasso, orthogonal_mp
from threadpoolctl import threadpool_limits

import blockl0
import oracles
from blockl0 import Status
from blockl0.baselines import BUDGET_BASELINES, PRICE_BASELINES
from blockl0.baselines.common import (
    Patience,
    fit_support,
    largest,
    largest_and_kept,
    lipschitz_estimate,
)
from blockl0.baselines.proximal_gradient import (
    L1,
    AcceleratedProximalGradient,
    Budget,
    Half,
    L0Penalty,
    ProximalGradient,
    half_threshold,
)
from blockl0.baselines.pursuits import comparable_group
from blockl0.baselines.qpm import PenaltyDecomposition
from blockl0.datasets import make_random
from blockl0.problem.fits import least_squares_on, make_fits
from blockl0.problem.problem import as_problem
from blockl0.run import Run
from blockl0.solve import METHODS
from grid import losses_for
from linear_data import Linear

BUDGET, PRICE = tuple(BUDGET_BASELINES), tuple(PRICE_BASELINES)
ALL = BUDGET + PRICE
ANY_LOSS = ("pgm", "apgm", *PRICE)
GREEDY = ("omp", "forward", "ssp", "romp", "cosamp")
FROM_ZERO = ("omp", "gp", "forward", "romp")
LOSSES = losses_for("pgm")
TIGHT = {"tol": 0.0, "max_iter": 50_000}


make = Linear(40, 15, {0: 3.0, 1: -2.0, 2: 1.5}, noise=0.5, common=0.5, density=1.0)


def form(method, size=4, price=0.5):
    return {"n_nonzero_coefs": size} if method in BUDGET else {"alpha": price}


def solve(X, y, method, **options):
    """Solve, and check what holds for every result of every method."""
    options = {"random_state": 0} | options
    if method == "cvx-l1":
        options = {"max_iter": 100} | options
    if "alpha" not in options and "n_nonzero_coefs" not in options:
        options |= form(method, min(4, np.shape(X)[1]))
    result = blockl0.solve(X, y, method=method, **options)
    names = ("loss", "alpha", "n_nonzero_coefs", "ridge", "sample_weight", "keep")
    problem = as_problem(X, y, **{key: options[key] for key in names if key in options})
    assert np.isfinite(result.coef).all()
    assert problem.sparsity.is_feasible(result.coef)
    # one function of the same data and coefficients, not what was brought along by updates
    assert result.objective == problem.objective(problem.from_given(result.coef))
    history = result.history
    assert len(history) >= 1 and np.isfinite(history.objective).all()
    scale = max(problem.smooth(np.zeros(problem.n_features)), 1e-300)
    assert history.objective[-1] == pytest.approx(result.objective, rel=1e-8, abs=1e-10 * scale)
    assert history.n_nonzero[-1] == result.n_nonzero
    assert np.all(np.diff(history.seconds) >= 0.0)
    assert result.options["method"] == method
    return result


def trajectory(X, y, method, **options):
    points = []
    result = solve(
        X, y, method, callback=lambda p: points.append(p.coef.copy()) and None, **options
    )
    return result, np.array(points)


def surrogate(method, X, y, w, alpha):
    size = np.abs(w).sum() if method == "pgm-l1" else np.sqrt(np.abs(w)).sum()
    return 0.5 * np.sum((y - X @ w) ** 2) + alpha * size


# -- what holds for all of them --------------------------------------------------------------------


def test_every_name_of_the_design_is_registered():
    names = "pgm apgm qpm ssp romp omp cosamp cvx-l1 forward pgm-l0 apgm-l0 pgm-l1 pgm-lp"
    assert set(ALL) == {*names.split(), "gp", "grahtp", "sparse-simplex"}
    assert set(ALL) <= set(METHODS)
    for name in METHODS:
        assert f'"{name}"' in blockl0.solve.__doc__


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(("m", "n"), [(40, 15), (8, 30), (60, 4)])
def test_feasible_and_better_than_nothing(method, m, n):
    for seed in range(2):
        X, y = make(m, n, seed)
        result, points = trajectory(X, y, method)
        assert result.status in (Status.CONVERGED, Status.MAX_ITER)
        assert result.objective < 0.5 * y @ y
        assert len(points) == result.n_iter + 1 == len(result.history)
        problem = as_problem(X, y, **form(method))
        np.testing.assert_allclose(
            result.history.objective, [problem.objective(w) for w in points], rtol=1e-8, atol=1e-9
        )
        assert np.array_equal(result.history.n_nonzero, np.count_nonzero(points, axis=1))


@pytest.mark.parametrize("method", [name for name in ALL if name not in ("pgm-l1", "pgm-lp")])
def test_the_objective_never_rises(method):
    for seed in range(4):
        X, y = make(30, 40, seed)
        values = solve(X, y, method).history.objective
        assert np.all(np.diff(values) <= 1e-12 * values[0])


@pytest.mark.parametrize("method", ["pgm-l1", "pgm-lp"])
def test_relaxations_lower_their_own_objective_and_report_that_of_the_problem(method):
    X, y = make(30, 40, 1)
    result, points = trajectory(X, y, method, alpha=2.0)
    values = [surrogate(method, X, y, w, 2.0) for w in points]
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    w = result.coef
    assert result.objective == pytest.approx(
        0.5 * np.sum((y - X @ w) ** 2) + 2.0 * np.count_nonzero(w)
    )


@pytest.mark.parametrize("method", ALL)
def test_dense_and_sparse_agree(method):
    X, y = make(40, 20, 2, density=0.4)
    X[:, 11] = 0.0
    options = {"sample_weight": np.linspace(0.5, 2.0, 40), "ridge": 0.3}
    dense = solve(X, y, method, **options)
    for convert in (sp.csc_array, sp.csr_matrix):
        sparse = solve(convert(X), y, method, **options)
        assert np.array_equal(sparse.support, dense.support)
        np.testing.assert_allclose(sparse.coef, dense.coef, atol=1e-8)
        assert sparse.n_iter == dense.n_iter  # the tolerances that stop are far above rounding


@pytest.mark.parametrize("method", ANY_LOSS)
@pytest.mark.parametrize("loss", LOSSES)
def test_dense_and_sparse_agree_for_every_loss(method, loss):
    X, y = make(40, 20, 3, loss=loss, density=0.4)
    dense, sparse = (solve(A, y, method, loss=loss, max_iter=80) for A in (X, sp.csc_array(X)))
    assert np.array_equal(sparse.support, dense.support)
    np.testing.assert_allclose(sparse.coef, dense.coef, atol=1e-8)


@pytest.mark.parametrize("method", ALL)
def test_integer_weights_are_repeated_rows_and_ridge_is_more_rows(method, rng):
    X, y = make(30, 12, 4)
    weights = rng.integers(0, 4, 30)
    rows = np.repeat(np.arange(30), weights)
    weighted = solve(X, y, method, sample_weight=weights, ridge=0.7)
    repeated = solve(X[rows], y[rows], method, ridge=0.7)
    augmented = solve(
        np.vstack([X[rows], np.sqrt(0.7) * np.eye(12)]), np.append(y[rows], np.zeros(12)), method
    )
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-5)
    np.testing.assert_allclose(weighted.coef, augmented.coef, atol=2e-3)
    assert np.array_equal(weighted.support, augmented.support)


@pytest.mark.parametrize("method", ALL)
def test_kept_columns_stay(method):
    for seed in range(3):
        X, y = make(seed=seed)
        result = solve(X, y, method, keep=[9, 12], **form(method, 4, 1e3))
        assert {9, 12} <= set(result.support)
        if method in PRICE:
            # at this price nothing else is worth it
            assert result.support.tolist() == [9, 12]
            fit = np.linalg.lstsq(X[:, [9, 12]], y, rcond=None)[0]
            np.testing.assert_allclose(result.coef[[9, 12]], fit, atol=0.05)
        alone = solve(X, y, method, keep=[9, 12], **form(method, 2, 1e3))
        assert alone.support.tolist() == [9, 12]


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_kept_columns_stay_with_few_samples(method, m):
    for seed in range(2):
        X, y = make(m, 10, seed)
        assert 3 in solve(X, y, method, keep=[3], **form(method, 3)).support


@pytest.mark.parametrize("method", ALL)
def test_same_seed_same_answer_and_the_greedy_ones_need_none(method):
    X, y = make(30, 40, 5)
    first, second, other = (solve(X, y, method, random_state=seed) for seed in (1, 1, 2))
    # a promise: by one seed every bit is the same on one machine
    assert np.array_equal(first.coef, second.coef)
    assert np.array_equal(first.history.objective, second.history.objective)
    if method in GREEDY:
        assert np.array_equal(first.coef, other.coef)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_of_the_target_do_not_matter(method, scale):
    X, y = make(seed=6)
    options = {"alphas": [0.1, 1.0]} if method == "cvx-l1" else {}
    here = solve(X, y, method, init=None if method in FROM_ZERO else np.zeros(15), **options)
    if method == "cvx-l1":
        options = {"alphas": [0.1 * scale, scale]}
    # √|w| grows with √scale, so that its price must grow with scale^1.5
    power = {"pgm-l1": 1.0, "pgm-lp": 1.5}.get(method, 2.0)
    changed = {"alpha": 0.5 * scale**power} if method in PRICE else {"n_nonzero_coefs": 4}
    init = None if method in FROM_ZERO else np.zeros(15)
    there = solve(X, scale * y, method, init=init, **options, **changed)
    np.testing.assert_allclose(there.coef / scale, here.coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", GREEDY)
def test_units_of_the_columns_do_not_matter(method, rng):
    X, y = make(30, 25, 7)
    scale = 10.0 ** rng.uniform(-4, 4, 25) * rng.choice([-1.0, 1.0], 25)
    here, there = solve(X, y, method), solve(X * scale, y, method)
    np.testing.assert_allclose(there.coef * scale, here.coef, rtol=1e-6, atol=1e-9)


# -- starts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [name for name in ALL if name not in FROM_ZERO])
def test_init_is_the_start_and_is_left_alone(method):
    X, y = make(seed=8)
    init = np.zeros(15)
    init[[5, 6]] = 1.0, -2.0
    before = init.copy()
    result, points = trajectory(X, y, method, init=init)
    assert np.array_equal(init, before)
    problem = as_problem(X, y, **form(method))
    if method in ("ssp", "cosamp"):
        # the pursuits begin with the fit on that support
        assert np.flatnonzero(points[0]).tolist() == [5, 6]
        assert result.history.objective[0] <= problem.objective(init)
    else:
        assert np.array_equal(points[0], init)
    assert result.objective <= problem.objective(init)


@pytest.mark.parametrize(
    "method", ["pgm", "apgm", "qpm", "cvx-l1", "grahtp", "sparse-simplex", *PRICE]
)
def test_the_default_start_is_that_of_the_paper(method):
    X, y = make(seed=9)
    _, points = trajectory(X, y, method, random_state=5)
    assert 0.0 < np.abs(points[0]).max() < 1e-6
    assert np.count_nonzero(points[0]) == (4 if method in BUDGET else 15)
    assert not np.array_equal(points[0], trajectory(X, y, method, random_state=6)[1][0])


@pytest.mark.parametrize("method", ["ssp", "cosamp", "pgm", "apgm", "qpm"])
def test_an_optimal_start_is_not_left(method):
    X, y = make(seed=10)
    best = blockl0.solve(X, y, n_nonzero_coefs=3, method="exact")
    result = solve(X, y, method, n_nonzero_coefs=3, init=best.coef)
    assert result.objective == pytest.approx(best.objective, rel=1e-9)


# -- limits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_the_callback_stops(method):
    X, y = make(60, 80, 11)
    result = solve(X, y, method, callback=lambda progress: progress.iteration >= 2)
    assert result.status is Status.STOPPED and result.n_iter == 2
    result = solve(X, y, method, callback=lambda progress: True)
    assert result.status is Status.STOPPED and result.n_iter == 0


@pytest.mark.parametrize("method", ALL)
def test_an_interrupt_returns_the_point_reached(method):
    X, y = make(60, 80, 12)

    def interrupt(progress):
        if progress.iteration == 2:
            raise KeyboardInterrupt

    result = solve(X, y, method, callback=interrupt)
    assert result.status is Status.INTERRUPTED and result.n_iter == 2
    assert result.objective < 0.5 * y @ y


@pytest.mark.parametrize("method", ALL)
def test_an_interrupt_inside_an_iteration_leaves_a_feasible_point(method, monkeypatch):
    X, y = make(60, 80, 13)
    calls = {"left": 25}

    def gradient(eta, y):
        calls["left"] -= 1
        if calls["left"] < 0:
            raise KeyboardInterrupt
        return eta - y

    problem = as_problem(X, y, **form(method))
    monkeypatch.setattr(type(problem.loss), "gradient", lambda self, eta, y: gradient(eta, y))
    result = METHODS[method].solve(problem, Run(problem), rng=np.random.default_rng(0))
    assert problem.sparsity.is_feasible(result.coef)
    # the history comes from updates, the objective from the data
    assert result.objective <= result.history.objective[0] * (1 + 1e-12)


@pytest.mark.parametrize("method", ALL)
def test_time_limit(method):
    X, y = make(60, 80, 14)
    result = solve(X, y, method, time_limit=1e-9)
    assert result.status is Status.TIME_LIMIT and result.n_iter == 0
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 400)), rng.standard_normal(300)
    # the processor's clock: other programs are not this one's fault; one thread, since several wait
    # for each other, and that counts
    with threadpool_limits(1):
        start = time.process_time()
        result = solve(X, y, method, time_limit=0.02, **form(method, 200, 0.01))
        assert time.process_time() - start < 1.0
    assert result.status in (Status.TIME_LIMIT, Status.CONVERGED)


@pytest.mark.parametrize("method", ["cvx-l1", "pgm-l1"])
def test_a_long_inner_loop_watches_the_clock(method):
    X, y = make(100, 300, 15)
    with threadpool_limits(1):
        start = time.process_time()
        result = solve(X, y, method, time_limit=0.1, tol=0.0, window=10**6, max_iter=10**6)
        assert time.process_time() - start < 0.6
    assert result.status is Status.TIME_LIMIT and result.seconds >= 0.1


@pytest.mark.parametrize(
    "method", ["pgm", "apgm", "qpm", "ssp", "cosamp", "grahtp", "sparse-simplex", *PRICE]
)
def test_max_iter(method):
    X, y = make(30, 60, 16)
    result = solve(X, y, method, max_iter=1, **form(method, 20, 0.01))
    assert result.n_iter == 1
    assert result.status is Status.MAX_ITER
    with pytest.raises(ValueError, match="`max_iter` must be at least 1, got 0"):
        solve(X, y, method, max_iter=0)


def test_patience_is_the_rule_of_the_paper():
    patience = Patience(tol=0.1, window=2)
    # falls of 50 %, 20 %, 10 %, 0 %: the mean of two is first <= 10 % at the end
    assert [patience.is_over(merit) for merit in (10.0, 5.0, 4.0, 3.6, 3.6)] == [
        False, False, False, False, True,
    ]  # fmt: skip
    assert Patience(0.0, 1).is_over(0.0) is False
    zero = Patience(0.0, 1)
    assert [zero.is_over(0.0), zero.is_over(0.0)] == [False, True]


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", BUDGET)
@pytest.mark.parametrize("asked", [{"alpha": 2.0}, {"alpha": 2.0, "n_nonzero_coefs": 3}])
def test_a_budget_method_refuses_a_price(method, asked):
    with pytest.raises(ValueError, match=rf"method='{method}' takes a budget .*got alpha=2; leave"):
        blockl0.solve(*make(), method=method, **asked)


@pytest.mark.parametrize("method", PRICE)
@pytest.mark.parametrize("asked", [{"n_nonzero_coefs": 3}, {"alpha": 2.0, "n_nonzero_coefs": 3}])
def test_a_price_method_refuses_a_budget(method, asked):
    pattern = rf"method='{method}' takes a price .*got n_nonzero_coefs=3; leave"
    with pytest.raises(ValueError, match=pattern):
        blockl0.solve(*make(), method=method, **asked)


@pytest.mark.parametrize("method", [name for name in ALL if name not in ANY_LOSS])
def test_other_losses_are_refused_where_least_squares_is_needed(method):
    with pytest.raises(ValueError, match=rf"method='{method}' solves loss='squared' only, got"):
        blockl0.solve(*make(), method=method, loss="huber", n_nonzero_coefs=3)


class Exponential:
    """exp(eta) − y·eta: its curvature has no bound."""

    name = "exponential"
    curvature_bound = np.inf

    def value(self, eta, y):
        return np.exp(eta) - y * eta

    def gradient(self, eta, y):
        return np.exp(eta) - y

    def curvature(self, eta, y):
        return np.exp(eta)

    def check_target(self, y):
        return y


@pytest.mark.parametrize("method", ANY_LOSS)
def test_unbounded_curvature_is_refused(method):
    with pytest.raises(ValueError, match="loss='exponential' has unbounded curvature"):
        blockl0.solve(*make(), method=method, loss=Exponential(), **form(method))


@pytest.mark.parametrize("method", FROM_ZERO)
def test_a_start_is_refused_by_methods_that_begin_at_zero(method):
    with pytest.raises(ValueError, match=rf"method='{method}' always starts at zero"):
        blockl0.solve(*make(), method=method, n_nonzero_coefs=3, init=np.zeros(15))


OPTIONS = {
    "pgm tol": ("pgm", {"tol": -1}, ValueError, r"`tol` must be nonnegative"),
    "pgm window": ("pgm", {"window": 0}, ValueError, r"`window` must be at least 1, got 0"),
    "apgm window": ("apgm", {"window": 1.5}, TypeError, r"`window` must be an integer"),
    "pgm-l0 tol": ("pgm-l0", {"tol": "x"}, TypeError, r"`tol` must be a number"),
    "pgm unknown": ("pgm", {"theta": 1}, TypeError, r"method='pgm' does not know the option"),
    "omp unknown": ("omp", {"tol": 1}, TypeError, r"Its options: normalize"),
    "forward unknown": ("forward", {"tol": 1}, TypeError, r"Its options: none"),
    "omp normalize": ("omp", {"normalize": 1}, TypeError, r"`normalize` must be True or False"),
    "ssp normalize": ("ssp", {"normalize": "no"}, TypeError, r"`normalize` must be True or False"),
    "cvx alphas": ("cvx-l1", {"alphas": []}, ValueError, r"`alphas` must hold at least one price"),
    "cvx alpha": ("cvx-l1", {"alphas": [-1]}, ValueError, r"`alphas` must be nonnegative, got -1"),
    "cvx scalar": ("cvx-l1", {"alphas": 1.0}, TypeError, r"`alphas` must be a sequence of prices"),
    "qpm penalty": ("qpm", {"penalty": 0}, ValueError, r"`penalty` must be positive, got 0"),
    "qpm growth": ("qpm", {"growth": 1}, ValueError, r"`growth` must be greater than 1, got 1"),
}


@pytest.mark.parametrize(("method", "options", "error", "pattern"), OPTIONS.values(), ids=OPTIONS)
def test_options(method, options, error, pattern):
    with pytest.raises(error, match=pattern):
        blockl0.solve(*make(), method=method, **form(method), **options)


# -- degenerate data -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_zero_columns_are_not_selected(method):
    X, y = make(seed=17)
    X[:, [3, 5, 11]] = 0.0
    for extra in ({}, {"ridge": 0.5}):
        result = solve(X, y, method, **form(method, 14), **extra)
        if method == "pgm" or method == "apgm":
            continue  # whatever a zero column starts with is as good as zero under a large budget
        assert not {3, 5, 11} & set(result.support)


@pytest.mark.parametrize("method", ALL)
def test_nothing_but_zero_columns(method):
    result = solve(np.zeros((5, 4)), np.arange(5.0), method, **form(method, 2))
    assert result.objective == pytest.approx(15.0)


@pytest.mark.parametrize("method", ALL)
def test_zero_target(method):
    X, y = make(seed=18)
    assert solve(X, 0.0 * y, method).objective == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize("method", ALL)
def test_duplicate_columns(method):
    X, y = make(seed=19)
    result = solve(np.hstack([X, X, X]), y, method, **form(method, 3))
    if method in (*GREEDY, "qpm", "cvx-l1", "pgm-l0", "apgm-l0"):
        assert result.objective < 0.9 * 0.5 * y @ y
    if method in ("omp", "forward"):
        once = solve(X, y, method, n_nonzero_coefs=3)
        assert result.objective == pytest.approx(once.objective, rel=1e-9)


@pytest.mark.parametrize("method", ["omp", "forward"])
def test_copies_never_enter_however_large_the_budget(method):
    X, y = make(30, 6, 20)
    result = solve(np.hstack([X, X, X]), y, method, n_nonzero_coefs=18)
    assert result.n_nonzero == 6
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(result.coef.reshape(3, 6).sum(axis=0), expected, atol=1e-10)


@pytest.mark.parametrize("method", BUDGET)
def test_budget_of_all_columns_is_least_squares(method):
    X, y = make(60, 8, 21)
    options = TIGHT if method in ("pgm", "apgm") else {}
    result = solve(X, y, method, n_nonzero_coefs=8, **options)
    np.testing.assert_allclose(result.coef, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-6)


@pytest.mark.parametrize("method", PRICE)
def test_price_zero_is_least_squares(method):
    X, y = make(60, 8, 22)
    result = solve(X, y, method, alpha=0.0, **TIGHT)
    np.testing.assert_allclose(result.coef, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-6)


@pytest.mark.parametrize("method", BUDGET)
def test_more_columns_than_rows_and_a_budget_of_all(method):
    X, y = make(6, 20, 23)
    result = solve(X, y, method, n_nonzero_coefs=20)
    assert result.objective < 1e-3 * 0.5 * y @ y


@pytest.mark.parametrize("method", BUDGET)
def test_budget_zero(method):
    X, y = make(seed=24)
    result = solve(X, y, method, n_nonzero_coefs=0)
    assert not result.coef.any() and result.status is Status.CONVERGED


@pytest.mark.parametrize("method", PRICE)
@pytest.mark.parametrize("alpha", [1e5, 1e100])
def test_a_huge_price_selects_nothing(method, alpha):
    X, y = make(seed=25)
    assert solve(X, y, method, alpha=alpha).n_nonzero == 0


@pytest.mark.parametrize("method", ALL)
def test_one_column_and_one_row(method):
    column = np.arange(1.0, 6.0)[:, None]
    result = solve(column, 2.0 * column[:, 0], method, **form(method, 1, 1e-4))
    assert result.coef == pytest.approx([2.0], abs=1e-4)
    result = solve(np.array([[1.0, 2.0, -4.0]]), np.array([8.0]), method, **form(method, 1, 1e-4))
    assert result.objective < 0.1
    result = solve([[2.0]], [6.0], method, **form(method, 1, 1e-4))
    assert result.coef == pytest.approx([3.0], abs=1e-4)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_extreme_scales_of_the_data(method, scale):
    X, y = make(seed=26)
    assert np.isfinite(solve(scale * X, y, method, **form(method, 4, 0.5)).objective)


@pytest.mark.parametrize("method", ALL)
def test_one_huge_column(method):
    X, y = make(seed=27)
    X[:, 7] *= 1e8
    # gradient methods take steps that hardly move the others, but nothing gets worse
    result = solve(X, y, method)
    # by updates there, from the data here: where nothing moves they differ by rounding
    assert result.objective <= result.history.objective[0] * (1 + 1e-12)


# -- exact recovery --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", BUDGET)
def test_orthonormal_columns_are_recovered_by_everything(method, rng):
    Q = np.linalg.qr(rng.standard_normal((50, 30)))[0]
    w = np.zeros(30)
    w[[2, 11, 17, 29]] = 3.0, -1.0, 2.0, 1.5
    result = solve(Q, Q @ w, method, n_nonzero_coefs=4)
    np.testing.assert_allclose(result.coef, w, atol=1e-6)


@pytest.mark.parametrize("method", PRICE)
def test_orthonormal_columns_are_thresholded_in_closed_form(method, rng):
    Q = np.linalg.qr(rng.standard_normal((50, 30)))[0]
    y, alpha = 2.0 * rng.standard_normal(50), 0.4
    c = Q.T @ y
    expected = {
        "pgm-l0": np.where(c**2 > 2 * alpha, c, 0.0),
        "pgm-l1": np.sign(c) * np.maximum(np.abs(c) - alpha, 0.0),
        "pgm-lp": half_threshold(c, alpha),
    }
    expected["apgm-l0"] = expected["pgm-l0"]
    # the ℓ0 and ℓp thresholds are global only from zero where L = 1
    problem = as_problem(Q, y, alpha=alpha)
    penalty = {
        "pgm-l0": L0Penalty(problem), "apgm-l0": L0Penalty(problem),
        "pgm-l1": L1(alpha, problem.keep), "pgm-lp": Half(alpha, problem.keep),
    }[method]  # fmt: skip
    kind = AcceleratedProximalGradient if method == "apgm-l0" else ProximalGradient
    engine = kind(problem, penalty, np.zeros(30), 1.0 + 1e-12)
    for _ in range(60):
        engine.advance()
    np.testing.assert_allclose(engine.w, expected[method], atol=1e-8)


@pytest.mark.parametrize("method", ["omp", "forward", "cvx-l1"])
def test_recovery_at_low_coherence(method):
    """Spikes and Hadamard: coherence 1/8, so any 4 < ½(1 + 8) columns are found without noise.

    Tropp, "Greed is good" (2004), for OMP and ℓ1; Soussen et al. (2013) for forward selection.
    """
    X = np.hstack([np.eye(64), scipy.linalg.hadamard(64) / 8.0])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        w = np.zeros(128)
        support = rng.choice(128, 4, replace=False)
        w[support] = rng.choice([-1.0, 1.0], 4) * rng.uniform(0.5, 2.0, 4)
        options = {"alphas": [1e-3], "max_iter": 2000} if method == "cvx-l1" else {}
        result = solve(X, X @ w, method, n_nonzero_coefs=4, **options)
        np.testing.assert_allclose(result.coef, w, atol=1e-9)


@pytest.mark.parametrize("method", ["omp", "forward", "ssp", "cosamp", "romp", "cvx-l1", "qpm"])
def test_recovery_from_many_random_measurements(method):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, w = rng.standard_normal((120, 160)), np.zeros(160)
        w[rng.choice(160, 5, replace=False)] = rng.choice([-1.0, 1.0], 5) * rng.uniform(1, 2, 5)
        result = solve(X, X @ w, method, n_nonzero_coefs=5)
        np.testing.assert_allclose(result.coef, w, atol=1e-8)


# -- proximal gradient -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["pgm", "apgm", "pgm-l0", "apgm-l0"])
def test_limits_are_l_stationary(method):
    for seed in range(4):
        X, y = make(20, 9, seed)
        result = solve(X, y, method, **form(method, 3, 2.0), **TIGHT)
        assert result.status is Status.CONVERGED
        Q, p, _ = oracles.quadratic_of(X, y)
        price, budget = as_problem(X, y, **form(method, 3, 2.0)).sparsity
        # the margin of the estimated constant makes the step a little shorter
        L = 1.04 * np.linalg.eigvalsh(Q)[-1]
        assert oracles.is_l_stationary(Q, p, result.coef, price, budget, lipschitz=L, tol=1e-6)
        assert oracles.is_basic_stationary(Q, p, result.coef, budget, tol=1e-4)


@pytest.mark.parametrize("method", ["pgm", "apgm", "pgm-l0", "apgm-l0"])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_descends_to_l_stationary_points(method, loss):
    X, y = make(40, 9, 2, loss=loss)
    options = {"loss": loss, "ridge": 0.1, **form(method, 3, 0.5)}
    result = solve(X, y, method, **options, **TIGHT)
    values = result.history.objective
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    problem = as_problem(X, y, **options)
    L = 1.04 * (problem.loss.curvature_bound * np.linalg.norm(X, 2) ** 2 + 0.1)
    model = L * np.eye(9)
    linear = problem.gradient(result.coef) - L * result.coef
    _, best = oracles.brute_force(model, linear, *problem.sparsity)
    assert oracles.objective(model, linear, result.coef, problem.sparsity.price) <= best + 1e-6


@pytest.mark.parametrize("loss", LOSSES)
def test_the_convex_relaxation_satisfies_its_optimality_conditions(loss):
    X, y = make(40, 12, 3, loss=loss)
    result = solve(X, y, "pgm-l1", loss=loss, alpha=1.5, keep=[4], **TIGHT)
    gradient = as_problem(X, y, loss=loss, alpha=1.5).gradient(result.coef)
    assert abs(gradient[4]) < 1e-5  # kept: not penalized
    others = np.arange(12) != 4
    assert np.all(np.abs(gradient[others]) <= 1.5 + 1e-5)
    used = others & (result.coef != 0.0)
    np.testing.assert_allclose(gradient[used], -1.5 * np.sign(result.coef[used]), atol=1e-4)


def test_the_convex_relaxation_is_the_lasso():
    for seed in range(3):
        X, y = make(30, 50, seed)
        result = solve(X, y, "pgm-l1", alpha=4.0, **TIGHT)
        lasso = Lasso(alpha=4.0 / 30, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(X, y)
        np.testing.assert_allclose(result.coef, lasso.coef_, atol=1e-5)
        # weak duality: u = (y − Xw) scaled into ‖X'u‖∞ <= alpha bounds the optimum from below
        residual = y - X @ result.coef
        u = residual * min(1.0, 4.0 / np.abs(X.T @ residual).max())
        bound = 0.5 * y @ y - 0.5 * np.sum((y - u) ** 2)
        value = surrogate("pgm-l1", X, y, result.coef, 4.0)
        assert bound <= value <= bound * (1 + 1e-6)


def test_the_half_relaxation_is_stationary():
    X, y = make(30, 12, 4)
    result = solve(X, y, "pgm-lp", alpha=3.0, keep=[7], **TIGHT)
    gradient, w = X.T @ (X @ result.coef - y), result.coef
    assert abs(gradient[7]) < 1e-5
    used = np.flatnonzero((w != 0.0) & (np.arange(12) != 7))
    assert used.size
    np.testing.assert_allclose(
        gradient[used], -1.5 * np.sign(w[used]) / np.sqrt(np.abs(w[used])), atol=1e-4
    )


@pytest.mark.parametrize("weight", [1e-3, 0.3, 1.0, 7.0])
def test_half_thresholding_is_the_numeric_prox(weight):
    bar = 1.5 * weight ** (2 / 3)
    v = np.concatenate([np.linspace(-3 * bar, 3 * bar, 121), [bar * (1 - 1e-9), bar * (1 + 1e-9)]])
    grid = np.linspace(-3 * bar, 3 * bar, 60_001)

    def value(w, v):
        return 0.5 * (w - v) ** 2 + weight * np.sqrt(np.abs(w))

    found = half_threshold(v, weight)
    best = np.array([value(grid, entry).min() for entry in v])
    assert np.all(value(found, v) <= best + 1e-12 * bar**2)
    nearest = grid[[int(np.argmin(value(grid, entry))) for entry in v]]
    away = np.abs(np.abs(v) - bar) > 1e-6 * bar
    np.testing.assert_allclose(found[away], nearest[away], atol=2e-4 * bar)
    # the jump at the threshold has height weight^⅔
    np.testing.assert_allclose(found[-2:], [0.0, weight ** (2 / 3)], rtol=1e-6)
    assert np.array_equal(half_threshold(v, 0.0), v)  # a copy
    np.testing.assert_allclose(half_threshold(-v, weight), -found)


@pytest.mark.parametrize("kind", ["budget", "count", "l1", "half"])
def test_proximal_operators_minimize_on_random_points(kind, rng):
    problem = as_problem(*make(20, 7, 5), n_nonzero_coefs=3, alpha=0.8, keep=[2])
    penalty = {
        "budget": Budget(problem), "count": L0Penalty(problem),
        "l1": L1(0.8, problem.keep), "half": Half(0.8, problem.keep),
    }[kind]  # fmt: skip
    for _ in range(20):
        v, step = 2.0 * rng.standard_normal(7), rng.uniform(0.1, 2.0)
        before = v.copy()
        w = penalty.prox(v, step)
        assert np.array_equal(v, before) and w is not v
        here = 0.5 * np.sum((w - v) ** 2) + step * penalty.value(w)
        for support in oracles.subsets(range(7), 3 if kind == "budget" else None):
            if 2 not in support:
                continue
            for scale in (1.0, 0.9, 0.5):
                other = np.zeros(7)
                other[list(support)] = scale * v[list(support)]
                there = 0.5 * np.sum((other - v) ** 2) + step * penalty.value(other)
                assert here <= there + 1e-12


@pytest.mark.parametrize("kind", [ProximalGradient, AcceleratedProximalGradient])
def test_descent_does_not_rest_on_the_estimate(kind):
    X, y = make(30, 12, 6)
    problem = as_problem(X, y, alpha=1.0)
    exact = np.linalg.norm(X, 2) ** 2
    method = kind(problem, L0Penalty(problem), np.zeros(12), 1e-6 * exact)
    values = [method.merit]
    for _ in range(200):
        method.advance()
        values.append(method.merit)
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    assert 1e-6 * exact < method.lipschitz < 1.02 * exact


def test_acceleration_accelerates(rng):
    X = rng.standard_normal((60, 20)) * np.logspace(0, 1, 20)
    y = X @ rng.standard_normal(20)
    plain, fast = (
        solve(X, y, method, n_nonzero_coefs=20, tol=1e-6, max_iter=20_000)
        for method in ("pgm", "apgm")
    )
    assert fast.n_iter < 0.7 * plain.n_iter
    assert fast.objective < plain.objective


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("m", "n"), [(60, 20), (20, 60), (30, 1)])
def test_the_power_iteration_is_close_to_the_largest_eigenvalue(weighted, m, n, rng):
    X, y = make(m, n, 7)
    weights = rng.uniform(0.1, 3.0, m) if weighted else None
    for loss, bound in (("squared", 1.0), ("logistic", 0.25)):
        problem = as_problem(X, np.sign(y), alpha=1.0, loss=loss, ridge=0.4, sample_weight=weights)
        root = np.sqrt(bound * (np.ones(m) if weights is None else weights))
        exact = np.linalg.norm(root[:, None] * X, 2) ** 2 + 0.4
        assert 0.95 * exact < lipschitz_estimate(problem, rng) < 1.021 * exact
    problem = as_problem(np.zeros((3, 2)), np.ones(3), alpha=1.0)
    assert lipschitz_estimate(problem, rng) == 1.0


# -- greedy methods --------------------------------------------------------------------------------


@pytest.mark.parametrize("normalized", [False, True])
def test_omp_is_that_of_scikit_learn(normalized):
    for seed in range(4):
        X, y = make(40, 100, seed)
        if normalized:
            X /= np.linalg.norm(X, axis=0)
        for size in (1, 7, 25):
            expected = orthogonal_mp(X, y, n_nonzero_coefs=size)
            result = solve(X, y, "omp", n_nonzero_coefs=size, normalize=normalized)
            np.testing.assert_allclose(result.coef, expected, atol=1e-9)
            assert result.n_iter == size and result.status is Status.CONVERGED


@pytest.mark.parametrize("method", ["omp", "forward"])
def test_residuals_are_orthogonal_to_the_columns_chosen(method):
    X, y = make(40, 60, 1)
    weights = np.linspace(0.2, 3.0, 40)
    _, points = trajectory(
        X, y, method, n_nonzero_coefs=20, sample_weight=weights, ridge=0.3, keep=[50]
    )
    for k, w in enumerate(points):
        assert np.count_nonzero(w) == k + 1 and w[50] != 0.0
        gradient = X.T @ (weights * (X @ w - y)) + 0.3 * w
        assert np.abs(gradient[w != 0.0]).max() < 1e-10
        if k:
            # one more column, and none leaves
            assert np.all(w[points[k - 1] != 0.0] != 0.0)


def naive_forward(X, y, size, ridge):
    Q, p, _ = oracles.quadratic_of(X, y, ridge)
    support = []
    for _ in range(size):
        others = [j for j in range(len(p)) if j not in support]
        values = [oracles.smooth(Q, p, oracles.fit_on(Q, p, [*support, j])) for j in others]
        support.append(others[int(np.argmin(values))])
        yield oracles.fit_on(Q, p, support)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_forward_selection_is_the_naive_one(ridge):
    for seed in range(4):
        X, y = make(25, 18, seed)
        _, points = trajectory(X, y, "forward", n_nonzero_coefs=10, ridge=ridge)
        expected = list(naive_forward(X, y, 10, ridge))
        np.testing.assert_allclose(points[1:], expected, atol=1e-8)


def top(scores, k):
    return np.sort(np.argsort(-scores, kind="stable")[:k])


def least_squares(X, y, support):
    w = np.zeros(X.shape[1])
    w[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
    return w


def test_subspace_pursuit_is_its_definition():
    for seed in range(6):
        X, y = make(50, 40, seed)
        X /= np.linalg.norm(X, axis=0)
        w = least_squares(X, y, top(np.abs(X.T @ y), 5))
        while True:
            joined = np.union1d(np.flatnonzero(w), top(np.abs(X.T @ (y - X @ w)), 5))
            new = least_squares(X, y, top(np.abs(least_squares(X, y, joined)), 5))
            if np.linalg.norm(y - X @ new) >= np.linalg.norm(y - X @ w) - 1e-12:
                break
            w = new
        result = solve(X, y, "ssp", n_nonzero_coefs=5, normalize=bool(seed % 2))
        np.testing.assert_allclose(result.coef, w, atol=1e-8)


def test_cosamp_is_its_definition():
    for seed in range(6):
        X, y = make(50, 40, seed)
        X /= np.linalg.norm(X, axis=0)
        a, values = np.zeros(40), []
        for _ in range(8):
            joined = np.union1d(np.flatnonzero(a), top(np.abs(X.T @ (y - X @ a)), 10))
            fitted = least_squares(X, y, joined)
            support = top(np.abs(fitted), 5)
            a = np.zeros(40)
            a[support] = fitted[support]
            values.append(np.sum((y - X @ least_squares(X, y, support)) ** 2) / 2)
        result = solve(X, y, "cosamp", n_nonzero_coefs=5, max_iter=8, window=8)
        assert result.objective == pytest.approx(min(values), rel=1e-9)
        np.testing.assert_allclose(
            result.history.objective[1:],
            np.minimum.accumulate(values)[: result.n_iter],
            rtol=1e-9,
        )


def test_cosamp_is_not_stopped_while_it_still_improves():
    X, y = make_random(256, 1024, corrupted=True, random_state=0)
    default, hasty, patient = (
        solve(X, y, "cosamp", n_nonzero_coefs=48, **options).objective
        for options in ({}, {"window": 10}, {"window": 100, "max_iter": 100})
    )
    assert default == patient < hasty  # one run, the same point of it


def test_romp_groups_are_the_best_comparable_ones(rng):
    for _ in range(60):
        scores = 10.0 ** rng.uniform(-1, 1, int(rng.integers(1, 8)))
        best = 0.0
        for subset in oracles.subsets(range(len(scores))):
            values = scores[list(subset)]
            if values.size and values.max() <= 2 * values.min():
                best = max(best, float(np.sum(values**2)))
        group = scores[comparable_group(scores)]
        assert group.max() <= 2 * group.min()
        assert np.sum(group**2) == pytest.approx(best)
    assert comparable_group(np.array([1.0, 2.0, 0.5])).tolist() == [0, 1]


def test_romp_collects_twice_the_budget_and_returns_the_best_of_it():
    for seed in range(4):
        X, y = make(60, 50, seed)
        lengths = np.linalg.norm(X, axis=0)
        joined, values = np.empty(0, dtype=int), []
        w = np.zeros(50)
        while joined.size < 12:
            scores = np.abs(X.T @ (y - X @ w)) / lengths
            scores[joined] = 0.0
            candidates = top(scores, 6)
            joined = np.union1d(joined, candidates[comparable_group(scores[candidates])])
            w = least_squares(X, y, joined)
            support = top(np.abs(w) * lengths, 6)
            values.append(np.sum((y - X @ least_squares(X, y, support)) ** 2) / 2)
        result = solve(X, y, "romp", n_nonzero_coefs=6)
        assert result.n_iter == len(values)
        assert result.objective == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("method", ["omp", "forward", "ssp", "romp", "cosamp", "cvx-l1", "qpm"])
def test_the_answer_is_the_least_squares_fit_on_its_support(method):
    X, y = make(40, 60, 8)
    weights = np.linspace(0.2, 3.0, 40)
    result = solve(X, y, method, n_nonzero_coefs=8, sample_weight=weights, ridge=0.1)
    assert result.n_nonzero == 8
    problem = as_problem(X, y, n_nonzero_coefs=8, sample_weight=weights, ridge=0.1)
    np.testing.assert_allclose(result.coef, least_squares_on(problem, result.support), atol=1e-9)


def test_greedy_quality_on_correlated_data():
    """Forward selection is the honest stronger greedy: on average it beats matching pursuit."""
    ratios = []
    for seed in range(15):
        X, y = make(60, 120, seed)
        values = [
            solve(X + 1.0, y, method, n_nonzero_coefs=8).objective for method in ("forward", "omp")
        ]
        ratios.append(values[0] / values[1])
    assert np.exp(np.mean(np.log(ratios))) < 1.0


# -- convex path and quadratic penalty -------------------------------------------------------------


def test_the_convex_path_is_lasso_threshold_refit_keep_the_best():
    for seed in range(3):
        X, y = make(40, 30, seed)
        alphas, values = [0.25, 4.0, 64.0], []
        for alpha in alphas:
            lasso = Lasso(alpha=alpha / 40, fit_intercept=False, tol=1e-12, max_iter=100_000)
            support = top(np.abs(lasso.fit(X, y).coef_), 5)
            values.append(np.sum((y - X @ least_squares(X, y, support)) ** 2) / 2)
        result = solve(X, y, "cvx-l1", n_nonzero_coefs=5, alphas=alphas, tol=1e-10, max_iter=20_000)
        assert result.n_iter == 3
        assert result.objective == pytest.approx(min(values), rel=1e-9)


def test_the_convex_path_sweeps_the_prices_of_the_paper():
    result = solve(*make(seed=9), "cvx-l1")
    assert result.n_iter == 11
    # powers of two
    assert result.options["alphas"] == tuple(4.0**power for power in range(-5, 6))


def test_the_quadratic_penalty_alternates_exactly(rng):
    X, y = make(30, 20, 10)
    weights = rng.uniform(0.5, 2.0, 30)
    problem = as_problem(X, y, n_nonzero_coefs=4, ridge=0.2, sample_weight=weights)
    L = lipschitz_estimate(problem, rng)
    method = PenaltyDecomposition(problem, np.zeros(20), L, penalty=0.1, growth=3.0)
    z, rho = rng.standard_normal(20), method.rho
    H = X.T @ (weights[:, None] * X) + (0.2 + rho) * np.eye(20)
    expected = np.linalg.solve(H, X.T @ (weights * y) + rho * z)
    np.testing.assert_allclose(method._fit_near(z), expected, rtol=1e-2, atol=1e-3)


def penalty_decomposition(X, y, size):
    """Lu and Zhang's method with exact solves, alternating until nothing moves."""
    eigenvalues, U = np.linalg.eigh(X.T @ X)
    L, right, z, best = eigenvalues[-1], X.T @ y, np.zeros(X.shape[1]), np.inf
    for rho in L * 10.0 ** np.arange(-3.0, 3.1, 0.5):
        value, before = np.inf, np.inf
        while value == np.inf or value < (1.0 - 1e-6) * before:
            before = value
            x = U @ (U.T @ (right + rho * z) / (eigenvalues + rho))
            support, last = top(np.abs(x), size), np.flatnonzero(z)
            z = np.zeros_like(x)
            z[support] = x[support]
            value = 0.5 * np.sum((y - X @ x) ** 2) + 0.5 * rho * np.sum((x - z) ** 2)
            if not np.array_equal(support, last):
                fit = least_squares(X, y, support)
                best = min(best, 0.5 * np.sum((y - X @ fit) ** 2))
    return best


def test_the_quadratic_penalty_ends_where_the_exact_one_does():
    """Not in each case, the method being sensitive to rounding, but on average."""
    ratios = []
    for seed in range(8):
        X, y = make_random(100, 300, n_nonzero=20, corrupted=True, random_state=seed)
        result = solve(X, y, "qpm", n_nonzero_coefs=12, init=np.zeros(300))
        ratios.append(result.objective / penalty_decomposition(X, y, 12))
    assert np.exp(np.mean(np.log(ratios))) < 1.06


def test_the_quadratic_penalty_brings_both_points_together(rng):
    X, y = make(50, 30, 11)
    problem = as_problem(X, y, n_nonzero_coefs=4)
    L = lipschitz_estimate(problem, rng)
    method = PenaltyDecomposition(problem, np.zeros(30), L, penalty=1e-3, growth=10**0.5)
    while method.advance():
        method.iteration += 1
        assert np.count_nonzero(method.z) <= 4
    assert np.abs(method.x - method.z).max() < 0.02 * np.abs(method.z).max()
    assert method.rho > 1e3 * L


# -- the shared pieces -----------------------------------------------------------------------------


def test_largest_takes_the_first_of_equals_and_no_zeros(rng):
    scores = np.array([1.0, 3.0, 0.0, 3.0, 3.0, 2.0])
    assert largest(scores, 2).tolist() == [1, 3]
    assert largest(scores, 4).tolist() == [1, 3, 4, 5]
    assert largest(scores, 6).tolist() == largest(scores, 99).tolist() == [0, 1, 3, 4, 5]
    assert largest(scores, 0).tolist() == largest(np.zeros(3), 2).tolist() == []
    assert largest_and_kept(scores, 3, np.array([2])).tolist() == [1, 2, 3]
    assert largest_and_kept(scores, 1, np.array([2])).tolist() == [2]
    for _ in range(100):
        scores = np.round(rng.random(12), 1)
        k = int(rng.integers(0, 13))
        expected = [j for j in top(scores, k) if scores[j] > 0.0]
        assert largest(scores, k).tolist() == expected


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 5.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_are_those_of_an_orthogonal_factorization(ridge, weighted, rng):
    X, y = make(30, 10, 12)
    X[:, 4] = X[:, 3] + 1e-6 * rng.standard_normal(30)  # normal equations would lose all digits
    weights = rng.uniform(0.1, 2.0, 30) if weighted else None
    problem = as_problem(X, y, n_nonzero_coefs=10, ridge=ridge, sample_weight=weights)
    growing = make_fits(problem).growing(10)
    for size in range(1, 11):
        support = np.arange(size)
        expected = least_squares_on(problem, support)
        assert growing.add(size - 1)
        for w in (fit_support(problem, support), growing.coef):
            assert problem.objective(w) == pytest.approx(problem.objective(expected), rel=1e-9)
            assert np.abs(problem.gradient(w)[support]).max() < 1e-6
        assert growing.smooth == pytest.approx(problem.smooth(growing.coef), rel=1e-9)
        np.testing.assert_allclose(
            X[:, size:].T @ growing.residual, -problem.gradient(growing.coef)[size:], atol=1e-8
        )
    assert growing.support.tolist() == list(range(10))


def test_a_growing_fit_leaves_dependent_columns_out(rng):
    X = rng.standard_normal((6, 4))
    X[:, 2] = X[:, 0] - 2.0 * X[:, 1]
    X[:, 3] = 0.0
    growing = make_fits(as_problem(X, rng.standard_normal(6), n_nonzero_coefs=4)).growing(4)
    assert [growing.add(j) for j in range(4)] == [True, True, False, False]
    assert growing.size == 2


def test_singular_supports_are_fitted_too(rng):
    X = np.repeat(rng.standard_normal((20, 3)), 2, axis=1)
    y = rng.standard_normal(20)
    problem = as_problem(X, y, n_nonzero_coefs=6)
    w = fit_support(problem, np.arange(6))
    assert np.abs(problem.gradient(w)).max() < 1e-10
    assert not fit_support(problem, np.empty(0, dtype=np.int64)).any()


def test_brute_force_is_never_beaten():
    for seed in range(3):
        X, y = make(20, 8, seed)
        Q, p, constant = oracles.quadratic_of(X, y)
        bests = {
            methods: oracles.brute_force(
                Q, p, *as_problem(X, y, **form(methods[0], 3, 1.0)).sparsity
            )[1]
            for methods in (BUDGET, PRICE)
        }
        for method in ALL:
            best = bests[BUDGET if method in BUDGET else PRICE]
            result = solve(X, y, method, **form(method, 3, 1.0))
            assert result.objective >= best + constant - 1e-9
            if method in ("forward", "ssp", "omp"):
                assert result.objective <= 1.5 * (best + constant)


def test_forward_selection_of_two_is_never_worse_than_the_best_pair_with_the_best_single():
    X, y = make(30, 12, 13)
    Q, p, constant = oracles.quadratic_of(X, y)
    first = min(range(12), key=lambda j: oracles.smooth(Q, p, oracles.fit_on(Q, p, [j])))
    pairs = [pair for pair in combinations(range(12), 2) if first in pair]
    best = min(oracles.smooth(Q, p, oracles.fit_on(Q, p, pair)) for pair in pairs)
    assert solve(X, y, "forward", n_nonzero_coefs=2).objective == pytest.approx(best + constant)


# -- coordinate-wise optima, gradient pursuits, and methods as they were published -----------------


def best_coordinate_move(X, y, w, budget):
    """The lowest objective after one step of a coordinate or one exchange, by brute force."""
    best, support = np.inf, np.flatnonzero(w)
    room = support.size < budget
    outs = [None, *support]
    for out, into in itertools.product(outs, range(w.size)):
        if (out is None and w[into] == 0.0 and not room) or (out is not None and w[into] != 0.0):
            continue
        z = w.copy()
        if out is not None:
            z[out] = 0.0
        residual = y - X @ z + X[:, into] * z[into]
        z[into] = X[:, into] @ residual / (X[:, into] @ X[:, into])
        best = min(best, 0.5 * np.sum((y - X @ z) ** 2))
    return best


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("budget", [1, 3, 5])
def test_the_sparse_simplex_method_ends_at_a_coordinate_wise_optimum(seed, budget):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((15, 8)) + 0.7 * rng.standard_normal((15, 1))
    y = rng.standard_normal(15)
    result = solve(X, y, "sparse-simplex", n_nonzero_coefs=budget, random_state=seed)
    assert result.status is Status.CONVERGED
    assert best_coordinate_move(X, y, result.coef, budget) >= result.objective * (1.0 - 1e-6)
    # block-1 stationary: and so is every block-2 stationary point, the paper's hierarchy
    assert blockl0.certify(
        X, y, result.coef, n_nonzero_coefs=budget, level=1, outside="fixed"
    ).holds


def test_the_partial_method_looks_at_fewer_exchanges():
    rng = np.random.default_rng(0)
    gaps = []
    for seed in range(30):
        X, y = rng.standard_normal((20, 12)), rng.standard_normal(20)
        ends = [
            solve(X, y, "sparse-simplex", n_nonzero_coefs=4, random_state=seed, partial=partial)
            for partial in (False, True)
        ]
        gaps.append(ends[1].objective - ends[0].objective)
    assert np.mean(gaps) > 0.0


def test_gradient_thresholding_ends_at_its_own_support(rng):
    X = rng.standard_normal((30, 10))
    y = X[:, :3] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(30)
    result = solve(X, y, "grahtp", n_nonzero_coefs=3, random_state=0)
    assert set(result.support) == {0, 1, 2}
    lipschitz = np.linalg.eigvalsh(X.T @ X)[-1]
    step = np.abs(result.coef + X.T @ (y - X @ result.coef) / lipschitz)
    assert set(np.argsort(-step)[:3]) == {0, 1, 2}


def test_gradient_pursuit_steps_to_the_best_point_along_the_gradient(rng):
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    path = []
    solve(X, y, "gp", n_nonzero_coefs=2, callback=lambda state: path.append(state.objective))
    first = np.argmax(np.abs(X.T @ y) / np.linalg.norm(X, axis=0))
    fitted = X[:, first] @ y / (X[:, first] @ X[:, first])
    assert path[1] == pytest.approx(0.5 * np.sum((y - X[:, first] * fitted) ** 2))
    assert len(path) == 4 and path[-1] <= path[-2]


@pytest.mark.parametrize("method", ["cosamp", "ssp", "romp", "qpm"])
def test_the_literal_method_is_never_better_than_its_best_point_fitted(method):
    rng = np.random.default_rng(1)
    ratios = []
    for seed in range(20):
        X = rng.standard_normal((25, 40)) + 0.5 * rng.standard_normal((25, 1))
        y = X[:, :8] @ rng.standard_normal(8) + rng.standard_normal(25)
        ends = [
            solve(X, y, method, n_nonzero_coefs=6, random_state=seed, literal=literal)
            for literal in (False, True)
        ]
        assert ends[1].n_nonzero <= 6
        ratios.append(ends[1].objective / ends[0].objective)
    assert min(ratios) >= 1.0 - 1e-9 and np.mean(ratios) > 1.005
