"""The tree of method "exact": every bound below the truth, every optimum one, part by part."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

import hostile
import hostile_trees
from blockl0.exact import bounds as bounds_room
from blockl0.exact import data, products
from blockl0.exact.bounds import Directions, Node, SparsePoint, counted
from blockl0.exact.prover import Prover
from blockl0.exact.search import search_tableaus
from blockl0.exact.units import NoBoundError
from blockl0.problem import preprocess
from blockl0.problem.fits import make_fits
from blockl0.problem.problem import as_problem
from blockl0.result import Status
from blockl0.run import Incumbent
from blockl0.solve import solve_problem

Long = np.longdouble


def wrong_in(seeds):
    found, wrong = hostile_trees.Counter(), []
    for seed in seeds:
        seen, here = hostile_trees.check_tree(seed)
        found.update(seen)
        wrong += here
    return found, wrong


@pytest.mark.parametrize("first", range(0, 300, 100))
@pytest.mark.filterwarnings("ignore")
def test_no_claim_of_a_tree_is_false(first):
    found, wrong = wrong_in(range(first, first + 100))
    assert wrong == []
    assert found["finished"] > 50 and found["DataBounds"] > 50 and found["ProductBounds"] > 30


@pytest.mark.filterwarnings("ignore")
def test_no_claim_of_a_tree_in_units_is_false():
    """Groups, bounds, costs, responses: products, the data and what lies between."""
    found, wrong = hostile_trees.Counter(), []
    for seed in range(300):
        seen, here = hostile_trees.check_structured(seed)
        found.update(seen)
        wrong += here
    assert wrong == []
    assert found["finished"] > 100 and found["DataBounds"] > 50 and found["ProductBounds"] > 100


@pytest.mark.parametrize("kind", ["groups", "bounds", "costs", "responses"])
def test_columns_are_a_special_case_of_units(kind, rng):
    """What does not bind changes neither the bound nor the units that it fixes."""
    X, w = rng.standard_normal((40, 12)), np.zeros(12)
    w[:3] = 1.0
    y, given = X @ w + rng.standard_normal(40), {"n_nonzero_coefs": 3, "alpha": 0.5, "ridge": 2.0}
    plain = as_problem(X, y, **given)
    own = {
        "groups": {"feature_groups": list(range(12))},
        "bounds": {"bounds": (-100.0, 100.0)},
        "costs": {"costs": np.full(12, 2.0), "alpha": 0.25},
        "responses": {},
    }
    target = np.column_stack([y, np.zeros(40)]) if kind == "responses" else y
    other = as_problem(X, target, **given | own[kind])
    for ascends in (False, True):
        found = []
        for problem in (plain, other):
            tree = Prover(problem, Incumbent.at(problem, problem.zero())).tree
            node = tree._new[0]
            bounds = tree.bounds_of(node)
            relaxed = bounds.relax(node, np.inf, 0.0)
            if ascends and bounds.sharpen(node, relaxed, plain.objective(w)):
                relaxed = bounds.relax(node, np.inf, 0.0)
            found.append(relaxed)
        assert found[1].bound == pytest.approx(found[0].bound, rel=1e-6)
        np.testing.assert_allclose(found[1].scores, found[0].scores, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_no_claim_of_many_trees_is_false():
    assert wrong_in(range(1000, 1500))[1] == []


# trees -------------------------------------------------------------------------------------------


def grown(problem, start=None):
    """The finished tree of a problem, from a point or from zero."""
    start = Incumbent.at(problem, problem.zero() if start is None else start)
    tree = Prover(problem, start).tree
    while not tree.is_finished:
        tree.advance()
    return tree


@pytest.mark.parametrize("seed", [13, 15, 18, 25])
def test_of_dependent_columns_that_all_fit_the_best_ones_are_found(seed):
    # the first two are 5e-9 apart, and beside the third, 1e-7 away, that difference matters: the
    # fit on all of them leaves one out, which may be the wrong one
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((8, 5)))[0]
    a = Q[:, 0]
    near, far = 10.0 ** rng.uniform(-8.6, -8.1), 10.0 ** rng.uniform(-7.9, -7.0)
    X = np.column_stack([a, a + near * Q[:, 1], a + far * Q[:, 2], Q[:, 3] + a])
    y = Q[:, 1] + 0.5 * Q[:, 2] + Q[:, 3] + 0.3 * a + Q[:, 4]
    problem = as_problem(X, y, n_nonzero_coefs=int(rng.integers(3, 5)), ridge=1e-20)
    posed = hostile_trees.pose(problem, [])
    assert hostile_trees.wrong_end(grown(problem), posed, 0.0, 0) == []


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_the_bound_of_a_leaf_is_no_higher_than_its_fit_is_precise(loss):
    # separable classes with next to no ridge: objectives far below what a fit at zero has
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((6, 3)) * 10.0 ** rng.uniform(0, 8, 3)
        problem = as_problem(X, np.sign(X[:, 0]), loss=loss, n_nonzero_coefs=2, ridge=1e-8)
        posed = hostile_trees.pose(problem, [])
        tree = grown(problem)
        assert tree.bound <= posed.optimum * (1.0 + 1e-12)
        assert tree.incumbent.objective - tree.bound <= 1e-10 * problem.smooth(problem.zero())


def test_closing_a_node_at_once_counts_the_support_that_no_column_joins(rng):
    # a price that no column is worth: the least of all supports is the empty one
    X, y = rng.standard_normal((8, 3)), rng.standard_normal(8)
    problem = as_problem(X, y, alpha=50.0, n_nonzero_coefs=2, ridge=1.0)
    frame = products.frame_of_columns(problem, np.arange(3))
    bounds = products.ProductBounds(problem, frame)
    node = whole(problem, problem.zero())
    empty = problem.smooth(problem.zero())
    found = bounds.finish(node, 0.7 * empty)
    assert found is not None and found.bound <= empty
    assert found.bound == pytest.approx(empty, rel=1e-9)


def test_the_tableau_search_of_a_node_knows_the_rounding_of_the_incumbent(rng):
    # an objective of 1e-22 of the target's: at zero, where that search starts, rounding is larger
    Q = np.linalg.qr(rng.standard_normal((6, 4)))[0]
    problem = as_problem(Q, Q @ [1e6, 1e6, 1e-5, 5e-6], n_nonzero_coefs=3)
    best = Incumbent.at(problem, make_fits(problem).minimum(np.arange(2)).w)
    node = Node(np.arange(2), np.arange(2, 4), 0.0, np.zeros(2))
    is_done, found = search_tableaus(problem, node, best)
    assert is_done and found.support.tolist() == [0, 1, 2]


def test_without_a_ridge_there_may_be_no_bound(rng):
    X, y = rng.standard_normal((4, 6)), rng.standard_normal(4)
    with pytest.raises(NoBoundError, match="more columns than rows"):
        grown(as_problem(X, y, n_nonzero_coefs=2))
    with pytest.raises(NoBoundError, match="ridge"):
        grown(as_problem(X, np.sign(y), loss="logistic", n_nonzero_coefs=2))
    one_class = preprocess.apply(
        as_problem(X, np.ones(4), loss="logistic", n_nonzero_coefs=2, ridge=1.0)
    )
    with pytest.raises(NoBoundError, match="intercept"):
        grown(one_class.problem)


# rounding ----------------------------------------------------------------------------------------


def exact_bound(problem, node, point, slopes=None):
    """The tangent bound at a point in rational numbers: of squares in w, else with given slopes."""
    X = problem.design.columns(np.concatenate([node.included, node.free]))
    fractions = np.vectorize(Fraction, otypes=[object])
    X, y, weights = fractions(X), fractions(problem.y), fractions(problem.weights)
    ridge, price = Fraction(problem.ridge), Fraction(problem.sparsity.price)
    eta = X @ fractions(point)
    slopes = weights * (eta - y)
    b = -(X.T @ slopes)
    scores = sorted((b[node.included.size :] ** 2 / (2 * ridge) - price).tolist())
    room = problem.sparsity.budget - node.included.size
    gain = sum(b[: node.included.size] ** 2) / (2 * ridge)
    gain += sum(max(s, 0) for s in scores[max(len(scores) - room, 0) :])
    losses = sum(weights * (eta - y) ** 2) / 2
    return losses - slopes @ eta + price * node.included.size - gain


def whole(problem, w):
    """The node of all supports, at a point."""
    free = np.setdiff1d(np.arange(problem.n_features), problem.keep)
    point = SparsePoint(np.flatnonzero(w), w[w != 0.0, None])
    return Node(problem.keep, free, 0.0, np.zeros(free.size), point=point)


@pytest.mark.parametrize("kind", ["products", "data"])
@pytest.mark.filterwarnings("ignore")
def test_allowances_cover_rounding_and_are_not_large(kind, monkeypatch):
    shares, sizes = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        m, n = int(rng.integers(2, 12)), int(rng.integers(2, 8))
        X = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-3, 3, n)
        hostile.near_combination(rng, X)
        ridge = float((X**2).sum(axis=0).max()) * 10.0 ** rng.uniform(-6, 0)
        problem = as_problem(
            X, rng.standard_normal(m), n_nonzero_coefs=2, alpha=0.01, ridge=ridge,
            keep=[0] if seed % 3 == 0 else None,
        )  # fmt: skip
        # a start far away, from which updated slopes keep the rounding
        node = whole(problem, rng.standard_normal(n) * 10.0 ** rng.uniform(0, 12))
        if kind == "products":
            frame = products.frame_of_columns(problem, np.arange(n))
            bounds = products.ProductBounds(problem, frame)
            node.d, (at, values) = frame.ridge[frame.positions(node.units)], node.point
            node.point = SparsePoint(at, values * frame.lengths[at, None])
        else:
            bounds = data.DataBounds(problem, np.inf)
        relaxed = bounds.relax(node, np.inf, 0.0)
        # the same point in the given units: exact to a rounding of each coefficient
        columns, values = bounds.coefficients(node)
        w = np.zeros(n)
        w[columns] = values[:, 0]
        bare = _bare if kind == "products" else _bare_data
        bare = bare(monkeypatch, bounds, node)
        exact = float(exact_bound(problem, node, w[node.units]))
        allowance = bare - relaxed.bound
        shares.append((bare - exact) / allowance)
        sizes.append(allowance / problem.smooth(problem.zero()))
    assert max(np.abs(shares)) < 0.5
    assert np.median(sizes) < 1e-11


def _bare(monkeypatch, bounds, node):
    """The bound at the node's point with nothing taken away."""
    frame, here = bounds.frame, bounds.frame.of(node)[1]
    room = bounds.budget - node.included.size
    v = node.point.dense(here.at.size, 1)[here.at]
    with monkeypatch.context() as patch:
        patch.setattr(bounds, "frame", replace(frame, rounding=0.0))
        patch.setattr(products, "EPSILON", 0.0)
        patch.setattr(bounds_room, "EPSILON", 0.0)
        return bounds._prove(here, node.d, room, v, 0.0).bound


