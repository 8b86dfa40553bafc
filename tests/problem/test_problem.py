from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
import scipy.sparse as sp

from blockl0.lazy import late_generator
from blockl0.losses import Squared
from blockl0.problem.problem import Problem, Sparsity, as_problem, as_sparsity
from grid import ONE_OUTPUT
from targets import amounts, is_positive

M, N = 15, 7


@pytest.fixture
def data(rng):
    X = rng.standard_normal((M, N)) * (rng.random((M, N)) < 0.6)
    return X, np.where(rng.random(M) < 0.5, 0.0, 1.0), rng.random(M)


@pytest.fixture(params=ONE_OUTPUT)
def loss(request):
    return request.param


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_gradient_is_the_finite_difference_of_smooth(data, rng, loss, weighted, store):
    X, y, weight = data
    y = amounts(loss, y) if is_positive(loss) else y
    weight = weight if weighted else None
    problem = as_problem(store(X), y, alpha=1.0, ridge=0.3, loss=loss, sample_weight=weight)
    w = rng.standard_normal(N)
    step = 1e-6 * np.eye(N)
    slope = [(problem.smooth(w + e) - problem.smooth(w - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(problem.gradient(w), slope, atol=1e-5)
    eta = X @ w
    np.testing.assert_allclose(problem.gradient(w, eta), problem.gradient(w))
    assert problem.smooth(w, eta) == pytest.approx(problem.smooth(w))


def test_dense_equals_sparse(data, rng, loss):
    X, y, weight = data
    y = amounts(loss, y) if is_positive(loss) else y
    dense, sparse = (
        as_problem(A, y, n_nonzero_coefs=N, loss=loss, sample_weight=weight)
        for A in (X, sp.coo_matrix(X))
    )
    w = rng.standard_normal(N)
    assert dense.objective(w) == pytest.approx(sparse.objective(w), rel=1e-13)
    np.testing.assert_allclose(dense.gradient(w), sparse.gradient(w))


def test_objective_by_hand():
    X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    problem = as_problem(
        X, [1, 2], n_nonzero_coefs=2, alpha=0.5, ridge=2.0, sample_weight=[1.0, 4.0]
    )
    w = np.array([1.0, 1.0, 0.0])
    # residuals 0 and -1: 4/2, ridge 2/2 * 2, two nonzeros
    assert problem.objective(w) == pytest.approx(2.0 + 2.0 + 1.0)
    assert problem.objective(np.ones(3)) == np.inf
    assert (problem.n_samples, problem.n_features) == (2, 3)


def test_hessian_bound_majorizes(data, rng, loss):
    X, y, weight = data
    y = amounts(loss, y) if is_positive(loss) else y
    for sample_weight in (None, weight):
        problem = as_problem(X, y, alpha=0.0, loss=loss, ridge=0.1, sample_weight=sample_weight)
        if not np.isfinite(problem.loss.curvature_bound):
            with pytest.raises(ValueError, match="unbounded curvature"):
                problem.hessian_bound_weights()
            continue
        D = problem.hessian_bound_weights()
        H = problem.design.full_gram(D) + 0.1 * np.eye(N)
        for _ in range(20):
            w, d = rng.standard_normal((2, N))
            model = problem.smooth(w) + problem.gradient(w) @ d + 0.5 * d @ H @ d
            assert problem.smooth(w + d) <= model + 1e-10


def test_hessian_bound_weights_none_means_ones(data):
    X, y, weight = data
    assert as_problem(X, y, alpha=0).hessian_bound_weights() is None
    np.testing.assert_array_equal(
        as_problem(X, y, alpha=0, loss="logistic").hessian_bound_weights(), np.full(M, 0.25)
    )
    np.testing.assert_array_equal(
        as_problem(X, y, alpha=0, sample_weight=weight).hessian_bound_weights(), weight
    )


def test_unbounded_curvature_is_refused_by_name(data):
    class Quartic(Squared):
        name = "quartic"
        curvature_bound = np.inf

    X, y, _ = data
    problem = as_problem(X, y, alpha=1, loss=Quartic())
    assert not problem.is_quadratic
    with pytest.raises(ValueError, match="loss='quartic' has unbounded curvature"):
        problem.hessian_bound_weights()


def test_problem_is_frozen_and_keeps_what_was_given(data):
    X, y, _ = data
    problem = as_problem(X, y.reshape(-1, 1), n_nonzero_coefs=3, keep=[4, 1])
    assert problem.is_quadratic
    assert problem.keep.tolist() == [1, 4]
    assert problem.y.shape == (M,)
    with pytest.raises(AttributeError):
        problem.ridge = 1.0  # type: ignore[misc]
    bare = Problem(problem.design, problem.y, problem.loss, problem.sparsity)
    assert bare.keep.size == 0
    assert bare.keep.dtype == np.int64


def test_zero_one_labels_are_mapped(data):
    X, y, _ = data
    problem = as_problem(X, y > 0, alpha=1, loss="logistic")
    np.testing.assert_array_equal(problem.y, np.where(y > 0, 1.0, -1.0))


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_extreme_scales(data, rng, scale):
    X, y, _ = data
    problem = as_problem(scale * X, scale * y, n_nonzero_coefs=N)
    w = rng.standard_normal(N)
    expected = 0.5 * scale**2 * np.sum((y - X @ w) ** 2)
    assert problem.objective(w) == pytest.approx(expected, rel=1e-12)


def test_sparsity_record():
    assert as_sparsity(3, None, 7) == Sparsity(price=0.0, budget=3)
    assert as_sparsity(None, 2, 7) == Sparsity(price=2.0, budget=7)
    assert as_sparsity(np.int64(0), np.float32(0.5), 7) == Sparsity(price=0.5, budget=0)
    assert Sparsity(0.5, 7).cost(4) == 2.0


def test_projection_keeps_the_largest_and_the_lowest_of_ties():
    w = np.array([1.0, -3.0, 1.0, 0.0, -1.0])
    assert Sparsity(0.0, 2).project(w).tolist() == [1, -3, 0, 0, 0]
    assert Sparsity(0.0, 3).project(w).tolist() == [1, -3, 1, 0, 0]
    assert Sparsity(0.0, 0).project(w).tolist() == [0] * 5
    unchanged = Sparsity(0.0, 5).project(w)
    assert unchanged is not w
    assert (unchanged == w).all()


def test_a_late_generator_draws_as_one_that_was_made_at_once():
    late, made = late_generator(7), np.random.default_rng(7)
    before = deepcopy(late)
    for rng in (late, before, deepcopy(late_generator(7))):
        fresh = np.random.default_rng(7)
        assert rng.uniform() == fresh.uniform()
        assert rng.permutation(9).tolist() == fresh.permutation(9).tolist()
    # a copy goes on from where the original is, and by itself
    made.uniform(), made.permutation(9)
    copied = deepcopy(late)
    assert copied.integers(10**9) == made.integers(10**9) == late.integers(10**9)
    assert late_generator(made) is made
    assert late_generator(None).uniform() != late_generator(None).uniform()


def test_what_a_problem_knows_is_what_it_would_find(data, loss):
    X, y, weight = data
    y = amounts(loss, y) if is_positive(loss) else y
    problem = as_problem(X, y, n_nonzero_coefs=2, loss=loss, sample_weight=weight, ridge=0.3)
    lengths = (weight[:, None] * X**2).sum(axis=0) + 0.3
    np.testing.assert_allclose(problem.sq_norms, lengths, rtol=1e-13)
    assert problem.smooth_at_zero == problem.smooth(np.zeros(N))
    np.testing.assert_allclose(problem.gradient_at_zero, problem.gradient(np.zeros(N)), rtol=1e-12)
