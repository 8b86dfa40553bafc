"""Rule "paired_se": what it chooses by hand, on noise, and with a ridge from the folds."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from blockl0 import L0ClassifierCV, L0Regressor, L0RegressorCV
from blockl0.estimators.folds import RIDGES
from blockl0.estimators.linear import seed_of
from blockl0.problem.preprocess import read_ridge
from blockl0.selection import LEAST_EVIDENCE, SIZE_ERRORS, Comparison, count_samples, evidence
from linear_data import Linear

data = Linear(80, 5, {0: 1.0, 2: -0.5, 3: 0.3}, noise=2.0, common=0.4, constant=3.0)


def chosen_by_hand(scores, sizes):
    """(ridge, point) as the documentation says it, one candidate after the other."""
    mean = scores.mean(axis=0)
    n_folds, n_ridges, n_points = scores.shape
    best = max((mean[r, i], -r) for r in range(n_ridges) for i in range(n_points))
    ridge = -best[1]
    top = np.argmax(mean[ridge])
    close = []
    for point in range(n_points):
        worse = scores[:, ridge, top] - scores[:, ridge, point]
        error = np.std(worse, ddof=1) / np.sqrt(n_folds)
        if worse.mean() <= SIZE_ERRORS * error or point == top:
            close.append(point)
    return ridge, min(close, key=lambda point: sizes[point])


@pytest.mark.parametrize("seed", range(40))
def test_the_choice_is_the_documented_one(seed):
    rng = np.random.default_rng(seed)
    n_folds, n_ridges, n_points = 5, int(rng.integers(1, 5)), int(rng.integers(2, 8))
    common = rng.standard_normal((n_folds, 1, 1))
    trend = np.minimum(np.arange(n_points), rng.integers(1, n_points)) * rng.uniform(0.0, 1.5)
    scores = common + trend + 0.3 * rng.standard_normal((n_folds, n_ridges, n_points))
    sizes = np.arange(n_points)
    comparison = Comparison(scores)
    found = comparison.ridge, comparison.point(comparison.ridge, sizes)
    assert found == chosen_by_hand(scores, sizes)


def test_folds_without_scores_are_left_out():
    rng = np.random.default_rng(0)
    scores = np.arange(4.0) + 0.1 * rng.standard_normal((5, 2, 4))
    with_gap = np.concatenate([scores, np.full((1, 2, 4), np.nan)])
    for both in (Comparison(scores), Comparison(with_gap)):
        assert both.point(both.ridge, np.arange(4)) == 3


def ebic_by_hand(X, y, k):
    """EBIC of the best k columns of few, by enumeration."""
    m, n = X.shape
    A = np.column_stack([np.ones(m), X[:, best_subset(X, y, k)]])
    mean_square = np.mean((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)
    return m * np.log(mean_square) + k * np.log(m) + 2.0 * np.log(comb(n, k))


def test_evidence_is_the_fall_of_ebic():
    """From enumeration; in any unit of weights that count no samples, on the edge, too."""
    rng, found = np.random.default_rng(0), []
    for effect in np.linspace(0.0, 1.0, 9):
        X = rng.standard_normal((40, 5))
        y = effect * X[:, 1] + rng.standard_normal(40)
        values = [ebic_by_hand(X, y, k) for k in range(6)]
        fall = values[0] - min(values)
        for weight in (None, 1.0, 1e-3, 12.5):
            weights = None if weight is None else np.full(40, weight)
            model = L0RegressorCV(random_state=0).fit(X, y, sample_weight=weights)
            if not model.ridge_:
                assert evidence(model.path_, 40) == pytest.approx(fall, rel=1e-6, abs=1e-8)
            assert fall > LEAST_EVIDENCE or model.n_nonzero_ == 0
        found.append((fall > LEAST_EVIDENCE, model.n_nonzero_ > 0))
    assert len({fall for fall, _ in found}) == 2 and (True, True) in found


def test_whole_weights_count_samples():
    """So that they choose what repeated rows choose."""
    assert count_samples(3, None) == 3.0 and count_samples(3, np.array([2.0, 0.0, 5.0])) == 7.0
    assert count_samples(3, np.array([0.5, 1.0, 2.0])) == 3.0
    rng = np.random.default_rng(1)
    for _ in range(5):
        X, weights = rng.standard_normal((30, 4)), rng.integers(0, 4, 30)
        y = 0.5 * X[:, 1] + rng.standard_normal(30)
        model = L0RegressorCV(3, random_state=0).fit(X, y, sample_weight=weights)
        rows = np.repeat(np.arange(30), weights)
        again = L0RegressorCV(3, random_state=0).fit(X[rows], y[rows])
        found = [
            evidence(model.path_, count_samples(30, weights.astype(float))),
            evidence(again.path_, rows.size),
        ]
        if not (model.ridge_ or again.ridge_):
            assert found[0] == pytest.approx(found[1])


def test_counts_that_vary_more_than_poisson_are_judged_by_the_folds():
    """There EBIC would take chance for a signal."""
    n_chosen, n_evident = 0, 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((80, 4)), rng.negative_binomial(0.3, 0.01, 80).astype(float)
        model = L0RegressorCV(3, loss="poisson", random_state=0).fit(X, y)
        n_evident += evidence(model.path_, 80) > LEAST_EVIDENCE
        n_chosen += model.n_nonzero_ > 0
    assert n_evident >= 5 and n_chosen <= 1


SLOW = [pytest.param(shape, marks=pytest.mark.slow) for shape in ((60, 20), (40, 80))]


@pytest.mark.parametrize("shape", [(200, 8), *SLOW], ids=str)
def test_nothing_is_chosen_of_noise(shape):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
        assert L0RegressorCV(8, random_state=0).fit(X, y).n_nonzero_ == 0
    assert L0ClassifierCV(3, random_state=0).fit(X, y > 0.0).n_nonzero_ == 0


def best_subset(X, y, k):
    def loss(subset):
        A = np.column_stack([np.ones(len(y)), X[:, subset]])
        return np.sum((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)

    return min((list(s) for s in combinations(range(X.shape[1]), k)), key=loss)


def scores_by_hand(X, y, ridges):
    """Minus the mean losses of the best subsets of every fold, with each ridge, (F, L, p)."""
    scores = np.empty((5, len(ridges), X.shape[1] + 1))
    for i, (train, test) in enumerate(KFold(5, shuffle=True, random_state=seed_of(0)).split(X)):
        scaler = StandardScaler().fit(X[train])
        A, B = scaler.transform(X[train]), scaler.transform(X[test])
        for k in range(X.shape[1] + 1):
            subset = best_subset(A, y[train], k)
            for j, ridge in enumerate(ridges):
                predicted = np.full(len(test), y[train].mean())
                if k:
                    model = Ridge(alpha=max(ridge * len(train), 1e-10))
                    predicted = model.fit(A[:, subset], y[train]).predict(B[:, subset])
                scores[i, j, k] = -0.5 * np.mean((y[test] - predicted) ** 2)
    return scores


@pytest.mark.parametrize("seed", range(3))
def test_the_folds_compare_ridges_on_their_best_subsets(seed):
    """Against enumeration of all subsets and scikit-learn's ridge regression."""
    X, y = data(seed=seed)
    X = X * [1.0, 30.0, 0.01, 5.0, 1e3]
    model = L0RegressorCV(random_state=0).fit(X, y)
    scores = scores_by_hand(X, y, (0.0, *RIDGES))
    values = [ebic_by_hand(X, y, k) for k in range(6)]
    has_signal = values[0] - min(values) > LEAST_EVIDENCE
    ridge, point = chosen_by_hand(scores, np.arange(6)) if has_signal else (0, 0)
    value = (0.0, *RIDGES)[ridge] * len(y)
    assert read_ridge(model.ridge_) == (pytest.approx(value, rel=1e-3), value > 0.0)
    assert model.best_index_ == point
    np.testing.assert_allclose(model.cv_scores_, scores[:, ridge], rtol=1e-6)
    # the model is that of the chosen size and ridge
    plain = L0Regressor(point, ridge=model.ridge_, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-8)
    assert model.objective_ == pytest.approx(plain.objective_)


def test_a_ridge_that_is_given_stays():
    X, y = data()
    for ridge in (0.0, 2.0, "standardized:3.0"):
        model = L0RegressorCV(ridge=ridge, random_state=0).fit(X, y)
        assert model.ridge_ == ridge
    for rule in ("one_se", "min", "bic"):
        assert L0RegressorCV(rule=rule, random_state=0).fit(X, y).ridge_ == 0.0
    assert L0RegressorCV(loss="huber", random_state=0).fit(X, y).ridge_ == 0.0
