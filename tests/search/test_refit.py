"""Method "refit": no single move improves it, effort never hurts, and the tableau is right."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
import oracles
from blockl0 import Status, kernels
from blockl0.losses import LOSSES, names_of
from blockl0.moves.pool import Pool
from blockl0.problem.problem import as_problem
from blockl0.search.search import EFFORTS
from grid import EACH_TARGET, ONE_OUTPUT, OTHERS, losses_for, quick_first
from linear_data import Linear
from targets import amounts, is_positive, takes_labels

FORMS = [{"n_nonzero_coefs": 4}, {"alpha": 0.8}, {"n_nonzero_coefs": 4, "alpha": 0.3}]
FORM_IDS = ["budget", "price", "both"]
forms = pytest.mark.parametrize("form", FORMS, ids=FORM_IDS)


make = Linear(30, 12, dict.fromkeys(range(4), 1.0), common=0.7)


def target_of(loss, y, seed=0):
    """The data's target made fit for a loss: noisy labels, counts, or outliers."""
    rng = np.random.default_rng(seed)
    if LOSSES[loss].is_quadratic:
        return y
    if takes_labels(loss):
        return np.where(y + 2.0 * rng.standard_normal(y.size) > 0, 1.0, -1.0)
    if is_positive(loss):
        return amounts(loss, rng.poisson(np.exp(0.3 * y)))
    return y + 10.0 * (rng.random(y.size) < 0.1)


def solve(X, y, **options):
    result = blockl0.solve(X, y, **{"random_state": 0, **options})
    assert np.isfinite(result.coef).all() and np.isfinite(result.objective)
    assert result.n_nonzero <= options.get("n_nonzero_coefs", result.coef.size)
    return result


def value_on(X, y, support, alpha=0.0, ridge=0.0):
    """The least objective on a support, by least squares on scaled columns."""
    S = list(support)
    A = np.vstack([X[:, S], np.sqrt(ridge) * np.eye(len(S))])
    b = np.append(y, np.zeros(len(S)))
    norms = np.linalg.norm(A, axis=0)
    A = A / np.where(norms > 0, norms, 1.0)
    r = b - A @ np.linalg.lstsq(A, b, rcond=None)[0]
    return 0.5 * r @ r + alpha * len(S)


def best_neighbour(X, y, support, n_nonzero_coefs=None, alpha=0.0, ridge=0.0, keep=()):
    """The least objective after one addition, removal or swap, the whole support re-fitted."""
    n = X.shape[1]
    inside, budget = set(map(int, support)), n if n_nonzero_coefs is None else n_nonzero_coefs
    out = [inside - {j} for j in inside - set(keep)]
    near = out + [inside | {i} for i in range(n)] + [s | {i} for s, i in product(out, range(n))]
    return min(
        (value_on(X, y, sorted(s), alpha, ridge) for s in near if len(s) <= budget), default=np.inf
    )


# -- stationarity ----------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("shape", [(40, 25), (12, 25)], ids=["tall", "wide"])
@forms
def test_no_single_move_improves(form, shape, ridge):
    for seed in range(4):
        X, y = make(*shape, seed)
        for options in ({"effort": "fast"}, {"effort": 1, "pool": 6}, {}):
            result = solve(X, y, ridge=ridge, **form, **options)
            near = best_neighbour(X, y, result.support, ridge=ridge, **form)
            assert result.objective <= near + 1e-8 * (0.5 * y @ y)


@forms
def test_objective_is_that_of_the_coefficients_on_their_support(form):
    X, y = make(seed=3)
    result = solve(X, y, ridge=0.5, **form)
    w, alpha = result.coef, form.get("alpha", 0.0)
    by_hand = 0.5 * np.sum((y - X @ w) ** 2) + 0.25 * w @ w + alpha * np.count_nonzero(w)
    assert result.objective == pytest.approx(by_hand, rel=1e-12)
    assert result.objective == pytest.approx(value_on(X, y, result.support, alpha, 0.5), rel=1e-10)
    assert np.array_equal(result.support, np.flatnonzero(w))


@forms
def test_thorough_is_mostly_the_global_optimum(form):
    hits = 0
    for seed in range(12):
        X, y = make(20, 12, seed, noise=3.0)
        found = solve(X, y, effort="thorough", **form).objective
        best = solve(X, y, method="exact", **form).objective
        assert found >= best * (1 - 1e-9)
        hits += found <= best * (1 + 1e-7)
    assert hits >= 10


