"""The forms of a tableau against each other, and against fits of every change."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0.data.gram_rows import GramRows
from blockl0.moves.pricing import price_of_one, price_supports
from blockl0.moves.projected_tableau import ProjectedTableau
from blockl0.moves.tableau import UnitRules
from blockl0.moves.unit_table import UnitTable
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import as_problem
from blockl0.run import Tally
from blockl0.search.quadratic_search import QuadraticSearch
from blockl0.search.search import refit_options

N = 9
GROUPS, PAIRS = [0, 0, 1, 2, 2, 2, 3, 4, 5], [0, 0, 1, 1, 2, 2, 3, 3, 4]
KINDS = {
    "budget": {"n_nonzero_coefs": 3},
    "room": {"n_nonzero_coefs": 5},
    "price": {"alpha": 2.0, "n_nonzero_coefs": 5},
    "ridge": {"n_nonzero_coefs": 3, "ridge": 3.0},
    "weights": {"alpha": 2.0, "sample_weight": np.linspace(0.0, 2.0, 30)},
    "kept": {"n_nonzero_coefs": 3, "keep": [1]},
    "groups": {"n_nonzero_coefs": 3, "feature_groups": GROUPS},
    "group prices": {"alpha": 2.0, "ridge": 1.0, "feature_groups": GROUPS},
    "costs": {"alpha": 2.0, "costs": np.linspace(0.2, 3.0, N)},
    "responses": {"n_nonzero_coefs": 3, "n_responses": 3},
    "responses in groups": {
        "alpha": 2.0,
        "n_responses": 2,
        "feature_groups": PAIRS,
    },
    "bounds": {"n_nonzero_coefs": 3, "bounds": (-0.8, 0.8)},
    "bounds at a price": {"alpha": 0.5, "bounds": (0.0, 1.0)},
}
"""What is plain comes first."""
PLAIN = ("budget", "room", "price", "ridge", "weights", "kept")


def draw(kind, seed, near=0.0):
    """Three units of a support and others; with `near`, columns that nearly depend on them."""
    rng = np.random.default_rng(seed)
    given = dict(KINDS[kind])
    X = rng.standard_normal((30, N)) * 10.0 ** rng.integers(-1, 2, N)
    if near:
        X[:, 5] = X[:, 1] + near * rng.standard_normal(30)
        X[:, 8] = X[:, 1] + X[:, 2] + near * rng.standard_normal(30)
    shape = (N, given.pop("n_responses", 1))
    y = X @ (rng.standard_normal(shape) / np.abs(X).max(axis=0)[:, None])
    y = y + rng.standard_normal(y.shape)
    problem = as_problem(X, y if shape[1] > 1 else y[:, 0], **given)
    return problem, np.arange(3)


def value_of(problem, units):
    """The least objective on some units, by a fit."""
    columns = problem.units.columns(np.array(units, dtype=np.int64))
    fit = make_fits(problem).minimum(columns)
    return fit.value + problem.sparsity.price * rules_cost(problem, units)


def rules_cost(problem, units):
    return len(units) if problem.costs is None else problem.costs[list(units)].sum()


def true_changes(problem, units):
    """The change by every addition and swap, {(leaving, entering): change}, and by removals."""
    here, (price, budget) = value_of(problem, units), problem.sparsity
    leaving = [-1] if units.size < budget else []
    movable = [int(u) for u in units if u not in problem.keep]
    leaving += movable if price > 0.0 or not leaving else []
    entries = {
        (out, into): value_of(problem, sorted({*units.tolist(), into} - {out})) - here
        for out in leaving
        for into in range(problem.n_units)
        if into not in units
    }
    removals = {out: value_of(problem, sorted({*units.tolist()} - {out})) - here for out in movable}
    return entries, removals if price > 0.0 else {}


def best_of(entries, n):
    best = np.full(n, np.inf)
    for (_, into), change in entries.items():
        best[into] = min(best[into], change)
    return best


def block(problem, units):
    """The changes of a table of blocks."""
    weights = np.ones(problem.n_samples)
    if problem.sample_weight is not None:
        weights = problem.sample_weight
    gram = GramRows(problem.design, weights, problem.ridge, Tally())
    weighted = (weights * problem.y.T).T.reshape(len(weights), -1)
    B = np.ascontiguousarray(problem.design.cross(weighted, slice(None)).T)
    table = UnitTable(gram, B, UnitRules.of(problem), 0.0)
    return table.changes(table.base(units))


def projected(problem, units):
    """The changes by projections."""
    tableau = ProjectedTableau(problem)
    tableau.load(units)
    here = value_of(problem, units) - problem.sparsity.price * rules_cost(problem, units)
    assert tableau.value == pytest.approx(here - problem.smooth(problem.zero()), rel=1e-9, abs=1e-9)
    return tableau.changes()


def swept(problem, units):
    """The best entries of a pool."""
    pool = QuadraticSearch(problem, refit_options()[0]).whole_pool()
    pool.load(units)
    return pool.prices()


def scanned(problem, units):
    """The best entries by one pass."""
    w = make_fits(problem).coef_on(units)
    priced = price_supports(problem, problem.sq_norms, [(w, units)])[0]
    return priced.change(price_of_one(problem, units.size))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", KINDS)
def test_all_forms_are_what_fits_say(kind, seed):
    problem, units = draw(kind, seed)
    entries, removals = true_changes(problem, units)
    scale = problem.smooth(problem.zero())
    for form in (block, projected):
        changes = form(problem, units)
        found, low = changes.entries(), changes.lower_bounds()
        rows = {int(out): row for row, out in enumerate(changes.leaving)}
        assert {out for out, _ in entries} == set(rows)
        for (out, into), change in entries.items():
            at = rows[out] * problem.n_units + into
            after = sorted({*units.tolist(), into} - {out})
            assert changes.after(at).tolist() == after
            assert low[at] <= change + 1e-12 * scale
            # within bounds a change is bounded from below only
            if problem.bounds is None and not changes.doubts[rows[out], into]:
                assert found[rows[out], into] == pytest.approx(change, abs=1e-9 * scale)
        for place, out in enumerate(units):
            change = removals.get(int(out), np.inf)
            assert low[changes.gains.size + place] <= change + 1e-12 * scale
            if problem.bounds is None and np.isfinite(change):
                assert changes.removals[place] == pytest.approx(change, abs=1e-9 * scale)
            assert np.isinf(changes.removals[place]) == np.isinf(change)
    if kind in PLAIN:
        best = best_of(entries, N)
        np.testing.assert_allclose(swept(problem, units), best, rtol=0.0, atol=1e-9 * scale)
        np.testing.assert_allclose(scanned(problem, units), best, rtol=0.0, atol=1e-9 * scale)


@pytest.mark.parametrize("near", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_that_nearly_depend(kind, near):
    """Projections stay true, and sharp; Gram matrices lose twice as many digits."""
    problem, units = draw(kind, 7, near)
    entries, _ = true_changes(problem, units)
    scale = problem.smooth(problem.zero())
    changes = projected(problem, units)
    found, low = changes.entries(), changes.lower_bounds()
    rows = {int(out): row for row, out in enumerate(changes.leaving)}
    assert changes.doubts.sum() == 0
    # what rounding permits is added up over the columns of a unit
    digits = 1e-11 if problem.n_units == N else 1e-9
    for (out, into), change in entries.items():
        assert low[rows[out] * problem.n_units + into] <= change + 1e-12 * scale
        if problem.bounds is None:
            error = digits * scale / near
            assert found[rows[out], into] == pytest.approx(change, abs=error)
    if problem.bounds is not None:
        return
    error = 1e-13 * scale / near**2
    best = best_of(entries, problem.n_units)
    if near > 1e-6:
        changes = block(problem, units)
        is_clear = ~changes.doubts.any(axis=0)
        assert changes.best_entries()[is_clear] == pytest.approx(best[is_clear], abs=error)
        if kind in PLAIN:
            assert swept(problem, units) == pytest.approx(best, abs=error)
            assert scanned(problem, units) == pytest.approx(best, abs=error)


def test_only_some_units_enter(rng):
    problem, units = draw("groups", 0)
    tableau = ProjectedTableau(problem)
    tableau.load(units)
    every, some = tableau.changes(), tableau.changes(np.array([5, 1, 3]))
    np.testing.assert_allclose(some.entries(), every.entries()[:, [5, 1, 3]])
    assert some.after(2).tolist() == every.after(3).tolist()
    none = tableau.changes(np.empty(0, dtype=np.int64))
    assert none.gains.shape == (3, 0) and none.lower_bounds().size == units.size
