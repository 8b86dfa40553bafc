"""What an optimum is not about is said: supports whose columns nearly depend on each other.

The truth is the enumeration of all supports in long double.
"""

from __future__ import annotations

import logging
import tracemalloc
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import blockl0
import hostile_losses
from blockl0.problem import as_problem, near_dependence
from blockl0.problem.near_dependence import left_out
from blockl0.problem.orthogonal import DEPENDENT, ROUNDED
from blockl0.problem.problem import problem_of
from cli_runner import answer, folder, run
from hostile import make_hostile
from long_double import LONG, gram_schmidt
from targets import as_target

__all__ = ["folder"]
NOTE = "Optimal among supports whose columns are told apart: one of the columns 0, 1, 2 is within"


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


def lowest_left_out(X: Any, y: np.ndarray, options: dict[str, Any]) -> float:
    """Return the lowest objective of a support with a column nearly in the span of others."""
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    n, ridge = X.shape[1], LONG(options.get("ridge", 0.0))
    root = np.sqrt(np.asarray(options.get("sample_weight", np.ones(len(y))), dtype=LONG))
    A = np.vstack([X.astype(LONG) * root[:, None], np.sqrt(ridge) * np.eye(n, dtype=LONG)])
    b = np.concatenate([y.astype(LONG) * root, np.zeros(n, dtype=LONG)])
    lengths = np.sqrt((A * A).sum(axis=0))
    kept = set(np.ravel(options.get("keep", [])).tolist())
    budget, price = options.get("n_nonzero_coefs", n), options.get("alpha", 0.0)
    best, live = np.inf, [j for j in range(n) if lengths[j] > 0.0]
    for size in range(1, min(budget, len(y)) + 1):
        for support in map(list, combinations(live, size)):
            found = gram_schmidt(A[:, support] / lengths[support])
            if found is None or len(kept.union(support)) > budget:
                continue
            Q, inverse = found
            distance = 1.0 / np.sqrt((inverse * inverse).sum(axis=1)).max()
            if ROUNDED < distance <= DEPENDENT:
                rest = b - Q @ (Q.T @ b)
                rest = rest - Q @ (Q.T @ rest)
                best = min(best, float(rest @ rest) / 2.0 + price * len(kept.union(support)))
    return best


