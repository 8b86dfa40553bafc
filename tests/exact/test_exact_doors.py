"""Method "exact" behind every door: stops that keep bound and incumbent, estimators, certificates.

Optima are enumerated: every support is fitted by the loss itself.
"""

from __future__ import annotations

import logging
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import blockl0
from blockl0 import L0Classifier, L0Regressor, OutOfReachError, Status, certify
from blockl0.certify import optimality
from blockl0.exact import Stages, few_columns, may_prove, stages
from blockl0.exact.products import ProductBounds
from blockl0.exact.prover import Prover
from blockl0.exact.watch import Watch
from blockl0.problem.fits import make_fits
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.run import Incumbent
from blockl0.solve import solve_problem
from grid import quick_first
from targets import as_target

LOSSES = ["squared", "huber", "poisson", "gamma", "tweedie", "logistic", "squared_hinge"]


def make(loss, m=30, n=9, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 0.5 * rng.standard_normal((m, 1))
    y = X[:, 1] - 0.7 * X[:, 4] + rng.standard_normal(m)
    return X, as_target(loss, y, np.median(y))


def optimum(problem):
    """The least objective over all admissible supports, and the support."""
    fits, best = make_fits(problem), (np.inf, None)
    for k in range(min(problem.sparsity.budget, problem.n_features) + 1):
        for chosen in combinations(range(problem.n_features), k):
            if set(problem.keep.tolist()) <= set(chosen):
                w = fits.minimum(np.array(chosen, dtype=np.int64)).w
                best = min(best, (problem.objective(w), chosen))
    return best


# -- stops -----------------------------------------------------------------------------------------

STOPS = {
    "gap": ({"gap": 0.2}, Status.GAP),
    "nodes": ({"node_limit": 3}, Status.NODE_LIMIT),
    "work": ({"work_limit": 1e-9}, Status.WORK_LIMIT),
    "time": ({"time_limit": 1e-9}, Status.TIME_LIMIT),
    "callback": ({"callback": lambda p: p.iteration > 2}, Status.STOPPED),
    "memory": ({"memory_limit": 1.0}, Status.OPTIMAL),
}


@pytest.fixture
def _no_shortcut(monkeypatch, no_enumeration):
    """Small problems go to the tree, as large ones do."""
    from blockl0.search import quadratic_search

    monkeypatch.setattr(stages, "SMALL", 0)
    monkeypatch.setattr("blockl0.exact.search.FEW_COLUMNS", 0)
    monkeypatch.setattr(ProductBounds, "finish", lambda *given: None)
    monkeypatch.setattr(quadratic_search, "FEW_COLUMNS", 0)


@pytest.mark.usefixtures("_no_shortcut")
@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("loss", quick_first(["squared", "logistic"], 1))
@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 3}, {"alpha": 0.6}], ids=["budget", "price"])
def test_every_stop_keeps_a_true_bound_and_a_feasible_point(loss, stop, form):
    options, status = STOPS[stop]
    X, y = make(loss, m=9, n=12, seed=3)
    problem = as_problem(X, y, loss=loss, ridge=0.1, **form)
    best, _ = optimum(problem)
    result = solve_problem(problem, "exact", random_state=0, **options)
    assert result.status is status
    assert result.lower_bound <= best * (1.0 + 1e-9) and best <= result.objective * (1.0 + 1e-9)
    assert result.n_nonzero <= form.get("n_nonzero_coefs", 12)
    assert result.objective == pytest.approx(problem.objective(result.coef))
    if status is Status.OPTIMAL:
        assert result.gap == 0.0 and result.objective == pytest.approx(best, rel=1e-9)
    elif status is Status.GAP:
        assert 1e-9 < result.gap <= 0.2 and "within the gap" in result.message


def interrupting(function, after):
    """The function, which is interrupted in its middle when it has been called so often."""
    calls = 0

    def wrapped(*arguments, **options):
        nonlocal calls
        calls += 1
        found = function(*arguments, **options)
        if calls == after:
            raise KeyboardInterrupt
        return found

    return wrapped


