"""Rules for the number of columns, beside scikit-learn's ℓ1 paths: held-out scores, sizes, time.

    python benchmarks/bench_rules.py                     # data of scikit-learn, and generators
    python benchmarks/bench_rules.py --folder FOLDER     # and Hitters.csv, Boston.csv, … there
    python benchmarks/bench_rules.py --only diabetes,noise --splits 3

Every table is split `--splits` times into 70 % to fit and 30 % to score (generators draw anew). A
row has R² (accuracy for labels) on the rows held out, the mean over the splits, for the rules of
`L0RegressorCV` and `L0ClassifierCV` and for `LassoCV` (`LogisticRegressionCV` with the ℓ1 penalty)
on standardized columns; below it the columns chosen, and the CPU seconds of the fits. Of noise it
counts the tables of which columns are chosen. The constants of rule "paired_se" were chosen on the
tables of `TUNED`; the others only judge. The folder has tables of the ISLP package, and of R's
ElemStatLearn, AppliedPredictiveModeling, carData, MASS, Ecdat, mlbench and TH.data, as CSV files.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from blockl0 import L0ClassifierCV, L0RegressorCV

RULES = ("paired_se", "one_se", "min", "bic")
TUNED = (
    "Hitters", "Boston", "diabetes", "diabetes, products", "5 of 50, R² 0.2", "many weak",
    "heavy tails", "60x10, noise 0.3", "noise 100x20", "noise 60x100",
)  # fmt: skip
FOLDER = {
    "Hitters": "Salary", "Boston": "medv", "Carseats": "Sales", "Auto": "mpg", "College": "Apps",
    "Credit": "Balance", "prostate": "lpsa", "ozone": "ozone_reading", "caschool": "testscr",
    "Prestige": "prestige", "Cars93": "Price", "Sacramento": "price", "GlaucomaM": "hic",
}  # fmt: skip
"""Files, and their targets."""
LEFT_OUT = {
    "ID", "name", "read_scr", "math_scr", "observation_number", "dist_cod", "county", "district",
    "census", "Manufacturer", "Model", "Make", "Min.Price", "Max.Price", "city", "zip", "Class",
}  # fmt: skip
"""Columns that name a row, or tell the target."""
MOST_ROWS = 600
Table = tuple[np.ndarray, np.ndarray]


def linear(m: int, n: int, k: int, rho: float, snr: float) -> Callable[[int], Table]:
    """Correlated columns, the first k of equal weight (all of random weight for k = n)."""

    def draw(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        S = rho ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        X = rng.standard_normal((m, n)) @ np.linalg.cholesky(S).T
        w = rng.standard_normal(n) if k == n else (np.arange(n) < k).astype(float)
        return X, X @ w + rng.standard_normal(m) * np.sqrt(w @ S @ w / snr)

    return draw


def noise(m: int, n: int) -> Callable[[int], Table]:
    """Columns and a target that have nothing to do with each other."""

    def draw(seed: int) -> Table:
        rng = np.random.default_rng(seed)
        return rng.standard_normal((m, n)), rng.standard_normal(m)

    return draw


def odd_errors(seed: int, heavy: bool) -> Table:
    """Errors with heavy tails, or larger where a column is."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 25))
    errors = rng.standard_t(2.5, 200)
    if not heavy:
        errors = rng.standard_normal(200) * (0.3 + 1.5 * np.abs(X[:, 0]))
    return X, X[:, :5] @ [1.0, 0.8, 0.6, 0.4, 0.2] + errors


def products(X: np.ndarray) -> np.ndarray:
    """Columns, their squares and products, those that vary."""
    made = PolynomialFeatures(2, include_bias=False).fit_transform(
        StandardScaler().fit_transform(X)
    )
    return made[:, made.std(axis=0) > 0.0]


def tables(folder: Path | None) -> dict[str, Callable[[int], Table]]:
    """The tables by name, each drawn with a seed."""
    X, y = datasets.load_diabetes(return_X_y=True)
    cells, kinds = datasets.load_breast_cancer(return_X_y=True)
    body = datasets.load_linnerud()
    digits, numbers = datasets.load_digits(return_X_y=True)
    wine = datasets.load_wine(return_X_y=True)
    found: dict[str, Callable[[int], Table]] = {
        "diabetes": lambda _: (X, y),
        "diabetes, products": lambda _: (products(X), y),
        "cells, last column": lambda _: (cells[:, :-1], cells[:, -1]),
        "linnerud": lambda _: (body.data, body.target[:, 1]),
        "Friedman 1": lambda s: datasets.make_friedman1(200, 20, noise=2.0, random_state=s),
        "Friedman 2": lambda s: datasets.make_friedman2(200, noise=200.0, random_state=s),
        "Friedman 3": lambda s: datasets.make_friedman3(200, noise=0.1, random_state=s),
        "5 of 50, R² 0.2": linear(150, 50, 5, 0.35, 0.25),
        "5 of 50, R² 0.55": linear(150, 50, 5, 0.35, 1.2),
        "5 of 50, R² 0.86": linear(150, 50, 5, 0.35, 6.0),
        "AR(0.9), 6 of 60": linear(150, 60, 6, 0.9, 1.0),
        "many weak": linear(200, 40, 40, 0.2, 0.6),
        "wide, 5 of 200": linear(100, 200, 5, 0.35, 2.0),
        "heavy tails": lambda s: odd_errors(s, True),
        "unequal errors": lambda s: odd_errors(s, False),
        "60x10, noise 0.3": linear(86, 10, 3, 0.0, 33.0),
        "2 of 30, R² 0.1": linear(150, 30, 2, 0.0, 0.11),
        "10 of 100, R² 0.5": linear(200, 100, 10, 0.5, 1.0),
        "all of 20 weak": linear(120, 20, 20, 0.5, 0.5),
        "wine": lambda _: wine,
        "breast cancer": lambda _: (cells, kinds),
        "digits 3 and 8": lambda _: _two_digits(digits, numbers),
        "noise 100x20": noise(100, 20),
        "noise 60x100": noise(60, 100),
        "noise 300x10": noise(300, 10),
    }
    return (_from_folder(folder) if folder is not None else {}) | found


