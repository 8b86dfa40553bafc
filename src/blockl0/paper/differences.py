"""Compare every printed number with many draws of the data, by variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from blockl0.paper import markup, quantiles
from blockl0.paper import printed as paper
from blockl0.paper.cells import STRONG_SHARE, Cell, draw_of
from blockl0.paper.profile import Profile
from blockl0.paper.quantiles import DEC_CHANGES, Place, QuantileTally, Reading
from blockl0.paper.readings import SHOWN_CHANGES
from blockl0.paper.samples import sci, write_csv
from blockl0.paper.store import Store
from blockl0.paper.variants import CHANGE_TITLES, dec

NAME = "differences"
TITLE = "Where the printed numbers lie among many draws"

COLUMN_SET, COLUMN_PRICE = "e2006-5000-1024", 100.0
REDRAWN_SET, REDRAWN_COLUMNS = "random-256-1024-C", 1024
KINDS = ("random", "random-C", "random-CN", "e2006", "e2006-C")
HEAD = (
    "set", "lambda", "variant", "draws", "mean", "smallest", "largest", "paper", "quantile",
    "explained",
)  # fmt: skip
TALLY_HEAD = (
    "sets", "variant", "explained", "printed", "by_chance", "p_uniform", "ours_over_paper",
    "quantiles",
)  # fmt: skip


def cells(profile: Profile) -> list[Cell]:
    """List the cells: all draws, and the count of strong columns."""
    return [*quantiles.cells(profile), *(cell for row in _column_cells(profile) for cell in row)]


def _column_cells(profile: Profile) -> list[list[Cell]]:
    """List for each draw the count of strong columns and two methods."""
    if COLUMN_SET not in profile.sets or COLUMN_PRICE not in profile.prices:
        return []
    draws = (draw_of(profile.prices, COLUMN_PRICE, number) for number in range(profile.draws))
    return [
        [
            Cell(COLUMN_SET, label, "price", COLUMN_PRICE, draw=draw)
            for label in ("strong columns", dec(), "refit-fast")
        ]
        for draw in draws
    ]


def write(store: Store, profile: Profile, out: Path) -> str:
    """Write the CSV files and return the section of the page."""
    places = quantiles.collect(store, profile)
    if not places:
        return ""
    tallies = quantiles.tally(places)
    write_csv(out / "differences.csv", HEAD, map(_csv_row, places))
    write_csv(out / "explained.csv", TALLY_HEAD, map(_tally_row, tallies))
    return markup.section(
        NAME,
        TITLE,
        _explanation(places),
        _dec_table(tallies),
        _other_table(tallies),
        _redrawn_table() if REDRAWN_SET in profile.sets else "",
        markup.details("Every printed number among the draws", _place_tables(places)),
        _column_table(store, profile, out),
    )


def _explanation(places: Sequence[Place]) -> str:
    n_start = [len(p.values) for p in places if p.reading.label == "start"]
    n_run = [len(p.values) for p in places if p.reading.label != "start"]
    draws = " and ".join(
        f"{markup.counts(found, 'draw')} {what}"
        for found, what in ((n_run, "of each set and price for the runs"), (n_start, "for starts"))
        if found
    )
    by_chance = quantiles.chance(min(n_run or n_start))
    return (
        "<p>The paper's draws are not known. If a variant is what was run, the printed number is "
        "one more draw, and its quantile among ours is uniform between 0 and 1. There are "
        f"{draws}, one start each. A number is <b>explained</b> when its quantile lies between "
        f"{quantiles.TAIL:g} and {1 - quantiles.TAIL:g}; draws that round to it count half. A "
        f"right variant explains {by_chance:.0%} by chance. p is that of a Kolmogorov–Smirnov test "
        "of uniform quantiles, numbers to which most draws round left out; a small p speaks "
        "against the variant, a large one is no proof.</p>"
    )


# -- tables ----------------------------------------------------------------------------------------


def _tally_cell(found: QuantileTally | None) -> str:
    if found is None:
        return markup.number("–")
    low, high = min(found.quantiles), max(found.quantiles)
    return markup.number(
        f"{found.explained} of {len(found.places)}",
        _p(found.p_value),
        f"{low:.2f} … {high:.2f}",
        f"× {found.ratio:.2f}",
    )


def _p(value: float | None) -> str:
    if value is None:
        return "p –"
    return "p &lt; 0.001" if value < 0.001 else f"p = {value:.2g}"


def _tally_rows(tallies: Sequence[QuantileTally], readings: Iterable[tuple[str, Reading]]):
    found = {(t.kind, t.reading): t for t in tallies}
    kinds = [kind for kind in KINDS if any(t.kind == kind for t in tallies)]
    rows = [
        [title, *(_tally_cell(found.get((kind, reading))) for kind in kinds)]
        for title, reading in readings
        if any((kind, reading) in found for kind in kinds)
    ]
    return ["", *kinds], rows


def _dec_table(tallies: Sequence[QuantileTally]) -> str:
    readings = [(CHANGE_TITLES[name], Reading(dec(change=name))) for name in DEC_CHANGES]
    head, rows = _tally_rows(tallies, readings)
    chosen = ", ".join(f"{kind}: {CHANGE_TITLES[name]}" for kind, name in SHOWN_CHANGES.items())
    caption = (
        "The printed DEC-R10G2 (two sizes and four prices in each kind of set): how many are "
        "explained, p, the smallest and largest quantile, and the geometric mean of ours over the "
        "paper's. The variants are described under “How every method is run”; θ is varied on e2006 "
        "alone. What the claims "
        f"below call “as the printed Table 2 shows it” is {chosen}."
    )
    return markup.table(head, rows, caption=caption) if rows else ""


def _other_table(tallies: Sequence[QuantileTally]) -> str:
    readings = [(r.title, r) for r in quantiles.READINGS if not r.label.startswith("DEC")]
    head, rows = _tally_rows(tallies, readings)
    caption = (
        "The other printed columns. The objective at the start, where all n coordinates pay the "
        "price, ½‖y‖² + λn, is compared with the APGM-ℓ0 column. On e2006 all 5000 rows are drawn, "
        "so that it is the same in every draw. -C: outliers in X; -CN: in X and in the noise."
    )
    return markup.table(head, rows, caption=caption) if rows else ""


def _redrawn_table() -> str:
    losses = quantiles.start_losses(REDRAWN_SET, REDRAWN_COLUMNS)
    rows = [[f"λ = {price:g}", sci(value, 2), f"± {sci(half, 1)}"] for price, value, half in losses]
    answer = (
        "They differ by more than their rounding: the data were redrawn for every λ, and so are "
        "ours."
        if quantiles.is_redrawn(losses)
        else "They agree within their rounding."
    )
    caption = (
        f"The printed APGM-ℓ0 on {REDRAWN_SET} less λn, which would be ½‖y‖² of one and the same "
        f"draw. {answer}"
    )
    return markup.table(["", "½‖y‖²", "rounding"], rows, caption=caption)


def _place_tables(places: Sequence[Place]) -> str:
    found = {(p.dataset, p.price, p.reading): p for p in places}
    parts = {
        "DEC-R10G2": [r for r in quantiles.READINGS if r.label.startswith("DEC")],
        "The other methods": [r for r in quantiles.READINGS if not r.label.startswith("DEC")],
    }
    tables = []
    for title, readings in parts.items():
        rows: list[list[str]] = []
        for dataset in dict.fromkeys(key[0] for key in found):
            rows.append([dataset])
            for price in dict.fromkeys(key[1] for key in found if key[0] == dataset):
                row = [found.get((dataset, price, reading)) for reading in readings]
                rows.append([f"λ = {price:g}", *map(_place_cell, row)])
        caption = (
            f"{title}: mean over the draws, the smallest and the largest, the printed number and "
            "its quantile; bold where it is explained."
        )
        head = ["", *(r.title.removeprefix("DEC-R10G2, ") for r in readings)]
        tables.append(markup.table(head, rows, caption=caption))
    return "".join(tables)


def _place_cell(place: Place | None) -> str:
    if place is None:
        return markup.number("–")
    mean = sci(place.mean)
    return markup.number(
        f"<b>{mean}</b>" if place.is_explained else mean,
        f"{sci(min(place.values), 2)} … {sci(max(place.values), 2)}",
        f"paper {sci(place.printed, 2)}",
        f"quantile {place.quantile:.2f}",
    )


def _column_table(store: Store, profile: Profile, out: Path) -> str:
    rows = [
        [group[0].draw, *(store[cell]["objective"] for cell in group)]
        for group in _column_cells(profile)
        if all(cell in store for cell in group)
    ]
    if not rows:
        return ""
    write_csv(out / "columns.csv", ("draw", "strong_columns", "dec", "refit_fast"), rows)
    rows.sort(key=lambda row: row[1])
    caption = (
        f"{COLUMN_SET}, λ = {COLUMN_PRICE:g}, one row for each draw: how many of its columns could "
        f"stand in for an intercept (each alone explains {STRONG_SHARE:.0%} of a constant), and "
        "what is reached. The paper prints "
        f"{sci(paper.OBJECTIVES[COLUMN_SET, COLUMN_PRICE, dec()].objective, 2)} for DEC."
    )
    lines = [[f"draw {row[0]}", f"{row[1]:g}", sci(row[2]), sci(row[3])] for row in rows]
    head = ["", "strong columns", "DEC-R10G2", "refit (fast)"]
    return markup.table(head, lines, caption=caption)


def _csv_row(place: Place) -> list[object]:
    return [
        place.dataset, place.price, place.reading.title, len(place.values), place.mean,
        min(place.values), max(place.values), place.printed, place.quantile, place.is_explained,
    ]  # fmt: skip


def _tally_row(found: QuantileTally) -> list[object]:
    return [
        found.kind, found.reading.title, found.explained, len(found.places), found.expected,
        found.p_value, found.ratio, " ".join(f"{q:.3f}" for q in found.quantiles),
    ]  # fmt: skip
