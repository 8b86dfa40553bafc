"""Proofs that others can check: what is written is verified, and what is changed is refused."""

from __future__ import annotations

import ast
import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
import oracles
from blockl0 import OutOfReachError, ProofError, Status, verify
from blockl0.problem.preprocess import apply
from blockl0.problem.problem import as_problem
from blockl0.solve import solve_problem
from blockl0.verify import verify_content
from blockl0.verify.files import digest
from cli_runner import QUICK, folder, run
from grid import quick_first

__all__ = ["folder"]

SOURCE = Path(blockl0.__file__).parent / "verify"
FORMS = {
    "budget": {"n_nonzero_coefs": 3},
    "price": {"alpha": 0.8},
    "both": {"n_nonzero_coefs": 4, "alpha": 0.3},
    "kept": {"n_nonzero_coefs": 3, "keep": [6, 2]},
    "all kept": {"n_nonzero_coefs": 2, "keep": [6, 2]},
    "all columns": {"n_nonzero_coefs": 9},
    "none": {"n_nonzero_coefs": 0},
    "free": {"alpha": 0.0},
}
LOSSES = (
    "squared", "huber", "huber:0.4", "logistic", "squared_hinge", "poisson", "gamma", "tweedie",
    "tweedie:1.1", "tweedie:1", "tweedie:2",
)  # fmt: skip


def data(rng, m=30, n=9, loss="squared"):
    X = rng.standard_normal((m, n)) + 0.5 * rng.standard_normal((m, 1))
    eta = X[:, : min(n, 3)] @ [1.0, -0.7, 0.4][: min(n, 3)]
    if loss in ("logistic", "squared_hinge"):
        return X, np.sign(eta + rng.standard_normal(m))
    if loss in ("gamma", "tweedie:2"):
        return X, rng.gamma(2.0, np.exp(0.4 * eta))
    if loss.startswith(("poisson", "tweedie")):
        return X, rng.poisson(np.exp(0.4 * eta)) + (np.arange(m) == 0.0)
    return X, eta + rng.standard_normal(m)


def write(path, X, y, **options):
    return blockl0.solve(X, y, method="exact", proof=path, random_state=0, **options)


def enumerated(X, y, *, n_nonzero_coefs=None, alpha=0.0, keep=(), **problem):
    """The least objective over all supports, each fitted on its own."""
    best = np.inf
    for S in oracles.subsets(range(X.shape[1]), n_nonzero_coefs):
        if set(keep) <= set(S):
            part = as_problem(X[:, S], y, alpha=0.0, **problem) if S else None
            if part is None:
                whole = as_problem(X, y, alpha=0.0, **problem)
                best = min(best, whole.smooth(whole.zero()))
                continue
            found = solve_problem(part, "refit", random_state=0)
            best = min(best, found.objective + alpha * len(S))
    return best


def check(verified, result, optimum):
    assert result.status is Status.OPTIMAL
    assert verified.objective == pytest.approx(result.objective, rel=1e-10, abs=1e-12)
    assert verified.lower_bound <= optimum * (1.0 + 1e-9) + 1e-12
    assert verified.lower_bound >= optimum * (1.0 - 1e-8) - 1e-10
    assert verified.gap <= 1e-8 or optimum < 1e-6


# what is written is verified ----------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [0.0, 0.7])
@pytest.mark.parametrize("form", FORMS)
def test_every_form(rng, tmp_path, form, ridge):
    X, y = data(rng)
    path, options = tmp_path / "proof.npz", {**FORMS[form], "ridge": ridge}
    result = write(path, X, y, **options)
    check(verify(path, X, y), result, enumerated(X, y, **options))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", quick_first(["budget", "price", "kept"], 1))
def test_every_loss(rng, tmp_path, loss, form):
    X, y = data(rng, 25, 7, loss)
    path, options = tmp_path / "proof.npz", {**FORMS[form], "ridge": 0.5, "loss": loss}
    result = write(path, X, y, **options)
    check(verify(path, X, y), result, enumerated(X, y, **options))


