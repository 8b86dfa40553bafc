"""Every method looks at the clock often, ends soon after it, and returns a sound point."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import Status
from blockl0.baselines import cvx_l1, proximal_gradient
from blockl0.data import design, panels
from blockl0.dec import decomposition
from blockl0.errors import OutOfTime
from blockl0.estimators import folds
from blockl0.exact import units
from blockl0.problem.problem import as_problem
from blockl0.run import Timer, look, timed_by
from blockl0.search import search as refit_search

BUDGET, PRICE = {"n_nonzero_coefs": 4}, {"alpha": 0.6}
STRUCTURES: dict[str, dict[str, Any]] = {
    "budget": BUDGET,
    "price": PRICE,
    "ridge": {**BUDGET, "ridge": 0.5},
    "groups": {"n_nonzero_coefs": 3, "feature_groups": np.repeat(np.arange(8), 3)},
    "positive": {**BUDGET, "positive": True},
    "bounds, price": {**PRICE, "bounds": (-1.0, 0.7)},
    "keep": {**BUDGET, "keep": [5]},
    "costs": {**PRICE, "costs": {0: 2.0}},
}
LOSSES = ("huber", "logistic", "poisson", "softmax")
PACKAGE = str(Path(blockl0.__file__).parent)
MOST_LATE_READS, MOST_CALLS, GROWTH, BEGINNING = 40, 1000, 1.5, 300
"""Readings after the end; and calls of functions between two, at most and three times as large."""
CALLS = [
    *((method, "squared", name) for method in ("refit", "exact") for name in STRUCTURES),
    *((method, loss, name)
      for method in ("refit", "exact") for loss in LOSSES for name in ("ridge", "groups")),
    *((method, "squared", "budget") for method in (
        "dec", "pgm", "apgm", "qpm", "ssp", "romp", "omp", "cosamp", "cvx-l1", "forward")),
    *((method, "squared", "price") for method in ("dec", "pgm-l0", "apgm-l0", "pgm-l1", "pgm-lp")),
    *((method, "logistic", "price") for method in ("dec", "pgm-l0", "pgm-lp")),
    ("refit", "squared", "sparse"), ("exact", "squared", "responses"),
]  # fmt: skip


def make(loss: str, structure: str, n: int = 24) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, n)) + 0.5 * rng.standard_normal((50, 1))
    eta = X[:, :4] @ [1.5, -1.0, 0.8, 0.6] + rng.standard_normal(50)
    y: Any = {
        "logistic": eta > 0.0,
        "poisson": rng.poisson(np.exp(0.4 * eta)),
        "softmax": np.digitize(eta, [-0.7, 0.7]),
    }.get(loss, eta)
    given = dict(STRUCTURES.get(structure, BUDGET))
    if structure == "groups":
        given["feature_groups"] = np.arange(n) // 3
        given["ridge"] = 0.0 if loss == "squared" else 0.5
    if structure == "sparse":
        X = sp.csc_array(np.where(np.abs(X) > 1.0, X, 0.0))
    if structure == "responses":
        y = np.column_stack([y, -eta, rng.standard_normal(50)])
    return X, y, {**given, "loss": loss}


class Clock:
    """A clock that stands until it has been read so often, and then is far beyond any limit."""

    def __init__(self, n_reads: float = np.inf) -> None:
        self.n_reads, self.n_made = n_reads, 0

    def __call__(self) -> float:
        self.n_made += 1
        return 0.0 if self.n_made <= self.n_reads else 1e6


@pytest.fixture
def small_steps(monkeypatch):
    """Panels and chunks of few columns, as if problems were large."""
    monkeypatch.setattr(panels, "STEP", 300.0)
    monkeypatch.setattr(panels, "LEAST", 5)
    monkeypatch.setattr(panels, "MOST", 9)
    monkeypatch.setattr(design, "SPARSE_PRODUCTS", 100.0)


@pytest.mark.parametrize(("method", "loss", "structure"), CALLS)
def test_wherever_the_time_is_up_a_call_ends_soon_with_a_sound_point(
    monkeypatch, small_steps, method, loss, structure
):
    X, y, given = make(loss, structure)
    problem = as_problem(X, y, **given)
    best = blockl0.solve(X, y, method="exact", random_state=0, **given)
    n_reads, statuses = 1.0, set()
    while Status.TIME_LIMIT in statuses or not statuses:
        clock = Clock(n_reads)
        with monkeypatch.context() as patch:
            patch.setattr("blockl0.run.time.perf_counter", clock)
            result = blockl0.solve(X, y, method=method, random_state=0, time_limit=1.0, **given)
        assert clock.n_made <= n_reads + MOST_LATE_READS
        assert problem.sparsity.allows(result.n_nonzero) or structure == "groups"
        assert result.objective == pytest.approx(
            problem.objective(problem.from_given(result.coef)), rel=1e-9
        )
        if result.lower_bound is not None and best.status is Status.OPTIMAL:
            assert result.lower_bound <= best.objective * (1.0 + 1e-9)
        if result.status is not Status.TIME_LIMIT or n_reads > 3000:
            break
        statuses.add(result.status)
        n_reads = np.ceil(1.7 * n_reads)


@pytest.mark.parametrize(("method", "loss", "structure"), CALLS)
def test_the_steps_between_two_looks_do_not_grow_with_the_problem(
    monkeypatch, small_steps, method, loss, structure
):
    """Calls of functions of this package are counted, between two readings of the clock."""
    most = []
    for n in (24, 72):
        X, y, given = make(loss, structure, n)
        blockl0.solve(X, y, method=method, random_state=0, time_limit=0.2, **given)
        most.append(calls_between_looks(monkeypatch, X, y, method, given))
    assert max(most) <= MOST_CALLS
    assert most[1] <= GROWTH * most[0] + BEGINNING


def calls_between_looks(monkeypatch, X, y, method, given) -> int:
    """Return the most calls between two readings."""
    counted, most = 0, 0
    clock = Clock(4000.0)

    def read() -> float:
        nonlocal counted, most
        most, counted = max(most, counted), 0
        return clock()

    def count(frame, event, _) -> None:
        nonlocal counted
        counted += event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    with monkeypatch.context() as patch:
        patch.setattr("blockl0.run.time.perf_counter", read)
        sys.setprofile(count)
        try:
            blockl0.solve(X, y, method=method, random_state=0, time_limit=1.0, **given)
        finally:
            sys.setprofile(None)
    return max(most, counted)


PREPARATIONS = {
    ("dec", "budget"): (decomposition, "start_state"),
    ("cvx-l1", "budget"): (cvx_l1, "lipschitz_estimate"),
    ("pgm-lp", "price"): (proximal_gradient, "lipschitz_estimate"),
    ("exact", "groups"): (units, "_null_space"),
    ("exact", "budget"): (refit_search, "improve"),
}


@pytest.mark.parametrize(("method", "structure"), PREPARATIONS)
def test_ctrl_c_while_a_method_prepares_returns_a_point(monkeypatch, method, structure):
    """The start, or zero where there is none."""
    where, name = PREPARATIONS[method, structure]
    # so many groups that their subsets are not enumerated
    n = 150 if structure == "groups" else 24
    X, y, given = make("squared", structure, n)

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, name, interrupted)
    start = np.zeros(n)
    start[3] = 0.7
    for init in (None, start):
        result = blockl0.solve(X, y, method=method, init=init, random_state=0, **given)
        assert result.status is Status.INTERRUPTED
        objective = as_problem(X, y, **given).objective(result.coef)
        assert result.objective == pytest.approx(objective)
        if init is not None and method != "exact":
            np.testing.assert_array_equal(result.coef, start)


def test_ctrl_c_in_workers_of_a_cross_validation_is_ctrl_c(monkeypatch):
    """What joblib makes of it while its threads begin is no other error."""

    def broken(*_, **__):
        try:
            raise KeyboardInterrupt
        finally:
            raise RuntimeError("cannot join thread before it is started")

    monkeypatch.setattr(folds, "Parallel", lambda **_: broken)
    X, y, _ = make("squared", "budget")
    with pytest.raises(KeyboardInterrupt):
        blockl0.L0RegressorCV(n_nonzero_coefs=3, cv=3, n_jobs=2).fit(X, y)


@pytest.mark.parametrize("level", ["basic", "L", 1, 2, 3, 24])
@pytest.mark.parametrize("structure", ["budget", "price", "groups"])
def test_a_certificate_that_is_late_says_so(monkeypatch, small_steps, level, structure):
    X, y, given = make("squared", structure)
    if structure == "groups" and level in ("L", 3):
        pytest.skip("not known of groups")
    level = 8 if structure == "groups" and level == 24 else level
    coef = blockl0.solve(X, y, random_state=0, **given).coef
    whole = blockl0.certify(X, y, coef, level=level, **given)
    n_reads, is_late = 1.0, True
    while is_late and n_reads < 3000:
        clock = Clock(n_reads)
        with monkeypatch.context() as patch:
            patch.setattr("blockl0.run.time.perf_counter", clock)
            found = blockl0.certify(X, y, coef, level=level, time_limit=1.0, **given)
        is_late = found.status is Status.TIME_LIMIT
        assert clock.n_made <= n_reads + MOST_LATE_READS
        assert found.objective == whole.objective and found.ridge == whole.ridge
        if is_late:
            assert not found.complete and found.n_blocks == 0 and found.confidence == 0.0
            assert str(found).startswith("Not known")
        else:
            assert found.holds == whole.holds and found.complete
        n_reads = np.ceil(1.7 * n_reads)


def test_a_finished_proof_is_kept_where_its_note_is_late(monkeypatch, small_steps):
    """Supports of nearly dependent columns are looked for after the proof."""
    X, y, given = make("squared", "budget", 8)
    X[:, 7] = X[:, 3] + 1e-9 * np.random.default_rng(0).standard_normal(50)
    given["n_nonzero_coefs"] = 2
    y = y + 1e10 * (X[:, 7] - X[:, 3])
    best = blockl0.solve(X, y, method="exact", **given)
    assert best.near_dependent == (3, 7)
    said, statuses, n_reads = set(), set(), 1.0
    while n_reads < 400:
        with monkeypatch.context() as patch:
            patch.setattr("blockl0.run.time.perf_counter", Clock(n_reads))
            found = blockl0.certify(X, y, best.coef, level=8, time_limit=1.0, **given)
            patch.setattr("blockl0.run.time.perf_counter", Clock(n_reads))
            solved = blockl0.solve(X, y, method="exact", time_limit=1.0, **given)
        assert found.complete == (found.status is not Status.TIME_LIMIT)
        statuses.add(found.complete)
        proven = [found] if found.complete else []
        for answer in [*proven, solved] if solved.status is Status.OPTIMAL else proven:
            is_late = answer.near_dependent is None
            assert is_late or answer.near_dependent == (3, 7)
            assert ("no time to look for supports" in str(answer)) == is_late
            said.add(is_late)
        n_reads = np.ceil(1.05 * n_reads)
    assert statuses == {False, True} and said == {False, True}


def test_a_late_sample_says_how_many_blocks_it_had(monkeypatch):
    X, y, given = make("squared", "budget")
    coef = blockl0.solve(X, y, random_state=0, **given).coef
    monkeypatch.setattr("blockl0.run.time.perf_counter", Clock(60))
    found = blockl0.certify(
        X, y, coef, level=3, n_samples=500, random_state=0, time_limit=1.0, **given
    )
    assert found.status is Status.TIME_LIMIT and 0 < found.n_blocks < 500 and not found.complete
    assert found.confidence == pytest.approx(0.05 ** (1.0 / found.n_blocks))


def test_a_clock_limits_the_runs_inside_it():
    X, y, given = make("squared", "budget")
    with timed_by(Timer(-1.0)):
        assert blockl0.solve(X, y, **given).status is Status.TIME_LIMIT
        with timed_by(None):
            assert blockl0.solve(X, y, **given).status is not Status.TIME_LIMIT
        with timed_by(Timer(1e6)), pytest.raises(OutOfTime):
            look()
    with timed_by(Timer(1.0)):
        look(1e6)
        with pytest.raises(OutOfTime):
            look(1e13)


def test_a_limit_that_the_compiler_used_up_says_so(monkeypatch):
    X, y, given = make("squared", "budget")
    spent = iter([0.0, *[0.7] * 10_000])
    monkeypatch.setattr("blockl0.run.compile_seconds", lambda: next(spent))
    monkeypatch.setattr("blockl0.run.time.perf_counter", Clock(3))
    result = blockl0.solve(X, y, time_limit=1.0, **given)
    assert result.status is Status.TIME_LIMIT
    assert result.note is not None and "took 0.7 s of the time limit" in result.note
    assert "Compiling" in result.summary()
