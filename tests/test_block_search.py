"""The exact block search against enumeration, a mixed-integer solver, and its own promises.

Tolerances. The search proves its answer up to an allowance for rounding, SLACK, of about
k·eps/(smallest relative pivot of H) times |f(all coordinates)|; `run` reads it from the search and
every comparison adds it. Supports whose smallest scaled eigenvalue is below DEPENDENT may hold a
pivot that the search calls redundant, so it does not owe them. Of a singular H the redundant pivots
are left out of SLACK, while supports may be nearly dependent: there `rounding_at` is added, of the
support of the enumeration and of that of the search.
"""

from __future__ import annotations

import importlib
import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hostile
import oracles
from blockl0 import kernels
from blockl0.block_search import BlockSolution, block_search, new_tree, search_block
from grid import quick_first

# the module; the package may offer the function under the same name
module = importlib.import_module("blockl0.block_search")

DEPENDENT = 10 * kernels.PIVOT_FLOOR
EPS = np.finfo(float).eps


# --------------------------------------------------------------------------------------------------
# the truth by enumeration, one batch of eigendecompositions per support size
# --------------------------------------------------------------------------------------------------


@lru_cache
def supports(k, size):
    return np.array(list(itertools.combinations(range(k), size)), dtype=np.int64)


def enumerate_supports(H, c, price, budget, forced=None, rounding=False):
    """The smallest value over independent supports, each with its `rounding` if that is asked for.

    By the eigenvectors, the norm of the scaled minimizer is that of the gradient over eigenvalues.
    """
    k = len(c)
    scale = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    R, b = H / np.outer(scale, scale), c / scale
    required = np.zeros(k, bool) if forced is None else forced
    best = np.inf if required.any() else 0.0
    for size in range(1, budget + 1):
        S = supports(k, size)
        S = S[_contain(S, required)]
        if len(S) == 0:
            continue
        eigenvalues, V = np.linalg.eigh(R[S[:, :, None], S[:, None, :]])
        owed = eigenvalues[:, 0] > DEPENDENT
        if owed.any():
            shares = np.einsum("sij,si->sj", V[owed], b[S[owed]]) ** 2 / eigenvalues[owed]
            values = -0.5 * shares.sum(axis=1) + price * size
            if rounding:
                values += EPS * size**2 * (shares / eigenvalues[owed]).sum(axis=1) / 2
            best = min(best, values.min())
    return best


def rounding_at(H, z):
    """What rounding may change of the value at a minimizer z on its support.

    A change E of the scaled H changes it by ½z'Ez to first order, z scaled; rounding is a change of
    norm eps·size·‖H‖, with ‖H‖ <= size.
    """
    return EPS * np.count_nonzero(z) ** 2 * float(np.diag(H) @ z**2) / 2


def _contain(S, required):
    """Which rows of S contain every required coordinate."""
    member = np.zeros((len(S), len(required)), bool)
    np.put_along_axis(member, S, True, axis=1)
    return member[:, required].all(axis=1)


def run(H, c, price, budget, **options) -> tuple[BlockSolution, float]:
    """The solution and the rounding allowance of its search."""
    tree = new_tree(len(c), min(len(c), budget) + 1)
    solution = search_block(H, c, price, budget, tree=tree, **options)
    return solution, float(tree.value[-1, kernels.SLACK])


def smallest_eigenvalue(H):
    d = np.sqrt(np.where(np.diag(H) > 0, np.diag(H), 1.0))
    return np.linalg.eigvalsh(H / np.outer(d, d))[0]


def size_of(H, c):
    """A magnitude for values: the gain of the best single coordinate."""
    diagonal = np.where(np.diag(H) > 0, np.diag(H), 1.0)
    return float(np.max(0.5 * c**2 / diagonal))


