"""Colours and axes that all pictures of the documentation share."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt

INK, ACCENT, GREEN, GREY, PALE = "#1f5fa8", "#d9730d", "#2e7d4f", "#8a8a8a", "#e8edf3"


def axes(width: float = 8.0, height: float = 3.6, **options: Any) -> tuple[Any, Any]:
    """Make a figure and its axes, without the frame's top and right."""
    figure, ax = plt.subplots(figsize=(width, height), layout="constrained", **options)
    for one in getattr(ax, "flat", [ax]):
        one.spines[["top", "right"]].set_visible(False)
    return figure, ax


def bare(ax: Any) -> None:
    """No frame, no ticks: a drawing and not a plot."""
    ax.set_axis_off()
