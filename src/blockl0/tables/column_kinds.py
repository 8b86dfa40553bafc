"""What a column of a table holds: numbers, dates or text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

MOSTLY = 0.8
"""Share of numbers from which a column of text is a column of numbers with something wrong."""
ISO_DATE = r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(\.\d+)?(Z|[+-]\d{2}:?\d{2})?)?"
DISGUISED = (
    r"[(]?[-+]?\s*[$€£¥]?\s*[-+]?(?:\d{1,3}(?:[,'’ \u00a0\u202f]\d{3})+|\d+)(?:[.,]\d+)?"
    r"\s*[%$€£¥]?[)]?"
)
"""Numbers that are not read as such: with separated thousands, a unit, or a decimal comma."""
COMMA_NUMBER = r"[-+]?(?:[1-9]\d{0,2}(?:\.\d{3})+(?:,\d*)?|(?:\d+(?:,\d*)?|,\d+)(?:[eE][-+]?\d+)?)"
"""A number as it is written with a decimal comma: with points between its thousands or not."""


def kind_of(series: Any) -> str:
    """What a column holds: "number", "date" or "text"; mostly numbers with some text is refused."""
    from pandas.api import types

    if types.is_complex_dtype(series.dtype):
        raise ValueError(f"Column {series.name!r} holds complex numbers; give real ones.")
    if types.is_timedelta64_dtype(series.dtype) or types.is_datetime64_any_dtype(series.dtype):
        return "date"
    if types.is_numeric_dtype(series.dtype):
        return "number"
    values = series.dropna()
    if len(values) == 0 or values.map(lambda value: isinstance(value, bool | np.bool_)).all():
        return "number"
    texts = values.astype(str)
    if texts.str.fullmatch(ISO_DATE).all():
        return "date"
    is_number = _parse(texts).notna()
    if is_number.all():
        return "number"
    if is_number.mean() >= MOSTLY:
        others = list(dict.fromkeys(texts[~is_number]))
        shown = ", ".join(repr(text) for text in others[:3])
        raise ValueError(
            f"Column {series.name!r} holds numbers, but also {shown} in {int((~is_number).sum())} "
            f"of {len(texts)} rows; correct them, or call them missing with --na {others[0]!r}, or "
            f"leave the column out with --drop {series.name!r}."
        )
    is_disguised = texts.str.strip().str.fullmatch(DISGUISED) & ~is_number
    if (is_number | is_disguised).mean() >= MOSTLY:
        shown = texts[is_disguised].iloc[0]
        has_comma = texts[is_disguised].str.strip().str.fullmatch(COMMA_NUMBER).all()
        option = " --decimal comma reads commas as decimal." if has_comma else ""
        raise ValueError(
            f"Column {series.name!r} holds numbers in a form that is not read, as {shown!r}; write "
            "them without separated thousands and units, with a decimal point, or leave the "
            f"column out with --drop {series.name!r}.{option}"
        )
    return "text"


def _parse(texts: Any) -> Any:
    import pandas

    return pandas.to_numeric(texts, errors="coerce")


def to_numbers(series: Any, name: str, kind: str) -> NDArray[np.float64]:
    """A column of numbers or dates as float64, NaN where missing; text in it is refused."""
    import pandas

    if kind == "date":
        if series.dtype.kind == "m":
            return (series / pandas.Timedelta(days=1)).to_numpy(np.float64)
        days = pandas.to_datetime(series, utc=True, errors="coerce")
        values = ((days - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(days=1)).to_numpy(
            np.float64
        )
    elif series.dtype.kind in "biuf":
        return series.to_numpy(np.float64)
    else:
        plain = series.map(float, na_action="ignore") if _is_bool(series) else series
        values = _parse(plain).to_numpy(np.float64, na_value=np.nan)
    is_bad = np.isnan(values) & series.notna().to_numpy()
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(
            f"Column {name!r} must hold {kind}s, got {series.iloc[row]!r} in row {row}."
        )
    return values


def _is_bool(series: Any) -> bool:
    return bool(series.map(lambda v: isinstance(v, bool | np.bool_), na_action="ignore").any())
