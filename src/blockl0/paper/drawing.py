"""Line drawings in one style (colour, dash and marker), for a file or for the page.

On the page the colours come from the style sheet, so a drawing follows a light or dark theme.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockl0.paper.variants import VARIANTS
from blockl0.text import install_hint

PANEL_WIDTH, PANEL_HEIGHT = 3.7, 2.9
"""Inches."""
COLUMNS = 4
"""Panels in a row of a file, as in the paper."""
INK = "#1b1e23"
"""Axes and text."""
LOG_FACTOR = 3.0
"""The axis of objectives is logarithmic when they span more than this."""
DPI = 130

# Okabe and Ito's colours, which people of every colour vision can tell apart, and two more
COLOURS = {
    "blue": "#0072b2",
    "sky": "#56b4e9",
    "green": "#009e73",
    "orange": "#e69f00",
    "red": "#d55e00",
    "pink": "#cc79a7",
    "grey": "#8a8f98",
    "brown": "#8c6510",
    "ink": INK,
}
"""By name; the page has its own values of them for a dark theme."""

STYLES: dict[str, tuple[str, str, str]] = {
    "PGM": ("orange", "--", "v"),
    "APGM": ("pink", "--", "^"),
    "QPM": ("brown", "--", "<"),
    "SSP": ("sky", ":", "s"),
    "ROMP": ("grey", ":", "D"),
    "OMP": ("green", ":", "P"),
    "OMP unit": ("green", "-.", "P"),
    "CoSaMP": ("orange", ":", "p"),
    "CVX-l1": ("pink", "-.", "X"),
    "DEC-R2G0": ("sky", "-", "s"),
    "DEC-R0G2": ("grey", "-", "D"),
    "DEC-R2G2": ("green", "-", "P"),
    "DEC-R5G5": ("red", "-", "X"),
    "DEC-R10G2": ("blue", "-", "o"),
    "refit": ("ink", "-", "*"),
    "refit-fast": ("ink", "-", "*"),
}
"""Colour, dash and marker of a method."""


@dataclass(frozen=True)
class Panel:
    """Hold one drawing: curves by method, each (x, y)."""

    title: str
    x_label: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    is_log_x: bool = False


def need_matplotlib() -> None:
    """Raise an error that says how to install matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Figures are drawn with matplotlib: {install_hint('matplotlib')}."
        ) from error


@contextmanager
def _style() -> Iterator[Any]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {
        "font.size": 10.0,
        "axes.titlesize": 10.5,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlecolor": INK,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "grid.color": INK,
        "grid.alpha": 0.16,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "svg.fonttype": "none",  # text stays text: small, searchable, in the reader's font
        "svg.hashsalt": "blockl0",  # the same drawing gives the same file
    }
    with mpl.rc_context(settings):
        yield Figure


def _draw(axes: Any, panel: Panel) -> list[Any]:
    """Draw the curves of one panel and return their handles for a legend."""
    handles, low, high = [], float("inf"), 0.0
    for method, (x, y) in panel.curves.items():
        name, dash, marker = STYLES[method]
        is_ours = method.startswith("refit")
        handles += axes.plot(
            x, y, color=COLOURS[name], linestyle=dash, marker=marker, label=VARIANTS[method].title,
            markersize=8.0 if is_ours else 4.5, linewidth=2.2 if is_ours else 1.3,
            markevery=max(1, len(x) // 9), markeredgewidth=0.0, zorder=3 if is_ours else 2,
        )  # fmt: skip
        low, high = min(low, *y), max(high, *y)
    if low > 0.0 and high > LOG_FACTOR * low:
        axes.set_yscale("log")
    _label_objectives(axes)
    if panel.is_log_x:
        axes.set_xscale("log")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel("objective")
    axes.grid(True)
    return handles


def _label_objectives(axes: Any) -> None:
    """Label the axis of objectives with a few numbers like 2e4, also within one decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    is_log = axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    subs = (1.0,) if is_log and high > 300.0 * low else (1.0, 2.0, 5.0)
    axes.yaxis.set_major_locator(LogLocator(subs=subs) if is_log else MaxNLocator(5))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))


def _tick(value: float) -> str:
    if value == 0.0:
        return "0"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def save(panels: Sequence[Panel], stem: Path) -> None:
    """Write all panels with one legend as `stem`.png and `stem`.svg."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with _style() as Figure:
        size = (PANEL_WIDTH * columns, PANEL_HEIGHT * rows + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        handles: dict[str, Any] = {}
        for axes, panel in zip(grid.flat, panels, strict=False):
            for handle in _draw(axes, panel):
                handles.setdefault(handle.get_label(), handle)
        for axes in grid.flat[len(panels) :]:
            axes.set_visible(False)
        figure.legend(
            handles.values(), handles.keys(), loc="outside upper center", frameon=False,
            ncols=min(len(handles), 3 * columns), handlelength=3.5,
        )  # fmt: skip
        for suffix in (".png", ".svg"):
            metadata = {"Date": None} if suffix == ".svg" else None
            figure.savefig(stem.with_suffix(suffix), dpi=DPI, metadata=metadata)
            figure.set_layout_engine(
                "none"
            )  # the layout of the first file is kept, because computing it takes long


def svg(panel: Panel) -> str:
    """Return one panel as SVG for the page."""
    with _style() as Figure:
        figure = Figure(figsize=(PANEL_WIDTH, PANEL_HEIGHT), layout="constrained")
        _draw(figure.subplots(), panel)
        return _for_page(figure, panel.title)


def legend(methods: Sequence[str]) -> str:
    """Return the legend of the page: one drawing per method with its name beside it."""
    entries = []
    for method in methods:
        with _style() as Figure:
            figure = Figure(figsize=(0.5, 0.2))
            axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
            name, dash, marker = STYLES[method]
            colour = COLOURS[name]
            axes.plot([0, 1, 2], [0, 0, 0], color=colour, linestyle=dash, linewidth=1.8)
            axes.plot([1], [0], color=colour, marker=marker, markersize=6.5, markeredgewidth=0.0)
            axes.set_axis_off()
            entries.append(f"<li>{_for_page(figure, '')}{VARIANTS[method].title}</li>")
    return f'<ul class="legend">{"".join(entries)}</ul>'


def _for_page(figure: Any, title: str) -> str:
    """Return the figure as an SVG element without size, coloured by the style sheet."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px sans-serif", text)
    label = f'role="img" aria-label="{title}"' if title else 'aria-hidden="true"'
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name})")
    return text.replace("<svg", f"<svg {label}", 1)
