"""`blockl0 certify`: what is proven about an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from blockl0.cli import options as shared
from blockl0.cli.output import DATA, INTERRUPTED, NOT_PROVEN, Job, Refused, bullet, names_line

LARGEST_EXACT = 1000
"""Columns that the exact search takes."""


@click.command("certify", short_help="Say what is proven about a choice.")
@shared.data_options
@click.option("--model", type=click.Path(path_type=Path), metavar="FILE", help="A saved model.")
@shared.columns_option
@shared.search_options
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
@shared.test_option
@shared.seed_option
@shared.output_options
def command(**options: Any) -> None:
    """Say what is proven about the columns of a model, on the DATA of its fit.

    With --model the answer is one that `fit --out` has saved, and DATA are read as they were then;
    else columns are chosen first (-k). For the squared loss and up to 1000 columns the global
    optimum is tried as well, for 60 seconds or --time-limit. The exit code is 5 when a claim fails:
    there is a better choice, or --exact was given and the proof did not end.
    """
    with Job("certify", options) as job:
        data, problem, w, is_cut = _point(job, options)
        claims = _claims(job, data, problem, w, options)
        failed = [claim for claim in claims if claim["holds"] is False]
        result = {
            "objective": problem.objective(problem.from_given(w)),
            "n_nonzero": int((w != 0).sum()),
            "features": [data.table.feature_names[j] for j in w.nonzero()[0]],
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
    """(the data, the problem, the coefficients to be judged, whether Ctrl-C cut their search)."""
    from blockl0.cli.data import bind, check_size, kept_columns, load
    from blockl0.cli.fit import fit_k

    if options["model"] is not None:
        return _saved_point(job, options)
    if options["columns"] is None:
        raise click.UsageError("Give --model FILE, or -k for the number of columns.")
    data = load(job, options)
    _refuse_loss(data)
    check_size(data, options["columns"])
    keep = kept_columns(job, data.table, options["keep"])
    bound = bind(data, k=options["columns"], ridge=options["ridge"], keep=keep)
    with job.timed("fit"):
        model = fit_k(job, data, options).model
    is_cut = str(model.status_) == "interrupted"
    if is_cut:
        job.notice("The search was interrupted: what follows is about the best choice so far.")
    return data, bound.problem, model.coef_.reshape(-1), is_cut


def _saved_point(job: Job, options: dict[str, Any]) -> tuple[Any, Any, Any, bool]:
    import numpy as np

    from blockl0.cli.data import bind, decimal_of, kept_columns, load, stored
    from blockl0.model_checks import check_problem, check_reading
    from blockl0.model_file import load_model

    model = load_model(options["model"])
    known = stored(options["model"], check_problem, model.metadata, model.n_features_in)
    reading = stored(options["model"], check_reading, model.metadata)
    if known is None or not reading:
        raise Refused(f"{options['model']} does not tell the problem it solves; fit it here.", DATA)
    _refuse_others(
        {**reading, "loss": model.loss, "columns": known["n_nonzero_coefs"],
         "ridge": known["ridge"], "keep": known["keep"]}, options,
    )  # fmt: skip
    format = options["format"] or reading.get("format")
    known_by = {"loss": model.loss, "format": format, "likely_decimal": decimal_of(model)}
    data = load(job, {**options, **reading, **known_by})
    _refuse_loss(data)
    seen = model.metadata.get("data")
    if not isinstance(seen, dict) or job.data["fingerprint"] != seen.get("fingerprint"):
        job.notice("These are not the data of the fit: what follows is about these ones.")
    place = {name: j for j, name in enumerate(data.table.feature_names)}
    absent = [name for name in model.feature_names if name not in place]
    if absent:
        raise Refused(f"The data lack columns of the model: {', '.join(absent)}.", DATA)
    keep = kept_columns(job, data.table, known["keep"])
    bound = bind(data, k=known["n_nonzero_coefs"], ridge=known["ridge"], keep=keep)
    w = np.zeros(data.X.shape[1])
    w[[place[name] for name in model.feature_names]] = model.coef
    return data, bound.problem, w, False


def _refuse_loss(data: Any) -> None:
    """Certificates rest on a quadratic upper bound of the loss."""
    if not data.is_bounded or (data.is_classification and len(set(data.y.tolist())) > 2):
        kind = "more than two classes" if data.is_bounded else f"the {data.loss} loss"
        raise Refused(f"There is no certificate for {kind}; `report` tries exchanges.", DATA)


def _refuse_others(stored: dict[str, Any], options: dict[str, Any]) -> None:
    """The model brings its own problem and its own way to read: other ones cannot be asked for."""
    from click.core import ParameterSource

    context = click.get_current_context()
    for name, value in stored.items():
        given = options.get(name)
        given = list(given) if isinstance(given, tuple) else given
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and given != value and name not in ("seed", "format"):
            option = "-k" if name == "columns" else f"--{name}"
            raise click.UsageError(f"The model was fitted with {option} {value}, not {given}.")


def _claims(job: Job, data: Any, problem: Any, w: Any, options: dict[str, Any]) -> list[Any]:
    from blockl0.cli.trust import is_promising

    levels: list[Any] = ["basic", options["level"]]
    claims = []
    for level in levels:
        with job.timed("certify"):
            claims.append(_stationary(data, problem, w, level, options))
    is_possible = data.is_quadratic and data.X.shape[1] <= LARGEST_EXACT
    if options["exact"] and not is_possible:
        raise Refused(
            f"--exact takes the squared loss and at most {LARGEST_EXACT} columns, got "
            f"{data.loss} and {data.X.shape[1]}.",
            DATA,
        )
    wanted = options["exact"]
    if is_promising(data, LARGEST_EXACT) if wanted is None else wanted:
        with job.timed("exact"):
            claims.append(_optimal(job, data, problem, w, options))
    return claims


def _stationary(data: Any, problem: Any, w: Any, level: Any, options: dict[str, Any]) -> Any:
    """Whether a change of so many columns helps."""
    from blockl0.certificate import certify_problem

    given = {} if level == "basic" else {"n_samples": options["samples"]}
    try:
        found = certify_problem(
            problem, w, level=level, outside=options["outside"], random_state=options["seed"],
            **given,
        )  # fmt: skip
    except ValueError as error:
        if "n_samples" not in str(error):
            raise
        words = f"Not known: all changes of {level} columns are too many; try --samples 10000."
        return {"claim": f"block-{level}", "holds": None, "complete": False, "words": words}
    names = data.table.feature_names
    return {
        "claim": level if level == "basic" else f"block-{level}",
        "holds": found.holds,
        "complete": found.complete,
        "confidence": found.confidence,
        "outside": found.outside,
        "block": None if found.block is None else [names[j] for j in found.block],
        "better_objective": found.better_objective,
        "words": _words(found, data, problem, names),
    }


def _words(found: Any, data: Any, problem: Any, names: Any) -> str:
    from blockl0.cli.trust import given

    if not found.holds:
        block = ", ".join(names[j] for j in found.block)
        lower = f"from {found.objective:.6g} to {found.better_objective:.6g}"
        return f"Refuted: changing {block} lowers the objective {lower}."
    if found.level == "basic":
        return "Proven: these are the best coefficients for the chosen columns."
    model = "" if data.is_quadratic else " on the quadratic upper bound of the loss"
    supposed = given(problem.keep.size)
    others = "re-fitted" if found.outside == "refit" else "left as they are"
    if found.complete:
        return (
            f"Proven: {supposed}none of the {found.n_blocks} ways to pick {found.level} of the "
            f"{len(names)} columns and change them (enter, leave, exchange), all others {others}, "
            f"helps{model}."
        )
    return (
        f"Tried: {supposed}{found.n_blocks} random picks of {found.level} columns, all others "
        f"{others}; none helps{model}. With 95 % confidence at least {found.confidence:.2%} of "
        "all picks do not."
    )


def _optimal(job: Job, data: Any, problem: Any, w: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Whether any other choice is better; a lower bound where time runs out."""
    from blockl0.cli.progress import ProofWatch, progress
    from blockl0.cli.trust import given, is_lower, prove, rounding
    from blockl0.run import watching

    seconds = options["time_limit"] or 60.0
    with progress("Proving (seconds)", job.quiet) as shown, watching(ProofWatch(shown, seconds)):
        proof = prove(problem, options["seed"], seconds)
    here = problem.objective(problem.from_given(w))
    excess = here - proof.lower_bound
    gap = excess / here if excess > rounding(problem) else 0.0
    better = is_lower(proof.objective, here, problem)
    names = data.table.feature_names
    holds: bool | None = False if better else True if gap <= 1e-9 else None
    if better:
        chosen = ", ".join(names[j] for j in proof.support)
        words = f"Refuted: {chosen} lower the objective from {here:.6g} to {proof.objective:.6g}."
    elif holds:
        words = (
            f"Proven: {given(problem.keep.size)}the global optimum. No other choice of at most "
            f"{problem.sparsity.budget} of the {len(names)} columns fits these rows better."
        )
    else:
        words = (
            f"Not proven within {seconds:g} s: no choice can lower the objective by more than "
            f"{gap:.2%} (lower bound {proof.lower_bound:.6g}); a longer --time-limit may."
        )
        holds = False if options["exact"] else None
    return {
        "claim": "optimal", "holds": holds, "complete": bool(gap <= 1e-9), "gap": gap,
        "lower_bound": proof.lower_bound, "status": str(proof.status),
        "better_objective": proof.objective if better else None,
        "better_features": [names[j] for j in proof.support] if better else None, "words": words,
    }  # fmt: skip


def _lines(data: Any, result: dict[str, Any]) -> list[str]:
    chosen = names_line(result["features"])
    return [
        f"{data.table.source}: {result['n_nonzero']} of {data.X.shape[1]} columns, objective "
        f"{result['objective']:.8g}",
        f"  {chosen}",
        "",
        *(bullet(claim["words"]) for claim in result["claims"]),
    ]
