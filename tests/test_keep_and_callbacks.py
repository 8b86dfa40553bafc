"""Kept columns, starts that conflict with them, callbacks and working sets that users write."""

from __future__ import annotations

import numpy as np
import pytest

import blockl0
from blockl0.data.design import as_design
from blockl0.problem.problem import independent
from linear_data import Linear

METHODS = ("dec", "exact", "refit")


make = Linear(30, 10, {4: 2.0, 7: -1.0}, noise=0.1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("m", [1, 2, 3, 30])
def test_kept_columns_stay_also_with_few_samples(method, m):
    for seed in range(20):
        X, y = make(m=m, seed=seed)
        result = blockl0.solve(X, y, n_nonzero_coefs=3, keep=[3], method=method, random_state=seed)
        assert 3 in result.support
        assert np.isfinite(result.objective)
        assert result.n_nonzero <= 3


@pytest.mark.parametrize("method", METHODS)
def test_a_start_without_room_for_kept_columns_is_refused(method):
    X, y = make()
    start = np.zeros(10)
    start[[5, 6]] = 1.0
    with pytest.raises(ValueError, match="`init` must leave room for the columns in `keep`"):
        blockl0.solve(X, y, n_nonzero_coefs=2, keep=[0, 1], init=start, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_a_start_that_lacks_a_kept_column_gets_it(method):
    start = np.zeros(10)
    start[5] = 1.0
    for seed in range(20):
        X, y = make(seed=seed)
        result = blockl0.solve(
            X, y, n_nonzero_coefs=3, keep=[0], init=start, method=method, random_state=seed
        )
        assert 0 in result.support


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_anything_true_from_the_callback_stops(method, answer):
    X, y = make()
    result = blockl0.solve(
        X, y, n_nonzero_coefs=3, method=method, callback=lambda progress: answer, random_state=0
    )
    assert result.status is blockl0.Status.STOPPED


def test_a_callback_that_cannot_be_called_is_refused():
    X, y = make()
    with pytest.raises(TypeError, match="`callback` must be callable, got 3"):
        blockl0.solve(X, y, n_nonzero_coefs=3, callback=3)


def test_verbose_may_be_a_bool():
    X, y = make()
    assert blockl0.solve(X, y, n_nonzero_coefs=2, verbose=True, random_state=0).n_nonzero == 2


class Fixed:
    def __init__(self, block):
        self.block = block

    def select(self, state, rng):
        return self.block


def test_a_working_set_may_return_a_list():
    X, y = make()
    result = blockl0.solve(
        X, y, n_nonzero_coefs=2, method="dec", working_set=Fixed([7, 4, 1]), init=np.zeros(10)
    )
    assert result.support.tolist() == [4, 7]


@pytest.mark.parametrize("block", [[], [1, 1], [-1, 2], [3, 10], [0.5, 1.0], ["a"]])
def test_a_working_set_that_selects_nonsense_is_refused(block):
    X, y = make()
    with pytest.raises(ValueError, match="`working_set` must select distinct columns"):
        blockl0.solve(X, y, n_nonzero_coefs=2, method="dec", working_set=Fixed(block))


def test_the_proof_of_a_nearly_perfect_fit_is_true():
    """Values closer than the rounding of products cannot be told apart there, but from the data."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    X[:, 5] = X[:, 2] - X[:, 3] + 0.01 * rng.standard_normal(100)
    y = X[:, 0] + 1e-6 * (X[:, 2] - X[:, 3]) + 1e-9 * rng.standard_normal(100)
    result = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact")
    better = np.zeros(20)
    better[[0, 5]] = np.linalg.lstsq(X[:, [0, 5]], y, rcond=None)[0]
    assert result.status is blockl0.Status.OPTIMAL and result.support.tolist() == [0, 5]
    # the objective is 1e-15 of ½‖y‖², so its own rounding is 1e-16 / sqrt(1e-15) of it
    assert result.lower_bound <= 0.5 * np.sum((y - X @ better) ** 2) * (1.0 + 1e-7)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
@pytest.mark.parametrize("method", METHODS)
def test_answers_with_useless_kept_columns_are_taken_back(method, ridge):
    X, y = make(n=9)
    X[:, 0], X[:, 2], X[:, 3] = 0.0, 3.0 * X[:, 1], X[:, 1] - X[:, 5]
    for keep in ([0], [0, 1, 2], [1, 3, 5]):
        for budget in (3, 5):
            problem = {"n_nonzero_coefs": budget, "keep": keep, "ridge": ridge}
            result = blockl0.solve(X, y, method=method, random_state=0, **problem)
            assert result.n_nonzero <= budget
            certificate = blockl0.certify(X, y, result.coef, level=1, **problem)
            assert method == "dec" or certificate.holds
            again = blockl0.solve(X, y, method=method, init=result.coef, random_state=0, **problem)
            assert again.objective <= result.objective * (1 + 1e-9)
            # of each set of dependent columns one stays, and without it nothing fits as well
            assert {1} <= set(result.support) or keep == [0] or ridge == 0.0


def test_independent_columns_of_a_set():
    X = make()[0][:, :6]
    X[:, 0], X[:, 2], X[:, 3] = 0.0, 3.0 * X[:, 1], X[:, 1] - X[:, 5]
    every = np.arange(6)
    design = as_design(X)
    assert independent(design, every, None, 0.1).tolist() == [1, 2, 3, 4, 5]
    chosen = independent(design, every, None, 0.0)
    assert chosen.size == 3 and 4 in chosen
    assert np.linalg.matrix_rank(X[:, chosen]) == np.linalg.matrix_rank(X) == 3
    weights = np.zeros(30)
    weights[0] = 1.0  # one row is left
    assert independent(design, every, weights, 0.0).size == 1