def _two_digits(X: np.ndarray, y: np.ndarray) -> Table:
    rows = np.flatnonzero((y == 3) | (y == 8))[:200]
    return X[rows][:, X[rows].std(axis=0) > 0.0], y[rows]


def _from_folder(folder: Path) -> dict[str, Callable[[int], Table]]:
    import pandas as pd

    found: dict[str, Callable[[int], Table]] = {}
    for name, target in FOLDER.items():
        if not (folder / f"{name}.csv").exists():
            continue
        table = pd.read_csv(folder / f"{name}.csv", na_values=["?"])
        left_out = [c for c in table if c in LEFT_OUT or str(c).startswith("Unnamed")]
        table = table.drop(columns=left_out).dropna().iloc[:MOST_ROWS]
        y = table[target].to_numpy(float)
        X = pd.get_dummies(table.drop(columns=target), drop_first=True)
        found[name] = _fixed(X.to_numpy(float), y)
    return found


def _fixed(X: np.ndarray, y: np.ndarray) -> Callable[[int], Table]:
    return lambda _: (X, y)


def models(has_labels: bool) -> dict[str, Any]:
    """Our rules, and scikit-learn's path."""
    kind = L0ClassifierCV if has_labels else L0RegressorCV
    found: dict[str, Any] = {rule: kind(rule=rule, random_state=0) for rule in RULES}
    peer: Any = LassoCV(cv=5)
    if has_labels:
        peer = LogisticRegressionCV(
            l1_ratios=(1.0,), solver="saga", max_iter=500, cv=5, use_legacy_attributes=False
        )
    return found | {"scikit-learn": make_pipeline(StandardScaler(), peer)}


def size_of(model: Any) -> int:
    """Columns with a coefficient."""
    coef = np.atleast_2d((model[-1] if hasattr(model, "steps") else model).coef_)
    return int(np.count_nonzero(coef.any(axis=0)))


def measure(
    draw: Callable[[int], Table], is_noise: bool, n_splits: int
) -> dict[str, tuple[float, float, float]]:
    """(held-out score, columns or share of tables with any, CPU seconds) by model."""
    sums: dict[str, np.ndarray] = {}
    for seed in range(n_splits):
        X, y = draw(seed)
        has_labels = y.dtype.kind in "iu"
        rows, rest = train_test_split(
            np.arange(len(y)), test_size=0.3, random_state=seed, stratify=y if has_labels else None
        )
        for name, model in models(has_labels).items():
            start = time.process_time()
            model.fit(X[rows], y[rows])
            seconds = time.process_time() - start
            size = size_of(model)
            score = model.score(X[rest], y[rest])
            if not has_labels:
                # beside the mean of the rows of the fit, which choosing nothing predicts
                errors = np.mean((y[rest] - model.predict(X[rest])) ** 2)
                score = 1.0 - errors / np.mean((y[rest] - y[rows].mean()) ** 2)
            new = np.array([score, size > 0 if is_noise else size, seconds])
            sums[name] = sums.get(name, np.zeros(3)) + new / n_splits
    return {name: tuple(values) for name, values in sums.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--splits", type=int, default=12)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = [*RULES, "scikit-learn"]
    print(f"{'':22s}" + "".join(f"{name:>14s}" for name in names))
    shares = []
    for name, draw in tables(options.folder).items():
        if not any(name.startswith(part) for part in options.only.split(",")):
            continue
        is_noise = name.startswith("noise")
        found = measure(draw, is_noise, options.splits)
        mark = " *" if name in TUNED else ""
        print(f"{name + mark:22s}" + "".join(f"{found[n][0]:14.3f}" for n in names), flush=True)
        what = "  tables" if is_noise else "  columns"
        print(f"{what:22s}" + "".join(f"{found[n][1]:14.2f}" for n in names))
        print(f"{'  CPU seconds':22s}" + "".join(f"{found[n][2]:14.3f}" for n in names), flush=True)
        if not is_noise:
            best = max(found[n][0] for n in ("min", "bic", "scikit-learn"))
            shares.append((found["paired_se"][0] / best, found["one_se"][0] / best))
    if shares:
        ours, before = np.median(shares, axis=0)
        print(f"\nmedian share of the best of min, BIC and scikit-learn: paired_se {ours:.3f}, "
              f"one_se {before:.3f}")  # fmt: skip
    print("* the constants of paired_se were chosen on these")


if __name__ == "__main__":
    main()
