"""Method "exact": it is brute force, with a bound that is true at any time."""

from __future__ import annotations

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import PolynomialFeatures

import blockl0
import oracles
from blockl0 import Status, kernels
from blockl0.exact import search as exact_search
from blockl0.exact.search import ExactSearch
from blockl0.problem.problem import as_problem
from grid import quick_first

FORMS = [
    {"n_nonzero_coefs": 0},
    {"n_nonzero_coefs": 3},
    {"n_nonzero_coefs": 9},
    {"alpha": 0.0},
    {"alpha": 0.4},
    {"alpha": 1e9},
    {"n_nonzero_coefs": 2, "alpha": 0.2},
    {"n_nonzero_coefs": 6, "alpha": 0.05},
]


def random_data(rng, m, n):
    X = rng.standard_normal((m, n)) + rng.standard_normal((m, 1))
    return X, X[:, : min(n, 3)].sum(axis=1) + rng.standard_normal(m)


def duplicated(X, y):
    return np.column_stack([X[:, :5], X[:, :2], 2 * X[:, 2], X[:, 0] + X[:, 1]]), y


CASES = {
    "tall": lambda X, y: (X, y),
    "wide": lambda X, y: (X[:5], y[:5]),
    "duplicate columns": duplicated,
    "zero columns": lambda X, y: (X * (np.arange(9) % 3 > 0), y),
    "constant y": lambda X, y: (X, np.ones_like(y)),
    "y = 0": lambda X, y: (X, np.zeros_like(y)),
    "one row": lambda X, y: (X[:1], y[:1]),
    "nearly parallel": lambda X, y: (X[:, :1] + 1e-4 * X, y),
}


def brute_force(X, y, *, n_nonzero_coefs=None, alpha=0.0, ridge=0.0, weights=None, keep=()):
    """The least objective over all supports that hold `keep`, by least squares on each."""
    m, n = X.shape
    root = np.sqrt(np.ones(m) if weights is None else weights)
    A = np.vstack([X * root[:, None], np.sqrt(ridge) * np.eye(n)])
    b = np.append(y * root, np.zeros(n))
    best = np.inf
    for S in oracles.subsets(range(n), n_nonzero_coefs):
        if set(keep) <= set(S):
            r = b - A[:, S] @ np.linalg.lstsq(A[:, S], b, rcond=None)[0] if S else b
            best = min(best, 0.5 * r @ r + alpha * len(S))
    return best


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_equals_brute_force(rng, case, form, ridge):
    X, y = CASES[case](*random_data(rng, 12, 9))
    result = blockl0.solve(X, y, method="exact", ridge=ridge, **form)
    expected = brute_force(X, y, ridge=ridge, **form)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(expected, rel=1e-8, abs=1e-10)
    assert result.lower_bound == result.objective and result.gap == 0.0  # by definition
    assert result.n_nonzero <= form.get("n_nonzero_coefs", 9)
    # the same function of the same numbers
    assert result.objective == as_problem(X, y, ridge=ridge, **form).objective(result.coef)


@pytest.mark.parametrize("seed", range(12))
def test_equals_brute_force_with_weights_and_kept_columns(seed):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, 14, 9)
    weights, keep = rng.uniform(0.0, 2.0, 14), rng.choice(9, 2, replace=False)
    for form in ({"n_nonzero_coefs": 2}, {"n_nonzero_coefs": 4}, {"alpha": 0.5}, {"alpha": 1e6}):
        result = blockl0.solve(X, y, method="exact", sample_weight=weights, keep=keep, **form)
        expected = brute_force(X, y, weights=weights, keep=keep, **form)
        assert result.objective == pytest.approx(expected, rel=1e-9)
        assert set(keep) <= set(result.support)


@pytest.mark.parametrize("seed", quick_first(range(4), 1))
def test_equals_brute_force_from_the_size_where_relaxations_are_used(seed):
    rng = np.random.default_rng(seed)
    X, y = random_data(rng, 25, 17)
    Q, p, constant = oracles.quadratic_of(X, y)
    for s in (3, 5):
        _, value = oracles.brute_force(Q, p, 0.0, s)
        result = blockl0.solve(X, y, method="exact", n_nonzero_coefs=s)
        assert result.objective == pytest.approx(value + constant, rel=1e-9)
        priced = blockl0.solve(X, y, method="exact", alpha=0.2, n_nonzero_coefs=s)
        _, value = oracles.brute_force(Q, p, 0.2, s)
        assert priced.objective == pytest.approx(value + constant, rel=1e-9)


