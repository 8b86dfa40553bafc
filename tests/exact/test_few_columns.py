"""Other losses where columns count together: all subsets of few, pairs at a price, early ends."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import blockl0
import hostile_losses
from blockl0.exact.few_columns import Subsets, best_of_all
from blockl0.exact.watch import Watch
from blockl0.losses import LOSSES, Logistic, Poisson, Softmax
from blockl0.losses.softmax import softmax_terms
from blockl0.path import solve_path
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import as_problem
from blockl0.run import Incumbent, Run
from blockl0.search.all_sizes import AllSizes
from blockl0.search.local_search import LocalSearch
from blockl0.search.pairs import best_pairs
from blockl0.search.search import refit_options


@pytest.mark.slow
def test_the_default_misses_nothing_on_few_columns():
    wrong = [line for seed in range(84) for line in hostile_losses.check_losses(seed, 6)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("how", ["search", "search_each"])
@pytest.mark.parametrize("seed", range(7))
def test_all_subsets_are_searched_from_any_start(seed, how):
    X, y, options = hostile_losses.make_problem(seed, 5)
    problem = as_problem(X, y, **options)
    price, budget = problem.sparsity
    fits, zero = make_fits(problem), problem.zero()
    subsets = Subsets(problem, fits, zero, problem.objective(zero), 1e-11)
    getattr(subsets, how)(Watch())
    n = problem.n_features
    masks = [m for m in range(1 << n) if m.bit_count() <= budget]
    supports = [np.array([j for j in range(n) if m >> j & 1], dtype=np.int64) for m in masks]
    best = min(fits.on(S).value + price * S.size for S in supports)
    assert subsets.is_complete
    assert subsets.objective == pytest.approx(best, rel=1e-9)
    assert problem.objective(subsets.best) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("structure", ["groups", "bounds", "responses", "costs"])
@pytest.mark.parametrize("seed", range(3))
def test_products_sort_out_no_support_that_is_best(seed, structure, no_enumeration, monkeypatch):
    """Few supports of many columns, some nearly others: by products, and by the data."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 14))
    X[:, 3] = X[:, 0] + 1e-7 * rng.standard_normal(40)
    X[:, 9] = 1e3 * X[:, 8] + 1e-1 * rng.standard_normal(40)
    y = X[:, [0, 4, 8]] @ [1.0, -1.0, 0.5] + rng.standard_normal(40)
    given = {"n_nonzero_coefs": 3} if structure != "costs" else {"alpha": 2.0}
    if structure == "groups":
        given["feature_groups"] = np.arange(14) // 2
    elif structure == "bounds":
        given["bounds"] = (-0.7, 0.7)
    elif structure == "costs":
        X = X[:, :8]
        given["costs"] = rng.uniform(0.5, 2.0, 8)
    problem = as_problem(X, np.c_[y, y[::-1]] if structure == "responses" else y, **given)
    monkeypatch.setattr("blockl0.exact.few_columns.MOST_SUPPORTS", 5000)
    start, found, calls = Incumbent.at(problem, problem.zero()), [], []
    kept = Subsets._fit
    monkeypatch.setattr(Subsets, "_fit", lambda *args: calls.append(1) or kept(*args))
    for most in (2000, 0):
        monkeypatch.setattr("blockl0.exact.few_columns.MOST_PRODUCTS", most)
        best, is_all = best_of_all(problem, start, Watch())
        assert is_all
        found.append((best.objective, len(calls)))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12)
    # and most supports are not fitted
    assert 2 * found[0][1] < found[1][1]


def test_few_supports_are_enumerated_within_the_work_that_is_allowed():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 40)), np.arange(60) % 3
    problem = as_problem(X, y, loss="softmax", ridge=0.1, n_nonzero_coefs=2)
    start = Incumbent.at(problem, problem.zero())
    assert not best_of_all(problem, start, Watch(work_limit=0.01))[1]
    result = blockl0.solve(
        X, y, loss="softmax", ridge=0.1, n_nonzero_coefs=2, method="exact", random_state=0
    )
    assert result.status is blockl0.Status.OPTIMAL and result.gap == 0.0
    many = blockl0.solve(
        X, y, loss="softmax", ridge=0.1, n_nonzero_coefs=5, method="exact", random_state=0
    )
    assert many.status is blockl0.Status.NO_BOUND and "too many subsets" in many.note


