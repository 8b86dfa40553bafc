"""Exact searches end soon after their time limit, with a true bound: clocks count their reads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import Status
from blockl0.data import design as storage
from blockl0.data import panels
from blockl0.data.panels import cholesky, inverse_squares
from blockl0.errors import OutOfTime
from blockl0.exact import products, watch
from blockl0.exact.bounds import Node
from blockl0.exact.watch import Watch
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.run import Incumbent, timed_by
from blockl0.search.local_search import LocalSearch
from blockl0.search.quadratic_search import QuadraticSearch


class Reads:
    """A clock whose time is up at a certain read."""

    grace = 0.0

    def __init__(self, n_reads=np.inf):
        self.n_reads, self.n_made = n_reads, 0

    @property
    def seconds_left(self):
        self.n_made += 1
        return 1e-3 if self.n_made <= self.n_reads else -1.0


@pytest.fixture
def blocks(monkeypatch):
    """Blocks of few columns, as if problems were large."""
    monkeypatch.setattr(panels, "STEP", 80.0)
    monkeypatch.setattr(panels, "LEAST", 5)
    monkeypatch.setattr(panels, "MOST", 7)


def data(rng, m=60, n=30):
    X = rng.standard_normal((m, n)) + rng.standard_normal((m, 1))
    return X, X[:, :6].sum(axis=1) + 3.0 * rng.standard_normal(m)


@pytest.mark.parametrize("q", [0, 1, 7, 8, 9, 14, 30])
def test_blocks_make_the_same_factor(rng, blocks, q):
    A = rng.standard_normal((q + 5, q))
    H = A.T @ A + np.eye(q)
    L = cholesky(H.copy(order="F"))
    assert L is not None
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(H), rtol=1e-9, atol=1e-12)
    inverse = np.linalg.inv(H).diagonal()
    np.testing.assert_allclose(inverse_squares(L), inverse, rtol=1e-9)
    if q:
        np.testing.assert_allclose(panels.inverse(L), np.linalg.inv(H), rtol=1e-8, atol=1e-10)


def test_blocks_see_what_is_not_definite(rng, blocks):
    A = rng.standard_normal((40, 30))
    for bad in (0, 6, 7, 20, 29):
        H = A.T @ A
        H[bad, bad] = -1e-3
        assert cholesky(H.copy(order="F")) is None


@pytest.mark.parametrize("n_reads", [0, 1, 3])
def test_factors_end_with_the_clock(rng, blocks, n_reads):
    H = np.eye(30, order="F")
    A = rng.standard_normal((40, 30))
    for work in (
        lambda: cholesky(H.copy(order="F")),
        lambda: inverse_squares(H),
        lambda: panels.reflections(A),
        lambda: panels.orthogonal_factors(A),
        lambda: panels.products(A),
    ):
        clock = Reads(n_reads)
        with timed_by(clock), pytest.raises(OutOfTime):
            work()
        assert clock.n_made == n_reads + 1


@pytest.mark.parametrize("shape", [(1, 1), (30, 30), (41, 29), (100, 64)])
def test_panels_make_the_same_factors_and_products(rng, blocks, shape):
    A = np.asfortranarray(rng.standard_normal(shape))
    m, k = shape
    b = rng.standard_normal((m, 3))
    vectors, scales = panels.reflections(A)
    turned = panels.reflected_by(vectors, scales, b)
    np.testing.assert_allclose(panels.reflected_by(vectors, scales, turned, "N"), b, atol=1e-12)
    R = np.triu(vectors[:k])
    np.testing.assert_allclose(R.T @ R, A.T @ A, atol=1e-10)
    np.testing.assert_allclose(R.T @ turned[:k], A.T @ b, atol=1e-10)
    Q, R = panels.orthogonal_factors(A)
    np.testing.assert_allclose(Q @ R, A, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(np.abs(panels.triangle(A)), np.abs(R), atol=1e-10)
    np.testing.assert_allclose(panels.products(A), A.T @ A, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse", "centred"])
def test_products_end_with_the_clock(rng, blocks, monkeypatch, kind):
    X, y = data(rng)
    monkeypatch.setattr(storage, "GRAM_CHUNK", 4)
    monkeypatch.setattr("blockl0.data.centred.CHUNK_BYTES", 8 * 60 * 4)
    problem = as_problem(sp.csc_array(X) if kind == "sparse" else X, y, n_nonzero_coefs=3)
    design = apply(problem).problem.design if kind == "centred" else problem.design
    weights = rng.uniform(0.5, 2.0, 60)
    for given in (None, weights):
        clock = Reads(2)
        with timed_by(clock), pytest.raises(OutOfTime):
            design.full_gram(given)
        assert clock.n_made == 3


def test_a_relaxation_makes_as_many_sweeps_as_there_is_time_for(rng):
    problem = as_problem(*data(rng), n_nonzero_coefs=4)
    frame = products.frame_of_columns(problem, np.arange(30))
    for n_reads, most in ((np.inf, products.kernels.MOST_SWEEPS), (0, 0)):
        bounds = products.ProductBounds(problem, frame, Watch(Reads(n_reads)))
        node = Node(np.arange(0), np.arange(30), 0.0, np.zeros(30))
        node.d = 0.9 * np.full(30, np.linalg.eigvalsh(frame.H).min())
        relaxed = bounds.relax(node, np.inf, 0.0)
        assert bounds.n_sweeps <= most
        assert relaxed.bound <= blockl0.solve(*data_of(problem), n_nonzero_coefs=4).objective
    bounds = products.ProductBounds(problem, frame, Watch(Reads()))
    bounds._pace = 1e-3 / 30 / 5
    assert bounds._sweeps_left(30) in (4, 5)


def data_of(problem):
    return problem.design.columns(np.arange(problem.n_features)), problem.y


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_wherever_the_time_is_up_the_bound_is_true(rng, blocks, monkeypatch, ridge):
    from blockl0.exact import stages

    monkeypatch.setattr(stages, "SMALL", 0)
    X, y = data(rng)
    best = blockl0.solve(X, y, n_nonzero_coefs=6, ridge=ridge, method="exact", random_state=0)
    assert best.status is Status.OPTIMAL
    problem = as_problem(X, y, n_nonzero_coefs=6, ridge=ridge)
    start = Incumbent(np.zeros(30), problem.objective(np.zeros(30)), 0)
    seen = set()
    for n_reads in [*range(0, 60, 3), *range(60, 600, 60)]:
        clock = Reads(n_reads)
        search = stages.Stages(problem, start, Watch(clock), 0.0, 1e9)
        while not search.is_finished and clock.seconds_left > 0.0:
            search.advance(1)
        assert clock.n_made <= n_reads + 12
        assert search.bound <= best.objective * (1.0 + 1e-9)
        assert search.incumbent.objective >= best.objective * (1.0 - 1e-9)
        seen.add(round(search.bound, 6))
    assert len(seen) > 3  # the bound rises with the time


WORKS = {
    "tableaus": ({}, {}),
    "products": ({"ridge": 0.5}, {"SMALL": 0}),
    "rows": ({"ridge": 2.0, "loss": "huber"}, {}),
    "units": ({"feature_groups": np.repeat(np.arange(10), 3)}, {}),
    "units, rows": (
        {"loss": "huber", "ridge": 2.0, "feature_groups": np.repeat(np.arange(10), 3)}, {},
    ),
    "bounds": ({"positive": True}, {}),
}  # fmt: skip


@pytest.mark.parametrize("kind", WORKS)
def test_work_ends_a_search_at_the_same_node_however_slow_the_machine_is(rng, monkeypatch, kind):
    """The clock of a busy machine runs ahead: what is found and proven does not depend on it."""
    from blockl0.exact import stages

    options, sizes = WORKS[kind]
    for name, value in sizes.items():
        monkeypatch.setattr(stages, name, value)
    X, y = data(rng)
    problem = as_problem(X, y, n_nonzero_coefs=4, **options)
    whole = Watch()
    start = Incumbent.at(problem, problem.zero())
    search = stages.Stages(problem, start, whole, 0.0, 1e9)
    while not search.is_finished:
        search.advance(1)
    assert search.is_optimal and whole.work > 0.0
    for share in (0.01, 0.3, 0.7):
        limit, found = share * whole.work / watch.UNIT, []
        for pace in (0.0, 0.3):
            monkeypatch.setattr("blockl0.run.time.perf_counter", slow_clock(pace))
            result = blockl0.solve(
                X, y, n_nonzero_coefs=4, method="exact", random_state=0, work_limit=limit, **options
            )
            found.append((result.status, result.lower_bound, result.objective, result.n_iter))
        assert found[0] == found[1]
        assert result.lower_bound <= search.incumbent.objective * (1.0 + 1e-9)
        assert result.objective >= search.incumbent.objective * (1.0 - 1e-9)


def slow_clock(pace):
    """A clock that goes on by so many seconds whenever it is read."""
    now = [0.0]

    def read():
        now[0] += pace
        return now[0]

    return read


@pytest.mark.parametrize("bad", [0, -1.0, "much", np.nan])
def test_a_limit_of_work_is_positive(rng, bad):
    X, y = data(rng)
    with pytest.raises((ValueError, TypeError), match="work_limit"):
        blockl0.solve(X, y, n_nonzero_coefs=2, method="exact", work_limit=bad)


@pytest.mark.parametrize("method", ["refit", "exact"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("shape", [(60, 8), (100, 40)])
def test_without_time_the_start_is_not_given_up_for_nothing(rng, method, loss, shape):
    X = rng.normal(size=shape)
    y = X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=shape[0])
    y = y if loss == "squared" else np.where(y > 0.0, 1.0, -1.0)
    init = np.repeat([0.5, 0.0], [3, shape[1] - 3])
    problem = as_problem(X, y, loss=loss, n_nonzero_coefs=3)
    result = blockl0.solve(
        X, y, loss=loss, n_nonzero_coefs=3, init=init, method=method, time_limit=1e-9
    )
    assert problem.objective(init) < problem.objective(np.zeros(shape[1]))
    assert result.objective <= problem.objective(init) * (1.0 + 1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_start_stays_where_the_time_ends_while_it_settles(rng, monkeypatch, loss):
    X = rng.normal(size=(100, 40))
    y = X[:, :3].sum(axis=1) + 0.1 * rng.normal(size=100)
    y = y if loss == "squared" else np.where(y > 0.0, 1.0, -1.0)
    problem = as_problem(X, y, loss=loss, n_nonzero_coefs=3)

    def late(*_):
        raise OutOfTime

    for kind in (QuadraticSearch, LocalSearch):
        monkeypatch.setattr(kind, "settle", late)
    result = blockl0.solve(X, y, loss=loss, n_nonzero_coefs=3, init=np.eye(40)[0])
    assert result.status is Status.TIME_LIMIT
    assert result.objective < problem.objective(np.zeros(40))
