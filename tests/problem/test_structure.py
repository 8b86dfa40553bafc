"""Groups, bounds, costs and several responses: against enumeration, and against each other."""

from __future__ import annotations

from itertools import combinations as choices
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import blockl0
from blockl0.errors import OutOfReachError
from blockl0.losses import LOSSES as ALL_LOSSES
from blockl0.methods import METHODS, STRUCTURES, combinations
from blockl0.solve import solve_problem  # noqa: F401  (it fills METHODS)
from structures import KINDS, best, best_near, draw

FEW, MANY, MOST = 8, 200, 2000


def check(kind, seeds, **options):
    """Solutions are the best of all, feasible, and what they say of themselves."""
    results = []
    for seed in seeds:
        case = draw(kind, seed)
        result = blockl0.solve(case.X, case.y, random_state=0, **case.given, **options)
        results.append(result)
        truth, slack = best(case), 1e-8 * case.scale
        assert result.objective == pytest.approx(truth, abs=slack), seed
        assert result.lower_bound is None or result.lower_bound <= truth + 1e-3 * slack, seed
        is_feasible(result, case)
    return results


def is_feasible(result, case):
    given = case.given
    assert result.n_nonzero == len({case.labels[j] for j in result.support})
    assert result.n_nonzero <= given.get("n_nonzero_coefs", len(case.labels))
    low, high = case.bounds
    assert (result.coef.T >= low).all() and (result.coef.T <= high).all()
    if "feature_groups" in given:
        chosen = {case.labels[j] for j in result.support}
        assert set(result.groups) == chosen and len(result.groups) == len(chosen)
    assert result.coef.shape == (case.X.shape[1], *case.y.shape[1:])[: result.coef.ndim]


