"""Odd but legal input: every method answers, and the answer is the obvious one."""

from __future__ import annotations

import logging
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import Status
from linear_data import Linear


@pytest.fixture(params=["dec", "exact"])
def method(request):
    return request.param


make = Linear(30, 12, {0: 3.0, 1: -2.0, 2: 1.5}, noise=0.5)


def solve(X, y, method, **options):
    result = blockl0.solve(X, y, method=method, random_state=0, **options)
    assert np.isfinite(result.coef).all() and np.isfinite(result.objective)
    assert result.n_nonzero <= options.get("n_nonzero_coefs", result.coef.size)
    return result


# -- degenerate data -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 3}, {"alpha": 0.5}])
def test_zero_columns_are_not_selected(method, form):
    X, y = make()
    X[:, [3, 5, 11]] = 0.0
    result = solve(X, y, method, **form)
    assert result.support.tolist() == [0, 1, 2]


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 2}, {"alpha": 0.5}])
def test_nothing_but_zero_columns(method, form):
    result = solve(np.zeros((5, 4)), np.arange(5.0), method, **form)
    assert result.objective == pytest.approx(15.0 + form.get("alpha", 0.0) * result.n_nonzero)
    if "alpha" in form:
        assert result.n_nonzero == 0


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 3}, {"alpha": 0.5}])
def test_zero_target(method, form):
    X, y = make()
    result = solve(X, 0.0 * y, method, **form)
    assert result.objective == pytest.approx(0.0, abs=1e-12)
    if "alpha" in form or method == "exact":
        assert result.n_nonzero == 0


def test_constant_target(method):
    X, _ = make()
    result = solve(X, np.full(30, 7.0), method, n_nonzero_coefs=3)
    assert result.objective < 0.5 * 30 * 49
    with_ones = np.column_stack([X, np.ones(30)])
    result = solve(with_ones, np.full(30, 7.0), method, n_nonzero_coefs=1)
    assert result.support.tolist() == [12] and result.coef[12] == pytest.approx(7.0, abs=1e-3)


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 1}, {"alpha": 0.1}])
def test_one_column(method, form):
    X, y = np.arange(1.0, 6.0)[:, None], 2.0 * np.arange(1.0, 6.0)
    result = solve(X, y, method, **form)
    assert result.coef == pytest.approx([2.0], abs=1e-3)
    assert solve(X, y, method, alpha=1e9).n_nonzero == 0


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 1}, {"alpha": 0.1}])
def test_one_row(method, form):
    result = solve(np.array([[1.0, 2.0, -4.0]]), np.array([8.0]), method, **form)
    assert result.n_nonzero == 1
    assert result.objective == pytest.approx(form.get("alpha", 0.0), abs=1e-5)


def test_one_row_and_one_column(method):
    result = solve([[2.0]], [6.0], method, n_nonzero_coefs=1)
    assert result.coef == pytest.approx([3.0], abs=1e-3)


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 3}, {"alpha": 0.5}])
def test_duplicate_columns(method, form):
    X, y = make()
    result = solve(np.hstack([X, X, X]), y, method, **form)
    assert sorted(result.support % 12) == [0, 1, 2]
    single = solve(X, y, method, **form)
    assert result.objective == pytest.approx(single.objective, rel=1e-6)


def test_all_columns_equal(method):
    X = np.repeat(np.arange(1.0, 7.0)[:, None], 5, axis=1)
    result = solve(X, X[:, 0], method, n_nonzero_coefs=3)
    assert result.objective == pytest.approx(0.0, abs=1e-5)
    result = solve(X, X[:, 0], method, alpha=0.1)
    assert result.n_nonzero == 1


def test_a_target_in_the_span_of_few_columns_is_found(method):
    X, _ = make()
    y = X[:, [4, 7]] @ [1.0, -2.0]
    result = solve(X, y, method, n_nonzero_coefs=2)
    assert result.support.tolist() == [4, 7]
    assert result.objective < 1e-6
    # also where updates would round below zero: after a fall like this it is summed afresh
    assert result.history.objective.min() >= 0.0


