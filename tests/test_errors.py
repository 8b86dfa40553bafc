"""One row per message: what is called, which exception, and what the message must say."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import validate
from blockl0.losses import Huber, Logistic, get_loss
from blockl0.problem.problem import as_problem

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
    "y two columns": ({"y": X[:, :2], "loss": "huber"}, ValueError, r"`y` must have shape \(3,\).*got shape \(3, 2\)"),
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
    "alpha huge": ({"alpha": 10**400}, ValueError, r"`alpha` must be finite, got inf\."),
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
    "y two rows": ({"y": X[:2, :2]}, ValueError, r"`y` must have shape \(3,\).*got shape \(2, 2\)"),
    "y two nan": ({"y": put(X[:, :2], (1, 1), np.nan)}, ValueError, r"`y` must be finite, got nan in column 1, row 1"),
    "groups word": ({"feature_groups": "abcde"}, TypeError, r"`feature_groups` must hold one label for each column of X, or lists of columns, got 'abcde' \(str\)"),
    "groups number": ({"feature_groups": 3}, TypeError, r"`feature_groups` must hold one label.*got 3 \(int\)"),
    "groups short": ({"feature_groups": ["a", "b"]}, ValueError, r"one label for each of the 5 columns of X, got 2; or give a list of lists"),
    "groups none": ({"feature_groups": [0, 1, None, 1, 0]}, TypeError, r"labels that can be told apart, got None \(NoneType\) for column 2"),
    "groups nan": ({"feature_groups": [0, 1, np.nan, 1, 0]}, TypeError, r"told apart, got nan \(float\) for column 2"),
    "groups unhashable": ({"feature_groups": [0, {}, 1, 1, 0]}, TypeError, r"told apart, got \{\} \(dict\) for column 1"),
    "groups twice": ({"feature_groups": [[0, 1], [1, 2]]}, ValueError, r"must name a column once, got 1 in the lists 0 and 1"),
    "groups range": ({"feature_groups": [[0, 9]]}, ValueError, r"`feature_groups` must be between 0 and 4, got 9"),
    "groups budget": ({"feature_groups": [0, 0, 1, 1, 1], "n_nonzero_coefs": 3}, ValueError, r"`n_nonzero_coefs` must be between 0 and n_groups=2, got 3"),
    "groups keep": ({"feature_groups": [0, 0, 1, 1, 2], "keep": [0, 2, 4]}, ValueError, r"`keep` must not hold more groups than n_nonzero_coefs=2, got 3"),
    "groups array": ({"feature_groups": np.zeros((5, 2))}, ValueError, r"one label for each of the 5 columns of X, got an array of shape \(5, 2\)"),
    "responses": ({"y": np.ones((3, 2)), "loss": "huber"}, ValueError, r"`y` must have shape \(3,\), as this loss takes one response, got shape \(3, 2\)"),
    "bounds number": ({"bounds": 1.0}, TypeError, r"`bounds` must be a pair \(low, high\).*got 1\.0 \(float\)"),
    "bounds shape": ({"bounds": (0, [1, 2])}, ValueError, r"`bounds` must hold numbers or arrays of shape \(5,\).*got shape \(2,\)"),
    "bounds nan": ({"bounds": (np.nan, 1)}, ValueError, r"`bounds` must not hold NaN, got it for column 0; use infinity"),
    "bounds reversed": ({"bounds": (1.0, -1.0)}, ValueError, r"low <= 0 <= high for every column, but those of column 0, \(1, -1\), are reversed"),
    "bounds above zero": ({"bounds": ([0, 0, 0.5, 0, 0], 1.0)}, ValueError, r"those of column 2, \(0\.5, 1\), exclude zero"),
    "bounds text": ({"bounds": ("a", "b")}, TypeError, r"`bounds` must hold numbers"),
    "positive range": ({"positive": [7]}, ValueError, r"`positive` must hold column numbers between 0 and 4, got 7"),
    "positive kind": ({"positive": [0.5]}, TypeError, r"`positive` must be True, a list of column numbers or a boolean mask of length 5"),
    "positive pins": ({"positive": True, "bounds": (-1.0, -0.5)}, ValueError, r"`bounds` must hold low <= 0 <= high"),
    "costs budget": ({"costs": [1, 2, 3, 4, 5]}, ValueError, r"`costs` multiply the price `alpha`.*a budget counts all alike; give `alpha`, alone or beside"),
    "costs shape": ({"costs": [1, 2], "n_nonzero_coefs": None, "alpha": 1.0}, ValueError, r"`costs` must have shape \(5,\)"),
    "costs negative": ({"costs": [1, 2, -3, 4, 5], "n_nonzero_coefs": None, "alpha": 1.0}, ValueError, r"`costs` must be nonnegative, got -3 for column 2"),
    "costs of a group": ({"costs": [1, 2, 3, 4, 5], "n_nonzero_coefs": None, "alpha": 1.0, "feature_groups": [0, 0, 1, 2, 3]}, ValueError, r"the same for all columns of a group.*got 1 and 2"),
    "costs label": ({"costs": {"x": 2.0}, "n_nonzero_coefs": None, "alpha": 1.0}, ValueError, r"`costs` must name columns, got 'x'"),
    "costs group label": ({"costs": {"x": 2.0}, "n_nonzero_coefs": None, "alpha": 1.0, "feature_groups": list("aabbc")}, ValueError, r"`costs` must name labels of `feature_groups`, got 'x'"),
    "loss unknown": ({"loss": "sqared"}, ValueError, r"`loss` must be one of 'gamma', 'huber', .*got 'sqared' \(str\)\. Did you mean 'squared'\?"),
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
    "greedy": ({"greedy": "splat"}, ValueError, r"`greedy` must be one of 'paper', 'ranked', 'split', got 'splat'.*'split'"),
    "theta scale": ({"theta_scale": "no"}, TypeError, r"`theta_scale` must be True or False, got 'no'\."),
    "stopping": ({"stopping": "papers"}, ValueError, r"`stopping` must be one of 'paper', 'support', 'window', got 'papers'.*'paper'"),
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
    "tiny y": (lambda: validate.check_y([0.0, -1e-160], 2), ValueError, r"`y` must reach 1e-120 in magnitude, got a largest entry of 1e-160, .*rescale it"),
    "tiny weights": (lambda: validate.check_sample_weight([0.0, 1e-160], 2), ValueError, r"`sample_weight` must reach 1e-120 .*1e-160"),
    "init scaled": (lambda: validate.check_init([1e150, 1e130], 2, 2, scale=np.array([2.0**500, 1.0])), ValueError, r"`init` must stay below 1e\+120 in magnitude, got 1e\+130 in position 1"),
    "positive": (lambda: validate.check_positive("tol", 0.0), ValueError, r"`tol` must be positive, got 0\."),
    "flag": (lambda: validate.check_flag("theta_scale", 1), TypeError, r"`theta_scale` must be True or False, got 1\."),
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


LABELS = np.array([0, 1, 0, 1, 1, 0])
A = np.arange(30.0).reshape(6, 5) ** 1.3 % 7


def named(**options):
    pd = pytest.importorskip("pandas")
    return blockl0.L0Regressor(2, **options).fit(pd.DataFrame(A, columns=list("abcde")), LABELS)


# what a user can get wrong with paths, estimators, model selection and coding
ESTIMATORS = {
    "text column": (lambda: blockl0.L0Regressor(1).fit(pandas.DataFrame({"a": Y, "us": ["Yes", "No", "Yes"]}), Y), ValueError, r"Column 'us' of X must hold numbers, got 'Yes' \(str\); encode categories, as `blockl0.app.tables.read_table`"),
    "text category": (lambda: blockl0.L0Classifier(1).fit(pandas.DataFrame({"a": Y, "us": pandas.Categorical(["u", "v", "u"])}), [0, 1, 0]), ValueError, r"Column 'us' of X must hold numbers, got 'u'"),
    "text target": (lambda: blockl0.L0Regressor(1).fit(X, ["1", "no", "2"]), ValueError, r"`y` must hold numbers, got 'no' \(str\); labels are for a classifier"),
    "path neither": (lambda: blockl0.l0_path(A, LABELS), ValueError, r"either `n_nonzero_coefs` or `alphas`, got neither"),
    "path both": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=2, alphas=[1.0]), ValueError, r"either .*got both"),
    "path alpha": (lambda: blockl0.l0_path(A, LABELS, alphas=[1.0], alpha=2.0), ValueError, r"`alpha` goes with `n_nonzero_coefs`, not with `alphas`; got 2"),
    "path alphas shape": (lambda: blockl0.l0_path(A, LABELS, alphas=[[1.0]]), ValueError, r"`alphas` must be a nonempty vector, got shape \(1, 1\)"),
    "path alphas empty": (lambda: blockl0.l0_path(A, LABELS, alphas=[]), ValueError, r"`alphas` must be a nonempty vector, got shape \(0,\)"),
    "path alphas negative": (lambda: blockl0.l0_path(A, LABELS, alphas=[-1.0]), ValueError, r"`alphas` must be nonnegative, got -1"),
    "path budgets": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=[1, 9]), ValueError, r"between 0 and n_features=5, got 9"),
    "path below keep": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=[1, 3], keep=[0, 1]), ValueError, r"budgets of at least 2, the number of kept columns"),
    "path point": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=2).at(4), KeyError, r"no single point for n_nonzero_coefs=4; the path has 1\.\.2"),
    "path criterion": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=2).best("bik"), ValueError, r"`criterion` must be one of 'aic', .*Did you mean 'bic'"),
    "path option": (lambda: blockl0.l0_path(A, LABELS, n_nonzero_coefs=2, blok=3), TypeError, r"does not know the option `blok`\. Did you mean 'block'\?"),
    "init classes": (lambda: validate.check_init(np.zeros(5), 5, 2, n_outputs=3), ValueError, r"`init` must have shape \(5, 3\), one value per column of X and class, got shape \(5,\)"),
    "one output": (lambda: blockl0.solve(np.eye(3), [0, 1, 2], loss="softmax", n_nonzero_coefs=1, method="dec"), ValueError, r"method='dec' takes losses with one predictor for a sample, got loss='softmax'; use method='refit'"),
    "softmax codes": (lambda: blockl0.solve(np.eye(3), [1, 2, 3], loss="softmax", n_nonzero_coefs=1), ValueError, r"loss='softmax' needs `y` to hold the class codes 0, 1, \.\.\., C - 1.*got 1, 2, 3; np\.unique"),
    "init keep": (lambda: validate.check_init([1.0, 1.0, 0.0], 3, 2, np.array([2])), ValueError, r"`init` must leave room for the columns in `keep`: it has 2 nonzeros"),
    "callback": (lambda: validate.check_callback(3), TypeError, r"`callback` must be callable, got 3"),
    "verbose": (lambda: blockl0.L0Regressor(2, verbose=-1).fit(A, LABELS), ValueError, r"`verbose` must be at least 0, got -1"),
    "keep unknown name": (lambda: named(keep=["aa"]), ValueError, r"`keep` must hold names of columns of X, got 'aa'\. Did you mean 'a'\?"),
    "keep one name": (lambda: named(keep="a"), TypeError, r"`keep` must be a list of columns, got 'a' \(str\); write \['a'\]"),
    "keep names of an array": (lambda: blockl0.L0Regressor(2, keep=["a"]).fit(A, LABELS), TypeError, r"column numbers where X has no column names, got \['a'\].*DataFrame"),
    "keep too many": (lambda: blockl0.L0Regressor(1, keep=[0, 1]).fit(A, LABELS), ValueError, r"more columns than n_nonzero_coefs=1, got 2"),
    "nan": (lambda: blockl0.L0Regressor(2).fit(put(A, (1, 3), np.nan), LABELS), ValueError, r"Input X contains NaN in column 3, row 1; remove or impute"),
    "infinity": (lambda: blockl0.L0Regressor(2).fit(sp.csr_array(put(A, (1, 3), np.inf)), LABELS), ValueError, r"Input X contains infinity in column 3, row 1"),
    "huge": (lambda: blockl0.L0Regressor(2).fit(put(A, (1, 3), 1e200), LABELS), ValueError, r"`X` must stay below 1e\+120"),
    "regression loss": (lambda: blockl0.L0Regressor(2, loss="logistic").fit(A, LABELS), ValueError, r"`loss` must be one of 'gamma', 'huber', .*'tweedie', got 'logistic'"),
    "class loss": (lambda: blockl0.L0Classifier(2, loss="squared").fit(A, LABELS), ValueError, r"`loss` must be one of 'logistic', 'squared_hinge', got 'squared'"),
    "counts negative": (lambda: blockl0.L0Regressor(2, loss="poisson").fit(A, LABELS - 1), ValueError, r"loss='poisson' needs nonnegative `y`, got -1 in position 0"),
    "counts zero": (lambda: blockl0.L0Regressor(2, loss="poisson").fit(A, 0 * LABELS), ValueError, r"loss='poisson' needs a positive value in `y`, got only zeros"),
    "huber delta": (lambda: Huber(delta=0.0), ValueError, r"`delta` must be positive, got 0"),
    "one class": (lambda: blockl0.L0Classifier(2).fit(A, 0 * LABELS), ValueError, r"at least 2 classes in the data, but the data contain only one class: .*0"),
    "one class of weight": (lambda: blockl0.L0Classifier(2).fit(A, LABELS, LABELS), ValueError, r"at least 2 classes, but the data \(of positive weight\) contain only one class"),
    "class without weight": (lambda: blockl0.L0Classifier(2).fit(A, [0, 1, 2, 1, 2, 0], [1, 0, 1, 0, 1, 1]), ValueError, r"every class, but class .*1.* has none of positive weight; leave its rows out"),
    "loss kind": (lambda: blockl0.L0Regressor(2, loss=Logistic()).fit(A, LABELS), ValueError, r"L0Regressor takes a `loss` of numbers, got 'logistic', which is one of labels; by name: squared"),
    "loss parameter": (lambda: get_loss("huber:x"), ValueError, r"`delta` of loss='huber' must be a number, got 'x'"),
    "loss without one": (lambda: get_loss("squared:1"), ValueError, r"loss='squared' has no parameter, got 'squared:1'"),
    "amount zero": (lambda: blockl0.L0Regressor(2, loss="gamma").fit(A, LABELS), ValueError, r"loss='gamma' needs positive `y`, got 0 in position 0"),
    "power": (lambda: get_loss("tweedie:2.5"), ValueError, r"`power` must be between 1 \(Poisson\) and 2 \(gamma\), got 2\.5"),
    "class weight": (lambda: blockl0.L0Classifier(2, class_weight={0: -1.0}).fit(A, LABELS), ValueError, r"`class_weight` must hold nonnegative numbers, got \{0: -1\.0\}"),
    "class weight word": (lambda: blockl0.L0Classifier(2, class_weight="even").fit(A, LABELS), ValueError, r"`class_weight` must be None, 'balanced' or a dict of labels, got 'even'\."),
    "class weight list": (lambda: blockl0.L0Classifier(2, class_weight=[1.0, 2.0]).fit(A, LABELS), ValueError, r"`class_weight` must be None, 'balanced' or a dict of labels, got \[1\.0, 2\.0\]\."),
    "class weight nan": (lambda: blockl0.L0Classifier(2, class_weight={1: np.nan}).fit(A, LABELS), ValueError, r"`class_weight` must hold nonnegative numbers, got \{1: nan\}"),
    "class weight label": (lambda: blockl0.L0Classifier(2, class_weight={7: 1.0}).fit(A, LABELS), ValueError, r"The classes, \[0, 1\], are not in class_weight"),
    "class weight zero": (lambda: blockl0.L0Classifier(2, class_weight={0: 0.0}).fit(A, LABELS), ValueError, r"needs samples of at least 2 classes, but the data \(of positive weight\) contain only one"),
    "class weight folds": (lambda: blockl0.L0ClassifierCV([1], class_weight={0: -1.0}, cv=2).fit(A, LABELS), ValueError, r"`class_weight` must hold nonnegative numbers, got \{0: -1\.0\}"),
    "class weight of numbers": (lambda: blockl0.BestSubsetSelector(2, class_weight="balanced").fit(A, LABELS), ValueError, r"`class_weight` is for labels, got 'balanced' with loss='squared'"),
    "hinge of three": (lambda: blockl0.L0Classifier(2, loss="squared_hinge").fit(A, [0, 1, 2, 1, 2, 0]), ValueError, r"Only binary classification is supported by loss='squared_hinge', got 3 classes"),
    "weights": (lambda: blockl0.L0Regressor(2).fit(A, LABELS, -1.0 * LABELS), ValueError, r"[Nn]egative values in data passed to `sample_weight`"),
    "ridge of text": (lambda: blockl0.L0Classifier(2, ridge="standardised:1").fit(A, LABELS), ValueError, r"`ridge` must be a number, 'auto', or a number in units .* as in 'standardized:0\.1', got 'standardised:1'"),
    "ridge of spreads": (lambda: blockl0.L0Regressor(2, ridge="standardized:-1").fit(A, LABELS), ValueError, r"`ridge` must be nonnegative, got -1"),
    "ridge of softmax": (lambda: blockl0.L0Classifier(2, ridge=-1).fit(A, [0, 1, 2, 1, 2, 0]), ValueError, r"`ridge` must be nonnegative, got -1"),
    "budget": (lambda: blockl0.L0Regressor(9).fit(A, LABELS), ValueError, r"between 0 and n_features=5, got 9"),
    "effort": (lambda: blockl0.L0Regressor(2, effort="fats").fit(A, LABELS), ValueError, r"`effort` must be one of .*Did you mean 'fast'\?"),
    "rule": (lambda: blockl0.L0RegressorCV(2, rule="1se").fit(A, LABELS), ValueError, r"`rule` must be one of .*'one_se'.*got '1se'"),
    "costs of a path": (lambda: blockl0.L0RegressorCV(2, costs=[1.0] * 5).fit(A, LABELS), TypeError, r"`costs` must be one of .*'coefficients'.*got \[1.0"),
    "costs and alpha": (lambda: blockl0.L0RegressorCV(2, costs="coefficients", alpha=1.0).fit(A, LABELS), ValueError, r"costs='coefficients' sets the price of a coefficient itself, got alpha=1.0"),
    "grid": (lambda: blockl0.L0RegressorCV([1, 7]).fit(A, LABELS), ValueError, r"between 0 and n_features=5, got 7"),
    "no scores": (lambda: blockl0.L0RegressorCV(1, cv=2, scoring=lambda *_: np.nan).fit(A, LABELS), ValueError, r"no point of the path has a finite score in any fold; check `scoring`"),
    "bootstrap": (lambda: blockl0.L0Regressor(1).fit(A, LABELS).summary(n_half_samples=3), ValueError, r"`n_half_samples` needs the data: give `X` and `y`"),
    "summary without y": (lambda: blockl0.L0Regressor(1).fit(A, LABELS).summary(A), ValueError, r"`summary` needs the target `y`"),
    "summary classes": (lambda: blockl0.L0Classifier(1, effort=0).fit(A, LABELS).summary(A, LABELS + 1), ValueError, r"must hold the classes of the fit, got .*2.*they are 0, 1"),
    "no rows to code": (lambda: blockl0.sparse_encode(A[:0], A, n_nonzero_coefs=1), ValueError, r"`X` must hold at least one row to code, .*got shape \(0, 5\)"),
    "nothing to code": (lambda: blockl0.sparse_encode([], A, n_nonzero_coefs=1), ValueError, r"`X` must hold at least one row to code, .*got shape \(0,\)"),
    "rows of rows": (lambda: blockl0.sparse_encode(A[None], A, n_nonzero_coefs=1), ValueError, r"`X` must hold .*got shape \(1, 6, 5\)"),
    "no atoms": (lambda: blockl0.sparse_encode(A, A[:0], n_nonzero_coefs=1), ValueError, r"at least one row and one column"),
    "no jobs": (lambda: blockl0.sparse_encode(A, A, n_nonzero_coefs=1, n_jobs=0), ValueError, r"`n_jobs` must not be 0; give None or 1 for one job, -1 for all cores"),
    "half a job": (lambda: blockl0.sparse_encode(A, A, n_nonzero_coefs=1, n_jobs=0.5), TypeError, r"`n_jobs` must be an integer, got 0\.5"),
    "no threads": (lambda: blockl0.solve(A, LABELS, n_nonzero_coefs=1, n_jobs=0), ValueError, r"`n_jobs` must not be 0; give None or 1 for one job, -1 for all cores"),
    "rows of derivatives": (lambda: blockl0.SINDyL0(1).fit(A, LABELS[:5]), ValueError, r"`y` must have one row for each of the 6 rows of X, .*got shape \(5,\)"),
    "no equation": (lambda: blockl0.SINDyL0(1).fit(A, A[:, :0]), ValueError, r"`y` must have one row .*a column for each equation, got shape \(6, 0\)"),
    "deep derivatives": (lambda: blockl0.SINDyL0(1).fit(A, A[:, :, None]), ValueError, r"`y` must have one row .*got shape \(6, 5, 1\)"),
    "one term": (lambda: blockl0.SINDyL0(1).fit(A[:, 0], LABELS), ValueError, r"`X` must be 2-D \(n_samples, n_features\), got shape \(6,\)"),
    "terms of text": (lambda: blockl0.SINDyL0(1).fit(A.astype(str), LABELS), TypeError, r"`X` must hold numbers"),
    "no derivative": (lambda: blockl0.SINDyL0(1).fit(A, np.full(6, np.nan)), ValueError, r"Each of the 6 rows holds NaN or infinity, in X or in y: no row is left"),
    "terms of new rows": (lambda: blockl0.SINDyL0(1).fit(A, LABELS).predict(A[:, 1:]), ValueError, r"`X` must have 5 columns, as in the fit, got shape \(6, 4\)"),
    "atoms": (lambda: blockl0.sparse_encode(A, A.T, n_nonzero_coefs=1), ValueError, r"`dictionary` must have one atom of 5 features per row, as X has, got shape \(5, 6\)"),
    "atoms sparsity": (lambda: blockl0.sparse_encode(A, A), ValueError, r"give `n_nonzero_coefs`, `alpha`, or both"),
    "sindy both": (lambda: blockl0.SINDyL0(alpha=1.0, criterion="bic").fit(A, LABELS), ValueError, r"`alpha` does not go with `criterion`; give one"),
    "sindy sparse": (lambda: blockl0.SINDyL0(2).fit(sp.csr_array(A), LABELS), TypeError, r"`X` must be a dense array of library terms"),
}  # fmt: skip


@pytest.mark.parametrize(("call", "error", "pattern"), ESTIMATORS.values(), ids=ESTIMATORS)
def test_estimators_and_paths(call, error, pattern):
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
