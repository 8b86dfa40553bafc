"""Method "dec" is its specification, descends, stays feasible, and ends where it should."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
import oracles
from blockl0 import Status
from blockl0.dec import state
from blockl0.dec.state import GramState, StreamState, start_state
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem
from dec_reference import dec_reference
from grid import losses_for, quick_first
from linear_data import Linear

FORMS = {
    "budget": {"n_nonzero_coefs": 4},
    "price": {"alpha": 0.3},
    "both": {"n_nonzero_coefs": 6, "alpha": 0.1},
}
LOSSES = losses_for("dec")
ENGINES = ["gram", "stream"]


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    if request.param == "stream":
        monkeypatch.setattr(state, "GRAM_BYTES", 0)
    return request.param


make = Linear(20, 14, {0: 2.0, 1: -1.5, 2: 1.0}, common=0.8, density=1.0)


def trajectory(X, y, **options):
    """The result, and w after 0, 1, 2, … iterations."""
    points = []
    result = blockl0.solve(
        X, y, method="dec", callback=lambda progress: points.append(progress.coef.copy()), **options
    )
    return result, np.array(points)


# -- the specification -----------------------------------------------------------------------------


@pytest.mark.parametrize("storage", quick_first([np.asarray, sp.csr_matrix], 1))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("working_set", "greedy"),
    [
        ("R3G2", "split"),
        ("R3G2", "ranked"),
        ("R0G4", "split"),
        ("R4G0", "split"),
        ("cyclic", "split"),
    ],
)
def test_whole_trajectories_agree_with_the_specification(
    engine, storage, form, working_set, greedy
):
    for seed in range(2):
        X, y = make(seed=seed, density=0.6)
        options = {"working_set": working_set, "greedy": greedy or "split", **FORMS[form]}
        options |= {"max_iter": 40, "window": 20, "random_state": seed}
        expected = np.array(dec_reference(X, y, **options))
        result, points = trajectory(storage(X), y, **options)
        assert result.n_iter == len(expected) - 1
        assert np.array_equal(points != 0.0, expected != 0.0)
        np.testing.assert_allclose(points, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("m", "n"), [(6, 25), (60, 8)])
@pytest.mark.parametrize("form", FORMS)
def test_wide_and_tall_ridge_and_init_agree_with_the_specification(engine, form, m, n):
    X, y = make(m, n, 3)
    init = np.zeros(n)
    init[[2, 5]] = 1.0, -1.0
    options = {"working_set": "R4G2", "ridge": 0.5, "theta": 0.1, "init": init, **FORMS[form]}
    options |= {"max_iter": 50, "random_state": 9}
    expected = np.array(dec_reference(X, y, **options))
    _, points = trajectory(X, y, **options)
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-6)
    assert np.array_equal(points[0], init)


def test_a_gram_matrix_is_used_where_it_pays_and_never_for_other_losses(rng):
    X = rng.standard_normal((5, 30))
    y = np.sign(rng.standard_normal(5))
    problem = as_problem(X, y, n_nonzero_coefs=2)
    assert isinstance(start_state(problem, np.zeros(30), 1000), GramState)
    assert isinstance(start_state(problem, np.zeros(30), 2), StreamState)
    problem = as_problem(X, y, n_nonzero_coefs=2, loss="logistic")
    assert isinstance(start_state(problem, np.zeros(30), 1000), StreamState)


@pytest.mark.parametrize("kind", [GramState, StreamState])
@pytest.mark.parametrize("weighted", [False, True])
def test_state_stays_true_to_the_data_over_many_moves(rng, kind, weighted):
    X, y = make(30, 20, 1)
    weights = rng.uniform(0.5, 2.0, 30) if weighted else None
    problem = as_problem(X, y, alpha=0.2, ridge=0.3, sample_weight=weights)
    point = kind(problem, np.zeros(20))
    Q = X.T @ np.diag(np.ones(30) if weights is None else weights) @ X + 0.3 * np.eye(20)
    np.testing.assert_allclose(point.curvature, np.diag(Q))
    for _ in range(250):
        block = np.sort(rng.choice(20, 4, replace=False))
        np.testing.assert_allclose(point.block_gradient(block), problem.gradient(point.w)[block])
        np.testing.assert_allclose(point.curvature_block(block), Q[np.ix_(block, block)])
        point.move(block, rng.standard_normal(4) * (rng.random(4) < 0.5))
        assert point.n_nonzero == np.count_nonzero(point.w)
        assert point.objective == pytest.approx(problem.objective(point.w), rel=1e-10)
    np.testing.assert_allclose(point.gradient, problem.gradient(point.w), atol=1e-9)


# -- descent and feasibility -----------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_objective_never_rises_and_every_point_is_feasible(engine, loss, form):
    X, y = make(40, 20, 4, loss=loss)
    result, points = trajectory(
        X, y, loss=loss, working_set="R4G2", max_iter=150, random_state=0, **FORMS[form]
    )
    problem = as_problem(X, y, loss=loss, **FORMS[form])
    values = np.array([problem.objective(w) for w in points])
    assert np.isfinite(values).all()
    assert np.all(np.diff(values) <= 1e-12 * values[0])
    np.testing.assert_allclose(result.history.objective, values, rtol=1e-10)
    assert np.array_equal(result.history.n_nonzero, (points != 0).sum(axis=1))
    assert np.all(np.diff(result.history.seconds) >= 0.0)
    assert result.objective == problem.objective(result.coef)  # the same sum
    assert result.objective < values[0]
    assert np.array_equal(result.support, np.flatnonzero(result.coef))
    assert len(points) == result.n_iter + 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("theta", [1e-3, 1.0, 50.0])
def test_sufficient_decrease_at_every_step(engine, loss, theta):
    for form in FORMS.values():
        X, y = make(40, 20, 5, loss=loss)
        _, points = trajectory(
            X, y, loss=loss, theta=theta, working_set="R4G2", max_iter=80, random_state=1, **form
        )
        problem = as_problem(X, y, loss=loss, **form)
        values = np.array([problem.objective(w) for w in points])
        steps = np.sum(np.diff(points, axis=0) ** 2, axis=1)
        assert np.all(values[1:] <= values[:-1] - 0.5 * theta * steps + 1e-11 * values[0])


# -- where it ends ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("form", FORMS)
def test_cyclic_ends_block_stationary(engine, size, form):
    for seed in range(3):
        X, y = make(15, 9, seed)
        options = {"working_set": f"cyclic{size}", "tol": 0.0, "max_iter": 20_000}
        result = blockl0.solve(X, y, method="dec", random_state=seed, **options, **FORMS[form])
        Q, p, _ = oracles.quadratic_of(X, y)
        price, budget = as_problem(X, y, **FORMS[form]).sparsity
        assert result.status is Status.CONVERGED
        assert oracles.is_block_stationary(
            Q, p, result.coef, size, price, budget, theta=1e-3, tol=1e-7
        )


def is_newton_block_stationary(problem, w, k, theta, tol):
    """Whether w minimizes the majorizer plus ½θ‖z − w‖² over every block of k, by enumeration."""
    n, X = w.size, problem.design.columns(np.arange(w.size))
    bound = problem.loss.curvature_bound
    Q = bound * X.T @ X + (problem.ridge + theta) * np.eye(n)
    p = problem.gradient(w) - Q @ w
    price, budget = problem.sparsity
    here = oracles.objective(Q, p, w, price)
    for block in combinations(range(n), k):
        best = oracles.block_minimum(Q, p, w, block, price, budget)
        if oracles.objective(Q, p, best, price) < here - tol:
            return False
    return True


@pytest.mark.parametrize("loss", quick_first(LOSSES, 2))
@pytest.mark.parametrize("form", FORMS)
def test_cyclic_ends_newton_block_stationary_for_every_loss(loss, form):
    X, y = make(30, 8, 6, loss=loss)
    options = {"loss": loss, "ridge": 0.1, **FORMS[form]}
    result = blockl0.solve(
        X, y, method="dec", working_set="cyclic2", tol=1e-13, max_iter=20_000,
        random_state=0, **options,
    )  # fmt: skip
    assert result.status is Status.CONVERGED
    problem = as_problem(X, y, **options)
    assert is_newton_block_stationary(problem, result.coef, 2, 1e-3, 1e-7)
    # in particular the gradient vanishes on the support
    assert np.abs(problem.gradient(result.coef)[result.support]).max() < 1e-3


@pytest.mark.parametrize("loss", quick_first(LOSSES, 2))
@pytest.mark.parametrize("form", FORMS)
def test_dense_and_sparse_agree_for_every_loss(loss, form):
    X, y = make(40, 20, 7, loss=loss, density=0.4)
    options = {"loss": loss, "working_set": "R4G2", "random_state": 3, **FORMS[form]}
    options |= {"max_iter": 100}
    dense = blockl0.solve(X, y, method="dec", **options)
    for convert in (sp.csc_array, sp.csr_matrix, sp.coo_array):
        sparse = blockl0.solve(convert(X), y, method="dec", **options)
        assert np.array_equal(sparse.support, dense.support)
        np.testing.assert_allclose(sparse.coef, dense.coef, atol=1e-6)
        assert sparse.n_iter == dense.n_iter  # the tolerance that stops is far above rounding


def test_logistic_separates_two_informative_columns(rng):
    X = rng.standard_normal((300, 30))
    y = (X[:, 4] - X[:, 11] + 0.3 * rng.standard_normal(300) > 0).astype(int)
    result = blockl0.solve(X, y, n_nonzero_coefs=2, loss="logistic", ridge=1.0, random_state=0)
    assert result.support.tolist() == [4, 11]


# -- the pieces of the problem ---------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_kept_columns_stay(engine, loss):
    X, y = make(30, 12, 8, loss=loss)
    for form in ({"n_nonzero_coefs": 3}, {"alpha": 1e6}, {"n_nonzero_coefs": 2, "alpha": 0.2}):
        result, points = trajectory(
            X, y, loss=loss, keep=[9, 10], working_set="R4G2", max_iter=60, random_state=0, **form
        )
        assert np.all(points[:, [9, 10]] != 0.0)
        assert result.n_nonzero <= form.get("n_nonzero_coefs", 12)
    result = blockl0.solve(X, y, loss=loss, keep=[9], alpha=1e6, method="dec", random_state=0)
    assert result.support.tolist() == [9]


@pytest.mark.parametrize("loss", LOSSES)
def test_integer_weights_are_repeated_rows(engine, loss, rng):
    X, y = make(30, 12, 9, loss=loss)
    weights = rng.integers(0, 4, 30)
    options = {"loss": loss, "n_nonzero_coefs": 4, "alpha": 0.1, "ridge": 0.2, "random_state": 2}
    options |= {"working_set": "R4G2", "max_iter": 60}
    weighted, points = trajectory(X, y, sample_weight=weights, **options)
    rows = np.repeat(np.arange(30), weights)
    repeated, same_points = trajectory(X[rows], y[rows], **options)
    np.testing.assert_allclose(points, same_points, atol=1e-6)
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)


def test_ridge_is_augmented_rows(engine):
    X, y = make(10, 16, 10)
    options = {"n_nonzero_coefs": 5, "working_set": "R4G2", "random_state": 2, "max_iter": 60}
    _, points = trajectory(X, y, ridge=0.7, **options)
    _, same = trajectory(
        np.vstack([X, np.sqrt(0.7) * np.eye(16)]), np.append(y, np.zeros(16)), **options
    )
    np.testing.assert_allclose(points, same, atol=1e-6)


def test_init_is_the_start_and_is_left_alone(engine):
    X, y = make(seed=11)
    init = np.zeros(14)
    init[3] = 1.0
    before = init.copy()
    _, points = trajectory(X, y, n_nonzero_coefs=3, init=init, random_state=0)
    assert np.array_equal(points[0], before) and np.array_equal(init, before)
    # an optimal start is where it ends
    best = blockl0.solve(X, y, n_nonzero_coefs=3, method="exact")
    again = blockl0.solve(X, y, n_nonzero_coefs=3, method="dec", init=best.coef, random_state=0)
    assert again.objective == pytest.approx(best.objective, rel=1e-9)
    assert np.array_equal(again.support, best.support)


def test_an_own_working_set_object_is_used():
    class Windows:
        """Four neighbours, moving on by one."""

        def select(self, state, rng):
            first = state.iteration % (state.w.size - 3)
            return np.arange(first, first + 4)

    X, y = make(seed=12)
    result, points = trajectory(
        X, y, n_nonzero_coefs=3, working_set=Windows(), max_iter=30, random_state=0
    )
    for iteration, change in enumerate(np.diff(points, axis=0)):
        first = iteration % 11
        assert set(np.flatnonzero(change)) <= set(range(first, first + 4))
    assert result.options["working_set"].__class__ is Windows


def test_blocks_of_all_coordinates_reach_the_optimum():
    for seed in range(5):
        X, y = make(20, 10, seed)
        Q, p, constant = oracles.quadratic_of(X, y)
        for form in FORMS.values():
            price, budget = as_problem(X, y, **form).sparsity
            _, value = oracles.brute_force(Q, p, price, budget)
            result = blockl0.solve(
                X, y, method="dec", working_set="cyclic10", theta=1e-6, random_state=0, **form
            )
            assert result.objective == pytest.approx(value + constant, rel=1e-7)


def test_zero_theta_is_allowed(engine):
    X, y = make(seed=13)
    result = blockl0.solve(X, y, n_nonzero_coefs=4, method="dec", theta=0.0, random_state=0)
    assert result.n_nonzero <= 4 and np.isfinite(result.objective)


# -- the run ---------------------------------------------------------------------------------------


def test_same_seed_same_result_and_another_seed_another_path():
    X, y = make(30, 40, 14)
    options = {"n_nonzero_coefs": 8, "method": "dec", "working_set": "R3G2", "max_iter": 30}
    first, second, other = (
        blockl0.solve(X, y, random_state=seed, **options) for seed in (1, np.int64(1), 2)
    )
    # a promise: every bit, on one machine
    assert np.array_equal(first.coef, second.coef)
    assert np.array_equal(first.history.objective, second.history.objective)
    assert not np.array_equal(first.history.objective, other.history.objective)
    generator = np.random.default_rng(1)
    assert np.array_equal(blockl0.solve(X, y, random_state=generator, **options).coef, first.coef)


def test_callback_sees_every_iteration_and_stops():
    X, y = make(seed=15)
    seen = []

    def stop_at_five(progress):
        seen.append(progress.iteration)
        assert progress.lower_bound is None
        assert progress.n_nonzero == np.count_nonzero(progress.coef)
        return progress.iteration == 5

    result = blockl0.solve(X, y, n_nonzero_coefs=3, method="dec", callback=stop_at_five)
    assert result.status is Status.STOPPED and result.n_iter == 5
    assert seen == [0, 1, 2, 3, 4, 5]


def test_stops_at_max_iter_or_when_a_window_brings_nothing():
    X, y = make(seed=16)
    options = {"n_nonzero_coefs": 3, "method": "dec", "random_state": 0}
    result = blockl0.solve(X, y, max_iter=7, **options)
    assert result.status is Status.MAX_ITER and result.n_iter == 7
    result = blockl0.solve(X, y, window=10, **options)
    assert result.status is Status.CONVERGED and result.n_iter >= 10
    drop = result.history.objective
    assert drop[-10] - result.objective <= 1e-5 * 10 * drop[-10] * 1.01
    longer = blockl0.solve(X, y, window=30, **options)
    assert longer.n_iter >= result.n_iter and longer.objective <= result.objective + 1e-12


def test_a_cyclic_run_is_judged_by_the_round():
    X, y = make(20, 12, 17)
    result = blockl0.solve(
        X, y, n_nonzero_coefs=3, method="dec", working_set="cyclic", window=5, random_state=0
    )
    assert result.status is Status.CONVERGED and result.n_iter >= 66


# -- the paper's example ---------------------------------------------------------------------------


def paper_example():
    """Q = cc' + I, p = 1 with c = (1, …, 6), as X and y with X'X = Q and X'y = −p."""
    c = np.arange(1.0, 7.0)
    Q, p = np.outer(c, c) + np.eye(6), np.ones(6)
    X = np.linalg.cholesky(Q).T
    return Q, p, X, np.linalg.solve(X.T, -p)