# -- scales ----------------------------------------------------------------------------------------

SCALES = [1e-12, 1e-6, 1.0, 1e6, 1e12]


@pytest.mark.parametrize("x_scale", SCALES)
@pytest.mark.parametrize("y_scale", SCALES)
def test_answers_scale_with_the_data(method, x_scale, y_scale):
    X, y = make()
    options = {}
    for form in ({"n_nonzero_coefs": 3}, {"alpha": 0.5}, {"n_nonzero_coefs": 5, "alpha": 0.5}):
        scaled = {**form, "alpha": form["alpha"] * y_scale**2} if "alpha" in form else form
        result = solve(x_scale * X, y_scale * y, method, **options, **scaled)
        plain = blockl0.solve(X, y, method="exact", **form)
        assert np.array_equal(result.support, plain.support)
        assert result.objective / y_scale**2 == pytest.approx(plain.objective, rel=1e-5)
        np.testing.assert_allclose(result.coef * x_scale / y_scale, plain.coef, atol=1e-3)


def test_columns_of_wildly_different_scale(method):
    X, y = make()
    scale = np.geomspace(1e-6, 1e6, 12)
    options = {"theta": 0.0} if method == "dec" else {}
    result = solve(X * scale, y, method, n_nonzero_coefs=3, **options)
    assert result.support.tolist() == [0, 1, 2]


# -- kinds of input --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        np.ascontiguousarray, np.asfortranarray, np.ndarray.tolist, sp.csr_matrix, sp.csc_matrix,
        sp.coo_matrix, sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_matrix, sp.dok_array,
        lambda X: X.astype(np.int8), lambda X: X.astype(np.int64), lambda X: X.astype(np.float32),
        lambda X: np.repeat(X, 2, axis=0)[::2], lambda X: sp.csc_array(X.astype(np.int32)),
    ],
)  # fmt: skip
def test_every_kind_of_matrix_gives_the_same_answer(method, convert):
    rng = np.random.default_rng(3)
    X = rng.integers(-3, 4, (25, 10)).astype(float)
    y = rng.integers(-9, 10, 25)
    expected = solve(X, y, method, n_nonzero_coefs=3)
    given = convert(X)
    result = solve(given, y, method, n_nonzero_coefs=3)
    assert np.array_equal(result.support, expected.support)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-7)


def test_boolean_matrix_and_lists(method):
    rng = np.random.default_rng(4)
    X, y = rng.random((20, 8)) < 0.5, rng.integers(0, 5, 20)
    expected = solve(X.astype(float), y.astype(float), method, n_nonzero_coefs=2)
    for given in (X, X.tolist(), sp.csr_array(X)):
        result = solve(given, y.tolist(), method, n_nonzero_coefs=2)
        np.testing.assert_allclose(result.coef, expected.coef, atol=1e-7)


def test_input_is_never_changed(method):
    X, y = make()
    X, weights = np.asfortranarray(X), np.ones(30)
    copies = X.copy(), y.copy(), weights.copy()
    X.flags.writeable = y.flags.writeable = weights.flags.writeable = False
    solve(X, y, method, n_nonzero_coefs=3, sample_weight=weights, keep=[5])
    for given, copy in zip((X, y, weights), copies, strict=True):
        assert np.array_equal(given, copy)


def test_unsorted_and_repeated_sparse_entries(method):
    X, y = make()
    rows, columns = np.nonzero(X)
    order = np.random.default_rng(0).permutation(rows.size)
    halves = X[rows, columns][order] / 2
    sparse = sp.coo_matrix(
        (np.tile(halves, 2), (np.tile(rows[order], 2), np.tile(columns[order], 2))), X.shape
    )
    expected = solve(X, y, method, n_nonzero_coefs=3)
    result = solve(sparse, y, method, n_nonzero_coefs=3)
    np.testing.assert_allclose(result.coef, expected.coef, atol=1e-7)


