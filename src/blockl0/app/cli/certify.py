"""`blockl0 certify`: what is proven about a solution."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from blockl0.app.cli.data import decimal_of, load, load_checked, stored
from blockl0.app.cli.job import DATA, NOT_PROVEN, Answer, Job, Refused, bullet, names_line
from blockl0.app.cli.models import (
    INSISTENT_WORK,
    WORK,
    bind,
    coefficient_costs,
    fit_k,
    is_promising,
    make_estimator,
    prove,
)
from blockl0.app.cli.progress import ProofWatch, watched
from blockl0.app.model_checks import check_problem, check_reading
from blockl0.app.model_file import load_model
from blockl0.app.tables.csv_text import DIALECT
from blockl0.certify import certify_problem, stationarity, words
from blockl0.certify.levels import Choice, ProofStatus, is_better, objective_at_zero
from blockl0.errors import OutOfReachError
from blockl0.estimators.coefficient_costs import charge_of
from blockl0.methods import METHODS
from blockl0.run import share_of_time

PROBLEM = ("ridge", "keep", "positive", "bounds", "class_weight")
"""Options of the problem that a model file stores."""


def run(job: Job, options: dict[str, Any]) -> Answer:
    """Certify the point of a model file, or one that is searched first."""
    find = _searched_point if options["model"] is None else _saved_point
    data, problem, w, is_cut = find(job, options)
    claims = _claims(job, data, problem, w, options)
    is_refuted = any(claim["holds"] is False for claim in claims)
    result = {
        "objective": _objective(problem, w),
        "n_nonzero": problem.units.count(w),
        "features": [data.unit_names[unit] for unit in problem.units.support(w)],
        "claims": claims,
        "holds": not is_refuted,
    }
    is_cut |= any(claim.get("status") == "interrupted" for claim in claims)
    return Answer(result, _lines(data, result), is_cut, NOT_PROVEN if is_refuted else 0)


def _searched_point(job: Job, options: dict[str, Any]) -> tuple[Any, Any, Any, bool]:
    """Return (data, problem, coefficients to certify, whether Ctrl-C cut their search)."""
    if options["columns"] is None:
        raise click.UsageError("Give --model FILE, or -k for the number of columns.")
    data = load_checked(job, options)
    with job.timed("fit"):
        fitted = fit_k(job, data, options)
    if fitted.is_cut:
        job.notice("The search was interrupted: what follows is about the best choice so far.")
    problem = fitted.prepared.problem
    return data, problem, _of_problem(problem, fitted.model.coef_), fitted.is_cut


def _of_problem(problem: Any, coef: Any) -> Any:
    """Reshape coefficients (n,), (1, n) or (n_classes, n) for the problem."""
    return coef.T.reshape(problem.zero().shape)


def _saved_point(job: Job, options: dict[str, Any]) -> tuple[Any, Any, Any, bool]:
    """Read the point that a model file holds, and the data as they were read for its fit."""
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
    charge = charge_of(problem, w, problem.sparsity.price)
    return problem.objective(problem.from_given(w)) - charge


def _kind_of(fingerprint: Any) -> str:
    """Return the kind of a fingerprint: of columns, or of rows in order."""
    return str(fingerprint).partition(":")[0]


def _refuse_others(stored: dict[str, Any], options: dict[str, Any]) -> None:
    """Refuse options that contradict the problem and reading stored with the model."""
    context = click.get_current_context()
    for name, value in stored.items():
        given = options.get(name)
        given = list(given) if isinstance(given, tuple) else given
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and given != value and name not in ("seed", "format", *DIALECT):
            option = "-k" if name == "columns" else f"--{name.replace('_', '-')}"
            raise click.UsageError(f"The model was fitted with {option} {value}, not {given}.")


def _claims(job: Job, data: Any, problem: Any, w: Any, options: dict[str, Any]) -> list[Any]:
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
        is_model = not stationarity.is_about_loss(problem)
        said = words.unknown_claim(level, n_samples is not None) if is_model else f"{error}"
        return _out_of_reach(level, said)
    names, is_late = data.unit_names, str(found.status) == "time_limit"
    is_exact = problem.is_quadratic or stationarity.is_about_loss(problem)
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
    seconds, work = options["time_limit"], INSISTENT_WORK if options["exact"] else WORK
    limit = f"{work:g}e9 multiplications" if seconds is None else f"{seconds:g} s"
    with watched(job, "Proving (about seconds)", ProofWatch, work if seconds is None else seconds):
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