@pytest.mark.usefixtures("_no_shortcut")
@pytest.mark.parametrize("after", [1, 2, 4, 6])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_an_interrupt_in_the_middle_of_a_node_leaves_a_true_bound(loss, after, monkeypatch):
    """The node that was looked at is in no list then, and must not be forgotten."""
    X, y = make(loss, m=9, n=12, seed=3)
    problem = as_problem(X, y, loss=loss, ridge=0.1, n_nonzero_coefs=3)
    best, _ = optimum(problem)
    monkeypatch.setattr(Prover, "bounds_of", interrupting(Prover.bounds_of, after))
    # from a poor start, so that a node which is lost would show
    poor = Incumbent.at(problem, problem.zero())
    monkeypatch.setattr("blockl0.exact.method._incumbent", lambda *given: poor)
    result = solve_problem(problem, "exact", random_state=0)
    assert result.status is Status.INTERRUPTED
    assert result.lower_bound <= best * (1.0 + 1e-9) <= result.objective * (1.0 + 1e-8)
    assert result.n_nonzero <= 3


def test_an_interrupt_before_the_first_node_keeps_the_first_point(monkeypatch, no_enumeration):
    X, y = make("logistic")
    monkeypatch.setattr(Prover, "__init__", interrupting(Prover.__init__, 1))
    result = blockl0.solve(X, y, loss="logistic", ridge=0.3, n_nonzero_coefs=3, method="exact")
    assert result.status is Status.INTERRUPTED and result.n_nonzero == 3
    assert result.lower_bound == 0.0


@pytest.mark.parametrize("asked", [0.7, 0.5])
def test_a_gap_of_tableaus_is_true(asked):
    """A search that stops early knows its bound, not the optimum."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60, 40)), rng.standard_normal(60)
    best = blockl0.solve(X, y, n_nonzero_coefs=6, method="exact")
    part = blockl0.solve(X, y, n_nonzero_coefs=6, method="exact", gap=asked)
    assert best.status is Status.OPTIMAL and part.status is Status.GAP
    assert part.n_iter < best.n_iter and 0.0 < part.gap <= asked
    assert part.lower_bound <= best.objective * (1.0 + 1e-9)


def test_few_bytes_bound_the_nodes_that_wait():
    X, y = make("logistic", m=60, n=14)
    problem = as_problem(X, y, loss="logistic", ridge=0.1, alpha=0.4)
    start = Incumbent.at(problem, problem.zero())
    most, answers = [], []
    for limit in (1.0, 1e9):
        tree = Prover(problem, start, memory_limit=limit).tree
        seen = [0]
        while not tree.is_finished:
            tree.advance()
            seen.append(len(tree._waiting))
        most.append(max(seen))
        answers.append(tree.incumbent.objective)
    # one beside every node on the way down
    assert most[0] <= 14 + 1 and most[0] < most[1]
    assert answers[0] == pytest.approx(answers[1], rel=1e-9)


def test_the_gap_is_shown_during_the_run(caplog, no_enumeration):
    X, y = make("logistic", m=60, n=14)
    options = {"loss": "logistic", "ridge": 0.1, "alpha": 0.4, "method": "exact"}
    seen = []
    result = blockl0.solve(X, y, callback=seen.append, **options)
    gaps = [progress.gap for progress in seen]
    assert len(gaps) > 2 and gaps == sorted(gaps, reverse=True) and gaps[0] > gaps[-1]
    for progress in seen:
        assert progress.lower_bound <= result.objective * (1.0 + 1e-9)
        expected = (progress.objective - progress.lower_bound) / progress.objective
        assert progress.gap == pytest.approx(expected)
    assert blockl0.run.Progress(1, 2.0, 1, 0.0, X[0]).gap is None
    run = blockl0.run.Run(as_problem(X, y, alpha=1.0), verbose=1)
    run._next_log = 0.0
    with caplog.at_level(logging.INFO, "blockl0"):
        run.record(Incumbent(np.zeros(14), 4.0, 0), 3.0)
    assert "lower bound 3 (gap 25.00%)" in caplog.text


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_the_answer_is_never_worse_than_the_start(loss):
    X, y = make(loss, n=30)
    init = blockl0.solve(X, y, loss=loss, ridge=1.0, n_nonzero_coefs=4, random_state=0)
    found = blockl0.solve(
        X, y, loss=loss, ridge=1.0, n_nonzero_coefs=4, method="exact", init=init.coef, node_limit=1
    )
    assert found.objective <= init.objective * (1.0 + 1e-12)


def test_what_is_found_before_a_search_gives_up_is_kept(monkeypatch):
    """Where no bound exists, few columns are enumerated for a while."""
    monkeypatch.setattr(stages, "HOPELESS_NODES", 3000)
    monkeypatch.setattr(stages, "SMALL_NODES", 10)
    monkeypatch.setattr(stages, "MOST_ENUMERATED", 0)
    rng = np.random.default_rng(0)
    problem = as_problem(rng.standard_normal((20, 60)), rng.standard_normal(20), n_nonzero_coefs=5)
    start = Incumbent.at(problem, make_fits(problem).minimum(np.arange(5)).w)
    search = Stages(problem, start, Watch(), 0.0, 1e9)
    seen = []
    while not search.is_stuck:
        search.advance(50)
        seen.append(search.incumbent.objective)
    assert seen[-1] == min(seen) < start.objective and "more columns than rows" in search.reason


# -- every loss ------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_estimators_prove_what_they_select(loss, is_sparse):
    X, y = make(loss, m=40, n=8)
    kind = L0Classifier if loss in ("logistic", "squared_hinge") else L0Regressor
    model = kind(2, loss=loss, ridge=1.0, method="exact", random_state=0)
    model.fit(sp.csr_array(X) if is_sparse else X, y)
    assert model.status_ is Status.OPTIMAL and model.result_.gap == 0.0
    assert model.result_.lower_bound == model.objective_
    problem = apply(as_problem(X, y, loss=loss, ridge=1.0, n_nonzero_coefs=2)).problem
    best, support = optimum(problem)
    assert model.objective_ == pytest.approx(best, rel=1e-8)
    assert tuple(model.support_) == support


class Shifted(blockl0.losses.Logistic):
    """A loss of one's own, which may be negative."""

    name = "shifted"
    takes_many_classes = False
    is_nonnegative = False

    def value(self, eta, y):
        return super().value(eta, y) - 5.0


