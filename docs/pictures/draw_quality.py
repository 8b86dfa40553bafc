"""The picture of README: measured by ``python -m benchmarks.quality --clock cpu``.

``python docs/pictures/draw_quality.py`` writes docs/_static/gap_against_time.svg, shown there.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from style import GREY, INK, axes

MEASURED = Path(__file__).with_name("gaps.csv")
SHOWN = Path(__file__).parents[1] / "_static" / "gap_against_time.svg"


def gap_against_time() -> Any:
    """Mean gap to the best objective found, against the CPU time in that of abess."""
    with MEASURED.open() as file:
        rows = list(csv.DictReader(file))
    figure, ax = axes(7.2, 3.4)
    for row in rows:
        x, y, is_ours = float(row["time"]), float(row["gap"]), row["method"].startswith("blockl0")
        ax.plot(x, y, "o", color=INK if is_ours else GREY, markersize=8 if is_ours else 6)
        dx, dy = float(row["dx"]), float(row["dy"])
        ax.annotate(
            f"blockl0, {row['label']}" if is_ours else row["label"], (x, y), xytext=(dx, dy),
            textcoords="offset points", ha="right" if dx == -9.0 else "left",
            color=INK if is_ours else "black",
        )  # fmt: skip
    ax.set(
        xscale="log", xlabel="CPU time, in that of abess (geometric mean)",
        ylabel="above the best objective\nfound, mean of 96 problems, %",
    )  # fmt: skip
    ax.set_yscale("symlog", linthresh=0.01)
    ax.set_yticks([0.0, 0.01, 0.1, 1.0, 10.0, 100.0], ["0", "0.01", "0.1", "1", "10", "100"])
    ax.set_xticks([0.25, 0.5, 1.0, 2.0, 5.0], ["¼", "½", "1", "2", "5"])
    ax.minorticks_off()
    ax.set_ylim(-0.004, 100.0)
    ax.set_xlim(0.2, 9.0)
    return figure


PICTURES = {"gap_against_time": gap_against_time}

if __name__ == "__main__":
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "gap", "svg.fonttype": "none"}):
        gap_against_time().savefig(SHOWN, metadata={"Date": None}, facecolor="white")
