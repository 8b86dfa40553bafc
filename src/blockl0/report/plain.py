"""Plain values for JSON and for sentences: short numbers, safe text."""

from __future__ import annotations

from typing import Any

import numpy as np

DIGITS = 6
"""Significant digits of the embedded numbers."""


def compact(value: Any) -> Any:
    """A number with six significant digits, None where there is none; arrays as nested lists."""
    if np.ndim(value):
        return [compact(entry) for entry in value]
    number = float(value)
    if not np.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def clean(value: Any) -> str:
    """Text that can be written to a file: lone surrogates become question marks."""
    return str(value).encode("utf-8", "replace").decode("utf-8")


def ratio(part: float, whole: float) -> float:
    """A share; NaN of nothing."""
    return part / whole if whole > 0.0 else float("nan")


def figure(value: float | None, digits: int = 4) -> str:
    """A number for the eye, as the page's script writes it."""
    if value is None:
        return "–"
    rounded = float(f"{value:.{digits}g}")
    is_whole = rounded.is_integer() and abs(rounded) < 1e15
    return (str(int(rounded)) if is_whole else repr(rounded)).replace("-", "\N{MINUS SIGN}")


def share(value: float) -> str:
    """A share with four decimals, so that a column of them lines up."""
    return "< 0.0001" if 0.0 < value < 5e-5 else f"{value:.4f}".replace("-", "\N{MINUS SIGN}")