@pytest.mark.parametrize("kind", KINDS)
def test_default(kind):
    check(kind, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_default_of_many(kind):
    check(kind, range(FEW, FEW + MOST))


@pytest.mark.parametrize("kind", KINDS)
def test_proofs(kind, no_enumeration):
    check(kind, range(FEW), method="exact")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_proofs(kind, no_enumeration):
    """Points are the best also where that is not proven, and bounds hold where it is not."""
    results = check(kind, range(FEW, FEW + MANY), method="exact")
    assert all(result.lower_bound is not None for result in results)
    # without a ridge there is no bound where there are more columns than rows
    assert sum(str(result.status) == "optimal" for result in results) > 0.7 * MANY


def factors(seed, m=2000, n_factors=30, n_numbers=70, snr=5.0):
    """Factors of five levels, all of which have a column, and numbers; ten of all matter."""
    rng = np.random.default_rng(seed)
    levels = [rng.integers(0, 5, m) for _ in range(n_factors)]
    numbers = rng.standard_normal((m, n_numbers))
    X = np.hstack([*(np.eye(5)[level] for level in levels), numbers])
    groups = np.concatenate([np.repeat(np.arange(n_factors), 5), n_factors + np.arange(n_numbers)])
    signal = sum(rng.standard_normal(5)[levels[u]] for u in range(5)) + numbers[:, :5].sum(axis=1)
    return X, signal + rng.standard_normal(m) * np.std(signal) / np.sqrt(snr), groups


def test_thirty_factors_and_seventy_numbers_are_proven():
    X, y, groups = factors(0)
    given = {"n_nonzero_coefs": 10, "feature_groups": groups, "random_state": 0}
    result = blockl0.solve(X, y, method="exact", **given)
    assert str(result.status) == "optimal" and result.gap == 0.0
    assert set(result.groups) == {0, 1, 2, 3, 4, 30, 31, 32, 33, 34}
    # the constant that the levels of a factor add up to needs no columns of its own
    assert result.objective == pytest.approx(fit_of(X, y, result.support), rel=1e-10)


def fit_of(X, y, columns):
    return 0.5 * np.sum((y - X[:, columns] @ np.linalg.lstsq(X[:, columns], y, rcond=None)[0]) ** 2)


def test_a_proof_that_is_cut_short_says_so():
    X, y, groups = factors(1, m=200, n_factors=12, n_numbers=30, snr=0.05)
    given = {"n_nonzero_coefs": 6, "feature_groups": groups, "random_state": 0}
    result = blockl0.solve(X, y, method="exact", node_limit=3, **given)
    assert str(result.status) == "node_limit" and 0.0 < result.gap < 1.0
    seen = []
    stopped = blockl0.solve(
        X,
        y,
        method="exact",
        callback=lambda p: seen.append(p.lower_bound) or len(seen) > 2,
        **given,
    )
    assert str(stopped.status) == "stopped" and stopped.lower_bound == max(seen)
    near = blockl0.solve(X, y, method="exact", gap=0.9, **given)
    assert near.gap <= 0.9
    with pytest.raises(ValueError, match=r"`proof` knows columns that are chosen one by one"):
        blockl0.solve(X, y, method="exact", proof=True, **given)


def test_without_a_bound_nothing_is_proven(no_enumeration):
    X, y = random_case(10, m=8, n=12)
    result = blockl0.solve(X, y, n_nonzero_coefs=3, positive=True, method="exact", random_state=0)
    assert str(result.status) == "no_bound" and "ridge" in result.note


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_change_never_helps_what_is_said_to_be_settled(kind):
    """Without enumeration the search ends at a point that its certificate is true of."""
    for seed in range(FEW):
        case = draw(kind, seed)
        result = blockl0.solve(case.X, case.y, random_state=0, effort="fast", **case.given)
        assert result.objective >= best(case) - 1e-8 * case.scale
        is_feasible(result, case)


@pytest.mark.parametrize("kind", KINDS)
def test_certificates(kind):
    """What is certified is true of every single change, and what is refuted has a better point."""
    for seed in range(FEW):
        certify_both_ways(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_certificates(kind):
    for seed in range(FEW, FEW + MANY // 4):
        certify_both_ways(kind, seed)


def certify_both_ways(kind, seed):
    case, rng = draw(kind, seed), np.random.default_rng(seed)
    coef = blockl0.solve(case.X, case.y, random_state=0, effort="fast", **case.given).coef
    for point in (coef, np.where(rng.random(coef.shape) < 0.5, coef, 0.0)):
        for level in (1, 2, case.X.shape[1]):
            try:
                found = blockl0.certify(case.X, case.y, point, level=level, **case.given)
            except OutOfReachError:
                continue
            is_global = level >= len(set(case.labels))
            truth = best(case) if is_global else best_near(case, point, level == 2)
            slack = 1e-8 * found.objective + 1e-10 * case.scale
            if found.holds:
                assert truth >= found.objective - 3.0 * slack, (seed, level)
            else:
                assert found.better_objective < found.objective, (seed, level)
                assert truth < found.objective, (seed, level)


def random_case(seed=0, m=60, n=12, q=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 0.5 * rng.standard_normal((m, 1))
    Y = X[:, :4] @ rng.standard_normal((4, q)) + rng.standard_normal((m, q))
    return X, Y if q > 1 else Y[:, 0]


def test_one_column_groups_are_columns():
    X, y = random_case()
    groups = [f"c{j}" for j in range(12)][::-1]
    plain = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0)
    grouped = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, feature_groups=groups)
    np.testing.assert_array_equal(grouped.support, plain.support)
    np.testing.assert_allclose(grouped.coef, plain.coef, rtol=1e-10)


def test_one_response_is_a_vector():
    X, y = random_case(1)
    plain = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0)
    column = blockl0.solve(X, y[:, None], n_nonzero_coefs=4, random_state=0)
    np.testing.assert_array_equal(column.coef, plain.coef)  # the same steps on the same data
    twice = blockl0.solve(X, np.column_stack([y, y]), n_nonzero_coefs=4, random_state=0)
    np.testing.assert_allclose(twice.coef, np.column_stack([plain.coef] * 2), rtol=1e-9, atol=1e-12)


def test_infinite_bounds_are_none():
    X, y = random_case(2)
    plain = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0)
    bounds = (np.full(12, -np.inf), np.inf)
    assert blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, bounds=bounds).coef.tolist() == (
        plain.coef.tolist()
    )
    wide = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, bounds=(-1e6, 1e6))
    np.testing.assert_allclose(wide.coef, plain.coef, rtol=1e-9, atol=1e-12)