@pytest.mark.parametrize("options", [{}, {"node_limit": 1}, {"time_limit": 1e-9}], ids=str)
def test_losses_that_may_be_negative_have_true_bounds(options):
    X, y = make("logistic", n=10)
    problem = as_problem(X, y, loss=Shifted(), ridge=0.5, n_nonzero_coefs=3)
    best, _ = optimum(problem)
    result = solve_problem(problem, "exact", random_state=0, **options)
    assert best < 0.0 and result.lower_bound <= best + 1e-8
    if not options:
        assert result.status is Status.OPTIMAL and result.objective == pytest.approx(best)
    # from a poor start the root must be searched
    tree = Prover(problem, Incumbent.at(problem, problem.zero())).tree
    while not tree.is_finished:
        assert tree.bound <= best + 1e-8
        tree.advance()
    assert tree.incumbent.objective == pytest.approx(best)


def test_the_method_of_an_estimator():
    X, y = make("logistic")
    assert "method" in L0Regressor().get_params()
    with pytest.raises(ValueError, match="`method` must be one of 'exact', 'refit'"):
        L0Regressor(2, method="omp").fit(X, y)
    three = L0Classifier(2, method="exact", random_state=0).fit(X, np.arange(30) % 3)
    assert three.result_.gap == 0.0
    picker = blockl0.BestSubsetSelector(2, loss="logistic", method="exact", ridge=1.0).fit(X, y)
    assert picker.result_.gap == 0.0 and picker.estimator_.method == "exact"


def test_an_estimator_warns_where_no_bound_exists(caplog, no_enumeration):
    X, y = make("logistic")
    model = L0Classifier(2, ridge=0.0, method="exact", random_state=0)
    with pytest.warns(ConvergenceWarning, match="No bound exists, as loss='logistic'") as caught:
        model.fit(X, y)
    assert model.status_ is Status.NO_BOUND and model.result_.note == str(caught[0].message)
    assert caught[0].filename == __file__
    assert not caplog.records  # said once


