"""Groups, bounds and several responses beside abess, skglm, scikit-learn and scipy.

    python -m benchmarks.quality.structured                    the draws that judge
    python -m benchmarks.quality.structured --tuned            those that constants were chosen on
    python -m benchmarks.quality.structured 'equal*' --seeds 1 some families, one draw

All packages in one environment (``pip install abess==0.4.11 skglm==0.5``); one that is missing is
left out. Nobody has an intercept. Every answer is judged by its selection alone: the least loss on
these groups, within the bounds, by the same code. Times are CPU seconds of one thread, the least of
two calls after one on a small problem that compiles.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

import blockl0

from .instances import toeplitz_columns

TUNED_SEEDS, JUDGED_SEEDS = (100, 101), (201, 202, 203)
"""Draws that constants were chosen on, and those that only judge."""
EFFORTS = ("fast", "balanced")
PATH, LARGEST = 100, 10
"""Prices of a path, and supports of it that are re-fitted."""
TOLERANCE = 1e-9
"""Relative; beyond it an objective is above another."""


class Task(NamedTuple):
    """A problem: at most k groups, low ≤ W ≤ high."""

    X: np.ndarray
    Y: np.ndarray
    k: int
    groups: np.ndarray | None = None
    bounds: tuple[float, float] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """The structure as `blockl0.solve` takes it."""
        return {"feature_groups": self.groups, "bounds": self.bounds, "n_nonzero_coefs": self.k}

    def units(self, columns: np.ndarray) -> np.ndarray:
        """The groups of some columns, or the columns."""
        return np.unique(columns if self.groups is None else self.groups[columns])

    def columns(self, units: np.ndarray) -> np.ndarray:
        """The columns of some groups."""
        return units if self.groups is None else np.flatnonzero(np.isin(self.groups, units))

    def loss(self, units: np.ndarray) -> float:
        """The least loss on a selection, by numpy or scipy; infinite if it is too large."""
        if units.size > self.k:
            return np.inf
        A, Y = self.X[:, self.columns(units)], self.Y.reshape(len(self.X), -1)
        if A.shape[1] == 0:
            return 0.5 * float(np.sum(Y**2))
        if self.bounds is None:
            return 0.5 * float(np.sum((Y - A @ np.linalg.lstsq(A, Y, rcond=None)[0]) ** 2))
        options = {"method": "bvls", "tol": 1e-13, "max_iter": 1000}
        return sum(float(lsq_linear(A, y, self.bounds, **options).cost) for y in Y.T)


class Answer(NamedTuple):
    """The groups that a method chose, and by how much its coefficients are outside the bounds."""

    units: np.ndarray
    outside: float = 0.0


# -- the families ----------------------------------------------------------------------------------


def noisy(signal: np.ndarray, snr: float, rng: np.random.Generator) -> np.ndarray:
    """A signal with noise of so much less variance."""
    return signal + np.sqrt(np.var(signal) / snr) * rng.standard_normal(signal.shape)


def grouped(
    m: int, sizes: np.ndarray, k: int, rho: float, snr: float, rng: np.random.Generator
) -> Task:
    """Toeplitz columns in groups, k of which carry a signal."""
    groups = np.repeat(np.arange(sizes.size), sizes)
    X = toeplitz_columns(m, groups.size, rho, rng)
    chosen = np.isin(groups, rng.choice(sizes.size, k, replace=False))
    return Task(X, noisy(X @ (chosen * rng.standard_normal(groups.size)), snr, rng), k, groups)


def equal_groups(rng: np.random.Generator) -> Task:
    """100 groups of five columns, 300 rows, 8 groups."""
    return grouped(300, np.full(100, 5), 8, 0.3, 1.0, rng)


def correlated_groups(rng: np.random.Generator) -> Task:
    """100 groups of four columns that follow each other closely, 200 rows, 10 groups."""
    return grouped(200, np.full(100, 4), 10, 0.9, 2.0, rng)


def mixed_groups(rng: np.random.Generator) -> Task:
    """80 groups of one to nine columns, 250 rows, 10 groups."""
    return grouped(250, rng.integers(1, 10, 80), 10, 0.6, 1.0, rng)


def factors(rng: np.random.Generator) -> Task:
    """40 factors of two to eight levels, the first of which has no column, and 40 numbers."""
    m, n_levels = 500, rng.integers(2, 9, 40)
    parts = [np.eye(size)[rng.integers(0, size, m)][:, 1:] for size in n_levels]
    parts += [rng.standard_normal((m, 1)) for _ in range(40)]
    X = np.hstack([part - part.mean(axis=0) for part in parts])
    groups = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
    chosen = np.isin(groups, rng.choice(len(parts), 10, replace=False))
    y = noisy(X @ (chosen * rng.standard_normal(groups.size)), 0.5, rng)
    return Task(X, y - y.mean(), 10, groups)


def signed(m: int, n: int, k: int, rho: float, snr: float, rng: np.random.Generator) -> Task:
    """Toeplitz columns, twice k positive coefficients and k negative ones, none may be negative."""
    X, w = toeplitz_columns(m, n, rho, rng), np.zeros(n)
    w[rng.choice(n, 3 * k, replace=False)] = rng.uniform(0.5, 1.5, 3 * k) * np.repeat(
        [1.0, 1.0, -1.0], k
    )
    return Task(X, noisy(X @ w, snr, rng), k, None, (0.0, np.inf))


def positive(rng: np.random.Generator) -> Task:
    """400 columns that must not be negative, 200 rows, 10 of them."""
    return signed(200, 400, 10, 0.7, 2.0, rng)


def spectra(rng: np.random.Generator) -> Task:
    """200 lines of a spectrum that overlap, mixed without negative shares, 150 rows, 12 lines."""
    at = np.linspace(0.0, 1.0, 150)
    X = np.exp(-0.5 * ((at[:, None] - np.linspace(0.0, 1.0, 200)) / 0.02) ** 2)
    w = np.zeros(200)
    w[rng.choice(200, 16, replace=False)] = rng.uniform(0.3, 1.5, 16)
    return Task(X, X @ w + 0.1 * rng.standard_normal(150), 12, None, (0.0, np.inf))


def boxed(rng: np.random.Generator) -> Task:
    """300 columns with coefficients between −0.5 and 0.5, 200 rows, 10 of them."""
    return signed(200, 300, 10, 0.5, 4.0, rng)._replace(bounds=(-0.5, 0.5))


def shared(
    m: int, n: int, q: int, k: int, rho: float, snr: float, rng: np.random.Generator
) -> Task:
    """q responses that need the same k Toeplitz columns."""
    X, W = toeplitz_columns(m, n, rho, rng), np.zeros((n, q))
    W[rng.choice(n, k, replace=False)] = rng.standard_normal((k, q))
    return Task(X, noisy(X @ W, snr, rng), k)


def responses(rng: np.random.Generator) -> Task:
    """5 responses, 500 columns, 200 rows, 10 columns."""
    return shared(200, 500, 5, 10, 0.7, 0.5, rng)


def few_rows(rng: np.random.Generator) -> Task:
    """3 responses, 300 columns, 60 rows, 10 columns."""
    return shared(60, 300, 3, 10, 0.9, 2.0, rng)


FAMILIES: dict[str, Callable[[np.random.Generator], Task]] = {
    "equal-groups": equal_groups, "correlated-groups": correlated_groups,
    "mixed-groups": mixed_groups, "factors": factors, "positive": positive, "spectra": spectra,
    "boxed": boxed, "responses": responses, "few-rows": few_rows,
}  # fmt: skip

# -- the methods -----------------------------------------------------------------------------------


def by_blockl0(task: Task, effort: str) -> Answer:
    """Our answer; its objective is what the judge finds, or something is wrong."""
    found = blockl0.solve(task.X, task.Y, effort=effort, random_state=0, **task.given)
    units = task.units(found.support)
    assert np.isclose(found.objective, task.loss(units), rtol=1e-8)
    return Answer(units)


def by_abess(task: Task, **options: Any) -> Answer:
    """abess at its defaults; groups are contiguous already, since it takes no others."""
    from abess import LinearRegression, MultiTaskRegression

    kind = MultiTaskRegression if task.Y.ndim == 2 else LinearRegression
    model = kind(support_size=task.k, group=task.groups, fit_intercept=False, thread=1, **options)
    limits = {}
    if task.bounds is not None:
        # one number for all columns; it has no others
        sides = zip(("beta_low", "beta_high"), task.bounds, strict=True)
        limits = {name: side for name, side in sides if np.isfinite(side)}
    coef = np.reshape(model.fit(task.X, task.Y, **limits).coef_, (task.X.shape[1], -1))
    low, high = task.bounds or (-np.inf, np.inf)
    outside = max(float((low - coef).max()), float((coef - high).max()), 0.0)
    return Answer(task.units(np.flatnonzero(coef.any(axis=1))), outside)


def best_of_path(task: Task, coefs: Iterator[np.ndarray]) -> Answer:
    """The best of the largest selections along a path of falling prices, each re-fitted."""
    seen: dict[tuple[int, ...], None] = {}
    for coef in coefs:
        units = task.units(np.flatnonzero(np.reshape(coef, (task.X.shape[1], -1)).any(axis=1)))
        if units.size > task.k:
            break
        seen[tuple(units.tolist())] = None
    last = [np.array(units, dtype=int) for units in list(seen)[-LARGEST:]]
    return Answer(min(last, key=task.loss, default=np.empty(0, dtype=int)))


def falling(largest: float) -> np.ndarray:
    """Prices of a path."""
    return largest * np.logspace(0.0, -3.0, PATH)


def by_group_lasso(task: Task) -> Answer:
    """skglm's group lasso, a warm path, re-fitted."""
    from skglm import GroupLasso

    assert task.groups is not None
    m, members = len(task.X), [np.flatnonzero(task.groups == g) for g in np.unique(task.groups)]
    slope = task.X.T @ task.Y / m
    sizes = np.sqrt([part.size for part in members])
    largest = max(np.linalg.norm(slope[p]) / s for p, s in zip(members, sizes, strict=True))
    model = GroupLasso(
        [part.tolist() for part in members], weights=sizes, fit_intercept=False, warm_start=True
    )

    def path() -> Iterator[np.ndarray]:
        for alpha in falling(largest):
            yield model.set_params(alpha=alpha).fit(task.X, task.Y).coef_

    return best_of_path(task, path())