def test_costs_of_one_are_none():
    X, y = random_case(3)
    plain = blockl0.solve(X, y, alpha=3.0, random_state=0)
    same = blockl0.solve(X, y, alpha=3.0, random_state=0, costs=np.ones(12))
    assert same.coef.tolist() == plain.coef.tolist()
    twice = blockl0.solve(X, y, alpha=1.5, random_state=0, costs=np.full(12, 2.0))
    np.testing.assert_allclose(twice.coef, plain.coef, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_order_of_columns_does_not_matter(kind):
    for seed in range(FEW, FEW + 5):
        case = draw(kind, seed)
        n = case.X.shape[1]
        order = np.random.default_rng(seed).permutation(n)
        given = dict(case.given)
        for name in ("feature_groups", "costs"):
            if name in given:
                given[name] = [list(given[name])[j] for j in order]
        if "bounds" in given:
            given["bounds"] = tuple(side[order] for side in given["bounds"])
        if "keep" in given:
            given["keep"] = [int(np.flatnonzero(order == 0)[0])]
        here = blockl0.solve(case.X, case.y, random_state=0, **case.given)
        there = blockl0.solve(case.X[:, order], case.y, random_state=0, **given)
        assert there.objective == pytest.approx(here.objective, abs=1e-8 * case.scale)


@pytest.mark.parametrize("factor", [1e-40, 1e40])
def test_units_of_columns_do_not_matter(factor):
    X, y = random_case(4)
    low, high = np.full(12, -np.inf), np.full(12, 0.4)
    scale = np.where(np.arange(12) % 2, factor, 1.0)
    here = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, bounds=(low, high))
    there = blockl0.solve(
        X * scale, y, n_nonzero_coefs=4, random_state=0, bounds=(low, high / scale)
    )
    assert there.objective == pytest.approx(here.objective, rel=1e-9)
    assert (there.coef <= high / scale).all()
    assert (here.coef == 0.4).any()  # a bound that holds does so exactly


@pytest.mark.parametrize("storage", [sp.csc_array, sp.csr_array, np.ascontiguousarray])
def test_any_storage(storage):
    for kind in ("groups", "bounds", "responses"):
        case = draw(kind, 3)
        here = blockl0.solve(case.X, case.y, random_state=0, **case.given)
        there = blockl0.solve(storage(case.X), case.y, random_state=0, **case.given)
        assert there.objective == pytest.approx(here.objective, abs=1e-9 * case.scale)


def test_tall_data_are_reduced():
    X, Y = random_case(5, m=2000, q=3)
    groups, weights = np.arange(12) // 3, np.linspace(0.5, 2.0, 2000)
    given = {"n_nonzero_coefs": 2, "feature_groups": groups, "sample_weight": weights}
    result = blockl0.solve(X, Y, random_state=0, **given)
    columns = result.support
    root = np.sqrt(weights)[:, None]
    coef = np.linalg.lstsq(X[:, columns] * root, Y * root, rcond=None)[0]
    np.testing.assert_allclose(result.coef[columns], coef, rtol=1e-9)
    bounded = blockl0.solve(X, Y, random_state=0, positive=True, **given)
    assert bounded.coef.min() == 0.0
    assert bounded.objective >= result.objective


def test_paths_count_groups():
    X, y = random_case(6)
    groups = list("aaabbbcccdde")
    path = blockl0.l0_path(X, y, n_nonzero_coefs=5, feature_groups=groups, random_state=0)
    assert path.n_nonzero.tolist() == [1, 2, 3, 4, 5]
    assert (np.diff(path.objective) <= 0).all()
    for k, result in enumerate(path, start=1):
        alone = blockl0.solve(X, y, n_nonzero_coefs=k, feature_groups=groups, random_state=0)
        assert result.objective == pytest.approx(alone.objective, rel=1e-10)
    n, sizes = len(y), np.array([support.size for support in path.supports])
    expected = n * np.log(2 * path.losses / n) + sizes * np.log(n)
    np.testing.assert_allclose(path.criterion("bic"), expected)


def test_paths_of_several_responses_and_within_bounds():
    X, Y = random_case(7, q=2)
    path = blockl0.l0_path(X, Y, n_nonzero_coefs=4, random_state=0)
    assert path[3].coef.shape == (12, 2) and (np.diff(path.objective) <= 0).all()
    expected = 120 * np.log(2 * path.losses / 120) + 2.0 * 2 * path.n_nonzero
    np.testing.assert_allclose(path.criterion("aic"), expected)
    path = blockl0.l0_path(X, Y[:, 0], alphas=[20.0, 5.0, 1.0], positive=True, random_state=0)
    assert all(result.coef.min() >= 0.0 for result in path)
    with pytest.raises(ValueError, match="`costs` multiply the price"):
        blockl0.l0_path(X, Y, n_nonzero_coefs=3, costs=np.arange(12.0))


LOSSES = ("huber", "poisson", "gamma", "tweedie", "logistic", "squared_hinge")