def test_a_search_of_subsets_that_is_given_up_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(40) < 0.5, -1.0, 1.0)
    X = rng.standard_normal((40, 6))
    problem = as_problem(X, y, loss="logistic", ridge=1e-3, n_nonzero_coefs=2)
    monkeypatch.setattr("blockl0.exact.few_columns.MOST_WORK", 0.0)
    zero = problem.zero()
    subsets = Subsets(problem, make_fits(problem), zero, problem.objective(zero), 1e-11)
    subsets.search(Watch())
    assert not subsets.is_complete


def test_pairs_are_those_that_lower_a_quadratic_most():
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((40, 7)), rng.standard_normal((40, 2))
    X[:, 3] = X[:, 5]  # two that are one
    support = np.array([2])

    def least(columns):
        return np.sum((z - X[:, columns] @ np.linalg.lstsq(X[:, columns], z, rcond=None)[0]) ** 2)

    others = [0, 1, 3, 4, 5, 6]
    pairs = [(i, j) for i in others for j in others if i < j and (i, j) != (3, 5)]
    order = sorted(pairs, key=lambda pair: least([2, *pair]))
    found = best_pairs(X.T @ X, X.T @ z, support, 30)
    assert [tuple(pair.tolist()) for pair in found][:5] == order[:5] or np.allclose(
        [least([2, *pair]) for pair in found[:5]], [least([2, *pair]) for pair in order[:5]]
    )
    assert (3, 5) not in [tuple(pair.tolist()) for pair in found]


@pytest.mark.parametrize("loss", ["logistic", "poisson", "huber", "squared_hinge", "softmax"])
@pytest.mark.parametrize("k", [2, 3])
def test_two_columns_that_only_pay_together_are_found_under_a_budget(loss, k):
    """Against the enumeration of all subsets; alone each of the two is worth nothing."""
    for seed in range(3):
        rng = np.random.default_rng([seed, k])
        X, u = rng.standard_normal((80, 26)), rng.standard_normal(80)
        X[:, 0] = X[:, 1] + 0.1 * u
        s = 0.6 * u + 0.5 * (k - 2) * X[:, 2]
        if loss in ("logistic", "squared_hinge"):
            y = np.where(2.0 * s + 0.6 * rng.logistic(size=80) > 0.0, 1.0, -1.0)
        elif loss == "poisson":
            y = rng.poisson(np.exp(s)).astype(float)
        else:
            y = s + 0.2 * rng.standard_normal(80)
            y = np.digitize(y, [-0.5, 0.5]) if loss == "softmax" else y
        options = {"loss": loss, "ridge": 1e-3, "n_nonzero_coefs": k}
        best = blockl0.solve(X, y, method="exact", **options)
        for effort in ("fast", "balanced"):
            found = blockl0.solve(X, y, effort=effort, random_state=0, **options)
            assert found.objective == pytest.approx(best.objective, rel=1e-7)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "softmax"])
def test_a_suppressor_is_found_among_many_columns(loss):
    rng = np.random.default_rng(3)
    X, u = rng.standard_normal((80, 30)), rng.standard_normal(80)
    X[:, 0] = X[:, 1] + 0.1 * u
    if loss == "logistic":
        y = (2.0 * u + 0.3 * rng.logistic(size=80) > 0).astype(float)
    else:
        y = rng.poisson(np.exp(u)) if loss == "poisson" else np.digitize(u, [-0.5, 0.5])
    options = {"loss": loss, "ridge": 1e-3, "random_state": 0}
    found = blockl0.solve(X, y.astype(float), alpha=3.0, **options)
    pair = blockl0.solve(X[:, :2], y.astype(float), n_nonzero_coefs=2, **options)
    assert found.objective <= (pair.objective + 6.0) * (1.0 + 1e-9)