@forms
def test_more_effort_is_never_worse(form):
    for seed in range(3):
        X, y = make(40, 120, seed, noise=2.0)
        values = [
            solve(X, y, effort=effort, random_state=seed, **form).objective
            for effort in (0, 1, 2, 5)
        ]
        # no tolerance: the same run, continued
        assert all(b <= a for a, b in pairwise(values))


def test_effort_is_a_number_of_fruitless_rounds():
    X, y = make(40, 60, noise=2.0)
    for name, rounds in EFFORTS.items():
        named, counted = (solve(X, y, alpha=4.0, effort=e, random_state=0) for e in (name, rounds))
        assert 0 < named.n_nonzero < 20
        assert np.array_equal(named.coef, counted.coef)  # the same run
        # a round without gain repeats the number, it does not compute it again
        values = named.history.objective
        fruitless = np.count_nonzero(values == values[-1]) - 1
        # the first round is made in any case, and the search may end sooner, where walks agree
        assert fruitless <= rounds + (values[0] == values[-1])
        assert values.size >= 2


@forms
def test_same_seed_same_result(form):
    X, y = make(40, 80, noise=2.0)
    a, b = (solve(X, y, random_state=5, **form) for _ in range(2))
    # a promise: every bit, on one machine
    assert np.array_equal(a.coef, b.coef) and a.objective == b.objective


@pytest.mark.parametrize("loss", ONE_OUTPUT)
def test_history_does_not_increase(loss):
    X, y = make(40, 60, seed=1, noise=2.0)
    y = target_of(loss, y)
    result = solve(X, y, loss=loss, n_nonzero_coefs=4)
    # the least so far, and the same function of the same point
    assert np.all(np.diff(result.history.objective) <= 0.0)
    assert result.history.objective[-1] == result.objective


# -- equivalent problems ---------------------------------------------------------------------------


@pytest.mark.parametrize("loss", quick_first(ONE_OUTPUT, 3))
@forms
def test_dense_and_sparse_agree(form, loss):
    X, y = make(80, 20, seed=2)
    X = X * (np.abs(X) > 0.8)
    y = target_of(loss, y)
    dense = solve(X, y, loss=loss, **form)
    for convert in (sp.csc_array, sp.csr_matrix, sp.coo_array):
        sparse = solve(convert(X), y, loss=loss, **form)
        assert np.array_equal(dense.support, sparse.support)
        np.testing.assert_allclose(dense.coef, sparse.coef, rtol=1e-6, atol=1e-8)


@forms
def test_ridge_is_rows_below_the_data(form):
    X, y = make()
    below = np.vstack([X, np.sqrt(3.0) * np.eye(12)]), np.append(y, np.zeros(12))
    a, b = solve(X, y, ridge=3.0, **form), solve(*below, **form)
    assert np.array_equal(a.support, b.support)
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-9)
    assert a.objective == pytest.approx(b.objective)


@pytest.mark.parametrize("loss", ONE_OUTPUT)
@forms
def test_integer_weights_are_repeated_rows(form, loss):
    X, y = make(80, 12)
    y = target_of(loss, y)
    weights = np.arange(80) % 4
    a = solve(X, y, sample_weight=weights, loss=loss, **form)
    b = solve(np.repeat(X, weights, axis=0), np.repeat(y, weights), loss=loss, **form)
    assert np.array_equal(a.support, b.support)
    np.testing.assert_allclose(a.coef, b.coef, rtol=1e-5, atol=1e-7)


# -- keep and init ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", EACH_TARGET)
@forms
def test_kept_columns_stay(form, loss):
    X, y = make(40, 30, seed=4)
    keep = [9, 21]
    y = target_of(loss, y)
    result = solve(X, y, keep=keep, loss=loss, **form)
    assert set(keep) <= set(result.support.tolist())
    if LOSSES[loss].is_quadratic:
        near = best_neighbour(X, y, result.support, keep=keep, **form)
        assert result.objective <= near + 1e-8 * (0.5 * y @ y)


def test_a_kept_column_stays_when_init_holds_its_copy():
    X, y = make()
    init = np.eye(24)[0]
    result = solve(np.hstack([X, X]), y, alpha=0.5, keep=[12], init=init)
    assert 12 in result.support and 0 not in result.support