def _bare_data(monkeypatch, bounds, node):
    here = bounds.directions.part(node.units, node.included.size)
    w = node.point.dense(here.at.size, 1)[here.at, 0]
    eta = bounds.problem.design.columns(here.at) @ w
    point = data.Here(w, eta, 0.0, 0.0, np.empty(0), np.empty(0))
    with monkeypatch.context() as patch:
        patch.setattr(bounds, "rounding", 0.0)
        patch.setattr(data, "EPSILON", 0.0)
        patch.setattr(bounds_room, "EPSILON", 0.0)
        return bounds._prove(here, bounds.budget - node.included.size, point).bound


# parts -------------------------------------------------------------------------------------------


def test_counted_adds_the_largest_positive_scores(rng):
    for _ in range(200):
        n = int(rng.integers(1, 7))
        scores = rng.integers(-3, 4, n) * 1.0
        room = int(rng.integers(0, n + 2))
        ordered = np.sort(np.maximum(scores, 0.0))[::-1]
        total, last, following = counted(scores, room)
        assert total == ordered[:room].sum()
        if room < n:
            assert following == ordered[room]
            assert last == (ordered[room - 1] if room else np.inf)
        else:
            assert (last, following) == (0.0, 0.0)


def single(n, n_in=0, price=0.0, **given):
    """The directions of n columns of one price, without bounds."""
    free = np.full(n, -np.inf), np.full(n, np.inf)
    return Directions(
        np.arange(n), np.arange(n + 1), np.full(n, price), price, *free, n_in,
        is_single=True, is_bounded=False, is_mixed=False,
    )._replace(**given)  # fmt: skip