@pytest.mark.parametrize("spread", [1e-8, 1.0, 40.0, 900.0])
def test_terms_of_one_pass_are_value_gradient_and_curvature(spread):
    rng = np.random.default_rng(1)
    eta = spread * rng.standard_normal(300)
    signs, counts = np.where(rng.random(300) < 0.5, -1.0, 1.0), rng.poisson(2.0, 300).astype(float)
    counts[:50], eta[:50] = 3.0, np.log(3.0) + 0.01 * rng.standard_normal(50)
    # the slope of Poisson's loss is a difference of numbers of the size of y
    rounding = 4.0 * np.finfo(float).eps * counts.max()
    for loss, y, least in (
        (LOSSES["logistic"], signs, 1e-300), (LOSSES["poisson"], counts, rounding),
    ):  # fmt: skip
        expected = loss.value(eta, y), loss.gradient(eta, y), loss.curvature(eta, y)
        atols = 1e-300, least, 1e-300
        for one, other, atol in zip(loss.terms(eta, y), expected, atols, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=atol)
    softmax, labels = Softmax(3), rng.integers(0, 3, 100)
    P, U, values = softmax_terms(eta.reshape(100, 3), labels)
    np.testing.assert_allclose(P, softmax.mean(eta.reshape(100, 3)), rtol=1e-9, atol=1e-300)
    slopes = softmax.gradient(eta.reshape(100, 3), labels)
    np.testing.assert_allclose(U, slopes, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(values, softmax.value(eta.reshape(100, 3), labels), rtol=1e-12)


def test_a_loss_made_of_another_has_terms_of_its_own():
    class Doubled(Logistic):
        name = "doubled"

        def value(self, eta, y):
            return 2.0 * super().value(eta, y)

    class Halved(Poisson):
        name = "halved"

        def gradient(self, eta, y):
            return 0.5 * super().gradient(eta, y)

    eta, y = np.array([0.3, -2.0]), np.array([1.0, -1.0])
    assert np.array_equal(Doubled().terms(eta, y)[0], Doubled().value(eta, y))
    assert np.array_equal(Halved().terms(eta, np.abs(y))[1], Halved().gradient(eta, np.abs(y)))


def test_easy_data_end_early_and_hard_ones_do_not():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1500, 40))
    easy = (3.0 * X[:, 0] - 3.0 * X[:, 7] + rng.logistic(size=1500) > 0).astype(float)
    noise = (rng.random(60) < 0.5).astype(float)
    options = {"loss": "logistic", "ridge": 1e-2, "random_state": 0}
    quick = blockl0.solve(X, easy, n_nonzero_coefs=2, **options)
    long = blockl0.solve(X[:60], noise, n_nonzero_coefs=4, effort=400, **options)
    assert quick.support.tolist() == [0, 7]
    # walks on easy data agree at once; how many must, effort says
    assert quick.n_iter < 6 and long.n_iter > 20


@pytest.mark.parametrize("are_linked", [False, True])
def test_a_path_that_is_not_checked_claims_nothing_and_finds_strong_columns(are_linked):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 8))
    y = np.argmax(3.0 * X[:, [1, 4, 6]] + rng.gumbel(size=(200, 3)), axis=1).astype(float)
    problem = as_problem(X, y, loss="softmax", ridge=1e-3, n_nonzero_coefs=3)
    points = [(0.0, k) for k in (1, 2, 3)]
    quick = solve_path(problem, points, random_state=0, are_linked=are_linked, is_checked=False)
    checked = solve_path(problem, points, random_state=0)
    assert all(result.certificate is None for result in quick)
    assert all(result.certificate is not None for result in checked)
    assert quick[2].support.tolist() == [1, 4, 6]
    assert np.all(quick.objective >= checked.objective * (1.0 - 1e-9))


@pytest.mark.parametrize("loss", ["logistic", "softmax", "poisson", "huber"])
@pytest.mark.parametrize("keep", [None, [2]])
def test_a_path_of_few_columns_has_the_best_subset_of_every_size(loss, keep):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((90, 6)) @ (np.eye(6) + 0.4 * rng.standard_normal((6, 6)))
    X[:, 5] = X[:, 0] - X[:, 1] + 0.05 * rng.standard_normal(90)
    eta = X[:, 0] + X[:, 3]
    y = {
        "logistic": np.where(eta + rng.logistic(size=90) > 0.0, 1.0, -1.0),
        "softmax": np.digitize(eta + rng.logistic(size=90), [-1.0, 1.0]).astype(float),
        "poisson": rng.poisson(np.exp(0.3 * eta)).astype(float),
        "huber": eta + rng.standard_t(2.0, 90),
    }[loss]
    options = {"ridge": 1e-3, "loss": loss, "keep": keep}
    path = blockl0.l0_path(X, y, n_nonzero_coefs=6, random_state=0, **options)
    fits = make_fits(as_problem(X, y, n_nonzero_coefs=6, **options))
    masks = [m for m in range(1, 1 << 6) if keep is None or m & 4]
    values = {m: fits.on(np.flatnonzero([m >> j & 1 for j in range(6)])).value for m in masks}
    for result, budget in zip(path, path.n_nonzero_coefs, strict=True):
        best = min(v for m, v in values.items() if m.bit_count() <= budget)
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert result.n_nonzero <= budget and (keep is None or 2 in result.support)
        # the best of all has no better one beside it
        assert result.certificate is not None and result.certificate.holds


