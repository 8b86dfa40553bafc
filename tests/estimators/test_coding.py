"""Sparse coding against scikit-learn and `solve`, and the optimizer against the real pysindy."""

from __future__ import annotations

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.decomposition import sparse_encode as sklearn_encode

from blockl0 import SINDyL0, solve, sparse_encode


def make(n_samples=20, n_atoms=40, n_features=16, seed=0):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((n_atoms, n_features))
    code = np.zeros((n_samples, n_atoms))
    for row in code:
        row[rng.choice(n_atoms, 3, replace=False)] = rng.uniform(1, 2, 3)
    return code @ D + 0.1 * rng.standard_normal((n_samples, n_features)), D


@pytest.mark.parametrize(
    "options", [{"n_nonzero_coefs": 3}, {"alpha": 0.5}, {"n_nonzero_coefs": 2, "ridge": 1.0}]
)
def test_rows_are_what_solve_gives(options):
    X, D = make(6)
    codes = sparse_encode(X, D, random_state=0, **options)
    assert codes.shape == (6, 40)
    for x, code in zip(X, codes, strict=True):
        alone = solve(D.T, x, effort="fast", random_state=0, **options)
        value = 0.5 * np.sum((x - code @ D) ** 2) + 0.5 * options.get("ridge", 0.0) * code @ code
        value += options.get("alpha", 0.0) * np.count_nonzero(code)
        assert value == pytest.approx(alone.objective, rel=0.05)
    np.testing.assert_allclose(
        codes[[3]], sparse_encode(X[3], D, random_state=0, **options), atol=1e-10
    )


def test_never_worse_than_omp_of_scikit_learn():
    X, D = make()
    D /= np.linalg.norm(D, axis=1, keepdims=True)
    ours = sparse_encode(X, D, n_nonzero_coefs=3, random_state=0)
    omp = sklearn_encode(X, D, algorithm="omp", n_nonzero_coefs=3)
    errors = [np.sum((X - code @ D) ** 2, axis=1) for code in (ours, omp)]
    assert np.all(errors[0] <= errors[1] * (1 + 1e-9)) and np.any(errors[0] < 0.9 * errors[1])
    with parallel_config(backend="threading"):  # processes take seconds to start
        jobs = sparse_encode(X, D, n_nonzero_coefs=3, random_state=0, n_jobs=2)
    np.testing.assert_allclose(jobs, ours, atol=1e-10)


def test_wrong_dictionaries_are_refused():
    X, D = make()
    with pytest.raises(ValueError, match=r"one atom of 16 features per row.*got shape \(16, 40\)"):
        sparse_encode(X, D.T, n_nonzero_coefs=3)
    with pytest.raises(ValueError, match="No sparsity was asked for"):
        sparse_encode(X, D)


def lorenz(n=1500, dt=0.004):
    def field(u):
        x, y, z = u
        return np.array([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z])

    U = np.empty((n, 3))
    U[0] = -8.0, 8.0, 27.0
    for i in range(1, n):
        u = U[i - 1]
        a = field(u)
        b = field(u + 0.5 * dt * a)
        c = field(u + 0.5 * dt * b)
        d = field(u + dt * c)
        U[i] = u + dt / 6 * (a + 2 * b + 2 * c + d)
    return U, np.array([field(u) for u in U]), dt


TERMS = {"x": {"x", "y"}, "y": {"x", "y", "x z"}, "z": {"z", "x y"}}


def test_sindy_optimizer_finds_lorenz_without_pysindy():
    U, dU, _ = lorenz()
    x, y, z = U.T
    library = np.column_stack([np.ones(len(U)), U, x * x, x * y, x * z, y * y, y * z, z * z])
    names = np.array(["1", "x", "y", "z", "x x", "x y", "x z", "y y", "y z", "z z"])
    dU = dU + 0.5 * np.random.default_rng(0).standard_normal(dU.shape)
    dU[7] = np.nan
    model = SINDyL0(6, criterion="bic").fit(library, dU)
    for row, terms in zip(model.ind_, TERMS.values(), strict=True):
        assert set(names[row]) == terms
    assert model.complexity == 7 and model.predict(library).shape == (1500, 3)
    fixed = SINDyL0(3).fit(library, dU, sample_weight=np.ones(1500))
    assert (fixed.ind_.sum(axis=1) == 3).all()
    with pytest.raises(ValueError, match="does not go with `criterion`"):
        SINDyL0(alpha=1.0, criterion="bic").fit(library, dU)


@pytest.mark.filterwarnings("ignore")
def test_pysindy_itself():
    ps = pytest.importorskip("pysindy", reason="pysindy is not installed: NOT TESTED against it")
    U, _, dt = lorenz()
    model = ps.SINDy(
        optimizer=SINDyL0(6, criterion="bic"), feature_library=ps.PolynomialLibrary(degree=2)
    )
    model.fit(U, t=dt, feature_names=["x", "y", "z"])
    names = np.array(model.get_feature_names())
    for row, terms in zip(model.coefficients(), TERMS.values(), strict=True):
        assert terms <= set(names[row != 0])
    assert model.score(U, t=dt) > 0.999 and model.complexity == np.count_nonzero(
        model.coefficients()
    )
    assert model.simulate(U[0], np.arange(50) * dt).shape == (50, 3)
    wrapped = ps.SINDy(
        optimizer=ps.WrappedOptimizer(SINDyL0(3)), feature_library=ps.PolynomialLibrary(degree=2)
    )
    assert np.count_nonzero(wrapped.fit(U, t=dt).coefficients()) == 9


def test_the_default_chooses_by_a_criterion_and_vectors_stay_vectors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 8))
    y = 2.0 * X[:, 3] + 0.1 * rng.standard_normal(80)
    model = SINDyL0().fit(X, y)
    assert np.flatnonzero(model.coef_[0]).tolist() == [3]
    assert model.predict(X).shape == (80,)
    assert SINDyL0().fit(X, y[:, None]).predict(X).shape == (80, 1)
