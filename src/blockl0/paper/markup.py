"""Write numbers, CSV files and HTML: tables that scroll in their own box, unfolding lists."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from blockl0.paper.variants import VARIANTS

Frame = Any
"""A table of pandas, whose types say too little to be checked."""
BADGES = {0: "", 1: "①", 2: "②", 3: "③"}
"""Marks of the first places, for readers who do not see colours."""


# -- numbers and files -----------------------------------------------------------------------------


def sci(value: float, digits: int = 3) -> str:
    """Write a number as the paper does, '6.9e+2'."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent):+d}"


def short(value: float) -> str:
    """Write a time or a ratio with two digits: '0.0021', '0.43', '12', '340'."""
    if value == 0.0:
        return "0"
    rounded = float(f"{value:.2g}")
    return (
        f"{rounded:.0f}" if rounded >= 10 else f"{rounded:g}" if rounded >= 1e-4 else sci(value, 2)
    )


def multiple(value: float) -> str:
    """Write a ratio: '1.03', '0.87', '0.0021'."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def write_csv(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table; None becomes an empty field."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(["" if value is None else value for value in row] for row in rows)


def write_frame(path: Path, frame: Frame) -> None:
    """Write a table of pandas; places, of which 0 is none, stay whole numbers."""
    places = {
        name: frame[name].replace(0, None).astype("Int64")
        for name in ("place", "paper_place")
        if name in frame
    }
    frame.assign(**places).to_csv(path, index=False, lineterminator="\n")


# -- elements --------------------------------------------------------------------------------------


def tag(name: str, content: str, **attributes: str) -> str:
    """Return an element; `content` is markup already, `class_` becomes class."""
    text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value
    )
    return f"<{name}{text}>{content}</{name}>"


def count(number: int | str, noun: str) -> str:
    """Write a number with its noun: 1 draw, 5 draws."""
    return f"{number} {noun}" if str(number) == "1" else f"{number} {noun}s"


def counts(numbers: Iterable[int], noun: str) -> str:
    """Write a range of numbers with its noun: 5 draws, 1–5 draws."""
    found = sorted(set(numbers))
    return count(f"{found[0]}–{found[-1]}" if len(found) > 1 else found[0], noun)


def title_of(method: str) -> str:
    """Return the name of a method as the paper writes it, or the title of another column."""
    return escape(VARIANTS[method].title if method in VARIANTS else method)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str) -> str:
    """Return a table of numbers; rows begin with their header, a single cell spans its row.

    The caption stays outside the box that scrolls.
    """
    columns = "".join(tag("th", cell, scope="col") for cell in head)
    lines = []
    for first, *rest in rows:
        if rest:
            cells = tag("th", first, scope="row") + "".join(_cell(cell) for cell in rest)
            lines.append(tag("tr", cells))
        else:
            spanning = tag("th", tag("span", first), scope="colgroup", colspan=str(len(head)))
            lines.append(tag("tr", spanning, class_="group"))
    body = tag("thead", tag("tr", columns)) + tag("tbody", "".join(lines))
    box = tag("div", tag("table", body), class_="scroll", tabindex="0")
    return tag("figure", box + tag("figcaption", caption), class_="table")


def grid(
    found: Frame,
    columns: Sequence[str],
    cell: Callable[[Any], str],
    row_title: str = "",
    *,
    caption: str,
    joined: str = "",
) -> str:
    """Return a table of a frame: a row for each set and value, a column for each method.

    Parameters
    ----------
    found : DataFrame
        With the columns dataset, column and, where rows have titles, value.
    columns : sequence of str
    cell : callable
        Takes a row of the frame as a named tuple.
    row_title : str
        Format of the value of a row; the set then spans a row of its own. Without it there is one
        row for each set.
    caption : str
    joined : str
        Put between set and value where they stand in one title.
    """
    names = ["dataset", "value"] if row_title else ["dataset"]
    cells = {
        (*(getattr(row, name) for name in names), row.column): cell(row)
        for row in found.itertuples(index=False)
    }
    rows: list[list[str]] = []
    for key in dict.fromkeys(key[:-1] for key in cells):
        if row_title and not joined and [key[0]] not in rows:
            rows.append([key[0]])
        title = key[0] if not row_title else row_title.format(key[1])
        line = (cells.get((*key, column), number("–")) for column in columns)
        rows.append([f"{key[0]}{joined}{title}" if joined else title, *line])
    return table(["", *map(title_of, columns)], rows, caption=caption)


def _cell(content: str) -> str:
    return content if content.startswith("<td") else tag("td", content)


def badge(place: int) -> str:
    """Return the mark of one of the first three places."""
    return f"{BADGES[place]} " if place else ""


def number(main: str, *below: str, place: int = 0) -> str:
    """Return a cell: a number, coloured and marked by its place, and small lines under it."""
    small = "".join(tag("small", line) for line in below if line)
    name = "b" if place else "span"
    return f"<td>{tag(name, badge(place) + main, class_=f'place{place}')}{small}</td>"


def section(name: str, title: str, *content: str) -> str:
    """Return a section of the page."""
    return tag("section", tag("h2", escape(title)) + "".join(content), id=name)


def details(summary: str, content: str) -> str:
    """Return an element that unfolds."""
    return tag("details", tag("summary", summary) + content)


def panels(drawings: Iterable[str]) -> str:
    """Return a grid of drawings."""
    return tag("div", "".join(tag("figure", svg) for svg in drawings), class_="panels")