@pytest.mark.parametrize("loss", EACH_TARGET)
@forms
def test_never_worse_than_the_fit_on_the_support_of_init(form, loss):
    X, y = make(30, 30, seed=6, noise=2.0)
    y = target_of(loss, y)
    best = solve(X, y, loss=loss, **form)
    again = solve(X, y, loss=loss, init=best.coef, effort="fast", **form)
    assert again.objective <= best.objective * (1 + 1e-9)


@pytest.mark.parametrize("alpha", [0.8, 5.0, 1e9])
def test_what_init_has_too_much_is_removed(alpha):
    X, y = make()
    result = solve(X, y, alpha=alpha, init=np.ones(12), effort="fast")
    assert result.objective <= best_neighbour(X, y, result.support, alpha=alpha) + 1e-8 * (y @ y)
    if alpha == 1e9:
        assert result.n_nonzero == 0


def test_init_with_dependent_columns():
    X, y = make()
    init = np.r_[1.0, np.zeros(11), 1.0, np.zeros(11)]
    result = solve(np.hstack([X, X]), y, alpha=0.5, init=init, effort="fast")
    assert result.objective == pytest.approx(solve(X, y, alpha=0.5, method="exact").objective)


# -- degenerate data -------------------------------------------------------------------------------


@forms
def test_zero_and_duplicate_columns(form):
    X, y = make()
    single = solve(X, y, method="exact", **form)
    X = np.hstack([X, 0.0 * X[:, :3], X, -2.0 * X])
    result = solve(X, y, **form)
    assert not set(result.support) & {12, 13, 14}
    assert result.objective == pytest.approx(single.objective, rel=1e-9)


@forms
def test_a_kept_zero_column_is_harmless(form):
    X, y = make()
    X[:, 5] = 0.0
    assert solve(X, y, keep=[5], **form).objective <= solve(X, y, **form).objective * (1 + 1e-9) + (
        form.get("alpha", 0.0)
    )


@forms
def test_zero_target(form):
    X, y = make()
    result = solve(X, 0.0 * y, **form)
    assert result.objective == 0.0 and result.n_nonzero == 0


@forms
def test_one_column_and_one_row(form):
    X, y = make()
    one = {**form, "n_nonzero_coefs": 1}
    assert solve(X[:, :1], y, **one).support.tolist() == [0]
    result = solve(X[:1], 10.0 * y[:1], **form)
    assert result.objective == pytest.approx(form.get("alpha", 0.0), abs=1e-9)


def test_no_budget_full_budget_no_price_and_a_huge_price():
    X, y = make()
    full = np.linalg.lstsq(X, y, rcond=None)[0]
    nothing = solve(X, y, n_nonzero_coefs=0)
    assert nothing.n_nonzero == 0 and nothing.certificate.holds
    assert solve(X, y, alpha=1e12).n_nonzero == 0
    for form in ({"n_nonzero_coefs": 12}, {"alpha": 0.0}, {"alpha": 0.0, "n_nonzero_coefs": 12}):
        np.testing.assert_allclose(solve(X, y, **form).coef, full, rtol=1e-8)
    free = solve(X, y, alpha=0.0, n_nonzero_coefs=4)
    # to add zero changes no bit
    assert np.array_equal(free.coef, solve(X, y, n_nonzero_coefs=4).coef)


@pytest.mark.parametrize("x_scale", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("y_scale", [1e-12, 1e12])
@forms
def test_scale_of_the_data(form, x_scale, y_scale):
    X, y = make()
    scaled = {**form, "alpha": form["alpha"] * y_scale**2} if "alpha" in form else form
    a, b = solve(X, y, **form), solve(x_scale * X, y_scale * y, **scaled)
    assert np.array_equal(a.support, b.support)
    np.testing.assert_allclose(b.coef * (x_scale / y_scale), a.coef, rtol=1e-8)
    assert b.certificate is not None


@pytest.mark.parametrize("loss", ONE_OUTPUT)
@forms
def test_scale_of_the_columns(form, loss):
    X, y = make(60, 12)
    y = target_of(loss, y)
    scale = np.geomspace(1e-6, 1e6, 12)[np.random.default_rng(1).permutation(12)]
    a, b = solve(X, y, loss=loss, **form), solve(X * scale, y, loss=loss, **form)
    assert np.array_equal(a.support, b.support)
    np.testing.assert_allclose(b.coef * scale, a.coef, rtol=1e-5)


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-6])
@forms
def test_nearly_collinear_columns(form, spread):
    X, y = make(seed=8)
    X = X[:, :1] + spread * X
    result = solve(X, y, **form)
    exact = solve(X, y, method="exact", **form)
    assert exact.objective <= result.objective * (1 + 1e-6)
    assert result.objective <= exact.objective * 1.05