def check_answer(H, c, price, budget, solution, slack):
    """What every proven answer owes: feasible, and its value is that of its point."""
    z, value = solution.z, solution.value
    assert solution.proven
    assert solution.lower_bound == value  # one number
    assert np.isfinite(z).all()
    assert np.count_nonzero(z) <= budget
    terms = 0.5 * np.abs(z) @ np.abs(H) @ np.abs(z) + np.abs(c) @ np.abs(z) + price * len(c)
    assert abs(oracles.objective(H, c, z, price) - value) <= 1e-12 * terms + slack


def check_equal(H, c, price, budget, forced=None, current=None):
    """The search equals enumeration, both sides."""
    solution, slack = run(H, c, price, budget, forced=forced, current=current)
    check_answer(H, c, price, budget, solution, slack)
    best = enumerate_supports(H, c, price, budget, forced)
    assert abs(solution.value - best) <= slack + 1e-10 * max(size_of(H, c), abs(best))
    return solution


# --------------------------------------------------------------------------------------------------
# families of blocks
# --------------------------------------------------------------------------------------------------


def gram(X, y):
    return np.ascontiguousarray(X.T @ X), -(X.T @ y)


def ar_columns(rng, m, k, rho):
    cholesky = np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(k), np.arange(k))))
    return rng.standard_normal((m, k)) @ cholesky.T


def target(rng, X):
    return X @ (rng.standard_normal(X.shape[1]) * (rng.random(X.shape[1]) < 0.5)) + rng.normal(
        size=X.shape[0]
    )


def random_block(rng, k):
    X = rng.standard_normal((k + 6, k))
    return gram(X, target(rng, X))


def correlated_block(rng, k):
    X = ar_columns(rng, k + 12, k, rng.choice([0.5, 0.9, 0.99, 0.999]))
    return gram(X, target(rng, X))


def equicorrelated_block(rng, k):
    X = rng.standard_normal((k + 12, k)) + rng.choice([1, 10, 100]) * rng.normal(size=(k + 12, 1))
    return gram(X, target(rng, X))


def integer_block(rng, k):
    """Small integers: many exact ties."""
    X = rng.integers(-1, 2, (k + 4, k)).astype(float)
    H, _ = gram(X, np.zeros(k + 4))
    return H + np.eye(k), rng.integers(-3, 4, k).astype(float)