def target(name, eta, rng):
    if name == "softmax":
        return np.digitize(eta, [-0.5, 0.5]).astype(float)
    if name in ("logistic", "squared_hinge"):
        return np.where(eta + rng.standard_normal(eta.size) > 0, 1.0, -1.0)
    if name in ("huber", "squared"):
        return eta + rng.standard_normal(eta.size)
    return rng.poisson(np.exp(0.3 * eta)) + (0.5 if name == "gamma" else 0.0)


@pytest.mark.parametrize("name", LOSSES)
def test_other_losses_in_groups_and_within_bounds(name):
    loss = ALL_LOSSES[name]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    y = target(name, X[:, 0] - X[:, 2], rng)
    groups = [0, 1, 0, 2, 2, 3]
    low, high = np.array([0, -1, -np.inf, 0, 0, -np.inf]), np.array([0.2, 1, np.inf, 1, 1, 0.1])

    def value(columns, limits):
        A = X[:, columns]

        def at(v):
            eta = A @ v
            return loss.value(eta, y).sum() + 0.05 * v @ v, A.T @ loss.gradient(eta, y) + 0.1 * v

        options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
        return minimize(
            at, np.zeros(len(columns)), jac=True, method="L-BFGS-B", bounds=limits, options=options
        ).fun

    def lowest(limits):
        found = []
        for chosen in choices(range(4), 2):
            columns = [j for j in range(6) if groups[j] in chosen]
            found.append(value(columns, [limits[j] for j in columns]))
        return min(found)

    given = {"n_nonzero_coefs": 2, "feature_groups": groups, "loss": name, "ridge": 0.1}
    free = blockl0.solve(X, y, random_state=0, **given)
    assert free.objective == pytest.approx(lowest([(None, None)] * 6), rel=1e-6)
    within = blockl0.solve(X, y, random_state=0, bounds=(low, high), **given)
    limits = [(a if np.isfinite(a) else None, b if np.isfinite(b) else None)
              for a, b in zip(low, high, strict=True)]  # fmt: skip
    assert within.objective == pytest.approx(lowest(limits), rel=1e-6)
    assert (within.coef >= low).all() and (within.coef <= high).all()


def test_softmax_in_groups():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = np.argmax(X[:, :3] + 0.3 * rng.standard_normal((60, 3)), axis=1)
    groups = [0, 1, 0, 1, 2, 2, 3, 3]
    given = {"n_nonzero_coefs": 2, "loss": "softmax", "ridge": 0.5, "random_state": 0}
    result = blockl0.solve(X, y, feature_groups=groups, **given)
    assert result.groups == (0, 1)
    columns = blockl0.solve(X[:, [0, 1, 2, 3]], y, n_nonzero_coefs=4, loss="softmax", ridge=0.5)
    assert result.objective == pytest.approx(columns.objective, rel=1e-8)
    with pytest.raises(ValueError, match=r"loss='softmax'.*no method can"):
        blockl0.solve(X, y, positive=True, **given)


def test_a_start_counts_groups_and_stays_within_bounds():
    X, y = random_case(8)
    groups = np.arange(12) // 4
    start = np.zeros(12)
    start[:4] = 0.1
    given = {"n_nonzero_coefs": 1, "feature_groups": groups, "random_state": 0}
    assert blockl0.solve(X, y, init=start, **given).n_nonzero == 1
    start[5] = 1.0
    with pytest.raises(ValueError, match=r"at most n_nonzero_coefs=1 groups, got 2"):
        blockl0.solve(X, y, init=start, **given)
    with pytest.raises(ValueError, match=r"`init` must stay within `bounds`, got -1.*column 0"):
        blockl0.solve(X, y, n_nonzero_coefs=3, init=-np.eye(12)[0], positive=True)


def test_kept_groups_stay():
    X, y = random_case(9)
    groups = np.arange(12) // 3
    result = blockl0.solve(
        X, y, n_nonzero_coefs=2, feature_groups=groups, keep=[10], random_state=0
    )
    assert 3 in result.groups and result.n_nonzero == 2