@pytest.mark.parametrize(
    ("loss", "structure"),
    [("softmax", "groups"), *product(("logistic", "poisson"), ("groups", "bounds", "both"))],
)
def test_a_path_of_few_units_has_the_best_subset_of_every_size(loss, structure):
    rng = np.random.default_rng(15)
    X = rng.standard_normal((80, 7)) @ (np.eye(7) + 0.4 * rng.standard_normal((7, 7)))
    # of a category whose levels add up to one
    X[:, :3] = np.eye(3)[rng.integers(0, 3, 80)]
    eta = X[:, 0] - X[:, 3] + X[:, 5]
    y = {
        "logistic": np.where(eta + rng.logistic(size=80) > 0.0, 1.0, -1.0),
        "softmax": np.digitize(eta + rng.logistic(size=80), [-1.0, 1.0]).astype(float),
        "poisson": rng.poisson(np.exp(0.3 * eta)).astype(float),
    }[loss]
    given = {"loss": loss, "ridge": 1e-3}
    labels = [0, 0, 0, 1, 2, 2, 3] if structure != "bounds" else list(range(7))
    if structure != "bounds":
        given["feature_groups"] = labels
    if structure != "groups":
        given["positive"] = [3, 5]
    n_units = max(labels) + 1
    problem = as_problem(X, y, n_nonzero_coefs=n_units, **given)
    search = LocalSearch(problem, refit_options()[0])
    assert search.best_of_sizes(n_units, Run(problem)) is not None
    path = blockl0.l0_path(X, y, n_nonzero_coefs=n_units, random_state=0, **given)
    fits, values = make_fits(problem), {}
    for mask in range(1, 1 << n_units):
        columns = np.flatnonzero([mask >> unit & 1 for unit in labels])
        values[mask] = fits.on(columns).value
    for result, budget in zip(path, path.n_nonzero_coefs, strict=True):
        best = min(v for m, v in values.items() if m.bit_count() <= budget)
        assert result.objective == pytest.approx(best, rel=1e-9)
        assert np.unique(np.array(labels)[result.support]).size <= budget
        if structure != "groups":
            assert result.coef[[3, 5]].min() >= 0.0
        assert result.certificate is not None and result.certificate.holds


def test_all_sizes_are_given_up_where_the_time_is_over_and_the_path_is_made_as_usual():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 5))
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0.0, 1.0, -1.0)
    problem = as_problem(X, y, loss="logistic", ridge=1e-3, n_nonzero_coefs=5)
    sizes = AllSizes(problem, make_fits(problem), 5, 1e-11, 1e-7)
    assert not sizes.search(Run(problem, 0.0))
    path = blockl0.l0_path(X, y, loss="logistic", ridge=1e-3, n_nonzero_coefs=5, time_limit=1e-9)
    assert len(path) >= 1 and path[-1].status is blockl0.Status.TIME_LIMIT


def test_the_logistic_loss_is_fitted_as_the_softmax_loss_of_two_classes():
    class Plain(Logistic):
        """The same without compiled steps."""

        takes_many_classes = False

    rng = np.random.default_rng(7)
    X = rng.standard_normal((80, 5)) * [1.0, 1e3, 1e-3, 1.0, 1.0]
    X[:, 4] = X[:, 0]
    for spread, ridge in ((1.0, 0.0), (1.0, 1e-3), (20.0, 1e-3), (20.0, 1.0)):
        y = np.where(spread * X[:, 0] + rng.logistic(size=80) > 0.0, 1.0, -1.0)
        for support in ([0], [0, 1, 2], [0, 1, 2, 3, 4]):
            S = np.array(support)
            values = [
                make_fits(as_problem(X, y, loss=loss, ridge=ridge, n_nonzero_coefs=5)).on(S).value
                for loss in (Logistic(), Plain())
            ]
            assert values[0] == pytest.approx(values[1], rel=1e-10)