@pytest.mark.parametrize("loss", LOSSES)
def test_intercepts(rng, tmp_path, loss):
    X, y = data(rng, 25, 6, loss)
    X += 100.0 * (np.arange(6) == 2)
    y = y + 50.0 if loss.startswith(("squared", "huber")) and "hinge" not in loss else y
    options = {"loss": loss, "ridge": 0.5}
    weights = rng.uniform(0.0, 2.0, 25) * (np.arange(25) != 4)
    problem = apply(as_problem(X, y, n_nonzero_coefs=2, sample_weight=weights, **options)).problem
    path = tmp_path / "proof.npz"
    result = solve_problem(problem, "exact", random_state=0, proof=path)
    optimum = np.inf
    for S in oracles.subsets(range(6), 2):
        w = np.zeros(6)
        if S:
            part = as_problem(X[:, S], y, alpha=0.0, sample_weight=weights, **options)
            w[list(S)] = solve_problem(apply(part).problem, random_state=0).coef
        optimum = min(optimum, problem.objective(w))
    check(verify(path, X, y, weights), result, optimum)


def test_intercept_without_ridge(rng, tmp_path):
    X, y = data(rng)
    X, y = np.column_stack([X + 1e6, np.full(30, 3.7)]), y + 1e3
    problem = apply(as_problem(X, y, n_nonzero_coefs=3)).problem
    path = tmp_path / "proof.npz"
    result = solve_problem(problem, "exact", random_state=0, proof=path)
    found = verify(path, X, y)
    assert found.objective == pytest.approx(result.objective, rel=1e-9)
    assert found.gap < 1e-7


def test_weights_sparse_data_and_labels_of_zero_and_one(rng, tmp_path):
    X, y = data(rng)
    X = X * (rng.random(X.shape) < 0.6)
    weights, path = rng.uniform(0.0, 3.0, 30) * (np.arange(30) > 3), tmp_path / "proof.npz"
    for ridge, given in product((0.0, 0.4), (X, sp.csr_array(X), sp.csc_matrix(X))):
        options = {"n_nonzero_coefs": 3, "ridge": ridge, "sample_weight": weights}
        result = write(path, given, y, **options)
        check(verify(path, given, y, weights), result, enumerated(X, y, **options))
    labels = (y > 0.0).astype(int)
    result = write(path, X, labels, n_nonzero_coefs=2, loss="logistic", ridge=0.5)
    optimum = enumerated(X, labels, n_nonzero_coefs=2, loss="logistic", ridge=0.5)
    check(verify(path, X, labels), result, optimum)


@pytest.mark.parametrize("form", ["budget", "both"])
def test_more_columns_than_rows(rng, tmp_path, form):
    X, y = data(rng, 8, 11)
    path, options = tmp_path / "proof.npz", {**FORMS[form], "ridge": 1.0}
    result = write(path, X, y, **options)
    check(verify(path, X, y), result, enumerated(X, y, **options))


def test_columns_of_zeros(rng, tmp_path):
    X, y = data(rng)
    X[:, [1, 5]] = 0.0
    path = tmp_path / "proof.npz"
    for ridge in (0.0, 1.0):
        options = {"n_nonzero_coefs": 3, "ridge": ridge}
        result = write(path, X, y, **options)
        check(verify(path, X, y), result, enumerated(X, y, **options))


@pytest.mark.slow
def test_random_small_problems(tmp_path):
    path = tmp_path / "proof.npz"
    for seed in range(120):
        rng = np.random.default_rng(seed)
        loss = rng.choice(["squared", "squared", "squared", "logistic", "huber", "poisson"])
        m, n = rng.integers(4, 25), rng.integers(1, 9)
        X, y = data(rng, m, n, loss)
        X *= 10.0 ** rng.integers(-3, 4, n)
        ridge = 0.0 if loss == "squared" and m > n + 1 and seed % 2 else 10.0 ** rng.uniform(-3, 2)
        options = {"n_nonzero_coefs": int(rng.integers(0, n + 1)), "loss": loss, "ridge": ridge}
        if seed % 3:
            options["alpha"] = float(10.0 ** rng.uniform(-3, 1))
        result = write(path, X, y, **options)
        found = verify(path, X, y)
        optimum = enumerated(X, y, **options)
        assert found.lower_bound <= optimum * (1.0 + 1e-9) + 1e-13, seed
        assert found.lower_bound >= optimum - 1e-7 * abs(optimum) - 1e-9 * (y @ y), seed
        assert result.status is Status.OPTIMAL, seed


