"""Numbers, names and tables as text, for all messages, commands and pages."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Sequence
from typing import Any

LISTED = 8
"""Names spelled out before it is said how many more there are."""
BRIEF = 40
"""Characters of a value in a message."""


def short(value: Any) -> str:
    """A number as people read it: four digits of a float, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def percent(share: float) -> str:
    """A share in words: whole percents, or one digit where these would say 0 or 100."""
    value = 100.0 * share
    text = f"{value:.0f}"
    if text in ("0", "-0", "100") and value not in (0.0, 100.0):
        text = f"{value:.1f}"
        text = {"0.0": "less than 0.1", "-0.0": "0", "100.0": "more than 99.9"}.get(text, text)
    return f"{text}\N{NO-BREAK SPACE}%".replace("-", "\N{MINUS SIGN}")


def count(number: int, noun: str) -> str:
    """1 column, 2 columns."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}".replace(",", " ")


def listing(names: Sequence[Any], most: int = LISTED) -> str:
    """'a, b and 3 more'."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")


def counted(names: Sequence[str], noun: str) -> str:
    """'2 columns (a, b)'."""
    return f"{count(len(names), noun)} ({listing(names)})"


def one_line(text: Any) -> str:
    """A name on one line: line breaks and other control characters are blanks."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def clause(error: Any) -> str:
    """What an exception says, to be quoted inside a sentence: without a full stop of its own."""
    return str(error).rstrip(".")


def cut(text: str) -> str:
    """A text that is not too long for a message."""
    return text if len(text) <= BRIEF else text[: BRIEF - 3] + "..."


def did_you_mean(value: Any, names: Iterable[str], prefix: str = "") -> str:
    """' Did you mean …?' for the nearest of the names, after a prefix, or nothing."""
    names, value = list(names), str(value)
    alike = [name for name in names if name.casefold() == value.casefold()]
    near = alike or difflib.get_close_matches(value, names, n=1)
    return f" Did you mean {prefix + near[0]!r}?" if near else ""


def install_hint(*packages: str) -> str:
    """How to get what is missing: by its own name, which works wherever this package is from."""
    return f"pip install {' '.join(packages)}"


def weighted_sum(names: Sequence[str], weights: Iterable[float]) -> list[Any]:
    """'a − 2·b' in parts, with each name as a list of one text."""
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
    """A table as CSV, a line for each row."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()
