"""Searches that ask for passes together, and prices that are remembered."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from blockl0 import L0RegressorCV, Status, l0_path, solve
from blockl0.data.blocks import Blocks
from blockl0.data.passes import PassBatcher
from blockl0.errors import OutOfTime
from blockl0.moves.pricing import Priced
from blockl0.search.price_memory import MOST, PriceMemory
from blockl0.storage import ArraySource


def draw(m=80, n=2500, k=6, seed=0):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((m, n)))
    return X, X[:, :k] @ np.ones(k) + 1.5 * rng.standard_normal(m)


def test_questions_are_answered_together():
    served, order = [], []

    def serve(questions):
        served.append(list(questions))
        return [10 * q for q in questions]

    batcher = PassBatcher(serve)

    def task(name, times):
        total = 0
        for i in range(times):
            order.append(name)
            total += batcher.request(i)
        return total

    assert batcher.run([lambda: task("a", 3), lambda: task("b", 1), lambda: task("c", 0)]) == [
        30,
        0,
        0,
    ]
    assert served == [[0, 0], [1], [2]]
    assert order == ["a", "b", "a", "a"]
    # outside of tasks an answer comes at once
    assert batcher.request(7) == 70


def test_errors_of_tasks_and_of_answers_come_through():
    batcher = PassBatcher(lambda questions: [1 // q for q in questions])
    with pytest.raises(KeyError, match="own"):
        batcher.run([lambda: batcher.request(1), lambda: {}["own"]])
    with pytest.raises(ZeroDivisionError):
        batcher.run([lambda: batcher.request(0), lambda: batcher.request(1)])


def test_ctrl_c_reaches_every_task():
    told = []

    def serve(questions):
        raise KeyboardInterrupt

    batcher = PassBatcher(serve)

    def task():
        try:
            return batcher.request(0)
        except KeyboardInterrupt:
            return "ended"

    assert batcher.run([task, task], lambda: told.append(1)) == ["ended", "ended"]
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


class Slow(ArraySource):
    """A source that counts its blocks, and acts at one of them."""

    def __init__(self, X, act=None, at=-1):
        super().__init__(X, range(25, X.shape[1] + 1, 25))
        self.held_bytes, self.n_blocks, self._act, self._at = 50_000, 0, act, at

    def block(self, i):
        self.n_blocks += 1
        if self.n_blocks == self._at:
            self._act()
        return super().block(i)


LOSSES = {"squared": lambda y: y, "logistic": lambda y: (y > 0).astype(float)}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_path", [False, True])
def test_a_time_limit_ends_a_pass_between_two_blocks(loss, is_path):
    X, y = draw(seed=4)
    source, call = Slow(X), l0_path if is_path else solve
    target = LOSSES[loss](y)
    given: Any = {"n_nonzero_coefs": 6, "loss": loss, "ridge": 0.1, "random_state": 0}
    found = call(Blocks(source), target, time_limit=1e-9, **given)
    results = list(found) if is_path else [found]
    assert all(result.status is Status.TIME_LIMIT for result in results)
    # the first pass is whole, as it refuses bad entries; of others there is no more than a block
    assert 100 <= source.n_blocks <= 100 + 2 * len(results)


def ctrl_c():
    raise KeyboardInterrupt


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("at", [130, 250])
def test_ctrl_c_within_a_pass_returns_what_there_is(loss, at):
    X, y = draw(seed=5)
    source = Slow(X, ctrl_c, at)
    given: Any = {"n_nonzero_coefs": 6, "loss": loss, "ridge": 0.1, "random_state": 0, "pool": 60}
    found = solve(Blocks(source), LOSSES[loss](y), **given)
    assert found.status is Status.INTERRUPTED and source.n_blocks == at
    assert found.n_nonzero <= 6


def test_ctrl_c_within_a_cross_validation_ends_it():
    X, y = draw(seed=6, n=600)
    source = Slow(X, ctrl_c, 40)
    with pytest.raises(KeyboardInterrupt):
        L0RegressorCV(4, random_state=0).fit(source, y)
    assert source.n_blocks == 40


def test_an_error_of_one_task_ends_the_others():
    ended = []

    def waits():
        try:
            batcher.request(1)
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    batcher = PassBatcher(lambda questions: questions)
    with pytest.raises(KeyError, match="own"):
        batcher.run([waits, lambda: {}["own"], waits])
    for _ in range(100):
        if ended:
            break
        time.sleep(0.01)
    # the last one had not begun
    assert ended == ["_Ended"]


def test_tasks_of_tasks_ask_with_all_others():
    served = []

    def serve(questions):
        served.append(sorted(questions))
        return questions

    batcher = PassBatcher(serve)
    inner = [lambda i=i: batcher.request(i) for i in range(3)]
    found = batcher.run([lambda: batcher.run(inner), lambda: batcher.request(10)])
    assert found == [[0, 1, 2], 10] and served == [[0, 1, 2, 10]]


def test_a_second_walk_shares_passes_and_changes_nothing():
    X, y = draw(m=60, n=1500, k=8, seed=7)
    y = y + 3.0 * np.random.default_rng(1).standard_normal(60)
    given: Any = {"n_nonzero_coefs": 8, "random_state": 0, "effort": 24, "pool": 60}
    source = Slow(X)
    design = Blocks(source)
    here, there = solve(design, y, **given), solve(X, y, **given)
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    assert here.n_passes == round(design.n_read) < (there.n_passes or 0)


def test_an_end_of_time_is_told_once_to_each():
    n_served = []

    def serve(questions):
        n_served.append(len(questions))
        if len(n_served) == 1:
            raise OutOfTime
        return [10 * q for q in questions]

    batcher = PassBatcher(serve)
    told = []

    def task(number):
        try:
            batcher.request(number)
        except OutOfTime as end:
            told.append(end)
        return batcher.request(number)

    assert batcher.run([lambda: task(1), lambda: task(2)]) == [10, 20]
    assert n_served == [2, 2] and len({id(end) for end in told}) == 2