def slow_perspective(w, n_in, room, prices, most):
    """By bisection for the level at which the memberships fill the room."""
    free, prices, most = np.abs(w[n_in:]), prices[n_in:], most[n_in:]

    def memberships(level):
        full = np.minimum(np.sqrt(2.0 * (prices + level)), most)
        return np.where(free >= full, free > 0.0, free / np.maximum(full, 1e-300))

    low, high = 0.0, (1e3 * free.sum() + 1.0) ** 2
    low, high = (0.0, 0.0) if memberships(0.0).sum() <= room else (low, high)
    for _ in range(300):
        level = 0.5 * (low + high)
        low, high = (level, high) if memberships(level).sum() > room else (low, level)
    z, used = memberships(high), free > 0.0
    cost = prices @ z + 0.5 * (free[used] ** 2 / z[used]).sum()
    return 0.5 * (w[:n_in] @ w[:n_in]) + cost


@pytest.mark.parametrize("kind", ["plain", "costs", "bounds"])
def test_perspective_is_the_least_over_memberships(rng, kind):
    for _ in range(300):
        n = int(rng.integers(1, 7))
        w = rng.standard_normal(n) * rng.integers(0, 2, n) * 10.0 ** rng.uniform(-3, 3)
        n_in, price = int(rng.integers(0, n)), float(rng.choice([0.0, 0.01, 1.0]))
        room, here = int(rng.integers(1, n + 1)), single(n, n_in, price)
        if kind != "plain":
            prices = price + rng.random(n) * rng.integers(0, 2, n)
            here = here._replace(prices=prices, is_mixed=True)
        if kind == "bounds":
            # so wide that there is always room
            high = np.abs(w) * (n + rng.random(n)) + 1e-9
            here = here._replace(low=-high, high=high, is_bounded=True)
        expected = slow_perspective(w, n_in, room, here.prices, here.high)
        found = bounds_room.perspective(here, w[:, None], np.ones(n), room)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "poisson", "gamma", "tweedie", "huber"])
