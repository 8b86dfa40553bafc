"""HTML of the page: tables that scroll in their own box, figures that follow the theme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from blockl0.paper.variants import VARIANTS

BADGES = {0: "", 1: "①", 2: "②", 3: "③"}
"""Marks of the first places, for readers who do not see colours."""


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
    """Return the name of a method as the paper writes it."""
    return escape(VARIANTS[method].title)


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