def by_positive_lasso(task: Task) -> Answer:
    """scikit-learn's lasso without negative coefficients, re-fitted."""
    from sklearn.linear_model import lasso_path

    alphas = falling(float((task.X.T @ task.Y).max()) / len(task.X))
    return best_of_path(task, iter(lasso_path(task.X, task.Y, alphas=alphas, positive=True)[1].T))


def by_multi_task_lasso(task: Task) -> Answer:
    """scikit-learn's multi-task lasso, a warm path, re-fitted."""
    from sklearn.linear_model import MultiTaskLasso

    model = MultiTaskLasso(fit_intercept=False, warm_start=True)
    largest = float(np.linalg.norm(task.X.T @ task.Y, axis=1).max()) / len(task.X)

    def path() -> Iterator[np.ndarray]:
        for alpha in falling(largest):
            yield model.set_params(alpha=alpha).fit(task.X, task.Y).coef_.T

    return best_of_path(task, path())


def methods(task: Task) -> dict[str, Callable[[Task], Answer]]:
    """What can be asked, by name; abess first, since others are compared with it."""
    found: dict[str, Callable[[Task], Answer]] = {"abess": by_abess}
    found["abess-exchange"] = lambda t: by_abess(t, exchange_num=t.k)
    for effort in EFFORTS:
        found[f"blockl0-{effort}"] = lambda t, effort=effort: by_blockl0(t, effort)
    if task.groups is not None:
        found["skglm group lasso"] = by_group_lasso
    elif task.Y.ndim == 2:
        found["MultiTaskLasso"] = by_multi_task_lasso
    elif task.bounds == (0.0, np.inf):
        found["positive lasso"] = by_positive_lasso
    return found


