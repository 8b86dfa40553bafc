"""Quantiles of the printed numbers among many draws of the data, and their section of the page.

The paper's own draws are not known. If a variant is what was run, the printed number is one more
draw: its rank among n of ours is then uniform on 0, …, n.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from blockl0.paper import markup
from blockl0.paper import printed as paper
from blockl0.paper.cells import STRONG_SHARE
from blockl0.paper.markup import sci
from blockl0.paper.profile import (
    COLUMN_METHODS,
    COLUMN_PRICE,
    COLUMN_SET,
    DRAW_CHANGES,
    OTHERS,
    Profile,
    column_cells,
    draw_cells,
)
from blockl0.paper.store import Frame, Store
from blockl0.paper.variants import CHANGE_TITLES, VARIANTS, dec

ITERATIONS = (100, 300, 1000)
"""Candidate run lengths of the gradient methods; the paper does not say."""
TAIL = 0.05
"""A number is explained if its quantile lies between this and one minus this."""
DIGITS = 2
"""Significant digits of a printed number."""
KINDS = ("random", "random-C", "random-CN", "e2006", "e2006-C")
SHOWN_CHANGES = {
    "random": "ranked", "random-C": "", "random-CN": "ranked", "e2006": "theta5 ranked",
    "e2006-C": "theta5 ranked",
}  # fmt: skip
"""The change of DEC that fits the printed Table 2 best, by kind of set. On e2006 the quantiles
decide θ but not the greedy choice, which is taken as on the random sets."""
REDRAWN_SET, REDRAWN_COLUMNS = "random-256-1024-C", 1024


def kind(dataset: str) -> str:
    """Return the name of a set without its sizes, one of `KINDS`."""
    return re.sub(r"-\d+", "", dataset)


# -- one number ------------------------------------------------------------------------------------


class Reading(NamedTuple):
    """Read a label at its end or after a number of iterations."""

    label: str
    iterations: int | None = None

    @property
    def title(self) -> str:
        """Return the reading in words."""
        if self.label == "start":
            return "objective at the start"
        title = VARIANTS[self.label].title
        return title if self.iterations is None else f"{title}, {self.iterations} iterations"

    @property
    def column(self) -> str:
        """Return the printed column to compare with: APGM-ℓ0 stayed at its start, see the page."""
        if self.label == "start":
            return "APGM-l0"
        return self.label if self.label in paper.METHODS else dec()

    def values(self, rows: Frame) -> Frame:
        """Return objectives; a run that ended earlier keeps its last one."""
        if self.iterations is None or "at" not in rows:
            return rows["objective"]
        found = [
            at.get(str(self.iterations), end) if isinstance(at, dict) else end
            for at, end in zip(rows["at"], rows["objective"], strict=True)
        ]
        return pd.Series(found, index=rows.index, dtype=float)


READINGS = (
    Reading("start"),
    *(Reading(label, i) for label in OTHERS if label != "APGM-l0" for i in ITERATIONS),
    *(Reading(dec(change=change)) for change in DRAW_CHANGES),
)


def rounding(printed: float) -> float:
    """Return half a unit of the last printed digit."""
    return 0.5 * 10.0 ** (np.floor(np.log10(printed)) - DIGITS + 1)


def quantile_of(values: ArrayLike, printed: float) -> tuple[float, bool]:
    """Return (rank + ½)/(n + 1) of a printed number, and whether it is informative.

    Draws that round to the number count half; if most of them do, the quantile is near ½ whatever
    the truth, and tells nothing.
    """
    values, half = np.asarray(values, dtype=float), rounding(printed)
    below = int(np.count_nonzero(values < printed - half))
    above = int(np.count_nonzero(values > printed + half))
    alike = values.size - below - above
    return (below + 0.5 * alike + 0.5) / (values.size + 1), 2 * alike < values.size


def is_central(quantile: float) -> bool:
    """Check if a quantile is away from both ends, so that the number counts as explained."""
    return TAIL <= quantile <= 1.0 - TAIL


def chance(n: int) -> float:
    """Return the share of numbers that a right variant explains with n draws: 19/21 for n = 20."""
    ranks = (np.arange(n + 1) + 0.5) / (n + 1)
    return float(np.mean([is_central(rank) for rank in ranks]))


# -- all of them -----------------------------------------------------------------------------------


def locate(store: Store, profile: Profile) -> Frame:
    """Locate every printed number among the finished draws of every reading."""
    rows = store.frame(draw_cells(profile))
    places = []
    if not rows.empty:
        by_method = dict(tuple(rows.groupby(["dataset", "value", "method"], sort=False)))
        for (dataset, price, label), found in by_method.items():
            for reading in READINGS:
                key = (dataset.removesuffix("N"), price, reading.column)
                if reading.label == label and key in paper.OBJECTIVES:
                    printed = paper.OBJECTIVES[key].objective
                    places.append(place(dataset, price, reading, reading.values(found), printed))
    return pd.DataFrame(places)


def place(
    dataset: str, price: float, reading: Reading, values: ArrayLike, printed: float
) -> dict[str, Any]:
    """Describe a printed number among the draws of a reading."""
    values = np.asarray(values, dtype=float)
    quantile, is_telling = quantile_of(values, printed)
    return {
        "dataset": dataset, "value": price, "reading": reading, "column": reading.title,
        "draws": values.size, "mean": values.mean(), "smallest": values.min(),
        "largest": values.max(), "paper": printed, "quantile": quantile,
        "explained": is_central(quantile), "is_telling": is_telling,
    }  # fmt: skip


def tally(places: Frame) -> Frame:
    """Tally the places for each kind of set and reading.

    p is that of a Kolmogorov-Smirnov test that the telling quantiles are uniform, if there are any.
    """
    from scipy.stats import kstest

    rows = []
    groups = places.groupby([places["dataset"].map(kind), "reading"], sort=False)
    for (name, reading), found in groups:
        telling = found.loc[found["is_telling"], "quantile"]
        rows.append(
            {
                "kind": name,
                "reading": reading,
                "explained": int(found["explained"].sum()),
                "printed": len(found),
                "by_chance": sum(map(chance, found["draws"])),
                "p_uniform": float(kstest(telling, "uniform").pvalue) if len(telling) else None,
                "ours_over_paper": float(np.exp(np.log(found["mean"] / found["paper"]).mean())),
                "quantiles": tuple(found["quantile"]),
            }
        )
    return pd.DataFrame(rows)


def start_losses(dataset: str, n_features: int) -> list[tuple[float, float, float]]:
    """Return price, printed start value less λn, and its rounding, for one set.

    One draw of y for all prices would make them equal to within their roundings.
    """
    rows = []
    for price in paper.PRICES:
        printed = paper.OBJECTIVES[dataset, price, "APGM-l0"].objective
        rows.append((price, printed - price * n_features, rounding(printed)))
    return rows


def is_redrawn(rows: Sequence[tuple[float, float, float]]) -> bool:
    """Check if no single number lies within the rounding of all of them."""
    return max(v - r for _, v, r in rows) > min(v + r for _, v, r in rows)


# -- the section of the page -----------------------------------------------------------------------


def write_differences(store: Store, profile: Profile, out: Path) -> str:
    """Write the CSV files and return the section of the page."""
    places = locate(store, profile)
    if places.empty:
        return ""
    tallies = tally(places)
    names = {"dataset": "set", "value": "lambda", "column": "variant"}
    left_out = ["reading", "is_telling"]
    markup.write_frame(out / "differences.csv", places.drop(columns=left_out).rename(columns=names))
    titles = {"kind": "sets", "reading": "variant"}
    written = tallies.assign(
        reading=[reading.title for reading in tallies["reading"]],
        quantiles=[" ".join(f"{q:.3f}" for q in found) for found in tallies["quantiles"]],
    )
    markup.write_frame(out / "explained.csv", written.rename(columns=titles))
    return markup.section(
        "differences",
        "Where the printed numbers lie among many draws",
        _explanation(places),
        _dec_table(tallies),
        _other_table(tallies),
        _redrawn_table() if REDRAWN_SET in profile.sets else "",
        markup.details("Every printed number among the draws", _place_tables(places)),
        _column_table(store, profile, out),
    )


def _explanation(places: Frame) -> str:
    is_start = np.array([reading.label == "start" for reading in places["reading"]])
    n_start, n_run = (places.loc[of, "draws"].tolist() for of in (is_start, ~is_start))
    draws = " and ".join(
        f"{markup.counts(found, 'draw')} {what}"
        for found, what in ((n_run, "of each set and price for the runs"), (n_start, "for starts"))
        if found
    )
    by_chance = chance(min(n_run or n_start))
    return (
        "<p>The paper's draws are not known. If a variant is what was run, the printed number is "
        "one more draw, and its quantile among ours is uniform between 0 and 1. There are "
        f"{draws}, one start each. A number is <b>explained</b> when its quantile lies between "
        f"{TAIL:g} and {1 - TAIL:g}; draws that round to it count half. A "
        f"right variant explains {by_chance:.0%} by chance. p is that of a Kolmogorov–Smirnov test "
        "of uniform quantiles, numbers to which most draws round left out; a small p speaks "
        "against the variant, a large one is no proof.</p>"
    )


def _tally_table(
    tallies: Frame, readings: Sequence[Reading], titles: Sequence[str], caption: str
) -> str:
    found = {(row.kind, row.reading): row for row in tallies.itertuples()}
    kinds = [name for name in KINDS if (tallies["kind"] == name).any()]
    rows = [
        [title, *(_tally_cell(found.get((name, reading))) for name in kinds)]
        for title, reading in zip(titles, readings, strict=True)
        if any((name, reading) in found for name in kinds)
    ]
    return markup.table(["", *kinds], rows, caption=caption) if rows else ""


def _tally_cell(row: Any) -> str:
    if row is None:
        return markup.number("–")
    return markup.number(
        f"{row.explained} of {row.printed}",
        _p(row.p_uniform),
        f"{min(row.quantiles):.2f} … {max(row.quantiles):.2f}",
        f"× {row.ours_over_paper:.2f}",
    )


def _p(value: float | None) -> str:
    if value is None or np.isnan(value):
        return "p –"
    return "p &lt; 0.001" if value < 0.001 else f"p = {value:.2g}"


def _dec_table(tallies: Frame) -> str:
    chosen = ", ".join(f"{name}: {CHANGE_TITLES[change]}" for name, change in SHOWN_CHANGES.items())
    caption = (
        "The printed DEC-R10G2 (two sizes and four prices in each kind of set): how many are "
        "explained, p, the smallest and largest quantile, and the geometric mean of ours over the "
        "paper's. The variants are described under “How every method is run”; θ is varied on e2006 "
        "alone. What the claims "
        f"below call “as the printed Table 2 shows it” is {chosen}."
    )
    readings = [Reading(dec(change=name)) for name in DRAW_CHANGES]
    return _tally_table(tallies, readings, [CHANGE_TITLES[name] for name in DRAW_CHANGES], caption)


def _other_table(tallies: Frame) -> str:
    readings = [reading for reading in READINGS if not reading.label.startswith("DEC")]
    caption = (
        "The other printed columns. The objective at the start, where all n coordinates pay the "
        "price, ½‖y‖² + λn, is compared with the APGM-ℓ0 column. On e2006 all 5000 rows are drawn, "
        "so that it is the same in every draw. -C: outliers in X; -CN: in X and in the noise."
    )
    return _tally_table(tallies, readings, [reading.title for reading in readings], caption)


def _redrawn_table() -> str:
    losses = start_losses(REDRAWN_SET, REDRAWN_COLUMNS)
    rows = [[f"λ = {price:g}", sci(value, 2), f"± {sci(half, 1)}"] for price, value, half in losses]
    answer = (
        "They differ by more than their rounding: the data were redrawn for every λ, and so are "
        "ours."
        if is_redrawn(losses)
        else "They agree within their rounding."
    )
    caption = (
        f"The printed APGM-ℓ0 on {REDRAWN_SET} less λn, which would be ½‖y‖² of one and the same "
        f"draw. {answer}"
    )
    return markup.table(["", "½‖y‖²", "rounding"], rows, caption=caption)


def _place_tables(places: Frame) -> str:
    tables = []
    for title, is_dec in (("DEC-R10G2", True), ("The other methods", False)):
        of_dec = [
            reading.title for reading in READINGS if reading.label.startswith("DEC") == is_dec
        ]
        caption = (
            f"{title}: mean over the draws, the smallest and the largest, the printed number and "
            "its quantile; bold where it is explained."
        )
        found = places[places["column"].isin(of_dec)]
        short = {name: name.removeprefix("DEC-R10G2, ") for name in of_dec}
        found = found.assign(column=found["column"].map(short))
        tables.append(
            markup.grid(found, list(short.values()), _place_cell, "λ = {:g}", caption=caption)
        )
    return "".join(tables)


def _place_cell(row: Any) -> str:
    mean = sci(row.mean)
    return markup.number(
        f"<b>{mean}</b>" if row.explained else mean,
        f"{sci(row.smallest, 2)} … {sci(row.largest, 2)}",
        f"paper {sci(row.paper, 2)}",
        f"quantile {row.quantile:.2f}",
    )


def _column_table(store: Store, profile: Profile, out: Path) -> str:
    """Return what each draw of one set of e2006 reaches, by the number of its strong columns."""
    rows = store.frame(column_cells(profile))
    if rows.empty:
        return ""
    found = rows.pivot(index="draw", columns="method", values="objective")
    found = found.reindex(columns=COLUMN_METHODS).dropna().reset_index()
    found.columns = ["draw", "strong_columns", "dec", "refit_fast"]
    markup.write_frame(out / "columns.csv", found)
    caption = (
        f"{COLUMN_SET}, λ = {COLUMN_PRICE:g}, one row for each draw: how many of its columns could "
        f"stand in for an intercept (each alone explains {STRONG_SHARE:.0%} of a constant), and "
        "what is reached. The paper prints "
        f"{sci(paper.OBJECTIVES[COLUMN_SET, COLUMN_PRICE, dec()].objective, 2)} for DEC."
    )
    lines = [
        [f"draw {row.draw}", f"{row.strong_columns:g}", sci(row.dec), sci(row.refit_fast)]
        for row in found.sort_values("strong_columns", kind="stable").itertuples()
    ]
    head = ["", "strong columns", "DEC-R10G2", "refit (fast)"]
    return markup.table(head, lines, caption=caption)
