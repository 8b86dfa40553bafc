"""The picture of the page on proofs: measured by benchmarks/proof_map.py."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from style import axes

MEASURED = Path(__file__).with_name("proof_map.csv")


def proof_map() -> Any:
    """Seconds to a proof, or the gap that was left, by number of columns and ridge."""
    with MEASURED.open() as file:
        cells = list(csv.DictReader(file))
    columns = sorted({int(cell["columns"]) for cell in cells})
    ridges = sorted({float(cell["ridge"]) for cell in cells})
    figure, ax = axes(8.0, 3.8)
    shown = np.full((len(ridges), len(columns)), np.nan)
    for cell in cells:
        i, j = ridges.index(float(cell["ridge"])), columns.index(int(cell["columns"]))
        seconds = float(cell["seconds"])
        is_proven = cell["status"] == "optimal"
        if is_proven:
            shown[i, j] = np.log10(seconds)
            text = f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
        elif cell["status"] == "no_bound":
            text = "no bound"
        else:
            text = f"gap {float(cell['gap']):.0%}"
        ax.text(j, i, text, ha="center", va="center", color="black" if is_proven else "#8a8a8a")
    ax.imshow(shown, cmap="YlGnBu", vmin=-2.0, vmax=3.0, aspect="auto", origin="lower", alpha=0.6)
    ax.set_xticks(range(len(columns)), [f"{n:,}".replace(",", "\u2009") for n in columns])
    ax.set_yticks(range(len(ridges)), [f"{ridge:g}" for ridge in ridges])
    ax.set(xlabel="columns (1000 rows)", ylabel="ridge / mean squared length")
    ax.tick_params(length=0)
    return figure


PICTURES = {"proof_map": proof_map}
