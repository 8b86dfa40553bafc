"""Nothing is called proven that is not: problems made to mislead, against enumeration.

A sample of what `tests/run_hostile.py` does for as long as one likes.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest

import blockl0
import hostile
import hostile_checks
import oracles
from blockl0 import Status
from blockl0.certify import move_search
from blockl0.certify import move_tableau as moves
from blockl0.exact import dependence
from blockl0.exact import search as exact_search
from blockl0.exact.search import ExactSearch
from blockl0.moves.single_moves import UnitMoves
from blockl0.problem import factors
from blockl0.problem.fits import least_squares_on, make_fits
from blockl0.problem.orthogonal import (
    DEPENDENT,
    UnitLengthColumns,
    independent_positions,
    rounding_of,
    smallest_distance,
)
from blockl0.problem.problem import as_problem
from grid import quick_first

BATCH = 60


# the oracle itself --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", quick_first(range(30), 6))
def test_the_enumeration_is_least_squares(seed):
    problem = hostile.make_hostile(seed, 6)
    truth = hostile.enumerate_supports(problem)
    bound = as_problem(problem.X, problem.y, **{**problem.options, "keep": None})
    A, b, _ = bound.unit_columns(np.arange(bound.n_features))
    for mask in range(1 << bound.n_features):
        S = [j for j in range(bound.n_features) if (mask >> j) & 1]
        if truth.apart[mask] < 1e-6:
            continue
        r = b - A[:, S] @ np.linalg.lstsq(A[:, S], b, rcond=None)[0] if S else b
        value = 0.5 * r @ r + bound.sparsity.price * len(S)
        assert truth.objective[mask] == pytest.approx(value, rel=1e-8, abs=1e-12 * (b @ b))
        singular = np.linalg.svd(A[:, S], compute_uv=False)[-1] if S else 1.0
        # the distance of a column from the others is at least the least singular value, and at
        # most √k of them
        assert 0.999 * singular <= truth.apart[mask] <= 1.001 * singular * max(len(S), 1) ** 0.5


def test_what_is_dependent_has_no_value():
    X = np.random.default_rng(0).standard_normal((8, 3))
    X[:, 2] = X[:, 0] - X[:, 1]
    problem = hostile.Hostile(X, X[:, 0] + 1.0, {"n_nonzero_coefs": 3})
    truth = hostile.enumerate_supports(problem)
    assert not truth.allowed[0b111] and truth.allowed[0b011]


# the definition -----------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01, 2.0])
def test_the_definition_of_dependence_is_one_number(factor):
    """By the distance of one column from the others, whatever their order and scale."""
    rng = np.random.default_rng(0)
    X = np.linalg.qr(rng.standard_normal((20, 4)))[0]
    X[:, 3] = (
        X[:, :3] @ [0.6, 0.0, 0.8]
        + factor
        * DEPENDENT
        * np.linalg.qr(np.column_stack([X[:, :3], rng.standard_normal(20)]))[0][:, 3]
    )
    # the first and the third column take part, and are nearer than the fourth by their shares
    apart = smallest_distance(X[:, [0, 2, 3]] / np.linalg.norm(X[:, [0, 2, 3]], axis=0))
    assert apart == pytest.approx(factor * DEPENDENT, rel=1e-6)
    y = rng.standard_normal(20)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]):
        Z = X[:, order] * [1.0, 1e6, 1e-6, 1.0]
        w = least_squares_on(as_problem(Z, y, n_nonzero_coefs=4), np.arange(4))
        assert np.count_nonzero(w) == (4 if factor > 1.0 else 3)
        assert UnitLengthColumns(as_problem(Z, y, alpha=0)).are_independent(np.arange(4)) == (
            factor > 1.0
        )


def test_first_columns_stay_in_an_independent_set():
    X = np.random.default_rng(1).standard_normal((9, 5))
    X[:, 4] = X[:, 0] + X[:, 1]
    X /= np.linalg.norm(X, axis=0)
    assert independent_positions(X[:, [4, 0, 1, 2, 3]], 1).tolist()[0] == 0
    assert independent_positions(X).size == 4
    assert independent_positions(X[:, :0]).size == 0


# claims -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", range(5))
def test_claims_are_true(batch):
    wrong = []
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        wrong += hostile_checks.check_problem(seed)
    assert not wrong, "\n".join(wrong)


def test_claims_are_true_of_factors(monkeypatch):
    """Reduced as tall data are, whatever their number of rows."""
    monkeypatch.setattr(factors, "LEAST_ROWS", 2)
    monkeypatch.setattr(factors, "TALL", 1.0)
    wrong = []
    for seed in range(2 * BATCH):
        wrong += hostile_checks.check_problem(seed)
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(8))
def test_more_claims_are_true(batch):
    wrong = []
    for seed in range(10_000 + 250 * batch, 10_250 + 250 * batch):
        wrong += hostile_checks.check_problem(seed, 8)
    assert not wrong, "\n".join(wrong)


def test_false_optima_of_the_past():
    """Reported as optimal with gap 0 once: near-duplicates at 1e-6 to 5e-5, wide and tall."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3, 4))
    X[:, 1] = X[:, 0] + 1e-6 * rng.standard_normal(3)
    y = rng.standard_normal(3)
    assert blockl0.solve(X, y, n_nonzero_coefs=2, method="exact").objective < 0.0884
    rng = np.random.default_rng(320)
    X = rng.standard_normal((15, 8))
    X[:, 1] = X[:, 0] + 1e-5 * rng.standard_normal(15)
    y = rng.standard_normal(15)
    result = blockl0.solve(X, y, n_nonzero_coefs=3, method="exact", random_state=0)
    assert result.support.tolist() == [0, 1, 3] and result.status is Status.OPTIMAL
    rng = np.random.default_rng(8)  # ended in a LinAlgError
    X = rng.standard_normal((3, 5))
    X[:, 1] = X[:, 0] + 1e-4 * rng.standard_normal(3)
    result = blockl0.solve(X, rng.standard_normal(3), n_nonzero_coefs=2, method="exact")
    assert result.status is Status.OPTIMAL
    rng = np.random.default_rng(64)  # wrote out of bounds
    X = rng.standard_normal((4, 5))
    X[:, 3] = X[:, 2] + 5e-5 * rng.standard_normal(4)
    y = X[:, 0] - X[:, 2]
    for _ in range(30):
        result = blockl0.solve(X, y, alpha=y @ y, method="exact", random_state=0)
        assert result.n_nonzero == 0 and result.status is Status.OPTIMAL


