"""Tables, slopes of growth and verdicts, from the rows of the CSV."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from cells import COMPARED, Cell

MEMORY_FACTOR, MEMORY_CONSTANT = 1.3, 64 * 2**20
"""Peak memory may be this many times the data plus this many bytes."""
PASSES_SLOPE = 0.1
"""Growth exponent of the passes over X that still counts as none: 1.3 times from s = 5 to 80."""
GROWTH = {"n dense": "n", "n sparse": "n", "m dense": "m"}
"""Series of growth and the size that grows."""

SLOPE_OF = {"seconds": "   slopes", "MiB beside X": "   slopes of X with it", "objective": ""}
"""Heads of the last column: slope over all sizes, slope of the last step."""

Rows = dict[Cell, dict[str, str]]


def is_ok(row: dict[str, str]) -> bool:
    return row["status"] == "ok"


def peak_bytes(row: dict[str, str]) -> float:
    """The data and what the call took beside them."""
    return float(row["data_bytes"]) + float(row["extra_bytes"])


def seconds(row: dict[str, str]) -> float:
    """Processor time: with one thread that of a quiet machine, also when others use this one."""
    return float(row["cpu_seconds"])


def slope(x, y) -> float:
    """Exponent p of y ~ x^p by least squares in logarithms; nan below two points."""
    if len(x) < 2:
        return np.nan
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def line(cell: Cell, row: dict[str, str]) -> str:
    """A cell and what it measured."""
    kind = "dense" if cell.density == 1.0 else f"{cell.density:.0%} sparse"
    head = f"{cell.series:14s} {cell.method:20s} {cell.m}×{cell.n} {kind}, s = {cell.s}: "
    if not is_ok(row):
        return head + row["status"]
    extra, data = (float(row[name]) / 2**20 for name in ("extra_bytes", "data_bytes"))
    return head + f"{seconds(row):.4g} s, {extra:.0f} MiB beside {data:.0f}"


def growth_points(rows: Rows, series: str, method: str):
    """Sizes, seconds and peak bytes of the finished cells."""
    cells = [c for c in rows if (c.series, c.method) == (series, method) and is_ok(rows[c])]
    x = [getattr(c, GROWTH[series]) for c in cells]
    return x, [seconds(rows[c]) for c in cells], [peak_bytes(rows[c]) for c in cells]


def make(rows: Rows) -> tuple[str, bool]:
    """The whole report, and whether no target was missed."""
    lines = [*_growth_tables(rows), *_passes_table(rows)]
    verdicts = [_race(rows), _largest(rows), _memory(rows), *_passes(rows)]
    words = {True: "PASS", False: "FAIL", None: "n/a "}
    lines += ["", *(f"{words[passed]}  {text}" for passed, text in verdicts)]
    sources = {row["source"] for cell, row in rows.items() if "blockl0" in cell.method}
    if len(sources) > 1:
        lines.append(f"Rows of different sources of blockl0 ({', '.join(sorted(sources))}): rerun.")
    return "\n".join(lines), all(passed is not False for passed, _ in verdicts)


def _growth_tables(rows: Rows) -> list[str]:
    lines = []
    for series, axis in GROWTH.items():
        cells = [cell for cell in rows if cell.series == series]
        sizes = sorted({getattr(cell, axis) for cell in cells})
        fixed = f"m = {cells[0].m}" if axis == "n" else f"n = {cells[0].n}"
        lines += [
            "",
            f"{series}: {fixed}, s = {cells[0].s}; slopes: over all sizes, of the last step",
        ]
        head = "".join(f"{f'{axis} = {size:.0e}'.replace('e+0', 'e'):>12s}" for size in sizes)
        for unit in ("seconds", "MiB beside X", "objective"):
            lines.append(f"  {unit:20s}{head}{SLOPE_OF[unit]}")
            for method in dict.fromkeys(cell.method for cell in cells):
                row = [r for c, r in rows.items() if (c.series, c.method) == (series, method)]
                values = "".join(f"{_entry(r, unit):>12s}" for r in row)
                lines.append(f"  {method:20s}{values}{_slopes(rows, series, method, unit)}")
        data = [rows[c] for c in cells if c.method == COMPARED[0]]
        values = (f"{float(r['data_bytes']) / 2**20:.1f}" if is_ok(r) else "" for r in data)
        lines.append(f"  {'MiB of X':20s}" + "".join(f"{value:>12s}" for value in values))
    return lines


def _entry(row: dict[str, str], unit: str) -> str:
    if not is_ok(row):
        return {"did": "> limit", "out": "memory"}.get(row["status"].split()[0], "-")
    if unit == "seconds":
        return f"{seconds(row):.4g}"
    if unit == "objective":
        return f"{float(row['objective']):.6g}"
    return f"{float(row['extra_bytes']) / 2**20:.1f}"


def _slopes(rows: Rows, series: str, method: str, unit: str) -> str:
    if unit == "objective":
        return ""
    x, times, peaks = growth_points(rows, series, method)
    y = times if unit == "seconds" else peaks
    return f"{slope(x, y):8.2f}, {slope(x[-2:], y[-2:]):.2f}"


def _mean_passes(rows: Rows, series: str) -> dict[tuple[str, int], float]:
    """(method, s) to the mean over seeds."""
    groups = defaultdict(list)
    for cell, row in rows.items():
        if cell.series == series and is_ok(row) and row["n_passes"]:
            groups[cell.method, cell.s].append(float(row["n_passes"]))
    return {key: float(np.mean(values)) for key, values in groups.items()}


def _passes_table(rows: Rows) -> list[str]:
    lines = ["", "full passes over X, mean over seeds"]
    for series in ("passes easy", "passes hard"):
        cell = next(c for c in rows if c.series == series)
        means = _mean_passes(rows, series)
        lines.append(f"  {series}, {cell.m}×{cell.n}" + ("" if means else ": not counted"))
        lines += [
            f"    {method:22s} s = {s:3d}  {mean:6.1f}" for (method, s), mean in means.items()
        ]
    return lines


def _race(rows: Rows) -> tuple[bool | None, str]:
    race = {cell.method: (cell, row) for cell, row in rows.items() if cell.series == "race"}
    (cell, ours), (_, peer) = race["blockl0 fast"], race["abess"]
    text = f"{cell.m}×{cell.n} dense, s = {cell.s}, seconds in one run: " + ", ".join(
        f"{method} {seconds(row):.3g}" if is_ok(row) else f"{method} {row['status']}"
        for method, (_, row) in race.items()
    )
    if not is_ok(ours):
        return False, text
    if not is_ok(peer):
        return (True if peer["status"] == "did not finish" else None), text
    return seconds(ours) < seconds(peer), text


def _largest(rows: Rows) -> tuple[bool | None, str]:
    largest = max(cell.n for cell in rows if cell.series == "n sparse")
    ours = {
        cell: row
        for cell, row in rows.items()
        if cell.series == "n sparse" and cell.n == largest and "blockl0" in cell.method
    }
    solved = all(is_ok(row) and row["certified"] == "True" for row in ours.values())
    cell = next(iter(ours))
    times = ", ".join(
        f"{c.method} {seconds(r):.3g} s" if is_ok(r) else f"{c.method} {r['status']}"
        for c, r in ours.items()
    )
    return solved, (
        f"{cell.m}×{cell.n} sparse, {cell.density:.0%} dense, solved and certified 1-swap "
        f"stationary: {times}"
    )


def _memory(rows: Rows) -> tuple[bool | None, str]:
    ours = {c: r for c, r in rows.items() if "blockl0" in c.method and is_ok(r)}

    def excess(cell: Cell) -> float:
        allowed = MEMORY_FACTOR * float(ours[cell]["data_bytes"]) + MEMORY_CONSTANT
        return peak_bytes(ours[cell]) - allowed

    worst = max(ours, key=excess)
    failed = sum(excess(cell) > 0.0 for cell in ours)
    return failed == 0, (
        f"peak memory ≤ {MEMORY_FACTOR} × data + {MEMORY_CONSTANT // 2**20} MiB: missed by "
        f"{failed} of {len(ours)} cells; tightest: {line(worst, ours[worst])}"
    )


def _passes(rows: Rows) -> list[tuple[bool | None, str]]:
    sweeps = {}
    for series in ("passes easy", "passes hard"):
        means = _mean_passes(rows, series)
        for method in COMPARED[:2]:
            sweep = {s: mean for (m, s), mean in means.items() if m == method}
            sweeps[f"s ({series[7:]}, {method})"] = sweep
    verdicts = []
    for name, means in sweeps.items():
        exponent = slope(list(means), list(means.values()))
        grown = ", ".join(f"{x}: {mean:.1f}" for x, mean in means.items()) or "not counted"
        passed = None if np.isnan(exponent) else exponent <= PASSES_SLOPE
        text = f"passes over X do not grow with {name}: exponent {exponent:.2f} ({grown})"
        verdicts.append((passed, text))
    return verdicts