def test_best_intercepts_are_inside_the_box(loss, rng):
    for _ in range(20):
        X = rng.standard_normal((8, 3)) * 10.0 ** rng.uniform(-1, 1, 3)
        y = np.sign(rng.standard_normal(8)) if loss == "logistic" else rng.integers(1, 9, 8) * 1.0
        y[:2] = -y[2:4] if loss == "logistic" else y[:2]
        if abs(y.sum()) == 8 and loss == "logistic":
            continue
        given = as_problem(X, y, loss=loss, n_nonzero_coefs=2, ridge=10.0 ** rng.uniform(-2, 2))
        problem = preprocess.apply(given).problem
        ceiling = problem.smooth(problem.zero())
        box = data.intercept_box(problem, ceiling)
        assert np.isfinite(box)
        radius = np.sqrt(2.0 * ceiling / problem.ridge)
        for _ in range(20):
            v = rng.standard_normal(3)
            v *= radius * rng.random() / np.linalg.norm(v)
            assert abs(problem.best_intercept(problem.linear(v))) <= box


def test_a_factorization_with_the_margin_proves_definiteness(rng):
    n_proven = 0
    for _ in range(100):
        m, n = int(rng.integers(2, 12)), int(rng.integers(1, 7))
        X = rng.standard_normal((m, n))
        hostile.near_combination(rng, X)
        problem = as_problem(X, rng.standard_normal(m), n_nonzero_coefs=1)
        frame, at = products.frame_of_columns(problem, np.arange(n)), np.arange(n)
        H = (X / frame.lengths).astype(Long)
        H = H.T @ H
        least = float(np.linalg.eigvalsh(H.astype(np.float64))[0])
        assert np.abs(H - frame.H).max() <= frame.rounding
        # definite by less than the margin is not proven; by twice as much it is
        d = np.full(n, least - 0.5 * frame.margin(n))
        assert frame.are_definite(at, d) is None
        assert frame.are_definite(at, d - 2.0 * frame.margin(n)) is not None
        n_proven += least > frame.margin(n)
    assert n_proven > 20


