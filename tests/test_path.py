"""Paths: monotone, consistent with single calls, warm from both sides, and cut short cleanly."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import Status, l0_path, solve
from blockl0.search.annealing import LONG
from grid import EACH_TARGET, OTHERS, quick_first
from linear_data import Linear

COEF = dict(enumerate([2.0, -1.5, 1.0, 1.0, -0.7, 0.5]))
make = Linear(40, 60, COEF, noise=2.0, common=0.7)


@pytest.mark.parametrize("seed", quick_first(range(3), 1))
def test_a_path_is_what_solve_gives_or_strictly_better(seed):
    X, y = make(seed=seed)
    path = l0_path(X, y, n_nonzero_coefs=12, random_state=0)
    assert path.n_nonzero_coefs.tolist() == list(range(1, 13))
    for k, result in enumerate(path, start=1):
        alone = solve(X, y, n_nonzero_coefs=k, effort="fast", random_state=0)
        if result.objective >= alone.objective * (1 - 1e-9):
            assert np.array_equal(result.support, alone.support)
            assert result.objective == pytest.approx(alone.objective, rel=1e-10)
        if k % 4 == 0:
            thorough = solve(X, y, n_nonzero_coefs=k, effort="thorough", random_state=0)
            assert thorough.objective <= result.objective * (1 + 1e-9)


@pytest.mark.parametrize("options", [{}, {"ridge": 1.0}, {"alpha": 0.5}, {"keep": [7, 9]}])
def test_more_room_never_raises_the_objective(options):
    X, y = make(30, 50, seed=1)
    path = l0_path(X, y, n_nonzero_coefs=25, random_state=0, **options)
    # without a tolerance: where the next is not lower, it is replaced by the one before
    assert all(b <= a for a, b in pairwise(path.objective))
    assert np.all(path.n_nonzero <= path.n_nonzero_coefs)
    if "keep" in options:
        assert path.n_nonzero_coefs[0] == 2
        assert all({7, 9} <= set(support.tolist()) for support in path.supports)


def test_every_point_is_certified_on_its_own():
    X, y = make()
    for k, result in enumerate(l0_path(X, y, n_nonzero_coefs=8, random_state=0), start=1):
        check = blockl0.certify(X, y, result.coef, n_nonzero_coefs=k)
        assert result.certificate.holds and check.holds
        w = result.coef
        assert result.objective == pytest.approx(0.5 * np.sum((y - X @ w) ** 2), rel=1e-12)


def test_a_grid_of_prices():
    X, y = make()
    alphas = [0.5, 30.0, 4.0, 4.0, 1e6]
    path = l0_path(X, y, alphas=alphas, random_state=0)
    assert path.alphas.tolist() == [1e6, 30.0, 4.0, 0.5]
    assert path.n_nonzero[0] == 0 and np.all(np.diff(path.n_nonzero) >= 0)
    assert all(b <= a for a, b in pairwise(path.objective))
    for alpha, result in zip(path.alphas, path, strict=True):
        alone = solve(X, y, alpha=alpha, effort="fast", random_state=0)
        assert result.objective <= alone.objective * (1 + 1e-9)


def test_neighbours_help_where_single_starts_fail():
    better = 0
    for seed in range(2):
        X, y = make(60, 300, seed, noise=6.0)
        path = l0_path(X, y, n_nonzero_coefs=25, random_state=0)
        alone = [
            solve(X, y, n_nonzero_coefs=k, effort="fast", random_state=0).objective
            for k in range(1, 26)
        ]
        assert np.all(path.objective <= np.array(alone) * (1 + 1e-9))
        better += np.count_nonzero(path.objective < np.array(alone) * (1 - 1e-6))
    assert better > 0


@pytest.mark.parametrize("loss", OTHERS)
def test_other_losses(loss):
    X, y = make(80, 25, noise=3.0, loss=loss)
    path = l0_path(X, y, n_nonzero_coefs=5, loss=loss, ridge=0.1, random_state=0)
    assert all(b <= a for a, b in pairwise(path.objective))
    alone = solve(X, y, n_nonzero_coefs=3, loss=loss, ridge=0.1, effort="fast", random_state=0)
    assert path.at(3).objective <= alone.objective * (1 + 1e-7)


def test_sparse_and_float32_input():
    X, y = make(60, 40)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense = l0_path(X, y, n_nonzero_coefs=6, random_state=0)
    sparse = l0_path(sp.csr_array(X), y, n_nonzero_coefs=6, random_state=0)
    np.testing.assert_allclose(dense.objective, sparse.objective, rtol=1e-9)
    single = l0_path(X.astype(np.float32), y, n_nonzero_coefs=6, random_state=0)
    np.testing.assert_allclose(dense.objective, single.objective, rtol=1e-5)


def test_the_path_as_an_object():
    X, y = make()
    path = l0_path(X, y, n_nonzero_coefs=[2, 5, 3], random_state=0)
    assert len(path) == 3 and path.n_nonzero_coefs.tolist() == [2, 3, 5]
    assert path.coefs.shape == (3, 60)
    np.testing.assert_array_equal(path.coefs.toarray()[1], path.at(3).coef)
    assert path[0] is path.results[0] and list(path) == list(path.results)
    assert "3 points" in repr(path)
    with pytest.raises(KeyError, match=r"2\.\.5"):
        path.at(4)


def test_same_seed_same_path():
    X, y = make()
    a, b = (l0_path(X, y, n_nonzero_coefs=10, random_state=3) for _ in range(2))
    assert (a.coefs != b.coefs).nnz == 0  # a promise: every bit, on one machine
    rng = np.random.default_rng(0)
    assert len(l0_path(X, y, n_nonzero_coefs=3, random_state=rng)) == 3


def test_time_limit_callback_and_ctrl_c_cut_a_path_short():
    X, y = make(60, 300)
    path = l0_path(X, y, n_nonzero_coefs=40, time_limit=1e-3, random_state=0)
    assert 1 <= len(path) < 40 and path[-1].status is Status.TIME_LIMIT

    calls = []

    def stop_after_five(progress):
        calls.append(progress.n_nonzero)
        return len(calls) == 5

    path = l0_path(X, y, n_nonzero_coefs=40, callback=stop_after_five, random_state=0)
    assert len(path) < 6 and path[-1].status is Status.STOPPED

    def interrupt(progress):
        if progress.n_nonzero == 3:
            raise KeyboardInterrupt

    path = l0_path(X, y, n_nonzero_coefs=40, callback=interrupt, random_state=0)
    assert path.n_nonzero.tolist() == [1, 2, 3] and path[-1].status is Status.INTERRUPTED


def test_a_path_that_is_cut_is_monotone_too():
    X, y = make(60, 300, noise=6.0)
    for n_calls in range(3, 40, 6):
        calls = iter(range(n_calls))
        path = l0_path(
            X,
            y,
            n_nonzero_coefs=25,
            random_state=0,
            callback=lambda _, calls=calls: next(calls, None) is None,
        )
        assert all(b <= a for a, b in pairwise(path.objective))
        assert path[-1].status is Status.STOPPED or len(path) == 25


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "neither"),
        ({"n_nonzero_coefs": 3, "alphas": [1.0]}, "both"),
        ({"n_nonzero_coefs": 0}, "between 1"),
        ({"n_nonzero_coefs": 99}, "n_features"),
        ({"n_nonzero_coefs": [2, 99]}, "n_features"),
        ({"n_nonzero_coefs": []}, "at least 0"),
        ({"n_nonzero_coefs": [1, 3], "keep": [0, 1]}, "at least 2"),
        ({"alphas": []}, "nonempty"),
        ({"alphas": [1.0, -2.0]}, "-2"),
        ({"alphas": [[1.0]]}, "vector"),
        ({"alphas": [1.0], "alpha": 2.0}, "alpha"),
        ({"n_nonzero_coefs": 3, "effort": "quick"}, "effort"),
        ({"n_nonzero_coefs": 3, "blok": 1}, "blok"),
    ],
)
def test_wrong_arguments_are_refused_by_name(options, words):
    X, y = make()
    with pytest.raises((ValueError, TypeError), match=words):
        l0_path(X, y, **options)


def test_a_single_column_and_a_perfect_fit():
    x = np.arange(1.0, 6.0)[:, None]
    path = l0_path(x, 2.0 * x.ravel(), n_nonzero_coefs=1)
    assert path[0].coef == pytest.approx([2.0])
    X, _ = make(8, 20)
    path = l0_path(X, X[:, 0] + X[:, 1], n_nonzero_coefs=20, random_state=0)
    assert path.objective[-1] <= 1e-20 and len(path) == 20


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_seconds_and_passes_are_those_of_a_point(loss):
    X, y = make(60, 30, loss=loss)
    path = l0_path(X, y, n_nonzero_coefs=6, loss=loss, ridge=0.1, random_state=0)
    seconds = np.array([result.seconds for result in path])
    assert np.all(seconds > 0.0) and seconds.sum() <= path.seconds
    assert all(result.n_passes >= 0 for result in path) and path[0].n_passes > 0


def test_large_points_share_a_frontier(monkeypatch):
    monkeypatch.setattr("blockl0.search.walks.EVEN", LONG)
    rng = np.random.default_rng(7)
    X, y = rng.standard_normal((90, 160)), 10.0 * rng.standard_normal(90)
    budgets = [46, 50, 54, 58, 62, 66]
    path = l0_path(X, y, n_nonzero_coefs=budgets, effort=1, random_state=0)
    assert np.all(np.diff(path.objective) < 0.0)
    for k, result in zip(budgets, path, strict=True):
        assert result.n_nonzero == k
        # on a nearly perfect fit the search rounds more coarsely than a certificate may
        assert result.certificate is not None or k > 50
        assert blockl0.certify(X, y, result.coef, n_nonzero_coefs=k).holds
    again = l0_path(X, y, n_nonzero_coefs=budgets, effort=1, random_state=0)
    assert np.array_equal(path.objective, again.objective)


def test_ctrl_c_ends_a_path_while_its_frontier_is_filled(monkeypatch):
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((90, 160)), 10.0 * rng.standard_normal(90)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("blockl0.search.shared_frontier.SharedFrontier.fill", stop)
    path = l0_path(X, y, n_nonzero_coefs=[49, 50, 51, 52, 53], effort=1, random_state=0)
    assert len(path) == 1
    assert path[0].status is Status.INTERRUPTED
