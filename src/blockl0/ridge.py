"""The ridge of an estimator: a number, or one in units of the columns' own spreads."""

from __future__ import annotations

from typing import Any, NamedTuple

from blockl0.losses import Loss
from blockl0.validate import check_nonnegative

AUTO = "auto"
"""The default: none for numbers; for labels `FOR_LABELS` per standardized column."""
FOR_LABELS = 1.0
"""As strong as the default of scikit-learn's logistic regression on standardized columns."""
STANDARDIZED = "standardized:"
"""Prefix of a ridge in units of spreads."""


class Ridge(NamedTuple):
    """½·value·Σ_j (s_j w_j)², where s_j is the spread of column j, or one.

    The spread is the standard deviation, or without an intercept the root mean square, so that the
    answer does not depend on the units of the columns.
    """

    value: float
    per_spread: bool = False

    @property
    def given(self) -> float | str:
        """The value of the parameter `ridge` that means the same."""
        return f"{STANDARDIZED}{self.value!r}" if self.per_spread else self.value

    @property
    def words(self) -> str:
        """The ridge as text."""
        return f"{self.value:g}{' per standardized column' if self.per_spread else ''}"


def as_ridge(given: Any, loss: Loss) -> Ridge:
    """Read the parameter `ridge`: "auto", a number, or "standardized:" and a number."""
    if isinstance(given, str) and given == AUTO:
        return Ridge(FOR_LABELS, True) if loss.takes_labels else Ridge(0.0)
    return read_ridge(given)


def read_ridge(given: Any) -> Ridge:
    """Read a number, or "standardized:" and a number."""
    if not isinstance(given, str):
        return Ridge(check_nonnegative("ridge", given))
    kind, _, number = given.rpartition(":")
    try:
        value = float(number) if f"{kind}:" == STANDARDIZED else None
    except ValueError:
        value = None
    if value is None:
        raise ValueError(
            f"`ridge` must be a number, {AUTO!r}, or a number in units of the columns' spreads, as "
            f"in '{STANDARDIZED}0.1', got {given!r}."
        )
    value = check_nonnegative("ridge", value)
    return Ridge(value, value > 0.0)
