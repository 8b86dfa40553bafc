"""`blockl0 fit`: select columns, fit, and say how far the result can be trusted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from blockl0.app.cli.data import READING, STORED, CommandData
from blockl0.app.cli.fit_text import describe
from blockl0.app.cli.job import Answer, Interrupted, Job, Refused, plain
from blockl0.app.cli.models import (
    Fitted,
    certified,
    fit_choosing,
    fit_k,
    is_promising,
    prove,
    score,
)
from blockl0.app.cli.progress import PathWatch, ProofWatch, aborting, watched
from blockl0.app.cli.structure import bounds_of
from blockl0.app.cli.verify import write_proof
from blockl0.app.model_file import save_model
from blockl0.app.tables.table import rows_fingerprint
from blockl0.certify import words
from blockl0.certify.close_sets import count_close
from blockl0.certify.levels import Choice, is_better, objective_at_zero, proof_of
from blockl0.estimators.binding import plain_estimator, price_at, take_result
from blockl0.estimators.coefficient_costs import charge_of
from blockl0.estimators.explain import NOT_REPEATED, summarize
from blockl0.estimators.half_samples import default_half_samples
from blockl0.exact import obstacle
from blockl0.problem.near_dependence import left_out
from blockl0.run import share_of_time
from blockl0.text import listing

EXPLAINED = ("per_sd", "entry", "drop_one", "again")
"""Facts in a `summary` about a column besides its coefficient."""
HARDLY = 0.005
"""Smallest gain in accuracy over guessing that is worth anything."""


class Proven(NamedTuple):
    """Evidence on the optimum: an exact search, if a bound exists, and a certificate."""

    search: Any = None
    has_bound: bool = True
    certificate: Any = None


def run(job: Job, data: CommandData, options: dict[str, Any]) -> Answer:
    """Select, fit, prove and explain; save the model and its proof."""
    if options["proof"] is not None and options["ridge"] is None:
        options = {**options, "ridge": 0.0}  # a proof is about a ridge that is a number
    with job.timed("fit"):
        fit = fit_k if options["columns"] is not None else fit_choosing
        fitted = fit(job, data, options)
    proven = Proven()
    if fitted.is_cut:
        job.notice("Interrupted: this is the best model so far.")
    else:
        proven = _try_to_prove(job, fitted, options)
    summary = _explain(job, fitted, options)
    result = _result(fitted, proven, summary, options)
    # saved first: the output says where the model is, and without a proof nothing is written
    if options["proof"] is not None and not fitted.is_cut:
        write_proof(job, fitted, options)
    if options["out"] is not None:
        _save(job, fitted, result, options)
    return Answer(result, describe(data, result, options), fitted.is_cut)


def _try_to_prove(job: Job, fitted: Fitted, options: dict[str, Any]) -> Proven:
    """Run the exact search if it applies, and take any better choice that it finds."""
    model, work = fitted.model, options["prove"]
    k = int(model.n_nonzero_)
    if not (work and k and k < fitted.data.n_units):
        return Proven()
    problem = fitted.prepared.problem
    if not is_promising(problem):
        return Proven(None, obstacle(problem) is None, _certify(job, fitted))
    title = "Proving (about seconds)"
    with job.timed("prove"), watched(job, title, ProofWatch, work, shares=2):
        found = prove(problem, options["seed"], work, options["gap"])
    status = str(found.status)
    fitted.is_cut |= status == "interrupted"
    # a tie is no reason to leave a point that is certified
    if is_better(found.objective, model.objective_, objective_at_zero(problem)):
        job.notice("The exact search found a better choice than the first one; it is taken.")
        fitted.model = plain_estimator(model)
        take_result(fitted.model, found, fitted.prepared, like=model)
    certificate = _certify(job, fitted) if status not in ("optimal", "interrupted") else None
    return Proven(found, status != "no_bound", certificate)


def _certify(job: Job, fitted: Fitted) -> Any:
    """Certify what the search could not, so that `certify` would find no more."""
    known = fitted.model.certificate_
    if known is not None and known.level == 2:
        return None
    with job.timed("certify"), share_of_time(2):
        found = certified(fitted.prepared.problem, fitted.model.result_.coef)
    return found if found is not None and found.holds else None


def _explain(job: Job, fitted: Fitted, options: dict[str, Any]) -> Any:
    """Summarize the model: what its columns are worth, unless Ctrl-C comes before."""
    model, data, n_halves = fitted.model, fitted.data, options["half_samples"]
    n_halves = default_half_samples(data.X) if n_halves is None else n_halves
    n_points = n_halves + (0 if hasattr(model, "path_") else int(model.n_nonzero_))
    shares, shorter = 2 if options["proof"] else 1, "--half-samples 0 is quicker"
    if fitted.is_cut or not model.n_nonzero_:
        return model.summary()
    try:
        with (
            job.timed("explain"),
            watched(job, "Explaining", PathWatch, n_points, shorter=shorter, shares=shares),
            aborting(),
        ):
            names = np.array(data.table.feature_names, dtype=object)
            return summarize(model, names, data.X, data.y, None, n_halves, options["seed"])
    except Interrupted:
        fitted.is_cut = True
        job.notice("Interrupted: how much each column contributes was not computed.")
        return model.summary()


# -- the result ------------------------------------------------------------------------------------


def _result(
    fitted: Fitted, proven: Proven, summary: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Assemble the result, from which the text is written as well."""
    model, data, problem = fitted.model, fitted.data, fitted.prepared.problem
    price = price_at(model, fitted.budget)
    charge = charge_of(problem, model.result_.coef, price)
    scores = score(data, model)
    cautions = [*summary.cautions, *_at_bounds(data, model, options)]
    return {
        "n_nonzero": int(model.n_nonzero_),
        "features": _rows(data, model.coef_.reshape(-1, data.X.shape[1]), summary),
        "intercept": model.intercept_,
        "classes": getattr(model, "classes_", None),
        "targets": list(data.table.targets),
        "objective": model.objective_ - charge,
        "objective_without_columns": objective_at_zero(problem),
        "coefficient_price": price or None,
        "solver_status": str(model.status_),
        "scores": scores,
        "cautions": [*cautions, *_no_better_than_guessing(scores, options)],
        "half_samples": summary.n_half_samples,
        "not_repeated": NOT_REPEATED in summary.notes,
        "certificate": _claim(fitted, proven, price, charge),
        "choice": fitted.choice,
        "ridge": model.ridge_,
        "keep": list(options["keep"]),
    }


