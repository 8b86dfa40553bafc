"""What the columns of a table are, learned from all rows at once or part by part.

A table in memory is one part. Of several, statistics are kept that take little memory; they lead to
the same decisions, or to a reason why these cannot be made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from shlex import quote
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables.column_kinds import (
    FEW_CODES,
    MANY_ROWS,
    as_texts,
    date_order,
    is_named_for_rows,
    is_too_long,
    is_whole,
    to_numbers,
)
from blockl0.app.tables.dates import SHORT_YEAR
from blockl0.app.tables.decimals import Decimals, ShownCell, are_points, two_units
from blockl0.app.tables.recipe import MISSING, Choices, Feature, Findings, report_findings
from blockl0.app.tables.rows import is_missing
from blockl0.app.tables.spellings import SAMPLE, first_code, place_of, undress
from blockl0.units import is_rounding

Floats = NDArray[np.float64]

MOST_TEXTS = 100_000
"""Most levels of a column to remember."""
GROUPED_FROM = 1000.0
"""Numbers from here on may have a thousands separator."""
REPEATED = 0.5
"""Levels per row above which text is not a category by default."""
UNIT = re.compile(r"[-+\u2212\u2013]?\s*\d[\d.,]*\s*(?P<unit>[^\d\s.,()+-]\D{0,11})")
"""A number followed by letters, such as 5 kg."""
WORDY, UNIQUE = 3.0, 0.9
"""Words per text of free text, at least; levels per row of an identifier, at least."""


def learn(frame: Any, choices: Choices) -> tuple[tuple[Feature, ...], tuple[str, ...]]:
    """Learn the features of a table in memory, with notes on what was done."""
    found: Findings = Findings(dict)
    features: list[Feature] = []
    for name in frame.columns:
        column = ColumnStats(name)
        column.add(frame[name], choices)
        features += column.features(choices, found)
    return tuple(features), report_findings(found, choices, len(frame))


@dataclass
class ColumnStats:
    """Statistics of one column, updated with every chunk.

    Attributes
    ----------
    is_index : bool
        Whether it is the first column and has no name, as when row numbers were saved too.
    n_rows, n_missing : int
    kinds : dict
        For each kind found in some chunk, where that was first.
    low, high, total : float
        Minimum and maximum of the numbers, and their sum where gaps are filled by the mean.
    levels : dict
        The distinct texts, in order of appearance.
    n_texts : int
        Rows with a text, as long as all distinct texts were remembered.
    """

    name: str
    is_index: bool = False
    n_rows: int = 0
    n_missing: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    low: float = np.inf
    high: float = -np.inf
    total: float = 0.0
    levels: dict[str, None] = field(default_factory=dict)
    n_texts: int = 0
    whole: set[bool] = field(default_factory=set)
    codes: set[float] = field(default_factory=set)
    orders: dict[str, str] = field(default_factory=dict)
    ranges: list[tuple[float, float]] = field(default_factory=list)
    repeats: bool = False
    is_long: bool = False
    has_digits: bool = False
    code: str | None = None
    first: str = ""
    grouped: ShownCell | None = None
    plain: str | None = None
    units: dict[str, ShownCell] = field(default_factory=dict)
    median: float | None = None

    def add(self, series: Any, choices: Choices, found: Decimals | None = None) -> None:
        """Update the statistics with the next rows; `found` says how a part spells its numbers."""
        missing = is_missing(series)
        n_missing = int(missing.sum())
        self.n_rows, self.n_missing = self.n_rows + len(series), self.n_missing + n_missing
        if n_missing == len(series):
            return
        kind = choices.kind_of(series)
        # what is shown of it: cells are slow to take, and most columns are numbers in every part
        is_shown = kind not in self.kinds and (found is not None or kind == "date")
        self.kinds.setdefault(kind, self._show_first(series, missing) if is_shown else "")
        self.has_digits |= kind == "date" and series.dtype.kind in "iuf"
        if kind == "text":
            self._add_texts(series)
        elif kind == "number" or choices.dates == "days":
            self._add_numbers(series, kind, choices, found)

    def _show_first(self, series: Any, missing: Any) -> str:
        """Show the first cell that is not missing, remembering that of the column."""
        at = int(np.argmin(missing))
        self.first = self.first or str(series.iloc[at])
        return f"{str(series.iloc[at])!r} in {place_of(series, at)}"

    def _add_texts(self, series: Any) -> None:
        self.code = self.code or first_code(series)
        if series.dtype.kind == "f":
            self.whole.add(is_whole(series))
        if len(self.levels) <= MOST_TEXTS:
            texts = as_texts(series).dropna()
            self.levels.update(dict.fromkeys(texts.unique().tolist()))
            self.n_texts += len(texts)

    def _add_numbers(
        self, series: Any, kind: str, choices: Choices, found: Decimals | None
    ) -> None:
        order = None
        if kind == "date":
            order = date_order(series) if choices.date_order == "auto" else choices.date_order
            if order is not None:
                self.orders.setdefault(order, place_of(series, 0))
        values = to_numbers(series, self.name, kind, order)
        known = values[~np.isnan(values)] if self.n_missing else values
        self.low = min(self.low, float(known.min()))
        self.high = max(self.high, float(known.max()))
        if choices.impute == "mean":
            self.total += float(np.nansum(values))
        if choices.impute == "median":  # of a table in memory only
            self.median = float(np.median(known))
        if kind == "number":
            self._look_for_codes(series, known, is_part=found is not None)
            if found is not None:
                self._look_at_spellings(values, series, found)

    def _look_for_codes(self, series: Any, known: Floats, is_part: bool) -> None:
        """Track numbers that number the rows, are too long, or may be codes."""
        whole = is_whole(series)
        self.whole.add(whole)
        self.is_long |= is_too_long(series)
        if self.is_index or is_named_for_rows(self.name):
            self.repeats |= not (whole and bool(series.is_unique))
            self.ranges.append((float(known.min()), float(known.max())))
        # fractions are no codes; in a part they may yet be all that the column holds
        if (whole or is_part) and len(self.codes) <= FEW_CODES:
            # the first cells tell most columns apart from codes, at little cost
            self.codes.update(np.unique(known[: 20 * FEW_CODES]).tolist())
            if len(self.codes) <= FEW_CODES:
                import pandas

                self.codes.update(pandas.unique(known).tolist())

    def _look_at_spellings(self, values: Floats, series: Any, found: Decimals) -> None:
        """Track units, and thousands separators used in some parts only."""
        if self.name in found.looked:
            self.units = found.looked[self.name].units | self.units
            self.grouped = self.grouped or found.thousands(self.name)
            return
        # a part without marks reads 1660 where another one writes 1.660: remember where
        large = np.abs(values) >= GROUPED_FROM
        has_marks = (values != np.rint(values)) & ~np.isnan(values)
        # like 1.660, and nothing shows a decimal point
        is_open = has_marks.any() and not are_points(values).any()
        if self.plain is None and (large.any() or is_open):
            self.plain = place_of(series, int(np.argmax(large | has_marks)))
        if "" not in self.units and values.any():
            row = int(np.argmax((values != 0.0) & ~np.isnan(values)))
            self.units[""] = ShownCell(self.name, place_of(series, row), f"{values[row]:.10g}")

    @property
    def mean(self) -> float:
        """Mean of the numbers."""
        return self.total / max(self.n_rows - self.n_missing, 1)

    @property
    def is_constant(self) -> bool:
        """Whether all numbers are the same."""
        low, high = np.array([self.low]), np.array([self.high])
        return bool(is_rounding(low, high)[0])

    @property
    def few_values(self) -> list[float] | None:
        """The distinct numbers, ascending; None if there are many."""
        return sorted(self.codes) if len(self.codes) <= FEW_CODES else None

    def kind(self) -> str:
        """Return the kind of the column, refusing chunks that disagree."""
        if len(self.kinds) > 1:
            (kind, shown), (other, seen) = list(self.kinds.items())[:2]
            name = quote(self.name)
            # eight digits may be a date in one chunk and not in another
            numbers = f"--as-number {name} takes all cells for numbers, " * self.has_digits
            raise ValueError(
                f"Column {self.name!r} holds a {kind} as {shown} and a {other} as {seen}: what it "
                f"is cannot be told from parts of the file. {numbers}--as-category {name} takes "
                f"all cells for texts, --drop {name} leaves the column out; with --na TEXT a text "
                "stands for a missing value."
            )
        return next(iter(self.kinds))

    def features(self, choices: Choices, found: Findings) -> list[Feature]:
        """Make the features of the column, recording what was found."""
        if self.n_missing == self.n_rows:
            found["empty"][self.name] = None
            return []
        kind = self.kind()
        if kind == "text":
            return self._text_features(choices, found)
        if kind == "date" and choices.dates != "days":
            found["dates"][self.name] = None
            if self.has_digits:
                found["digits"][self.name] = int(float(self.first))
            return []
        self.refuse_spellings()
        if kind == "number" and self.name not in choices.as_number and self._is_left_out(found):
            return []
        if self.n_missing:
            found["missing"][self.name] = self.n_missing
        # also without gaps: new rows may have some
        fill = self.mean if choices.impute == "mean" else self.median
        return [Feature(self.name, self.name, kind, None, fill, None, self._order())]

    def _is_left_out(self, found: Findings) -> bool:
        """Check if numbers are identifiers, recording possible codes."""
        if self.is_long or self._numbers_the_rows():
            found["long" if self.is_long else "numbered"][self.name] = None
            return True
        n_codes = len(self.codes)
        if self.whole == {True} and 3 <= n_codes <= FEW_CODES and self.n_rows >= MANY_ROWS:
            found["codes"][self.name] = n_codes
        return False

    def _numbers_the_rows(self) -> bool:
        """Check if the column numbers the rows, refusing it if that is unclear."""
        if self.repeats or not self.ranges or self.n_rows < 3:
            return False
        ranges = sorted(self.ranges)
        if all(a[1] < b[0] for a, b in pairwise(ranges)):
            return True
        name = quote(self.name)
        raise ValueError(
            f"Column {self.name!r} may number the rows: its whole numbers differ within each part "
            f"of the file, but parts overlap. --as-number {name} takes them for numbers, --drop "
            f"{name} leaves the column out."
        )

    def refuse_spellings(self) -> None:
        """Raise if chunks contradict each other in units or thousands separators."""
        said = two_units(self.name, self.units)
        if said is not None:
            raise ValueError(said)
        if self.grouped is not None and self.plain is not None:
            cell, name = self.grouped, quote(self.name)
            raise ValueError(
                f"Column {self.name!r} sets thousands apart in {cell.row}, {cell.text!r}, but not "
                f"in {self.plain}: one of them may be something else. Write the column in one way, "
                f"or leave it out with --drop {name}."
            )

    def _order(self) -> str | None:
        if len(self.orders) > 1:
            said = " and ".join(f"{order} from {row} on" for order, row in self.orders.items())
            raise ValueError(
                f"Column {self.name!r} holds dates {said}; write them in one way, or leave the "
                f"column out with --drop {quote(self.name)}."
            )
        return next(iter(self.orders), None)

    def _text_features(self, choices: Choices, found: Findings) -> list[Feature]:
        is_asked = self.name in choices.as_category
        if self.code is not None and not is_asked:
            found["zeros"][self.name] = f"as {self.code}"
        if choices.text in ("drop", "refuse") and not is_asked:
            found["texts"][self.name] = None
            return []
        if len(self.whole) > 1:
            raise ValueError(
                f"Column {self.name!r} holds whole numbers in some parts of the file and fractions "
                "in others, and is to be a category; leave it out with --drop, or give texts."
            )
        levels, n_missing = list(self.levels), self.n_missing
        return _text_features(self.name, levels, self.n_texts, n_missing, choices, found)


# -- texts -----------------------------------------------------------------------------------------


def _text_features(
    name: str, levels: list[str], n_texts: int, n_missing: int, choices: Choices, found: Findings
) -> list[Feature]:
    """Make features of a text column, given its levels and number of texts."""
    is_asked = name in choices.as_category
    if not is_asked and all(map(SHORT_YEAR.fullmatch, levels)):
        found["short_years"][name] = levels[0]
        return []
    is_open = is_asked or choices.text == "one-hot"
    if len(levels) > choices.max_levels or not (is_open or _do_repeat(levels, n_texts)):
        _sort_out(name, n_texts, levels, found, is_asked)
        return []
    levels = sorted(levels)
    if n_missing:
        found["missing"][name] = n_missing
        # a text that equals MISSING is the same level
        levels = [*(level for level in levels if level != MISSING), MISSING]
    found["coded"][name] = len(levels)
    # beside an intercept all levels but one suffice: the first is the reference
    is_whole = choices.levels == "together" and len(levels) > 1
    used = _levels_used(levels, is_whole)
    is_filled = choices.impute is not None or n_missing
    fills = {level: float(level == MISSING) for level in used} if is_filled else {}
    return [
        Feature(
            f"{name}={level}",
            name,
            "level",
            level,
            fills.get(level),
            tuple(levels),
            reference=levels[0] if is_whole else None,
        )
        for level in used
    ]


def _do_repeat(levels: Sequence[str], n_texts: int) -> bool:
    """Check if texts repeat often enough to be a category."""
    return len(levels) <= max(2.0, REPEATED * n_texts)


def _levels_used(levels: list[str], is_whole: bool) -> list[str]:
    """Select the sorted levels that become columns: without the first if it is redundant."""
    return levels[1:] if is_whole or len(levels) == 2 else levels


def _sort_out(name: str, n_texts: int, levels: list[str], found: Findings, is_asked: bool) -> None:
    """Record why a text column is not a category."""
    sample = levels[:SAMPLE]
    n_words = sum(len(level.split()) for level in sample) / len(sample)
    if is_asked:
        found["crowded"][name] = len(levels)
    elif measured := _with_unit(sample):
        found["measured"][name] = measured
    elif n_words >= WORDY:
        found["free"][name] = None
    elif len(levels) > UNIQUE * n_texts:
        found["identifiers"][name] = None
    else:
        found["crowded"][name] = len(levels)


def _with_unit(levels: list[str]) -> str | None:
    """Return the first text if all are numbers followed by the same unknown unit."""
    matches = [m for level in levels if (m := UNIT.fullmatch(level)) and not undress(level)]
    units = Counter(match["unit"] for match in matches)
    if not units or max(units.values()) < UNIQUE * len(levels):
        return None
    return matches[0].string
