"""Symmetries and monotonicities of the problem, which the proven optimum must have."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import blockl0
from blockl0 import Status

SEEDS = st.integers(0, 10_000)
FORMS = st.sampled_from(
    [{"n_nonzero_coefs": 3}, {"alpha": 0.5}, {"n_nonzero_coefs": 4, "alpha": 0.1}]
)


def make(seed):
    """A random problem of random shape; its optimum is unique with probability one."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(8, 25)), int(rng.integers(4, 13))
    X = rng.standard_normal((m, n)) + rng.uniform(0, 2) * rng.standard_normal((m, 1))
    return rng, X, X[:, :3].sum(axis=1) + rng.uniform(0.1, 2) * rng.standard_normal(m)


def exact(X, y, **options):
    result = blockl0.solve(X, y, method="exact", **options)
    assert result.status is Status.OPTIMAL
    return result


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_permuting_columns_permutes_the_answer(seed, form):
    rng, X, y = make(seed)
    order = rng.permutation(X.shape[1])
    here, there = exact(X, y, **form), exact(X[:, order], y, **form)
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert sorted(order[there.support]) == here.support.tolist()
    np.testing.assert_allclose(there.coef, here.coef[order], atol=1e-8)


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_permuting_rows_changes_nothing(seed, form):
    rng, X, y = make(seed)
    order = rng.permutation(len(y))
    here, there = exact(X, y, **form), exact(X[order], y[order], **form)
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert np.array_equal(there.support, here.support)


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_flipping_and_rescaling_columns_rescales_the_coefficients(seed, form):
    rng, X, y = make(seed)
    scale = rng.choice([-1.0, 1.0], X.shape[1]) * 10.0 ** rng.uniform(-4, 4, X.shape[1])
    here, there = exact(X, y, **form), exact(X * scale, y, **form)
    assert there.objective == pytest.approx(here.objective, rel=1e-8)
    assert np.array_equal(there.support, here.support)
    np.testing.assert_allclose(there.coef * scale, here.coef, atol=1e-7)


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_scaling_y_scales_the_answer(seed, form):
    _, X, y = make(seed)
    scaled = {**form, "alpha": 9.0 * form["alpha"]} if "alpha" in form else form
    here, there = exact(X, y, **form), exact(X, -3.0 * y, **scaled)
    assert there.objective == pytest.approx(9.0 * here.objective, rel=1e-9)
    np.testing.assert_allclose(there.coef, -3.0 * here.coef, atol=1e-8)


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_a_zero_column_changes_nothing_and_is_not_selected(seed, form):
    rng, X, y = make(seed)
    place = int(rng.integers(X.shape[1] + 1))
    here, there = exact(X, y, **form), exact(np.insert(X, place, 0.0, axis=1), y, **form)
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert place not in there.support
    np.testing.assert_allclose(np.delete(there.coef, place), here.coef, atol=1e-8)


@settings(max_examples=40)
@given(SEEDS, FORMS)
def test_a_duplicated_column_changes_nothing(seed, form):
    rng, X, y = make(seed)
    n = X.shape[1]
    twin = int(rng.integers(n))
    here, there = exact(X, y, **form), exact(np.column_stack([X, -2 * X[:, twin]]), y, **form)
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    folded = set(np.where(there.support == n, twin, there.support))
    assert folded == set(here.support.tolist())
    # the two are never selected together
    assert there.n_nonzero == here.n_nonzero


@settings(max_examples=20)
@given(SEEDS, st.sampled_from([0.0, 0.2]))
def test_a_larger_budget_is_never_worse(seed, alpha):
    _, X, y = make(seed)
    values = [exact(X, y, n_nonzero_coefs=s, alpha=alpha).objective for s in range(X.shape[1] + 1)]
    assert values[0] == pytest.approx(0.5 * y @ y)
    assert np.all(np.diff(values) <= 1e-10 * values[0])


@settings(max_examples=20)
@given(SEEDS)
def test_a_higher_price_never_buys_more(seed):
    _, X, y = make(seed)
    results = [exact(X, y, alpha=alpha) for alpha in np.geomspace(1e-3, 1e3, 15)]
    sizes = [result.n_nonzero for result in results]
    assert sizes == sorted(sizes, reverse=True)
    values = [result.objective for result in results]
    assert np.all(np.diff(values) >= -1e-10 * values[-1])
    # what a price selects is the best of its size (supports may tie when the fit is perfect)
    for result in results[::4]:
        best = exact(X, y, n_nonzero_coefs=result.n_nonzero)
        own = 0.5 * np.sum((y - X @ result.coef) ** 2)
        assert own == pytest.approx(best.objective, rel=1e-8, abs=1e-10 * (y @ y))


@settings(max_examples=20)
@given(SEEDS, FORMS)
def test_the_heuristic_never_beats_the_optimum(seed, form):
    _, X, y = make(seed)
    best = exact(X, y, **form).objective
    found = blockl0.solve(X, y, method="dec", working_set="R4G2", random_state=seed, **form)
    assert found.objective >= best * (1 - 1e-10)


@settings(max_examples=15)
@given(SEEDS)
def test_warm_started_budgets_are_monotone(seed):
    _, X, y = make(seed)
    w, before = np.zeros(X.shape[1]), 0.5 * y @ y
    for s in range(1, X.shape[1] + 1):
        result = blockl0.solve(X, y, method="dec", n_nonzero_coefs=s, init=w, random_state=0)
        assert result.objective <= before * (1 + 1e-12)
        w, before = result.coef, result.objective