def test_many_units_are_searched_in_pools(monkeypatch):
    from blockl0.moves import unit_search

    monkeypatch.setattr(unit_search, "WHOLE", 20)
    monkeypatch.setattr(unit_search, "POOL", 6)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 60))
    groups = rng.integers(0, 25, 60)
    y = X[:, groups == 3].sum(axis=1) - X[:, groups == 7].sum(axis=1) + rng.standard_normal(80)
    for given in ({}, {"positive": True}, {"costs": None}):
        found = blockl0.solve(
            X, y, n_nonzero_coefs=2, feature_groups=groups, random_state=0, effort="fast", **given
        )
        if not given.get("positive"):
            assert set(found.groups) == {3, 7}
        assert found.coef.min() >= 0.0 or not given.get("positive")


NUMBERS = {"squared": [1.0, 2.0, 4.0], "logistic": [1.0, -1.0, 1.0], "softmax": [0, 1, 2]}
TARGETS = {name: NUMBERS.get(name, [1.0, 2.0, 4.0]) for name in ALL_LOSSES}
TARGETS["squared_hinge"] = NUMBERS["logistic"]
STORAGES = {"dense": np.asfortranarray, "sparse": sp.csc_array}
TABLE = list(combinations(TARGETS, STORAGES))
SOME = ("squared", "logistic", "softmax")
"""Losses that are tried on sparse columns, too; storages are nobody's business but a design's."""


def test_the_table_has_everything():
    """Every structure, loss, storage and method, each either taken or refused with a reason."""
    assert len(TABLE) == 2 ** len(STRUCTURES) * len(TARGETS) * 2 * len(METHODS)
    taken = {(row.structures, row.loss, row.method) for row in TABLE if row.reason is None}
    for structures in {row.structures for row in TABLE}:
        several = "responses" in structures
        for loss in TARGETS:
            is_taken = (structures, loss, "refit") in taken
            is_barred = (several and loss != "squared") or (
                "bounds" in structures and loss == "softmax"
            )
            assert is_taken is not is_barred, (structures, loss)
        assert (structures, "squared", "exact") in taken
    # no other method knows any of them
    others = {method for structures, _, method in taken if structures} - {"refit", "exact"}
    assert not others


def test_the_page_shows_the_table():
    """The cells of "What goes with what" are what the methods declare."""
    page = Path(__file__).parents[2] / "docs" / "structure.md"
    lines = page.read_text(encoding="utf-8").split("## What goes with what")[1].splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    shown = {row[0]: row[1:] for row in cells[2:]}
    said = {
        "–": set(),
        "squared": {"squared"},
        "every loss": set(TARGETS),
        "every loss but softmax": set(TARGETS) - {"softmax"},
    }
    for title, method in (('`"refit"`, `l0_path`', "refit"), ('`"exact"`', "exact")):
        for structure, cell in zip(STRUCTURES, shown[title], strict=True):
            taken = {
                row.loss
                for row in TABLE
                if (row.method, row.structures, row.reason) == (method, (structure,), None)
            }
            assert said[cell] == taken, (method, structure)
    assert shown["all other methods"] == ["–"] * len(STRUCTURES)
    # every certificate of what "refit" takes is asked for below
    assert shown["`certify`"] == shown['`"refit"`, `l0_path`']


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("method", ["refit", "exact"])
def test_what_the_table_takes_works(method, storage):
    """A small problem of each combination, against enumeration; what is refused is refused."""
    for row in TABLE:
        if row.method != method or row.storage != storage or not row.structures:
            continue
        if storage == "sparse" and row.loss not in SOME:
            continue
        X, y, given = small(row)
        arguments = {"loss": row.loss, "ridge": 0.5, "method": method, "random_state": 0, **given}
        if row.reason is not None:
            with pytest.raises(ValueError):
                blockl0.solve(STORAGES[storage](X), y, **arguments)
            continue
        result = blockl0.solve(STORAGES[storage](X), y, **arguments)
        assert result.objective == pytest.approx(lowest(row, X, y, given), rel=1e-6), row
        stated = {"loss": row.loss, "ridge": 0.5, **given}
        assert blockl0.certify(STORAGES[storage](X), y, result.coef, level=1, **stated).holds, row