def near_dependent_data(seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Draw columns that are combinations of others, some of them exactly, and a problem."""
    rng = np.random.default_rng([seed, 77])
    n = int(rng.integers(3, 7))
    m = int(rng.integers(n, 13))
    X = rng.standard_normal((m, n))
    for _ in range(int(rng.integers(1, 3))):
        i = int(rng.integers(n))
        others = np.setdiff1d(np.arange(n), [i])
        some = rng.choice(others, size=int(rng.integers(1, min(n, 4))), replace=False)
        distance = 0.0 if rng.random() < 0.3 else 10.0 ** rng.uniform(-12.5, -7.5)
        weights = rng.choice([1.0, -1.0, 0.5, 2.0], size=some.size)
        X[:, i] = X[:, some] @ weights + distance * rng.standard_normal(m)
    y = X[:, 0] + 0.1 * rng.standard_normal(m) if rng.random() < 0.5 else rng.standard_normal(m)
    options: dict[str, Any] = {"n_nonzero_coefs": int(rng.integers(1, n + 1))}
    if rng.random() < 0.3:
        options["alpha"] = float(y @ y) * 10.0 ** rng.uniform(-8.0, -1.0)
    if rng.random() < 0.2:
        options["keep"] = [int(rng.integers(n))]
    return X, y, options


def check(X: Any, y: np.ndarray, options: dict[str, Any]) -> tuple[bool, bool]:
    """Return whether a support left out is lower than the optimum, and whether that is said."""
    found = blockl0.solve(X, y, method="exact", **options)
    if found.status is not blockl0.Status.OPTIMAL:
        return False, False
    weight = options.get("sample_weight", 1.0)
    at_zero = 0.5 * float(np.sum(weight * y * y))
    lowest = lowest_left_out(X, y, options)
    is_lower = lowest < found.objective - 1e-9 * found.objective - 1e-12 * at_zero
    is_said = bool(found.near_dependent)
    assert is_said or not is_lower, (options, found.objective, lowest)
    assert is_said == (found.note is not None) == ("told apart" in found.message)
    return is_lower, is_said


def check_many(problems: Any, most_idle: float) -> None:
    """Check problems; what is said for nothing stays rare."""
    seen = np.array([check(*problem) for problem in problems])
    n_lower, n_said = seen.sum(axis=0)
    assert n_lower > 0 and n_said - n_lower <= most_idle * len(seen)


def test_lower_supports_that_are_left_out_are_said():
    check_many((near_dependent_data(seed) for seed in range(80)), 0.02)


def test_lower_supports_of_many_columns_are_said(monkeypatch):
    """Dependences one by one: the bound by all columns says more often that one may be lower."""
    monkeypatch.setattr(near_dependence, "MOST_SUPPORTS", 0)
    check_many((near_dependent_data(seed) for seed in range(80)), 0.4)


@pytest.mark.slow
def test_many_lower_supports_that_are_left_out_are_said():
    check_many((near_dependent_data(seed) for seed in range(80, 800)), 0.02)


@pytest.mark.slow
def test_hostile_problems_are_about_all_supports_or_say_so():
    made = (make_hostile(seed, largest=6) for seed in range(2500))
    check_many(((one.X, one.y, one.options) for one in made), 0.01)


def check_losses(seeds: range, largest: int) -> None:
    """Other losses: what is left out, lower, and not said, or said too often."""
    found = [hostile_losses.check_near(seed, largest) for seed in seeds]
    wrong = [line for lines, _, _ in found for line in lines]
    assert not wrong, "\n".join(wrong)
    n_lower, n_said = (sum(one[i] for one in found) for i in (1, 2))
    assert n_lower > 0 and n_said - n_lower <= 0.05 * len(seeds)


def test_fits_of_other_losses_leave_out_what_nearly_depends_and_say_so():
    check_losses(range(35), 4)


@pytest.mark.slow
def test_many_fits_of_other_losses_leave_out_what_nearly_depends():
    check_losses(range(140, 1540), 6)


@pytest.mark.parametrize(
    "structure", [{"positive": True}, {"bounds": (-1.0, 2.0)}, {"feature_groups": [0, 0, 1, 1, 2]}]
)
@pytest.mark.parametrize("loss", [name for name in hostile_losses.NAMES if name != "softmax"])
def test_no_fit_of_another_loss_holds_what_nearly_depends(loss, structure):
    """Within bounds: no coefficients between them; no group is "optimal" that drops a column."""
    n_dropped = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 5))
        # of either sign, so that bounds at zero do not keep the two apart
        X[:, 1] = rng.choice([1.0, -1.0]) * X[:, 0] + 10.0 ** rng.uniform(-12.0, -9.0) * X[:, 4]
        y = as_target(loss, X @ [0.5, 0.5, 0.3, -0.3, 0.0] + rng.logistic(size=40), growth=0.5)
        found = blockl0.solve(X, y, loss=loss, n_nonzero_coefs=2, method="exact", **structure)
        low, high = structure.get("bounds", (0.0 if "positive" in structure else -np.inf, np.inf))
        is_free = (found.coef != 0.0) & (low < found.coef) & (found.coef < high)
        assert not is_free[:2].all()
        n_dropped += found.status is not blockl0.Status.OPTIMAL
    # where bounds keep the columns apart an optimum is proven all the same
    assert n_dropped > 0 if "feature_groups" in structure else n_dropped < 4


def system(distance: float) -> tuple[np.ndarray, np.ndarray]:
    """Make three equations that coefficients of 1/distance solve."""
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    X = np.column_stack([Q[:, 0], Q[:, 1], 0.8 * Q[:, 0] + 0.6 * Q[:, 1] + distance * Q[:, 2]])
    return X, 0.6 * Q[:, 2] + 0.5 * Q[:, 0]


@pytest.mark.parametrize("method", ["exact", "refit"])
def test_a_system_that_least_squares_solves(method):
    X, y = system(9e-9)
    assert np.abs(np.linalg.solve(X, y)).max() > 5e7
    found = blockl0.solve(X, y, n_nonzero_coefs=3, method=method)
    assert found.objective > 0.3 * 0.5 * (y @ y) and found.near_dependent == (0, 1, 2)
    assert found.note is not None and found.note.startswith(NOTE)
    assert NOTE in repr(found) and NOTE in found.summary() and NOTE in str(found)
    certificate = blockl0.certify(X, y, found.coef, n_nonzero_coefs=3, level=3)
    assert certificate.near_dependent == (0, 1, 2) and NOTE in str(certificate)
    # two of them are apart; so are all, where they are farther from each other or there is a ridge
    assert blockl0.solve(X, y, n_nonzero_coefs=2, method=method).note is None
    assert blockl0.solve(X, y, n_nonzero_coefs=3, method=method, ridge=1e-12).note is None
    far, y = system(3e-8)
    solved = blockl0.solve(far, y, n_nonzero_coefs=3, method=method)
    assert solved.note is None and solved.objective < 1e-12


def test_nothing_is_said_where_nothing_could_be_lower():
    """All columns together fit no better: y lies in the span of those that are apart."""
    X, _ = system(9e-9)
    y = X[:, 0] - 2.0 * X[:, 1]
    assert blockl0.solve(X, y, n_nonzero_coefs=3, method="exact").note is None


def test_the_point_that_a_rule_chooses_says_so_as_well():
    rng = np.random.default_rng(1)
    X, u = rng.standard_normal((60, 3)), rng.standard_normal(60)
    X[:, 2] = X[:, 0] + X[:, 1] + 3e-9 * u
    model = blockl0.L0RegressorCV(n_nonzero_coefs=[0, 3], rule="aic", random_state=0)
    model.fit(X, u + X[:, 0] + 0.3 * rng.standard_normal(60))
    assert model.best_n_nonzero_coefs_ == 3 and model.result_.near_dependent == (0, 1, 2)
    assert "among supports whose columns are told apart" in str(model.summary())


@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_said_of_ordinary_tables(seed):
    """Categories, duplicates, other units and sums are exact combinations."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(60, 600)), int(rng.integers(5, 25))
    X = (rng.standard_normal((m, n)) + 50.0 * rng.random(n)) * 10.0 ** rng.uniform(0.0, 3.0, n)
    X = X.round(2)
    X = np.hstack([
        X, np.eye(5)[rng.integers(5, size=m)], np.eye(3)[rng.integers(3, size=m)],
        X[:, :1] + X[:, 1:2], X[:, 2:3], 1.8 * X[:, 3:4] + 32.0,
    ])  # fmt: skip
    y = X[:, 0] / X[:, 0].std() + rng.standard_normal(m)
    for k in (2, 5):
        model = blockl0.L0Regressor(k, random_state=0).fit(X, y)
        problem = model._problem_for(model._read(X, y, reset=False)).problem
        assert left_out(problem, problem.from_given(model.result_.coef)) == ()
        assert model.result_.near_dependent == ()


def test_a_ridge_is_part_of_what_is_proven(rng):
    X, y = rng.standard_normal((30, 5)), rng.standard_normal(30)
    free = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact")
    held = blockl0.solve(X, y, n_nonzero_coefs=2, method="exact", ridge=1.0)
    assert free.message == "Proven globally optimal."
    assert held.message == "Proven globally optimal for this ridge penalty."
    assert held.message in held.summary() and held.ridge == 1.0
    proven = blockl0.certify(X, y, held.coef, n_nonzero_coefs=2, ridge=1.0, level=5)
    assert "globally optimal for this ridge penalty (block-5" in str(proven)
    model = blockl0.L0Regressor(2, ridge=1.0, random_state=0).fit(X, y)
    assert "for this ridge penalty." in str(model.summary())


def test_the_command_line_and_the_page_name_the_columns(folder):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    a, b, z, w, u = rng.standard_normal((5, 60))
    frame = pd.DataFrame({"a": a, "b": b, "c": a + b + 3e-9 * u, "z": z, "w": w})
    frame["y"] = u + 0.5 * a + 0.3 * rng.standard_normal(60)
    frame.to_csv("near.csv", index=False, float_format="%.17g")
    said = "one of the columns a, b, c is within 1e-8 of the span of the others"
    record = answer("fit", "near.csv", "-t", "y", "-k", 3, "--half-samples", 0)["result"]
    assert record["certificate"]["near_dependent"] == ["a", "b", "c"]
    assert said in record["certificate"]["words"]
    two = answer("fit", "near.csv", "-t", "y", "-k", 2, "--half-samples", 0)["result"]
    assert two["certificate"]["near_dependent"] == [] and said not in str(two)
    for level in (2, 5):
        claims = answer("certify", "near.csv", "-t", "y", "-k", 3, "--level", level)["result"]
        assert said in claims["claims"][-1]["words"]
    run("report", "near.csv", "-t", "y", "--out", "near.html", "--half-samples", 0, "--ridge", 0)
    with open("near.html", encoding="utf-8") as page:
        text = page.read()
    assert said in text and "Sets of columns that nearly depend on each other" in text


def test_marks_of_products_hold_for_the_ridge_they_were_made_with():
    X, y = system(9e-9)
    problem = as_problem(X, y, n_nonzero_coefs=3, ridge=0.0)
    problem.shared["apart"] = 0.5
    assert left_out(problem, np.zeros(3)) == (0, 1, 2)
    near_dependence.mark_apart(problem, np.ones((3, 3)))
    assert problem.shared["apart"] == 0.5
    near_dependence.mark_apart(problem, np.eye(3))
    assert problem.shared["apart"] == 0.0


def dependences(seed: int) -> tuple[Any, np.ndarray, list[set[int]]]:
    """Make tall data with near copies and near sums among 60 columns, and say which they are."""
    rng = np.random.default_rng(seed)
    X, cores = rng.standard_normal((150, 60)), []
    for i, size in enumerate(rng.integers(2, 6, size=4)):
        core = 12 * i + rng.permutation(12)[:size]
        rest = rng.standard_normal(150)
        X[:, core[0]] = X[:, core[1:]] @ rng.choice([-1.0, 1.0], size - 1)
        X[:, core[0]] += 1e-10 * rest * (np.linalg.norm(X[:, core[0]]) / np.linalg.norm(rest))
        cores.append(set(map(int, core)))
    return X, rng.standard_normal(150), cores


@pytest.mark.parametrize("seed", range(12))
def test_each_dependence_of_many_columns_is_found(seed):
    """The fewest columns that depend, whatever the order in which independent ones are taken."""
    X, y, cores = dependences(seed)
    search = near_dependence._Left(as_problem(X, y, n_nonzero_coefs=8), np.arange(60))
    assert not search.are_apart
    found = [set(map(int, core)) for core in search._cores()]
    assert all(core in found for core in cores)
    assert all(any(core <= one for core in cores) for one in found)
    # the bound on the loss of all columns is lower than that by rounding alone
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    loss = 0.5 * float(rest @ rest)
    assert 0.999 * loss <= search._of_all <= loss * (1.0 + 1e-9)


def near_pairs_of_all(Z: Any) -> set[tuple[int, int]]:
    """Compare each pair: distances up to sign, between exact copies and clearly other columns."""
    found = set()
    for i, j in combinations(range(Z.shape[1]), 2):
        rest = min(np.linalg.norm(Z[:, i] - Z[:, j]), np.linalg.norm(Z[:, i] + Z[:, j]))
        if 1e-13 < rest < 1.5e-8:
            found.add((i, j))
    return found


def test_nearly_equal_columns_are_found_as_by_comparing_all_pairs(rng):
    for m in (2, 15):
        Z = np.repeat(rng.normal(size=(m, 12)), 3, axis=1)
        Z /= np.linalg.norm(Z, axis=0)
        # of each three one is as it was, and the others are near, with signs
        Z[:, 1::3] += 3e-9 / np.sqrt(m) * rng.choice([-1.0, 1.0], size=(m, 12))
        Z[:, 2::3] *= -1.0
        Z = Z[:, rng.permutation(36)]
        found = {tuple(pair) for pair in near_dependence._near_pairs(Z).tolist()}
        assert len(found) >= 20
        assert near_pairs_of_all(Z) <= found


def test_many_columns_are_compared_without_a_table_of_all_pairs(rng):
    m, n = 20, 20_000
    X = rng.normal(size=(m, n))
    X[:, 7] = X[:, 3] + 1e-9 * rng.normal(size=m)
    problem = problem_of(X, (X[:, 7] - X[:, 3]) * 1e9, n_nonzero_coefs=3)
    tracemalloc.start()
    found = left_out(problem, np.zeros(n))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found is not None and set(found) >= {3, 7}
    assert peak < 0.2 * 8.0 * n * n