def _claim(fitted: Fitted, proven: Proven, price: float, charge: float) -> dict[str, Any]:
    """Record what is proven about a fit, by itself or by an exact search, with its words.

    The lower bound excludes the charge of the chosen categories, as the objective does. Columns
    that nearly depend on each other are looked for beside an optimum alone.
    """
    model, problem, search = fitted.model, fitted.prepared.problem, proven.search
    names, coef = fitted.data.unit_names, model.result_.coef
    # redundant columns among the kept ones are open to choice
    choice = Choice(
        int(model.n_nonzero_), fitted.budget, len(names), problem.keep.size, problem.ridge > 0.0,
        price,
    )  # fmt: skip
    certificate = proven.certificate or model.certificate_
    n_close = None if fitted.is_cut else count_close(problem, coef)
    known = proof_of(model.status_, certificate, choice)
    known = replace(known, has_bound=proven.has_bound, n_close=n_close or 0)
    if search is not None:
        known = known.bounded(search.gap)
    near = () if not known.is_optimal else None
    if known.is_optimal and not fitted.is_cut:
        near = left_out(problem, problem.from_given(coef))
    return {
        "optimal": known.is_optimal,
        "lower_bound": None if search is None else search.lower_bound - charge,
        "gap": None if search is None else search.gap,
        "level": None if certificate is None else certificate.level,
        "outside": None if certificate is None else certificate.outside,
        "complete": None if certificate is None else certificate.complete,
        "n_close": n_close,
        "near_dependent": [names[j] for j in near or ()],
        "words": words.sentence(known, choice) + words.apart_only(names, near),
    }