def with_levels(rng, m, n, *sizes):
    """Numbers and all levels of categories, centred: each category adds one dependence."""
    levels = [np.eye(size)[rng.integers(0, size, m)] for size in sizes]
    X = np.hstack([rng.standard_normal((m, n)), *levels])
    X = (X - X.mean(axis=0))[:, rng.permutation(X.shape[1])]
    y = X @ rng.standard_normal(X.shape[1]) + rng.standard_normal(m)
    return X, y - y.mean()


@pytest.mark.parametrize("seed", range(10))
def test_equals_brute_force_with_all_levels_of_categories(seed):
    rng = np.random.default_rng(seed)
    X, y = with_levels(rng, 30, 3, 3, 4)
    keep = rng.choice(10, 2, replace=False) if seed % 2 else None
    for form in ({"n_nonzero_coefs": 2}, {"n_nonzero_coefs": 5}, {"alpha": 0.5}):
        result = blockl0.solve(X, y, method="exact", keep=keep, **form)
        expected = brute_force(X, y, keep=() if keep is None else keep, **form)
        assert result.objective == pytest.approx(expected, rel=1e-9)
        assert result.status is Status.OPTIMAL and result.gap == 0.0


def test_bounds_are_true_while_parts_are_searched():
    """With dependent columns a problem falls into several trees; no bound may overtake."""
    X, y = with_levels(np.random.default_rng(0), 60, 30, 3, 3)
    best = blockl0.solve(X, y, method="exact", n_nonzero_coefs=6)
    seen = []
    blockl0.solve(
        X, y, method="exact", n_nonzero_coefs=6, callback=lambda p: seen.append(p.lower_bound)
    )
    assert best.status is Status.OPTIMAL and len(seen) > 2
    assert max(seen) <= best.objective * (1.0 + 1e-9)
    assert np.all(np.diff(seen) >= 0.0)  # the largest so far


@pytest.mark.parametrize("seed", range(6))
def test_every_part_starts_from_the_value_of_the_incumbent(seed):
    """Also one whose forced columns the incumbent lacks; and no tree leaves its memory."""
    X, y = with_levels(np.random.default_rng(seed), 12, 3, 3, 3)
    problem = as_problem(X, y, alpha=0.1 * y @ y)
    search = ExactSearch(problem, np.array([0, 1]))
    trees = []
    while not search.finished:
        trees += [search.tree] if not any(search.tree is tree for tree in trees) else []
        offset = search._quadratic.offset
        best = (search.tree.value[-1, kernels.BEST_VALUE] + offset) * 2.0 * search.constant
        assert best == pytest.approx(search.incumbent.objective, rel=1e-12)
        assert search.tree.count[-1, kernels.LEVEL] < len(search.tree.count) - 1
        search.advance(1)
    assert len(trees) > 1
    expected = brute_force(X, y, alpha=0.1 * y @ y)
    assert search.incumbent.objective == pytest.approx(expected, rel=1e-9)


def test_a_tree_grows_when_it_is_deeper_than_its_memory(monkeypatch):
    """Few levels at first: the same answer in the same number of nodes, or a few more."""
    X, y = random_data(np.random.default_rng(3), 40, 24)
    problem = as_problem(X, y, alpha=0.01)
    answers = []
    for levels in (16, 1):
        monkeypatch.setattr(exact_search, "FIRST_LEVELS", levels)
        search = ExactSearch(problem, np.array([], dtype=np.int64))
        while not search.finished:
            search.advance(50)
        answers.append(search.incumbent)
    assert np.array_equal(np.flatnonzero(answers[0].w), np.flatnonzero(answers[1].w))
    assert answers[0].iteration <= answers[1].iteration <= answers[0].iteration + 50


