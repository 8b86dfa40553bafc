"""X on a device against X in memory: a strict array API, CuPy and torch where there is a card."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from blockl0 import L0Classifier, L0Regressor, l0_path, solve
from blockl0.data import device as device_module
from blockl0.data import source
from blockl0.data.block import ArrayBlock, View
from blockl0.data.blocks import Blocks
from blockl0.data.device import DeviceBlock, DeviceSource, open_array
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem

M, N, K = 50, 640, 4


def strict(X):
    if X.dtype == np.float16:
        pytest.skip("the strict array API knows no float16: it is tested with torch and CuPy only")
    return pytest.importorskip("array_api_strict").asarray(np.array(X))


def torch_here(X):
    return pytest.importorskip("torch").asarray(np.array(X))


def torch_card(X):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no card: nothing of a real device is tested")
    return torch.asarray(X, device="cuda")


def cupy_card(X):
    cupy = pytest.importorskip("cupy")
    if cupy.cuda.runtime.getDeviceCount() == 0:
        pytest.skip("CuPy sees no card: nothing of a real device is tested")
    return cupy.asarray(X)


@pytest.fixture(params=[strict, torch_here, torch_card, cupy_card])
def sent(request):
    return request.param


@pytest.fixture(autouse=True)
def small_steps(monkeypatch):
    """Several blocks, several steps in each, and nothing read into memory for being small."""
    monkeypatch.setattr(device_module, "STEP_BYTES", 8 * M * 100)
    monkeypatch.setattr(source, "DEFAULT_LIMIT", 8 * 40 * 8 * M)


def draw(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray((3.0 * rng.standard_normal((M, N))).astype(dtype))
    y = X[:, :K].astype(float).sum(axis=1) + rng.standard_normal(M)
    return X, y


def assert_same(here, there):
    assert here.support.tolist() == there.support.tolist()
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    np.testing.assert_allclose(here.coef, there.coef, atol=1e-8)
    assert (here.certificate is None) == (there.certificate is None)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int8])
def test_the_same_answer_as_in_memory(sent, dtype):
    X, y = draw(1, dtype)
    here = solve(sent(X), y, n_nonzero_coefs=K, effort="fast", pool=60, random_state=0)
    there = solve(X.astype(float), y, n_nonzero_coefs=K, effort="fast", pool=60, random_state=0)
    assert_same(here, there)
    assert here.certificate is not None and here.certificate.holds


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_intercept_and_weights(sent, offset):
    X, y = draw(2, np.float64)
    X[:, ::3] += offset
    X[:, 5] = 7.0
    weights = np.random.default_rng(3).uniform(0.0, 1.0, M)
    weights[:4] = 0.0
    given = {"n_nonzero_coefs": K, "sample_weight": weights}
    problems = [apply(as_problem(Z, y, **given), True).problem for Z in (sent(X), X)]
    assert_same(*(solve_problem(p, effort="fast", random_state=0) for p in problems))


@pytest.mark.parametrize("loss", ["logistic", "huber"])
def test_other_losses(sent, loss):
    X, y = draw(4)
    y = (y > 0).astype(float) if loss == "logistic" else y
    given = {"n_nonzero_coefs": 2, "loss": loss, "ridge": 0.5, "effort": "fast", "random_state": 0}
    assert_same(solve(sent(X), y, **given), solve(X.astype(float), y, **given))


def test_paths_and_estimators(sent):
    X, y = draw(5)
    here = l0_path(sent(X), y, n_nonzero_coefs=3, effort="fast", random_state=0)
    there = l0_path(X.astype(float), y, n_nonzero_coefs=3, effort="fast", random_state=0)
    np.testing.assert_allclose(
        [r.objective for r in here], [r.objective for r in there], rtol=1e-10
    )
    for make, target in ((L0Regressor, y), (L0Classifier, y > 0)):
        models = [make(3, effort="fast", random_state=0).fit(Z, target) for Z in (sent(X), X)]
        assert models[0].support_.tolist() == models[1].support_.tolist()
        np.testing.assert_allclose(models[0].coef_, models[1].coef_, atol=1e-8)


def test_kernels_of_a_block_through_a_view(sent):
    X, _ = draw(6, np.float64)
    rng = np.random.default_rng(7)
    is_flat, is_far = rng.random((2, N)) < 0.1
    means, rests = rng.standard_normal((2, N))
    view = View(np.exp2(rng.integers(-3, 4, N)), means, rests * is_far, is_flat, is_far)
    here, there = DeviceBlock(sent(X)).through(view), ArrayBlock(X).through(view)
    V, v, weights = rng.standard_normal((M, 3)), rng.standard_normal(N), rng.random(M)
    np.testing.assert_allclose(here.cross(V), there.cross(V), atol=1e-9)
    np.testing.assert_allclose(here.matvec(v), there.matvec(v), atol=1e-9)
    np.testing.assert_allclose(here.columns([3, 1]), there.columns([3, 1]))
    np.testing.assert_allclose(here.sq_norms(weights), there.sq_norms(weights))
    support = there.columns(np.flatnonzero(~is_flat)[:5])
    K_inv = np.linalg.inv(support.T @ support)
    free = np.array([True, False, True, True, False])
    tables = (K_inv, rng.standard_normal(5), free), (K_inv[:1, :1], np.ones(1), ~free[:1])
    both = np.c_[support, V[:, 0], support[:, :1], V[:, 1]], tables, there.sq_norms() + 0.1
    np.testing.assert_allclose(
        here.entry_changes(*both), there.entry_changes(*both), rtol=1e-8, atol=1e-8
    )


def test_prices_of_members_that_all_stay(sent):
    X, y = draw(8)
    given = {"n_nonzero_coefs": 3, "keep": [7, 11], "effort": "fast", "random_state": 0}
    assert_same(solve(sent(X), y, **given), solve(X.astype(float), y, **given))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_first_bad_entry_is_named(sent, value):
    X, y = draw(9)
    X[7, 630], X[3, 639] = value, np.nan
    with pytest.raises(ValueError, match=r"column 630, row 7"):
        solve(sent(X), y, n_nonzero_coefs=2)


def test_what_is_refused(sent, monkeypatch):
    with pytest.raises(ValueError, match="two dimensions, got 3"):
        open_array(sent(np.zeros((2, 2, 2))))
    with pytest.raises(ValueError, match=r"must hold real numbers, got .*complex"):
        DeviceSource(sent(np.zeros((2, 2), dtype=np.complex128)))
    absent = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("array_api_compat"):
            raise ImportError(name)
        return absent(name, *args, **kwargs)

    X = sent(np.zeros((2, 2)))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"blockl0\[gpu\]"):
        DeviceSource(X)


def test_nothing_of_x_is_copied_or_fetched_whole(sent):
    X, y = draw(10)
    source = DeviceSource(sent(X), columns=200)
    assert [part.stop for part in source.parts] == [200, 400, 600, N]
    assert source.nbytes == X.nbytes
    result = solve(Blocks(source), y, n_nonzero_coefs=K, effort="fast", pool=60, random_state=0)
    assert 2 <= result.n_passes <= 12