def _rows(data: Any, coef: Any, summary: Any) -> list[dict[str, Any]]:
    """Return one record per chosen column, with levels for a category."""
    table, columns = data.table, summary.columns
    rows: dict[int, dict[str, Any]] = {}
    for i, j in enumerate(summary.index.tolist()):
        at = int(table.unit_of[j])
        if at in rows:
            continue
        unit = table.units[at]
        row = {"name": unit.name, "coef": None if unit.levels else _values(coef, j)}
        if unit.reference is not None:
            row["reference"] = unit.reference
        if unit.levels:
            row["coefficients"] = len(unit.levels)
            row["levels"] = [
                {"level": level, "name": table.feature_names[c], "coef": _values(coef, c)}
                for level, c in zip(unit.levels, unit.columns, strict=True)
            ]
        keys = [
            key for key in EXPLAINED if key in columns and not (key == "per_sd" and unit.levels)
        ]
        rows[at] = row | {key: columns[key][i] for key in keys}
    return list(rows.values())


def _values(coef: Any, column: int) -> Any:
    """Return the coefficient of a column of X, a list for several classes or targets."""
    values = coef[:, column].tolist()
    return values[0] if len(values) == 1 else values


def _at_bounds(data: Any, model: Any, options: dict[str, Any]) -> list[str]:
    """Find chosen columns whose coefficients would be larger without their bounds."""
    bounds = bounds_of(data.table, options)
    if bounds is None:
        return []
    low, high = bounds
    coef = model.coef_.reshape(-1, len(low))
    held = ((coef == low) | (coef == high)) & (coef != 0.0)
    names = [data.table.feature_names[j] for j in np.flatnonzero(held.any(axis=0))]
    if not names:
        return []
    what = "The coefficient is" if len(names) == 1 else "The coefficients are"
    return [f"{what} at a bound that was given: {listing(names)}."]


def _no_better_than_guessing(scores: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """Warn if the accuracy is not better than that of always guessing the most frequent class."""
    name = "test" if "test" in scores else "train"
    guess = scores.get("guess_test" if name == "test" else "guess")
    if guess is None or scores[name] > guess + HARDLY or options.get("class_weight"):
        return []
    found = scores[f"{name}_classes"]
    return [
        f"The accuracy, {scores[name]:.4g}, is that of always guessing the most frequent class, "
        f"{guess:.4g}: judge by the AUC, {found['auc']:.4g} (0.5 by chance), and by the recalls. "
        "--class-weight balanced gives every class the same weight."
    ]


def _rows_of(data: Any, model: Any) -> dict[str, str]:
    """Return the fingerprint by which `predict` recognizes the training rows; moments have none."""
    if data.is_streamed or not len(model.support_):
        return {}
    return {"rows": rows_fingerprint(data.X[:, model.support_])}


def _save(job: Job, fitted: Fitted, result: dict[str, Any], options: dict[str, Any]) -> None:
    """Write the model file, with everything that `predict` and `certify` need."""
    model, data = fitted.model, fitted.data
    metadata = {
        "data": job.data | _rows_of(data, model),
        "reading": {name: options[name] for name in READING},
        "problem": {
            "n_nonzero_coefs": fitted.budget,
            "ridge": result["ridge"],
            "keep": result["keep"],
            "coefficient_price": result["coefficient_price"],
            **{name: list(options[name]) for name in STORED if options[name]},
        },
        "result": {k: result[k] for k in ("objective", "solver_status", "scores", "certificate")},
    }
    try:
        save_model(
            model, options["out"], feature_names=data.table.feature_names,
            features=data.table.recipe(model.support_),
            target=data.table.target if model.coef_.ndim == 1 or data.is_classification
            else data.table.targets,
            metadata=plain(metadata), force=options["force"],
        )  # fmt: skip
    except FileExistsError:
        raise
    except OSError as error:
        raise Refused(f"{options['out']} cannot be written: {error}.") from error
