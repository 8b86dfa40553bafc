"""Charge groups for their coefficients, so that their sizes count and not only their number.

Among sets of equally many groups the loss alone favours large groups: 24 coefficients of noise
lower it more than one that matters a little. A criterion such as BIC charges every coefficient. Its
best set of each size minimizes the loss plus a price for every coefficient beyond the first of each
group, at the price for which loss and criterion agree (`selection.coefficient_prices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.estimators.binding import rows_of
from blockl0.path import Path
from blockl0.selection import coefficient_prices, information_criterion
from blockl0.units import COLUMNS, Units

Floats = NDArray[np.float64]
Points = list[tuple[float, int]]

BY_COEFFICIENTS = "coefficients"
"""The value of `costs` that charges groups for their coefficients."""
MOST_STEPS = 6
"""Paths from each end until the prices agree with the losses; two or three are usual."""
MOST_PRODUCTS = 10**9
"""Multiplications up to which dependent columns inside a group are looked for."""
DEPENDENT = 1e-8
"""Singular values below this share of the largest are those of dependent columns."""


def extra_coefficients(X: Any, units: Units, fit_intercept: bool = True) -> Floats | None:
    """Return the free coefficients of every unit beyond its first, (G,); None where all are 0.

    With an intercept, five of the six levels of a category are free. Large groups in many rows are
    counted without a search for dependent columns.
    """
    n = X.shape[1]
    if units is COLUMNS:
        return None
    rows = rows_of(X)
    sizes = np.array([units.members(unit).size for unit in range(units.number(n))])
    for unit in np.flatnonzero(sizes > 1):
        if X.shape[0] * float(sizes[unit]) ** 2 <= MOST_PRODUCTS and not rows.is_stored:
            rank = _rank(rows.rows_like(units.members(int(unit))), fit_intercept)
            # a group without any direction is never chosen
            sizes[unit] = max(rank, 1)
    return sizes - 1.0 if sizes.max(initial=1) > 1 else None


def column_costs(X: Any, units: Units, fit_intercept: bool = True) -> Floats | None:
    """Return the extra coefficients of every column's unit, (n,), in the form of `costs`."""
    extra = extra_coefficients(X, units, fit_intercept)
    return None if extra is None else extra[units.each(np.arange(X.shape[1]))]


def _rank(columns: Any, fit_intercept: bool) -> int:
    A = np.asarray(columns.toarray() if hasattr(columns, "toarray") else columns, dtype=np.float64)
    if fit_intercept:
        A = A - A.mean(axis=0)
    lengths = np.sqrt(np.einsum("ij,ij->j", A, A))
    if not lengths.any():
        return 0
    A = A[:, lengths > 0.0] / lengths[lengths > 0.0]
    values = np.linalg.svd(np.linalg.qr(A, mode="r"), compute_uv=False)
    return int(np.count_nonzero(values > DEPENDENT * values[0]))


def charge_of(problem: Any, coef: Floats, price: float) -> float:
    """Compute the charge of a point for the coefficients of its groups."""
    if problem.costs is None or price == 0.0:
        return 0.0
    return price * float(problem.costs[problem.occupied(problem.from_given(coef))].sum())


def priced_points(
    budgets: Iterable[int], criterion: str, solve: Callable[[Points], Path], null_loss: float
) -> Points:
    """Return (price, budget) pairs whose best points are the best of their size by a criterion.

    The right price depends on the loss of the point, and a lower price never gives a higher loss.
    So prices that agree with their points are approached from both sides: from zero, and from the
    price for `null_loss`, the loss without columns. If the two ends differ, the criterion decides.
    """
    budgets = list(budgets)
    path = solve([(0.0, budget) for budget in budgets])
    if not path.has_scale:
        price = float(coefficient_prices(criterion, path, path.losses)[0])
        return [(price, budget) for budget in budgets]
    low = _settled(path, criterion, solve, path.losses)
    high = _settled(path, criterion, solve, np.full(len(path), null_loss))
    size = min(len(low), len(high))
    values = [information_criterion(criterion, end)[:size] for end in (low, high)]
    losses = np.where(values[1] < values[0], high.losses[:size], low.losses[:size])
    prices = _falling(coefficient_prices(criterion, path, losses))
    return [(float(prices[min(i, size - 1)]), budget) for i, budget in enumerate(budgets)]


def _settled(path: Path, criterion: str, solve: Callable[[Points], Path], losses: Floats) -> Path:
    """Iterate a path until its prices are those for its own losses."""
    for _ in range(MOST_STEPS):
        before = path
        prices = _falling(coefficient_prices(criterion, path, losses))
        budgets = path.n_nonzero_coefs[: len(prices)]
        path = solve(list(zip(prices.tolist(), budgets.tolist(), strict=True)))
        losses = path.losses
        is_cut = len(path) < len(before)
        if is_cut or all(map(np.array_equal, path.supports, before.supports)):
            break
    return path


def _falling(prices: Floats) -> Floats:
    """Make prices along a path non-increasing: more columns explain more."""
    return np.minimum.accumulate(prices)