def test_a_search_that_is_cut_short_proves_its_bound(rng, tmp_path):
    X = rng.standard_normal((60, 40)) + rng.standard_normal((60, 1))
    y = X[:, :8].sum(axis=1) + 6.0 * rng.standard_normal(60)
    path, options = tmp_path / "proof.npz", {"n_nonzero_coefs": 8, "ridge": 0.1}
    whole = write(path, X, y, **options)
    best = verify(path, X, y)
    for cut in ({"node_limit": 1}, {"node_limit": 7}, {"gap": 0.05}, {"time_limit": 1e-9}):
        result = write(path, X, y, **options, **cut)
        found = verify(path, X, y)
        assert found.lower_bound <= whole.objective
        assert found.lower_bound == pytest.approx(result.lower_bound, rel=1e-6, abs=1e-9)
    assert best.gap < 1e-8


# what is changed is refused -----------------------------------------------------------------------


@pytest.fixture
def written(rng, tmp_path):
    """A proof with records of all kinds, its data, and how to write it anew with changes."""
    X = rng.standard_normal((40, 20)) + 0.7 * rng.standard_normal((40, 1))
    y = X[:, :5].sum(axis=1) + 3.0 * rng.standard_normal(40)
    path = tmp_path / "proof.npz"
    write(path, X, y, n_nonzero_coefs=5, alpha=0.01, ridge=0.05)
    with np.load(path) as file:
        arrays = {name: file[name].copy() for name in file.files}
    assert set(arrays["records"][:, 0]) == {0, 1, 2}

    def rewrite(change, sign=True):
        claim, changed = json.loads(arrays["header"].tobytes()), {**arrays}
        for name in arrays:
            changed[name] = arrays[name].copy()
        change(claim, changed)
        changed["header"] = np.frombuffer(json.dumps(claim).encode(), dtype=np.uint8)
        if sign:
            changed.pop("checksum")
            changed["checksum"] = np.frombuffer(digest(changed).encode(), dtype=np.uint8)
        np.savez(path, **changed)

    return path, X, y, rewrite


def set_claim(**values):
    return lambda claim, arrays: claim.update(values)


def other_support(claim, arrays):
    unused = next(j for j in range(20) if j not in claim["support"])
    claim["support"] = sorted([unused, *claim["support"][1:]])


def other_coefficient(claim, arrays):
    claim["coef"][0] *= 1.01


def drop_records(kind):
    def change(claim, arrays):
        records = arrays["records"]
        arrays["records"] = np.delete(records, np.flatnonzero(records[:, 0] == kind)[0], axis=0)

    return change


def more_records(claim, arrays):
    arrays["records"] = np.concatenate([arrays["records"], arrays["records"][-1:]])


def raise_curvature(claim, arrays):
    arrays["curve_values"] *= 3.0


def raise_one_curvature(claim, arrays):
    arrays["curve_values"][0] *= 100.0


def move_points(claim, arrays):
    arrays["point_values"] *= 1.3


def move_one_point(claim, arrays):
    start = arrays["point_start"][arrays["records"][-1, 1]]
    arrays["point_values"][start] += 1.0


def fix_more(claim, arrays):
    """A column of the claimed support is fixed out as well."""
    first = np.flatnonzero(arrays["records"][:, 0] == 1)[0]
    row, start = arrays["records"][first], arrays["records"][:first, 3].sum()
    free = np.setdiff1d(claim["support"], arrays["fixed"][start : start + row[3]])
    arrays["fixed"] = np.insert(arrays["fixed"], start, free[0])
    row[3] += 1


def fix_what_is_not_free(claim, arrays):
    arrays["fixed"][0] = 99


def split_by_what_is_not_free(claim, arrays):
    arrays["records"][arrays["records"][:, 0] == 2, 2] = 99


def close_without_a_point(claim, arrays):
    arrays["records"][arrays["records"][:, 0] == 0, 1] = -1


def not_a_number(name):
    def change(claim, arrays):
        arrays[name][0] = np.nan

    return change


def add_columns_of_a_point_twice(claim, arrays):
    start = arrays["point_start"][np.flatnonzero(np.diff(arrays["point_start"]) > 1)[0]]
    arrays["point_columns"][start + 1] = arrays["point_columns"][start]


def hardly_any_curvature(claim, arrays):
    arrays["curve_values"][:] = 1e-320


def no_such_point(claim, arrays):
    arrays["records"][arrays["records"][:, 0] == 0, 1] = 10**6


