"""Method "dec" with `AS_PRINTED` takes the steps of the paper's Algorithm 1, one by one.

The reference below is written from the text of the paper, in its letters, and from nothing else: it
knows f and h as functions, solves each subproblem by trying all subsets of the block, and keeps the
record of all r_t. Only the random numbers are drawn as the engine draws them.
"""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
from blockl0 import Status
from blockl0.dec import state
from blockl0.dec.decomposition import AS_PRINTED, AS_PUBLISHED
from blockl0.dec.state import GramState
from blockl0.dec.working_set import RandomGreedy, draw_distinct
from blockl0.problem.problem import as_problem
from blockl0.solve import METHODS


class Printed:
    """min F = f + h with f(x) = ½‖Ax − b‖² and h = λ‖x‖₀ or the indicator of ‖x‖₀ ≤ s."""

    def __init__(self, A, b, s=None, lam=None):
        self.A, self.b, self.s, self.lam = A, b, s, lam
        self.n = A.shape[1]

    def f(self, x):
        return 0.5 * np.sum((self.A @ x - self.b) ** 2)

    def F(self, x):
        nnz = np.count_nonzero(x)
        if self.lam is not None:
            return self.f(x) + self.lam * nnz
        return self.f(x) if nnz <= self.s else np.inf

    def start(self, rng):
        """1e-7 × randn(n, 1), projected to a feasible solution."""
        x = 1e-7 * rng.standard_normal(self.n)
        if self.s is not None:
            x[np.argsort(-np.abs(x), kind="stable")[self.s :]] = 0.0
        return x

    def scores(self, x):
        """Vector c on Z = {i: x_i = 0} and d on its complement, in one vector."""
        score = np.empty(self.n)
        for i, e in enumerate(np.eye(self.n)):
            if x[i] != 0:  # "when changing from nonzero to exactly zero"
                score[i] = self.F(x - x[i] * e) - self.F(x)
                continue
            a = self.A[:, i]
            # F along e_i: a parabola plus a constant, except at alpha = 0 itself
            steps = [0.0] if not a.any() else [0.0, a @ (self.b - self.A @ x) / (a @ a)]
            score[i] = min(self.F(x + alpha * e) for alpha in steps) - self.F(x)
        return score

    def working_set(self, x, i, j, rng):
        """RiGj: j coordinates by the greedy strategy, i others at random; k = i + j of them."""
        greedy = np.argsort(self.scores(x), kind="stable")[:j]  # sort, pick the top
        rest = np.setdiff1d(np.arange(self.n), greedy)
        return np.sort(np.concatenate([greedy, rest[draw_distinct(rng, rest.size, i)]]))

    def subproblem(self, x, B, theta):
        """Global minimizer of F(z) + θ/2‖z − x‖² with z = x outside B: "generate and test"."""
        candidates = [x]
        for S in map(list, chain.from_iterable(combinations(B, m) for m in range(len(B) + 1))):
            z = x.copy()
            z[B] = 0.0
            A_S = self.A[:, S]
            H = A_S.T @ A_S + theta * np.eye(len(S))
            z[S] = np.linalg.solve(H, A_S.T @ (self.b - self.A @ z) + theta * x[S])
            candidates.append(z)
        values = [self.F(z) + theta / 2 * np.sum((z - x) ** 2) for z in candidates]
        return candidates[int(np.argmin(values))]

    def algorithm_1(self, i, j, rng, x=None, theta=1e-3, epsilon=1e-5, varrho=50, T=1000):
        """x^0, x^1, … and whether the rule stopped it before T."""
        x = self.start(rng) if x is None else x
        points, r, t = [x], {}, 0
        while t < T:
            B = self.working_set(x, i, j, rng)  # (S1)
            z = self.subproblem(x, B, theta)  # (S2)
            r[t] = (self.f(x) - self.f(z)) / self.f(x)
            x = z
            points.append(x)
            record = [r[u] for u in range(t - min(t, varrho) + 1, t + 1)]
            if record and np.mean(record) <= epsilon:
                return np.array(points), True
            t += 1  # (S3)
        return np.array(points), False


def gaussian(seed, m=20, n=16):
    """The paper's 'random-m-n' in small."""
    X, y = blockl0.datasets.make_random(m, n, n_nonzero=5, noise=1.0, random_state=seed)
    return np.array(X), y


def short(seed, m=20, n=16):
    """The same with columns far shorter than 1, so that θ outweighs the loss."""
    X, y = gaussian(seed, m, n)
    return 0.02 * X, y


def reports(seed, m=60, n=16):
    """Like e2006: few entries, none negative, squared norms of a few hundredths, y around −3.6."""
    rng = np.random.default_rng(seed)
    X = rng.exponential(0.03, (m, n)) * (rng.random((m, n)) < 0.3)
    X[:, 3] *= 4.0
    y = -3.6 + X @ rng.standard_normal(n) + 0.5 * rng.standard_normal(m)
    return X, y