# -- stopping and arguments ------------------------------------------------------------------------


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_time_limit(loss):
    X, y = make(60, 300, noise=3.0)
    y = target_of(loss, y)
    result = solve(X, y, loss=loss, n_nonzero_coefs=5, time_limit=0.2, effort=10**9)
    assert result.status is Status.TIME_LIMIT and result.seconds < 3.0
    assert solve(X, y, loss=loss, n_nonzero_coefs=5, time_limit=1e-9).status is Status.TIME_LIMIT


def test_callback_stops_and_sees_the_objective():
    X, y = make(40, 60, noise=2.0)
    seen = []

    def stop_at_third(progress):
        seen.append(progress.objective)
        return len(seen) == 3

    result = solve(X, y, n_nonzero_coefs=4, effort=20, callback=stop_at_third)
    assert result.status is Status.STOPPED and len(seen) == 3
    assert np.array_equal(seen, result.history.objective)


@pytest.mark.parametrize("loss", EACH_TARGET)
def test_ctrl_c_returns_the_best_so_far(loss):
    X, y = make(40, 60, noise=2.0)
    y = target_of(loss, y)

    def interrupt(progress):
        raise KeyboardInterrupt

    result = solve(X, y, loss=loss, n_nonzero_coefs=4, ridge=0.1, callback=interrupt)
    assert result.status is Status.INTERRUPTED
    points = []
    form = {"loss": loss, "n_nonzero_coefs": 4, "ridge": 0.1}
    solve(X, y, **form, callback=lambda p: points.append(p.coef.copy()))
    # by one seed both runs begin alike, to the last bit
    assert np.array_equal(result.coef, points[0]) and len(points) > 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effort": "throough"}, "effort"),
        ({"effort": -1}, "effort"),
        ({"pool": 0}, "pool"),
        ({"pool": -5}, "pool"),
        ({"pool": 2.5}, "pool"),
        ({"working_set": "R4"}, "working_set"),
    ],
)
def test_wrong_options_are_refused_by_name(options, words):
    X, y = make()
    with pytest.raises((ValueError, TypeError), match=words):
        blockl0.solve(X, y, n_nonzero_coefs=3, **options)


@pytest.mark.parametrize(
    "options",
    [{"pool": 1}, {"pool": 10**6}, {"effort": 0}, {"effort": 1, "pool": 3}],
    ids=str,
)
def test_extreme_options_keep_the_guarantee(options):
    X, y = make(40, 25)
    result = solve(X, y, n_nonzero_coefs=4, **options)
    near = best_neighbour(X, y, result.support, n_nonzero_coefs=4)
    assert result.objective <= near + 1e-8 * (0.5 * y @ y)


@pytest.mark.parametrize("options", [{"block": (8, 8, 2)}, {"patience": 3}], ids=str)
def test_options_of_exact_blocks_are_deprecated(options):
    X, y = make()
    with pytest.warns(FutureWarning, match="has no effect"):
        given = solve(X, y, n_nonzero_coefs=3, **options)
    assert np.array_equal(given.coef, solve(X, y, n_nonzero_coefs=3).coef)


# -- certificate -----------------------------------------------------------------------------------


@forms
def test_certificate_agrees_with_certify(form):
    for seed in range(4):
        X, y = make(50, 40, seed, noise=2.0)
        for more in ({}, {"ridge": 1.0, "keep": [30]}):
            result = solve(X, y, **form, **more)
            told = result.certificate
            assert told.holds and told.complete and told.outside == "refit"
            assert told.level == (2 if "alpha" not in form else 1)
            asked = blockl0.certify(X, y, result.coef, level=told.level, **form, **more)
            assert asked.holds and asked.n_blocks == told.n_blocks
            assert told.objective == result.objective  # the same number