def relaxation_of(H, c, d, here):
    return products.new_relaxation(H, here, c[:, None], d, np.zeros((c.size, 1)), H.diagonal())


def relaxed_problems(rng, count):
    """(H, c, d, n_in, room, price) of small relaxations, with the value and the bound of each."""
    for _ in range(count):
        n = int(rng.integers(2, 6))
        A = rng.standard_normal((n + 2, n))
        H, c = A.T @ A, 3.0 * rng.standard_normal(n)
        d = np.full(n, 0.8 * np.linalg.eigvalsh(H)[0])
        n_in, price = int(rng.integers(0, 2)), float(rng.choice([0.0, 0.3]))
        room = int(rng.integers(1, n - n_in + 1))
        relaxation = relaxation_of(H, c, d, single(n, n_in, price))
        _, value, bound, _ = products.relax_units(relaxation, room, price, 0.0, np.inf, 1e-9, 0.0)
        yield (H, c, d, n_in, room, price), value, bound


def test_a_relaxation_encloses_the_convex_minimum_and_reaches_it(rng):
    for problem, value, bound in relaxed_problems(rng, 40):
        expected = slow_relaxation(*problem)
        assert bound - 1e-5 <= expected <= value + 1e-5
        assert value - bound <= 1e-8


def test_relaxations_of_few_columns_end_at_their_minimum(rng):
    for _, value, bound in relaxed_problems(rng, 400):
        assert value - bound <= 1e-7 * max(1.0, abs(value))


def test_large_systems_are_solved_outside_the_kernel_with_the_same_result(rng, monkeypatch):
    for price in (0.0, 0.3):
        A = rng.standard_normal((60, 40))
        H, c = A.T @ A / 60, rng.standard_normal(40)
        d = np.full(40, 0.8 * np.linalg.eigvalsh(H)[0])
        found = []
        for size in (40, 1):
            monkeypatch.setattr(bounds_room, "SMALL_SYSTEM", size)
            relaxation = relaxation_of(H, c, d, single(40, 2, price))
            found.append(products.relax_units(relaxation, 5, price, 0.0, np.inf, 1e-9, 0.0)[1:3])
        assert found[1][0] - found[1][1] < 1e-8
        np.testing.assert_allclose(found[0], found[1], atol=1e-8)


