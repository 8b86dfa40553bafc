"""Tall data: the triangular factor gives what all rows give."""

import dataclasses
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit
from test_centring import centre, least_squares

import blockl0
from blockl0 import (
    BestSubsetSelector,
    L0Regressor,
    L0RegressorCV,
    certify,
    l0_path,
    solve,
    verify,
)
from blockl0.estimators import folds
from blockl0.problem import factors
from blockl0.problem.factors import Factor, Triangle, factor_parts, factor_rows, merged, reduced
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.run import Run

EPSILON = np.finfo(float).eps


def tall(m=1500, n=9, seed=0, means=0.0):
    """Correlated columns of many sizes, and a target of five of them."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-3, 3, n)
    Z = rng.standard_normal((m, n)) + rng.standard_normal((m, 1))
    y = Z[:, :5] @ [3.0, -2.0, 1.0, 0.5, 0.25] + 2.0 * rng.standard_normal(m) + 7.0
    return Z * sizes + means * np.arange(n), y, rng


@pytest.fixture
def rows(monkeypatch):
    """Search all rows; `rows(True)` goes back to the factor."""

    def switch(is_reduced=False):
        monkeypatch.setattr(factors, "LEAST_ROWS", 1000 if is_reduced else 10**9)

    return switch


# the factor --------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [[1500], [1, 3, 8, 1488], [700, 800], [5] * 300])
def test_a_factor_is_that_of_all_rows_however_they_come(sizes):
    X, y, _ = tall()
    A = np.column_stack([X, y])
    triangle = Triangle(10)
    for part in np.split(A, np.cumsum(sizes)[:-1]):
        triangle.add(np.array(part, order="F"))
    assert np.array_equal(triangle.R, np.triu(triangle.R))
    lengths = np.linalg.norm(A, axis=0)
    G = triangle.R.T @ triangle.R
    assert np.abs(G - A.T @ A).max() <= 1e-13 * np.outer(lengths, lengths).max()
    assert np.abs((G - A.T @ A) / np.outer(lengths, lengths)).max() <= 1e-13


def test_factors_merge_in_any_order():
    X, y, rng = tall()
    A = np.column_stack([X, y])
    whole, lengths = A.T @ A, np.linalg.norm(A, axis=0)
    for _ in range(5):
        label, parts = rng.integers(4, size=len(A)), []
        for i in rng.permutation(4):
            part = Triangle(10)
            part.add(np.array(A[label == i], order="F"))
            parts.append(part)
        first, *others = parts
        for other in others:
            first.merge(other)
        difference = first.R.T @ first.R - whole
        assert np.abs(difference / np.outer(lengths, lengths)).max() <= 1e-13
    # what was merged is as before
    again = Triangle(10)
    again.merge(others[-1])
    assert np.allclose(np.abs(again.R), np.abs(others[-1].R), rtol=1e-10, atol=1e-8 * lengths)


def test_a_column_of_zeros_stays_one():
    X, y, _ = tall()
    X[:, [2, 6]] = 0.0
    problem = as_problem(X, y, n_nonzero_coefs=3)
    small = reduced(problem)
    assert small.n_samples == 10
    assert not small.design.columns([2, 6]).any()


# when it is used ---------------------------------------------------------------------------------


def test_only_tall_problems_with_the_squared_loss_are_reduced():
    X, y, rng = tall()
    as_before = [
        as_problem(X[:999], y[:999], alpha=1.0),
        as_problem(X, np.abs(y), alpha=1.0, loss="poisson"),
        as_problem(X, y, alpha=1.0, loss="huber"),
        as_problem(rng.standard_normal((1100, 290)), y[:1100], alpha=1.0),
        as_problem(rng.standard_normal((1300, 301)), y[:1300], alpha=1.0),
        as_problem(sp.csc_array(rng.standard_normal((1300, 101))), y[:1300], alpha=1.0),
    ]
    assert all(reduced(problem) is problem for problem in as_before)


def test_a_factor_is_made_once_for_prices_and_budgets_and_anew_for_other_data(monkeypatch):
    X, y, _ = tall()
    made = []

    def counted(*given, **options):
        made.append(1)
        return factor_rows(*given, **options)

    monkeypatch.setattr(factors, "factor_rows", counted)
    problem = as_problem(X, y, n_nonzero_coefs=3)
    small = reduced(problem)
    other = reduced(dataclasses.replace(problem, sparsity=problem.sparsity._replace(budget=5)))
    assert other.design is small.design
    assert other.sparsity.budget == 5
    assert len(made) == 1
    w = np.ones(9)
    for changed in ({"y": y + 1.0}, {"sample_weight": np.arange(1500.0)}):
        whole = dataclasses.replace(problem, **changed)
        assert reduced(whole).smooth(w) == pytest.approx(whole.smooth(w), rel=1e-13)
    assert len(made) == 3


@pytest.mark.parametrize("method", ["refit", "exact"])
def test_ctrl_c_while_the_factor_is_made_returns_a_point(monkeypatch, method):
    X, y = np.eye(1200, 30) + 1.0, np.arange(1200.0)
    start = np.zeros(30)
    start[2] = 1.0

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Triangle, "add", interrupted)
    found = blockl0.solve(X, y, n_nonzero_coefs=2, init=start, method=method)
    assert found.status is Status.INTERRUPTED
    rest = y - X @ found.coef
    assert found.objective == pytest.approx(0.5 * rest @ rest)
    path = blockl0.l0_path(X, y, n_nonzero_coefs=[1, 2])
    assert path.results[-1].status is Status.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        reduced(as_problem(X, y, n_nonzero_coefs=2))


def test_where_time_is_up_there_is_no_factor():
    X, y, _ = tall()
    problem = as_problem(X, y, n_nonzero_coefs=3)
    assert reduced(problem, Run(problem, 0.0)) is problem
    result = solve(X, y, n_nonzero_coefs=3, time_limit=1e-9)
    assert result.status is blockl0.Status.TIME_LIMIT


@pytest.mark.parametrize("kind", ["plain", "weights", "sparse", "ridge", "intercept", "far"])
def test_the_smooth_part_is_the_same_for_every_w(kind):
    X, y, rng = tall(means=1e7 if kind == "far" else 0.0)
    weights = rng.integers(0, 3, 1500) * 0.37 if kind == "weights" else None
    X = sp.csc_array(X) if kind == "sparse" else X
    problem = as_problem(
        X, y, alpha=1.0, ridge=3.0 if kind == "ridge" else 0.0, sample_weight=weights
    )
    if kind in ("intercept", "far"):
        problem = apply(problem).problem
    small = reduced(problem)
    assert small.n_samples == 10
    for _ in range(20):
        w = rng.standard_normal(9) / np.sqrt(problem.design.sq_norms())
        w[rng.uniform(size=9) < 0.5] = 0.0
        assert small.objective(w) == pytest.approx(problem.objective(w), rel=1e-13)


# searches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 4}, {"alpha": 30.0}, {"n_nonzero_coefs": 0}])
@pytest.mark.parametrize("method", ["refit", "exact"])
@pytest.mark.parametrize("kind", ["sparse", "weights", "keep", "ridge", "scaled"])
def test_solve_finds_what_it_finds_on_all_rows(rows, kind, form, method):
    X, y, rng = tall(seed=1)
    options = {"method": method, "random_state": 0, **form}
    if kind == "sparse":
        X = sp.csc_array(X)
    elif kind == "weights":
        options["sample_weight"] = rng.integers(0, 3, 1500) * 0.37
    elif kind == "keep" and form.get("n_nonzero_coefs") != 0:
        options["keep"] = [7]
    elif kind == "ridge":
        options["ridge"] = 50.0
    elif kind == "scaled":
        X[:, 3] *= 1e-200
        X[:, 4] *= 1e100
    here = solve(X, y, **options)
    rows()
    there = solve(X, y, **options)
    assert np.array_equal(here.support, there.support)
    assert here.objective == pytest.approx(there.objective, rel=1e-13)
    assert np.allclose(here.coef, there.coef, rtol=1e-11, atol=0.0)
    assert here.status is there.status
    assert (here.lower_bound, here.gap) == (here.objective, 0.0)


def test_a_path_is_the_one_of_all_rows(rows):
    X, y, _ = tall(seed=2)
    here = l0_path(X, y, n_nonzero_coefs=9, random_state=0)
    rows()
    there = l0_path(X, y, n_nonzero_coefs=9, random_state=0)
    assert [s.tolist() for s in here.supports] == [s.tolist() for s in there.supports]
    assert np.allclose(here.objective, there.objective, rtol=1e-13, atol=0.0)
    assert np.allclose(here.losses, there.losses, rtol=1e-13, atol=0.0)
    assert here.n_samples == there.n_samples == 1500
    problem = as_problem(X, y, alpha=0.0)
    # objectives are those of the data, to the last digit
    assert all(r.objective == problem.objective(r.coef) for r in here)


def test_dependent_and_flat_columns(rows):
    X, y, _ = tall(seed=3)
    X[:, 5] = X[:, 0]
    X[:, 6] = X[:, 1] - 2.0 * X[:, 2]
    X[:, 7], X[:, 8] = 5.0, 1e7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here = L0Regressor(9, random_state=0).fit(X, y)
        rows()
        there = L0Regressor(9, random_state=0).fit(X, y)
    assert here.objective_ == pytest.approx(there.objective_, rel=1e-12)
    assert here.n_nonzero_ == there.n_nonzero_ == 5
    assert not here.coef_[[7, 8]].any()


def test_certificates_are_those_of_all_rows(rows):
    X, y, _ = tall(seed=4)
    best = solve(X, y, n_nonzero_coefs=3, random_state=0).coef
    worse = solve(X[:, 3:], y, n_nonzero_coefs=3, random_state=0).coef
    for coef in (best, np.concatenate([np.zeros(3), worse])):
        for level in ("L", 1, 9):
            rows(True)
            here = certify(X, y, coef, n_nonzero_coefs=3, level=level)
            rows()
            there = certify(X, y, coef, n_nonzero_coefs=3, level=level)
            assert (here.holds, here.complete) == (there.holds, there.complete)
            assert here.objective == there.objective
            if not here.holds:
                found = as_problem(X, y, n_nonzero_coefs=3).objective(here.better_coef)
                assert here.better_objective == pytest.approx(found, rel=1e-14)


@pytest.mark.parametrize("ridge", [0.0, 20.0])
def test_proofs_hold_for_the_data_as_they_were_given(tmp_path, ridge):
    X, y, _ = tall(seed=5)
    weights = np.arange(1500) % 4.0
    file = tmp_path / "proof.npz"
    result = solve(
        X, y, n_nonzero_coefs=3, ridge=ridge, sample_weight=weights, method="exact", proof=file
    )
    found = verify(file, X, y, weights)
    assert found.objective == pytest.approx(result.objective, rel=1e-12)
    assert found.gap <= 1e-8
    with pytest.raises(blockl0.ProofError):
        verify(file, X, y + 1.0, weights)


def test_callbacks_and_seeds():
    X, y, _ = tall(seed=6)
    seen = []
    result = solve(X, y, n_nonzero_coefs=3, random_state=0, callback=seen.append)
    again = solve(X, y, n_nonzero_coefs=3, random_state=0)
    assert np.array_equal(result.coef, again.coef)
    assert seen[-1].objective == pytest.approx(result.objective, rel=1e-13)
    assert np.allclose(seen[-1].coef, result.coef, rtol=1e-12, atol=0.0)
    stopped = solve(X, y, n_nonzero_coefs=3, random_state=0, callback=lambda progress: True)
    assert stopped.status is blockl0.Status.STOPPED


@pytest.mark.parametrize("means", [0.0, 1e4, 1e7])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_coefficients_are_as_accurate_as_those_of_long_doubles(means, is_sparse):
    X, y, rng = tall(seed=7, means=means)
    X /= np.ptp(X, axis=0)
    weights = rng.integers(1, 4, 1500).astype(float)
    model = L0Regressor(5, random_state=0).fit(sp.csc_array(X) if is_sparse else X, y, weights)
    root = np.sqrt(weights.astype(np.longdouble))
    A = centre(X[:, model.support_], weights) * root[:, None]
    exact = least_squares(A, centre(y[:, None], weights)[:, 0] * root)[0]
    assert np.allclose(model.coef_[model.support_], exact.astype(float), rtol=1e-12, atol=0.0)


def test_float32_and_integers_are_reduced_as_their_numbers():
    X, y, _ = tall(seed=8)
    for given in (X.astype(np.float32), np.round(X).astype(np.int32)):
        here = solve(given, y, n_nonzero_coefs=3, random_state=0)
        there = solve(given.astype(np.float64), y, n_nonzero_coefs=3, random_state=0)
        assert np.array_equal(here.coef, there.coef)


def test_a_selector_chooses_as_on_all_rows(rows):
    X, y, _ = tall(seed=9)
    here = BestSubsetSelector(4, random_state=0).fit(X, y).support_
    rows()
    assert np.array_equal(here, BestSubsetSelector(4, random_state=0).fit(X, y).support_)


# parts of the rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("means", [0.0, 1e7])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_merged_factors_make_the_problem_of_their_rows(fit_intercept, means):
    X, y, rng = tall(seed=10, means=means)
    X /= np.ptp(X, axis=0)
    weights, label = rng.integers(0, 3, 1500) * 0.37, rng.integers(3, size=1500)
    X[label != 1, 8] = 4.0  # constant, and not in the part that is left out
    X[:, 7] = 0.0
    parts = factor_parts(as_problem(X, y, alpha=1.0).design, y, weights, label, 3)
    there = merged([parts[2], parts[0]])
    used = (label != 1) & (weights > 0.0)
    given = {"n_nonzero_coefs": 4, "ridge": 0.3, "keep": [2]}
    here = there.prepared(fit_intercept, **given)
    whole = as_problem(X[used], y[used], sample_weight=weights[used], **given)
    data = apply(whole, fit_intercept)
    assert here.problem.n_samples <= 11
    assert there.n_rows == np.count_nonzero(used)
    assert there.total == pytest.approx(weights[used].sum(), rel=1e-13)
    w = rng.standard_normal(9) * (rng.uniform(size=9) < 0.6)
    assert here.problem.smooth(w) == pytest.approx(data.problem.smooth(w), rel=1e-12)
    (coef, b), (same, b_data) = here.invert(w), data.invert(w)
    assert np.array_equal(coef, same)
    # to the digits of the target, not to those of means times coefficients
    assert b == pytest.approx(b_data, rel=1e-14, abs=1e-13)
    if fit_intercept:
        assert here.centred.is_flat.tolist() == data.centred.is_flat.tolist()
        assert here.centred.is_constant.tolist() == data.centred.is_constant.tolist()
    r = y[used] - X[used] @ coef - b
    loss = 0.5 * np.average(r**2, weights=weights[used])
    digits = EPSILON * np.abs(X[used] * coef).max() * np.sqrt(loss)
    assert there.mean_loss(coef, b) == pytest.approx(loss, rel=1e-12, abs=20.0 * digits)
    with pytest.raises(ValueError, match="same `shift`"):
        there.merge(Factor(np.zeros(10)))


SPLITTERS = {
    "folds": KFold(4, shuffle=True, random_state=0),
    "in turn": TimeSeriesSplit(3),
    "drawn": ShuffleSplit(3, random_state=0),
    "a hole": PredefinedSplit(np.arange(1500) % 4 - 1),
    "twice": [(np.arange(1200).repeat(2), np.arange(1200, 1500)), (np.arange(700), np.arange(700))],
}


FOLD_CASES = [
    ("folds", "weights"), ("folds", "far"), ("in turn", "weights"), ("drawn", "sparse"),
    ("a hole", "scorer"), ("a hole", "no intercept"), ("twice", "plain"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), FOLD_CASES)
def test_scores_of_folds_are_those_of_their_rows(monkeypatch, name, kind):
    X, y, rng = tall(seed=11, means=1e7 if kind == "far" else 0.0)
    X = X / np.ptp(X, axis=0)
    weights = rng.integers(0, 3, 1500) * 0.37 if kind == "weights" else None
    X = sp.csc_array(X) if kind == "sparse" else X
    scoring = "r2" if kind == "scorer" else None

    def fit():
        model = L0RegressorCV(
            5, cv=SPLITTERS[name], scoring=scoring, random_state=0,
            fit_intercept=kind != "no intercept",
        )  # fmt: skip
        return model.fit(X, y, weights)

    made = []

    def counted(*given):
        made.append(len(merged(*given).shift))
        return merged(*given)

    monkeypatch.setattr(folds, "merged", counted)
    here = fit()
    monkeypatch.setattr(factors, "LEAST_ROWS", 10**9)
    n_made = len(made)
    there = fit()
    # two for each fold, where rows are told apart by few labels
    assert n_made == len(made) == (0 if name == "twice" else 2 * here.cv_scores_.shape[0])
    # predictions from columns at 1e10 spreads have six digits; those of factors do not
    digits = 1e-6 if kind == "far" else 1e-12
    assert np.allclose(here.cv_scores_, there.cv_scores_, rtol=digits, atol=0.0)
    assert np.array_equal(here.support_, there.support_)
    assert here.intercept_ == pytest.approx(there.intercept_, rel=1e-12)


def test_folds_without_rows_of_weight_are_left_out_as_ever(rows):
    X, y, _ = tall(seed=12)
    weights = np.where(np.arange(1500) < 300, 0.0, 1.0)
    scores = []
    for is_reduced in (True, False):
        rows(is_reduced)
        with pytest.warns(UserWarning, match="1 of 5 folds"):
            scores.append(
                L0RegressorCV(4, cv=KFold(5), random_state=0).fit(X, y, weights).cv_scores_
            )
    assert np.isnan(scores[0][0]).all()
    assert np.allclose(*scores, rtol=1e-12, equal_nan=True)


@pytest.mark.parametrize("apart", [1e-2, 1e-5, 1e-7])
def test_refined_fits_are_as_accurate_as_fits_of_all_rows(apart):
    support, errors = np.array([0, 1, 3]), []
    # the error of one fit is chance, by a factor of ten and more; the largest of several is not
    for seed in range(13, 18):
        X, y, rng = tall(seed=seed)
        X[:, 1] = X[:, 0] + apart * np.linalg.norm(X[:, 0]) * rng.standard_normal(1500) / 40.0
        y = y + X[:, 1] / np.linalg.norm(X[:, 1] - X[:, 0])
        problem = as_problem(X, y, n_nonzero_coefs=3, ridge=0.0)
        exact = least_squares(X[:, support].astype(np.longdouble), y.astype(np.longdouble))[0]
        of_rows = make_fits(problem).coef_on(support)
        found = factors.refined(problem, make_fits(reduced(problem)).coef_on(support))
        errors.append([np.abs(w[support] / exact - 1.0).max() for w in (found, of_rows)])
    worst, worst_of_rows = np.max(errors, axis=0)
    assert worst <= 4.0 * worst_of_rows + 1e-14
    # without a factor there is nothing to refine
    other = as_problem(X, y, n_nonzero_coefs=3)
    assert factors.refined(other, of_rows) is of_rows


@pytest.mark.parametrize("ridge", [0.0, 1e-9])
@pytest.mark.parametrize("weighted", [False, True])
def test_close_columns_are_refined_without_a_factorization_of_all_rows(
    ridge, weighted, monkeypatch
):
    """Raw numbers far from zero are close to each other; a step from orthogonal rows is enough."""
    X, _, rng = tall(seed=14)
    X[:, :3] = 1e7 + 3.0 * X[:, :3] / X[:, :3].std(axis=0)
    y = X[:, 0] - X[:, 1] + rng.standard_normal(1500)
    weights = rng.uniform(0.5, 2.0, 1500) if weighted else None
    problem = as_problem(X, y, n_nonzero_coefs=3, ridge=ridge, sample_weight=weights)
    support = np.arange(3)
    root = np.ones(1500) if weights is None else np.sqrt(weights)
    A = np.vstack([root[:, None] * X[:, support], np.sqrt(ridge) * np.eye(3)])
    b = np.append(root * y, np.zeros(3))
    exact = least_squares(A.astype(np.longdouble), b.astype(np.longdouble))[0]
    of_rows = make_fits(problem).coef_on(support)
    start = make_fits(reduced(problem)).coef_on(support)
    heights = []
    qr = np.linalg.qr
    monkeypatch.setattr(
        np.linalg, "qr", lambda a, *rest, **kw: heights.append(a.shape[0]) or qr(a, *rest, **kw)
    )
    found = factors.refined(problem, start)
    assert heights and max(heights) < 100
    worst, worst_of_rows = (float(np.abs(w[support] / exact - 1.0).max()) for w in (found, of_rows))
    assert worst <= 4.0 * worst_of_rows + 1e-14