# -- other losses ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("loss", sorted({*losses_for("dec")} & {*OTHERS}))
@forms
def test_other_losses_are_never_worse_than_dec(form, loss):
    for seed in range(3):
        X, y = make(50, 20, seed)
        y = target_of(loss, y, seed)
        refit = solve(X, y, loss=loss, **form)
        dec = solve(X, y, loss=loss, method="dec", **form)
        assert refit.objective <= dec.objective * (1 + 1e-6)
        slope = as_problem(X, y, loss=loss, **form).gradient(refit.coef)[refit.support]
        assert np.abs(slope).max(initial=0.0) <= 1e-5 * np.abs(X.T @ y).max()


@pytest.mark.parametrize("loss", names_of(takes_labels=True))
@pytest.mark.parametrize("x_scale", [1e-6, 1.0, 1e8])
@forms
def test_separable_labels_end_without_overflow(form, loss, x_scale):
    X, _ = make()
    y = np.where(X[:, 0] - X[:, 1] > 0, 1.0, -1.0)
    result = solve(x_scale * X, y, loss=loss, **form)
    assert result.objective <= 1e-6 + form.get("alpha", 0.0) * result.n_nonzero


# -- the tableau -----------------------------------------------------------------------------------


def pool_of(X, y, **form):
    problem = as_problem(X, y, **form)
    n = X.shape[1]
    sq_norms = (X**2).sum(axis=0) + problem.ridge
    return Pool(problem, np.arange(n), problem.gradient(np.zeros(n)), sq_norms)


def tableau_by_hand(X, y, support, ridge):
    """(rows of the support, border, diagonal, value) of the swept tableau, by solving."""
    Q, p, _ = oracles.quadratic_of(X, y, ridge)
    S = np.asarray(support)
    U = np.setdiff1d(np.arange(X.shape[1]), S)
    A, w = Q.copy(), oracles.fit_on(Q, p, S)
    K = np.linalg.inv(Q[np.ix_(S, S)])
    A[np.ix_(S, S)], A[np.ix_(S, U)] = -K, K @ Q[np.ix_(S, U)]
    A[np.ix_(U, U)] -= Q[np.ix_(U, S)] @ K @ Q[np.ix_(S, U)]
    edge = Q @ w + p
    edge[S] = -w[S]
    return A[S], edge, np.diag(A), oracles.smooth(Q, p, w)


def assert_tableau_is_right(pool, X, y, ridge):
    rows, edge, diagonal, value = tableau_by_hand(X, y, pool.members, ridge)
    table = pool.table
    np.testing.assert_allclose(table.rows[: pool.size], rows, atol=1e-10)
    np.testing.assert_allclose(table.border[kernels.EDGE], edge, atol=1e-9)
    np.testing.assert_allclose(table.border[kernels.PIVOT], diagonal, atol=1e-9)
    assert pool.value == pytest.approx(value)
    assert np.array_equal(np.flatnonzero(table.slot >= 0), np.sort(pool.members))


def test_a_swept_tableau_holds_what_it_says_after_any_moves():
    X, y = make(40, 20, noise=2.0)
    rng = np.random.default_rng(0)
    pool = pool_of(X, y, n_nonzero_coefs=8, ridge=0.3)
    for _ in range(60):
        enters = rng.permutation(np.flatnonzero(pool.table.slot < 0))[: 8 - pool.size]
        leaves = rng.permutation(pool.members)[: rng.integers(0, pool.size + 1)]
        pool.toggle(np.concatenate([leaves, enters]))
        assert_tableau_is_right(pool, X, y, 0.3)
    pool.clear()
    pool.descend()
    assert_tableau_is_right(pool, X, y, 0.3)
    assert pool.table.value[kernels.DRIFT] < 1e-12


def test_a_descent_ends_where_no_single_move_improves():
    for seed, form in product(range(5), FORMS):
        X, y = make(30, 15, seed, noise=3.0)
        pool = pool_of(X, y, **form)
        pool.descend()
        near = best_neighbour(X, y, pool.support, **form)
        assert pool.objective + 0.5 * y @ y <= near + 1e-9 * (y @ y)