def test_columns_that_differ_in_the_last_digits_are_not_taken_for_copies():
    """Beside a third column the difference of 1e-14 is multiplied by 1e8."""
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((40, 40)))[0]
    a, v, u = Q[:, :3].T
    X = np.column_stack([a, a + 1.5e-8 * v, a - 0.9e-14 * u, Q[:, 3:6]])
    for rho in (1.0, 1e-3, 1e-6):
        y = v + rho * u
        problem = as_problem(X, y, n_nonzero_coefs=2)
        result = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact")
        both = [problem.objective(least_squares_on(problem, np.array(S))) for S in ([0, 1], [1, 2])]
        assert result.status is Status.OPTIMAL
        assert result.objective <= min(both) * (1.0 + 1e-9)


@pytest.mark.parametrize("share", [1e-4, 1e-8, 1e-11, 1e-13])
def test_objectives_that_are_tiny_against_the_target_are_proven_from_the_data(share):
    """Products of columns know ½‖y‖² to 1e-16 of it: of a smaller objective they know nothing."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 8))
    X[:, 5] = X[:, 0] + 1e-3 * rng.standard_normal(30)
    y = X[:, :3].sum(axis=1) + np.sqrt(share) * rng.standard_normal(30)
    for form in ({"n_nonzero_coefs": 3}, {"alpha": share * (y @ y)}):
        result = blockl0.solve(X, y, method="exact", **form)
        best = min(
            0.5 * np.linalg.lstsq(X[:, S], y, rcond=None)[1][0] + form.get("alpha", 0.0) * len(S)
            for S in oracles.subsets(range(8), form.get("n_nonzero_coefs"))
            if S
        )
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-6)


def proven(problem, bound):
    """The search itself, from nothing."""
    search = ExactSearch(bound, np.empty(0, dtype=np.int64))
    while not search.finished:
        search.advance(7)
    return search


@pytest.mark.parametrize(
    "limits",
    [
        {"EASY_COLUMNS": 0, "RELAX_FROM": 2},
        {"EASY_NODES": 1, "RELAX_FROM": 2},
        {"MORE_NOTES": 2, "FIRST_LEVELS": 1, "MOST_REMEMBERED": 1},
        {"MOST_PARTS": 1},
    ],
    ids=lambda limits: " ".join(limits),
)
def test_what_only_large_problems_reach_is_true_too(limits, monkeypatch):
    """Relaxation, restart, growth, forgetting and one part for all, on problems that are known."""
    for name, value in limits.items():
        module = next(m for m in (dependence, exact_search) if hasattr(m, name))
        monkeypatch.setattr(module, name, value)
    for seed in range(70):
        problem = hostile.make_hostile(seed, 8)
        bound = as_problem(problem.X, problem.y, **problem.options)
        truth = hostile.enumerate_supports(problem, bound.keep)
        if not truth.allowed.any():
            continue
        found = proven(problem, bound).incumbent
        slack = truth.slack(truth.best)
        slack += truth.nothing[hostile.mask_of(np.flatnonzero(found.w))]
        assert found.objective <= truth.objective[truth.best] + slack, seed


@pytest.mark.parametrize("limits", [{"LISTED": 1}, {"FIT_LIMIT": 2}], ids=str)
def test_certificates_out_of_reach_say_so(limits, monkeypatch):
    """With hardly any fits allowed a certificate may be refused, but what is said is still true."""
    for name, value in limits.items():
        monkeypatch.setattr(moves if hasattr(moves, name) else move_search, name, value)
    # nearly parallel columns: every pair has to be fitted
    rng = np.random.default_rng(0)
    X = np.outer(rng.standard_normal(12), np.ones(7)) + 1e-6 * rng.standard_normal((12, 7))
    refused = 0
    for share in (1e-3, 3e-2):
        y = rng.standard_normal(12)
        problem = hostile.Hostile(X, y, {"alpha": share * (y @ y)})
        bound, truth = as_problem(X, y, **problem.options), hostile.enumerate_supports(problem)
        best = blockl0.solve(X, y, method="exact", **problem.options)
        for support in (best.support, np.arange(2), np.arange(1)):
            point = least_squares_on(bound, support)
            for level in (2, 3):
                try:
                    answer = blockl0.certify(X, y, point, level=level, **problem.options)
                except blockl0.OutOfReachError:
                    refused += 1
                    continue
                assert not hostile_checks._wrong_certificate(answer, point, truth, bound, problem)
    assert refused


# larger than can be enumerated: single moves ------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_certificates_of_the_default_solver_hold(seed):
    """No addition, removal or, under a full budget, swap improves; from 20 columns on."""
    problem = hostile.make_hostile(500 + seed, 26, 20)
    bound = as_problem(problem.X, problem.y, **problem.options)
    result = blockl0.solve(problem.X, problem.y, random_state=0, effort="fast", **problem.options)
    if result.certificate is None:
        # only of fits that are perfect but for rounding nothing is said, or of shaky ones
        assert result.status is Status.CONVERGED
        return
    budget = bound.sparsity.budget
    support, n = result.support.tolist(), bound.n_features
    outside = [j for j in range(n) if j not in support]
    loose = [j for j in support if j not in bound.keep]
    moves = [sorted({*support} - {j}) for j in loose]
    moves += [[*support, i] for i in outside] if len(support) < budget else []
    if result.certificate.level == 2:
        moves += [[*sorted({*support} - {j}), i] for j in loose for i in outside]
    least = result.objective * (1.0 - 2e-8) - 1e-12 * bound.smooth(np.zeros(n))
    for move in moves:
        w = least_squares_on(bound, np.array(sorted(move), dtype=np.int64))
        shaky = (
            1e-14
            * np.abs(w).max(initial=0.0)
            * np.abs(problem.dense).max()
            * (1 + result.objective)
        )
        if np.count_nonzero(w) == len(move):
            assert bound.objective(w) >= least - shaky * np.linalg.norm(problem.y)


def test_a_hidden_pair_is_found_by_moves():
    """Both columns of a near-duplicate pair together fit y; one of them is in the support."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((40, 30)), rng.standard_normal(40)
    X[:, 7] = X[:, 3] + 1e-6 * y
    problem = as_problem(X, y, n_nonzero_coefs=2)

    def check(support, entering):
        w, fits = least_squares_on(problem, support), make_fits(problem)
        moves = UnitMoves(problem, fits, entering=entering)
        least = rounding_of(problem, w)
        return moves.check(w, problem.objective(w), least, most_refits=400, units=support)

    for support, entering in (([3], np.arange(4, 30)), ([3, 5], np.array([7]))):
        better = check(np.array(support), entering).better
        assert np.flatnonzero(better).tolist() == [3, 7]


