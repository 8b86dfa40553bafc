"""Kinds of table columns: numbers, dates or text; and numbers that are codes or identifiers."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockl0.app.tables import dates
from blockl0.app.tables.spellings import SAMPLE, first_code, is_categorical, place_of, undress
from blockl0.text import cut

MOSTLY = 0.8
"""Share of numbers above which a text column counts as numeric with errors."""
FEW_TEXTS = 3
"""This few texts among many different numbers are placeholders, such as for missing values."""
LIKE_NUMBER = re.compile(r"[-+\u2212\u2013]?\d[\d.,' ]*[-\u2212\u2013]{1,2}")
"""Spellings of numbers that are not read: 5- is -5 in some programs, and 5,- is 5 on price tags."""
NOTHING = re.compile(r"(?!)")
EXACT = 2**53
"""Largest integer that floats represent exactly."""
FEW_CODES, MANY_ROWS = 12, 30
"""This few different integers in this many rows may be codes."""
IDENTIFIER = re.compile(
    r"(?:.*[^a-z0-9])?(?:(?:row)?id|nr|no|index|key|uuid|row|row ?(?:names?|nr|num|number))", re.I
)
CAMEL_IDENTIFIER = re.compile(r".*[a-z](?:Id|ID|Nr|No|Index|Key)")
"""Names of columns that number the rows."""


def kind_of(series: Any) -> str:
    """Classify a column as "number", "date" or "text", refusing numbers mixed with text."""
    from pandas.api import types

    if types.is_complex_dtype(series.dtype):
        raise ValueError(f"Column {series.name!r} holds complex numbers; give real ones.")
    if types.is_timedelta64_dtype(series.dtype) or types.is_datetime64_any_dtype(series.dtype):
        return "date"
    if is_categorical(series):
        return "text"
    if types.is_bool_dtype(series.dtype):
        return "number"
    if types.is_numeric_dtype(series.dtype):
        return "date" if dates.is_digits(series) else "number"
    values = series.dropna()
    is_mixed = series.dtype == object  # columns of any other type hold only text
    if len(values) == 0 or (is_mixed and values.map(_is_truth).all()):
        return "number"
    counts = values.astype(str).str.strip().value_counts(sort=False)
    if all(map(dates.ISO.fullmatch, counts.index)):
        return "date"
    if dates.possible_orders(counts.index) is not None or _are_mostly_dates(counts):
        return "date"
    is_plain = _parse(counts.index.to_series()).notna().to_numpy()
    if is_plain.all():
        return "number" if first_code(series) is None else "text"
    _refuse_dirty_numbers(series, counts, is_plain)
    return "text"


def _are_mostly_dates(counts: Any) -> bool:
    """Check if a text column holds mostly dates."""
    if dates.parse(counts.index[0]) is None and dates.parse(counts.index[-1]) is None:
        return False  # parsing long texts is slow
    is_date = np.array([dates.parse(text) is not None for text in counts.index])
    return bool(counts[is_date].sum() >= MOSTLY * counts.sum())


def _refuse_dirty_numbers(series: Any, counts: Any, is_plain: Any) -> None:
    """Refuse a column of numbers with errors.

    Most of its cells are numbers in some spelling, or there are many numbers and few texts, as when
    a point stands for a missing value.
    """
    also = LIKE_NUMBER if len(counts) > FEW_CODES else NOTHING  # 2- and 3+ may be grades

    def is_numeric(text: str) -> bool:
        return undress(text) is not None or also.fullmatch(text) is not None

    sample = [is_numeric(text) for text in counts.index[:SAMPLE]]
    if not is_plain.any() and sum(sample) < MOSTLY * len(sample) / 2:
        return  # parsing long texts is slow
    is_number = is_plain | np.array([is_numeric(text) for text in counts.index])
    n_cells, n_numbers = int(counts.sum()), int(is_number.sum())
    is_varied = n_numbers > FEW_CODES or n_numbers > max(4.0, 0.5 * counts[is_number].sum())
    has_few_others = len(counts) - n_numbers <= FEW_TEXTS and is_varied
    if counts[is_number].sum() < MOSTLY * n_cells and not has_few_others:
        return
    if not is_number.all():
        others = list(counts.index[~is_number])
        n_others = int(counts[~is_number].sum())
        where = _place(series, others[0])
        raise ValueError(dirty_message(series.name, others, n_others, n_cells, where))
    shown = next((t for t in counts.index if undress(t) is None), counts.index[~is_plain][0])
    hint = " --decimal comma reads commas as decimal, --decimal point takes them for thousands."
    raise ValueError(
        f"Column {series.name!r} holds numbers in a form that is not read, as {shown!r} in "
        f"{_place(series, shown)}; write them without separated thousands and with a decimal "
        f"point, as -1660.5, or leave the column out with --drop {series.name!r}."
        f"{hint if {*',.'} & {*shown} else ''}"
    )


def dirty_message(name: Any, others: list[str], n_others: int, n_cells: int, where: str) -> str:
    """Say which texts a column of numbers also holds, and what to do."""
    shown = ", ".join(repr(cut(text)) for text in others[:3])
    return (
        f"Column {name!r} holds numbers, but also {shown} in {n_others} of {n_cells} rows (the "
        f"first is {where}); correct them, or call them missing with --na {others[0]!r}, or leave "
        f"the column out with --drop {name!r}."
    )


def _place(series: Any, text: str) -> str:
    """Locate the first row with a text."""
    return place_of(series, int(np.argmax((series.astype(str).str.strip() == text).to_numpy())))


def _parse(texts: Any) -> Any:
    import pandas

    return pandas.to_numeric(texts, errors="coerce")


def date_order(series: Any) -> str | None:
    """Decide if dates have the day or the month first; None if that makes no difference.

    Raises a ValueError for an ambiguous or contradictory column.
    """
    if series.dtype.kind in "biufmM":
        return None
    values = series.dropna()
    texts = [t for t in values.astype(str).str.strip().unique() if dates.parse(t) is not None]
    if all(map(dates.ISO.fullmatch, texts)) or not dates.needs_order(texts):
        return None
    orders = dates.possible_orders(texts) or set()
    if len(orders) == 1:
        return orders.pop()
    if orders:
        shown = next(text for text in texts if dates.needs_order([text]))
        raise ValueError(
            f"Column {series.name!r} holds dates as {shown!r} ({_place(series, shown)}), in which "
            "the day or the month may come first; --date-order day-first or month-first decides, "
            f"--drop {series.name!r} leaves the column out."
        )
    day, month = (
        next(text for text in texts if (dates.possible_orders([text]) or set()) == {order})
        for order in dates.ORDERS
    )
    raise ValueError(
        f"Column {series.name!r} holds {day!r} in {_place(series, day)}, with the day first, and "
        f"{month!r} in {_place(series, month)}, with the month first; write them in one way, or "
        f"leave the column out with --drop {series.name!r}."
    )


def to_numbers(series: Any, name: str, kind: str, order: str | None = None) -> NDArray[np.float64]:
    """Convert a column of numbers or dates to float64, with NaN for gaps, refusing text."""
    if kind == "date":
        values = _to_days(series, order)
    elif series.dtype.kind in "biuf":
        return series.to_numpy(np.float64)
    else:
        plain = series.map(float, na_action="ignore") if _is_bool(series) else series
        values = _parse(plain).to_numpy(np.float64, na_value=np.nan)
    is_bad = np.isnan(values) & series.notna().to_numpy()
    if is_bad.any():
        row = int(np.argmax(is_bad))
        text = str(series.iloc[row]).strip()
        raise ValueError(
            f"Column {name!r} must hold {kind}s, got {cut(text)!r} in {place_of(series, row)}; "
            f"correct it, or call it missing with --na {text!r}."
        )
    return values


def _to_days(series: Any, order: str | None) -> NDArray[np.float64]:
    """Convert to days since 1970; NaN for gaps and for texts that are not dates."""
    import pandas

    if series.dtype.kind == "m":
        return (series / pandas.Timedelta(days=1)).to_numpy(np.float64)
    if series.dtype.kind in "iuf":
        return dates.digits_to_days(series.to_numpy(np.float64))
    if series.dtype.kind != "M":
        codes, texts = pandas.factorize(series.astype(object))
        texts = [str(text).strip() for text in texts]
        if not all(map(dates.ISO.fullmatch, texts)):
            found = (dates.parse(text) for text in texts)
            days = [None if date is None else date.days(order or "day-first") for date in found]
            known = [np.nan if day is None else day for day in days]
            return np.array([*known, np.nan])[codes]
    days = pandas.to_datetime(series, utc=True, errors="coerce")
    return ((days - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)).to_numpy(np.float64)


def _is_bool(series: Any) -> bool:
    return series.dtype == object and bool(series.dropna().map(_is_truth).any())


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


# -- numbers that may be something else ------------------------------------------------------------


def is_whole(series: Any) -> bool:
    """Check if a numeric column holds only integers."""
    if series.dtype.kind in "iu":
        return True
    if series.dtype.kind != "f":
        return False
    values = series.to_numpy(np.float64, na_value=np.nan)
    # the first cell settles it for most columns
    if len(values) and not np.isnan(values[0]) and values[0] != np.rint(values[0]):
        return False
    values = values[~np.isnan(values)]
    return bool(len(values)) and bool(np.all(values == np.rint(values)))


def is_named_for_rows(name: str) -> bool:
    """Check if the name of a column says that it numbers the rows."""
    return bool(IDENTIFIER.fullmatch(name) or CAMEL_IDENTIFIER.fullmatch(name))


def is_too_long(series: Any) -> bool:
    """Check if integers are too long for a float: codes of some kind, such as parcel numbers."""
    return series.dtype.kind in "iu" and len(series) > 0 and int(series.max()) > EXACT


def as_texts(series: Any) -> Any:
    """Convert the cells of a category to stripped text, 2.0 to 2, keeping gaps."""
    if series.dtype.kind in "iuf" and is_whole(series):
        return series.map(lambda value: str(int(value)), na_action="ignore").astype(object)
    import pandas

    texts = series.astype(object)
    is_text = isinstance(series.dtype, pandas.StringDtype)
    return texts.map(str.strip if is_text else lambda value: str(value).strip(), na_action="ignore")
