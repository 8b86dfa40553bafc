"""Pages that are made when the documentation is built, in folders that git ignores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_pages(folder: Path, pages: Mapping[str, str]) -> None:
    """Make a folder hold these pages, by name, and no others."""
    folder.mkdir(exist_ok=True)
    for stale in {page.name for page in folder.glob("*.md")} - set(pages):
        (folder / stale).unlink()
    for name, text in pages.items():
        page = folder / name
        # an unchanged file keeps its date, and Sphinx does not read it again
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
