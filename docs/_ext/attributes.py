"""Attributes of a docstring as they are typed: `coef_`, which reStructuredText takes for a link.

Napoleon makes fields of them, ``:ivar coef_:`` and ``:vartype coef_:``, which Sphinx shows as
"Variables", without the underscore, and with the first of several names as a type. Here they become
a list under "Attributes".
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

FIELD = re.compile(r":(?P<kind>ivar|vartype) (?P<names>[^:]+):(?: (?P<text>.*))?")


def list_attributes(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Put a list in the place of the fields."""
    places = [i for i, line in enumerate(lines) if FIELD.fullmatch(line)]
    if not places:
        return
    end = places[-1] + 1
    while end < len(lines) and lines[end].startswith(" "):
        end += 1
    lines[places[0] : end] = as_list(lines[places[0] : end])


def as_list(fields: list[str]) -> list[str]:
    """Make an item for each attribute: its names, its type, and what it is."""
    found: dict[str, dict[str, list[str]]] = {}
    text: list[str] = []
    for line in fields:
        if field := FIELD.fullmatch(line):
            text = [field["text"] or ""]
            found.setdefault(field["names"], {})[field["kind"]] = text
        else:
            text.append(line.strip())
    items = [_item(names, parts) for names, parts in found.items()]
    return [".. rubric:: Attributes", "", *items, ""]


def _item(names: str, parts: dict[str, list[str]]) -> str:
    shown = ", ".join(f"``{name.strip()}``" for name in names.replace("\\", "").split(","))
    kind = " ".join(parts.get("vartype", [])).strip()
    text = " ".join(parts.get("ivar", [])).strip()
    return f"* {shown}{f' ({kind})' if kind else ''}{f': {text}' if text else ''}"


def setup(app: Sphinx) -> dict[str, Any]:
    """After Napoleon, which comes first in the list of extensions."""
    app.connect("autodoc-process-docstring", list_attributes, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
