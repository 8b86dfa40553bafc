"""The swept pool, the table of blocks and brute force agree, for every kind of problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import structures
from blockl0.data.gram_rows import GramRows
from blockl0.moves.pool import Pool
from blockl0.moves.tableau import UnitRules
from blockl0.moves.unit_table import UnitTable
from blockl0.problem.problem import Sparsity, as_problem
from blockl0.run import Tally
from blockl0.search.annealing import Walker, last_price

SEEDS = range(12)


def drawn(kind, seed):
    """A random small problem of a kind with independent columns, and its pool."""
    case = structures.draw(kind, seed)
    rng = np.random.default_rng([seed, 1])
    X = rng.standard_normal((case.X.shape[1] + 6, case.X.shape[1]))
    y = X @ rng.standard_normal((X.shape[1], *case.y.shape[1:])) + rng.standard_normal(
        (len(X), *case.y.shape[1:])
    )
    case = case._replace(X=X, y=y)
    problem = as_problem(X, y, **case.given)
    pool = Pool(
        problem, np.arange(problem.n_units), problem.gradient_at_zero, problem.sq_norms, 1e-12
    )
    pool.know_all()
    return case, problem, pool, rng


def value_of(case, problem, units):
    """The least smooth part on some units, and their price."""
    columns = problem.units.columns(np.asarray(sorted(units), dtype=np.int64))
    fit = structures.fit_value(case, columns.tolist())
    return fit + problem.cost(np.asarray(sorted(units), dtype=np.int64))


def random_support(problem, rng):
    budget, keep = problem.sparsity.budget, problem.keep
    others = rng.permutation(np.setdiff1d(np.arange(problem.n_units), keep))
    size = int(rng.integers(0, max(budget - keep.size, 0) + 1))
    return np.sort(np.concatenate([keep, others[:size]])).astype(np.int64)


@pytest.mark.parametrize("kind", structures.KINDS)
def test_a_pool_holds_the_fit_of_its_support_after_any_moves(kind):
    for seed in SEEDS:
        case, problem, pool, rng = drawn(kind, seed)
        for _ in range(4):
            support = random_support(problem, rng)
            pool.move_to(support)
            assert np.array_equal(pool.support, support)
            here = value_of(case, problem, support)
            assert pool.objective + problem.smooth_at_zero == pytest.approx(here, abs=1e-8)


@pytest.mark.parametrize("kind", structures.KINDS)
def test_changes_are_those_of_the_table_of_blocks_and_of_fits(kind):
    for seed in SEEDS:
        case, problem, pool, rng = drawn(kind, seed)
        support = random_support(problem, rng)
        pool.load(support)
        gram = GramRows(problem.design, problem.weights, problem.ridge, Tally())
        slopes = problem.gradient_at_zero.reshape(problem.n_features, -1)
        table = UnitTable(gram, -slopes, UnitRules.of(problem), 1e-12)
        changes = table.changes(table.base(support))
        prices, of_blocks = pool.prices(), changes.best_entries()
        # the pool skips entries without a gain, and no removal alone is worse than these
        improves, removal = prices < 0.0, changes.removals.min(initial=0.0)
        np.testing.assert_allclose(prices[improves], of_blocks[improves], atol=1e-8)
        assert np.all(of_blocks[~improves] >= removal - 1e-8)
        here = value_of(case, problem, support)
        is_free = problem.bounds is None
        for unit, price in enumerate(prices):
            near = [{*support.tolist(), unit} - {int(out)} for out in pool.units[pool.movable]]
            if support.size < problem.sparsity.budget:
                near.append({*support.tolist(), unit})
            if unit in support or not near or price == np.inf:
                assert price == np.inf
                continue
            best = min(value_of(case, problem, units) for units in near) - here
            # within bounds it is a bound from below
            assert price <= best + 1e-8 or best >= removal - 1e-8
            if is_free:
                assert price == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("kind", structures.KINDS)
def test_a_descent_and_a_walk_end_at_fits(kind):
    for seed in SEEDS:
        case, problem, pool, _ = drawn(kind, seed)
        pool.load(problem.keep)
        pool.descend()
        here = value_of(case, problem, pool.support)
        assert pool.size <= problem.sparsity.budget
        assert set(problem.keep.tolist()) <= set(pool.support.tolist())
        assert pool.objective + problem.smooth_at_zero == pytest.approx(here, abs=1e-8)
        inside = set(pool.support.tolist())
        near = [inside | {j} for j in range(problem.n_units)] + [inside - {j} for j in inside]
        near += [(inside - {i}) | {j} for i in inside for j in range(problem.n_units)]
        near = [
            units
            for units in near
            if len(units) <= problem.sparsity.budget and set(problem.keep.tolist()) <= units
        ]
        least = min((value_of(case, problem, units) for units in near), default=here)
        assert here <= least + 1e-8
        if not problem.n_units or not pool.movable.size:
            continue
        last = max(last_price(pool), 1e-6)
        walker = Walker(pool, problem.n_units, last, None, np.random.default_rng(seed))
        walker.walk_from(problem.keep, 20.0 * last, last, 3e4, 1.0)
        value, support = walker.best(problem.sparsity.price)
        if value < np.inf:
            found = value_of(case, problem, support) - problem.smooth_at_zero
            assert value == pytest.approx(found, rel=1e-5)  # of single precision


def test_groups_of_one_are_columns():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 12)), rng.standard_normal(30)
    plain = as_problem(X, y, n_nonzero_coefs=4)
    order = rng.permutation(12)
    grouped = as_problem(X, y, n_nonzero_coefs=4, feature_groups=order)
    for problem in (plain, grouped, replace(grouped, sparsity=Sparsity(0.1, 4))):
        pool = Pool(problem, np.arange(12), problem.gradient_at_zero, problem.sq_norms)
        assert pool.structure is None
        pool.descend()
        here = problem.units.columns(pool.support)
        assert here.size == pool.size
