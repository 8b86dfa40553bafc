"""Searches that ask for passes together, and prices that are remembered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blockl0 import Status, l0_path, solve
from blockl0.problem.blocks import Blocks
from blockl0.refit.price_memory import MOST, PriceMemory
from blockl0.refit.pricing import Priced
from blockl0.storage import ArraySource
from blockl0.storage.side_by_side import SideBySide


def draw(m=80, n=2500, k=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((m, n)))
    return X, X[:, :k] @ np.ones(k) + 1.5 * rng.standard_normal(m)


def test_questions_are_answered_together():
    served, order = [], []

    def serve(questions):
        served.append(list(questions))
        return [10 * q for q in questions]

    desk = SideBySide(serve)

    def task(name, times):
        total = 0
        for i in range(times):
            order.append(name)
            total += desk.ask(i)
        return total

    assert desk.run([lambda: task("a", 3), lambda: task("b", 1), lambda: task("c", 0)]) == [
        30,
        0,
        0,
    ]
    assert served == [[0, 0], [1], [2]]
    assert order == ["a", "b", "a", "a"]
    # outside of tasks an answer comes at once
    assert desk.ask(7) == 70


def test_errors_of_tasks_and_of_answers_come_through():
    desk = SideBySide(lambda questions: [1 // q for q in questions])
    with pytest.raises(KeyError, match="own"):
        desk.run([lambda: desk.ask(1), lambda: {}["own"]])
    with pytest.raises(ZeroDivisionError):
        desk.run([lambda: desk.ask(0), lambda: desk.ask(1)])


def test_ctrl_c_reaches_every_task():
    told = []

    def serve(questions):
        raise KeyboardInterrupt

    desk = SideBySide(serve)

    def task():
        try:
            return desk.ask(0)
        except KeyboardInterrupt:
            return "ended"

    assert desk.run([task, task], lambda: told.append(1)) == ["ended", "ended"]
    assert told == [1]


def test_a_memory_tells_the_best_columns(rng):
    n, memory = 50, PriceMemory(7)
    gains, swaps = rng.random(n), rng.standard_normal(n)
    support = np.array([1, 4])
    memory.put(support, Priced(gains, swaps, np.array([3])))
    found = memory.get(support, n)
    assert memory.get(np.array([1]), n) is None and found is not None
    for price in (0.3, np.inf):
        want, have = np.minimum(price - gains, swaps), found.change(price)
        best = np.argsort(want)[:7]
        np.testing.assert_array_equal(have[best], want[best])
        assert set(np.argsort(have)[:7]) == set(best)
    for i in range(MOST):
        memory.put(np.array([i, 60]), Priced(gains, swaps, np.array([3])))
    assert memory.get(support, n) is None


@pytest.mark.parametrize("effort", ["fast", 2])
def test_a_path_of_blocks_takes_few_passes_and_is_the_same(effort):
    X, y = draw()
    design = Blocks(ArraySource(X, [100, 900, 2500]))
    given: Any = {"n_nonzero_coefs": 8, "random_state": 0, "pool": 60, "effort": effort}
    here, there = l0_path(design, y, **given), l0_path(X, y, **given)
    np.testing.assert_allclose(here.objective, there.objective, rtol=1e-12)
    assert [s.tolist() for s in here.supports] == [s.tolist() for s in there.supports]
    assert sum(point.n_passes or 0 for point in here) == pytest.approx(design.n_read, abs=2.0)
    assert design.n_read < 0.6 * sum(point.n_passes or 0 for point in there)
    for k, point in zip(here.n_nonzero_coefs, here, strict=True):
        options: Any = {"pool": 60, "effort": effort, "random_state": 0}
        alone = solve(X, y, n_nonzero_coefs=int(k), **options)
        assert point.objective <= alone.objective * (1.0 + 1e-12)
        assert point.certificate is not None and point.certificate.holds


def test_a_path_of_blocks_that_is_stopped():
    X, y = draw(seed=2)
    design = Blocks(ArraySource(X, [900, 2500]))
    path = l0_path(design, y, n_nonzero_coefs=5, random_state=0, pool=60, callback=lambda _: True)
    assert all(point.status is Status.STOPPED for point in path)
    assert np.all(np.diff(path.objective) <= 0.0)
    path = l0_path(design, y, n_nonzero_coefs=5, random_state=0, pool=60, time_limit=1e-9)
    assert all(point.status is Status.TIME_LIMIT for point in path)


def test_a_source_that_fails_in_a_pass_is_told():
    X, y = draw(seed=3)

    class Fails(ArraySource):
        n_left = 7

        def block(self, i):
            self.n_left -= 1
            if self.n_left < 0:
                raise OSError("the disk is gone")
            return super().block(i)

    with pytest.raises(OSError, match="the disk is gone"):
        l0_path(Blocks(Fails(X, [900, 2500])), y, n_nonzero_coefs=8, random_state=0, pool=60)
