"""Rows without end: moments of chunks that are made on the fly, one thread, flat memory.

    python benchmarks/scale/rows.py                     2·10⁷ rows of 30 columns, with five folds
    python benchmarks/scale/rows.py --rows 1e8          a hundred million, some minutes
    python benchmarks/scale/rows.py --check             2·10⁵ rows, and the same in memory

Columns have common factors and means of 1e7. Processor seconds are of `update` alone, without the
making of the rows; the peak is that of the whole process less what it held before the first chunk.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import memory
import numpy as np
from sklearn.model_selection import PredefinedSplit

from blockl0 import L0RegressorCV, Moments

MEAN, BUDGET = 1e7, 10
TRUE = (3, 7, 11, 19)


def chunks(n_rows: int, n: int, size: int) -> Iterator[tuple[Any, Any]]:
    """(X, y) of so many rows at a time; the same rows for any size that divides 10⁵."""
    rng = np.random.default_rng(0)
    mixing = 0.6 * rng.standard_normal((4, n))
    for start in range(0, n_rows, size):
        parts = [_rows(10**5 * i, mixing) for i in range(start // 10**5, (start + size) // 10**5)]
        X, y = (np.concatenate(part) for part in zip(*parts, strict=True))
        stop = min(size, n_rows - start)
        yield X[:stop], y[:stop]


def _rows(seed: int, mixing: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed + 1)
    Z = rng.standard_normal((10**5, mixing.shape[1])) + rng.standard_normal((10**5, 4)) @ mixing
    y = Z[:, list(TRUE)] @ [1.0, -2.0, 0.5, 0.25] + 3.0 * rng.standard_normal(10**5)
    return Z + MEAN, y


def stream(n_rows: int, n: int, size: int, folds: int) -> None:
    """Gather, choose by folds, and say what it took."""
    moments, seconds, before = Moments(folds=folds), 0.0, 0
    started = time.process_time()
    for i, (X, y) in enumerate(chunks(n_rows, n, size)):
        if i == 1:  # what a chunk takes is held already
            memory.reset_peak()
            before = memory.resident()
        began = time.process_time()
        moments.update(X, y)
        seconds += time.process_time() - began
    grown = memory.peak() - before
    made = time.process_time() - started - seconds
    began = time.process_time()
    model = L0RegressorCV(BUDGET, random_state=0).fit(moments)
    fit = time.process_time() - began
    print(f"{moments}: update {seconds:.1f} s, {1e6 * seconds / n_rows:.3f} s per million rows")
    print(f"making the rows took {made:.1f} s; choosing among 0 to {BUDGET} columns {fit:.1f} s")
    print(f"peak {memory.peak() / 2**20:.0f} MiB, {grown / 2**20:.1f} MiB after the first chunk")
    print(f"columns {model.support_.tolist()}, coefficients {model.coef_[model.support_].round(4)}")


def check(n: int, folds: int) -> None:
    """The same from rows in memory: supports, coefficients, scores."""
    X, y = (np.concatenate(a) for a in zip(*chunks(200_000, n, 100_000), strict=True))
    label = np.random.default_rng(1).integers(0, folds, len(y))
    moments, start = Moments(folds=folds), 0
    for X_part, y_part in chunks(200_000, n, 100_000):
        rows = slice(start, start + len(y_part))
        moments.update(X_part, y_part, folds=label[rows])
        start = rows.stop
    ours = L0RegressorCV(BUDGET, random_state=0).fit(moments)
    known = L0RegressorCV(BUDGET, cv=PredefinedSplit(label), random_state=0).fit(X, y)
    scores = np.abs(ours.cv_scores_ / known.cv_scores_ - 1.0).max()
    coef = np.abs(ours.coef_ - known.coef_).max() / np.abs(known.coef_).max()
    same = ours.support_.tolist() == known.support_.tolist()
    print(f"200,000 rows, means of {MEAN:g}: the same columns: {same}; coefficients differ by")
    print(f"{coef:.1e} of the largest, scores of folds by {scores:.1e}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--size", type=int, default=100_000, help="rows of a chunk")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.check:
        check(options.columns, options.folds)
    else:
        stream(int(options.rows), options.columns, options.size, options.folds)


if __name__ == "__main__":
    main()
