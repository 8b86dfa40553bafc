"""Documentation of the estimators: shared docstring entries, and links from a notebook.

Entries are written once and expanded in every class, since notebooks show a tooltip for each
parameter with an entry of its own.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import metadata
from itertools import pairwise
from typing import NamedTuple, TypeVar

VARIABLE = "BLOCKL0_DOCS"
"""Environment variable for the address of the documentation."""
LABEL = "documentation"
"""Label of the address among the links of the installed package."""


def reference_of(name: str) -> str:
    """Return the link to a class in the reference; within the page if no address is known."""
    address = os.environ.get(VARIABLE) or _declared()
    page = f"{address.rstrip('/')}/reference/{name}.html" if address else ""
    return f"{page}#blockl0.{name}"


@cache
def _declared() -> str:
    try:
        links = metadata.metadata("blockl0").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    pairs = (link.partition(", ") for link in links)
    return next((address for label, _, address in pairs if label.lower() == LABEL), "")


class Documented:
    """Mixin for estimators whose HTML representation links to the reference."""

    def _get_doc_link(self) -> str:
        is_ours = type(self).__module__.split(".")[0] == __name__.split(".")[0]
        return reference_of(type(self).__name__) if is_ours else ""


Kind = TypeVar("Kind", bound=type)

SECTIONS = ("Parameters", "Attributes")


class ParameterEntry(NamedTuple):
    """One or more parameter names with their description, as indented lines."""

    names: tuple[str, ...]
    type: str
    text: tuple[str, ...]

    def __str__(self) -> str:
        head = ", ".join(self.names) + (f" : {self.type}" if self.type else "")
        return "\n".join([head, *self.text])


def shares_entries(*sources: type) -> Callable[[Kind], Kind]:
    """Expand entries of several names in a class's docstring, one entry for each name.

    If such an entry says "as in `Source`", each name gets its description from there.
    """

    def write_out(kind: Kind) -> Kind:
        if kind.__doc__ is not None:  # python -OO strips docstrings
            known = {source.__name__: source.__doc__ or "" for source in sources}
            kind.__doc__ = _written_out(inspect.cleandoc(kind.__doc__), known)
        return kind

    return write_out


def entries(docstring: str, section: str) -> list[ParameterEntry]:
    """Parse the entries of a section of a docstring."""
    lines = inspect.cleandoc(docstring).split("\n")
    if section not in lines:
        return []
    start = lines.index(section) + 2
    return list(_entries(lines[start : _end(lines, start)]))


def _written_out(docstring: str, known: dict[str, str]) -> str:
    lines = docstring.split("\n")
    for section in SECTIONS:
        if section not in lines:
            continue
        start = lines.index(section) + 2
        end = _end(lines, start)
        found = [
            each for entry in _entries(lines[start:end]) for each in _each(entry, section, known)
        ]
        gap = [""] if end < len(lines) else []
        lines[start:end] = [*"\n".join(map(str, found)).split("\n"), *gap]
    return "\n".join(lines) + "\n"


def _end(lines: list[str], start: int) -> int:
    """Find where a section ends: at the next title, or at the end of the docstring."""
    for i in range(start, len(lines) - 1):
        if lines[i + 1] and set(lines[i + 1]) == {"-"}:
            return i
    return len(lines)


def _entries(lines: list[str]) -> Iterator[ParameterEntry]:
    starts = [i for i, line in enumerate(lines) if line and not line.startswith(" ")]
    for start, end in pairwise([*starts, len(lines)]):
        names, _, type_ = lines[start].partition(" : ")
        text = "\n".join(lines[start + 1 : end]).rstrip()
        yield ParameterEntry(
            tuple(names.split(", ")), type_, tuple(text.split("\n")) if text else ()
        )


def _each(entry: ParameterEntry, section: str, known: dict[str, str]) -> Iterator[ParameterEntry]:
    """Yield an entry for each name, from the class that the text refers to, if any."""
    said = re.search(r"[Aa]s in `(\w+)`", " ".join(entry.text))
    source = entries(known.get(said[1], ""), section) if said else []
    there = {name: other for other in source for name in other.names}
    for name in entry.names:
        if len(entry.names) > 1 and name in there:
            yield there[name]._replace(names=(name,))
        else:
            yield entry._replace(names=(name,))