# -- certificates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", quick_first(range(3), 1))
@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 2}, {"alpha": 1.5}], ids=["budget", "price"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_highest_level_is_global_optimality(loss, form, seed):
    """It holds at the optimum by enumeration, and nowhere else."""
    X, y = make(loss, n=6, seed=seed)
    options = {"loss": loss, "ridge": 0.5, **form}
    problem = as_problem(X, y, **options)
    best, support = optimum(problem)
    fits = make_fits(problem)
    for k in (1, 2):
        for chosen in combinations(range(6), k):
            w = fits.minimum(np.array(chosen)).w
            answer = certify(X, y, w, level=6, **options)
            assert answer.holds == (problem.objective(w) <= best * (1.0 + 1e-7))
            if not answer.holds:
                there = problem.objective(answer.better_coef)
                assert there == pytest.approx(answer.better_objective)
                assert best <= there * (1.0 + 1e-9) and there < answer.objective
                assert len(answer.block) <= 6
    w = fits.minimum(np.array(support, dtype=np.int64)).w
    answer = certify(X, y, w, level=9, **options)
    assert answer.holds and answer.complete and "globally optimal" in str(answer)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "softmax"])
def test_without_a_bound_few_supports_are_fitted(loss, monkeypatch):
    X, y = make("logistic", n=5)
    y = np.arange(30) % 3 if loss == "softmax" else as_target(loss, X[:, 1] - X[:, 4] ** 2, 0.0)
    options = {"loss": loss, "n_nonzero_coefs": 2}
    best, support = optimum(as_problem(X, y, **options))
    fits = make_fits(as_problem(X, y, **options))
    assert certify(X, y, fits.minimum(np.array(support)).w, level=5, **options).holds
    other = next(c for c in combinations(range(5), 2) if c != support)
    answer = certify(X, y, fits.minimum(np.array(other)).w, level=5, **options)
    assert not answer.holds and answer.better_objective >= best * (1.0 - 1e-9)
    monkeypatch.setattr(few_columns, "MOST_COLUMNS", 3)
    monkeypatch.setattr(few_columns, "MOST_SUPPORTS", 3)
    said = "no bound is known" if loss == "softmax" else "No bound exists, as loss="
    with pytest.raises(OutOfReachError, match=said):
        certify(X, y, fits.minimum(np.array(support)).w, level=5, **options)


def test_a_proof_that_takes_too_long_is_out_of_reach(monkeypatch, no_enumeration):
    X, y = make("logistic", n=12)
    options = {"loss": "logistic", "ridge": 0.01, "n_nonzero_coefs": 4}
    w = blockl0.solve(X, y, method="exact", **options).coef
    assert certify(X, y, w, level=12, **options).holds
    with pytest.raises(OutOfReachError, match=r"coarser than `tol`"):
        certify(X, y, w, level=12, tol=1e-11, **options)
    monkeypatch.setattr(optimality, "WORK", 1e-6)
    with pytest.raises(
        OutOfReachError, match=r"out of reach: after 1e-06e9 multiplications a gap of \d+"
    ):
        certify(X, y, w, level=12, **options)


def test_what_may_be_proven_is_known_beforehand():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5, 2000))
    y, labels = rng.standard_normal(5), np.array([0, 1, 0, 1, 1])
    wide = {"n_nonzero_coefs": 2}
    assert not may_prove(as_problem(X, y, **wide))
    assert may_prove(as_problem(X, y, n_nonzero_coefs=1))  # of 2000 supports
    assert may_prove(as_problem(X, y, ridge=1.0, **wide))
    assert may_prove(as_problem(X[:, :50], y, **wide))  # by enumeration
    assert not may_prove(as_problem(X, labels, loss="logistic", **wide))
    assert may_prove(as_problem(X, labels, loss="logistic", ridge=1.0, **wide))
    classes = {"loss": "softmax", "ridge": 1.0, **wide}
    assert may_prove(as_problem(X[:, :90], np.array([0, 1, 2, 0, 1]), **classes))
    assert not may_prove(as_problem(X[:, :110], np.array([0, 1, 2, 0, 1]), **classes))