# -- ends of the sparsity range --------------------------------------------------------------------


def test_budget_zero(method):
    X, y = make()
    for extra in ({}, {"alpha": 1.0}):
        result = solve(X, y, method, n_nonzero_coefs=0, **extra)
        assert not result.coef.any()
        assert result.objective == pytest.approx(0.5 * y @ y)


def test_budget_of_all_columns_is_least_squares(method):
    X, y = make()
    result = solve(X, y, method, n_nonzero_coefs=12)
    expected = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(result.coef, expected, atol=1e-3)


def test_price_zero(method):
    X, y = make()
    free = solve(X, y, method, alpha=0)
    np.testing.assert_allclose(free.coef, np.linalg.lstsq(X, y, rcond=None)[0], atol=1e-3)
    with_budget = solve(X, y, method, alpha=0.0, n_nonzero_coefs=3)
    # to add zero changes no bit
    assert np.array_equal(with_budget.coef, solve(X, y, method, n_nonzero_coefs=3).coef)


@pytest.mark.parametrize("alpha", [1e5, 1e100])
def test_huge_price_selects_nothing(method, alpha):
    X, y = make()
    result = solve(X, y, method, alpha=alpha)
    assert result.n_nonzero == 0
    assert result.objective == pytest.approx(0.5 * y @ y)


def test_huge_ridge(method):
    X, y = make()
    result = solve(X, y, method, n_nonzero_coefs=3, ridge=1e12)
    assert result.objective == pytest.approx(0.5 * y @ y, rel=1e-6)


# -- limits ----------------------------------------------------------------------------------------


def test_interrupt_returns_the_best_point(method):
    X, y = make(60, 120)

    def interrupt(progress):
        if progress.iteration >= 3:
            raise KeyboardInterrupt

    result = solve(X + 5, y, method, n_nonzero_coefs=9, callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert result.objective < 0.5 * y @ y


def test_time_limit_returns_the_best_point(method):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 120)), rng.standard_normal(60)
    options = {"tol": 0.0, "window": 10**6, "max_iter": 10**6} if method == "dec" else {}
    solve(X, y, method, n_nonzero_coefs=8, time_limit=0.2, **options)  # compiles all of it
    start, cpu = time.perf_counter(), time.thread_time()
    result = solve(X, y, method, n_nonzero_coefs=8, time_limit=0.2, **options)
    assert result.status is Status.TIME_LIMIT
    assert 0.2 <= result.seconds <= time.perf_counter() - start
    assert time.thread_time() - cpu < 1.0
    assert result.objective < 0.5 * y @ y


def test_exceptions_of_the_callback_come_through(method):
    def fail(progress):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        blockl0.solve(*make(), n_nonzero_coefs=2, method=method, callback=fail)


def test_verbose_logs_and_silence_is_silent(method, caplog, capsys):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 120)), rng.standard_normal(60)
    options = {"tol": 0.0, "window": 10**6, "max_iter": 10**6} if method == "dec" else {}
    options |= {"n_nonzero_coefs": 8, "time_limit": 1.2}
    if method == "exact":
        options["ridge"] = 0.01  # without one there is no bound, and the search soon ends
    with caplog.at_level(logging.INFO, logger="blockl0"):
        solve(X, y, method, verbose=1, **options)
        assert any("objective" in record.getMessage() for record in caplog.records)
        assert {record.name for record in caplog.records} == {"blockl0"}
        caplog.clear()
        solve(X, y, method, n_nonzero_coefs=8, time_limit=0.1)
        assert not caplog.records
    assert capsys.readouterr() == ("", "")


def test_import_is_light():
    code = (
        "import sys, blockl0; "
        "print([name for name in ('matplotlib', 'pandas', 'click', 'dask') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