def near_combinations(seed):
    """20 to 25 columns, some sums of others to 3 to 8 digits, and coefficients of any size."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(8, 30)), int(rng.integers(20, 26))
    X = rng.standard_normal((m, n))
    for _ in range(rng.integers(1, 8)):
        a, b, c = rng.choice(n, 3, replace=False)
        noise = 10.0 ** rng.uniform(-7.9, -2.5) * rng.standard_normal(m)
        X[:, b] = X[:, a] * rng.integers(2) + X[:, c] * rng.choice([1.0, 0.5]) + noise
    w = rng.standard_normal(n) * (rng.random(n) < 0.3) * 10.0 ** rng.uniform(-1, 3, n)
    y = X @ w + 10.0 ** rng.uniform(-5, 0) * rng.standard_normal(m)
    if rng.random() < 0.6:
        return X, y, {"n_nonzero_coefs": int(rng.integers(1, min(n, m, 8)))}
    return X, y, {"alpha": float(y @ y) * 10.0 ** rng.uniform(-9, -1)}


@pytest.mark.parametrize("batch", range(6))
def test_converged_points_have_no_better_neighbour(batch):
    """Also where a pool loses its way in rounding, and no certificate is given."""
    for seed in range(100 * batch, 100 * batch + 25):
        X, y, form = near_combinations(seed)
        problem = as_problem(X, y, **form)
        result = blockl0.solve(X, y, random_state=0, effort="fast", **form)
        support, n = result.support, X.shape[1]
        outside = np.setdiff1d(np.arange(n), support)
        moves_ = [np.setxor1d(support, [j]) for j in range(n)]
        moves_ += [np.setxor1d(support, [i, j]) for i in support for j in outside]
        tolerance = 2e-11 * problem.smooth(np.zeros(n)) + rounding_of(problem, result.coef)
        for move in moves_:
            if move.size <= problem.sparsity.budget:
                w = least_squares_on(problem, move.astype(np.int64))
                # a fit with huge coefficients is known to so many digits only
                shaky = 1e-14 * np.abs(w) @ np.linalg.norm(X, axis=0) * np.linalg.norm(y)
                better = result.objective - problem.objective(w)
                assert better <= tolerance + shaky, (seed, support, move)


# loops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [6, 30, 43])
def test_nearly_parallel_columns_do_not_go_in_circles(n):
    """All columns within 1e-5 of one line: moves undid each other by rounding, without an end."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.outer(rng.standard_normal(19), rng.standard_normal(n))
        X += 10.0 ** rng.uniform(-7, -4) * rng.standard_normal((19, n))
        y = 10.0 * X @ rng.standard_normal(n)
        for form in ({"alpha": 1e-3 * (y @ y)}, {"n_nonzero_coefs": n // 3}):
            blockl0.solve(X, y, random_state=0, effort="fast", **form)  # compiles
            started = time.process_time()
            blockl0.solve(X, y, random_state=0, **form)
            # milliseconds; it was minutes
            assert time.process_time() - started < 5.0


def near_copies():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 20))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(200)
    return np.hstack([X, X + 1e-5 * rng.standard_normal((200, 20))]), y, 8


