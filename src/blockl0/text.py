"""Numbers, names and tables as text, for all messages, commands and pages."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Sequence
from typing import Any

LISTED = 8
"""Names listed before saying how many more there are."""
BRIEF = 40
"""Characters of a value in a message."""


def short(value: Any) -> str:
    """Format a number readably: four digits for a float, anything else unchanged."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """Format a share: whole percents, or one digit if these would be 0 or 100."""
    value = 100.0 * share
    text = f"{value:.0f}"
    if text in ("0", "-0", "100") and value not in (0.0, 100.0):
        text = f"{value:.1f}"
        text = {"0.0": "less than 0.1", "-0.0": "0", "100.0": "more than 99.9"}.get(text, text)
    return f"{text}\N{NO-BREAK SPACE}%".replace("-", "\N{MINUS SIGN}")


def count(number: int, noun: str) -> str:
    """Format a count: 1 column, 2 columns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", " ")


def listing(names: Sequence[Any], most: int = LISTED) -> str:
    """List names: 'a, b and 3 more'."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")


def counted(names: Sequence[str], noun: str) -> str:
    """Format a count with names: '2 columns (a, b)'."""
    return f"{count(len(names), noun)} ({listing(names)})"


def one_line(text: Any) -> str:
    """Put a name on one line, replacing control characters by blanks."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def clause(error: Any) -> str:
    """Quote an exception inside a sentence, without its full stop."""
    return str(error).rstrip(".")


def cut(text: str) -> str:
    """Shorten a text for a message."""
    return text if len(text) <= BRIEF else text[: BRIEF - 3] + "..."


def did_you_mean(value: Any, names: Iterable[str], prefix: str = "") -> str:
    """Suggest the nearest name, as ' Did you mean …?', or nothing."""
    names, value = list(names), str(value)
    alike = [name for name in names if name.casefold() == value.casefold()]
    near = alike or difflib.get_close_matches(value, names, n=1)
    return f" Did you mean {prefix + near[0]!r}?" if near else ""


def install_hint(*packages: str) -> str:
    """Say how to install missing packages, by their own names."""
    return f"pip install {' '.join(packages)}"


def weighted_sum(names: Sequence[str], weights: Iterable[float]) -> list[Any]:
    """Format 'a − 2·b' in parts, with each name as a list of one text."""
    parts: list[Any] = []
    for name, weight in zip(names, weights, strict=True):
        sign = "\N{MINUS SIGN}" if weight < 0.0 else "+"
        size = f"{abs(weight):.6g}"
        before = f" {sign} " if parts else sign.replace("+", "")
        before += "" if size == "1" else f"{size}·"
        parts += [*([before] if before else []), [name]]
    return parts


def as_text(parts: Iterable[Any]) -> str:
    """Join the parts of a sentence."""
    return "".join(part[0] if isinstance(part, list) else part for part in parts)


def as_csv(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Format a table as CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
