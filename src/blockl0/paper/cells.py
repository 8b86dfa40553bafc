"""Cells: one method on one data set, with one parameter and one start, determined by its key.

Nothing here depends on the order in which cells are computed, on other cells, or on the number of
processes: data and start come from the seeds in the key, and linear algebra runs in one thread.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import blockl0
from blockl0.blas import one_blas_thread
from blockl0.datasets import load_e2006, make_random
from blockl0.paper.variants import VARIANTS, ZERO
from blockl0.result import History, Status

Floats = NDArray[np.float64]

START_STREAM = 1
"""Separate the random numbers of a start from those of the data with the same seed."""
N_NONZERO = 100
"""Nonzeros of the true coefficients of 'random-m-n'."""
CURVE_POINTS = 150
"""Points kept of a convergence curve, denser at its beginning."""
CHECKPOINTS = (100, 300, 1000, 10**5, 10**6)
"""Iterations whose objective is kept, to know what a shorter run would have given."""
LOADED = 8
"""Number of data sets kept in memory."""
DRAWS_APART = 1000
"""The data are redrawn for every price: draw i of price number j has the seed j·this + i."""
STRONG_SHARE = 1 / 3
"""A column is strong when it alone explains this share of a constant."""


@dataclass(frozen=True)
class Cell:
    """Identify a cell.

    Attributes
    ----------
    dataset : str
        "random-m-n", "e2006-m-n", with "-C" for outliers in X and "-CN" for outliers in the noise
        as well.
    method : str
        A label of `VARIANTS`.
    form : "price" or "budget"
    value : float
        λ or s.
    seed : int
        Seed of the start and of the method.
    draw : int
        Seed of the data.
    has_curve : bool
        Keep the convergence curve.
    """

    dataset: str
    method: str
    form: str
    value: float
    seed: int = 0
    draw: int = 0
    has_curve: bool = False

    def __str__(self) -> str:
        curve = " curve" if self.has_curve else ""
        return (
            f"{self.dataset}#{self.draw} {self.method} {self.form}={self.value:g} "
            f"seed={self.seed}{curve}"
        )


def compute(cell: Cell) -> dict[str, Any]:
    """Compute a cell and return a record that can be written as JSON."""
    # the data too are made in one thread: sums in another order differ in their last digits
    with one_blas_thread():
        X, y = load(cell.dataset, cell.draw)
        if cell.method in FACTS:
            return {"objective": FACTS[cell.method](cell, X, y)}
        _warm_up(VARIANTS[cell.method].solver, cell.form, not isinstance(X, np.ndarray))
        started = time.perf_counter()
        result = _solve(cell, X, y)
        seconds = time.perf_counter() - started
    record = {
        "objective": result.objective,
        "seconds": seconds,
        "n_nonzero": result.n_nonzero,
        "n_iter": result.n_iter,
        "status": str(result.status),
        "at": {
            str(i): float(result.history.objective[i])
            for i in CHECKPOINTS
            if i < len(result.history)
        },
    }
    return record | ({"curve": thin(result.history)} if cell.has_curve else {})


def _solve(cell: Cell, X: Any, y: Floats) -> blockl0.Result:
    variant = VARIANTS[cell.method]
    # "refit" and the pursuit methods begin at zero by themselves
    is_zero = variant.start == ZERO and variant.solver == "dec"
    if cell.form == "price":
        parameter: dict[str, Any] = {"alpha": cell.value}
    else:
        parameter = {"n_nonzero_coefs": int(cell.value)}
    result = blockl0.solve(
        X,
        y,
        method=variant.solver,
        init=np.zeros(X.shape[1]) if is_zero else None,
        random_state=np.random.default_rng([START_STREAM, cell.seed]),
        **parameter,
        **variant.options,
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # solvers return their best point; half a cell is no result
    return result


@cache
def _warm_up(solver: str, form: str, is_sparse: bool) -> None:
    """Run the method once on a small problem, so that no cell's time includes the compiler's."""
    import scipy.sparse as sp

    X, y = make_random(60, 150, n_nonzero=20, random_state=0)
    method = next(label for label, variant in VARIANTS.items() if variant.solver == solver)
    _solve(Cell("warm", method, form, 10.0), sp.csc_array(X) if is_sparse else X, y)


# -- data ------------------------------------------------------------------------------------------


def draw_of(prices: Sequence[float], price: float, number: int) -> int:
    """Return the seed of a draw of the data for one of the prices."""
    return DRAWS_APART * prices.index(price) + number


def is_e2006(dataset: str) -> bool:
    """Tell whether the set needs the file."""
    return dataset.startswith("e2006")


@lru_cache(maxsize=LOADED)
def load(dataset: str, draw: int) -> tuple[Any, Floats]:
    """Return X and y of a data set by its name in the paper; `draw` is the seed."""
    match = re.fullmatch(r"(random|e2006)-(\d+)-(\d+)(-C|-CN)?", dataset)
    if match is None:
        raise ValueError(
            "`dataset` must be 'random-m-n' or 'e2006-m-n', with '-C' for outliers, got "
            f"{dataset!r}."
        )
    m, n, outliers = int(match[2]), int(match[3]), match[4]
    if match[1] == "e2006":
        return load_e2006(m, n, corrupted=outliers is not None, random_state=draw)
    X, y = make_random(
        m,
        n,
        n_nonzero=min(N_NONZERO, n),
        corrupted=outliers is not None,
        corrupted_noise=outliers == "-CN",
        random_state=draw,
    )
    return X, y


def thin(history: History) -> dict[str, list[float]]:
    """Thin a history to a curve of at most CURVE_POINTS points: iteration, seconds, objective."""
    last = len(history) - 1
    keep = np.unique(np.geomspace(1, last + 1, CURVE_POINTS).round().astype(np.int64)) - 1
    return {
        "iteration": keep.tolist(),
        "seconds": history.seconds[keep].tolist(),
        "objective": history.objective[keep].tolist(),
    }


# -- facts about the data, which need no solver ----------------------------------------------------


def _sq_norms(X: Any) -> Floats:
    squares = X * X if isinstance(X, np.ndarray) else X.multiply(X)
    return np.asarray(squares.sum(axis=0)).ravel()


def start_objective(cell: Cell, X: Any, y: Floats) -> float:
    """Return ½‖y − Xw‖² + λ‖w‖₀ at the paper's start w = 1e-7·randn, which has no zeros."""
    n = X.shape[1]
    w = 1e-7 * np.random.default_rng([START_STREAM, cell.seed]).standard_normal(n)
    residual = y - X @ w
    return 0.5 * float(residual @ residual) + cell.value * n


def strong_columns(cell: Cell, X: Any, y: Floats) -> float:
    """Count the columns that can stand in for an intercept: (Σ_i x_ij)² >= share·m·‖x_j‖².

    The target of e2006 is nearly constant, and the models have no intercept.
    """
    lengths = _sq_norms(X)
    sums = np.asarray(X.sum(axis=0)).ravel()
    enough = STRONG_SHARE * X.shape[0] * lengths
    return float(np.count_nonzero((lengths > 0.0) & (sums**2 >= enough)))


FACTS = {"start": start_objective, "strong columns": strong_columns}
"""Labels that are computed from the data alone."""