def many_circuits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 600))
    for j in range(6):
        X[:, 590 + j] = X[:, 2 * j] + X[:, 2 * j + 1]
    return X, X[:, :12].sum(axis=1) + 5.0 * rng.standard_normal(900), 15


def tall_copies():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, 40))
    X[:, 20:] = X[:, :20] + 1e-6 * rng.standard_normal((20_000, 20))
    return X, X[:, :6].sum(axis=1) + rng.standard_normal(20_000), 8


@pytest.mark.slow
@pytest.mark.parametrize("make", [near_copies, many_circuits, tall_copies])
def test_time_limits_are_kept_on_dependent_columns(make):
    """In the splitting into parts, in the judging of doubts, and between parts."""
    X, y, k = make()
    blockl0.solve(X[:300, :24], y[:300], n_nonzero_coefs=2, method="exact", random_state=0)
    started = time.process_time()
    result = blockl0.solve(X, y, n_nonzero_coefs=k, method="exact", time_limit=1.0, random_state=0)
    # one step, the set-up or a fit, may be in progress; a part may have to be compiled
    assert time.process_time() - started < 15.0
    assert result.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    assert 0.0 <= result.lower_bound <= result.objective


# memory -------------------------------------------------------------------------------------------


def test_public_entries_on_hostile_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [name for seed in range(40) for name in hostile_checks.call_entries(seed)]
    assert {entry.__name__ for entry in hostile_checks.ENTRIES} < set(names)
