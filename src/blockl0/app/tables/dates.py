"""Dates as people write them: the spelling of a column, and days since 1970."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(\.\d+)?(Z|[+-]\d{2}:?\d{2})?)?")
CLOCK = r"(?:[T ]+(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2}(?:\.\d+)?))?)?"
YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})" + CLOCK)
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})" + CLOCK)
SHORT_YEAR = re.compile(r"\s*\d{1,2}([-/.])\d{1,2}\1\d{2}" + CLOCK + r"\s*")
"""Dates with two-digit years, which are not read."""
ORDERS = ("day-first", "month-first")
EPOCH = date(1970, 1, 1).toordinal()
FIRST_DIGITS, LAST_DIGITS = 1900_01_01, 2100_12_31
"""Integers between these may be dates of eight digits."""


class Written(NamedTuple):
    """A parsed date: year, two numbers, the separator, and the time of day."""

    year: int
    first: int
    second: int
    is_year_first: bool
    has_points: bool
    seconds: float

    def orders(self) -> set[str]:
        """Return the orders in which this is a date."""
        if self.is_year_first or self.has_points:
            known = "month-first" if self.is_year_first else "day-first"
            return set(ORDERS) if self.days(known) is not None else set()
        return {order for order in ORDERS if self.days(order) is not None}

    def days(self, order: str) -> float | None:
        """Convert to days since 1970; None if there is no such day."""
        is_month_first = self.is_year_first or (order == "month-first" and not self.has_points)
        month, day = (self.first, self.second) if is_month_first else (self.second, self.first)
        try:
            return date(self.year, month, day).toordinal() - EPOCH + self.seconds / 86_400.0
        except ValueError:
            return None


def parse(text: str) -> Written | None:
    """Parse a text as a date; None for any other form."""
    found = YEAR_FIRST.fullmatch(text)
    is_year_first = found is not None
    found = found or YEAR_LAST.fullmatch(text)
    if found is None:
        return None
    year, first, second = found[1], found[3], found[4]
    if not is_year_first:
        year, first, second = found[4], found[1], found[3]
    hour, minute, rest = (float(found[name] or 0) for name in ("hour", "minute", "second"))
    seconds = 3600.0 * hour + 60.0 * minute + rest
    return Written(int(year), int(first), int(second), is_year_first, found[2] == ".", seconds)


def possible_orders(texts: Iterable[str]) -> set[str] | None:
    """Return the orders that make all texts dates; empty if they contradict each other.

    None if some text is not a date. Both orders if they agree or cannot be told apart: see
    `needs_order`.
    """
    left: set[str] = set(ORDERS)
    for text in texts:
        found = parse(text)
        if found is None or not found.orders():
            return None
        left &= found.orders()
    return left


def needs_order(texts: Iterable[str]) -> bool:
    """Check if some date depends on the order of day and month."""
    found = (parse(text) for text in texts)
    return any(date is not None and date.days(ORDERS[0]) != date.days(ORDERS[1]) for date in found)


def is_digits(series: Any) -> bool:
    """Check if integers are all dates of eight digits, such as 20120131."""
    values = series.to_numpy(np.float64, na_value=np.nan)
    # the first cell settles it for most columns
    if len(values) < 2 or not (FIRST_DIGITS <= values[0] <= LAST_DIGITS or np.isnan(values[0])):
        return False
    values = values[~np.isnan(values)]
    if len(values) < 2 or not FIRST_DIGITS <= values.min() <= values.max() <= LAST_DIGITS:
        return False
    return bool(np.isfinite(digits_to_days(values)).all())


def digits_to_days(values: Any) -> Floats:
    """Convert integers such as 20120131 to days; NaN if they are not dates."""
    known, places = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    days = np.full(len(known), np.nan)
    for i, value in enumerate(known.tolist()):
        if value == value and value == int(value) and FIRST_DIGITS <= value <= LAST_DIGITS:
            year, rest = divmod(int(value), 10_000)
            made = Written(year, *divmod(rest, 100), True, False, 0.0).days("month-first")
            days[i] = np.nan if made is None else made
    return days[places.reshape(-1)]