def of_type(name, kind):
    return lambda claim, arrays: arrays.update({name: arrays[name].astype(kind)})


def forget(name):
    return lambda claim, arrays: arrays.pop(name)


CHANGES = {
    "budget raised": (set_claim(budget=8), "below the claim|malformed|left out"),
    "budget below the support": (set_claim(budget=1), "more than the budget"),
    "price raised": (set_claim(price=0.5), "objective is"),
    "price lowered": (set_claim(price=0.0), "objective is"),
    "negative price": (set_claim(price=-1.0), "objective is|negative"),
    "ridge raised": (set_claim(ridge=1.0), "objective is"),
    "no ridge": (set_claim(ridge=0.0), "objective is"),
    "other loss": (set_claim(loss="huber", parameter=0.3), "objective is"),
    "unknown loss": (set_claim(loss="absolute"), "unknown"),
    "intercept": (set_claim(intercept=True), "objective is"),
    "kept column": (set_claim(keep=[14, 15, 16, 17, 18, 19]), "more than the budget"),
    "kept column twice": (set_claim(keep=[1, 1]), "ascending"),
    "kept column from behind": (set_claim(keep=[-1]), "ascending"),
    "kept column not there": (set_claim(keep=[20]), "ascending"),
    "columns of a point twice": (add_columns_of_a_point_twice, "ascending"),
    "hardly any curvature": (hardly_any_curvature, "not one"),
    "records in another form": (of_type("records", "complex128"), r"records is \('c', 16, 2\)"),
    "columns as floats": (of_type("point_columns", "float64"), "point_columns is"),
    "values as texts": (of_type("curve_values", "U9"), "curve_values is"),
    "starts as dates": (of_type("point_start", "datetime64[s]"), "an array of datetime64"),
    "a budget beyond memory": (set_claim(budget=10**14, objective=1.0), "objective is"),
    "no loss": (lambda c, a: c.pop("loss"), "Loss None is unknown"),
    "a list for a loss": (set_claim(loss=["squared"]), "is unknown"),
    "a text for an intercept": (set_claim(intercept="no"), "intercept is 'no'"),
    "no such point": (no_such_point, "malformed"),
    "no number": (set_claim(ridge="much"), "malformed"),
    "not a number": (set_claim(ridge=float("nan")), "negative"),
    "infinite budget": (set_claim(budget=float("inf")), "malformed"),
    "more of the support": (lambda c, a: c["support"].append(c["support"][-1]), "ascending"),
    "objective": (set_claim(objective=1.0), "objective is"),
    "lower bound above it": (set_claim(lower_bound=1e9), "below the claim"),
    "a text for a bound": (set_claim(lower_bound="high"), "below the claim"),
    "no lower bound": (lambda c, a: c.pop("lower_bound"), "below the claim"),
    "support": (other_support, "objective is"),
    "coefficient": (other_coefficient, "objective is"),
    "closing dropped": (drop_records(0), "left out|not free|below the claim|not given|malformed"),
    "fixing dropped": (drop_records(1), "left out|not free|below the claim|not given|malformed"),
    "split dropped": (drop_records(2), "left out|not free|below the claim|more records"),
    "one record more": (more_records, "more records"),
    "child dropped": (lambda c, a: a.update(records=a["records"][:-1]), "supports are left out"),
    "no records": (lambda c, a: a.update(records=a["records"][:0]), "supports are left out"),
    "curvature raised": (raise_curvature, "not definite"),
    "one curvature raised": (raise_one_curvature, "not definite"),
    "points moved": (move_points, "below the claim"),
    "one point moved": (move_one_point, "below the claim"),
    "a point not a number": (not_a_number("point_values"), "not finite"),
    "a curvature not a number": (not_a_number("curve_values"), "not one"),
    "column of the support fixed out": (fix_more, "below the claim|not free|left out|malformed"),
    "fixed column not free": (fix_what_is_not_free, "not free"),
    "split column not free": (split_by_what_is_not_free, "not free"),
    "closed without a point": (close_without_a_point, "below the claim"),
    "array missing": (forget("point_values"), "malformed"),
    "other version": (set_claim(version=1), "version"),
    "other format": (set_claim(format="model"), "blockl0-proof"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_refused(written, name):
    path, X, y, rewrite = written
    rewrite(lambda claim, arrays: None)
    assert verify(path, X, y).gap < 1e-8
    change, reason = CHANGES[name]
    rewrite(change)
    with pytest.raises(ProofError, match=reason):
        verify(path, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_without_a_new_checksum_is_refused(written, name):
    path, X, y, rewrite = written
    rewrite(CHANGES[name][0], sign=False)
    with pytest.raises(ProofError):
        verify(path, X, y)


def test_curvatures_are_for_squares_only(rng, tmp_path):
    X, y = data(rng, 25, 7, "logistic")
    proof = write(True, X, y, n_nonzero_coefs=2, loss="logistic", ridge=0.5).proof
    arrays = {name: array.copy() for name, array in proof._arrays.items()}
    # X'X + ridge allows this curvature; the Hessian of the loss does not
    squares = np.linalg.eigvalsh(X.T @ X).min()
    arrays["curve_start"], arrays["curve_columns"] = np.array([0, 7]), np.arange(7)
    arrays["curve_values"] = np.full(7, 0.5 + 0.9 * squares)
    arrays["point_curve"][:] = 0
    with pytest.raises(ProofError, match="the ridge alone"):
        verify_content(proof.claim, arrays, X, y)


def test_other_data_are_refused(written):
    path, X, y, _ = written
    for other in (X[:, ::-1], X * 1.001, X + 0.01, np.column_stack([X, X[:, 0]]), X[1:]):
        with pytest.raises(ProofError):
            verify(path, other, y[: len(other)])
    for target in (y + 0.01, y[::-1], -2.0 * y, np.full(40, np.nan)):
        with pytest.raises(ProofError):
            verify(path, X, target)
    with pytest.raises(ProofError, match="objective is"):
        verify(path, X, y, np.linspace(0.5, 1.0, 40))


def test_other_files_are_refused(written, tmp_path):
    path, X, y, _ = written
    whole = path.read_bytes()
    for n_bytes in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:n_bytes])
        with pytest.raises(ProofError, match="no proof, or damaged"):
            verify(path, X, y)
    path.write_text("no npz at all")
    with pytest.raises(ProofError, match="no proof, or damaged"):
        verify(path, X, y)
    np.savez(path, X=X, y=y)
    with pytest.raises(ProofError, match="no proof, or damaged"):
        verify(path, X, y)
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "nothing.npz", X, y)


