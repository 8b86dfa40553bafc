"""The selected columns as a table: text, HTML, or a DataFrame."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 88
"""Width of the notes, in characters."""
TITLES = {
    "feature": "feature",
    "coef": "coefficient",
    "per_sd": "per std. dev.",
    "entry": "entry",
    "drop_one": "drop-one loss",
    "again": "chosen again",
}
CELL = "padding: 0.2em 0.8em; text-align: "


@dataclass(frozen=True, eq=False)
class Summary:
    """The selected columns as a table; ``str`` prints it, `to_frame` makes a pandas DataFrame.

    A notebook shows it as HTML.

    Attributes
    ----------
    columns : dict
        "feature" and "coef" (for several classes their norm), and with data: "per_sd", the
        coefficient times the standard deviation of its column; "entry", the size of the smallest
        subset of the path that contains it; "drop_one", the rise of the objective without it, the
        others re-fitted; "again", the share of half-samples that select it.
    heading : str
    notes : tuple of str
    cautions : tuple of str
        Warnings about the interpretation of coefficients.
    index : ndarray of int
        The index of each column in X.
    n_half_samples : int
        Half-samples that could be fitted; "again" is missing if there is none.
    """

    columns: dict[str, NDArray[Any]]
    heading: str
    notes: tuple[str, ...]
    cautions: tuple[str, ...]
    index: NDArray[np.int64]
    n_half_samples: int = 0

    def to_frame(self) -> Any:
        """Convert the table to a pandas DataFrame."""
        import pandas as pd

        return pd.DataFrame(self.columns)

    def __str__(self) -> str:
        cells = [[TITLES[name], *self._texts(name)] for name in self.columns]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(
                text.ljust(width) if i == 0 else text.rjust(width)
                for i, (text, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in zip(*cells, strict=True)
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        notes = [textwrap.fill(note, WIDTH) for note in (*self.notes, *self.cautions)]
        return "\n".join([self.heading, rule, lines[0], rule, *lines[1:], rule, *notes])

    def _repr_html_(self) -> str:
        """Format the table as HTML for notebooks, escaping names from the data."""
        texts = [self._texts(name) for name in self.columns]
        head = "".join(_html_cell("th", TITLES[name], j) for j, name in enumerate(self.columns))
        body = "".join(
            f"<tr>{''.join(_html_cell('td', text, j) for j, text in enumerate(row))}</tr>"
            for row in zip(*texts, strict=True)
        )
        title = "<br>".join(map(escape, self.heading.split("\n")))
        both = (*self.notes, *self.cautions)
        notes = "".join(f"<p style='max-width: 50em'>{escape(note)}</p>" for note in both)
        return (
            f"<div><p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"{notes}</div>"
        )

    def _texts(self, name: str) -> Sequence[str]:
        show = _share if name == "again" else _cell
        return [show(value) for value in self.columns[name]]


def _html_cell(tag: str, text: str, j: int) -> str:
    return f"<{tag} style='{CELL}{'left' if j == 0 else 'right'}'>{escape(text)}</{tag}>"


def _share(value: float) -> str:
    return f"{value:.0%}"


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "kept" if np.isnan(value) else f"{value:.4g}"
    return str(value)
