"""Sphinx: myst-parser for the pages, autodoc for the reference, furo for the looks.

`make docs` builds with warnings as errors and without a network. ``-D run_examples=0`` leaves the
examples unrun: their pages then show the source without its output.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import blockl0

project = "blockl0"
author = "The blockl0 developers"
project_copyright = author
release = version = blockl0.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "attributes",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "build_pictures",
    "build_examples",
    "build_reference",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "_ext", "pictures"]
default_role = "py:obj"  # `solve` in a docstring is a link where there is such a name
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the numpydoc sections say it in words, with shapes
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"blockl0 {release}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1f5fa8",
        "color-brand-content": "#1f5fa8",
        "color-brand-visited": "#1f5fa8",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7db4ef",
        "color-brand-content": "#7db4ef",
        "color-brand-visited": "#7db4ef",
    },
}
copybutton_exclude = ".linenos, .gp, .go"


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let |x| in a docstring be an absolute value, and not a substitution of reStructuredText."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = line.split("``")  # every second one is literal
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[i] = "``".join(parts)


def setup(app: Any) -> None:
    """Connect what is too small for an extension."""
    app.connect("autodoc-process-docstring", escape_bars)
