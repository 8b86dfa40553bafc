"""Working sets: distinct, sorted, of the right size, reproducible, every coordinate reachable."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from blockl0.dec.state import GramState, StreamState
from blockl0.dec.working_set import Cyclic, RandomGreedy, as_working_set
from blockl0.problem.problem import as_problem


@pytest.fixture(params=[GramState, StreamState])
def state(request, rng):
    X, y = rng.standard_normal((15, 12)), rng.standard_normal(15)
    w = np.zeros(12)
    w[[1, 4, 5, 9]] = rng.standard_normal(4)
    return request.param(as_problem(X, y, n_nonzero_coefs=4, alpha=0.1), w)


def scores(state):
    """c on the zeros and d on the support, straight from the objective."""
    problem, w = state.problem, state.w
    X, score = problem.design.columns(np.arange(w.size)), np.zeros(w.size)
    for i in range(w.size):
        step = -w[i] if w[i] else X[:, i] @ (problem.y - X @ w) / (X[:, i] @ X[:, i])
        moved = w + step * np.eye(w.size)[i]
        price = problem.sparsity.price * (np.count_nonzero(moved) - np.count_nonzero(w))
        score[i] = problem.smooth(moved) - problem.smooth(w) + price
    return score


@pytest.mark.parametrize("greedy", ["split", "ranked"])
@pytest.mark.parametrize("text", ["R3G2", "R10G2", "R0G5", "R4G0", "R0G12", "R12G0", "R40G40"])
def test_blocks_are_sorted_distinct_and_sized(state, rng, text, greedy):
    chooser = as_working_set(text, greedy)
    for _ in range(20):
        block = chooser.select(state, rng)
        assert block.size == min(12, chooser.n_random + chooser.n_greedy)
        assert np.array_equal(np.unique(block), block)
        assert block[0] >= 0 and block[-1] < 12


def test_ranked_takes_the_lowest_scores(state, rng):
    for j in range(1, 12):
        picked = RandomGreedy(0, j, "ranked").select(state, rng)
        assert set(picked) == set(np.argsort(scores(state))[:j])
        state.memo.clear()


def test_split_takes_half_from_zeros_and_half_from_the_support(state, rng):
    order = np.argsort(scores(state))
    zeros, support = order[state.w[order] == 0], order[state.w[order] != 0]
    for j in range(1, 9):
        state.memo.clear()
        picked = RandomGreedy(0, j, "split").select(state, rng)
        # the odd one comes from the support
        assert set(picked) == set(zeros[: j // 2]) | set(support[: j - j // 2])
    for j in (10, 11, 12):  # the support has four only: the zeros fill up
        state.memo.clear()
        picked = RandomGreedy(0, j, "split").select(state, rng)
        assert set(picked) == set(zeros[: j - 4]) | set(support)


def test_split_with_no_zeros_or_no_support_still_fills_the_block(rng):
    X, y = rng.standard_normal((15, 6)), rng.standard_normal(15)
    for w in (np.zeros(6), rng.standard_normal(6)):
        state = GramState(as_problem(X, y, alpha=0.1), w)
        assert RandomGreedy(0, 4).select(state, rng).size == 4


def test_greedy_part_follows_a_move(state, rng):
    chooser = RandomGreedy(0, 3, "ranked")
    chooser.select(state, rng)
    state.move(np.array([1, 2]), np.array([0.0, 3.0]))
    assert set(chooser.select(state, rng)) == set(np.argsort(scores(state))[:3])


def test_random_part_reaches_every_coordinate_equally_often(state, rng):
    chooser = RandomGreedy(3, 2)
    greedy = set(RandomGreedy(0, 2).select(state, rng))
    counts = np.zeros(12)
    for _ in range(3000):
        counts[chooser.select(state, rng)] += 1
    assert set(np.flatnonzero(counts == 3000)) == greedy
    others = np.delete(counts, sorted(greedy))
    # binomial(3000, 0.3): five standard deviations are 126
    assert np.all(np.abs(others - 900) < 126)


def test_same_seed_same_blocks(state):
    chooser = RandomGreedy(4, 2)
    runs = [
        [chooser.select(state, rng).tolist() for _ in range(10)]
        for rng in (np.random.default_rng(5), np.random.default_rng(5))
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("size", [1, 2, 3, 12, 20])
def test_cyclic_sees_every_block_once_per_round(state, rng, size):
    chooser = as_working_set(f"cyclic{size}")
    length = chooser.cycle_length(12)
    for _ in range(2):
        blocks = []
        for _ in range(length):
            blocks.append(tuple(chooser.select(state, rng)))
            state.iteration += 1
        assert blocks == list(combinations(range(12), min(size, 12)))


def test_cyclic_starts_afresh_with_a_new_run(state, rng):
    chooser = Cyclic(2)
    chooser.select(state, rng)
    assert chooser.select(state, rng).tolist() == [0, 1]
    state.iteration = 1
    assert chooser.select(state, rng).tolist() == [0, 2]


def test_names_and_objects():
    assert repr(as_working_set("R10G2")) == "R10G2(split)"
    assert repr(as_working_set("cyclic")) == "cyclic2"
    chooser = Cyclic(3)
    assert as_working_set(chooser) is chooser


@pytest.mark.parametrize("bad", ["", "R10", "G2", "r1g1", "R-1G2", "R0G0", "cyclic0", "random", 3])
def test_unknown_working_sets_are_refused(bad):
    with pytest.raises(ValueError, match="working_set"):
        as_working_set(bad)


def test_unknown_greedy_is_refused():
    with pytest.raises(ValueError, match="'ranked', 'split'"):
        as_working_set("R1G1", "half")
