"""A page for every entry of docs/api.md, which then lists them with what each is in a sentence.

The directives of `sphinx.ext.autodoc` in docs/api.md say what there is; their pages are written to
docs/reference, which git ignores.
"""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from sphinx.application import Sphinx

from made_pages import write_pages

DOCS = Path(__file__).parents[1]
PAGES = DOCS / "reference"
BLOCK = re.compile(r"```\{eval-rst\}\n(.*?)```\n", re.DOTALL)
ENTRY = re.compile(
    r"^\.\. auto(?P<kind>\w+):: (?P<name>[\w.]+)(?P<call>\(\))?\n(?P<options>(?:   .*\n)*)", re.M
)
MODULE = re.compile(r"^\.\. currentmodule:: .*$", re.M)


class Entry(NamedTuple):
    """A name, and the directive that documents it."""

    name: str
    directive: str
    module: str

    @property
    def short(self) -> str:
        """Without its module."""
        return self.name.rpartition(".")[2]

    @property
    def first_line(self) -> str:
        """What it is, in a sentence."""
        module, _, name = self.name.rpartition(".")
        is_module = self.directive.startswith(".. automodule")
        found = import_module(self.name) if is_module else getattr(import_module(module), name)
        return (inspect.getdoc(found) or "").partition("\n")[0].replace("|", "\\|")

    @property
    def page(self) -> str:
        """The text of its page."""
        return f"# {self.short}\n\n```{{eval-rst}}\n{self.module}\n\n{self.directive}```\n"


def entries(text: str) -> list[Entry]:
    """Return what a block of docs/api.md documents."""
    module = MODULE.search(text)
    before = module[0] if module else ".. currentmodule:: blockl0"
    return [Entry(found["name"], found[0], before) for found in ENTRY.finditer(text)]


def make_pages(app: Sphinx) -> None:
    """Write a page for every entry."""
    source = (DOCS / "api.md").read_text(encoding="utf-8")
    pages = {
        f"{entry.short}.md": entry.page
        for block in BLOCK.findall(source)
        for entry in entries(block)
    }
    write_pages(PAGES, pages)


def list_entries(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put lists of links where docs/api.md has directives."""
    if docname == "api":
        source[0] = BLOCK.sub(lambda block: _listing(entries(block[1])), source[0])


def _listing(found: list[Entry]) -> str:
    rows = [f"| [`{e.short}`](reference/{e.short}.md) | {e.first_line} |" for e in found]
    table = "\n".join(["| | |", "|---|---|", *rows])
    tree = "\n".join(f"reference/{entry.short}" for entry in found)
    return f"{table}\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before any page is read."""
    app.connect("builder-inited", make_pages)
    app.connect("source-read", list_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
