"""The picture of the page on scale: measured by benchmarks/scale/out_of_core.py."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from style import ACCENT, GREEN, GREY, INK, axes

MEASURED = Path(__file__).with_name("reads.csv")
COLOURS = {"fast": INK, "balanced": GREEN, "path": ACCENT}


def reads() -> Any:
    """Processor time of a call, in that of reading the file once, against the reads it makes."""
    with MEASURED.open() as file:
        cells = list(csv.DictReader(file))
    figure, ax = axes(7.0, 3.6)
    most = 1.15 * max(float(cell["reads"]) for cell in cells)
    ax.plot([0.0, most], [0.0, most], color=GREY, linewidth=1.0, linestyle="dotted")
    ax.annotate("reading alone", (0.8 * most, 0.8 * most), color=GREY, ha="right", va="bottom")
    for cell in cells:
        x, y = float(cell["reads"]), float(cell["ratio"])
        ax.plot(x, y, "o", color=COLOURS[cell["call"]])
        label = f"{cell['call']}, {float(cell['GB']):.0f} GB"
        # to the left where there is no room on the right, or another one is there
        side = -1 if x > 0.6 * most or cell["side"] == "left" else 1
        ax.annotate(
            label, (x, y), xytext=(7 * side, -4), textcoords="offset points",
            ha="left" if side > 0 else "right",
        )  # fmt: skip
    ax.set(xlabel="reads of the file", ylabel="processor time / that of reading once")
    ax.set_xlim(0.0, most)
    ax.set_ylim(0.0, None)
    return figure


PICTURES = {"reads": reads}
