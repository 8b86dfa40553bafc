"""Mean gap against time, a panel per group of families."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .peers import PEERS, REFERENCE
from .report import BALANCED, BEAM, FAST, THOROUGH, Comparison

LINEAR = 0.01  # per cent; the axis is linear below
COLUMNS = 3
LEGEND_COLUMNS = 6
NAMED = {FAST: "fast", BALANCED: "balanced", THOROUGH: "thorough", BEAM: "OKRidge beam"}
NAMED[REFERENCE] = "abess"
# Okabe and Ito's colours, told apart by most colour-blind readers; shapes repeat the difference
COLOURS = {
    "blockl0": "#D55E00",
    "abess": "#0072B2",
    "okridge": "#009E73",
    "forward": "#000000",
    "sklearn": "#E69F00",
    "spams": "#E69F00",
    "fastsparsegams": "#CC79A7",
    "pycasso": "#56B4E9",
    "skglm": "#56B4E9",
    "skscope": "#0072B2",
}
OTHER = "#7F7F7F"
SHAPES = {"okridge": "D", "spams": "P", "pycasso": "*", "skscope": "P", "l0bnb": "X", "el0ps": "d"}
SEQUENCE = "os^vD"
BIG = {"*": 15, "P": 11, "X": 11}


class Point(NamedTuple):
    """One method in one panel."""

    method: str
    seconds: float
    gap: float
    is_complete: bool


def style(method: str) -> tuple[str, str]:
    """Colour by package, shape by method."""
    peer = next((peer for peer in PEERS if method in peer.methods), None)
    if peer is None:
        return OTHER, "."
    shape = SHAPES.get(peer.name, SEQUENCE[peer.methods.index(method) % len(SEQUENCE)])
    return COLOURS.get(peer.name, OTHER), shape


def points_of(comparison: Comparison, names: list[str]) -> list[Point]:
    """Mean gap and geometric mean time of the methods that solved all they were tried on."""
    points = []
    for method in comparison.methods:
        solved = comparison.ok(method, names)
        if solved and len(solved) == len(comparison.tried(method, names)):
            seconds = float(np.exp(np.mean([np.log(comparison.time(cell)) for cell in solved])))
            gap = max(float(np.mean(comparison.gaps(method, names))), 0.0)
            points.append(Point(method, seconds, gap, len(solved) == len(names)))
    return points


def front(points: list[Point]) -> list[Point]:
    """The points that no other one beats in both."""
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: (point.seconds, point.gap)):
        if not chosen or point.gap < chosen[-1].gap:
            chosen.append(point)
    return chosen


def plot(comparison: Comparison, file: Path) -> None:
    """Write the picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    groups = comparison.groups
    rows = -(-len(groups) // COLUMNS)
    figure, axes = plt.subplots(
        rows, COLUMNS, figsize=(15, 4.4 * rows + 1.4), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    marks: dict[str, Any] = {}
    for axis, (group, names) in zip(axes.flat, groups.items(), strict=False):
        marks.update(_panel(axis, points_of(comparison, names), f"{group} ({len(names)})"))
    for axis in axes[:, 0]:
        axis.set_ylabel("mean gap to the best known, %")
    clock = "CPU seconds" if comparison.clock == "cpu" else "seconds"
    for axis in axes.flat:
        axis.set_xlabel(f"{clock}, geometric mean, one thread")
    order = [method for peer in PEERS for method in peer.methods if method in marks]
    figure.legend(
        [marks[method] for method in order],
        order,
        loc="outside lower center",
        ncols=LEGEND_COLUMNS,
        fontsize=9,
        frameon=False,
    )
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _panel(axis, points: list[Point], title: str) -> dict[str, Any]:
    """Draw one panel; returns the mark of each method for the legend."""
    best = front([point for point in points if point.is_complete])
    axis.plot([p.seconds for p in best], [p.gap for p in best], color="#BBBBBB", zorder=1)
    middle = np.exp(np.mean(np.log([f(p.seconds for p in points) for f in (min, max)])))
    marks = {}
    for point in points:
        colour, shape = style(point.method)
        (marks[point.method],) = axis.plot(
            point.seconds,
            point.gap,
            shape,
            color=colour,
            markersize=BIG.get(shape, 9),
            markerfacecolor=colour if point.is_complete else "white",
            markeredgecolor="white" if point.is_complete else colour,
            markeredgewidth=0.7 if point.is_complete else 1.5,
            clip_on=False,
            zorder=3 if point.method in NAMED else 2,
        )
        if point.method in NAMED:
            _label(axis, point, colour, to_the_left=point.seconds > middle)
    axis.set_xscale("log")
    axis.set_yscale("symlog", linthresh=LINEAR)
    axis.set_ylim(0.0, max(2.0 * max(point.gap for point in points), 2.0 * LINEAR))
    axis.margins(x=0.1)
    axis.set_title(title)
    axis.grid(alpha=0.25)
    return marks


def _label(axis, point: Point, colour: str, to_the_left: bool) -> None:
    """Write the name beside the mark, towards the middle of the panel."""
    from matplotlib.patheffects import withStroke

    axis.annotate(
        NAMED[point.method],
        (point.seconds, point.gap),
        xytext=(-6 if to_the_left else 6, -13 if point.method == REFERENCE else 6),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        fontsize=9,
        color=colour,
        path_effects=[withStroke(linewidth=2, foreground="white")],
        zorder=4,
    )
