"""Plain values for JSON and sentences: short numbers, safe text."""

from __future__ import annotations

from typing import Any

import numpy as np

DIGITS = 6
"""Significant digits of the embedded numbers."""


def compact(value: Any) -> Any:
    """Round to six significant digits, None if not finite; arrays become nested lists."""
    if np.ndim(value):
        return [compact(entry) for entry in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def clean(value: Any) -> str:
    """Make text safe to write: lone surrogates become question marks."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def ratio(part: float, whole: float) -> float:
    """Divide; NaN if the whole is not positive."""
    return part / whole if whole > 0.0 else float("nan")


def figure(value: float | None, digits: int = 4) -> str:
    """Format a number as the page's script does."""
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    is_whole = rounded.is_integer() and abs(rounded) < 1e15
    return (str(int(rounded)) if is_whole else repr(rounded)).replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """Format a share with four decimals, so that a column of them aligns."""
    return "< 0.0001" if 0.0 < value < 5e-5 else f"{value:.4f}".replace("-", "\N{MINUS SIGN}")
