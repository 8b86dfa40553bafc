"""Certificates against enumeration, the hierarchy, and the better points of refuted ones."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import oracles
from blockl0.certify import Certificate, certify, move_search, stationarity
from blockl0.data.design import Csc
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from grid import BOUNDED, quick_first
from targets import as_target, takes_labels

LEVELS = ["basic", "L", 1, 2, 3, 4]
SEEDS = range(40)


def draw(seed):
    """A small problem of one of several kinds, with a point that is stationary to some degree."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 8)), int(rng.integers(5, 14))
    X, y = rng.standard_normal((m, n)), 3.0 * rng.standard_normal(m)
    kind = seed % 4
    if kind == 1:
        X += 2.0 * rng.standard_normal((m, 1))
    elif kind == 2:
        X[:, 0] = X[:, 1]
    elif kind == 3:
        X[:, 0] = 0.0
    budget = int(rng.integers(1, n)) if rng.random() < 0.6 else None
    price = float(rng.choice([0.1, 0.5, 2.0])) if budget is None or rng.random() < 0.3 else 0.0
    ridge = float(rng.choice([0.0, 0.1]))
    Q, p, constant = oracles.quadratic_of(X, y, ridge)
    size = rng.integers(0, (n if budget is None else budget) + 1)
    w = oracles.fit_on(Q, p, rng.choice(n, size=size, replace=False))
    for _ in range(rng.integers(0, 12)):
        block = rng.choice(n, size=int(rng.integers(1, 4)), replace=False)
        w = oracles.block_minimum(Q, p, w, block, price, budget)
    if rng.random() < 0.7:
        w = oracles.fit_on(Q, p, np.flatnonzero(w))
    options = {"n_nonzero_coefs": budget, "alpha": price or None, "ridge": ridge}
    return X, y, w, options, (Q, p, constant, price, budget)


def expected(quadratic, w, level, outside, tol):
    Q, p, _, price, budget = quadratic
    if level == "L":
        return oracles.is_l_stationary(Q, p, w, price, budget, tol=tol)
    if level == "basic":
        refitted = oracles.fit_on(Q, p, np.flatnonzero(w))
        return oracles.smooth(Q, p, w) - oracles.smooth(Q, p, refitted) <= tol
    return oracles.is_block_stationary(Q, p, w, level, price, budget, outside, tol=tol)


def check_better(answer: Certificate, X, y, w, options, loss="squared"):
    """A refuted certificate shows a feasible, truly better point that differs where it says."""
    problem = as_problem(X, y, loss=loss, **options)
    assert answer.better_coef is not None and answer.better_objective is not None
    assert answer.better_objective < problem.objective(w)
    assert answer.better_objective == pytest.approx(problem.objective(answer.better_coef))
    assert np.count_nonzero(answer.better_coef) <= problem.sparsity.budget
    assert list(answer.block) == sorted(set(answer.block))
    if isinstance(answer.level, int):
        assert len(answer.block) <= answer.level
        if answer.outside == "fixed":
            assert set(np.flatnonzero(answer.better_coef != w)) <= set(answer.block)


@pytest.mark.parametrize("outside", ["fixed", "refit"])
@pytest.mark.parametrize("level", LEVELS)
def test_equals_enumeration(level, outside):
    n_decided = 0
    for seed in SEEDS:
        X, y, w, options, quadratic = draw(seed)
        objective = as_problem(X, y, **options).objective(w)
        truths = {expected(quadratic, w, level, outside, t * objective) for t in (1e-9, 1e-6)}
        if len(truths) == 2 or objective < 1e-6:
            continue  # too close to call by the oracle's own rounding
        answer = certify(X, y, w, level=level, outside=outside, **options)
        assert answer.holds == truths.pop(), (seed, str(answer))
        n_decided += 1
        if not answer.holds:
            check_better(answer, X, y, w, options)
    assert n_decided > 30


def test_hierarchy():
    """basic ⇐ L ⇐ block-1 or 2 ⇐ … ⇐ block-n ⇔ optimal, and refit ⇒ fixed."""
    n_optimal = 0
    for seed in SEEDS:
        X, y, w, options, (Q, p, constant, price, budget) = draw(1000 + seed)
        n, lowest = len(w), 1 if budget is None else 2
        levels = ["basic", "L", *range(lowest, n + 1)]
        for outside in ("fixed", "refit"):
            holds = [certify(X, y, w, level=v, outside=outside, **options).holds for v in levels]
            assert holds == sorted(holds, reverse=True), (seed, outside, holds)
            best = oracles.brute_force(Q, p, price, budget)[1]
            here = oracles.objective(Q, p, w, price)
            is_optimal = here - best <= 1e-7 * (here + constant)
            assert holds[-1] == is_optimal
            n_optimal += is_optimal
        for k in range(1, n + 1):
            refit, fixed = (
                certify(X, y, w, level=k, outside=v, **options) for v in ("refit", "fixed")
            )
            assert fixed.holds or not refit.holds
    assert n_optimal > 4


