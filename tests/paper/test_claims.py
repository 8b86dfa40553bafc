"""How the paper's claims are judged: quantiles, roles and verdicts, on numbers made up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("pandas", reason="numbers are gathered with pandas")

import pandas as pd

from blockl0.paper import figures, observations, quantiles
from blockl0.paper import printed as paper
from blockl0.paper.cells import Cell
from blockl0.paper.claims import Count, Observation
from blockl0.paper.profile import (
    DRAW_CHANGES,
    END_CHANGES,
    FIGURE2_CHANGES,
    FULL,
    Profile,
    curve_cells,
    draw_cells,
    end_cells,
    judged_cells,
    unstopped_cells,
)
from blockl0.paper.quantiles import KINDS, SHOWN_CHANGES, Reading, chance, place
from blockl0.paper.readings import DecChoice, choices, roles_of, under_noise
from blockl0.paper.store import Store
from blockl0.paper.variants import CHANGES, GREEDY, GREEDY_UNIT, dec, dec_on, published

RECORD = {"seconds": 1.0, "n_nonzero": 2, "n_iter": 5, "jobs": 1}
FEW = replace(
    FULL,
    sets=("random-256-1024", "random-256-1024-C"),
    curve_sets=("random-256-1024", "random-256-1024-C"),
    prices=(1.0, 10.0),
    budgets=(3, 8),
    curve_budgets=(20,),
    draws=2,
    start_draws=2,
    curve_draws=2,
    figure_draws=2,
    figure_seeds=2,
)


class Numbers(Store):
    """Cells in memory, from a function of the cell."""

    def __init__(self, cells, objective):
        self._records = {
            cell: RECORD | {"n_iter": 5, "objective": objective(cell)} for cell in cells
        }


def only(observations: list[Observation], part: str) -> Observation:
    [found] = [seen for seen in observations if part in seen.text]
    return found


# -- quantiles -------------------------------------------------------------------------------------


def quantile_of(values, printed: float) -> float:
    return quantiles.quantile_of(values, printed)[0]


def is_explained(values, printed: float) -> bool:
    return quantiles.is_central(quantile_of(values, printed))


def tally(rows, dataset: str = "random-256-1024"):
    """Tally draws with a printed number each."""
    places = [place(dataset, 1.0, Reading("start"), values, printed) for values, printed in rows]
    [found] = quantiles.tally(pd.DataFrame(places)).itertuples()
    return found


def test_a_quantile_is_the_rank_among_all_that_round_to_the_number():
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = rng.uniform(50.0, 150.0, rng.integers(1, 30))
        printed = float(f"{rng.uniform(50.0, 150.0):.1e}")
        half = 0.5 if printed < 100.0 else 5.0
        # brute force: the mean rank of numbers spread over what the printed one stands for
        possible = {sum(v < at for v in values) for at in (printed - half, printed + half)}
        expected = (np.mean([min(possible), max(possible)]) + 0.5) / (len(values) + 1)
        assert quantile_of(values, printed) == pytest.approx(expected)


@pytest.mark.parametrize("n", [20, 150])
def test_a_right_variant_explains_nine_of_ten(n):
    """The printed number is one more draw; so are all of ours."""
    rng = np.random.default_rng(1)
    draws = rng.lognormal(10.0, 0.7, (2000, n + 1))
    found = [(row[1:], float(f"{row[0]:.1e}")) for row in draws]
    share = np.mean([is_explained(*row) for row in found])
    assert chance(n) == pytest.approx({20: 19 / 21, 150: 135 / 151}[n])
    # four standard deviations, and rounding that moves a rank now and then
    assert abs(share - chance(n)) < 0.035
    # of a variant that is 30 % too low it explains less
    low = [is_explained(0.3 * values, printed) for values, printed in found]
    assert np.mean(low) < share - 0.2


def test_the_quantiles_of_a_right_variant_are_uniform():
    rng = np.random.default_rng(2)
    small = 0
    for _ in range(80):
        draws = rng.lognormal(10.0, 0.7, (8, 21))
        small += tally([(row[1:], float(f"{row[0]:.1e}")) for row in draws]).p_uniform < 0.05
    assert small <= 11  # 4 expected
    wrong = tally([(0.2 * row[1:], float(f"{row[0]:.1e}")) for row in draws])
    assert wrong.p_uniform < 0.01


def test_one_draw_cannot_speak_against_a_variant():
    assert chance(1) == 1.0 and is_explained([1.0], 900.0)


def test_numbers_that_never_vary_are_explained_by_themselves():
    alike = [32100.0] * 20
    assert quantiles.quantile_of(alike, 3.2e4) == (0.5, False)
    assert tally([(alike, 3.2e4)] * 8).p_uniform is None
    assert not is_explained(alike, 3.4e4)


def test_quantiles_are_tallied_by_kind_of_set():
    start, values = Reading("start"), [100.0, 300.0]
    places = [
        place("random-256-1024", 1.0, start, values, 100.0),
        place("random-256-2048", 1.0, start, values, 800.0),
        place("random-256-1024-CN", 1.0, start, values, 200.0),
    ]
    first, second = quantiles.tally(pd.DataFrame(places)).itertuples()
    assert (first.kind, first.printed, second.kind) == ("random", 2, "random-CN")
    assert first.ours_over_paper == pytest.approx((2.0 * 0.25) ** 0.5)
    assert first.quantiles == (pytest.approx(1.0 / 3.0), pytest.approx(2.5 / 3.0))


def test_the_printed_starts_show_that_data_were_redrawn():
    losses = quantiles.start_losses("random-256-1024-C", 1024)
    assert [round(value / 1e6, 1) for _, value, _ in losses] == [5.7, 3.5, 6.1, 4.3]
    assert quantiles.is_redrawn(losses)
    # on e2006 all rows are drawn: one and the same number, to its digits
    assert not quantiles.is_redrawn(quantiles.start_losses("e2006-5000-1024", 1024)[:3])
    assert not quantiles.is_redrawn([(1.0, 5.0, 0.5), (10.0, 5.9, 0.5)])


def test_the_reading_of_a_run_that_ended_early_is_its_end():
    rows = pd.DataFrame([RECORD | {"objective": 3.0, "at": {"100": 5.0}}])
    assert Reading("PGM-l1", 100).values(rows).tolist() == [5.0]
    assert Reading("PGM-l1", 300).values(rows).tolist() == [3.0]
    assert Reading("start").column == "APGM-l0" and Reading(dec(change="zero")).column == dec()


def test_differences_are_written_with_their_quantiles(tmp_path):
    numbers = Numbers(draw_cells(FEW), lambda cell: 500.0 * cell.value + cell.draw % 1000)
    text = quantiles.write_differences(numbers, FEW, tmp_path)
    assert "differ by more than their rounding" in text
    rows = (tmp_path / "explained.csv").read_text(encoding="utf-8").splitlines()
    on_random = [r for r in quantiles.READINGS if "theta" not in r.label]
    assert len(rows) == 1 + 3 * len(on_random)
    for name in ("quantile 0.", "p = ", "A right variant explains"):
        assert name in text


# -- verdicts --------------------------------------------------------------------------------------


def seen(*counts: Count, **more) -> Observation:
    return Observation("x", "single runs", counts, **more)


def of(role: str, held: int, **more) -> Count:
    return Count("v", (role,), held, 10, 1, 1, **more)


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ([of("text", 9), of("shown", 0)], "reproduces"),
        ([of("text", 0), of("shown", 9)], "reproduces"),
        ([of("text", 0), of("code", 9), of("shown", 0)], "reproduces"),
        ([of("text", 8), of("code", 8), of("shown", 8)], "in part"),
        ([of("text", 0), of("shown", 0), of("tried", 10)], "in part"),
        ([of("text", 0), of("shown", 0), of("tried", 5)], "in part"),
        ([of("text", 0), of("shown", 4), of("tried", 4)], "does not reproduce"),
        ([of("text", 10, empty="it never moves"), of("tried", 8)], "in part"),
        ([of("text", 0, empty="it never moves")], "not decided"),
    ],
)
def test_verdicts(counts, verdict):
    assert seen(*counts).verdict == verdict


def test_sometimes_needs_less():
    assert seen(of("text", 1), needed=0.05).verdict == "reproduces"
    assert seen(of("text", 0), of("tried", 0), needed=0.05).verdict == "does not reproduce"


def test_reasons_name_the_roles():
    both = seen(of("text", 9), of("shown", 10), of("tried", 10))
    assert both.reason == "under the paper's text and what the printed numbers show"
    every = seen(of("text", 9), of("code", 9), of("shown", 10))
    assert every.reason == (
        "under the paper's text, its authors' code and what the printed numbers show"
    )
    assert seen(of("text", 0), of("tried", 1)).reason == "under none of 2 variants"
    assert "tried" in seen(of("text", 0), of("tried", 10)).reason
    assert seen(of("text", 6), of("tried", 3)).reason == "in 6 of 10 at best"


# -- from numbers to counts ------------------------------------------------------------------------


def test_the_noise_of_random_sets_alone_is_read_in_two_ways():
    sets = ("random-256-1024-C", "e2006-5000-1024-C", "random-256-1024")
    assert under_noise(sets, "-CN") == ("random-256-1024-CN", *sets[1:])
    assert under_noise(sets, "-C") == sets


def test_every_kind_of_set_has_a_change_that_the_print_supports():
    for name in FULL.all_sets:
        change = SHOWN_CHANGES[quantiles.kind(name)]
        assert DecChoice("", SHOWN_CHANGES).label(name, "R2G2") == dec("R2G2", change)
        assert change in CHANGES
    used = {*END_CHANGES} & {*FIGURE2_CHANGES} & {*DRAW_CHANGES}
    assert set(SHOWN_CHANGES) == set(KINDS)
    assert {*SHOWN_CHANGES.values(), "printed"} <= used


def test_roles_are_those_of_all_parts():
    found = {choice.title: choice for choice in choices(FIGURE2_CHANGES, is_budget=True)}
    code, letter = found["DEC as its authors' code"], found["DEC to the letter"]
    assert roles_of(code, "-CN") == roles_of(code, None) == ("code",)
    assert roles_of(code, "-C") == ("tried",) == roles_of(code, "-CN", is_raw=False)
    assert roles_of(letter, "-C") == ("text",) and roles_of(letter, "-CN") == ("tried",)
    # where DEC does not enter, code and print agree
    assert roles_of(None, "-CN") == ("code", "shown")
    assert roles_of(None, "-CN", ("text", "code")) == ("code",)


def test_the_published_program_has_one_list_at_a_price_alone():
    assert published("budget", "random-256-1024", "R5G5") == "DEC-R5G5 code"
    assert published("price", "e2006-5000-1024") == "DEC-R10G2 theta5 ranked"
    assert published("price", "random-256-1024-C") == "DEC-R10G2 ranked"
    [choice] = [c for c in choices(DRAW_CHANGES, is_budget=False) if c.role == "code"]
    for name in FULL.all_sets:
        assert choice.label(name) == published("price", name)


def test_theta_is_varied_on_e2006_alone():
    random, e2006 = "random-256-1024-CN", "e2006-5000-1024-C"
    for change, alike in (("theta3", ""), ("theta5 ranked", "ranked"), ("long", "long")):
        assert dec_on(random, change) == dec(change=alike)
        assert dec_on(e2006, change) == dec(change=change)
    cells = [*draw_cells(FULL), *figure1_cells(FULL), *judged_cells(FULL)]
    assert {c.dataset.split("-")[0] for c in cells if "theta" in c.method} == {"e2006"}
    assert {c.method for c in cells} >= {
        dec_on(n, c) for n in FULL.sets for c in SHOWN_CHANGES.values()
    }


def test_a_claim_that_holds_under_one_variant_alone_is_not_called_wrong():
    """DEC is lowest only when it starts at 0."""

    def objective(cell: Cell) -> float:
        return {dec(change="zero"): 1.0}.get(cell.method, 3.0 if "DEC" in cell.method else 2.0)

    found = observations.observe_table2(Numbers(draw_cells(FEW), objective), FEW)
    lowest = only(found, "DEC outperforms")
    assert lowest.verdict == "in part" and lowest.best.share == 1.0
    assert "start 0" in lowest.best.variant
    assert str(lowest.of("text")) == "0 of 8" and str(lowest.of("shown")) == "0 of 8"
    assert lowest.printed == (30, 32) and lowest.chance == 1 / 5


def test_a_claim_that_holds_nowhere_does_not_reproduce():
    cells = draw_cells(FEW)
    numbers = Numbers(cells, lambda cell: 3.0 if "DEC" in cell.method else 2.0)
    lowest = only(observations.observe_table2(numbers, FEW), "DEC outperforms")
    assert lowest.verdict == "does not reproduce"
    assert lowest.reason == f"under none of {len(lowest.counts)} variants"
    assert {"text", "code", "shown", "tried"} == {r for c in lowest.counts for r in c.roles}


def test_iterations_of_the_others_decide(monkeypatch):
    """After 1000 iterations PGM-ℓp is below DEC, after 300 it is not."""
    monkeypatch.setitem(observations.SHOWN_ITERATIONS, "random", 300)
    cells = draw_cells(FEW)
    numbers = Numbers(cells, lambda cell: {"start": 9.0}.get(cell.method, 2.0))
    for cell in cells:
        if cell.method.startswith(("PGM", "APGM")):
            numbers._records[cell]["at"] = {"100": 5.0, "300": 4.0, "1000": 1.0}
    found = observations.observe_table2(numbers, FEW)
    lowest = only(found, "DEC outperforms")
    shown, text = lowest.of("shown"), lowest.of("text")
    assert lowest.verdict == "reproduces"
    assert lowest.reason == "under what the printed numbers show"
    assert shown.held == shown.total == 8 and text.held == 0 and shown.draws == 2
    assert "as long as the printed columns show, APGM-ℓ0 at its start" in shown.variant


def figure1_cells(profile: Profile) -> list[Cell]:
    return [*curve_cells(profile), *end_cells(profile), *unstopped_cells(profile)]


def in_figure1(objective) -> list[Observation]:
    cells = [*figure1_cells(FEW), *draw_cells(FEW)]
    return observations.observe_figure1(Numbers(cells, objective), FEW)


def test_the_order_of_blocks_is_that_of_means_over_starts():
    def objective(cell: Cell) -> float:
        height = {"R10G2": 1.0, "R5G5": 2.0, "R2G2": 3.0}
        for name, value in height.items():
            if name in cell.method:
                return value + 1.4 * (cell.seed if name == "R10G2" else 1 - cell.seed)
        return 9.0

    order = only(in_figure1(objective), "the larger the block")
    assert order.verdict == "reproduces" and order.chance == 1 / 6
    assert order.of("text").total == 2 * 2 and order.of("text").starts == 2


def test_a_comparison_in_which_one_side_stays_at_its_start_is_empty():
    start = 1000.0

    def objective(cell: Cell) -> float:
        if cell.method == "start":
            return start + cell.value * 1024
        if cell.method.endswith("unstopped"):
            return 10.0 if "R0G2" in cell.method else 5.0
        return start if "R0G2" in cell.method else 500.0

    claim = only(in_figure1(objective), "R0G2 ends above")
    assert claim.of("text") is None and claim.of("shown") is None
    assert all(c.empty for c in claim.counts if c.roles != ("tried",))
    assert "DEC-R0G2 has not left its start in 4 of 4" in claim.counts[0].empty
    assert claim.best.variant.startswith("without stopping") and claim.verdict == "in part"


def in_figure2(objective, profile: Profile = FEW) -> list[Observation]:
    return observations.observe_figure2(Numbers(judged_cells(profile), objective), profile)


def test_blocks_until_the_end_and_mixed_blocks_are_judged():
    """R0G2 stops after 50 blocks, R2G0 after 5000; R10G2 ends lowest in half of the draws."""

    def objective(cell: Cell) -> float:
        return 2.0 if "R10G2" not in cell.method else 1.0 + 2.0 * (cell.draw % 2)

    cells = figure1_cells(FEW)
    numbers = Numbers(cells, objective)
    for cell in cells:
        numbers._records[cell]["n_iter"] = 5000 if "R2G0" in cell.method else 50
    found = observations.observe_figure1(numbers, FEW)
    assert only(found, "converges quickly").verdict == "reproduces"
    mixed = only(found, "combining both")
    assert mixed.verdict == "in part" and str(mixed.of("code")) == "2 of 4"


def test_raw_and_unit_columns_are_different_methods():
    """DEC lies between the greedy methods with raw columns and those with unit columns."""

    def objective(cell: Cell) -> float:
        if cell.method in GREEDY:
            return 3.0
        return 1.0 if cell.method in GREEDY_UNIT else 2.0

    found = in_figure2(objective)
    below = only(found, "below every greedy")
    assert below.verdict == "reproduces" and below.chance == 1 / 5
    assert (
        "raw columns" in below.of("text").variant
        and "DEC to the letter" in below.of("text").variant
    )
    by_columns = {("unit" in c.variant, c.held) for c in below.counts}
    assert by_columns == {(True, 0), (False, 4)}
    assert only(found, "below OMP").verdict == "reproduces"
    assert only(found, "comparable").of("text").total == 4
    assert only(found, "hard thresholding").of("text").held == 0


def test_omp_is_bad_where_it_is_far_above_the_best():
    def objective(cell: Cell) -> float:
        return 2.0 if cell.method == "OMP" and cell.value == 3 else 1.0

    found = in_figure2(objective)
    [omp, romp] = [seen for seen in found if "sometimes bad" in seen.text]
    assert "ROMP" not in omp.text and "ROMP" in romp.text
    assert omp.verdict == "reproduces" and str(omp.of("text")) == "4 of 8"
    assert romp.verdict == "does not reproduce"
    assert "SSP in 0 of 8, CoSaMP in 0 of 8" in omp.note


def test_what_scaling_is_worth(tmp_path):
    def objective(cell: Cell) -> float:
        return {"OMP": 8.0, "OMP unit": 2.0, "refit": 1.0}.get(cell.method, 4.0)

    text = figures.write_scaling(Numbers(judged_cells(FEW), objective), FEW, tmp_path)
    rows = (tmp_path / "scaling.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == ",".join(figures.SCALING_HEAD)
    [row] = [line.split(",") for line in rows if line.startswith("random,OMP")]
    assert [float(value) for value in row[2:]] == pytest.approx([4, 0.25, 0.5, 0.125])
    assert "× 0.25" in text


def test_the_printed_table_has_dec_lowest_in_30_of_32():
    rows = [
        {m: paper.OBJECTIVES[name, price, m].objective for m in paper.METHODS}
        for name in paper.SETS
        for price in paper.PRICES
    ]
    assert sum(row[dec()] <= min(row.values()) for row in rows) == 30