# around it ----------------------------------------------------------------------------------------


def test_a_proof_in_memory(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = data(rng)
    result = blockl0.solve(X, y, n_nonzero_coefs=3, method="exact", proof=True)
    assert list(tmp_path.iterdir()) == []
    proof = result.proof
    assert proof.n_records > 0 and proof.nbytes > 0
    assert f"{proof.n_records} records" in str(proof)
    assert proof.claim["lower_bound"] == pytest.approx(result.objective, rel=1e-6)
    proof.save("proof.npz")
    assert verify("proof.npz", X, y).gap < 1e-8
    with pytest.raises(FileExistsError):
        proof.save("proof.npz")
    proof.save("proof.npz", force=True)
    for proof in (None, False):
        assert blockl0.solve(X, y, n_nonzero_coefs=3, method="exact", proof=proof).proof is None


def test_what_cannot_be_proven_is_refused(rng, tmp_path):
    X, y = data(rng)
    with pytest.raises(TypeError, match="`proof` must be True or the name of a file, got 3"):
        write(3, X, y, n_nonzero_coefs=2)
    with pytest.raises(FileNotFoundError, match="no folder"):
        write(tmp_path / "nowhere" / "proof.npz", X, y, n_nonzero_coefs=2)
    twice = np.column_stack([X, X[:, 0]])
    with pytest.raises(OutOfReachError, match="columns depend on each other"):
        write(True, twice, y, n_nonzero_coefs=2)
    with pytest.raises(OutOfReachError, match="more columns than rows"):
        write(True, X[:5], y[:5], n_nonzero_coefs=2)
    with pytest.raises(OutOfReachError, match="only with a `ridge`"):
        write(True, X, y, n_nonzero_coefs=2, loss="huber")
    with pytest.raises(OutOfReachError, match="as a dense array"):
        write(True, X, y, n_nonzero_coefs=2, memory_limit=2000.0)
    with pytest.raises(OutOfReachError, match="1e-30"):
        write(True, X * 1e40, y, n_nonzero_coefs=2)
    with pytest.raises(OutOfReachError, match="1e-30"):
        # beside a ridge they have no common factor
        write(True, X * np.geomspace(1e-60, 1e60, 9), y, n_nonzero_coefs=2, ridge=1.0)

    class Own(blockl0.losses.Huber):
        name = "own"

    with pytest.raises(OutOfReachError, match="built in"):
        write(True, X, y, n_nonzero_coefs=2, loss=Own(), ridge=1.0)


def test_the_command_line(folder):
    fit = ("fit", "data.csv", "--drop", "kind", "--drop", "size", *QUICK)
    run(*fit, "-t", "y", "-k", 3, "--proof", "proof.npz")
    given = ("data.csv", "--drop", "kind", "--drop", "size")
    done = run("verify", "proof.npz", *given, "-t", "y")
    assert "Verified: no other choice has an objective below" in done.stdout
    assert "c1, c4, c9" in done.stdout and "with an intercept" in done.stdout
    done = run("verify", "proof.npz", *given, "-t", "y", "--json")
    result = json.loads(done.stdout)["result"]
    assert result["verified"] and result["gap"] < 1e-8 and result["n_nonzero_coefs"] == 3
    assert result["features"] == ["c1", "c4", "c9"]
    assert 0.0 < result["allowance"] < 1e-9 * result["at_zero"] and result["exact"] is None
    done = run("verify", "proof.npz", *given, "-t", "y", "--exact")
    assert "Verified in exact arithmetic" in done.stdout and "nothing is rounded" in done.stdout
    done = run("verify", "proof.npz", *given, "-t", "y", "--exact", "--json")
    exact = json.loads(done.stdout)["result"]
    above, below = exact["exact"]["objective"].split("/")
    assert int(above, 16) / int(below, 16) == exact["objective"]
    assert exact["objective"] == pytest.approx(result["objective"], rel=1e-12)
    # other rows, another target, another file
    done = run("verify", "proof.npz", *given, "-t", "y", "--test", 0.2, code=1)
    assert "Refused: The proof is about data of shape (80, 13), got (64, 13)" in done.stderr
    done = run("verify", "proof.npz", *given, "-t", "c0", code=1)
    assert "Refused: " in done.stderr and done.stdout == ""
    done = run("verify", "data.csv", "data.csv", "-t", "y", code=1)
    assert "no proof, or damaged" in done.stderr
    done = run("verify", "data.csv", "proof.npz", *given[1:], "-t", "y", code=2)
    assert "the proof comes first, as in `blockl0 verify proof.npz data.csv`" in done.stderr
    run("verify", "nothing.npz", "data.csv", "-t", "y", code=3)
    run(*fit, "-t", "y", "-k", 3, "--proof", "proof.npz", code=6)
    run(*fit, "-t", "y", "-k", 3, "--proof", "proof.npz", "--force")


def test_the_command_line_with_labels(folder):
    given = ("data.csv", "-t", "kind", "--drop", "size", "--drop", "y")
    ask = ("-k", 2, "--ridge", 1, "--keep", "c0", "--test", 0.2, *QUICK)
    run("fit", *given, *ask, "--proof", "proof.npz")
    done = run("verify", "proof.npz", *given, "--test", 0.2)
    assert "Verified" in done.stdout and "c0 among them; loss logistic, ridge 1" in done.stdout
    done = run("verify", "proof.npz", *given, "--test", 0.2, "--exact", code=1)
    assert (
        "Exact arithmetic is for the squared loss; that of the proof is 'logistic'" in done.stderr
    )
    ask = ("-k", 2, "--ridge", 0, *QUICK, "--proof", "p.npz", "--out", "m.json")
    done = run("fit", *given, *ask, code=3)
    assert "only with a --ridge; give --ridge 1e-6 or more, or leave --proof out" in done.stderr
    assert not Path("m.json").exists() and not Path("p.npz").exists()


def test_the_verifier_needs_numpy_only():
    modules = set()
    for file in SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
    others = {name for name in modules if not name.startswith("blockl0.verify")}
    assert others == {
        "__future__",
        "collections.abc",
        "fractions",
        "functools",
        "gmpy2",  # if it is there
        "hashlib",
        "io",
        "json",
        "math",
        "re",
        "typing",
        "numpy",
        "zipfile",
    }


def test_the_verifier_is_short():
    for file in SOURCE.glob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= (110 if file.name == "check.py" else 150), file
        assert max(map(len, lines)) <= 100, file