def test_paper_example():
    """Table 1 of the paper, constrained row: 57, 14, –, 2, 1, 1, 1, 1 stationary points."""
    c = np.arange(1.0, 7.0)
    Q = np.outer(c, c) + np.eye(6)
    X = np.linalg.cholesky(Q).T
    y = -np.linalg.solve(X.T, np.ones(6))
    points = [oracles.fit_on(Q, np.ones(6), s) for s in oracles.subsets(range(6), 4)]
    counts = [
        sum(
            certify(X, y, w, n_nonzero_coefs=4, level=v, outside="fixed", tol=1e-10).holds
            for w in points
        )
        for v in ("basic", "L", 2, 3, 4, 5, 6)
    ]
    assert counts == [57, 14, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("outside", ["fixed", "refit"])
@pytest.mark.parametrize("k", quick_first([3, 4], 1))
def test_screening_and_search_agree_with_pairs_of_blocks(k, outside, rng):
    """On larger problems descent by level k ends where no sampled block improves, above level 2."""
    X = rng.standard_normal((60, 24)) + rng.standard_normal((60, 1))
    y = X[:, :4] @ np.array([3.0, -2.0, 2.0, 1.0]) + 2.0 * rng.standard_normal(60)
    for options in ({"n_nonzero_coefs": 4}, {"alpha": 3.0}, {"n_nonzero_coefs": 6, "alpha": 1.0}):
        w = np.zeros(24)
        while not (answer := certify(X, y, w, level=k, outside=outside, **options)).holds:
            check_better(answer, X, y, w, options)
            w = answer.better_coef
        sampled = certify(
            X, y, w, level=k, outside=outside, n_samples=300, random_state=0, **options
        )
        assert sampled.holds and not sampled.complete
        assert certify(X, y, w, level=k - 1, outside=outside, **options).holds


@pytest.mark.slow
@pytest.mark.parametrize("outside", ["fixed", "refit"])
def test_sampled(outside):
    for seed in SEEDS[::6]:
        X, y, w, options, _ = draw(2000 + seed)
        full = certify(X, y, w, level=3, outside=outside, **options)
        drawn = certify(
            X, y, w, level=3, outside=outside, n_samples=300, random_state=seed, **options
        )
        assert drawn.holds == full.holds, seed
        if drawn.holds:
            assert drawn.confidence == pytest.approx(0.05 ** (1 / 300))
            assert drawn.n_blocks == 300 and "300 random blocks" in str(drawn)
        else:
            check_better(drawn, X, y, w, options)


@pytest.mark.parametrize("outside", ["fixed", "refit"])
@pytest.mark.parametrize("loss", BOUNDED)
def test_other_losses(loss, outside, rng):
    X = rng.standard_normal((60, 10))
    y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(60)
    y = as_target(loss, y)
    options = {"n_nonzero_coefs": 3}
    for level in ("basic", "L", 1, 2, 3, 10):
        w = np.zeros(10)
        w[5:8] = 1.0
        for _ in range(5000):
            answer = certify(X, y, w, loss=loss, level=level, outside=outside, tol=1e-5, **options)
            if answer.holds:
                break
            check_better(answer, X, y, w, options, loss)
            w = answer.better_coef
        assert answer.holds
        assert certify(X, y, w, loss=loss, level="basic", tol=1e-4, **options).holds
        if level in (2, 3, 10):
            assert {0, 1} <= set(np.flatnonzero(w))


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1e12])
def test_scale_free(scale):
    for seed in SEEDS:
        X, y, w, options, _ = draw(seed)
        grown = {
            "n_nonzero_coefs": options["n_nonzero_coefs"],
            "alpha": options["alpha"] and options["alpha"] * scale**2,
            "ridge": options["ridge"],
        }
        for level in ("basic", "L", 2, 3):
            assert (
                certify(X, y * scale, w * scale, level=level, **grown).holds
                == certify(X, y, w, level=level, **options).holds
            ), (seed, level)