def small(row):
    """X, y and the structures of a combination, with more rows than the table's."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((25, 4))
    y = target(row.loss, X[:, 0] - X[:, 2], rng)
    if "responses" in row.structures:
        y = np.column_stack([y, X[:, 1]])
    given = {"alpha": 0.8}
    if "groups" in row.structures:
        given["feature_groups"] = list("abac")
    if "bounds" in row.structures:
        given["positive"] = [0, 1, 2]
    if "costs" in row.structures:
        given["costs"] = [0.5, 2.0, 0.5, 1.0]
    return X, y, given


def lowest(row, X, y, given):
    """The least objective over all choices, each fitted by a general-purpose minimizer."""
    names = given.get("feature_groups", list("abcd"))
    costs = dict(zip(names, given.get("costs", [1.0] * 4), strict=True))
    found = []
    for size in range(len(costs) + 1):
        for chosen in choices(costs, size):
            columns = [j for j in range(4) if names[j] in chosen]
            paid = given["alpha"] * sum(costs[name] for name in chosen)
            found.append(paid + general_minimum(row.loss, X, y, columns, given.get("positive", ())))
    return min(found)


def general_minimum(name, X, y, columns, positive):
    from blockl0.problem.problem import as_problem

    loss = as_problem(X, y, loss=name, alpha=1.0).loss
    A, q = X[:, columns], loss.n_outputs
    y = y.astype(np.int64) if name == "softmax" else y

    def at(v):
        V = v.reshape(len(columns), q)
        eta = A @ V if q > 1 else A @ v
        slope = A.T @ loss.gradient(eta, y)
        return loss.value(eta, y).sum() + 0.25 * v @ v, (slope.reshape(V.shape) + 0.5 * V).ravel()

    if not columns:
        return float(loss.value(np.zeros((len(X), q) if q > 1 else len(X)), y).sum())
    limits = [(0.0 if j in positive else None, None) for j in columns for _ in range(q)]
    options = {"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    start = np.zeros(len(columns) * q)
    return minimize(at, start, jac=True, method="L-BFGS-B", bounds=limits, options=options).fun


def test_none_is_no_bound():
    X, y = random_case(2)
    here = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, bounds=(0.0, None))
    there = blockl0.solve(X, y, n_nonzero_coefs=4, random_state=0, positive=True)
    assert here.coef.tolist() == there.coef.tolist() and here.coef.min() >= 0.0


def test_small_losses_beside_large_targets_are_told_apart():
    """A target far from zero: what is left is 1e-13 of it, and fits still tell it apart."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(60), rng.standard_normal((60, 6))])
    y = 1e6 + X[:, 1] - X[:, 4] + 0.1 * rng.standard_normal(60)
    given = {"n_nonzero_coefs": 3, "random_state": 0}
    plain = blockl0.solve(X, y, **given)
    assert plain.support.tolist() == [0, 1, 4]
    grouped = blockl0.solve(X, y, feature_groups=list("abcdefg"), **given)
    assert grouped.groups == ("a", "b", "e") and str(grouped.status) == "optimal"
    assert grouped.objective == pytest.approx(plain.objective, rel=1e-6)


def nearly_dependent(seed):
    """Columns 1e-10 from each other beside others 1e-5 apart, in groups, for one or two targets."""
    rng = np.random.default_rng(seed)
    m, n, q = int(rng.integers(8, 20)), int(rng.integers(3, 8)), int(rng.integers(1, 3))
    X = rng.standard_normal((m, n))
    for j in range(1, n):
        if rng.random() < 0.6:
            near = X[:, rng.integers(j)]
            apart = 10.0 ** rng.choice([-12, -11, -10, -9.0, -6, -5, -4])
            X[:, j] = near + apart * rng.standard_normal(m)
    groups = rng.integers(0, int(rng.integers(2, 5)), n)
    Y = rng.standard_normal((m, q))
    k = int(rng.integers(1, len(set(groups)) + 1))
    return X, Y if Y.shape[1] > 1 else Y[:, 0], groups, k


@pytest.mark.parametrize("seed", [34, 79, 146, 316, 369, 376, 430, 456])
def test_bounds_hold_whichever_column_of_nearly_dependent_ones_a_fit_keeps(seed, no_enumeration):
    from blockl0.problem.fits import make_fits
    from blockl0.problem.problem import as_problem

    X, y, groups, k = nearly_dependent(seed)
    fits = make_fits(as_problem(X, y, n_nonzero_coefs=k, feature_groups=groups))
    units = sorted(set(groups.tolist()))
    truth = min(
        fits.minimum(np.flatnonzero(np.isin(groups, chosen))).value
        for size in range(k + 1)
        for chosen in choices(units, size)
    )
    for limit in (1, 1000):
        given = {"n_nonzero_coefs": k, "feature_groups": groups, "node_limit": limit}
        result = blockl0.solve(X, y, method="exact", random_state=0, **given)
        assert result.lower_bound <= truth + 1e-10 * np.sum(y**2)
