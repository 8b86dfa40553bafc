"""One row per message: what is called, which exception, and what the message must say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import validate
from blockl0.losses import get_loss
from blockl0.problem import as_problem

X = np.arange(15.0).reshape(3, 5) ** 1.5
Y = np.array([1.0, -2.0, 0.5])


def put(array, where, value):
    changed = array.copy()
    changed[where] = value
    return changed


# what a user can get wrong in a problem: arguments, exception, pattern
INPUT = {
    "X nan": ({"X": put(X, (1, 3), np.nan)}, ValueError, r"`X` must be finite, got nan in column 3, row 1"),
    "X inf": ({"X": put(X, (2, 0), -np.inf)}, ValueError, r"`X` must be finite, got -inf in column 0, row 2"),
    "X huge": ({"X": put(X, (0, 1), 1e200)}, ValueError, r"`X` must stay below 1e\+120.*got 1e\+200 in column 1, row 0; rescale"),
    "X sparse nan": ({"X": sp.csr_array(put(X, (1, 3), np.nan))}, ValueError, r"`X` must be finite, got nan in column 3, row 1"),
    "X complex": ({"X": X + 1j}, TypeError, r"`X` must be real, got complex128"),
    "X sparse complex": ({"X": sp.csr_array(X + 1j)}, TypeError, r"`X` must be real, got complex128"),
    "X strings": ({"X": X.astype(str)}, TypeError, r"`X` must hold numbers, got dtype <U\d+ \(first entry .*astype\(float\)"),
    "X objects": ({"X": put(X.astype(object), (0, 0), "red")}, TypeError, r"dtype object \(first entry 'red' \(str\)\); encode categories"),
    "X none": ({"X": None}, TypeError, r"`X` must hold numbers, got dtype object"),
    "X dates": ({"X": X.astype("datetime64[D]")}, TypeError, r"`X` must hold numbers, got dtype datetime64"),
    "X masked": ({"X": np.ma.masked_greater(X, 3)}, ValueError, r"`X` must not hold masked entries"),
    "X ragged": ({"X": [[1, 2], [3], [4, 5]]}, ValueError, r"`X` must be rectangular; its rows differ in length"),
    "X 1-D": ({"X": Y}, ValueError, r"`X` must be 2-D .*got shape \(3,\); reshape it, .*X\.reshape\(-1, 1\)"),
    "X 3-D": ({"X": X[None]}, ValueError, r"`X` must be 2-D .*got shape \(1, 3, 5\)"),
    "X no rows": ({"X": np.empty((0, 5))}, ValueError, r"at least one row and one column, got shape \(0, 5\)"),
    "X no columns": ({"X": sp.csc_array((3, 0))}, ValueError, r"at least one row and one column, got shape \(3, 0\)"),
    "y length": ({"y": Y[:2]}, ValueError, r"`y` must have shape \(3,\), one value per row of X, got shape \(2,\)"),
    "y two columns": ({"y": X[:, :2]}, ValueError, r"`y` must have shape \(3,\).*got shape \(3, 2\)"),
    "y row": ({"y": Y[None]}, ValueError, r"`y` must have shape \(3,\).*got shape \(1, 3\)"),
    "y scalar": ({"y": 3.0}, ValueError, r"`y` must have shape \(3,\).*got shape \(\)"),
    "y nan": ({"y": put(Y, 2, np.nan)}, ValueError, r"`y` must be finite, got nan in position 2"),
    "y complex": ({"y": Y + 0j}, TypeError, r"`y` must be real"),
    "y strings": ({"y": ["a", "b", "c"]}, TypeError, r"`y` must hold numbers.*first entry .*'a'"),
    "y sparse": ({"y": sp.csr_array(X[:, :1])}, TypeError, r"`y` must be a dense vector"),
    "y classes": ({"y": [0, 1, 2], "loss": "logistic"}, ValueError, r"loss='logistic' needs `y` in \{-1, 1\}.*got 0, 1, 2"),
    "no sparsity": ({"n_nonzero_coefs": None}, ValueError, r"give `n_nonzero_coefs`, `alpha`, or both\."),
    "budget high": ({"n_nonzero_coefs": 7}, ValueError, r"^`n_nonzero_coefs` must be between 0 and n_features=5, got 7\.$"),
    "budget low": ({"n_nonzero_coefs": -1}, ValueError, r"between 0 and n_features=5, got -1\."),
    "budget float": ({"n_nonzero_coefs": 2.0}, TypeError, r"`n_nonzero_coefs` must be an integer, got 2\.0 \(float\)"),
    "budget bool": ({"n_nonzero_coefs": True}, TypeError, r"`n_nonzero_coefs` must be an integer, got True \(bool\)"),
    "alpha negative": ({"alpha": -1}, ValueError, r"`alpha` must be nonnegative, got -1\."),
    "alpha nan": ({"alpha": np.nan}, ValueError, r"`alpha` must be finite, got nan\."),
    "alpha inf": ({"alpha": np.inf}, ValueError, r"`alpha` must be finite, got inf\."),
    "alpha string": ({"alpha": "1"}, TypeError, r"`alpha` must be a number, got '1' \(str\)"),
    "alpha bool": ({"alpha": True}, TypeError, r"`alpha` must be a number, got True \(bool\)"),
    "ridge negative": ({"ridge": -0.5}, ValueError, r"`ridge` must be nonnegative, got -0\.5\."),
    "ridge none": ({"ridge": None}, TypeError, r"`ridge` must be a number, got None"),
    "weights negative": ({"sample_weight": [1, -2, 1]}, ValueError, r"`sample_weight` must be nonnegative, got -2\.0 in position 1"),
    "weights shape": ({"sample_weight": [1, 2]}, ValueError, r"`sample_weight` must have shape \(3,\).*got shape \(2,\)"),
    "weights nan": ({"sample_weight": [1, np.nan, 1]}, ValueError, r"`sample_weight` must be finite"),
    "weights zero": ({"sample_weight": [0, 0, 0]}, ValueError, r"`sample_weight` must not be all zero"),
    "keep range": ({"keep": [0, 5]}, ValueError, r"`keep` must hold column numbers between 0 and 4, got 5\."),
    "keep negative": ({"keep": [-1]}, ValueError, r"between 0 and 4, got -1\."),
    "keep twice": ({"keep": [1, 1]}, ValueError, r"`keep` must not repeat a column, got 1 twice"),
    "keep too many": ({"keep": [0, 1, 2]}, ValueError, r"more columns than n_nonzero_coefs=2, got 3; raise"),
    "keep float": ({"keep": [0.5]}, TypeError, r"`keep` must be a list of column numbers or a boolean mask of length 5"),
    "keep number": ({"keep": 3}, TypeError, r"`keep` must be a list of column numbers.*got 3 \(int\)"),
    "keep short mask": ({"keep": [True, False]}, TypeError, r"boolean mask of length 5, got \[True, False\]"),
    "loss unknown": ({"loss": "sqared"}, ValueError, r"`loss` must be one of 'huber', 'logistic', .*got 'sqared' \(str\)\. Did you mean 'squared'\?"),
    "loss type": ({"loss": 3}, TypeError, r"`loss` must be one of .*got 3 \(int\)\.$"),
}  # fmt: skip


def arguments(changes):
    return {"X": X, "y": Y, "n_nonzero_coefs": 2} | changes


@pytest.mark.parametrize(("changes", "error", "pattern"), INPUT.values(), ids=INPUT)
def test_problem_input(changes, error, pattern):
    with pytest.raises(error, match=pattern):
        as_problem(**arguments(changes))


@pytest.mark.parametrize(("changes", "error", "pattern"), INPUT.values(), ids=INPUT)
def test_solve_refuses_the_same_input(changes, error, pattern):
    with pytest.raises(error, match=pattern):
        blockl0.solve(**arguments(changes), method="dec")


SOLVE = {
    "method unknown": ({"method": "deck"}, ValueError, r"`method` must be one of .*'dec'.*got 'deck' \(str\)\. Did you mean 'dec'\?"),
    "method type": ({"method": 3}, TypeError, r"`method` must be one of .*got 3 \(int\)"),
    "option unknown": ({"theat": 1}, TypeError, r"method='dec' does not know the option `theat`\. Did you mean 'theta'\?"),
    "init shape": ({"init": np.zeros(4)}, ValueError, r"`init` must have shape \(5,\)"),
    "init nan": ({"init": np.full(5, np.nan)}, ValueError, r"`init` must be finite, got nan in position 0"),
    "init nonzeros": ({"init": np.ones(5)}, ValueError, r"`init` must have at most n_nonzero_coefs=2 nonzeros, got 5"),
    "time limit": ({"time_limit": 0}, ValueError, r"`time_limit` must be positive, got 0\."),
    "random state": ({"random_state": "x"}, TypeError, r"`random_state` must be None, an integer"),
    "theta": ({"theta": -1}, ValueError, r"`theta` must be (nonnegative|positive), got -1\."),
    "tol": ({"tol": -1}, ValueError, r"`tol` must be (nonnegative|positive), got -1\."),
    "window": ({"window": 0}, ValueError, r"`window` must be at least 1, got 0\."),
    "max_iter": ({"max_iter": 1.5}, TypeError, r"`max_iter` must be an integer, got 1\.5"),
    "working set": ({"working_set": "R10H2"}, ValueError, r"`working_set` .*'R10H2'"),
    "greedy": ({"greedy": "splat"}, ValueError, r"`greedy` must be one of 'ranked', 'split', got 'splat'.*'split'"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "error", "pattern"), SOLVE.values(), ids=SOLVE)
def test_solve_options(changes, error, pattern):
    with pytest.raises(error, match=pattern):
        blockl0.solve(**(arguments({"method": "dec"}) | changes))


CHECKS = {
    "init shape": (lambda: validate.check_init(np.zeros(4), 5, 2), ValueError, r"`init` must have shape \(5,\), one value per column of X, got shape \(4,\)"),
    "init nan": (lambda: validate.check_init([0, np.nan, 0, 0, 0], 5, 2), ValueError, r"`init` must be finite, got nan in position 1"),
    "init nonzeros": (lambda: validate.check_init(np.ones(5), 5, 2), ValueError, r"`init` must have at most n_nonzero_coefs=2 nonzeros, got 5"),
    "time zero": (lambda: validate.check_time_limit(0), ValueError, r"`time_limit` must be positive, got 0\."),
    "time negative": (lambda: validate.check_time_limit(-2.5), ValueError, r"`time_limit` must be positive, got -2\.5\."),
    "time nan": (lambda: validate.check_time_limit(np.nan), ValueError, r"`time_limit` must be finite, got nan"),
    "time string": (lambda: validate.check_time_limit("1s"), TypeError, r"`time_limit` must be a number, got '1s'"),
    "seed string": (lambda: validate.check_random_state("x"), TypeError, r"`random_state` must be None, an integer or a numpy\.random\.Generator, got 'x'"),
    "seed bool": (lambda: validate.check_random_state(True), TypeError, r"`random_state` must be None.*got True"),
    "seed legacy": (lambda: validate.check_random_state(np.random.RandomState(0)), TypeError, r"`random_state` must be None"),
    "seed negative": (lambda: validate.check_random_state(-1), ValueError, r"`random_state` must be at least 0, got -1"),
    "integer range": (lambda: validate.check_integer("window", 0, low=1), ValueError, r"`window` must be at least 1, got 0\."),
    "integer both": (lambda: validate.check_integer("level", 9, 1, 5), ValueError, r"`level` must be between 1 and 5, got 9\."),
    "positive": (lambda: validate.check_positive("tol", 0.0), ValueError, r"`tol` must be positive, got 0\."),
    "choice": (lambda: validate.check_choice("method", "deck", ["dec", "exact"]), ValueError, r"`method` must be one of 'dec', 'exact', got 'deck' \(str\)\. Did you mean 'dec'\?"),
    "choice far": (lambda: validate.check_choice("method", "zzz", ["dec", "exact"]), ValueError, r"got 'zzz' \(str\)\.$"),
    "option": (lambda: validate.check_options("dec", ["theat"], ["theta", "tol"]), TypeError, r"method='dec' does not know the option `theat`\. Did you mean 'theta'\? Its options: theta, tol\."),
    "option none": (lambda: validate.check_options("omp", ["tol"], []), TypeError, r"Its options: none\."),
    "loss class": (lambda: get_loss(dict), TypeError, r"`loss` must be one of"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "pattern"), CHECKS.values(), ids=CHECKS)
def test_checks(call, error, pattern):
    with pytest.raises(error, match=pattern):
        call()


def test_accepted_forms():
    assert validate.check_y([[1], [2], [3]], 3).tolist() == [1, 2, 3]
    assert validate.check_y(np.array([True, False]), 2).tolist() == [1, 0]
    assert validate.check_keep([True, False, True, False, False], 5, 2).tolist() == [0, 2]
    assert validate.check_keep([], 5, 0).tolist() == []
    assert validate.check_keep(None, 5, 0).dtype == np.int64
    assert validate.check_time_limit(None) == validate.check_time_limit(np.inf) == np.inf
    assert validate.check_time_limit(np.float32(2)) == 2.0
    assert validate.check_sample_weight(None, 3) is None
    assert validate.check_sparsity(0, None, 5) == (0.0, 0)
    assert validate.check_choice("method", "dec", ["dec"]) == "dec"
    validate.check_options("dec", ["tol"], ["tol"])


def test_random_state_forms():
    rng = np.random.default_rng(3)
    assert validate.check_random_state(rng) is rng
    same = [validate.check_random_state(seed).random() for seed in (3, np.int64(3))]
    assert same[0] == same[1] == np.random.default_rng(3).random()
    assert isinstance(validate.check_random_state(None), np.random.Generator)


def test_init_is_a_fresh_copy():
    init = np.zeros(5)
    w = validate.check_init(init, 5, 2)
    w[0] = 1.0
    assert init[0] == 0.0


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_scales_are_accepted(scale):
    problem = as_problem(scale * X, scale * Y, alpha=scale, ridge=scale, sample_weight=scale * Y**2)
    assert np.isfinite(problem.objective(np.ones(5)))
