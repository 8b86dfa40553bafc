import inspect
import math
import warnings

import numpy as np
import pytest

import blockl0
import oracles
from blockl0 import theory

SEEDS = range(4)


def make_problem(seed, n=6, sigma=0.5):
    """Return (Q, p, L) with smallest eigenvalue sigma exactly, largest L."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    _, V = np.linalg.eigh(A.T @ A)
    eigenvalues = np.concatenate([[sigma], rng.uniform(sigma, 4.0, n - 2), [4.0]])
    return (V * eigenvalues) @ V.T, rng.standard_normal(n), 4.0


def values(Q, p, iterates, price=0.0):
    return np.array([oracles.objective(Q, p, x, price) for x in iterates])


def first_below(gaps, epsilon):
    return int(np.argmax(gaps <= epsilon))


# ---- properties of every step ---------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("price, budget", [(0.05, None), (0.0, 3), (0.02, 3)])
@pytest.mark.parametrize("theta", [1e-3, 0.5])
def test_sufficient_decrease_at_every_step(seed, price, budget, theta):
    Q, p, _ = make_problem(seed)
    rng = np.random.default_rng(seed)
    x0 = np.zeros(6)
    x0[:3] = rng.standard_normal(3)
    run = oracles.dec_reference(Q, p, x0, 3, theta, 40, rng, price, budget)
    F = values(Q, p, run, price)
    assert np.any(run[1:] != run[:-1])
    for t in range(len(run) - 1):
        assert theory.has_sufficient_decrease(F[t], F[t + 1], run[t + 1] - run[t], theta=theta)


def test_sufficient_decrease_can_fail():
    # a gradient step of length 2/L does not lower f by theta/2 ||d||^2
    Q, p = np.diag([1.0, 4.0]), np.array([0.0, -1.0])
    x = np.zeros(2)
    step = -0.5 * (Q @ x + p)
    before, after = oracles.smooth(Q, p, x), oracles.smooth(Q, p, x + step)
    assert not theory.has_sufficient_decrease(before, after, step, theta=0.1)
    assert theory.has_sufficient_decrease(before, after, step, theta=0.0)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("theta", [1e-3, 1.0])
def test_nonzeros_never_fall_below_delta(seed, theta):
    price, k = 0.05, 3
    Q, p, L = make_problem(seed)
    rng = np.random.default_rng(seed)
    x0 = np.where(rng.random(6) < 0.5, 1e-3 * rng.standard_normal(6), 0.0)
    run = oracles.dec_reference(Q, p, x0, k, theta, 40, rng, price)
    delta = theory.nonzero_bound(price=price, theta=theta, lipschitz=L, init=x0)
    touched_bound = theory.nonzero_bound(price=price, theta=theta, lipschitz=L)
    assert delta <= touched_bound
    assert np.abs(run[run != 0]).min() >= delta - 1e-12
    touched = run != x0  # an entry that differs from its start was set by a block update
    assert np.abs(run[touched & (run != 0)]).min() >= touched_bound - 1e-12


def test_delta_is_attained_and_needs_the_lipschitz_constant():
    # one variable: 1/2 q x^2 - c x; the best nonzero c/q survives down to sqrt(2 price/q) exactly
    q, price = 4.0, 0.5
    delta = theory.nonzero_bound(price=price, theta=0.0, lipschitz=q)
    just_above, _ = oracles.brute_force(np.array([[q]]), np.array([-q * delta * 1.0001]), price)
    assert just_above[0] == pytest.approx(delta, rel=1e-3)
    wrong = theory.nonzero_bound(price=price, theta=0.0, lipschitz=q / 2)
    assert just_above[0] < wrong


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [1, 2, 6])
def test_support_changes_are_bounded_and_each_gains_d(seed, k):
    price, theta, n = 0.05, 0.5, 6
    Q, p, L = make_problem(seed)
    rng = np.random.default_rng(seed)
    x0 = np.where(rng.random(n) < 0.5, rng.standard_normal(n), 0.0)
    run = oracles.dec_reference(Q, p, x0, k, theta, 80, rng, price)
    F = values(Q, p, run, price)
    delta = theory.nonzero_bound(price=price, theta=theta, lipschitz=L, init=x0)
    certain = theory.decrease_per_change(n, n, theta=theta, delta=delta)
    D = theory.decrease_per_change(n, k, theta=theta, delta=delta)
    assert D == pytest.approx(certain * k / n)
    changed = np.any((run[1:] != 0) != (run[:-1] != 0), axis=1)
    assert changed.any()
    assert np.all((F[:-1] - F[1:])[changed] >= certain - 1e-12)
    J = theory.max_support_changes(gap=F[0] - F[-1], decrease=certain)
    assert changed.sum() <= J <= theory.max_support_changes(gap=F[0] - F[-1], decrease=D)


def test_the_decrease_is_per_support_change_not_per_step():
    # the theorem says "whenever x changes"; on a fixed support the steps shrink below any D
    Q, p, L = make_problem(0)
    x0 = np.linalg.solve(Q, -p) + 1.0
    run = oracles.dec_reference(Q, p, x0, 2, 0.5, 200, np.random.default_rng(0), price=1e-6)
    F = values(Q, p, run, 1e-6)
    moved = np.any(run[1:] != run[:-1], axis=1)
    same_support = np.all((run[1:] != 0) == (run[:-1] != 0), axis=1)
    delta = theory.nonzero_bound(price=1e-6, theta=0.5, lipschitz=L, init=x0)
    D = theory.decrease_per_change(6, 2, theta=0.5, delta=delta)
    assert np.any((F[:-1] - F[1:])[moved & same_support] < D)


@pytest.mark.skipif(not hasattr(blockl0, "solve"), reason="blockl0.solve is not in this build")
@pytest.mark.parametrize("theta", [1e-3, 0.5])
def test_method_dec_has_the_properties_of_every_step(theta):
    rng = np.random.default_rng(7)
    X, y, price = rng.standard_normal((20, 8)), 2.0 * rng.standard_normal(20), 0.3
    Q, p, _ = oracles.quadratic_of(X, y)
    run = [np.zeros(8)]
    for seed in range(40):  # one iteration per call, so that every step is seen
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = blockl0.solve(
                X,
                y,
                alpha=price,
                method="dec",
                working_set="R3G0",
                theta=theta,
                max_iter=1,
                init=run[-1],
                random_state=seed,
            )
        run.append(np.array(result.coef))
    run = np.array(run)
    F = values(Q, p, run, price)
    delta = theory.nonzero_bound(price=price, theta=theta, lipschitz=np.linalg.eigvalsh(Q)[-1])
    certain = theory.decrease_per_change(8, 8, theta=theta, delta=delta)
    assert np.abs(run[run != 0]).min() >= delta - 1e-12
    for t in range(40):
        assert theory.has_sufficient_decrease(F[t], F[t + 1], run[t + 1] - run[t], theta=theta)
        assert (run[t + 1] != run[t]).sum() <= 3
    changed = np.any((run[1:] != 0) != (run[:-1] != 0), axis=1)
    assert changed.any() and np.all((F[:-1] - F[1:])[changed] >= certain - 1e-12)


# ---- rates on a fixed support: price 0 keeps every coordinate in --------------------------------


def mean_gaps(Q, p, k, theta, n_iter, n_runs):
    """Return E[F(x^t) - F_bar] over random blocks for the convex problem, from one start."""
    optimum = np.linalg.solve(Q, -p)
    best = oracles.smooth(Q, p, optimum)
    x0 = optimum + np.random.default_rng(99).standard_normal(len(p))
    total = np.zeros(n_iter + 1)
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        x = x0.copy()
        total[0] += oracles.smooth(Q, p, x) - best
        for t in range(n_iter):
            B = rng.choice(len(p), size=k, replace=False)
            H = Q[np.ix_(B, B)] + theta * np.eye(k)
            x[B] -= np.linalg.solve(H, (Q @ x + p)[B])
            total[t + 1] += oracles.smooth(Q, p, x) - best
    return total / n_runs


@pytest.mark.parametrize("theta", [1e-3, 0.3, 3.0])
def test_linear_rate_holds_with_the_full_block(theta):
    n, sigma = 6, 0.5
    Q, p, L = make_problem(1, n, sigma)
    gaps = mean_gaps(Q, p, n, theta, 30, 1)
    alpha = theory.linear_rate(n, n, sigma=sigma, theta=theta)
    t = np.arange(31)
    assert np.all(gaps <= gaps[0] * alpha**t + 1e-12)
    assert alpha <= theory.safe_linear_rate(n, n, sigma=sigma, theta=theta, lipschitz=L)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("theta", [1e-3, 0.3, 3.0])
def test_safe_linear_rate_holds_in_expectation(k, theta):
    n, sigma = 6, 0.5
    Q, p, L = make_problem(2, n, sigma)
    gaps = mean_gaps(Q, p, k, theta, 60, 200)
    alpha = theory.safe_linear_rate(n, k, sigma=sigma, theta=theta, lipschitz=L)
    assert np.all(gaps <= gaps[0] * alpha ** np.arange(61) * 1.05 + 1e-12)
    assert alpha >= theory.linear_rate(n, k, sigma=sigma, theta=theta)


def test_paper_rate_is_violated_by_small_theta_and_small_blocks():
    # one exact step of a random block of 1 in 6 cannot remove 99 % of the gap
    n, k, theta, sigma = 6, 1, 1e-4, 1.0
    gaps = mean_gaps(np.eye(n), np.zeros(n), k, theta, 1, 300)
    alpha = theory.linear_rate(n, k, sigma=sigma, theta=theta)
    assert alpha < 0.01
    assert gaps[1] > 0.5 * gaps[0] > alpha * gaps[0]
    safe = theory.safe_linear_rate(n, k, sigma=sigma, theta=theta, lipschitz=1.0)
    assert gaps[1] <= 1.05 * safe * gaps[0]


@pytest.mark.parametrize("epsilon", [1e-1, 1e-3])
def test_v1_and_v2_bound_the_iterations_with_the_full_block(epsilon):
    n, sigma, theta = 6, 0.5, 1.0
    Q, p, _ = make_problem(3, n, sigma)
    gaps = mean_gaps(Q, p, n, theta, 200, 1)
    x_bar = np.linalg.solve(Q, -p)
    # every iterate stays in the ball around x_bar through x0
    rho = np.abs(x_bar).max() + np.linalg.norm(np.random.default_rng(99).standard_normal(n))
    nu = theory.nu(n, n, rho=rho, theta=theta)
    alpha = theory.linear_rate(n, n, sigma=sigma, theta=theta)
    needed = first_below(gaps, epsilon)
    assert needed > 0
    assert needed <= math.ceil(
        theory.iterations_convex(gap=gaps[0], nu=nu, theta=theta, epsilon=epsilon)
    )
    assert needed <= math.ceil(
        theory.iterations_strongly_convex(gap=gaps[0], alpha=alpha, epsilon=epsilon)
    )


@pytest.mark.parametrize("k", [1, 3])
def test_safe_iterations_hold_and_v1_fails_for_small_theta(k):
    n, theta, epsilon = 6, 1e-8, 0.05
    Q, p, L = make_problem(4, n)
    gaps = mean_gaps(Q, p, k, theta, 150, 40)
    rho = np.abs(np.linalg.solve(Q, -p)).max() + 10.0
    needed = first_below(gaps, epsilon)
    safe_rate = theory.safe_linear_rate(n, k, sigma=0.5, theta=theta, lipschitz=L)
    assert needed <= theory.iterations_strongly_convex(
        gap=gaps[0], alpha=safe_rate, epsilon=epsilon
    )
    assert needed <= theory.safe_iterations_convex(
        n, k, rho=rho, theta=theta, lipschitz=L, epsilon=epsilon
    )
    nu = theory.nu(n, k, rho=rho, theta=theta)
    claimed = theory.iterations_convex(gap=gaps[0], nu=nu, theta=theta, epsilon=epsilon)
    paper_rate = theory.linear_rate(n, k, sigma=0.5, theta=theta)
    claimed_2 = theory.iterations_strongly_convex(gap=gaps[0], alpha=paper_rate, epsilon=epsilon)
    assert needed > claimed and needed > math.ceil(claimed_2)


# ---- Theorem 1: the budget form ---------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 6])
@pytest.mark.parametrize("theta", [0.01, 1.0])
def test_theorem_1_bounds(k, theta):
    n, sigma, budget = 6, 0.5, 3
    Q, p, _ = make_problem(5, n, sigma)
    x_bar, best = oracles.brute_force(Q, p, budget=budget)
    x0 = np.zeros(n)
    runs = np.array(
        [
            oracles.dec_reference(Q, p, x0, k, theta, 20, np.random.default_rng(s), budget=budget)
            for s in range(8)
        ]
    )
    tau = max(float(np.sum((Q @ x + p) ** 2)) for run in runs for x in run)
    alpha = theory.linear_rate(n, k, sigma=sigma, theta=theta)
    gap = oracles.smooth(Q, p, x0) - best
    for t in range(20):
        mean_gap = np.mean([oracles.smooth(Q, p, run[t]) for run in runs]) - best
        assert mean_gap <= theory.gap_bound(t, gap=gap, alpha=alpha, tau=tau, theta=theta)
        distance = np.mean([np.sum((run[t + 1] - x_bar) ** 2) for run in runs])
        assert distance <= theory.distance_bound(
            t, n, k, gap=gap, alpha=alpha, tau=tau, theta=theta, sigma=sigma
        )
    # the constant term does not depend on theta, and strong convexity alone already gives it
    constant = theory.gap_bound(10**6, gap=gap, alpha=alpha, tau=tau, theta=theta)
    assert constant == pytest.approx(n * tau / (2 * k * sigma))
    assert constant >= tau / (2 * sigma) * (1 - 1e-12)


def test_theorem_1_distance_needs_sigma_squared():
    # f = sigma/2 x^2, the whole block: the printed left side sigma/4 ||x||^2 exceeds the right side
    sigma, theta, x0 = 1e-3, 0.05, 1.0
    x1 = theta / (sigma + theta) * x0
    alpha = theory.linear_rate(1, 1, sigma=sigma, theta=theta)
    bound = theory.distance_bound(
        0, 1, 1, gap=sigma / 2, alpha=alpha, tau=sigma**2, theta=theta, sigma=sigma
    )
    printed_right_side = bound * sigma**2 / 4
    assert sigma / 4 * x1**2 > printed_right_side
    assert x1**2 <= bound


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("theta", [1e-3, 1.0])
def test_theorem_1_distance_says_no_more_than_strong_convexity(k, theta):
    # any points whatever, no algorithm: sigma/2 ||d||^2 <= <d, grad> whenever f(x_bar) <= f(x)
    n, sigma = 6, 0.5
    Q, p, _ = make_problem(6, n, sigma)
    x_bar, best = oracles.brute_force(Q, p, budget=3)
    alpha = theory.linear_rate(n, k, sigma=sigma, theta=theta)
    points = x_bar + np.random.default_rng(0).standard_normal((500, n))
    tested = 0
    for x in points:
        tau = float(np.sum((Q @ x + p) ** 2))
        if oracles.smooth(Q, p, x) < best:
            continue
        tested += 1
        alone = 4 * tau / sigma**2
        assert np.sum((x - x_bar) ** 2) <= alone
        for t in (0, 10, 10**6):
            for gap in (0.0, 3.0):
                assert alone <= theory.distance_bound(
                    t, n, k, gap=gap, alpha=alpha, tau=tau, theta=theta, sigma=sigma
                )
    assert tested > 300


# ---- Theorem 3: the price form with changing support ---------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [2, 6])
def test_n1_and_n2_bound_tiny_runs(seed, k):
    n, sigma, price, theta, epsilon = 6, 0.5, 0.05, 0.5, 1e-3
    Q, p, L = make_problem(seed, n, sigma)
    rng = np.random.default_rng(seed)
    x0 = np.where(rng.random(n) < 0.5, rng.standard_normal(n), 0.0)
    run = oracles.dec_reference(Q, p, x0, k, theta, 80, rng, price)
    F = values(Q, p, run, price)
    gap = F[0] - F[-1]
    needed = first_below(F - F[-1], epsilon)
    delta = theory.nonzero_bound(price=price, theta=theta, lipschitz=L, init=x0)
    D = theory.decrease_per_change(n, k, theta=theta, delta=delta)
    nu = theory.nu(n, k, rho=np.abs(run).max(), theta=theta)
    alpha = theory.linear_rate(n, k, sigma=sigma, theta=theta)
    n_1 = theory.total_iterations_convex(gap=gap, nu=nu, theta=theta, decrease=D, epsilon=epsilon)
    n_2 = theory.total_iterations_strongly_convex(gap=gap, alpha=alpha, decrease=D, epsilon=epsilon)
    assert 0 < needed <= n_2 and needed <= n_1
    # the remark after Theorem 3: for J_bar >= 2 and epsilon <= D/2 it improves on V x J_bar
    J = theory.max_support_changes(gap=gap, decrease=D)
    v_1 = theory.iterations_convex(gap=gap, nu=nu, theta=theta, epsilon=D / 2)
    v_2 = theory.iterations_strongly_convex(gap=gap, alpha=alpha, epsilon=D / 2)
    m_1 = theory.total_iterations_convex(gap=gap, nu=nu, theta=theta, decrease=D, epsilon=D / 2)
    m_2 = theory.total_iterations_strongly_convex(gap=gap, alpha=alpha, decrease=D, epsilon=D / 2)
    assert J >= 2 and m_1 <= J * v_1 and m_2 <= J * v_2


def together(k, r, slope, price, theta):
    """Return (Q, c): k coordinates that pay only all together; checked by enumeration."""
    Q, c = (1 + r) * np.eye(k) - r * np.ones((k, k)), np.full(k, -slope)
    for size in range(1, k + 1):  # all subsets of one size are alike
        entered, _ = oracles.brute_force(Q[:size, :size] + theta * np.eye(size), c[:size], price)
        assert entered.all() if size == k else not entered.any()
    return Q, c


def test_theorem_3_is_tighter_than_theorem_2_where_the_remark_says_so():
    """J_bar >= 2 and epsilon <= D/2: the last step of the remark after Theorem 3."""
    rng = np.random.default_rng(3)
    for _ in range(500):
        decrease, theta, nu = np.exp(rng.uniform(-4.0, 4.0, 3))
        changes = 2.0 + 100.0 * rng.random()
        gap, epsilon = changes * decrease, 0.5 * decrease * rng.random()
        alpha = rng.uniform(0.01, 0.99)
        convex = {"nu": nu, "theta": theta, "epsilon": epsilon}
        n_1 = theory.total_iterations_convex(gap=gap, decrease=decrease, **convex)
        assert n_1 <= changes * theory.iterations_convex(gap=gap, **convex) * (1.0 + 1e-12)
        strong = {"alpha": alpha, "epsilon": epsilon}
        n_2 = theory.total_iterations_strongly_convex(gap=gap, decrease=decrease, **strong)
        bound = changes * theory.iterations_strongly_convex(gap=gap, **strong)
        assert n_2 <= bound * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("k", "r", "slope_squared", "names"),
    [(3, 0.4, 0.9, ("V2 J", "N2")), (6, 0.17, 0.6, ("V1 J", "V2 J", "N1", "N2"))],
)
def test_no_total_counts_the_wait_for_the_right_block(k, r, slope_squared, names):
    # k coordinates that pay only together, among n - k idle ones (curvature 1, slope 0): from 0
    # exactly one of the C(n, k) blocks improves, and until it is drawn the gap is above epsilon
    n, price, theta, epsilon = 10_000, 1.0, 0.1, 0.1
    Q, c = together(k, r, np.sqrt(slope_squared), price, theta)
    sigma, L = np.linalg.eigvalsh(Q)[[0, -1]]
    assert sigma < 1 < L
    x_bar, best = oracles.brute_force(Q, c, price)
    gap, rho = -best, np.abs(x_bar).max()
    delta = theory.nonzero_bound(price=price, theta=theta, lipschitz=L)
    D = theory.decrease_per_change(n, k, theta=theta, delta=delta)
    J = theory.max_support_changes(gap=gap, decrease=D)
    assert gap > epsilon
    nu = theory.nu(n, k, rho=rho, theta=theta)
    safe_v_1 = theory.safe_iterations_convex(
        n, k, rho=rho, theta=theta, lipschitz=L, epsilon=epsilon
    )
    rates = (
        theory.linear_rate(n, k, sigma=sigma, theta=theta),
        theory.safe_linear_rate(n, k, sigma=sigma, theta=theta, lipschitz=L),
    )
    # of each the value as printed, and with the constant that holds for k < n
    totals = {
        "V1 J": [
            J * theory.iterations_convex(gap=gap, nu=nu, theta=theta, epsilon=epsilon),
            J * safe_v_1,
        ],
        "V2 J": [
            J * theory.iterations_strongly_convex(gap=gap, alpha=alpha, epsilon=epsilon)
            for alpha in rates
        ],
        "N1": [
            theory.total_iterations_convex(
                gap=gap, nu=nu, theta=theta, decrease=D, epsilon=epsilon
            ),
            (J / D + 1 / epsilon) * epsilon * safe_v_1,
        ],
        "N2": [
            theory.total_iterations_strongly_convex(
                gap=gap, alpha=alpha, decrease=D, epsilon=epsilon
            )
            for alpha in rates
        ],
    }
    for name in names:
        assert totals[name][0] < totals[name][1]
        assert math.comb(n, k) > 2.5 * totals[name][1]


def test_the_wait_is_the_number_of_blocks():
    # the same in small, run: of C(6, 3) = 20 blocks one improves, and it is drawn after about 20
    n, k, price, theta = 6, 3, 1.0, 0.1
    Q, p = np.eye(n), np.zeros(n)
    Q[:k, :k], p[:k] = together(k, 0.4, np.sqrt(0.9), price, theta)
    waits = []
    for seed in range(60):
        rng, x, wait = np.random.default_rng(seed), np.zeros(n), 0
        while not x.any():
            x, wait = oracles.dec_reference(Q, p, x, k, theta, 1, rng, price)[1], wait + 1
        assert np.array_equal(x != 0, np.arange(n) < k)
        waits.append(wait)
    # geometric with mean 20: three standard errors of the mean of 60
    assert abs(np.mean(waits) - 20) < 3 * np.sqrt(20 * 19 / 60)


def test_fixed_points_of_the_algorithm_are_weaker_than_block_stationary():
    # theta in the subproblem: x = 0 is never left although leaving it lowers F
    Q, p, price, theta = np.eye(1), np.array([-1.5]), 1.0, 1.0
    x = np.zeros(1)
    run = oracles.dec_reference(Q, p, x, 1, theta, 5, np.random.default_rng(0), price)
    assert not run.any()
    assert oracles.is_block_stationary(Q, p, x, 1, price, theta=theta)
    assert not oracles.is_block_stationary(Q, p, x, 1, price)


# ---- values and refusals ------------------------------------------------------------------------


def test_values_by_hand():
    # exact where nothing but halves and quarters occurs, or a number is passed on
    assert theory.linear_rate(10, 5, sigma=1.0, theta=0.5) == pytest.approx(0.5)
    assert theory.safe_linear_rate(10, 5, sigma=1.0, theta=0.5, lipschitz=1.5) == 0.75
    assert theory.gap_bound(1, gap=4.0, alpha=0.5, tau=2.0, theta=0.5) == pytest.approx(4.0)
    assert theory.nonzero_bound(price=2.0, theta=0.5, lipschitz=0.5) == pytest.approx(2.0)
    assert theory.nonzero_bound(price=2.0, theta=0.5, lipschitz=0.5, init=[0.0, -0.1]) == 0.1
    assert theory.nonzero_bound(price=2.0, theta=0.5, lipschitz=0.5, init=[0.0]) == 2.0
    assert theory.decrease_per_change(4, 2, theta=2.0, delta=3.0) == pytest.approx(4.5)
    assert theory.max_support_changes(gap=9.0, decrease=4.5) == 2.0
    assert theory.nu(8, 4, rho=3.0, theta=0.5) == pytest.approx(2 * 8 * 3 * 2 * 0.5 / 4)
    assert theory.iterations_convex(gap=8.0, nu=1.0, theta=4.0, epsilon=0.5) == pytest.approx(4.0)
    v_2 = theory.iterations_strongly_convex(gap=8.0, alpha=0.5, epsilon=1.0)
    assert v_2 == pytest.approx(3.0)
    n_1 = theory.total_iterations_convex(gap=4.0, nu=1.0, theta=1.0, decrease=2.0, epsilon=0.5)
    assert n_1 == pytest.approx((2 / 2 + 2) * 4)
    n_2 = theory.total_iterations_strongly_convex(gap=4.0, alpha=0.5, decrease=2.0, epsilon=0.5)
    assert n_2 == pytest.approx(2 * 1 + 2)


def test_nothing_to_do_takes_no_iterations():
    assert theory.iterations_convex(gap=0.0, nu=1.0, theta=1.0, epsilon=1e-3) == 0.0
    assert theory.iterations_strongly_convex(gap=1e-4, alpha=0.5, epsilon=1e-3) == 0.0
    small = {"gap": 0.5, "decrease": 1.0, "epsilon": 0.125}  # gap < D: the support is settled
    v_2 = theory.iterations_strongly_convex(gap=0.5, alpha=0.5, epsilon=0.125)
    assert v_2 == pytest.approx(2.0)
    assert theory.total_iterations_strongly_convex(alpha=0.5, **small) == v_2  # the same call
    v_1 = theory.iterations_convex(gap=0.5, nu=1.0, theta=1.0, epsilon=0.125)
    assert theory.total_iterations_convex(nu=1.0, theta=1.0, **small) == v_1


VALID = {
    "n": 6,
    "k": 2,
    "t": 3,
    "gap": 1.0,
    "alpha": 0.5,
    "tau": 1.0,
    "theta": 0.1,
    "sigma": 0.5,
    "lipschitz": 2.0,
    "price": 0.1,
    "delta": 0.1,
    "decrease": 0.1,
    "rho": 1.0,
    "nu": 1.0,
    "epsilon": 0.01,
}
CONSTANTS = [name for name in theory.__all__ if name != "has_sufficient_decrease"]


@pytest.mark.parametrize("name", CONSTANTS)
def test_every_invalid_argument_is_refused(name):
    function = getattr(theory, name)
    names = [a for a in inspect.signature(function).parameters if a != "init"]
    arguments = {a: VALID[a] for a in names}
    assert math.isfinite(function(**arguments))
    for argument in names:
        bad = [-1] if argument in ("n", "k", "t") else [-1.0, math.nan, math.inf]
        for value in bad:
            with pytest.raises(ValueError, match="must"):
                function(**{**arguments, argument: value})


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: theory.linear_rate(3, 4, sigma=1.0, theta=1.0), "`k` must be .*n=3.*got 4"),
        (
            lambda: theory.linear_rate(3, 2, sigma=1.0, theta=0.0),
            "`theta` must be positive",
        ),
        (lambda: theory.gap_bound(1, gap=1.0, alpha=1.0, tau=1.0, theta=1.0), "`alpha` must lie"),
        (
            lambda: theory.safe_linear_rate(3, 2, sigma=2.0, theta=1.0, lipschitz=1.0),
            "`sigma` must not exceed",
        ),
        (
            lambda: theory.nonzero_bound(price=1.0, theta=1.0, lipschitz=1.0, init=[np.nan]),
            "`init` must hold finite",
        ),
        (
            lambda: theory.has_sufficient_decrease(1.0, 0.0, [1.0], theta=-1.0),
            "`theta` must be nonnegative",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_wrong_type_is_refused():
    with pytest.raises(TypeError, match="`k` must be an integer"):
        theory.linear_rate(3, 1.5, sigma=1.0, theta=1.0)
    with pytest.raises(TypeError, match="`theta` must be a number"):
        theory.linear_rate(3, 1, sigma=1.0, theta="small")
