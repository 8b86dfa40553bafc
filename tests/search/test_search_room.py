"""The refit room against enumeration: moves, prices, descents, settling, rounds.

Nothing here is compared with another heuristic. `value_on` fits a support by itself, by least
squares on the rows that weights and ridge make, and every claim of the room is checked with it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0 import kernels
from blockl0.dec.state import start_state
from blockl0.moves.pool import Pool
from blockl0.moves.pricing import price_of_one, price_supports
from blockl0.problem.fits import least_squares_on, make_fits
from blockl0.problem.orthogonal import project_away
from blockl0.problem.problem import Sparsity, as_problem
from blockl0.run import Incumbent, Run, Tally
from blockl0.search.pool_sizes import NARROW_POOL, SearchOptions, narrow_size, pool_size, walk_size
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import improve, refit_options
from blockl0.search.settled import fit_with_kept, prove
from blockl0.units import COLUMNS

N = 9
FORMS = [{"n_nonzero_coefs": 3}, {"alpha": 0.6}, {"n_nonzero_coefs": 4, "alpha": 0.3}]
forms = pytest.mark.parametrize("form", FORMS, ids=["budget", "price", "both"])
OPTIONS = refit_options()[0]
SMALL = SearchOptions(pool=5)
"""Pools of five columns, so that pricing has to bring in the others."""

# kinds of data: weights and ridge, few entries, kept columns, columns that depend on others
KINDS = ["plain", "weighted", "sparse", "kept", "dependent", "wide"]
kinds = pytest.mark.parametrize("kind", KINDS)


def make(kind="plain", seed=0, form=None, **more):
    rng = np.random.default_rng([KINDS.index(kind), seed])
    m = 6 if kind == "wide" else 14
    X = rng.standard_normal((m, N)) + 0.7 * rng.standard_normal((m, 1))
    y = X[:, :3] @ rng.standard_normal(3) + rng.standard_normal(m)
    options = dict(form or {"n_nonzero_coefs": 3}) | more
    if kind == "weighted":
        options |= {"sample_weight": rng.uniform(0.2, 3.0, m), "ridge": 0.3}
    elif kind == "sparse":
        X[rng.random(X.shape) < 0.6] = 0.0
        return as_problem(sp.csc_array(X), y, **options)
    elif kind == "kept":
        options["keep"] = [2, 6]
    elif kind == "dependent":
        X[:, 4] = X[:, 0] - X[:, 1]
        X[:, 5] = 2.0 * X[:, 3]
        X[:, 8] = 0.0
    return as_problem(X, y, **options)


def value_on(problem, support):
    """The least objective on a support; every column of it pays, also one without a use."""
    support = np.asarray(sorted(support), dtype=int)
    weights = problem.sample_weight
    root = np.ones(problem.n_samples) if weights is None else np.sqrt(weights)
    A = problem.design.columns(support) * root[:, None]
    A = np.vstack([A, np.sqrt(problem.ridge) * np.eye(support.size)])
    b = np.concatenate([root * problem.y, np.zeros(support.size)])
    z = np.linalg.lstsq(A, b, rcond=1e-9)[0]
    return 0.5 * np.sum((b - A @ z) ** 2) + problem.sparsity.price * support.size


def is_admissible(problem, support):
    is_small = len(support) <= problem.sparsity.budget
    return is_small and set(problem.keep.tolist()) <= set(support)


def neighbours(problem, support):
    """All admissible supports one addition, removal or swap away."""
    inside = set(int(j) for j in support)
    outside = set(range(problem.n_features)) - inside
    moved = [inside | {i} for i in outside] + [inside - {j} for j in inside]
    moved += [inside - {j} | {i} for j in inside for i in outside]
    return [s for s in moved if is_admissible(problem, s)]


def optimum(problem):
    every = (
        set(s)
        for size in range(min(problem.sparsity.budget, N) + 1)
        for s in combinations(range(N), size)
    )
    return min(value_on(problem, s) for s in every if is_admissible(problem, s))


def pool_of(problem, columns=None, tolerance=1e-11):
    columns = np.arange(problem.n_features) if columns is None else columns
    target = problem.gradient(np.zeros(problem.n_features))
    sq_norms = problem.design.sq_norms(problem.sample_weight) + problem.ridge
    return Pool(problem, columns, target, sq_norms, tolerance)


def constant(problem):
    return problem.smooth(np.zeros(problem.n_features))


def search_of(problem, options=OPTIONS, proves=False):
    return QuadraticSearch(problem, options, proves=proves)


def loaded(problem, seed=0):
    """A pool with a random support of independent columns, the kept ones among them."""
    rng = np.random.default_rng(seed)
    size = min(3, problem.sparsity.budget)
    others = np.setdiff1d([0, 1, 3, 2, 6, 7], problem.keep)
    support = np.union1d(problem.keep, rng.permutation(others)[: size - problem.keep.size])
    pool = pool_of(problem)
    pool.load(support.astype(np.int64))
    return pool


# -- moves and prices ------------------------------------------------------------------------------


@kinds
def test_gains_and_costs_are_those_of_fits(kind):
    for seed in range(4):
        problem = make(kind, seed, n_nonzero_coefs=5)
        pool = loaded(problem, seed)
        inside, here = set(pool.support.tolist()), value_on(problem, pool.support)
        assert pool.value + constant(problem) == pytest.approx(here, abs=1e-10)
        gains = pool.add_gains()
        for i in range(N):
            if i in inside:
                assert gains[i] == -np.inf
            elif gains[i] > -np.inf:
                expected = here - value_on(problem, inside | {i})
                assert gains[i] == pytest.approx(expected, abs=1e-8)
            else:
                # only what lies in the span of the support cannot be added
                assert value_on(problem, inside | {i}) == pytest.approx(here, abs=1e-9)
        for j, cost in zip(pool.members, pool.drop_costs(pool.members), strict=True):
            assert cost == pytest.approx(value_on(problem, inside - {int(j)}) - here, abs=1e-9)


def price_columns(problem, sq_norms, w, support):
    """What each column changes the objective by, and the columns for which that is rounding."""
    priced = price_supports(problem, sq_norms, [(w, support)])[0]
    return priced.change(price_of_one(problem, support.size)), priced.doubtful


def best_with(problem, support, i):
    """The change by the best addition or swap that brings in column i, by fits."""
    inside = set(support.tolist())
    moved = [inside | {i}] + [inside - {j} | {i} for j in inside]
    values = [value_on(problem, s) for s in moved if is_admissible(problem, s)]
    return min(values, default=np.inf) - value_on(problem, support)


@kinds
@pytest.mark.parametrize("is_full", [False, True])
def test_prices_of_a_pool_and_of_a_pass_are_the_best_moves(kind, is_full, monkeypatch):
    for seed in range(3):
        problem = make(kind, seed, {"n_nonzero_coefs": 3 if is_full else 5, "alpha": 0.2})
        monkeypatch.setattr(problem.design, "chunk", 4)
        pool = loaded(problem, seed)
        support, sq_norms = pool.support, pool.sq_norms
        w = least_squares_on(problem, support)
        priced, doubtful = price_columns(problem, sq_norms, w, support)
        for prices in (pool.prices(), priced):
            assert np.all(prices[support] == np.inf)
            for i in np.setdiff1d(np.arange(N), support):
                expected = best_with(problem, support, int(i))
                if sq_norms[i] == 0.0:
                    assert prices[i] > 0.0
                elif i in doubtful:
                    # in the span of the support, where only the columns themselves can tell
                    assert kind == "dependent"
                elif np.isfinite(expected):
                    assert prices[i] == pytest.approx(expected, abs=1e-8)
                else:
                    assert prices[i] == np.inf


def test_columns_in_the_span_of_the_support_are_doubtful():
    problem = make("dependent", n_nonzero_coefs=5)
    sq_norms = problem.design.sq_norms()
    for support, expected in (([0, 1], [4]), ([3], [5]), ([5, 6], [3]), ([0, 4], [1])):
        support = np.array(support)
        w = least_squares_on(problem, support)
        assert price_columns(problem, sq_norms, w, support)[1].tolist() == expected
    # a support that is nearly dependent itself makes everything but the zero column doubtful
    near = replace(problem, design=problem.design.take([0, 0, 2]))
    near.design.X[:, 1] += 1e-5 * near.design.X[:, 2]
    w = least_squares_on(near, np.array([0, 1]))
    assert price_columns(near, near.design.sq_norms(), w, np.array([0, 1]))[1].tolist() == [2]


# -- descents --------------------------------------------------------------------------------------


def run_kernel(pool, max_moves):
    """One call of `kernels.descend`, as a pool makes it."""
    price, budget = pool.sparsity
    first = np.empty(0, dtype=np.int64)
    return kernels.descend(pool.table, None, first, price, budget, pool.tolerance, max_moves)


@forms
@kinds
def test_a_first_move_is_the_best_addition_or_removal(kind, form):
    for seed in range(4):
        problem = make(kind, seed, form)
        pool = loaded(problem, seed)
        pool.know_all()
        pool.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
        inside, before = set(pool.support.tolist()), pool.objective + constant(problem)
        singles = {frozenset(s): value_on(problem, s) for s in neighbours(problem, inside)
                   if len(s) != len(inside)}  # fmt: skip
        added = {s: v for s, v in singles.items() if len(s) > len(inside) and v < before - 1e-9}
        removed = {s: v for s, v in singles.items() if len(s) < len(inside) and v < before - 1e-9}
        code = run_kernel(pool, 1)
        after = pool.objective + constant(problem)
        if added or removed:
            # additions come before removals
            assert code == kernels.PAUSED
            assert after == pytest.approx(min((added or removed).values()), abs=1e-9)
        else:
            assert after <= before + 1e-12


def test_a_swap_is_the_best_for_its_member():
    for seed in range(8):
        problem = make("plain", seed)
        pool = loaded(problem, seed)
        pool.know_all()
        pool.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
        members, inside = pool.members, set(pool.support.tolist())
        before = pool.objective + constant(problem)
        run_kernel(pool, 1)
        left = inside - set(pool.support.tolist())
        outside = set(range(N)) - inside
        best = [min(value_on(problem, inside - {int(j)} | {i}) for i in outside) for j in members]
        improves = [value < before - 1e-9 for value in best]
        if not left:
            assert not any(improves)
            continue
        # members are asked in turn, and the first that has a better one is replaced
        first = improves.index(True)
        assert left == {int(members[first])}
        assert pool.objective + constant(problem) == pytest.approx(best[first], abs=1e-9)


@forms
@kinds
def test_a_descent_ends_where_no_single_change_improves(kind, form):
    for seed in range(5):
        problem = make(kind, seed, form)
        pool = loaded(problem, seed)
        if seed % 2:
            pool.load(problem.keep)
        pool.descend()
        here = pool.objective + constant(problem)
        assert is_admissible(problem, pool.support.tolist())
        assert here == pytest.approx(value_on(problem, pool.support), abs=1e-9)
        near = [value_on(problem, s) for s in neighbours(problem, pool.support)]
        assert here <= min(near) + 1e-8


def test_a_descent_that_is_left_goes_on_as_if_it_had_not_been(monkeypatch):
    monkeypatch.setattr("blockl0.moves.pool.LITTLE_WORK", 0.0)  # rows of H are made one by one
    for seed in range(6):
        problem = make("plain", seed, {"n_nonzero_coefs": 4, "alpha": 0.05})
        whole, cut = pool_of(problem), pool_of(problem)
        whole.know_all()
        whole.descend()
        codes = []
        cut.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
        while not codes or codes[-1] != kernels.DONE:
            codes.append(run_kernel(cut, 1))
            if codes[-1] >= 0:
                # a column that must be known: nothing has moved
                assert not cut.table.known[codes[-1]] and cut.table.slot[codes[-1]] < 0
                cut.know(np.array([codes[-1]]))
            assert len(codes) < 100
        assert kernels.PAUSED in codes and max(codes) >= 0
        assert np.array_equal(cut.members, whole.members)
        assert cut.objective == pytest.approx(whole.objective, rel=1e-12)


def test_a_drifted_table_is_made_anew():
    problem = make("plain", n_nonzero_coefs=4)
    pool = pool_of(problem)
    pool.load(np.array([7, 8]))
    pool.table.value[kernels.DRIFT] = 1.0
    pool.table.border[kernels.PIVOT, 3] *= 1.5
    pool.know_all()
    pool.table.value[kernels.SWAP_ROW] = kernels.FIRST_ROW
    assert run_kernel(pool, 1) == kernels.DRIFTED
    pool.descend()
    assert pool.drift == 1.0 and pool.table.value[kernels.DRIFT] < 1e-12
    assert pool.objective + constant(problem) == pytest.approx(value_on(problem, pool.support))


@pytest.mark.parametrize("kind", ["plain", "dependent", "wide"])
@pytest.mark.parametrize("budget", [0, 1, 6, N])
def test_every_budget_up_to_all_columns(kind, budget):
    problem = make(kind, n_nonzero_coefs=budget)
    pool = pool_of(problem)
    pool.descend()
    rank = np.linalg.matrix_rank(problem.design.columns(np.arange(N)))
    assert pool.size == min(budget, rank)
    pool.load(np.arange(N)[:budget])
    # dependent columns stay out: the others hold all that they could give
    assert pool.size <= min(budget, rank)
    expected = value_on(problem, range(budget))
    assert pool.value + constant(problem) == pytest.approx(expected, abs=1e-8)


def test_an_expired_clock_ends_a_descent_also_of_a_pool_that_is_older(monkeypatch):
    monkeypatch.setattr("blockl0.moves.pool.LITTLE_WORK", 0.0)
    problem = make("plain", n_nonzero_coefs=4)
    search = search_of(problem).for_sparsity(Sparsity(0.0, 3))
    run = Run(search.problem, time_limit=0.0)
    nothing = Incumbent.at(search.problem, np.zeros(N))
    pool = search.make_pool(nothing, run)
    assert pool.run is run
    pool.descend()
    # the first row of H was asked for, and then the time was over
    assert pool.size == 0


# -- sizes of pools, and sharing -------------------------------------------------------------------


def test_sizes_of_pools():
    few = as_problem(np.eye(30), np.ones(30), n_nonzero_coefs=3)
    assert pool_size(few, OPTIONS) == walk_size(few, OPTIONS, 3) == 30
    assert pool_size(few, OPTIONS._replace(pool=7)) == 7
    assert narrow_size(few, OPTIONS, 3) == 30
    many = as_problem(np.ones((2, 50_000)), np.ones(2), n_nonzero_coefs=2)
    assert NARROW_POOL == narrow_size(many, OPTIONS, 2) < pool_size(many, OPTIONS) < 50_000
    assert narrow_size(many, OPTIONS, 60) == 480
    assert walk_size(many, OPTIONS, 2) <= pool_size(many, OPTIONS)


def test_a_pool_of_the_same_columns_is_used_again_and_another_is_not():
    search = search_of(make("plain"), SMALL)
    point = search.start(np.eye(N)[0])
    pool = search.make_pool(point)
    assert pool.columns.size == 5 and set(point.support) <= set(pool.columns)
    # an equal point is as good as the same: what counts is what it is
    assert search.make_pool(Incumbent.at(search.problem, point.w.copy())) is pool
    order = np.argsort(search.prices_at(point))
    assert set(order[:4].tolist()) <= set(pool.columns.tolist())
    other = search.make_pool(search.start(np.eye(N)[order[-2]]))
    assert other is not pool
    assert search.make_pool(point, most=N) is search.whole_pool()


@pytest.mark.parametrize("options", [OPTIONS, SMALL])
def test_searches_that_share_a_gram_matrix_are_right(options):
    problem = make("weighted")
    first = search_of(problem, options)
    run, rng = Run(problem), np.random.default_rng(0)
    improve(first, None, run, rng, 1)
    for seed in range(3):
        other = make("weighted", seed + 1).y
        search = first.for_target(other)
        assert search.tally is not first.tally and search.sq_norms is first.sq_norms
        alone = search_of(replace(problem, y=other), options)
        found, _ = improve(search, None, run, np.random.default_rng(0), 2)
        expected, _ = improve(alone, None, run, np.random.default_rng(0), 2)
        assert found.objective == pytest.approx(expected.objective, rel=1e-12)
        assert found.objective >= optimum(search.problem) - 1e-9
    if options is OPTIONS:
        assert search.whole_pool().table.gram is first.whole_pool().table.gram
    smaller = first.for_sparsity(Sparsity(0.1, 2))
    assert smaller.problem.sparsity == Sparsity(0.1, 2) and smaller.tally is first.tally


# -- settling --------------------------------------------------------------------------------------


@forms
@kinds
@pytest.mark.parametrize("options", [OPTIONS, SMALL], ids=["whole", "pools"])
def test_a_settled_point_has_no_better_neighbour(kind, form, options):
    for seed in range(3):
        problem = make(kind, seed, form)
        search, run = search_of(problem, options), Run(problem)
        search.certifies = True  # without a complete search of so few columns
        best = optimum(problem)
        for start in (np.zeros(N), np.eye(N)[7], np.eye(N)[3] + np.eye(N)[1]):
            incumbent = search.settle(search.start(start), run)
            here = incumbent.objective
            assert here == pytest.approx(value_on(problem, incumbent.support), abs=1e-9)
            assert is_admissible(problem, incumbent.support.tolist())
            assert incumbent.is_settled
            near = min(value_on(problem, s) for s in neighbours(problem, incumbent.support))
            assert here <= near + 1e-8
            assert here >= best - 1e-8


@forms
@kinds
def test_a_proven_point_is_the_optimum(kind, form):
    for seed in range(3):
        problem = make(kind, seed, form)
        search = search_of(problem, proves=True)
        found = search.settle(search.start(np.zeros(N)), Run(problem))
        assert found.is_proven and found.is_settled
        assert found.objective == pytest.approx(optimum(problem), abs=1e-8)


def test_a_proof_without_time_is_none():
    problem = make("plain")
    point = Incumbent.at(problem, least_squares_on(problem, np.array([6, 7, 8])), iteration=5)
    left = prove(problem, point, Run(problem, time_limit=0.0))
    assert left is point and left.iteration == 5 and not left.is_proven


def test_moves_that_only_the_columns_show_are_made():
    rng = np.random.default_rng(0)
    x, z = rng.standard_normal((2, 20))
    # the difference of two columns carries y, and no product of columns can tell
    X = np.c_[x, x + 2e-7 * z, rng.standard_normal((20, 3))]
    problem = as_problem(X, x + 2e-4 * z, n_nonzero_coefs=2)
    search = search_of(problem)
    search.certifies = True
    point = Incumbent.at(problem, least_squares_on(problem, np.array([0])))
    found = search.settle(point, Run(problem))
    assert found.support.tolist() == [0, 1]
    assert found.objective < 1e-3 * point.objective
    unsettled = search_of(problem)
    point.doubtful = np.array([1])
    assert not unsettled.settle_hidden(point, Run(problem)).is_settled


def test_a_fit_holds_the_kept_columns_and_the_budget():
    problem = make("kept", n_nonzero_coefs=3)
    sq_norms = problem.design.sq_norms()
    point = fit_with_kept(problem, make_fits(problem), np.array([0, 1]), sq_norms, 4)
    assert {2, 6} < set(point.support.tolist()) and point.n_nonzero == 3 and point.iteration == 4
    expected = value_on(problem, point.support)
    assert point.objective == pytest.approx(expected, abs=1e-10)


@kinds
def test_starts_are_feasible_and_shrinking_takes_the_least_missed(kind):
    problem = make(kind, 1, {"n_nonzero_coefs": 5})
    search = search_of(problem, SMALL)
    for point in (search.first(), search.start(np.eye(N)[1])):
        assert is_admissible(problem, point.support.tolist())
        assert point.objective == pytest.approx(value_on(problem, point.support), abs=1e-8)
    w = loaded(problem).support
    w = least_squares_on(problem, np.union1d(w, [7]))
    inside = set(np.flatnonzero(w).tolist())
    removed = [inside - {j} for j in inside - set(problem.keep.tolist())]
    least = min(removed, key=lambda s: value_on(problem, s))
    smaller = search.shrink(w, len(inside) - 1)
    assert set(np.flatnonzero(smaller).tolist()) == least


# -- rounds ----------------------------------------------------------------------------------------


@forms
@kinds
@pytest.mark.parametrize("options", [OPTIONS, SMALL], ids=["whole", "pools"])
def test_rounds_are_never_worse_and_never_below_the_optimum(kind, form, options):
    problem = make(kind, 2, form)
    search, run, rng = search_of(problem, options), Run(problem), np.random.default_rng(0)
    best = optimum(problem)
    incumbent = search.settle(search.start(np.zeros(N)), run)
    walks = search.walks(incumbent, run, rng, 16)
    for _ in range(5):
        before = incumbent.objective
        incumbent = walks.advance(incumbent)
        assert best - 1e-8 <= incumbent.objective <= before
        assert is_admissible(problem, incumbent.support.tolist())
        assert incumbent.objective == pytest.approx(problem.objective(incumbent.w), rel=1e-12)


def test_few_rounds_find_the_optimum_of_nine_columns():
    found = []
    for kind in KINDS:
        for form in FORMS:
            for seed in range(3):
                problem = make(kind, seed, form)
                search, run = search_of(problem), Run(problem)
                point = search.settle(search.start(np.zeros(N)), run)
                walks = search.walks(point, run, np.random.default_rng(0), 16)
                for _ in range(5):
                    point = walks.advance(point)
                found.append(point.objective <= optimum(problem) + 1e-8)
    assert np.mean(found) >= 0.95


def test_a_point_counts_columns_also_of_several_predictors():
    class Flat:
        units = COLUMNS

        def objective(self, w):
            return 7.0

    point = Incumbent.at(Flat(), np.array([[0.0, 0.0], [1.0, 0.0], [2.0, -1.0]]), 3)
    assert (point.objective, point.n_nonzero, point.iteration) == (7.0, 2, 3)
    assert point.support.tolist() == [1, 2] and not point.is_settled


def test_passes_are_counted_and_a_price_is_made_once():
    tally = Tally()
    search = QuadraticSearch(make("plain"), SMALL, tally)
    assert tally.n_passes == 2
    point = search.start(np.eye(N)[0])
    prices = search.prices_at(point)
    assert search.prices_at(point) is prices and tally.n_passes == 3
    nothing = Incumbent.at(search.problem, np.zeros(N))
    # without a support no pass is needed
    first, here = search.prices_at(nothing), value_on(search.problem, [])
    assert tally.n_passes == 3
    for i in range(N):
        assert first[i] == pytest.approx(value_on(search.problem, [i]) - here, abs=1e-10)
    none = search.for_sparsity(Sparsity(0.0, 0))
    assert np.all(none.prices_at(Incumbent.at(none.problem, np.zeros(N))) == np.inf)


# -- what the room stands on -----------------------------------------------------------------------


def test_a_projection_leaves_nothing_in_the_span():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((12, 4))
    Q = np.linalg.qr(A)[0]
    X = A @ rng.standard_normal((4, 3)) + 1e-9 * rng.standard_normal((12, 3))
    rest, shares = project_away(Q, X)
    np.testing.assert_allclose(Q @ shares + rest, X, atol=1e-14)
    # to the precision of what is left, not of the columns
    assert np.abs(Q.T @ rest).max() < 1e-23
    rest, shares = project_away(Q, X[:, 0])
    assert rest.shape == (12,) and shares.shape == (4,)


@pytest.mark.parametrize("max_iter", [1, 1000])
def test_a_move_asks_for_the_model_of_its_own_block_and_version(max_iter):
    problem = make("plain", n_nonzero_coefs=5)
    state = start_state(problem, np.zeros(N), max_iter)
    rng, block = np.random.default_rng(0), np.array([1, 4])
    for _ in range(4):
        # the same array twice, an equal one, and one without a model before it
        for here in (block, block, block.copy(), np.array([0, 7])):
            if rng.random() < 0.5:
                state.block_model(here, 0.1)
            state.move(here, rng.standard_normal(2))
            expected = problem.objective(state.w)
            assert state.objective == pytest.approx(expected, rel=1e-10)
            np.testing.assert_allclose(state.gradient, problem.gradient(state.w), atol=1e-9)