DATA = {"gaussian": gaussian, "short": short, "reports": reports}
# prices that leave a few columns in, in the units of each
PRICES = {"gaussian": 0.8, "short": 0.5, "reports": 0.5}


def engine(X, y, **options):
    """The result of method "dec", as printed, and w after 0, 1, 2, … iterations."""
    points = []
    result = blockl0.solve(
        X, y, method="dec", callback=lambda progress: points.append(progress.coef.copy()),
        **(AS_PRINTED | options),
    )  # fmt: skip
    return result, np.array(points)


def form_of(data, form):
    """The same sparsity for the reference and for `solve`."""
    if form == "budget":
        return {"s": 4}, {"n_nonzero_coefs": 4}
    return {"lam": PRICES[data]}, {"alpha": PRICES[data]}


def assert_same_path(points, expected):
    assert len(points) == len(expected)
    assert np.array_equal(points != 0.0, expected != 0.0)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(points, expected, rtol=0, atol=1e-5 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("form", ["budget", "price"])
@pytest.mark.parametrize(("i", "j"), [(3, 2), (0, 4), (4, 0)])
def test_every_step_is_the_papers(monkeypatch, data, form, i, j):
    for seed in range(2):
        if seed:
            monkeypatch.setattr(state, "GRAM_BYTES", 0)  # the other engine
        X, y = DATA[data](seed)
        sparsity, options = form_of(data, form)
        expected, stopped = Printed(X, y, **sparsity).algorithm_1(
            i, j, np.random.default_rng(seed), T=60
        )
        result, points = engine(
            X, y, working_set=f"R{i}G{j}", max_iter=60, random_state=seed, **options
        )
        assert_same_path(points, expected)
        assert result.status is (Status.CONVERGED if stopped else Status.MAX_ITER)


@pytest.mark.parametrize("form", ["budget", "price"])
def test_a_whole_run_with_the_printed_parameters(form):
    X, y = gaussian(5)
    sparsity, options = form_of("gaussian", form)
    expected, stopped = Printed(X, y, **sparsity).algorithm_1(3, 2, np.random.default_rng(0))
    result, points = engine(sp.csc_array(X), y, working_set="R3G2", random_state=0, **options)
    assert stopped and len(expected) > 50
    assert_same_path(points, expected)
    # θ, ε, ϱ and T are the paper's without being asked for
    defaults = {"theta": 1e-3, "tol": 1e-5, "window": 50, "max_iter": 1000}
    assert defaults.items() <= result.options.items()


def test_a_feasible_start_and_columns_of_zeros():
    X, y = reports(3)
    X[:, [0, 7]] = 0.0
    x = np.zeros(16)
    x[3] = -1.0
    for form in ("budget", "price"):
        sparsity, options = form_of("reports", form)
        rng = np.random.default_rng(2)
        expected, _ = Printed(X, y, **sparsity).algorithm_1(2, 3, rng, x=x, T=40)
        _, points = engine(X, y, working_set="R2G3", init=x, max_iter=40, random_state=2, **options)
        assert_same_path(points, expected)


# -- each option does what it says -----------------------------------------------------------------


@pytest.mark.parametrize(
    "sparsity", [{"n_nonzero_coefs": 4}, {"n_nonzero_coefs": 6}, {"alpha": 0.8}]
)
def test_greedy_coordinates_are_the_top_of_the_printed_scores(sparsity):
    X, y = gaussian(1)
    x = np.zeros(16)
    x[[2, 5, 8, 11]] = np.random.default_rng(0).standard_normal(4)
    printed = Printed(X, y, sparsity.get("n_nonzero_coefs"), sparsity.get("alpha"))
    score = printed.scores(x)
    assert score[x == 0].max() <= 0.0
    if sparsity == {"n_nonzero_coefs": 4}:
        assert not score[x == 0].any()  # the support fills the budget
    point = GramState(as_problem(X, y, **sparsity), x)
    for j in range(1, 17):
        point.memo.clear()
        picked = RandomGreedy(0, j, "paper").select(point, np.random.default_rng(0))
        assert set(picked) == set(np.argsort(score, kind="stable")[:j])


def test_theta_is_scaled_below_one_unless_told_otherwise():
    X, y = short(0)
    largest = float((X**2).sum(axis=0).max())
    assert largest < 0.02
    options = {"n_nonzero_coefs": 4, "method": "dec", "random_state": 0, "max_iter": 2}
    letter = blockl0.solve(X, y, theta_scale=False, **options)
    same = blockl0.solve(X, y, theta=1e-3 / largest, **options)
    np.testing.assert_allclose(letter.coef, same.coef, rtol=1e-9)
    assert not np.allclose(letter.coef, blockl0.solve(X, y, **options).coef, rtol=1e-3)
    # from 1 on it makes no difference, to the last bit
    X, y = gaussian(0)
    on, off = (blockl0.solve(X, y, theta_scale=flag, **options) for flag in (True, False))
    assert np.array_equal(on.coef, off.coef)


class Fixed:
    """The blocks of a list, one after the other; then the last again and again."""

    def __init__(self, blocks):
        self.blocks = blocks

    def select(self, state, rng):
        return np.array(self.blocks[min(state.iteration, len(self.blocks) - 1)])


@pytest.mark.parametrize(
    ("blocks", "n_iter"),
    [
        # the first block brings nothing and is not judged (r_0), nor does the second (r_1): stop
        ([[3], [3]], 2),
        # the second one brings something: the mean of r_1, r_2, … stays above ε until r_1 is out
        ([[3], [0], [3]], 6),
        # the first brings something, r_0, which is never in the mean
        ([[0], [3], [3]], 2),
    ],
)
def test_the_printed_rule_judges_from_the_second_iteration(blocks, n_iter):
    X, y = np.eye(4), np.array([2.0, 1.0, 0.5, 0.0])
    options = {"alpha": 1e-3, "init": np.zeros(4), "method": "dec", "working_set": Fixed(blocks)}
    options |= {"theta": 0.0, "window": 4}
    assert blockl0.solve(X, y, stopping="paper", **options).n_iter == n_iter
    assert blockl0.solve(X, y, **options).n_iter >= 4


def test_the_printed_rule_judges_f_and_ours_judges_F():
    # two columns pay less than their price: taking them out raises f and lowers F
    X, y = np.eye(3), np.array([3.0, 0.1, 0.1])
    options = {"alpha": 0.1, "init": y, "method": "dec", "theta": 0.0, "window": 2, "tol": 0.0}
    options |= {"working_set": Fixed([[0], [1], [2], [0]]), "random_state": 0}
    # f(x^1) = 0 counts as r_1 = 0 at once
    assert blockl0.solve(X, y, stopping="paper", **options).n_iter == 2
    # r of F: 0, 0.095 / 0.3, 0.095 / 0.205, 0, 0
    assert blockl0.solve(X, y, **options).n_iter == 5


def test_a_cyclic_run_is_not_judged_by_the_round_as_printed():
    X, y = gaussian(0)
    options = {"n_nonzero_coefs": 3, "method": "dec", "working_set": "cyclic", "window": 5}
    options |= {"random_state": 0}
    assert blockl0.solve(X, y, stopping="paper", **options).n_iter < 120
    assert blockl0.solve(X, y, **options).n_iter >= 120


def test_the_printed_rule_stops_at_the_second_block_when_nothing_pays():
    # removing columns of 1e-7 changes F by their price and f by next to nothing
    X, y = gaussian(0, 20, 40)
    options = {"alpha": 1e4, "method": "dec", "working_set": "R3G2", "random_state": 0}
    letter = blockl0.solve(X, y, stopping="paper", **options)
    assert letter.n_iter == 2 and letter.n_nonzero >= 30
    assert blockl0.solve(X, y, **options).n_nonzero == 0


@pytest.mark.parametrize(
    ("blocks", "n_iter"),
    [
        # blocks of zeros say nothing: the window is never full
        ([[2], [3]], 40),
        # the last one comes again: the sixth is the fourth that holds a nonzero
        ([[2], [0], [3], [1]], 6),
        ([[0], [1]], 4),
    ],
)
def test_the_published_rule_does_not_count_blocks_without_a_nonzero(blocks, n_iter):
    X, y = np.eye(4), np.array([2.0, 1.0, 0.5, 0.0])
    options = {"n_nonzero_coefs": 2, "init": np.array([2.0, 1.0, 0.0, 0.0]), "method": "dec"}
    options |= {**AS_PUBLISHED, "theta": 0.0, "window": 4, "max_iter": 40}
    options |= {"working_set": Fixed(blocks)}
    assert blockl0.solve(X, y, **options).n_iter == n_iter
    assert blockl0.solve(X, y, **options | {"stopping": "window"}).n_iter == 4


def test_the_published_options_are_options_of_dec():
    assert set(AS_PUBLISHED) <= set(METHODS["dec"].defaults)
    X, y = gaussian(0)
    options = {"n_nonzero_coefs": 3, "method": "dec", "random_state": 0}
    result = blockl0.solve(X, y, **options, **AS_PUBLISHED)
    assert result.n_nonzero == 3 and result.n_iter >= AS_PUBLISHED["window"]