def theta_block(rng, k):
    """A rank-deficient Gram matrix made definite by a proximal term, as the decomposition does."""
    X = rng.standard_normal((max(1, k // 2), k))
    H, c = gram(X, rng.standard_normal(X.shape[0]))
    return H + 1e-3 * np.eye(k), c


def scaled_block(rng, k):
    H, c = random_block(rng, k)
    d, overall = 10.0 ** rng.uniform(-6, 6, k), 10.0 ** rng.uniform(-12, 12)
    return np.ascontiguousarray(overall * H * np.outer(d, d)), overall * c * d


def duplicated_block(rng, k):
    X = rng.standard_normal((k + 6, k))
    twins = rng.integers(0, k, k)
    X = X[:, np.where(rng.random(k) < 0.4, twins, np.arange(k))] * rng.choice([-1, 1, 2], k)
    return gram(X, target(rng, X))


def zero_column_block(rng, k):
    X = rng.standard_normal((k + 6, k)) * (rng.random(k) < 0.7)
    return gram(X, target(rng, X) + rng.standard_normal(k + 6))


def perturbed_block(rng, k):
    """Columns duplicated up to a perturbation of 1e-12 to 1e-6."""
    X = rng.standard_normal((k + 6, k))
    X = X[:, np.where(rng.random(k) < 0.4, rng.integers(0, k, k), np.arange(k))]
    X = X + 10.0 ** rng.uniform(-12, -6) * rng.standard_normal(X.shape)
    return gram(X, rng.standard_normal(k + 6))


def wide_block(rng, k):
    """Fewer samples than columns: H has rank m < k."""
    X = rng.standard_normal((max(1, int(rng.integers(1, k + 1)) - 1), k))
    return gram(X, rng.standard_normal(X.shape[0]))


def dependent_block(rng, k):
    """Some columns are sums of two others."""
    X = rng.standard_normal((k + 6, k))
    for j in np.flatnonzero(rng.random(k) < 0.3):
        X[:, j] = X[:, rng.integers(0, k)] + X[:, rng.integers(0, k)]
    return gram(X, target(rng, X))


DEFINITE = {
    "random": random_block,
    "correlated": correlated_block,
    "equicorrelated": equicorrelated_block,
    "integer": integer_block,
    "theta": theta_block,
    "badly scaled": scaled_block,
}
SINGULAR = {
    "duplicated": duplicated_block,
    "zero columns": zero_column_block,
    "perturbed duplicates": perturbed_block,
    "fewer samples than columns": wide_block,
    "sums of columns": dependent_block,
}


def draw_sparsity(rng, H, c, form):
    """A (price, budget) of the given form, the price on the scale of single gains."""
    k = len(c)
    price = size_of(H, c) * 10.0 ** rng.uniform(-4, 0.3) if form != "budget" else 0.0
    return price, k if form == "price" else int(rng.integers(0, k + 1))


SEEDS = st.integers(0, 2**32 - 1)
SIZES = st.integers(1, 9)
FORMS = st.sampled_from(["price", "budget", "both"])


# --------------------------------------------------------------------------------------------------
# equality with enumeration
# --------------------------------------------------------------------------------------------------


def test_the_enumeration_is_the_oracle(rng):
    for _ in range(20):
        H, c = random_block(rng, 5)
        _, best = oracles.brute_force(H, c, 0.3, 3)
        assert enumerate_supports(H, c, 0.3, 3) == pytest.approx(best, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("family", DEFINITE)
@settings(max_examples=400)
@given(seed=SEEDS, k=SIZES, form=FORMS)
def test_equals_enumeration(family, seed, k, form):
    rng = np.random.default_rng(seed)
    H, c = DEFINITE[family](rng, k)
    check_equal(H, c, *draw_sparsity(rng, H, c, form))


@pytest.mark.parametrize("family", SINGULAR)
@settings(max_examples=400)
@given(seed=SEEDS, k=SIZES, form=FORMS)
def test_equals_enumeration_when_singular(family, seed, k, form):
    """Not above the enumeration of independent supports.

    The other side needs no oracle: `check_answer` sees that the value is that of a feasible point.
    """
    rng = np.random.default_rng(seed)
    H, c = SINGULAR[family](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    solution, slack = run(H, c, price, budget)
    check_answer(H, c, price, budget, solution, slack)
    best = enumerate_supports(H, c, price, budget, rounding=True) + rounding_at(H, solution.z)
    assert solution.value <= best + slack + 1e-10 * size_of(H, c)
    # the allowances are not a loophole
    if family in ("duplicated", "zero columns"):
        assert solution.value == pytest.approx(best, rel=1e-4, abs=1e-5 * size_of(H, c))


def nearly_dependent_block(rng):
    """A duplicated column, and a third that differs by about 1e-4, along the target."""
    Q = np.linalg.qr(rng.standard_normal((12, 8)))[0]
    near = Q[:, 0] + 10.0 ** rng.uniform(-4.4, -3.6) * Q[:, 1]
    X = np.column_stack([Q[:, 0], Q[:, 0], near, Q[:, 2], Q[:, 3], Q[:, 4]])
    X = X[:, rng.permutation(6)]
    return gram(X, Q[:, 1] + Q[:, 2:5] @ rng.uniform(-1, 1, 3))


def test_ill_conditioned_supports_of_a_singular_block():
    """Supports with eigenvalues of 1e-9 to 1e-7 are still owed when another column is redundant."""
    for seed in range(400):
        rng = np.random.default_rng(seed)
        H, c = nearly_dependent_block(rng)
        price, budget = float(rng.choice([0.0, 0.05, 0.2])), int(rng.integers(1, 7))
        solution, _ = run(H, c, price, budget)
        best = enumerate_supports(H, c, price, budget)
        assert not solution.proven or solution.value <= best + 1e-3 * abs(best), seed


@settings(max_examples=300)
@given(seed=SEEDS, k=st.integers(2, 8), form=FORMS)
def test_forced_coordinates(seed, k, form):
    rng = np.random.default_rng(seed)
    H, c = (random_block, correlated_block)[seed % 2](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    forced = np.zeros(k, bool)
    forced[rng.choice(k, int(rng.integers(0, budget + 1)), replace=False)] = True
    solution = check_equal(H, c, price, budget, forced=forced)
    assert (solution.z[forced] != 0).all()


@settings(max_examples=200)
@given(seed=SEEDS, k=SIZES)
def test_edges_of_the_sparsity(seed, k):
    H, c = random_block(np.random.default_rng(seed), k)
    nothing, _ = run(H, c, 0.0, 0)
    assert nothing.value == 0.0
    assert not nothing.z.any()
    everything, slack = run(H, c, 0.0, k)
    assert abs(everything.value + 0.5 * c @ np.linalg.solve(H, c)) <= slack + 1e-10 * size_of(H, c)
    dear, _ = run(H, c, 1e6 * (1.0 - everything.value), k)
    assert dear.value == 0.0


@pytest.mark.parametrize("price", [0.0, 0.2, 0.6])
@pytest.mark.parametrize("budget", [0, 1])
def test_one_coordinate(price, budget):
    solution, _ = run(np.array([[2.0]]), np.array([-1.5]), price, budget)
    best = min(0.0, price - 0.5 * 1.5**2 / 2.0) if budget else 0.0
    assert solution.value == pytest.approx(best, abs=1e-15)


@pytest.mark.parametrize("k", [1, 3, 12, 20])
def test_nothing_at_all(k):
    """All columns zero, or y = 0: the answer is zero, not NaN."""
    for H, c in [(np.zeros((k, k)), np.zeros(k)), (np.eye(k), np.zeros(k))]:
        solution, _ = run(H, c, 0.0, k)
        assert solution.proven
        assert solution.value == 0.0
        assert not solution.z.any()


def test_identical_columns_use_one(rng):
    """The pair is worth no more than one of it, so a second copy is never taken."""
    X = np.repeat(rng.standard_normal((20, 3)), 3, axis=1)
    H, c = gram(X, X @ np.ones(9))
    solution, _ = run(H, c, 0.0, 9)
    assert np.count_nonzero(solution.z) == 3
    groups = [np.count_nonzero(solution.z[3 * g : 3 * g + 3]) for g in range(3)]
    assert groups == [1, 1, 1]


# --------------------------------------------------------------------------------------------------
# promises of the search
# --------------------------------------------------------------------------------------------------


@settings(max_examples=200)
@given(seed=SEEDS, k=SIZES, form=FORMS)
def test_current_is_respected(seed, k, form):
    rng = np.random.default_rng(seed)
    H, c = random_block(rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    free, slack = run(H, c, price, budget)
    again, _ = run(H, c, price, budget, current=free.z)
    np.testing.assert_allclose(again.z, free.z, rtol=1e-9, atol=1e-12)
    assert again.value <= free.value + slack
    z = np.zeros(k)
    z[rng.choice(k, budget, replace=False)] = rng.standard_normal(budget)
    other = check_equal(H, c, price, budget, current=z)
    assert other.value <= oracles.objective(H, c, z, price) + slack


def test_current_is_returned_when_it_is_not_beaten():
    """A value that cannot be reached keeps the very object."""
    H, c = np.eye(3), np.array([-1.0, 0.0, 0.0])
    best = np.array([1.0, 0.0, 0.0])
    solution = search_block(H, c, 0.1, 3, current=best)
    assert solution.z is best
    assert solution.value == pytest.approx(-0.4, rel=1e-15)


@settings(max_examples=300)
@given(seed=SEEDS, k=st.integers(4, 9), limit=st.integers(0, 12), form=FORMS)
def test_node_limit(seed, k, limit, form):
    rng = np.random.default_rng(seed)
    H, c = (random_block, correlated_block, theta_block)[seed % 3](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    solution, slack = run(H, c, price, budget, node_limit=limit)
    best = enumerate_supports(H, c, price, budget)
    tolerance = slack + 1e-10 * size_of(H, c)
    assert solution.n_nodes <= limit
    assert solution.lower_bound <= solution.value
    assert solution.lower_bound <= best + tolerance
    assert best <= solution.value + tolerance
    if solution.proven:
        assert solution.value <= best + tolerance


def test_node_limit_is_reported(rng):
    X = ar_columns(rng, 60, 24, 0.95)
    H, c = gram(X, X @ rng.standard_normal(24) + 5 * rng.standard_normal(60))
    bounds = []
    for limit in (1, 5, 20):
        solution, _ = run(H, c, 0.0, 8, node_limit=limit)
        assert not solution.proven
        assert solution.n_nodes == limit
        assert solution.lower_bound < solution.value
        bounds.append(solution.lower_bound)
    proven, slack = run(H, c, 0.0, 8)
    assert proven.proven
    assert max(bounds) <= proven.value + slack
    assert bounds == sorted(bounds)  # a node takes over the bound of its parent


def test_a_stopped_search_goes_on(rng):
    """Calling the kernel again on the same tree continues it, to the same answer."""
    X = ar_columns(rng, 60, 24, 0.95)
    H, c = gram(X, X @ rng.standard_normal(24) + 5 * rng.standard_normal(60))
    whole, slack = run(H, c, 0.0, 8)
    tree = new_tree(24, 9)
    passes = module.plant(tree, H, c, 0.0, 8, np.zeros(24))
    bounds = [module.open_bound(tree)]
    while not kernels.search_tree(tree, 0.0, 8, passes, 10):
        bounds.append(module.open_bound(tree))
    size = tree.count[-1, kernels.BEST_SIZE]
    found = np.sort(tree.index[-1, kernels.BEST, :size])
    np.testing.assert_array_equal(found, np.flatnonzero(whole.z))
    # the same nodes in the same order
    assert tree.count[-1, kernels.NODES] == whole.n_nodes
    assert bounds == sorted(bounds)
    assert bounds[-1] <= whole.value + slack


def test_a_tree_can_be_used_again(rng):
    tree = new_tree(7, 8)
    for _ in range(50):
        H, c = random_block(rng, 7)
        price, budget = draw_sparsity(rng, H, c, "both")
        fresh, _ = run(H, c, price, budget)
        again = search_block(H, c, price, budget, tree=tree)
        # the same steps: what the last search left behind takes part in none
        np.testing.assert_array_equal(again.z, fresh.z)
        assert again[1:] == fresh[1:]


@settings(max_examples=200)
@given(seed=SEEDS, k=st.integers(1, 12), form=FORMS)
def test_invariance(seed, k, form):
    """Permuting, flipping or rescaling columns, or scaling the whole, changes nothing but names."""
    rng = np.random.default_rng(seed)
    H, c = (random_block, correlated_block)[seed % 2](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    base, slack = run(H, c, price, budget)
    tolerance = 2 * slack + 1e-10 * size_of(H, c)
    order = rng.permutation(k)
    moved, _ = run(np.ascontiguousarray(H[np.ix_(order, order)]), c[order], price, budget)
    assert abs(moved.value - base.value) <= tolerance
    d = rng.choice([-1, 1], k) * 10.0 ** rng.uniform(-6, 6, k)
    scaled, _ = run(np.ascontiguousarray(H * np.outer(d, d)), c * d, price, budget)
    assert abs(scaled.value - base.value) <= tolerance
    t = 10.0 ** rng.uniform(-12, 12)
    larger, _ = run(t * H, t * c, t * price, budget)
    assert abs(larger.value / t - base.value) <= tolerance


# --------------------------------------------------------------------------------------------------
# larger blocks: the variant with the perspective relaxation
# --------------------------------------------------------------------------------------------------

LARGE = {
    "random": random_block,
    "correlated": correlated_block,
    "equicorrelated": equicorrelated_block,
    "integer": integer_block,
    "theta": theta_block,
    "badly scaled": scaled_block,
}


@pytest.mark.parametrize("family", LARGE)
@settings(max_examples=25)
@given(seed=SEEDS, k=st.integers(16, 22), budget=st.integers(0, 3), priced=st.booleans())
def test_large_blocks_equal_enumeration(family, seed, k, budget, priced):
    rng = np.random.default_rng(seed)
    H, c = LARGE[family](rng, k)
    price = size_of(H, c) * 10.0 ** rng.uniform(-4, 0) if priced else 0.0
    check_equal(H, c, price, budget)


@pytest.mark.parametrize("family", {**LARGE, **SINGULAR})
@settings(max_examples=60)
@given(seed=SEEDS, k=st.integers(3, 9), form=FORMS)
def test_relaxation_on_small_blocks(family, seed, k, form):
    """The variant of the large blocks, on blocks small enough to enumerate in full."""
    rng = np.random.default_rng(seed)
    H, c = {**LARGE, **SINGULAR}[family](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RELAX_FROM", 1)
        solution, slack = run(H, c, price, budget)
    check_answer(H, c, price, budget, solution, slack)
    best = enumerate_supports(H, c, price, budget, rounding=family in SINGULAR)
    best += rounding_at(H, solution.z) if family in SINGULAR else 0.0
    assert solution.value <= best + slack + 1e-10 * size_of(H, c)


@pytest.mark.parametrize("family", quick_first({**LARGE, **SINGULAR}, 4))
@settings(max_examples=15)
@given(seed=SEEDS, k=st.integers(16, 22), form=FORMS)
def test_both_variants_agree(family, seed, k, form):
    rng = np.random.default_rng(seed)
    H, c = {**LARGE, **SINGULAR}[family](rng, k)
    price, budget = draw_sparsity(rng, H, c, form)
    relaxed, slack = run(H, c, price, budget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RELAX_FROM", 10**6)
        plain, _ = run(H, c, price, budget)
    check_answer(H, c, price, budget, relaxed, slack)
    check_answer(H, c, price, budget, plain, slack)
    lift = 1e-5 * abs(plain.value) if family in SINGULAR else 0.0
    assert abs(relaxed.value - plain.value) <= lift + slack + 1e-10 * size_of(H, c)


@settings(max_examples=40)
@given(seed=SEEDS, limit=st.integers(0, 60), form=FORMS)
def test_node_limit_of_large_blocks(seed, limit, form):
    rng = np.random.default_rng(seed)
    H, c = (random_block, correlated_block, theta_block)[seed % 3](rng, 18)
    price, budget = draw_sparsity(rng, H, c, form)
    whole, slack = run(H, c, price, budget)
    part, _ = run(H, c, price, budget, node_limit=limit)
    tolerance = slack + 1e-10 * size_of(H, c)
    assert part.lower_bound <= part.value
    assert part.lower_bound <= whole.value + tolerance
    assert part.proven == (whole.n_nodes <= limit)  # the same nodes in the same order


def solve_by_scip(H, c, price, budget, bound, seconds):
    """(value, proven) of the indicator formulation, |z_j| <= bound b_j, in SCIP."""
    scip = pytest.importorskip(
        "pyscipopt", reason="PySCIPOpt is missing: the block search is NOT compared with SCIP"
    )
    k, model = len(c), scip.Model()
    model.hideOutput()
    model.setParam("limits/time", seconds)
    model.setParam("limits/gap", 1e-8)
    model.setParam("numerics/feastol", 1e-9)
    z = [model.addVar(lb=-bound, ub=bound) for _ in range(k)]
    b = [model.addVar(vtype="B") for _ in range(k)]
    # ½z'Hz as half a sum of squares of r = L'z: far easier for SCIP than the expanded form
    L = np.linalg.cholesky(H)
    r = [model.addVar(lb=None) for _ in range(k)]
    cost = model.addVar(lb=0.0)
    for j in range(k):
        model.addCons(r[j] == scip.quicksum(L[i, j] * z[i] for i in range(j, k)))
        model.addCons(z[j] <= bound * b[j])
        model.addCons(z[j] >= -bound * b[j])
    model.addCons(scip.quicksum(0.5 * r[j] * r[j] for j in range(k)) <= cost)
    model.addCons(scip.quicksum(b) <= budget)
    linear = scip.quicksum(float(c[j]) * z[j] for j in range(k))
    model.setObjective(cost + linear + price * scip.quicksum(b), "minimize")
    model.optimize()
    return model.getObjVal(), model.getStatus() in ("optimal", "gaplimit")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "form", "rho"),
    [
        (20, "budget", 0.5),
        (20, "price", 0.5),
        (25, "both", 0.5),
        (30, "budget", 0.2),
        (30, "price", 0.5),
    ],
)
def test_equals_scip(k, form, rho):
    rng = np.random.default_rng(k)
    X = ar_columns(rng, 3 * k, k, rho)
    X /= np.linalg.norm(X, axis=0)
    w = np.where(np.arange(k) % 6 == 0, 2.0, 0.0)
    H, c = gram(X, X @ w + 0.15 * rng.standard_normal(3 * k))
    price, budget = {"budget": (0.0, 4), "price": (0.2, k), "both": (0.1, 4)}[form]
    solution, slack = run(H, c, price, budget)
    check_answer(H, c, price, budget, solution, slack)
    value, proven = solve_by_scip(H, c, price, budget, 4 * np.abs(solution.z).max(), seconds=15.0)
    if not proven:
        pytest.skip(f"SCIP did not prove k = {k} ({form}) within its time limit: not compared")
    assert solution.value == pytest.approx(value, rel=1e-5)


# --------------------------------------------------------------------------------------------------
# the public face
# --------------------------------------------------------------------------------------------------


def test_public_answer(rng):
    H, c = random_block(rng, 8)
    z, value = block_search(H, c, price=0.1, budget=4)
    assert value == pytest.approx(enumerate_supports(H, c, 0.1, 4), rel=1e-10)
    assert value == pytest.approx(oracles.objective(H, c, z, 0.1), rel=1e-10)


def test_public_input_is_taken_as_it_comes():
    """Lists, integers and Fortran order are fine; the arguments stay as they are."""
    z, value = block_search([[2, 0], [0, 4]], [-2, -8], 1, 1)
    np.testing.assert_allclose(z, [0.0, 2.0], rtol=1e-15)
    assert value == pytest.approx(-7.0, rel=1e-15)
    H, c = np.asfortranarray([[2.0, 1.0], [1.0, 4.0]]), np.array([-2.0, -8.0])
    kept = H.copy(), c.copy()
    _, value = block_search(H, c)
    assert value == pytest.approx(-0.5 * c @ np.linalg.solve(H, c))
    np.testing.assert_array_equal(H, kept[0])
    np.testing.assert_array_equal(c, kept[1])


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_public_singular_input(scale):
    z, value = block_search(scale * np.ones((3, 3)), -scale * np.ones(3))
    assert np.count_nonzero(z) == 1
    assert value == pytest.approx(-0.5 * scale)


I2, C2 = np.eye(2), np.array([-1.0, 2.0])
REFUSED = [
    ((np.eye(3), C2), ValueError, r"`H` must be \(k, k\).*shapes \(3, 3\) and \(2,\)"),
    ((np.ones((2, 3)), C2), ValueError, r"shapes \(2, 3\)"),
    ((I2, np.ones((2, 1))), ValueError, r"and \(2, 1\)"),
    ((np.zeros((0, 0)), np.zeros(0)), ValueError, "k >= 1"),
    ((I2 * np.nan, C2), ValueError, "finite"),
    ((I2, C2 * np.inf), ValueError, "finite"),
    ((np.array([[1.0, 0.5], [0.0, 1.0]]), C2), ValueError, "symmetric"),
    ((np.array([[1.0, 2.0], [2.0, 1.0]]), C2), ValueError, "positive semidefinite.*-1"),
    ((-I2, C2), ValueError, "positive semidefinite"),
    ((np.ones((2, 2)), C2), ValueError, "range.*no minimum"),
    ((np.zeros((2, 2)), C2), ValueError, "range.*no minimum"),
    ((I2, C2, -1.0), ValueError, "`price` must be nonnegative, got -1"),
    ((I2, C2, np.nan), ValueError, "`price`"),
    ((I2, C2, "cheap"), TypeError, "`price`"),
    ((I2, C2, 0.0, -1), ValueError, "`budget` must be between 0 and 2, got -1"),
    ((I2, C2, 0.0, 3), ValueError, "`budget` must be between 0 and 2, got 3"),
    ((I2, C2, 0.0, 1.5), TypeError, "`budget` must be an integer"),
    ((I2, ["a", "b"]), TypeError, "`c` must hold numbers"),
]


@pytest.mark.parametrize(("arguments", "error", "pattern"), REFUSED)
def test_bad_input_is_refused(arguments, error, pattern):
    with pytest.raises(error, match=pattern):
        block_search(*arguments)


@pytest.mark.filterwarnings("ignore")
def test_complex_input_is_refused():
    with pytest.raises((TypeError, ValueError), match="complex"):
        block_search(I2 * (1 + 1j), C2)


@pytest.mark.parametrize("column", ["duplicate", "zero"])
def test_forced_coordinate_that_is_redundant(column):
    """The best feasible value is that of the others; the redundant coordinate may stay at zero."""
    H, c = np.eye(3), np.array([-1.0, -2.0, -0.5])
    if column == "duplicate":
        H[0, 1] = H[1, 0] = 1.0
        c[0] = c[1]
    else:
        H[0, 0] = c[0] = 0.0
    forced = np.array([True, True, False])
    solution, _ = run(H, c, 0.0, 3, forced=forced)
    assert solution.value == pytest.approx(-2.125)


def test_unproven_is_refused(monkeypatch, rng):
    X = ar_columns(rng, 60, 24, 0.95)
    H, c = gram(X, X @ rng.standard_normal(24) + 5 * rng.standard_normal(60))
    limited = search_block
    monkeypatch.setattr(module, "search_block", lambda *a, **kw: limited(*a, node_limit=5, **kw))
    with pytest.raises(RuntimeError, match=r"24 coordinates stopped.*without a proof"):
        block_search(H, c, 0.0, 8)


@pytest.mark.parametrize("seed", quick_first(range(60), 12))
def test_public_search_of_nearly_singular_blocks_is_enumeration(seed):
    """Pivots of 1e-8 each multiply to nothing: then columns decide, not products."""
    problem = hostile.make_hostile(seed, 7)
    X = problem.dense / np.maximum(np.linalg.norm(problem.dense, axis=0), 1e-300)
    H, c = X.T @ X, -X.T @ problem.y
    half, rng = 0.5 * problem.y @ problem.y, np.random.default_rng(seed)
    for price, budget in ((0.0, int(rng.integers(0, len(c) + 1))), (1e-3 * half, len(c))):
        z, value = block_search(0.5 * (H + H.T), c, price, budget)
        assert np.count_nonzero(z) <= budget and value <= 1e-12 * half
        truth = hostile.enumerate_supports(hostile.Hostile(X, problem.y, {"alpha": price}))
        # H itself has moved columns by 1e-16: what is nearer to others than 1e-5 it cannot know
        allowed = (truth.apart > 1e-5) & (truth.size <= budget)
        assert value + half <= truth.objective[allowed].min() * (1.0 + 1e-9) + 1e-9 * half
