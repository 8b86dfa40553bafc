"""`blockl0 certify`: what is proven about a solution."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.output import DATA, INTERRUPTED, NOT_PROVEN, Job, Refused, bullet, names_line

PROBLEM = ("ridge", "keep", "positive", "bounds", "class_weight")
"""Options of the problem that a model file stores."""


@click.command("certify", short_help="Say what is proven about a choice.")
@shared.data_options
@shared.stream_option
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="A saved model.")
@shared.columns_option
@shared.search_options
@shared.costs_option
@shared.class_weight_option
@click.option(
    "--level",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Change so many columns at once.",
)
@click.option(
    "--outside",
    type=click.Choice(["refit", "fixed"]),
    default="refit",
    show_default=True,
    help="Whether the other chosen columns are re-fitted, or stay as they are.",
)
@click.option("--samples", type=click.IntRange(min=1), help="Try so many blocks, not all.")
@click.option(
    "--exact/--no-exact", default=None, help="Insist on a proof of the optimum, or skip it."
)
@shared.gap_option
@shared.test_option
@shared.seed_option
@shared.output_options
def command(**options: Any) -> None:
    """Say what is proven about the columns of a model, on the DATA of its fit.

    With --model the answer is one that `fit --out` has saved, and DATA are read as they were then;
    else columns are chosen first (-k). The global optimum is tried as well, where it can be proven:
    with no more columns than rows, or with a ridge, which losses other than the squared one need;
    with as much work as fit has, twelve times that with --exact, or all of --time-limit. The exit
    code is 5 when a claim fails: there is a better
    choice, or --exact was given and the proof did not end.
    """
    with Job("certify", options) as job:
        data, problem, w, is_cut = _point(job, options)
        claims = _claims(job, data, problem, w, options)
        failed = [claim for claim in claims if claim["holds"] is False]
        result = {
            "objective": _objective(problem, w),
            "n_nonzero": problem.units.count(w),
            "features": [data.unit_names[unit] for unit in problem.units.support(w)],
            "claims": claims,
            "holds": not failed,
        }
        is_cut |= any(claim.get("status") == "interrupted" for claim in claims)
        job.answer(result, _lines(data, result), "interrupted" if is_cut else "done")
        if is_cut:
            raise SystemExit(INTERRUPTED)
        if failed:
            raise SystemExit(NOT_PROVEN)


def _point(job: Job, options: dict[str, Any]) -> tuple[Any, Any, Any, bool]:
    """Return (data, problem, coefficients to certify, whether Ctrl-C cut their search)."""
    from blockl0.app.cli.data import bind, check_names, check_size, load
    from blockl0.app.cli.fit import fit_k

    if options["model"] is not None:
        return _saved_point(job, options)
    if options["columns"] is None:
        raise click.UsageError("Give --model FILE, or -k for the number of columns.")
    data = load(job, options)
    check_size(data, options["columns"])
    check_names(data, options)
    with job.timed("fit"):
        model = fit_k(job, data, options).model
    is_cut = str(model.status_) == "interrupted"
    if is_cut:
        job.notice("The search was interrupted: what follows is about the best choice so far.")
    problem = bind(model, data).problem
    return data, problem, _of_problem(problem, model.coef_), is_cut


def _of_problem(problem: Any, coef: Any) -> Any:
    """Reshape coefficients (n,), (1, n) or (n_classes, n) for the problem."""
    return coef.T.reshape(problem.zero().shape)


def _saved_point(job: Job, options: dict[str, Any]) -> tuple[Any, Any, Any, bool]:

    from blockl0.app.cli.data import (
        bind,
        coefficient_costs,
        decimal_of,
        load,
        make_estimator,
        stored,
    )
    from blockl0.app.model_checks import check_problem, check_reading
    from blockl0.app.model_file import load_model
    from blockl0.app.tables.csv_text import DIALECT

    model = load_model(options["model"])
    known = stored(options["model"], check_problem, model.metadata, model.n_features_in)
    reading = stored(options["model"], check_reading, model.metadata)
    if known is None or not reading:
        raise Refused(f"{options['model']} does not tell the problem it solves; fit it here.", DATA)
    # files from before bounds, and before categories were selected as a whole
    known = {"positive": [], "bounds": [], "class_weight": [], **known}
    reading = {"levels": "separate", **reading}
    _refuse_others(
        {**reading, "loss": model.loss, "columns": known["n_nonzero_coefs"],
         **{name: known[name] for name in PROBLEM}}, options,
    )  # fmt: skip
    format = options["format"] or reading.get("format")
    known_by = {"loss": model.loss, "format": format, "likely_decimal": decimal_of(model)}
    asked = {name: options[name] for name in DIALECT if options[name] is not None}
    data = load(job, {**options, **reading, **known_by, **asked})
    seen = model.metadata.get("data")
    before = seen.get("fingerprint") if isinstance(seen, dict) else None
    if before is not None and _kind_of(before) != _kind_of(job.data["fingerprint"]):
        job.notice("It is not checked that these are the data of the fit: one was read in parts.")
    elif before != job.data["fingerprint"]:
        job.notice("These are not the data of the fit: what follows is about these ones.")
    place = {name: j for j, name in enumerate(data.table.feature_names)}
    absent = [name for name in model.feature_names if name not in place]
    if absent:
        raise Refused(f"The data lack columns of the model: {', '.join(absent)}.", DATA)
    asked = {**options, **{name: known[name] for name in PROBLEM}}
    estimator = make_estimator(data, asked, n_nonzero_coefs=known["n_nonzero_coefs"])
    if known.get("coefficient_price"):
        costs = coefficient_costs(data)
        estimator.set_params(alpha=known["coefficient_price"], costs=costs)
    problem = bind(estimator, data).problem
    w = problem.zero()
    w[[place[name] for name in model.feature_names]] = model.coef.T.reshape(-1, *w.shape[1:])
    return data, problem, w, False


def _objective(problem: Any, w: Any) -> float:
    """Compute the objective without the costs of coefficients."""
    from blockl0.estimators.coefficient_costs import charge_of

    charge = charge_of(problem, w, problem.sparsity.price)
    return problem.objective(problem.from_given(w)) - charge


def _kind_of(fingerprint: Any) -> str:
    """Return the kind of a fingerprint: of columns, or of rows in order."""
    return str(fingerprint).partition(":")[0]


def _refuse_others(stored: dict[str, Any], options: dict[str, Any]) -> None:
    """Refuse options that contradict the problem and reading stored with the model."""
    from click.core import ParameterSource

    from blockl0.app.tables.csv_text import DIALECT

    context = click.get_current_context()
    for name, value in stored.items():
        given = options.get(name)
        given = list(given) if isinstance(given, tuple) else given
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and given != value and name not in ("seed", "format", *DIALECT):
            option = "-k" if name == "columns" else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"The model was fitted with {option} {value}, not {given}.")


def _claims(job: Job, data: Any, problem: Any, w: Any, options: dict[str, Any]) -> list[Any]:
    from blockl0.app.cli.trust import is_promising
    from blockl0.methods import METHODS
    from blockl0.run import share_of_time

    # at a price, single changes are what can be certified of groups besides the optimum
    is_charged = problem.costs is not None and problem.sparsity.price > 0.0
    levels: list[Any] = ["basic", 1 if is_charged and options["level"] == 2 else options["level"]]
    claims = []
    for level in levels:
        with job.timed("certify"), share_of_time(3):
            claims.append(_stationary(data, problem, w, level, options))
    refusal, wanted = METHODS["exact"].refusal(problem), options["exact"]
    if wanted and refusal is not None:
        has_groups = data.table.groups is not None
        ways = "; --levels separate takes categories apart" if has_groups else ""
        raise Refused(f"--exact {refusal}{ways}.", DATA)
    # at the highest level the last claim is about the optimum already
    is_known = options["level"] >= problem.n_units and claims[-1]["holds"] is not None
    if is_promising(problem) and not is_known if wanted is None else wanted:
        with job.timed("exact"):
            claims.append(_optimal(job, data, problem, w, options))
    return claims


def _stationary(data: Any, problem: Any, w: Any, level: Any, options: dict[str, Any]) -> Any:
    """Certify that no change of so many columns helps."""
    from blockl0.certify import certify_problem, true_loss, words
    from blockl0.errors import OutOfReachError

    n_samples = None if level == "basic" else options["samples"]
    if not problem.is_plain and (level not in ("basic", 1, 2, problem.n_units) or n_samples):
        return _out_of_reach(level, words.one_by_one(level, n_samples is not None))
    try:
        found = certify_problem(
            problem, w, level=level, outside=options["outside"], random_state=options["seed"],
            n_samples=n_samples,
        )  # fmt: skip
    except OutOfReachError as error:
        # where only the loss itself can be tested, there are no samples
        is_model = not true_loss.applies(problem)
        said = words.unknown_claim(level, n_samples is not None) if is_model else f"{error}"
        return _out_of_reach(level, said)
    names, is_late = data.unit_names, str(found.status) == "time_limit"
    is_exact = problem.is_quadratic or true_loss.applies(problem)
    return {
        "claim": level if level == "basic" else f"block-{level}",
        "holds": found.holds if found.n_blocks or not is_late else None,
        "complete": found.complete,
        "confidence": found.confidence,
        "outside": found.outside,
        "block": None if found.block is None else [names[j] for j in found.block],
        "better_objective": found.better_objective,
        "near_dependent": [names[j] for j in found.near_dependent or ()],
        "words": words.claim_of(
            found, names, problem.keep.size, is_exact, problem.sparsity.price > 0.0
        ),
    }


def _out_of_reach(level: Any, said: str) -> dict[str, Any]:
    """Return the record of an unknown claim."""
    return {"claim": f"block-{level}", "holds": None, "complete": False, "words": said}


def _optimal(job: Job, data: Any, problem: Any, w: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Prove that no other choice is better, or a lower bound if time runs out."""
    from blockl0.app.cli.progress import ProofWatch, progress
    from blockl0.app.cli.trust import INSISTENT_WORK, WORK, prove
    from blockl0.certify import words
    from blockl0.certify.levels import Choice
    from blockl0.run import watching

    seconds, work = options["time_limit"], INSISTENT_WORK if options["exact"] else WORK
    limit = f"{work:g}e9 multiplications" if seconds is None else f"{seconds:g} s"
    shown_limit = work if seconds is None else seconds
    with (
        progress("Proving (about seconds)", job.quiet) as shown,
        watching(ProofWatch(shown, shown_limit)),
    ):
        work = work if seconds is None else float("inf")
        found = prove(problem, options["seed"], work, options["gap"])
    here, better = problem.objective(problem.from_given(w)), data.names_of(found.support)
    known, gap = _judge(problem, problem.units.support(w), here, found)
    is_better = known.kind == "refuted"
    choice = Choice(
        problem.units.count(w), problem.sparsity.budget, data.n_units, int(problem.keep.size),
        problem.ridge > 0.0, problem.sparsity.price,
    )  # fmt: skip
    holds = False if is_better else True if known.is_optimal else None
    if holds is None and options["exact"] and str(found.status) != "gap_reached":
        holds = False
    more = words.apart_only(data.unit_names, found.near_dependent) if known.is_optimal else ""
    return {
        "claim": "optimal", "holds": holds, "complete": gap == 0.0, "gap": gap,
        "lower_bound": found.lower_bound, "status": str(found.status),
        "better_objective": found.objective if is_better else None,
        "better_features": better if is_better else None,
        "words": words.of_search(known, choice, here, found, gap, better, limit) + more,
    }  # fmt: skip


def _judge(problem: Any, support: Any, here: float, found: Any) -> tuple[Any, float]:
    """Return (what an exact search proves of a point, its gap to the lower bound)."""
    from blockl0.certify.levels import ProofStatus, is_better, objective_at_zero

    at_zero = objective_at_zero(problem)
    if is_better(found.objective, here, at_zero):
        better = problem.units.of(found.support)
        known = ProofStatus("none").refuted(support, here, better, found.objective)
        return known, (here - found.lower_bound) / here
    # a bound within rounding of the objective leaves no gap
    gap = (here - found.lower_bound) / here if is_better(found.lower_bound, here, at_zero) else 0.0
    return ProofStatus("none").bounded(gap), gap


def _lines(data: Any, result: dict[str, Any]) -> list[str]:
    chosen = names_line(result["features"])
    return [
        f"{data.table.source}: {result['n_nonzero']} of {data.n_units} columns, objective "
        f"{result['objective']:.8g}",
        f"  {chosen}",
        "",
        *(bullet(claim["words"]) for claim in result["claims"]),
    ]
