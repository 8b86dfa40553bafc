"""Wide tables of several classes, as of gene expression, beside abess and the l1 penalty.

    python benchmarks/bench_classes.py                 all cases; needs abess
    python benchmarks/bench_classes.py khan-like nci   some of them

The generated tables have correlated columns, a few rows of every class, and classes that a few
columns separate. Khan's tumours and NCI60 themselves are read where the package ISLP is installed
(its files alone: nothing of it is imported). Times are CPU seconds of one call, in an environment
as it is; accuracies are those of rows that had no part, or of the rows of the fit for nci.
"""

from __future__ import annotations

import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from abess.linear import MultinomialRegression
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from blockl0 import L0Classifier, L0ClassifierCV

LARGEST, FOLDS = 20, 5
"""The most columns along a path, and the folds that choose among them."""


class Case(NamedTuple):
    """A table, rows to judge by (none of real data without them), and a budget, None to choose it.

    `goal` are CPU seconds, and the least accuracy on the rows to judge by.
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None
    y_test: np.ndarray | None
    budget: int | None
    goal: tuple[float, float]


def expression(
    n: int, counts: list[int], n_markers: int, shift: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Columns with common factors, of which some have a level of their own for every class.

    Each class has so many rows, and as many again, which are the second half.
    """
    rng = np.random.default_rng(seed)
    y = np.tile(np.repeat(np.arange(len(counts)), counts), 2)
    factors = rng.standard_normal((y.size, 10))
    loadings = rng.standard_normal((10, n)) * (rng.random((10, n)) < 0.2)
    X = factors @ loadings + rng.standard_normal((y.size, n))
    X[:, :n_markers] += shift * rng.standard_normal((len(counts), n_markers))[y]
    return X * rng.uniform(0.2, 2.0, n) + rng.standard_normal(n), y


def generated(
    n: int, counts: list[int], budget: int | None, goal: tuple[float, float], seed: int = 0
) -> Case:
    """A generated table, its second half to judge by."""
    X, y = expression(n, counts, 80, 1.6, seed)
    m = sum(counts)
    return Case(X[:m], y[:m], X[m:], y[m:], budget, goal)


def files_of_islp() -> Path:
    """The data files of the package ISLP."""
    spec = importlib.util.find_spec("ISLP")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError("not installed: pip install ISLP")
    return Path(spec.submodule_search_locations[0]) / "data"


def khan() -> Case:
    """Khan's small round blue cell tumours, with the test rows of the book."""
    tables = [
        pd.read_csv(files_of_islp() / f"Khan_{name}.csv")
        for name in ("xtrain", "ytrain", "xtest", "ytest")
    ]
    X, y, X_test, y_test = (table.to_numpy(dtype=float) for table in tables)
    X, X_test = X[:, -2308:], X_test[:, -2308:]
    return Case(X, y[:, -1].astype(int), X_test, y_test[:, -1].astype(int), None, (10.0, 0.95))


def nci() -> Case:
    """NCI60: 14 kinds of cells, four of them of one row."""
    X = np.load(files_of_islp() / "NCI60data.npy")
    y = pd.read_csv(files_of_islp() / "NCI60labs.csv").iloc[:, -1].to_numpy()
    return Case(X, np.unique(y, return_inverse=True)[1], None, None, 5, (60.0, 0.0))


CASES: dict[str, Callable[[], Case]] = {
    "khan-like": lambda: generated(2308, [8, 23, 12, 20], None, (10.0, 0.95)),
    "nci-like": lambda: generated(6830, [9, 9, 8, 7, 7, 6, 6, 5, 2, 1, 1, 1, 1, 1], 5, (60.0, 0.0)),
    "golub-like": lambda: generated(7129, [38, 9, 25], None, (20.0, 0.95)),
    "khan": khan,
    "nci": nci,
}


def blockl0(case: Case, **options: object) -> Callable[[np.ndarray], np.ndarray]:
    """Fit the estimator as it is by default; return what predicts."""
    if case.budget is None:
        model = L0ClassifierCV(LARGEST, cv=FOLDS, random_state=0, **options)
    else:
        model = L0Classifier(case.budget, random_state=0, **options)
    return model.fit(case.X, case.y).predict


def abess(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """Fit abess, with its own folds where the number of columns is to be chosen."""
    sizes = range(LARGEST + 1) if case.budget is None else [case.budget]
    model = MultinomialRegression(
        support_size=sizes, cv=FOLDS if case.budget is None else 1, thread=1
    )
    codes, y = np.unique(case.y, return_inverse=True)
    model.fit(case.X, np.eye(codes.size)[y])
    coef = np.reshape(model.coef_, (case.X.shape[1], codes.size))
    return lambda X: codes[np.argmax(X @ coef + model.intercept_, axis=1)]


def l1(case: Case) -> Callable[[np.ndarray], np.ndarray]:
    """Fit scikit-learn's l1 penalty at C = 1 on standardized columns, which chooses many."""
    scaler = StandardScaler().fit(case.X)
    model = LogisticRegression(l1_ratio=1.0, solver="saga", C=1.0, tol=1e-3, max_iter=5000)
    model.fit(scaler.transform(case.X), case.y)
    return lambda X: model.predict(scaler.transform(X))


METHODS = {"blockl0": blockl0, "abess": abess, "l1": l1}


def warm_up() -> None:
    """Compile, on a small table of as many kinds of calls."""
    X, y = expression(60, [6, 6, 6], 6, 1.0, 1)
    for budget in (2, None):
        blockl0(Case(X, y, None, None, budget, (0.0, 0.0)))


def main(names: list[str]) -> int:
    warnings.simplefilter("ignore")
    warm_up()
    has_missed = False
    print(f"{'case':12s}" + "".join(f"{name + ' s':>12s}{'accuracy':>10s}" for name in METHODS))
    for name in names or CASES:
        try:
            case = CASES[name]()
        except FileNotFoundError as error:
            print(f"{name:12s}  {error}")
            continue
        cells = []
        for method, fit in METHODS.items():
            began = time.process_time()
            predict = fit(case)
            seconds = time.process_time() - began
            rows = (case.X, case.y) if case.X_test is None else (case.X_test, case.y_test)
            accuracy = float(np.mean(predict(rows[0]) == rows[1]))
            cells.append(f"{seconds:12.2f}{accuracy:10.3f}")
            if method == "blockl0":
                has_missed |= seconds > case.goal[0] or accuracy < case.goal[1]
        print(f"{name:12s}" + "".join(cells), flush=True)
    print("FAIL" if has_missed else "PASS")
    return int(has_missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