def test_prices_are_the_best_additions_and_swaps():
    X, y = make(30, 15, noise=3.0)
    pool = pool_of(X, y, n_nonzero_coefs=4, alpha=0.1)
    pool.load(np.array([0, 3, 5]))
    prices = pool.prices()
    here = value_on(X, y, [0, 3, 5], 0.1)
    for i in np.setdiff1d(np.arange(15), pool.support):
        supports = [[0, 3, 5, i], [3, 5, i], [0, 5, i], [0, 3, i]]
        best = min(value_on(X, y, support, 0.1) for support in supports)
        assert prices[i] == pytest.approx(best - here, abs=1e-9)


def test_drift_is_bounded_and_reported():
    X, y = make(60, 90, noise=2.0)
    X[:, 1] = X[:, 0] + 1e-5 * X[:, 1]
    result = solve(X, y, n_nonzero_coefs=10, effort=20)
    assert 0.0 <= result.drift < 1e-6


def peak_beside(X, call):
    tracemalloc.start()
    result = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak


@pytest.mark.parametrize("kind", ["wide", "tall", "sparse"])
def test_little_memory_beside_the_data_and_few_passes(kind):
    rng = np.random.default_rng(0)
    m, n = {"wide": (60, 50_000), "tall": (60_000, 60), "sparse": (400, 60_000)}[kind]
    if kind == "sparse":
        entries = rng.integers(0, m, n * 8), np.repeat(np.arange(n), 8)
        X = sp.csc_array((rng.standard_normal(n * 8), entries), shape=(m, n))
        X.sum_duplicates()
        size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        X = np.asfortranarray(rng.standard_normal((n, m)).T)
        size = X.nbytes
    y = X[:, [3, 7, 11]] @ np.ones(3) + 0.3 * rng.standard_normal(m)
    solve(X[:, :40], y, n_nonzero_coefs=3)
    result, peak = peak_beside(X, lambda: solve(X, y, n_nonzero_coefs=6))
    assert set(result.support) >= {3, 7, 11}
    assert peak < 0.3 * size + 40e6
    assert result.n_passes < 25


def test_passes_do_not_grow_with_the_support():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((200, 6000)))
    passes = []
    for s in (5, 20, 60):
        y = X[:, :s] @ rng.choice([-2.0, 2.0], s) + rng.standard_normal(200)
        passes.append(solve(X, y, n_nonzero_coefs=s, effort="fast").n_passes)
    assert max(passes) <= passes[0] + 6


def test_a_large_pool_problem_is_stationary_over_all_columns():
    X, y = make(50, 4000, noise=4.0)
    for form in FORMS:
        result = solve(X, y, **form)
        assert result.certificate.holds
        check = blockl0.certify(X, y, result.coef, level=1, **form)
        assert check.holds


@pytest.mark.parametrize("s", [7, 8, 9, 20])
def test_supports_as_large_as_the_rank(s):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((25, 8)) @ rng.standard_normal((8, 70))
        y = rng.standard_normal(25)
        result = solve(X, y, n_nonzero_coefs=s, effort=3)
        least = 0.5 * np.sum((y - X @ np.linalg.lstsq(X, y, rcond=1e-10)[0]) ** 2)
        assert result.n_nonzero <= 8
        assert result.objective >= least * (1 - 1e-9)
        if s >= 8:
            assert result.objective == pytest.approx(least, rel=1e-8)


def test_more_columns_than_samples_in_the_budget():
    X, y = make(12, 60, noise=2.0)
    for form in ({"n_nonzero_coefs": 13}, {"n_nonzero_coefs": 40}, {"alpha": 0.0}):
        assert solve(X, y, **form).objective <= 1e-20 * (y @ y)


def test_columns_whose_pivots_cannot_be_trusted_are_still_fitted():
    x, z, _ = np.random.default_rng(0).standard_normal((3, 20))
    result = solve(np.c_[x, x + 5e-6 * z], x + z, n_nonzero_coefs=2)
    assert result.status is Status.OPTIMAL and result.n_nonzero == 2
    assert result.objective < 1e-18 * (x + z) @ (x + z)
    # of a fit that is perfect but for rounding no further certificate is given
    assert result.certificate is None


def test_small_problems_are_proven_optimal():
    for seed, form in product(range(4), FORMS):
        X, y = make(20, 12, seed, noise=3.0)
        found, best = solve(X, y, **form), solve(X, y, method="exact", **form)
        assert found.status is Status.OPTIMAL and found.gap == 0.0
        assert found.objective == pytest.approx(best.objective, rel=1e-9)
