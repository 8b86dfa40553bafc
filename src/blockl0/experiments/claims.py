"""What the run shows, judged from its own numbers: our promises, and the paper's observations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from blockl0.experiments import differences, figure1, figure2, paper, table1_report, table2, table3
from blockl0.experiments.cells import is_e2006
from blockl0.experiments.markup import counts
from blockl0.experiments.profile import Profile
from blockl0.experiments.samples import Sample, sci, short
from blockl0.experiments.store import Store

ROUNDING = 1e-9
"""An objective is at most another up to this share."""
MOSTLY, HALF = 0.9, 0.5
"""Shares of cases from which an observation reproduces, or reproduces in part."""
LONGEST_FIGURE1, LONGEST_TABLE3 = 30.0, 70.0
"""Seconds within which the paper says that DEC converges."""


@dataclass(frozen=True)
class Claim:
    """A sentence, whether it holds, the evidence, and the cases in which it does not hold."""

    text: str
    verdict: str
    detail: str
    exceptions: tuple[str, ...] = ()


def promises(store: Store, profile: Profile) -> list[Claim]:
    """What our methods must show; only what the run has numbers for is judged."""
    entries = table2.collect(store, profile)
    samples = {(e.dataset, f"λ = {e.price:g}", e.method): e.ours for e in entries}
    budgets = {
        (name, f"s = {s}", method): sample
        for (name, s, method), sample in figure2.collect(store, profile).items()
    }
    claims = [
        _dec_as_low_as_printed(entries),
        _dec_from_zero(store, profile),
        _lowest("Table 2", samples, profile.refit),
        _lowest("Figure 2", budgets, profile.refit),
        _faster(table3.collect(store, profile)),
    ]
    return [claim for claim in claims if claim is not None]


def observations(store: Store, profile: Profile, has_table1: bool) -> list[Claim]:
    """What the paper observes, recounted."""
    claims = [
        *(_same_counts() if has_table1 else []),
        *_of_table2(table2.collect(store, profile)),
        *_of_table3(table3.collect(store, profile)),
        *_of_figure1(store, profile),
        *_of_figure2(store, profile),
    ]
    return [claim for claim in claims if claim is not None]


# -- our promises ----------------------------------------------------------------------------------


def _promise(text: str, exceptions: Sequence[str], total: int, more: str = "") -> Claim | None:
    if not total:
        return None
    if not exceptions:
        return Claim(text, "PASS", f"In all {total} cases.{more}")
    detail = f"Not in {len(exceptions)} of {total} cases.{more}"
    return Claim(text, "FAIL", detail, tuple(exceptions))


def _dec_as_low_as_printed(entries: Sequence[table2.Entry]) -> Claim | None:
    """DEC <= printed, to the two digits printed, on the random sets."""
    dec = [e for e in entries if e.method == "DEC-R10G2" and e.printed and not is_e2006(e.dataset)]
    failures = [
        f"{e.dataset} λ = {e.price:g}: {sci(e.ours.objective)}, printed "
        f"{sci(e.printed.objective, 2)}"
        for e in dec
        if e.printed and float(sci(e.ours.objective, 2)) > e.printed.objective
    ]
    text = (
        "DEC-R10G2 from 1e-7·randn is at most the printed DEC on the random sets at equal "
        "iterations (one draw of each set)"
    )
    return _promise(text, failures, len(dec))


def _dec_from_zero(store: Store, profile: Profile) -> Claim | None:
    ranges = [
        r
        for r in differences.collect(store, profile)
        if r.variant == "DEC-zero" and not is_e2006(r.dataset) and r.printed
    ]
    failures = [
        f"{r.dataset} λ = {r.price:g}: {sci(r.mean)}, printed {sci(r.printed, 2)}"
        for r in ranges
        if r.printed and float(sci(r.mean, 2)) > r.printed
    ]
    draws = counts((len(r.values) for r in ranges), "draw") if ranges else ""
    text = f"DEC-R10G2 from 0 is at most the printed DEC there (mean over {draws})"
    return _promise(text, failures, len(ranges))


def _lowest(where: str, samples: dict[tuple[str, str, str], Sample], ours: str) -> Claim | None:
    """Ours <= every other method, by the means over the starts."""
    failures, total, single, comparisons = [], 0, 0, 0
    for (dataset, parameter, method), other in samples.items():
        best = samples.get((dataset, parameter, ours))
        if method == ours or best is None:
            continue
        total += 1
        pairs = list(_pairs(best.objectives, other.objectives))
        comparisons += len(pairs)
        single += sum(a > b * (1.0 + ROUNDING) for a, b in pairs)
        if best.objective > other.objective * (1.0 + ROUNDING):
            ratio = best.objective / other.objective
            failures.append(f"{dataset} {parameter}: {method} is lower (ours × {ratio:.6g})")
    text = f"refit is at most every other method in every cell of {where}"
    return _promise(text, failures, total, _start_by_start(single, comparisons))


def _start_by_start(single: int, comparisons: int) -> str:
    return f" Start by start, refit is above in {single} of {comparisons} comparisons."


def _pairs(ours: Sequence[float], other: Sequence[float]) -> Iterable[tuple[float, float]]:
    """Start by start; a method without starts meets every one of ours."""
    return zip(ours, other if len(other) > 1 else [other[0]] * len(ours), strict=False)


def _faster(entries: Sequence[table3.Entry]) -> Claim | None:
    timed = [entry for entry in entries if entry.printed and entry.ratio]
    failures = [
        f"{e.dataset} {e.method}: {short(e.mean)} s, printed {e.printed.mean:g} s"
        for e in timed
        if e.printed and e.mean >= e.printed.mean
    ]
    more = f" From {short(_low(timed))} to {short(_high(timed))} times faster." if timed else ""
    return _promise("Every method takes less time than the paper's", failures, len(timed), more)


def _low(entries: Sequence[table3.Entry]) -> float:
    return min(entry.ratio or 0.0 for entry in entries)


def _high(entries: Sequence[table3.Entry]) -> float:
    return max(entry.ratio or 0.0 for entry in entries)


# -- the paper's observations ----------------------------------------------------------------------


def _observed(text: str, cases: Iterable[bool], more: str = "") -> Claim | None:
    seen = list(cases)
    if not seen:
        return None
    share = sum(seen) / len(seen)
    verdict = (
        "reproduces" if share >= MOSTLY else "in part" if share >= HALF else "does not reproduce"
    )
    return Claim(text, verdict, f"In {sum(seen)} of {len(seen)} cases.{more}")


def _same_counts() -> list[Claim | None]:
    return [
        _observed(
            f"Table 1, {name} row",
            (a == b for a, b in zip(ours, printed, strict=True) if b is not None),
            " docs/table1.md explains the rest." if ours != printed else "",
        )
        for name, ours, printed in table1_report.collect()
    ]


def _of_table2(entries: Sequence[table2.Entry]) -> list[Claim | None]:
    rows: dict[tuple[str, float], dict[str, float]] = {}
    for entry in entries:
        rows.setdefault((entry.dataset, entry.price), {})[entry.method] = entry.ours.objective
    complete = [row for row in rows.values() if all(name in row for name in paper.METHODS)]
    return [
        _observed(
            "Table 2: PGM-ℓp is better than the convex PGM-ℓ1",
            (row["PGM-lp"] <= row["PGM-l1"] for row in complete),
        ),
        _observed(
            "Table 2: DEC outperforms the other four",
            (row["DEC-R10G2"] <= min(row[name] for name in paper.METHODS) for row in complete),
        ),
        _observed(
            "Table 2: APGM-ℓ0 ends far above PGM-ℓ0 (printed: twice to hundreds of times)",
            (row["APGM-l0"] > 1.5 * row["PGM-l0"] for row in complete),
            " The printed column is the objective at the start; see the differences.",
        ),
    ]


def _of_table3(entries: Sequence[table3.Entry]) -> list[Claim | None]:
    dec = {entry.dataset: entry for entry in entries if entry.method == "DEC-R10G2"}
    others = [e for e in entries if e.method in paper.METHODS[:-1] and e.dataset in dec]
    runs = [seconds for entry in dec.values() for seconds in entry.seconds]
    return [
        _observed(
            "Table 3: DEC takes several (here: two or more) times longer than the other four",
            (dec[entry.dataset].mean >= 2.0 * entry.mean for entry in others),
        ),
        _observed(
            f"Table 3: DEC converges within {LONGEST_TABLE3:g} seconds",
            (seconds < LONGEST_TABLE3 for seconds in runs),
            f" Longest: {short(max(runs))} s." if runs else "",
        ),
    ]


def _of_figure1(store: Store, profile: Profile) -> list[Claim | None]:
    records = figure1.collect(store, profile)
    panels: dict[tuple[str, int], dict[str, float]] = {}
    for (dataset, budget, method), record in records.items():
        panels.setdefault((dataset, budget), {})[method] = record["objective"]
    ends = [p for p in panels.values() if all(name in p for name in figure1.PAPER_METHODS)]
    dec = [r["seconds"] for (*_, method), r in records.items() if method.startswith("DEC")]
    ranked = differences.greedy_rows(store, profile)
    return [
        _observed(
            "Figure 1: PGM and APGM end alike (within 5 %)",
            (abs(end["PGM"] - end["APGM"]) <= 0.05 * end["PGM"] for end in ends),
        ),
        _observed(
            "Figure 1: DEC-R10G2 ends below PGM and APGM",
            (end["DEC-R10G2"] < min(end["PGM"], end["APGM"]) for end in ends),
        ),
        _observed(
            "Figure 1: large blocks end lower than small ones (R10G2 ≤ R2G2)",
            (end["DEC-R10G2"] <= end["DEC-R2G2"] for end in ends),
        ),
        _observed(
            "Figure 1: the larger the block, the lower the end (R10G2 ≤ R5G5 ≤ R2G2)",
            (end["DEC-R10G2"] <= end["DEC-R5G5"] <= end["DEC-R2G2"] for end in ends),
        ),
        _observed(
            "Figure 1: DEC-R0G2 ends above DEC-R2G0, greedy coordinates half from the support",
            (end["DEC-R0G2"] > end["DEC-R2G0"] for end in ends),
        ),
        _observed(
            "Figure 1: DEC-R0G2 ends above DEC-R2G0, greedy coordinates from one sorted list",
            (row["DEC-R0G2-ranked"] > row["DEC-R2G0"] for row in ranked.values()),
        ),
        _observed(
            f"Figure 1: DEC converges within {LONGEST_FIGURE1:g} seconds",
            (seconds < LONGEST_FIGURE1 for seconds in dec),
            f" Longest: {short(max(dec))} s." if dec else "",
        ),
    ]


def _of_figure2(store: Store, profile: Profile) -> list[Claim | None]:
    cases: dict[tuple[str, int], dict[str, float]] = {}
    for (dataset, budget, method), sample in figure2.collect(store, profile).items():
        cases.setdefault((dataset, budget), {})[method] = sample.objective
    complete = {
        key: case
        for key, case in cases.items()
        if all(name in case for name in figure2.PAPER_METHODS)
    }
    greedy = ("SSP", "ROMP", "OMP", "CoSaMP")
    clean = [c for (name, _), c in complete.items() if name in paper.SETS[:2]]
    others = [c for (name, _), c in complete.items() if name not in paper.SETS[:2]]

    def middle(case: dict[str, float], names: Sequence[str]) -> float:
        return float(np.median([case[name] for name in names]))

    return [
        _observed(
            "Figure 2: hard thresholding (PGM, APGM, QPM) is worse than the greedy methods "
            "(medians)",
            (middle(c, ("PGM", "APGM", "QPM")) > middle(c, greedy) for c in complete.values()),
        ),
        _observed(
            "Figure 2: on the clean random sets DEC is comparable to the greedy methods (at most "
            "10 % above their median)",
            (c["DEC-R10G2"] <= 1.1 * middle(c, greedy) for c in clean),
        ),
        _observed(
            "Figure 2: on the other sets DEC is below every greedy method",
            (c["DEC-R10G2"] < min(c[name] for name in greedy) for c in others),
        ),
    ]