@pytest.mark.parametrize("level", ["basic", "L", 1, 2, 3])
def test_sparse_equals_dense_and_is_not_densified(level, rng, monkeypatch):
    X = sp.csc_array(sp.random(80, 100, density=0.2, random_state=rng))
    y = X @ np.r_[np.ones(5), np.zeros(95)] + rng.standard_normal(80)
    w = np.r_[np.full(4, 1.0), np.zeros(96)]
    dense = certify(X.toarray(), y, w, n_nonzero_coefs=4, level=level)
    columns = Csc.columns

    def few_columns(self, idx):
        assert len(idx) < 10
        return columns(self, idx)

    monkeypatch.setattr(Csc, "columns", few_columns)
    monkeypatch.setattr(Csc, "full_gram", None)
    answer = certify(X, y, w, n_nonzero_coefs=4, level=level)
    assert answer.holds == dense.holds and answer.block == dense.block
    np.testing.assert_allclose(answer.better_coef, dense.better_coef, atol=1e-10)


def test_largest_curvature_of_many_columns(rng):
    X = rng.standard_normal((50, 100))
    problem = as_problem(X, np.ones(50), alpha=1.0, ridge=0.5)
    L = stationarity.largest_curvature(stationarity.QuadraticPoint(problem, np.zeros(100)))
    assert L == pytest.approx(np.linalg.norm(X, 2) ** 2 + 0.5, rel=1e-10)


def test_weights_are_repeated_rows(rng):
    X, y = rng.standard_normal((20, 6)), rng.standard_normal(20)
    weight = rng.integers(1, 4, 20)
    w = np.r_[1.0, 1.0, np.zeros(4)]
    for level in ("basic", "L", 2, 3):
        one = certify(X, y, w, n_nonzero_coefs=2, level=level, sample_weight=weight)
        rows = np.repeat(np.arange(20), weight)
        other = certify(X[rows], y[rows], w, n_nonzero_coefs=2, level=level)
        assert one.block == other.block
        assert one.better_objective == pytest.approx(other.better_objective)


@pytest.mark.parametrize("outside", ["fixed", "refit"])
@pytest.mark.parametrize("level", ["L", 2, 3, 6])
def test_kept_columns_stay(level, outside, rng):
    X = rng.standard_normal((30, 6))
    y = X[:, 3] + X[:, 4] + 0.1 * rng.standard_normal(30)
    w, options = np.r_[0.01, 0.0, 1.0, np.zeros(3)], {"n_nonzero_coefs": 2, "keep": [0]}
    while not (answer := certify(X, y, w, level=level, outside=outside, **options)).holds:
        w = answer.better_coef
        assert w[0] != 0.0
    assert certify(X, y, w, n_nonzero_coefs=2, level=6).block is not None


def test_continuing_reaches_the_optimum(rng):
    X, y = rng.standard_normal((40, 9)), rng.standard_normal(40)
    w = np.zeros(9)
    while not (answer := certify(X, y, w, n_nonzero_coefs=3, level=9)).holds:
        w = answer.better_coef
    Q, p, constant = oracles.quadratic_of(X, y)
    assert answer.objective == pytest.approx(oracles.brute_force(Q, p, 0.0, 3)[1] + constant)
    assert answer.n_blocks == 1 and "no change of any columns" in str(answer)


def test_global_level_on_sixty_columns(rng):
    X = rng.standard_normal((200, 60))
    y = X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(200)
    w = np.zeros(60)
    w[:3] = np.linalg.lstsq(X[:, :3], y, rcond=None)[0]
    assert certify(X, y, w, n_nonzero_coefs=3, level=60).holds
    assert certify(X, y, w, n_nonzero_coefs=3, level=20).holds
    w[:3] = 0.0
    assert not certify(X, y, w, n_nonzero_coefs=3, level=60).holds


def test_edges():
    one = np.ones((3, 1))
    for level in ("basic", "L", 1, 2, 5):
        for outside in ("fixed", "refit"):
            options = {"level": level, "outside": outside}
            assert certify(one, np.ones(3), [1.0], n_nonzero_coefs=1, **options).holds
            assert not certify(one, np.ones(3), [0.5], n_nonzero_coefs=1, **options).holds
            assert certify(one, np.zeros(3), [0.0], n_nonzero_coefs=1, **options).holds
            assert certify(one, np.ones(3), [0.0], n_nonzero_coefs=0, **options).holds
            assert certify(np.zeros((3, 4)), np.ones(3), np.zeros(4), alpha=1.0, **options).holds
    # a nonzero on a zero column, or twice the same column, is paid for nothing
    assert certify(np.zeros((3, 1)), np.ones(3), [7.0], alpha=1.0, level=1).block == (0,)
    twice = certify(np.c_[one, one], 2 * np.ones(3), [1.0, 1.0], alpha=0.1, level=1)
    assert twice.better_objective == pytest.approx(0.1)


