"""The settings of every method, as a table of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from blockl0.paper import figure1, figure2, markup, quantiles, table2
from blockl0.paper.profile import Profile
from blockl0.paper.variants import CHANGE_TITLES, VARIANTS, Variant, dec

NAME = "variants"
TITLE = "How every method is run"
HEAD = ("", "start", "greedy choice", "θ", "stopping", "iterations at most", "columns ranked")
GREEDY_TITLES = {
    "split": "half from the support",
    "ranked": "one list",
    "paper": "the paper's list",
}


def section(profile: Profile) -> str:
    """Return the table of all variants that this profile runs."""
    changes = [
        *figure1.END_CHANGES, *figure2.DEC_CHANGES, *quantiles.DEC_CHANGES,
        *(["unstopped"] if profile.is_unstopped else []),
    ]  # fmt: skip
    others = [
        *table2.methods(profile), *figure1.methods(profile), *figure2.methods(profile),
        *quantiles.METHODS,
    ]  # fmt: skip
    rows = [
        [f"DEC-RiGj, {CHANGE_TITLES[name]}", *_record(VARIANTS[dec(change=name)])]
        for name in CHANGE_TITLES
        if name in changes
    ]
    rows += [
        [escape(variant.title), *_record(variant)]
        for label, variant in VARIANTS.items()
        if label in others and variant.solver != "dec"
    ]
    caption = (
        "“Half from the support” is what the authors' code does; “one list” merges the scores of "
        "zeros and support; “the paper's list” is that with the scores to the letter, by which all "
        "zeros are equal once the budget is full. θ is “relative” where it is multiplied by "
        "the largest squared length of a column if that is below 1. Stopping: the mean relative "
        "decrease over so many iterations is at most 1e-5; “the paper's” judges the loss alone, "
        "from the second iteration on. θ is varied on e2006 alone: on the random sets the largest "
        "squared length is in the hundreds, so that relative or not is the same, and 1e-5 hardly "
        "another number than 1e-3. Without stopping, R0G2 ends when a block changes nothing: it "
        "would come again for ever."
    )
    return markup.section(NAME, TITLE, markup.table(HEAD, rows, caption=caption))


def _record(variant: Variant) -> Sequence[str]:
    theta = "–"
    if variant.theta is not None:
        theta = f"{variant.theta:g}" + (", relative" if variant.theta_scale else "")
    stopping = "–"
    if variant.window is not None:
        stopping = f"over {variant.window}"
        stopping += ", the paper's" if variant.stopping == "paper" else ""
        stopping = "never" if variant.window == variant.max_iter else stopping
    columns = {None: "–", True: "unit", False: "raw"}[variant.normalize]
    limit = "–" if variant.max_iter is None else f"{variant.max_iter:,}"
    greedy = GREEDY_TITLES.get(variant.greedy or "", "–")
    return [variant.start, greedy, theta, stopping, limit, columns]