@pytest.mark.parametrize("form", [{"n_nonzero_coefs": 4}, {"alpha": 0.01}])
def test_paper_example_stalls_with_blocks_of_one_and_is_solved_with_blocks_of_three(form):
    Q, p, X, y = paper_example()
    price, budget = form.get("alpha", 0.0), form.get("n_nonzero_coefs")
    _, best = oracles.brute_force(Q, p, price, budget)
    excess = {1: [], 2: [], 3: []}
    for size, seed in product(excess, range(6)):
        result = blockl0.solve(
            X, y, method="dec", working_set=f"cyclic{size}", theta=1e-6, tol=0.0, max_iter=5000,
            random_state=seed, **form,
        )  # fmt: skip
        assert oracles.is_block_stationary(
            Q, p, result.coef, size, price, budget, theta=1e-6, tol=1e-7
        )
        excess[size].append(result.objective - 0.5 * y @ y - best)
    assert min(min(values) for values in excess.values()) > -1e-9
    assert max(excess[1]) > 1e-3
    # Table 1: the only block-3 stationary point is the optimum
    assert max(excess[3]) < 1e-6


def test_a_problem_with_an_intercept_is_refused():
    """Its blocks would be priced without the intercept that its objective is the minimum over."""
    X, y = np.random.default_rng(0).standard_normal((20, 3)), np.arange(20) % 2
    problem = apply(as_problem(X, y, n_nonzero_coefs=1, loss="logistic", ridge=0.1)).problem
    with pytest.raises(ValueError, match=r"method='dec' has no intercept.*use method='refit'"):
        solve_problem(problem, "dec")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("ridge", [5e-324, 1e-315, 1e-300])
def test_a_ridge_below_the_normal_range_overflows_nothing(ridge):
    y = np.arange(5.0)
    for X in (np.zeros((5, 2)), np.column_stack([np.zeros(5), y])):
        result = blockl0.solve(X, y, n_nonzero_coefs=1, ridge=ridge, method="dec")
        assert result.objective <= blockl0.solve(X, y, n_nonzero_coefs=1).objective + 1e-12