def test_messages_in_plain_words(rng):
    X = np.eye(3)
    y = np.array([3.0, 2.0, 1.0])
    refuted = certify(X, y, [0.0, 2.0, 0.0], n_nonzero_coefs=1)
    assert "Not block-2 stationary" in str(refuted) and "columns 0, 1" in str(refuted)
    assert "from 5 to 2.5" in str(refuted)
    assert str(certify(X, y, [3.0, 0, 0], n_nonzero_coefs=1, level="L")).startswith("L stationary")


@pytest.mark.parametrize(
    ("coef", "options", "error", "message"),
    [
        ([1.0, 1.0, 0.0], {}, ValueError, "`coef` must have at most n_nonzero_coefs=1 nonzeros"),
        ([1.0, 1.0], {}, ValueError, "`coef` must have shape"),
        ([np.nan, 0.0, 0.0], {}, ValueError, "`coef` must be finite"),
        ([1.0, 0.0, 0.0], {"keep": [1]}, ValueError, "columns in `keep`"),
        ([1.0, 0.0, 0.0], {"level": 0}, ValueError, "`level` must be at least 1"),
        ([1.0, 0.0, 0.0], {"level": 2.0}, TypeError, "`level` must be an integer"),
        ([1.0, 0.0, 0.0], {"level": "l"}, ValueError, "`level` must be one of"),
        ([1.0, 0.0, 0.0], {"outside": "free"}, ValueError, "`outside` must be one of"),
        ([1.0, 0.0, 0.0], {"n_samples": 0}, ValueError, "`n_samples` must be at least 1"),
        ([1.0, 0.0, 0.0], {"level": "L", "n_samples": 5}, ValueError, "needs an integer level"),
        ([1.0, 0.0, 0.0], {"tol": -1.0}, ValueError, "`tol` must be nonnegative"),
    ],
)
def test_errors(coef, options, error, message):
    with pytest.raises(error, match=message):
        certify(np.eye(3), np.ones(3), coef, n_nonzero_coefs=1, **options)


def test_out_of_reach_says_what_to_do(rng, monkeypatch):
    monkeypatch.setattr(move_search, "WORK_LIMIT", 1000)
    monkeypatch.setattr(stationarity, "GLOBAL_COLUMNS", 0)
    X = rng.standard_normal((30, 40))
    y = rng.standard_normal(30)
    w = np.zeros(40)
    while not (answer := certify(X, y, w, alpha=1.0)).holds:
        w = answer.better_coef
    with pytest.raises(ValueError, match="Give `n_samples`"):
        certify(X, y, w, alpha=1.0, level=4)


def test_rounding_of_the_gram_matrix_does_not_feign_optimality():
    # a nearly perfect fit on dependent columns: what matters is lost in the rounding of X'X
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    X[:, 5] = X[:, 2] - X[:, 3] + 0.01 * rng.standard_normal(100)
    y = X[:, 0] + 1e-4 * (X[:, 2] - X[:, 3]) + 1e-7 * rng.standard_normal(100)
    w = np.zeros(20)
    w[[0, 5, 9]] = np.linalg.lstsq(X[:, [0, 5, 9]], y, rcond=None)[0]
    for level in (4, 20):
        answer = certify(X, y, w, n_nonzero_coefs=3, level=level)
        assert not answer.holds
        assert answer.better_objective < 0.1 * answer.objective


def test_only_a_gain_above_the_tolerance_is_confirmed():
    # at w = 1 - delta the gain of the best point is delta²/2, and the tolerance about 5e-14
    for delta, counts in ((1e-7, False), (1e-6, True)):
        problem = as_problem(np.ones((1, 1)), np.ones(1), n_nonzero_coefs=1)
        point = stationarity.QuadraticPoint(problem, np.array([1.0 - delta]))
        better = point.confirm(np.array([0]), np.array([1.0]))
        assert (better is not None) == counts


@pytest.mark.parametrize("loss", BOUNDED)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_model_of_a_problem_with_intercept_touches_it_and_lies_above(loss, is_weighted):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 5)) + 3.0 * rng.standard_normal(5)
        y = 5.0 + 3.0 * rng.standard_normal(30)
        y = (np.arange(30) < 24).astype(float) if takes_labels(loss) else y
        weights = rng.uniform(0.1, 3.0, 30) if is_weighted else None
        problem = apply(
            as_problem(X, y, n_nonzero_coefs=3, loss=loss, ridge=0.1, sample_weight=weights)
        ).problem
        w = np.concatenate([rng.standard_normal(2), np.zeros(3)])
        model = stationarity.QuadraticPoint(problem, w).model
        np.testing.assert_allclose(model.gradient(w), problem.gradient(w), rtol=1e-8, atol=1e-9)
        for _ in range(10):
            z = w + 0.5 * rng.standard_normal(5)
            rise = model.smooth(z) - model.smooth(w)
            assert rise >= problem.smooth(z) - problem.smooth(w) - 1e-9