def test_a_joint_step_raises_the_bound_and_keeps_what_is_left_definite(rng):
    X, w = rng.standard_normal((66, 60)), np.zeros(60)
    w[:5] = 1.0
    problem = as_problem(X, X @ w + rng.standard_normal(66), n_nonzero_coefs=5, ridge=0.1)
    frame = products.frame_of_columns(problem, np.arange(60))
    bounds = products.ProductBounds(problem, frame)
    node = Node(np.arange(0), np.arange(60), 0.0, np.zeros(60))
    assert bounds.start(node)
    cutoff = problem.objective(w)
    first = found = bounds.relax(node, cutoff, 0.0)
    for _ in range(3):
        assert cutoff - found.bound > products.FAR * cutoff
        assert bounds.sharpen(node, found, cutoff)
        found = bounds.relax(node, cutoff, 0.0)
    assert found.bound > first.bound + 0.02 * cutoff
    scaled = X / frame.lengths
    H = scaled.T @ scaled + np.diag(0.1 / frame.lengths**2)
    assert np.linalg.eigvalsh(H - np.diag(node.d))[0] > 0.0


def slow_relaxation(H, c, d, n_in, room, price):
    """The minimum over memberships z, with the best v for each, by a general solver."""
    n = c.size

    def value(free):
        z = np.concatenate([np.ones(n_in), np.maximum(free, 1e-9)])
        v = np.linalg.solve(H + np.diag(d / z - d), c)
        slope = price - 0.5 * d * v * v / z**2
        return -0.5 * c @ v + price * z[n_in:].sum(), slope[n_in:]

    start = np.full(n - n_in, 0.9 * min(room / (n - n_in), 1.0))
    found = minimize(
        value, start, jac=True, method="SLSQP", bounds=[(1e-9, 1.0)] * (n - n_in),
        constraints={"type": "ineq", "fun": lambda z: room - z.sum()},
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    return found.fun


def test_a_node_leaves_out_and_includes_columns_with_all_that_belongs_to_them():
    node = Node(
        np.array([7]), np.array([2, 5, 9]), 0.0, np.array([0.2, 0.5, 0.9]),
        d=np.array([70.0, 20.0, 50.0, 90.0]), size=np.array([0.2, 0.5, 0.9]),
    )  # fmt: skip
    node.include(np.array([False, True, False]))
    assert node.included.tolist() == [7, 5] and node.free.tolist() == [2, 9]
    assert node.d is not None and node.d.tolist() == [70.0, 50.0, 20.0, 90.0]
    assert node.size.tolist() == [0.2, 0.9] and node.z.tolist() == [0.2, 0.9]
    node.only(np.array([False, True]))
    assert node.included.tolist() == [7, 5] and node.free.tolist() == [9]
    assert node.d.tolist() == [70.0, 50.0, 90.0]
    assert node.size.tolist() == [0.9] and node.z.tolist() == [0.9]


def test_fits_of_leaves_are_found_in_any_order(rng):
    # the enumeration agrees with the fits of the package where both are precise
    X, y = rng.standard_normal((12, 4)), np.sign(rng.standard_normal(12))
    problem = as_problem(X, y, loss="logistic", alpha=0.1, ridge=0.5)
    posed = hostile_trees.pose(problem, [])
    fits = make_fits(problem)
    for mask in range(16):
        support = np.flatnonzero([(mask >> j) & 1 for j in range(4)])
        value = fits.minimum(support).value + 0.1 * support.size
        assert posed.values[mask] == pytest.approx(value, rel=1e-12)


def test_other_losses_are_optimal_to_what_rounding_lets_them_tell(rng):
    """Long columns beside a weak ridge hide 1e-9 of the objective at any point."""
    X = 300.0 * rng.standard_normal((15, 4))
    y = np.exp(X[:, 0] / 300.0) * rng.gamma(2.0, 0.5, 15)
    for loss in ("gamma", "poisson", "huber"):
        problem = as_problem(X, y, loss=loss, n_nonzero_coefs=2, ridge=1e-3)
        result = solve_problem(preprocess.apply(problem).problem, "exact", random_state=0)
        assert result.status is Status.OPTIMAL
        for S in combinations(range(4), 2):
            other = preprocess.apply(replace(problem, keep=np.array(S))).problem
            reached = solve_problem(other, "refit").objective
            assert result.objective <= reached * (1.0 + 1e-8)