# -- the table -------------------------------------------------------------------------------------


class Cell(NamedTuple):
    """What a method did on an instance."""

    family: str
    seed: int
    method: str
    objective: float
    seconds: float
    outside: float


def cpu_seconds(call: Callable[[Task], Answer], task: Task) -> tuple[float, Answer]:
    """The lesser CPU time of two calls, and the answer."""
    taken = []
    for _ in range(2):
        started = time.process_time()
        answer = call(task)
        taken.append(time.process_time() - started)
    return min(taken), answer


def small(task: Task) -> Task:
    """The first rows and columns of a task, to compile for."""
    n = 30
    groups = None if task.groups is None else task.groups[:n]
    n_units = n if groups is None else int(np.unique(groups).size)
    return Task(task.X[:50, :n], task.Y[:50], min(3, n_units), groups, task.bounds)


def run(patterns: list[str], seeds: tuple[int, ...]) -> list[Cell]:
    """All cells of the families that fit a pattern."""
    cells = []
    for family, make in FAMILIES.items():
        if not any(fnmatchcase(family, pattern) for pattern in patterns):
            continue
        for seed in seeds:
            task = make(np.random.default_rng(seed))
            for name, call in methods(task).items():
                try:
                    call(small(task))
                    seconds, answer = cpu_seconds(call, task)
                except ImportError as error:
                    print(f"!!! {name}: {error}")
                    continue
                cells.append(
                    Cell(family, seed, name, task.loss(answer.units), seconds, answer.outside)
                )
            if task.bounds is not None:
                whole = sum(lsq_linear(task.X, y, task.bounds).cost for y in np.atleast_2d(task.Y))
                cells.append(Cell(family, seed, "all columns (lsq_linear)", whole, np.nan, 0.0))
    return cells


