"""Address of the documentation, for links from a notebook."""

from __future__ import annotations

import os
from functools import cache
from importlib import metadata

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