@pytest.mark.parametrize("distance", [1e-3, 3e-6, 1e-7, 3e-8])
@pytest.mark.parametrize("weights", [None, "some"])
@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 2}, {"alpha": 0.1}], ids=["budget", "price"])
def test_columns_that_nearly_depend_on_others_are_seen(distance, weights, form):
    """Five digits of products are not five digits of columns: both together fit y."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    X[:, 1] = X[:, 0] + distance * y
    weights = None if weights is None else rng.integers(1, 3, 40).astype(float)
    for method in ("exact", "refit"):
        result = blockl0.solve(X, y, method=method, sample_weight=weights, **form)
        assert result.status is Status.OPTIMAL and result.support.tolist() == [0, 1]
        assert result.objective - 2 * form.get("alpha", 0.0) < 1e-12 * (y @ y)
    X[:, 1] = X[:, 0] - X[:, 2]
    result = blockl0.solve(X, y, method="exact", sample_weight=weights, **form)
    assert result.status is Status.OPTIMAL and result.gap == 0.0


@pytest.mark.parametrize("distance", [3e-9, 1e-10, 1e-13])
def test_columns_closer_than_the_definition_count_as_dependent(distance):
    """They never stand in a support together, in no method, and the proof is about the others."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), rng.standard_normal(40)
    X[:, 1] = X[:, 0] + distance * np.linalg.norm(X[:, 0]) * y / np.linalg.norm(y)
    for method in ("exact", "refit"):
        result = blockl0.solve(X, y, method=method, n_nonzero_coefs=4)
        assert result.status is Status.OPTIMAL
        assert not {0, 1} <= set(result.support.tolist())
        without = [np.delete(X, j, axis=1) for j in (0, 1)]
        expected = min(brute_force(A, y, n_nonzero_coefs=4) for A in without)
        assert result.objective == pytest.approx(expected, rel=1e-7)


def test_all_levels_of_a_category_do_not_prevent_a_proof():
    rng = np.random.default_rng(1)
    X, _ = with_levels(rng, 300, 60, 3)
    y = X[:, :4] @ [3.0, -2.0, 1.0, 2.0] + 0.5 * rng.standard_normal(300)
    assert np.linalg.matrix_rank(X) == 62
    result = blockl0.solve(X, y - y.mean(), method="exact", n_nonzero_coefs=4, node_limit=1000)
    assert result.status is Status.OPTIMAL and result.support.tolist() == [0, 1, 2, 3]


def test_sparse_X_and_init_give_the_same_answer(rng):
    X, y = random_data(rng, 30, 20)
    X *= rng.random(X.shape) < 0.5
    dense = blockl0.solve(X, y, method="exact", n_nonzero_coefs=4)
    sparse = blockl0.solve(sp.csr_array(X), y, method="exact", n_nonzero_coefs=4)
    init = np.zeros(20)
    init[[17, 18]] = 1.0
    started = blockl0.solve(X, y, method="exact", n_nonzero_coefs=4, init=init)
    for other in (sparse, started):
        assert np.array_equal(other.support, dense.support)
        assert other.objective == pytest.approx(dense.objective, rel=1e-12)


# -- real data -------------------------------------------------------------------------------------


def diabetes(quadratic):
    """Standardized diabetes data, y centred: 10 features, or 64 with squares and products."""
    X, y = load_diabetes(return_X_y=True)
    if quadratic:
        expand = PolynomialFeatures(2, include_bias=False)
        X = expand.fit_transform(X)
        # sex takes two values, so its square is sex again
        X = np.delete(X, list(expand.get_feature_names_out()).index("x1^2"), axis=1)
    X = X - X.mean(axis=0)
    return X / X.std(axis=0), y - y.mean()


def test_diabetes_every_budget_equals_brute_force():
    X, y = diabetes(False)
    for s in range(11):
        result = blockl0.solve(X, y, n_nonzero_coefs=s, method="exact")
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(brute_force(X, y, n_nonzero_coefs=s), rel=1e-10)


@pytest.mark.slow
def test_diabetes_with_64_quadratic_features_is_proven_optimal():
    X, y = diabetes(True)
    assert X.shape == (442, 64)
    before = np.inf
    for s in range(1, 8):
        result = blockl0.solve(X, y, n_nonzero_coefs=s, method="exact", time_limit=20)
        assert result.status is Status.OPTIMAL
        assert result.objective < before
        before = result.objective
        heuristic = blockl0.solve(X, y, n_nonzero_coefs=s, method="dec", random_state=0)
        assert heuristic.objective >= result.objective * (1 - 1e-10)
    result = blockl0.solve(X, y, alpha=2e4, method="exact", time_limit=20)
    assert result.status is Status.OPTIMAL
    again = blockl0.solve(X, y, n_nonzero_coefs=result.n_nonzero, method="exact")
    assert again.objective + 2e4 * result.n_nonzero == pytest.approx(result.objective, rel=1e-10)


