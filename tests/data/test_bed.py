"""Genotypes in PLINK's files: the same answers as from the array of their numbers."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from blockl0 import L0Regressor, solve
from blockl0.storage import open_bed, opened

bed_reader = pytest.importorskip(
    "bed_reader", reason="bed-reader is not installed: pip install bed-reader"
)
M, N = 90, 1500
TRUE = [40, 700, 1400]


def genotypes(seed=0):
    """Variants of different frequencies, neighbours correlated; three of them in y."""
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.1, 0.9, N)
    G = np.empty((M, N))
    before = rng.random((M, 2))
    for j in range(N):
        before = np.where(rng.random((M, 2)) < 0.7, before, rng.random((M, 2)))
        G[:, j] = (before < shares[j]).sum(axis=1)
    y = G[:, TRUE] @ [1.5, -2.0, 1.0] + 0.3 * rng.standard_normal(M)
    return G, y


def write(G, folder, **more):
    bed_reader.to_bed(folder / "g.bed", G, **more)
    return folder / "g.bed"


@pytest.fixture
def limit():
    """Bytes under which there are several blocks."""
    return 1 << 20


GIVEN = {"n_nonzero_coefs": 3, "effort": "fast", "random_state": 0}


def check_same(ours, known):
    assert ours.support.tolist() == known.support.tolist()
    np.testing.assert_allclose(ours.coef, known.coef, rtol=1e-9)
    assert ours.objective == pytest.approx(known.objective, rel=1e-9)


@pytest.mark.parametrize("is_path", [True, False])
def test_a_file_gives_what_its_numbers_give(tmp_path, limit, is_path):
    G, y = genotypes()
    path = write(G, tmp_path)
    given = path if is_path else bed_reader.open_bed(path)
    source = opened(given, limit)
    assert len(source.parts) > 1 and source.nbytes == (M + 3) // 4 * N
    ours = solve(given, y, memory_limit=limit, **GIVEN)
    check_same(ours, solve(G, y, **GIVEN))
    assert ours.support.tolist() == TRUE


def test_estimators_find_the_variants_beside_covariates(tmp_path, limit):
    G, y = genotypes(1)
    rng = np.random.default_rng(5)
    age = rng.normal(50.0, 10.0, (M, 2))
    y = y + age @ [0.3, -0.2]
    X = open_bed(write(G, tmp_path), covariates=age, standardize=True, memory_limit=limit)
    ours = L0Regressor(5, keep=[0, 1], ridge=0.1, effort="fast", random_state=0).fit(X, y)
    Z = np.hstack([age, (G - G.mean(axis=0)) / G.std(axis=0)])
    known = L0Regressor(5, keep=[0, 1], ridge=0.1, effort="fast", random_state=0).fit(Z, y)
    assert ours.support_.tolist() == known.support_.tolist() == [0, 1, *(2 + j for j in TRUE)]
    np.testing.assert_allclose(ours.coef_, known.coef_, rtol=1e-8)
    assert X.names[ours.support_].tolist()[:3] == ["x0", "x1", f"sid{TRUE[0] + 1}"]
    np.testing.assert_allclose(ours.predict(X), known.predict(Z), rtol=1e-8)


@pytest.mark.parametrize("standardize", [False, True])
def test_gaps_are_refused_or_filled_by_the_mean(tmp_path, limit, standardize):
    G, y = genotypes(2)
    rng = np.random.default_rng(3)
    G[rng.random(G.shape) < 0.02] = np.nan
    G[:, 0] = 1.0  # a variant that all have
    path = write(G, tmp_path)
    with pytest.raises(ValueError, match=r"variant 'sid.*missing in .* sample.*impute='mean'"):
        solve(path, y, memory_limit=limit, **GIVEN)
    X = open_bed(path, impute="mean", standardize=standardize, memory_limit=limit)
    means = np.nanmean(G, axis=0)
    Z = np.where(np.isnan(G), means, G)
    if standardize:
        Z = (Z - means) / np.where(Z.std(axis=0) > 0.0, Z.std(axis=0), 1.0)
    np.testing.assert_allclose(X.columns(np.array([0, 7, 1400])), Z[:, [0, 7, 1400]], atol=1e-12)
    np.testing.assert_allclose(X.block(1).columns(slice(3)), Z[:, X.parts[1]][:, :3], atol=1e-12)
    check_same(solve(X, y, ridge=0.1, **GIVEN), solve(Z, y, ridge=0.1, **GIVEN))


def test_the_first_gap_is_named_wherever_it_is(tmp_path):
    G, _ = genotypes(4)
    G[33, 1234] = np.nan
    path = write(G, tmp_path, properties={"iid": [f"p{i}" for i in range(M)]})
    source = open_bed(path)
    for call in (
        lambda: source.columns(np.array([5, 1234])),
        lambda: [source.block(i) for i in range(len(source.parts))],
    ):
        with pytest.raises(ValueError, match=r"'sid1235' are missing in 1 sample.*'p33'"):
            call()


def test_bad_input_is_refused(tmp_path, monkeypatch):
    G, _ = genotypes(5)
    path = write(G, tmp_path)
    with pytest.raises(ValueError, match="90 rows"):
        open_bed(path, covariates=np.ones((4, 1)))
    with pytest.raises(ValueError, match="impute"):
        open_bed(path, impute="median")
    with pytest.raises(FileNotFoundError, match="no file"):
        open_bed(tmp_path / "h.bed")
    plain = builtins.__import__

    def without(name, *given, **more):
        if name == "bed_reader":
            raise ImportError(name)
        return plain(name, *given, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"blockl0\[plink\]"):
        open_bed(path)


def test_other_samples_are_standardized_like_those_of_the_fit(tmp_path):
    G, y = genotypes(8)
    fitted = open_bed(write(G, tmp_path), standardize=True)
    model = L0Regressor(3, effort="fast", random_state=0).fit(fitted, y)
    (tmp_path / "few").mkdir()
    path = write(G[:5].copy(), tmp_path / "few")
    few = open_bed(path, standardize=True, like=fitted)
    np.testing.assert_allclose(model.predict(few), model.predict(fitted)[:5], rtol=1e-10)
    (tmp_path / "fewer").mkdir()
    with pytest.raises(ValueError, match="the same variants"):
        open_bed(write(G[:, 1:].copy(), tmp_path / "fewer"), like=fitted)


def test_a_variant_without_any_genotype_is_refused(tmp_path):
    G, y = genotypes(9)
    G = G.copy().astype(float)
    G[:, 3] = np.nan
    with pytest.raises(ValueError, match="'sid4' are missing in all samples"):
        solve(open_bed(write(G, tmp_path), impute="mean"), y, **GIVEN)
