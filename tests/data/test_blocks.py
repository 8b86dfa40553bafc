"""X in blocks of columns, wherever they lie, against X in memory: one table of storages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from blockl0 import L0Classifier, L0ClassifierCV, L0Regressor, L0RegressorCV, certify, solve
from blockl0.data import blocks as blocks_module
from blockl0.data.block import ArrayBlock
from blockl0.data.blocks import Blocks
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem
from blockl0.storage import ArraySource, ReadAhead
from grid import quick_first

M, N, K = 60, 700, 5


class Backwards:
    """An engine that ends with the first block."""

    def map(self, task, source, calls):
        return iter([(i, task(source.block(i), *given)) for i, given in reversed(calls)])


class Counting(ArraySource):
    """A source that notes how often each block, and how many columns, were read."""

    def __init__(self, X, ends=None, engine=None):
        super().__init__(X, ends)
        self.n_blocks = np.zeros(len(self.parts), dtype=int)
        self.n_columns = 0
        if engine is not None:
            self.engine = engine

    @property
    def n_read(self):
        """Columns that were read, by blocks or alone, over all of them."""
        widths = [part.stop - part.start for part in self.parts]
        return (self.n_blocks @ widths + self.n_columns) / self.shape[1]

    def block(self, i):
        self.n_blocks[i] += 1
        return super().block(i)

    def columns(self, idx):
        self.n_columns += idx.size
        return super().columns(idx)


CUTS = {"one": [N], "ragged": [1, 8, 300, 301, N], "many": list(range(50, N + 1, 50))}
STORAGES: dict[str, Any] = {
    name: (lambda X, ends=ends: Counting(X, ends)) for name, ends in CUTS.items()
}
STORAGES["backwards"] = lambda X: Counting(X, CUTS["ragged"], Backwards())
STORAGES["read ahead"] = lambda X: Counting(X, CUTS["ragged"], ReadAhead())


@pytest.fixture(params=STORAGES)
def make(request):
    return STORAGES[request.param]


def draw(seed=0, offset=0.0, m=M, n=N):
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((m, n)) + offset * (np.arange(n) % 3 == 0))
    y = X[:, :K] @ np.ones(K) + rng.standard_normal(m)
    return X, y


def solved(X, y, has_intercept=False, weights=None, **given):
    options = {"n_nonzero_coefs": K, **given}
    effort = options.pop("effort", "fast")
    problem = as_problem(X, y, sample_weight=weights, **options)
    prepared = apply(problem, has_intercept)
    return solve_problem(prepared.problem, effort=effort, random_state=0)


def assert_same(here, there):
    assert here.support.tolist() == there.support.tolist()
    assert here.objective == pytest.approx(there.objective, rel=1e-10)
    np.testing.assert_allclose(here.coef, there.coef, atol=1e-8)
    assert (here.certificate is None) == (there.certificate is None)
    if here.certificate is not None:
        assert here.certificate.holds and here.certificate.level == there.certificate.level


KINDS = {
    "squared": {},
    "price": {"n_nonzero_coefs": None, "alpha": 6.0},
    "ridge": {"ridge": 0.5},
    "keep": {"keep": [17, 400]},
    "pool": {"pool": 100},
    "groups": {"feature_groups": np.arange(N) // 2, "n_nonzero_coefs": 3},
    "positive": {"positive": True},
    "costs": {"n_nonzero_coefs": None, "alpha": 6.0, "costs": np.linspace(1.0, 2.0, N)},
    "huber": {"loss": "huber"},
    "logistic": {"loss": "logistic", "ridge": 0.1, "n_nonzero_coefs": 3},
    "poisson": {"loss": "poisson", "ridge": 0.1, "n_nonzero_coefs": 3},
    "softmax": {"loss": "softmax", "ridge": 0.5, "n_nonzero_coefs": 2},
}


def target(y, loss):
    if loss == "logistic":
        return (y > 0).astype(float)
    if loss == "softmax":
        return np.digitize(y, [-1.0, 1.0])
    return np.round(np.exp(np.clip(0.3 * y, -2, 2))) if loss == "poisson" else y


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_answer_as_in_memory(kind, has_intercept):
    X, y = draw(3)
    given = dict(KINDS[kind])
    pool = {"pool": given.pop("pool")} if "pool" in given else {}
    y = target(y, given.get("loss"))
    weights = np.random.default_rng(1).uniform(0.5, 2.0, M)
    answers = []
    for design in (X, Blocks(Counting(X, CUTS["ragged"]))):
        options = {"n_nonzero_coefs": K, **given}
        prepared = apply(as_problem(design, y, sample_weight=weights, **options), has_intercept)
        answers.append(solve_problem(prepared.problem, effort="fast", random_state=0, **pool))
    assert_same(*reversed(answers))


@pytest.mark.parametrize("offset", [0.0, 1e7])
@pytest.mark.parametrize("weights", [None, "some"])
def test_any_chunking_and_any_order(make, offset, weights):
    X, y = draw(5, offset)
    weights = None if weights is None else np.random.default_rng(2).uniform(0.0, 1.0, M)
    source, other = make(X), Counting(X)
    here = solved(Blocks(source), y, True, weights)
    assert_same(here, solved(X, y, True, weights))
    # the number of passes does not depend on the blocks
    assert here.n_passes == solved(Blocks(other), y, True, weights).n_passes


def test_passes_are_the_reads_of_every_block(make):
    X, y = draw(7, n=N)
    source = make(X)
    result = solve(Blocks(source), y, n_nonzero_coefs=K, pool=50, random_state=0)
    assert (source.n_blocks == source.n_blocks[0]).all()
    read = source.n_blocks[0] + source.n_columns / N
    assert result.n_passes == round(read) and round(read) > 2


@pytest.mark.parametrize("has_intercept", [False, True])
def test_the_first_pass_is_one(make, has_intercept):
    X, y = draw(8)
    source = make(X)
    problem = apply(as_problem(Blocks(source), y, n_nonzero_coefs=K), has_intercept).problem
    sq_norms, gradient = problem.design.sq_norms(), problem.gradient_at_zero
    ranges, means = problem.design.ranges(), X.mean(axis=0) * has_intercept
    assert (source.n_blocks == 1).all() and source.n_columns == 0
    Z = X - means
    np.testing.assert_allclose(sq_norms, (Z**2).sum(axis=0))
    np.testing.assert_allclose(gradient, -Z.T @ problem.y, atol=1e-10)
    np.testing.assert_allclose(ranges, [Z.min(axis=0), Z.max(axis=0)])


@pytest.mark.parametrize(("value", "match"), [
    (np.nan, "must be finite, got nan in column 698, row 58"),
    (-np.inf, "must be finite, got -inf in column 698, row 58"),
    (1e130, "below 1e\\+120 in magnitude, got 1e\\+130 in column 698, row 58"),
])  # fmt: skip
def test_a_bad_entry_of_the_last_block_is_named(make, value, match):
    X, y = draw(9)
    X[58, 698] = value
    X[3, 699] = np.nan
    with pytest.raises(ValueError, match=match):
        solve(Blocks(make(X)), y, n_nonzero_coefs=K)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint16", "bool", "int64"])
def test_numbers_are_kept_as_they_are_stored(dtype):
    X, _ = draw(10)
    X = np.asfortranarray(np.round(4 * X).astype(dtype))
    y = X[:, :K].sum(axis=1, dtype=float) + np.random.default_rng(1).standard_normal(M)
    assert_same(
        solved(Blocks(Counting(X, CUTS["ragged"])), y, True),
        solved(X.astype(float), y, True),
    )


def test_operations_against_numpy(make, rng):
    X, _ = draw(11, offset=10.0)
    X[:, 7], X[:, 9] = 3.0, 0.0
    weights, V = rng.random(M), rng.standard_normal((M, 3))
    idx = np.array([3, 9, 7, 650, 2])
    for design, Z in ((Blocks(make(X)), X), (Blocks(make(X)).as_centred(), X - X.mean(axis=0))):
        for taken, Y in (
            (design, Z),
            (design.take(idx), Z[:, idx]),
            (design._lazy(idx), Z[:, idx]),
            (design.scaled(np.full(N, 0.5)), 0.5 * Z),
        ):
            n = Y.shape[1]
            w = rng.standard_normal(n)
            np.testing.assert_allclose(taken.matvec(w), Y @ w, atol=1e-9)
            np.testing.assert_allclose(taken.rmatvec(weights), Y.T @ weights, atol=1e-9)
            np.testing.assert_allclose(taken.cross(V, slice(0, n)), V.T @ Y, atol=1e-9)
            np.testing.assert_allclose(taken.cross(V, slice(1, 4)), V.T @ Y[:, 1:4], atol=1e-9)
            np.testing.assert_allclose(taken.columns([1, 0]), Y[:, [1, 0]], atol=1e-12)
            np.testing.assert_allclose(taken.sq_norms(weights), weights @ Y**2, atol=1e-9)
            G = (Y[:, [0, 2]].T * weights) @ Y[:, [0, 2]]
            np.testing.assert_allclose(taken.gram([0, 2], weights), G, atol=1e-9)
            np.testing.assert_allclose(taken.lengths(), np.linalg.norm(Y, axis=0), atol=1e-9)


def test_what_blocks_do_not_do_is_refused(monkeypatch):
    X, _ = draw(12)
    design = Blocks(Counting(X))
    with pytest.raises(ValueError, match="not read by rows"):
        design.row_chunks(5)
    monkeypatch.setattr(blocks_module, "GRAM_COLUMNS", 10)
    with pytest.raises(ValueError, match="X'X of 700 columns"):
        design.full_gram()


def test_estimators_take_sources():
    X, y = draw(13, offset=5.0)
    source = Counting(X, CUTS["ragged"])
    source.held_bytes = 10_000
    model = L0Regressor(K, effort="fast", random_state=0).fit(source, y)
    twin = L0Regressor(K, effort="fast", random_state=0).fit(X, y)
    assert model.support_.tolist() == twin.support_.tolist()
    np.testing.assert_allclose(model.predict(source), twin.predict(X))
    assert model.n_features_in_ == N
    labels = np.where(y > np.median(y), "yes", "no")
    model = L0Classifier(2, ridge=0.1, effort="fast", random_state=0).fit(source, labels)
    twin = L0Classifier(2, ridge=0.1, effort="fast", random_state=0).fit(X, labels)
    assert model.support_.tolist() == twin.support_.tolist()
    with pytest.raises(ValueError, match="expecting 700 features"):
        model.predict(Counting(X[:, :9]))


def test_a_small_source_is_read_into_memory():
    X, y = draw(14)
    source = Counting(X)
    result = solve(source, y, n_nonzero_coefs=K, random_state=0)
    assert_same(result, solve(X, y, n_nonzero_coefs=K, random_state=0))
    assert source.n_blocks.sum() + source.n_columns / N == 1


def test_a_block_of_integers_does_not_wrap():
    X = np.full((300, 2), 100, dtype=np.int8)
    assert ArrayBlock(X).cross(np.ones((300, 1))).tolist() == [[30000.0, 30000.0]]
    assert ArrayBlock(X).sq_norms().tolist() == [3e6, 3e6]


@pytest.mark.parametrize("level", ["basic", "L", 1, 2])
def test_certificates_of_blocks(make, level):
    X, y = draw(15)
    w = np.zeros(N)
    for support in (np.arange(K), np.arange(2, K + 2)):
        w[:] = 0.0
        w[support] = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
        here, there = (
            certify(stored, y, w, n_nonzero_coefs=K, level=level) for stored in (Blocks(make(X)), X)
        )
        assert here.holds == there.holds
        if not here.holds:
            assert here.better_objective == pytest.approx(there.better_objective, rel=1e-9)


@pytest.mark.parametrize("method", ["omp", "pgm", "forward", "cosamp"])
def test_other_methods_on_blocks(method):
    X, y = draw(16)
    given: Any = {"n_nonzero_coefs": K, "method": method, "random_state": 0}
    assert_same(solve(Blocks(Counting(X, CUTS["ragged"])), y, **given), solve(X, y, **given))


def counted(X, cuts="ragged"):
    """A source of which nothing is read into memory for being small."""
    source = Counting(X, CUTS[cuts])
    source.held_bytes = 8 * M * 150
    return source


CV_KINDS: dict[str, Any] = {
    "squared": (L0RegressorCV, {}),
    "weights": (L0RegressorCV, {"weights": True}),
    "ridge and keep": (L0RegressorCV, {"ridge": 0.5, "keep": [3]}),
    "scorer": (L0RegressorCV, {"scoring": "neg_mean_absolute_error"}),
    "huber": (L0RegressorCV, {"loss": "huber"}),
    # of four of 700 columns, which separate 60 rows, the two orders of search end at others
    "logistic": (L0ClassifierCV, {"ridge": 0.1, "most": 3}),
    "softmax": (L0ClassifierCV, {"ridge": 0.5}),
}


@pytest.mark.parametrize("kind", quick_first(CV_KINDS, 2))
def test_cross_validation_is_that_in_memory(kind):
    X, y = draw(18, offset=5.0)
    make, given = CV_KINDS[kind]
    weights = np.random.default_rng(1).uniform(0.5, 2.0, M) if given.get("weights") else None
    most = given.get("most", 4)
    given = {name: value for name, value in given.items() if name not in ("weights", "most")}
    if make is L0ClassifierCV:
        y = np.digitize(y - np.median(y), [-1.0, 1.0] if kind == "softmax" else [0.0])
    source = counted(X)
    known, ours = (
        make(most, random_state=0, cv=3, **given).fit(A, y, weights) for A in (X, source)
    )
    assert ours.support_.tolist() == known.support_.tolist()
    np.testing.assert_allclose(ours.coef_, known.coef_, atol=1e-8)
    np.testing.assert_allclose(ours.cv_scores_, known.cv_scores_, rtol=1e-9)
    assert ours.path_.objective == pytest.approx(known.path_.objective, rel=1e-10)
    # all folds by the same reads, and none that is not told
    assert ours.n_passes_ == round(source.n_read)
    alone = counted(X)
    given.pop("scoring", None)
    alone_model = make(4, random_state=0, rule="bic", **given).fit(alone, y, weights)
    # four paths; their pools, read column by column, are their own. Where the folds choose a ridge,
    # the path with it is made after them
    most = 2.0 if ours.ridge_ == alone_model.ridge_ else 3.0
    assert source.n_blocks.max() < most * alone.n_blocks.max()


def test_folds_of_any_splitter():
    X, y = draw(19)
    rng = np.random.default_rng(0)
    # rows that are left out, or drawn twice
    splits = [(rng.integers(0, M, M), rng.choice(M, 20)) for _ in range(3)]
    ours, known = (
        L0RegressorCV([1, 3], cv=splits, random_state=0).fit(A, y) for A in (counted(X), X)
    )
    np.testing.assert_allclose(ours.cv_scores_, known.cv_scores_, rtol=1e-9)


def test_a_criterion_needs_no_folds():
    X, y = draw(17)
    source = counted(X)
    model = L0RegressorCV(6, rule="ebic", random_state=0).fit(source, y)
    twin = L0RegressorCV(6, rule="ebic", random_state=0).fit(X, y)
    assert model.support_.tolist() == twin.support_.tolist()
