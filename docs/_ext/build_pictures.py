"""Draw the pictures of the documentation when it is built, into docs/_build/pictures.

Every module of docs/pictures has a dictionary PICTURES of functions that return a figure. A
picture is drawn again only when its module or the package has changed.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)

DOCS = Path(__file__).parents[1]
SOURCES = DOCS / "pictures"
MADE = DOCS / "_build" / "pictures"
PACKAGE = DOCS.parent / "src" / "blockl0"


def fingerprint(*files: Path) -> str:
    """Hash these files and the package."""
    digest = hashlib.sha256()
    for file in (*files, *sorted(PACKAGE.rglob("*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def draw_all(app: Sphinx) -> None:
    """Draw what is missing or out of date."""
    MADE.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(SOURCES))
    for source in sorted(SOURCES.glob("draw_*.py")):
        stamp, now = MADE / f"{source.stem}.sha256", fingerprint(source, SOURCES / "style.py")
        if stamp.exists() and stamp.read_text() == now:
            continue
        logger.info("drawing the pictures of %s", source.name)
        _draw(source.stem)
        stamp.write_text(now)


def _draw(module: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for name, draw in importlib.import_module(module).PICTURES.items():
        figure = draw()
        # without a date and with fixed identifiers: the same source draws the same bytes
        with matplotlib.rc_context({"svg.hashsalt": name}):
            figure.savefig(MADE / f"{name}.svg", metadata={"Date": None})
        plt.close(figure)


def setup(app: Sphinx) -> dict[str, Any]:
    """Draw before any page is read."""
    app.connect("builder-inited", draw_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
