"""Time and peak memory against n and m, log-log, with the slope of each method."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from cells import COMPARED, SPARSE
from report import GROWTH, MEMORY_CONSTANT, MEMORY_FACTOR, Rows, growth_points, is_ok, slope

# Okabe and Ito's colours, and markers that tell the methods apart without them
LOOKS = dict(
    zip(
        SPARSE,
        [("#0072B2", "o"), ("#56B4E9", "s"), ("#D55E00", "^"), ("#009E73", "D"), ("#CC79A7", "v")],
        strict=True,
    )
)

HEADROOM = 0.5
"""Free height for the legend, in heights of the curves."""


def draw(rows: Rows, path: Path) -> None:
    """One column per series; seconds above, peak memory (data included) below."""
    figure, axes = plt.subplots(2, len(GROWTH), figsize=(14, 8.4), sharex="col", squeeze=False)
    for (top, bottom), (series, axis) in zip(axes.T, GROWTH.items(), strict=True):
        _draw_limit(bottom, rows, series, axis)
        for method in SPARSE:
            x, times, peaks = growth_points(rows, series, method)
            colour, marker = LOOKS[method]
            for panel, y in ((top, times), (bottom, np.array(peaks) / 2**20)):
                if x:
                    label = f"{method}: {axis}$^{{{slope(x, y):.2f}}}$" if len(x) > 1 else method
                    panel.loglog(x, y, color=colour, marker=marker, ms=6, lw=1.6, label=label)
        cell = next(c for c in rows if c.series == series)
        fixed = f"m = {cell.m}" if axis == "n" else f"n = {cell.n}"
        kind = "dense" if cell.density == 1.0 else f"sparse ({cell.density:.0%})"
        top.set_title(f"{kind}, {fixed}, s = {cell.s}")
        bottom.set_xlabel(axis)
        for panel in (top, bottom):
            panel.grid(which="major", color="0.9")
            panel.legend(fontsize=8, frameon=False, loc="upper left")
            low, high = panel.get_ylim()
            panel.set_ylim(low, high * (high / low) ** HEADROOM)
    axes[0, 0].set_ylabel("seconds of processor time")
    axes[1, 0].set_ylabel("peak memory: X and the call, MiB")
    figure.suptitle("Growth of time and memory, one thread; a missing marker did not finish")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _draw_limit(panel, rows: Rows, series: str, axis: str) -> None:
    cells = [c for c in rows if (c.series, c.method) == (series, COMPARED[0]) and is_ok(rows[c])]
    if not cells:
        return
    x = [getattr(c, axis) for c in cells]
    data = np.array([float(rows[c]["data_bytes"]) for c in cells])
    allowed = (MEMORY_FACTOR * data + MEMORY_CONSTANT) / 2**20
    panel.loglog(x, data / 2**20, color="0.3", ls=":", lw=1.2, label="X itself")
    label = f"{MEMORY_FACTOR} X + {MEMORY_CONSTANT // 2**20} MiB"
    panel.loglog(x, allowed, color="0.3", ls="--", lw=1.2, label=label)
