"""Additions, removals and swaps hidden by rounding in products of columns, computed from X itself.

If a column is nearly in the span of the support, or the support nearly dependent, the pivots of a
tableau are rounding error. Here they come from orthogonal projections, whose error is the machine
precision over the distance instead of its square; promising moves are fitted and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.panels import orthogonal_factors
from blockl0.problem.fits import make_fits
from blockl0.problem.orthogonal import DEPENDENT, EPSILON, project_away, rounding_of
from blockl0.problem.problem import Problem
from blockl0.run import Run, look

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CHUNK = 256
"""Columns projected at a time."""
MOST_FITS = 400
"""Fits before the question is left open."""
ROUNDING = 64.0 * EPSILON
"""Relative rounding of values computed from unit columns at distance 1 of each other."""


class Found(NamedTuple):
    """A better support or None, and whether every move was bounded or fitted."""

    support: Ints | None
    is_complete: bool


def find_hidden_move(
    problem: Problem,
    w: Floats,
    support: Ints,
    columns: Ints,
    tolerance: float,
    run: Run | None = None,
) -> Found:
    """Find a better support by one addition or swap of `columns`, or one removal.

    Parameters
    ----------
    problem : Problem
        With a squared loss.
    w : ndarray (n,)
        The fit on `support`.
    support : ndarray of int64
        Independent columns, including the kept ones.
    columns : ndarray of int64
        Columns outside the support to try; O(m|S|) each.
    tolerance : float
        Smaller improvements do not count.
    run : Run, optional
        Provides the clock; a search that it cuts short is not complete.
    """
    objective = problem.objective(w)
    least, fits = objective - tolerance - rounding_of(problem, w), make_fits(problem)
    suspects: list[tuple[float, int, int]] = []
    n_suspects = 0
    for changes, errors, entering in _changes(problem, w, support, columns):
        rows, places = np.nonzero(changes - errors < -tolerance)
        n_suspects += rows.size
        best = np.argsort(changes[rows, places])[:MOST_FITS]
        suspects += [
            (float(changes[a, i]), int(a), int(entering[i]))
            for a, i in zip(rows[best], places[best], strict=True)
        ]
        if _is_late(run):
            return Found(None, False)
    suspects.sort()
    for _, a, i in suspects[:MOST_FITS]:
        moved = np.delete(support, a) if a < support.size else support
        if i >= 0:
            moved = np.sort(np.append(moved, i))
        if problem.objective(fits.coef_on(moved)) < least:
            return Found(moved, True)
        if _is_late(run):
            return Found(None, False)
    return Found(None, n_suspects <= MOST_FITS)


def _is_late(run: Run | None) -> bool:
    return run is not None and run.seconds_left <= 0.0


def _changes(
    problem: Problem, w: Floats, support: Ints, columns: Ints
) -> Iterator[tuple[Floats, Floats, Ints]]:
    """Yield changes and errors (|S| + 1, c) of moves, by entering columns.

    Row a removes the a-th member, the last row none; column −1 stands for removals alone. With the
    triangular factor R of the support, K = inv(R'R), W = inv(R)Q'x_i and the residual ρ of x_i, a
    swap changes the minimum by w_j²/2K_jj − (ρ'r + W_j w_j/K_jj)² / 2(ρ'ρ + W_j²/K_jj).
    """
    price, budget = problem.sparsity
    A, b, scale = problem.unit_columns(support)
    Q, R = orthogonal_factors(A)
    z = w[support] * scale
    r = b - A @ z
    inverse = np.linalg.inv(R) if support.size else np.empty((0, 0))
    diagonal = np.einsum("ij,ij->i", inverse, inverse)
    finite = 0.5 * z * z / diagonal
    cost = np.where(np.isin(support, problem.keep), np.inf, finite)
    rounding = ROUNDING * np.sqrt(diagonal.max(initial=1.0))
    removal = np.append(cost - price, np.inf)[:, None]
    yield removal, np.append(rounding * finite, 0.0)[:, None], np.array([-1])
    for start in range(0, columns.size, CHUNK):
        look()
        entering = columns[start : start + CHUNK]
        X, own = unit_columns_beside(problem, entering, A.shape[0])
        rest, shares = project_away(Q, X)
        W = inverse @ shares
        slope, pivot = r @ rest, np.einsum("ij,ij->j", rest, rest) + own
        slopes = np.vstack([slope + W * (z / diagonal)[:, None], slope])
        pivots = np.vstack([pivot + W * W / diagonal[:, None], pivot])
        usable = pivots > (0.5 * DEPENDENT) ** 2
        pivots = np.where(usable, pivots, 1.0)
        gains = np.where(usable, 0.5 * slopes**2 / pivots, 0.0)
        paid = np.append(cost, price if support.size < budget else np.inf)[:, None]
        # error of a slope, from the rounding of the residual and of the correction to it
        terms = np.append(finite, 0.0)[:, None] + gains + np.sqrt(gains) * np.linalg.norm(r)
        errors = (rounding + ROUNDING / np.sqrt(pivots)) * terms
        yield np.where(usable, paid - gains, np.inf), np.where(usable, errors, 0.0), entering


def unit_columns_beside(problem: Problem, columns: Ints, n_rows: int) -> tuple[Floats, Floats]:
    """Return unit columns, padded to the rows of the support, and their share of the ridge.

    The ridge of a column outside the support adds a row of its own, which is not included.
    """
    X = problem.design.columns(columns)
    if problem.sample_weight is not None:
        X = X * np.sqrt(problem.sample_weight)[:, None]
    scale = np.sqrt(np.einsum("ij,ij->j", X, X) + problem.ridge)
    safe = np.where(scale > 0.0, scale, 1.0)
    X = np.vstack([X / safe, np.zeros((n_rows - X.shape[0], columns.size))])
    return X, problem.ridge / safe**2
