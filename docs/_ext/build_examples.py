"""A page for every file of examples/: its question, its picture, what it prints, its source.

The pages are written to docs/gallery, which git ignores. An example is run in a process of its own,
again only when it or the package has changed; with ``run_examples=0`` it is not run at all.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

from build_pictures import DOCS, MADE, fingerprint
from made_pages import write_pages

logger = logging.getLogger(__name__)

EXAMPLES = DOCS.parent / "examples"
PAGES = DOCS / "gallery"
OUTPUTS = DOCS / "_build" / "outputs"
LIMIT = 300
"""Seconds for one example."""
LAST = "demo"
"""Comes after the questions."""


class Example(NamedTuple):
    """What its docstring says, and what it printed."""

    name: str
    title: str
    text: str
    output: str | None


def make_pages(app: Sphinx) -> None:
    """Run the examples and write their pages and the overview."""
    files = sorted(EXAMPLES.glob("*.py"), key=lambda file: (file.stem == LAST, file.stem))
    examples = [_read(file, app.config.run_examples) for file in files]
    pages = {f"{example.name}.md": _page(example) for example in examples}
    pages["index.md"] = _overview(examples)
    write_pages(PAGES, pages)


def _read(file: Path, run: bool) -> Example:
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or file.stem
    title, _, rest = text.partition("\n")
    return Example(file.stem, title.rstrip("."), rest.strip(), _output(file) if run else None)


def _output(file: Path) -> str | None:
    """Capture what the example prints; None if a package that it needs is missing."""
    if "pysindy" in file.stem and importlib.util.find_spec("pysindy") is None:
        logger.info("pysindy is not installed: %s is not run", file.name)
        return None
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    kept, stamp = OUTPUTS / f"{file.stem}.txt", OUTPUTS / f"{file.stem}.sha256"
    now = fingerprint(file)
    if not (stamp.exists() and stamp.read_text() == now):
        logger.info("running examples/%s", file.name)
        done = subprocess.run(
            [sys.executable, str(file)], cwd=OUTPUTS, capture_output=True, encoding="utf-8",
            timeout=LIMIT, check=False, env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
        if done.returncode != 0:
            raise ExtensionError(f"examples/{file.name} failed:\n{done.stderr}")
        kept.write_text(done.stdout, encoding="utf-8")
        stamp.write_text(now)
    return kept.read_text(encoding="utf-8")


def _picture(name: str) -> str | None:
    """Return the path of its picture, relative to a page of the gallery."""
    drawn = MADE / f"example_{name}.svg"
    return f"../{drawn.relative_to(DOCS).as_posix()}" if drawn.exists() else None


def _page(example: Example) -> str:
    parts = [f"# {example.title}", example.text]
    if picture := _picture(example.name):
        parts.append(f":::{{div}} picture\n```{{image}} {picture}\n:alt: {example.title}\n```\n:::")
    if example.output:
        parts.append(f"## What it prints\n\n```text\n{example.output.rstrip()}\n```")
    source = f"```{{literalinclude}} ../../examples/{example.name}.py\n:language: python\n```"
    parts.append(f"## The whole program\n\n{source}")
    return "\n\n".join(parts) + "\n"


def _overview(examples: list[Example]) -> str:
    cards = []
    for example in examples:
        picture = _picture(example.name)
        image = f":img-top: {picture}\n:img-alt: {example.title}\n" if picture else ""
        first = example.text.split("\n\n")[0].replace("\n", " ")
        cards.append(
            f":::{{grid-item-card}} {example.title}\n:link: {example.name}\n:link-type: doc\n"
            f"{image}\n{first}\n:::"
        )
    names = "\n".join(example.name for example in examples)
    intro = (
        "Each is one short file of the folder `examples` and runs by itself; the data are "
        "generated or come with scikit-learn. What the pages show was printed when they were built."
    )
    grid = "::::{grid} 1 1 2 2\n:gutter: 3\n\n" + "\n\n".join(cards) + "\n\n::::"
    tree = f"```{{toctree}}\n:hidden:\n\n{names}\n```"
    return "\n\n".join(["# Examples", intro, grid, tree]) + "\n"


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages after the pictures are drawn and before any page is read."""
    app.add_config_value("run_examples", True, "env", bool)
    app.connect("builder-inited", make_pages, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