def table(cells: list[Cell]) -> Iterator[str]:
    """A line for every family and method: objectives and times over abess's."""
    peer = {(c.family, c.seed): c for c in cells if c.method == "abess"}
    head = f"{'family':19s}{'method':26s}{'mean':>9s}{'worst':>9s}{'CPU s':>10s}{'x abess':>9s}"
    yield f"{head}{'outside':>10s}\n{'':45s}{'objective / abess':>18s}"
    for family, method in dict.fromkeys((c.family, c.method) for c in cells):
        own = [c for c in cells if (c.family, c.method) == (family, method)]
        pairs = [(c, peer[c.family, c.seed]) for c in own if (c.family, c.seed) in peer]
        ratios = [c.objective / p.objective for c, p in pairs] or [np.nan]
        times = [np.log(c.seconds / p.seconds) for c, p in pairs] or [np.nan]
        yield (
            f"{family:19s}{method:26s}{np.mean(ratios):9.4f}{np.max(ratios):9.4f}"
            f"{np.median([c.seconds for c in own]):10.3f}{np.exp(np.mean(times)):9.2f}"
            f"{max(c.outside for c in own):10.1e}"
        )


def above(cells: list[Cell]) -> list[str]:
    """Where "fast" is above any run of abess."""
    ours = {(c.family, c.seed): c for c in cells if c.method == "blockl0-fast"}
    return [
        f"{c.family} {c.seed}: {100 * (ours[c.family, c.seed].objective / c.objective - 1):+.3f} % "
        f"above {c.method}"
        for c in cells
        if c.method.startswith("abess")
        and ours[c.family, c.seed].objective > (1.0 + TOLERANCE) * c.objective
    ]


def main() -> int:
    """Run; 1 where "fast" is above abess."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("families", nargs="*", default=["*"], help="names or globs")
    parser.add_argument("--tuned", action="store_true", help="the draws constants were chosen on")
    parser.add_argument("--seeds", type=int, default=len(JUDGED_SEEDS), help="draws of each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds = TUNED_SEEDS if options.tuned else JUDGED_SEEDS
    cells = run(options.families, seeds[: options.seeds])
    print("\n".join(table(cells)))
    found = above(cells)
    n_compared = sum(c.method.startswith("abess") for c in cells)
    print(f"\nblockl0-fast is above abess on {len(found)} of {n_compared}", *found, sep="\n  ")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