# -- limits, bounds, interruptions -----------------------------------------------------------------


def hard():
    """Pure noise, more columns than rows: nothing to find, and everything to refute."""
    rng = np.random.default_rng(1)
    return rng.standard_normal((60, 120)), rng.standard_normal(60)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    blockl0.solve(np.eye(20), np.ones(20), n_nonzero_coefs=3, method="exact")


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 8}, {"alpha": 0.5}])
def test_time_limit_is_honoured(form):
    X, y = hard()
    # without the ridge there is no bound, and the search ends before the time is up
    options = {"method": "exact", "ridge": 0.01, "time_limit": 0.3, **form}
    blockl0.solve(X, y, **options)  # compile: one kernel is not interrupted
    start = time.thread_time()
    result = blockl0.solve(X, y, **options)
    assert time.thread_time() - start < 1.0
    assert result.status is Status.TIME_LIMIT
    assert result.lower_bound < result.objective
    assert result.gap == pytest.approx(1 - result.lower_bound / result.objective)
    assert np.isfinite(result.lower_bound)


def test_lower_bounds_are_true_at_any_time_and_objectives_never_rise():
    rng = np.random.default_rng(3)
    X, y = random_data(rng, 40, 40)
    X += 2 * rng.standard_normal(X.shape)
    for form in ({"n_nonzero_coefs": 8}, {"alpha": 0.3}):
        seen = []
        options = {"method": "exact", **form}
        optimum = blockl0.solve(X, y, callback=seen.append, **options)
        assert optimum.status is Status.OPTIMAL
        bounds = np.array([progress.lower_bound for progress in seen])
        values = np.array([progress.objective for progress in seen])
        assert len(seen) > 2
        assert np.all(bounds <= optimum.objective * (1 + 1e-9))
        assert np.all(np.diff(values) <= 0)  # the least so far
        assert np.array_equal(optimum.history.objective, values)
        nodes = [progress.iteration for progress in seen]
        assert nodes == sorted(nodes) and nodes[-1] == optimum.n_iter
        # stopping anywhere leaves a true bound
        for node_limit in (1, 10, optimum.n_iter // 2):
            part = blockl0.solve(X, y, node_limit=node_limit, **options)
            assert part.status is Status.NODE_LIMIT and part.n_iter <= node_limit
            assert part.lower_bound <= optimum.objective * (1 + 1e-9) <= part.objective * (1 + 1e-8)


def test_callback_stops_the_search():
    X, y = hard()
    result = blockl0.solve(
        X, y, method="exact", n_nonzero_coefs=8, callback=lambda progress: progress.iteration > 100
    )
    assert result.status is Status.STOPPED
    assert 100 < result.n_iter < 100_000 and result.n_nonzero <= 8


def test_interrupt_returns_the_best_point():
    X, y = hard()

    def interrupt(progress):
        if progress.iteration > 0:
            raise KeyboardInterrupt

    result = blockl0.solve(X, y, method="exact", n_nonzero_coefs=8, callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert 0 < result.n_nonzero <= 8 and result.lower_bound <= result.objective
    assert result.objective < 0.5 * y @ y


# -- refusals --------------------------------------------------------------------------------------


def test_too_many_subsets_of_several_classes_have_no_bound(rng, no_enumeration):
    X, y = rng.standard_normal((30, 8)), np.arange(30) % 3
    result = blockl0.solve(X, y, n_nonzero_coefs=2, loss="softmax", method="exact")
    assert result.status is Status.NO_BOUND and result.lower_bound == 0.0
    assert "loss='softmax' has several predictors" in result.note


@pytest.mark.parametrize("option", ["gap", "memory_limit"])
def test_a_negative_option_is_refused(option):
    with pytest.raises(ValueError, match=option):
        blockl0.solve(np.eye(3), np.ones(3), n_nonzero_coefs=1, method="exact", **{option: -1.0})


@pytest.mark.parametrize("bad", [0, -5])
def test_a_node_limit_below_one_is_refused(bad):
    with pytest.raises(ValueError, match="node_limit"):
        blockl0.solve(np.eye(3), np.ones(3), n_nonzero_coefs=1, method="exact", node_limit=bad)
