"""A cell: one method on one data set with one parameter from one start, a function of its key.

Nothing here depends on the order in which cells are computed, on other cells, or on the number of
processes: data and start come from the seeds in the key, and linear algebra runs in one thread.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import blockl0
from blockl0.datasets import load_e2006, make_random
from blockl0.result import History, Status

Floats = NDArray[np.float64]

START_STREAM = 1
"""Keeps the random numbers of a start apart from those of the data with the same seed."""
N_NONZERO = 100
"""Nonzeros of the true coefficients of 'random-m-n'."""
CURVE_POINTS = 150
"""Points kept of a convergence curve, denser at its beginning."""
LOADED = 8
"""Data sets kept in memory: more than the draws that the differences go through in turn."""
STRONG_SHARE = 1 / 3
"""A column is strong when it alone explains this share of a constant."""


@dataclass(frozen=True)
class Cell:
    """The key of a cell.

    Attributes
    ----------
    dataset : str
        "random-m-n", "e2006-m-n", with "-C" for outliers in X and "-CN" for outliers in the noise
        as well.
    method : str
        A label of `SETTINGS`.
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


@dataclass(frozen=True)
class Setting:
    """How a label is run, and what it is called on paper.

    `theta` is the paper's θ to the letter, while the option of "dec" is relative to the curvature
    where that is below 1. Of a method that is not `seeded` the start makes no difference.
    """

    title: str
    solver: str
    options: dict[str, Any] = field(default_factory=dict)
    is_seeded: bool = True
    from_zero: bool = False
    theta: float | None = None


def _dec(working_set: str) -> Setting:
    return Setting(f"DEC-{working_set}", "dec", {"working_set": working_set})


SETTINGS: dict[str, Setting] = {
    "PGM-l0": Setting("PGM-ℓ0", "pgm-l0"),
    "APGM-l0": Setting("APGM-ℓ0", "apgm-l0"),
    "PGM-l1": Setting("PGM-ℓ1", "pgm-l1"),
    "PGM-lp": Setting("PGM-ℓp", "pgm-lp"),
    "PGM": Setting("PGM", "pgm"),
    "APGM": Setting("APGM", "apgm"),
    "QPM": Setting("QPM", "qpm"),
    "SSP": Setting("SSP", "ssp", is_seeded=False),
    "ROMP": Setting("ROMP", "romp", is_seeded=False),
    "OMP": Setting("OMP", "omp", is_seeded=False),
    "CoSaMP": Setting("CoSaMP", "cosamp", is_seeded=False),
    # convex: from another start it ends at the same point
    "CVX-l1": Setting("CVX-ℓ1", "cvx-l1", is_seeded=False),
    **{f"DEC-{name}": _dec(name) for name in ("R2G0", "R0G2", "R2G2", "R5G5", "R10G2")},
    "refit": Setting("refit", "refit"),
    "refit-fast": Setting("refit (fast)", "refit", {"effort": "fast"}),
    "DEC-zero": Setting("start 0", "dec", from_zero=True),
    "DEC-ranked": Setting("one list", "dec", {"greedy": "ranked"}),
    "DEC-R0G2-ranked": Setting(
        "DEC-R0G2, one list", "dec", {"working_set": "R0G2", "greedy": "ranked"}
    ),
    "DEC-theta3": Setting("θ = 1e-3", "dec", theta=1e-3),
    "DEC-theta5": Setting("θ = 1e-5", "dec", theta=1e-5),
}
"""Every label. What is not mentioned is the default of `blockl0.solve`."""


def compute(cell: Cell) -> dict[str, Any]:
    """Compute a cell; what comes back can be written as JSON."""
    # the data too are made in one thread: sums in another order differ in their last digits
    with threadpool_limits(1):
        X, y = load(cell.dataset, cell.draw)
        if cell.method in FACTS:
            return {"objective": FACTS[cell.method](cell, X, y)}
        _warm_up(cell.method, cell.form, not isinstance(X, np.ndarray))
        started = time.perf_counter()
        result = _solve(cell, X, y)
        seconds = time.perf_counter() - started
    record = {
        "objective": result.objective,
        "seconds": seconds,
        "n_nonzero": result.n_nonzero,
        "n_iter": result.n_iter,
        "status": str(result.status),
    }
    return record | ({"curve": thin(result.history)} if cell.has_curve else {})


def _solve(cell: Cell, X: Any, y: Floats) -> blockl0.Result:
    setting = SETTINGS[cell.method]
    options = dict(setting.options)
    if setting.theta is not None:
        options["theta"] = setting.theta / min(1.0, float(_sq_norms(X).max()))
    if cell.form == "price":
        options["alpha"] = cell.value
    else:
        options["n_nonzero_coefs"] = int(cell.value)
    result = blockl0.solve(
        X,
        y,
        method=setting.solver,
        init=np.zeros(X.shape[1]) if setting.from_zero else None,
        random_state=np.random.default_rng([START_STREAM, cell.seed]),
        **options,
    )
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # solvers return what they have; a cell is finished or it is not
    return result


@cache
def _warm_up(method: str, form: str, is_sparse: bool) -> None:
    """Run the method once on a small problem, so that no cell's time includes the compiler's."""
    import scipy.sparse as sp

    X, y = make_random(60, 150, n_nonzero=20, random_state=0)
    _solve(Cell("warm", method, form, 10.0), sp.csc_array(X) if is_sparse else X, y)


# -- data ------------------------------------------------------------------------------------------


def is_e2006(dataset: str) -> bool:
    """Tell whether the set needs the file."""
    return dataset.startswith("e2006")


@lru_cache(maxsize=LOADED)
def load(dataset: str, draw: int) -> tuple[Any, Floats]:
    """The data set by its name, as the paper writes it; `draw` is the seed."""
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
    """A curve of at most CURVE_POINTS points: iteration, seconds, objective."""
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
    """½‖y − Xw‖² + λ‖w‖₀ at the paper's start w = 1e-7·randn, all of whose entries cost λ."""
    n = X.shape[1]
    w = 1e-7 * np.random.default_rng([START_STREAM, cell.seed]).standard_normal(n)
    residual = y - X @ w
    return 0.5 * float(residual @ residual) + cell.value * n


def strong_columns(cell: Cell, X: Any, y: Floats) -> float:
    """How many columns can stand in for an intercept: (Σ_i x_ij)² >= share·m·‖x_j‖².

    The target of e2006 is nearly constant, and the models have no intercept.
    """
    lengths = _sq_norms(X)
    sums = np.asarray(X.sum(axis=0)).ravel()
    enough = STRONG_SHARE * X.shape[0] * lengths
    return float(np.count_nonzero((lengths > 0.0) & (sums**2 >= enough)))


FACTS = {"start": start_objective, "strong columns": strong_columns}
"""Labels that are computed from the data alone."""
