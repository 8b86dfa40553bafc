"""Sentences about certificates and proofs: for `str`, the command line and the report."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, comb
from typing import TYPE_CHECKING

from blockl0.certify.close_sets import CLOSE
from blockl0.certify.levels import SURE, Choice, ProofStatus
from blockl0.result import Status, left_out_note
from blockl0.text import count, listing, percent

if TYPE_CHECKING:
    from blockl0.certify.certify import Certificate
    from blockl0.result import Result

VERDICTS = {
    "all": "Nothing to choose",
    "optimal": "Proven",
    "pairs": "Proven up to two exchanges",
    "swaps": "Proven up to one exchange",
    "single": "Proven for single changes",
    "tried": "Tried, not proven",
    "refuted": "No: better is known",
    "none": "Searched, not proven",
}
"""What is known of a point, by the kind of its `ProofStatus`."""
ANSWERS = {
    "all": "Nothing to choose",
    "optimal": "No (proven)",
    "pairs": "Not by two exchanges (proven)",
    "swaps": "Not by one exchange (proven)",
    "single": "Not by one change (proven)",
    "tried": "None was found",
    "refuted": "Yes",
    "none": "None was found",
}
"""The same kinds as answers to `question`."""
INFERENCE = (
    "The columns were chosen by looking at the target: usual standard errors, p-values and "
    "confidence intervals for these coefficients would be too optimistic. For inference, fit the "
    "chosen columns to rows that had no part in the choice."
)
ABOUT_ROWS = (
    "A proof is about these rows and this objective. Whether the same columns are best for other "
    "rows is a question for the folds."
)
PENALIZED = "for this ridge penalty"
"""Condition of a proof with a ridge; another ridge may have another best set."""
TOLD_APART = "Sets of columns that nearly depend on each other were left out."
WITHIN = f"{100.0 * CLOSE:g}\N{NO-BREAK SPACE}% of the objective"
NO_BOUND = " More cannot be proven without a ridge, as no bound exists."
NO_BOUND_OF_CLASSES = " More cannot be proven, as there is no bound for several classes."
SUPERSCRIPT = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
TOO_LATE = "the time limit was reached before all changes were examined, none of which helped"
ROUNDING = 1e-9
LISTED = 4
"""Columns named in an exchange."""


# -- certificates ----------------------------------------------------------------------------------


def of_certificate(found: Certificate) -> str:
    """Describe a certificate in the terms of the paper, columns by number."""
    name = f"block-{found.level}" if isinstance(found.level, int) else str(found.level)
    outside = f" with the outside {found.outside}" if found.outside else ""
    if found.n_blocks == 0 and found.status is Status.TIME_LIMIT:
        return f"Not known whether {name} stationary{outside}: {TOO_LATE}."
    if not found.holds:
        columns = ", ".join(str(j) for j in found.block or ())
        return f"Not {name} stationary{outside}: {_refutation(found, f'columns {columns}')}"
    if found.level in ("basic", "L"):
        return f"{name} stationary (objective {found.objective:.8g})."
    if is_global(found):
        about = f" {PENALIZED}" if found.ridge else ""
        said = f"Proven globally optimal{about} ({name} stationary): no change of any columns "
        said += "improves it."
        return said + _note(found.near_dependent)
    if found.complete:
        return f"{name} stationary{outside}: none of {found.n_blocks} blocks can improve it."
    return (
        f"No improvement in {found.n_blocks} random blocks of {found.level} columns{outside}: "
        f"{_confidence(found)} blocks cannot improve it."
    )


def is_global(found: Certificate) -> bool:
    """Check if a certificate covers all columns at once, and so all other points."""
    return found.complete and found.n_blocks == 1


def claim_of(
    found: Certificate, names: Sequence[str], n_kept: int = 0, is_exact: bool = True,
    is_charged: bool = False,
) -> str:  # fmt: skip
    """Describe a certificate without the terms of the paper, columns by name."""
    if found.n_blocks == 0 and found.status is Status.TIME_LIMIT:
        return f"Not known: {TOO_LATE}."
    if not found.holds:
        columns = ", ".join(names[j] for j in found.block or ())
        return f"Refuted: {_refutation(found, columns)}"
    if found.level == "basic":
        return "Proven: these are the best coefficients for the chosen columns."
    supposed = supposing(n_kept, is_charged)
    if is_global(found):
        about = f" {PENALIZED}" if found.ridge else ""
        said = f"Proven: {supposed}the global optimum{about}. No choice of columns is "
        said += "better."
        return f"{said}{apart_only(names, found.near_dependent)}"
    model = "" if is_exact else " on the quadratic upper bound of the loss"
    others = "re-fitted" if found.outside == "refit" else "left as they are"
    if found.complete:
        return (
            f"Proven: {supposed}none of the {found.n_blocks} ways to pick {found.level} "
            f"of the {len(names)} columns and change them (enter, leave, exchange), all others "
            f"{others}, helps{model}."
        )
    sure = _confidence(found)
    return (
        f"Tried: {supposed}{found.n_blocks} random picks of {found.level} columns, all "
        f"others {others}; none helps{model}. {sure[0].upper()}{sure[1:]} picks do not."
    )


def apart_only(names: Sequence[str], columns: Sequence[int] | None) -> str:
    """Say which sets an optimum is not about, where there are such, or may be."""
    return _note(None if columns is None else [names[j] for j in columns])


def _note(columns: Sequence[int | str] | None) -> str:
    return "" if columns is not None and not columns else f" {left_out_note(columns)}"


def unknown_claim(level: int | str, is_sampled: bool) -> str:
    """Describe a level for which no certificate is within reach."""
    if is_sampled:
        return f"Not known: a pick of {level} columns is too large to be searched; lower --level."
    return f"Not known: all changes of {level} columns are too many; try --samples 10000."


def one_by_one(level: int | str, is_sampled: bool) -> str:
    """Describe a level that only columns chosen one by one, without bounds, have."""
    what = "--samples is" if is_sampled else f"changes of {level} columns at once are"
    return (
        f"Not known: {what} for columns that are chosen one by one, without bounds and for one "
        "target; --level 2 is the most here, "
        "and --levels separate takes categories apart."
    )


def _refutation(found: Certificate, columns: str) -> str:
    return (
        f"changing {columns} lowers the objective from {found.objective:.8g} to "
        f"{found.better_objective:.8g}."
    )


def _confidence(found: Certificate) -> str:
    return f"with {SURE:.0%} confidence at least {found.confidence:.2%} of all"


def supposing(n_kept: int, is_charged: bool = False) -> str:
    """Name the conditions of a claim: kept columns, and charges for coefficients."""
    kept = [] if n_kept == 0 else [f"the {'columns' if n_kept > 1 else 'column'} kept"]
    charged = ["the coefficients of categories charged"] if is_charged else []
    return f"with {' and '.join([*kept, *charged])}, " if kept or charged else ""


# -- proofs ----------------------------------------------------------------------------------------


def verdict(proof: ProofStatus) -> str:
    """Name the kind of a proof in a few words."""
    if proof.kind == "tried" and proof.is_complete:
        return "No single exchange helps"
    return VERDICTS[proof.kind]


def answer(proof: ProofStatus) -> str:
    """Answer `question` in a few words."""
    if proof.kind == "tried" and proof.is_complete:
        return ANSWERS["swaps"]
    return ANSWERS[proof.kind]


def question(choice: Choice) -> str:
    """Ask whether there is a better choice, for these rows."""
    k, budget = choice.n_chosen, choice.budget
    if not budget:
        return "Is there a better choice?"
    if budget == 1:
        return "Is there a better column for these rows?"
    return f"Is there a better set of {'up to ' if k < budget else ''}{budget} for these rows?"


def short(proof: ProofStatus, choice: Choice) -> str:
    """Say what is known, on which conditions, and how many sets are close."""
    text = _known(proof, choice)
    if proof.kind in ("all", "refuted"):
        return text
    if choice.has_ridge and proof.kind != "none":
        text = f"{text[:-1]} {PENALIZED}."
    if proof.gap is not None and proof.kind != "optimal":
        text += f" Nothing can improve it by more than {at_most(proof.gap)}."
    text += _close_sets(proof)
    return f"{text} {TOLD_APART}" if proof.left_out else text


def _close_sets(proof: ProofStatus) -> str:
    """Say how many sets one exchange away are nearly as good."""
    if not proof.n_close:
        return ""
    if proof.n_close == 1:
        return f" But one set that differs in one column is within {WITHIN}."
    return f" But {proof.n_close} sets that differ in one column are within {WITHIN}."


def _known(proof: ProofStatus, choice: Choice) -> str:
    """Say what is known in one sentence."""
    k, budget = choice.n_chosen, choice.budget
    if proof.kind == "all":
        return "There is only one choice of this size."
    if proof.kind == "optimal":
        if k < budget:
            return f"No choice of up to {count(budget, 'column')} fits these rows better."
        return f"No other {f'{k} columns fit' if k > 1 else 'column fits'} these rows better."
    if proof.kind == "refuted":
        return f"Another choice of columns lowers the objective by {percent(proof.gain)}."
    if proof.kind == "single":
        return "Adding or removing one column cannot improve the fit."
    if proof.kind == "tried":
        tried = "Every exchange of one column for another was tried"
        if not proof.is_complete:
            share = percent(proof.n_tried / proof.n_possible)
            tried = f"Of all exchanges of one column for another {share} were tried"
        return f"{tried}; none improves the fit."
    if proof.kind == "none":
        return "A search found nothing better; there is no proof."
    exchange = "one or two" if proof.kind == "pairs" else "one"
    return f"Exchanging {exchange} of the {k} columns for others cannot improve the fit."


def at_most(gap: float) -> str:
    """Format a bound in percent, rounded up: whole numbers, or tenths below one."""
    steps = 100.0 if gap > 0.01 else 1000.0
    return percent(max(1, ceil(steps * gap - ROUNDING)) / steps)


def sentence(proof: ProofStatus, choice: Choice) -> str:
    """Combine verdict and knowledge into a line of text."""
    if choice.n_chosen == 0:
        return "No column is chosen: the prediction is the same for all rows."
    if proof.kind == "all" and choice.n_chosen == choice.n_features:
        if choice.n_features == 1:
            return "Nothing to choose: the only column is in."
        return f"Nothing to choose: all {choice.n_features} columns are in."
    known = short(proof, choice)
    supposed = supposing(choice.n_kept, choice.price > 0.0)
    known = f"{verdict(proof)}: {supposed}{known[0].lower()}{known[1:]}"
    if proof.is_optimal or proof.kind == "refuted":
        return known
    more = "" if proof.kind == "none" else " that differ in more columns"
    return f"{known} Better choices{more} may exist.{_why_no_more(proof, choice)}"


def _why_no_more(proof: ProofStatus, choice: Choice) -> str:
    """Say why no bound exists; with a ridge that can only be the loss."""
    if proof.has_bound:
        return ""
    return NO_BOUND_OF_CLASSES if choice.has_ridge else NO_BOUND


def proven(proof: ProofStatus, choice: Choice, names: Sequence[str]) -> str:
    """Describe in full what is proven."""
    budget, n = choice.budget, choice.n_features
    if proof.kind == "all":
        return (
            "At this size there is nothing to choose, only to fit; the fit is the best one on its "
            "columns."
        )
    if proof.kind == "optimal":
        return (
            f"There are {n_subsets(n - choice.n_kept, choice.n_free)} ways to take {budget} of {n} "
            "columns. Every one was examined, or excluded by a bound: none has a lower "
            f"objective on these rows{f' {PENALIZED}' if choice.has_ridge else ''}."
        )
    if proof.kind == "refuted":
        return (
            f"That this is not the best choice: {_exchange(proof, names)} lowers the objective by "
            f"{percent(proof.gain)}. Repeat the report with a higher effort to have it found."
        )
    text = _proven_changes(proof, choice)
    if proof.gap is not None:
        text += f" Moreover, no choice of {budget} columns whatever lowers the objective by more "
        text += f"than {percent(proof.gap)}."
    return text


def _proven_changes(proof: ProofStatus, choice: Choice) -> str:
    """Say which changes of a possibly suboptimal point do not help."""
    if proof.kind == "single":
        return (
            "Adding or removing any one column, all coefficients fitted anew, does not lower the "
            "objective."
        )
    if proof.kind == "tried":
        whole = "All" if proof.is_complete else f"{proof.n_tried} of the"
        return (
            f"{whole} {proof.n_possible} exchanges of a chosen column for another were fitted, all "
            "coefficients anew, or excluded by a bound: none lowers the objective."
        )
    if proof.kind == "none":
        return "Nothing beyond the fit itself: the coefficients are the best ones for its columns."
    many, k = "one or two" if proof.kind == "pairs" else "one", choice.n_chosen
    return (
        f"If {many} of the {k} columns are exchanged for any of the other {choice.n_features - k}, "
        "and all coefficients are fitted anew, the objective does not go down. All such exchanges "
        "were examined or excluded by a bound."
    )


def left_open(proof: ProofStatus, choice: Choice) -> str:
    """Say what was searched without proof, or what no proof can cover."""
    if proof.is_optimal:
        return ABOUT_ROWS
    if proof.kind == "refuted":
        return "The search that made this page stopped before it found the better choice."
    if proof.kind in ("pairs", "swaps"):
        more = "three or more" if proof.kind == "pairs" else "two or more"
        text = f"Whether an exchange of {more} columns at once would help was searched, not proven."
    elif proof.kind == "tried":
        rest = proof.n_possible - proof.n_tried
        text = "Exchanges of two or more columns at once were searched, not tried one by one."
        if rest:
            text = f"The other {rest} single exchanges, and larger ones, were searched only."
    else:
        text = (
            f"That no other {choice.n_chosen} of the {choice.n_features} columns fit better was "
            "searched, not proven."
        )
    return f"{text}{_why_no_more(proof, choice)} {ABOUT_ROWS}"


def of_search(
    proof: ProofStatus, choice: Choice, here: float, found: Result, gap: float,
    chosen: Sequence[str],
    limit: str,
) -> str:  # fmt: skip
    """Describe what an exact search within a limit says of a point with this objective.

    `chosen` names the columns that it found, `gap` is its gap. If there is no bound, its own note
    says why.
    """
    if proof.kind == "refuted":
        better = f"{here:.8g} to {found.objective:.8g}"
        return f"Refuted: {', '.join(chosen)} lower the objective from {better}."
    if proof.is_optimal:
        supposed = supposing(choice.n_kept, choice.price > 0.0)
        return f"Proven: {supposed}the global optimum. {short(proof, choice)}"
    if found.note is not None:
        return f"Not known. {found.note}"
    most = f"no choice can lower the objective by more than {gap:.2%} (lower bound "
    most += f"{found.lower_bound:.8g})"
    if found.status is Status.GAP:
        return f"Proven to be within the gap that was asked for: {most}."
    return f"Not proven within {limit}: {most}; a longer --time-limit may."


def _exchange(proof: ProofStatus, names: Sequence[str]) -> str:
    def listed(columns: tuple[int, ...]) -> str:
        return listing([f"“{names[j]}”" for j in columns], LISTED)

    if not proof.leave:
        return f"adding {listed(proof.enter)}"
    if not proof.enter:
        return f"leaving out {listed(proof.leave)}"
    return f"{listed(proof.enter)} in place of {listed(proof.leave)}"


def n_subsets(n: int, k: int) -> str:
    """Format the number of subsets readably."""
    number = comb(n, k)
    if number < 10**6:
        return f"{number:,}".replace(",", " ")
    digits = str(number)
    return f"about {digits[0]}.{digits[1]} × 10{str(len(digits) - 1).translate(SUPERSCRIPT)}"
