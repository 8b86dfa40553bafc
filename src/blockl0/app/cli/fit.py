"""`blockl0 fit`: select columns, fit, and say how far the result can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.fit_text import describe
from blockl0.app.cli.output import INTERRUPTED, Interrupted, Job, Refused, check_outputs, plain
from blockl0.app.cli.verify import write_proof

SEARCH, AFTER = 1.6, 3
"""Of --time-limit: one share of so many for the search of -k, the rest for what is said of it; and
shares for that beside one for every path."""
EXPLAINED = ("per_sd", "entry", "drop_one", "again")
"""What `summary` knows about a column besides its coefficient."""


HARDLY = 0.005
"""Accuracy above that of guessing which is hardly any."""


@dataclass
class Fitted:
    """A fitted model, how its number of columns was chosen, and whether Ctrl-C cut it short."""

    model: Any
    choice: dict[str, Any] | None = None
    interrupted: bool = False
    proof: Any = None
    has_bound: bool = True
    certificate: Any = None
    problem: Any = None
    cautions: list[str] = field(default_factory=list)
    half_samples: int = 0
    not_repeated: bool = False


@click.command("fit", short_help="Choose the columns that explain the target, and fit them.")
@shared.data_options
@shared.stream_option
@shared.columns_option
@click.option(
    "--max-k",
    type=click.IntRange(min=1),
    help="Without -k: the most to choose from.  [default: 20]",
)
@shared.search_options
@shared.costs_option
@shared.class_weight_option
@shared.choice_options
@shared.test_option
@click.option(
    "--prove",
    type=click.FloatRange(min=0.0),
    default=5.0,
    show_default=True,
    metavar="WORK",
    help="Try to prove that no other choice is better, where that is possible: in units of 1e9 "
    "multiplications, about a second each, counted so that any machine says the same.",
)
@shared.gap_option
@shared.halves_option
@click.option(
    "--proof",
    type=shared.FILE,
    metavar="FILE",
    help="Write a proof that `verify` checks, within --time-limit.  [default: 60 seconds]",
)
@shared.seed_option
@shared.out_option("Save the model, as JSON for `predict`, `certify` and Python.")
@shared.force_option
@shared.output_options
def command(**options: Any) -> None:
    """Choose the columns of DATA that explain the target best, and fit them.

    DATA is a CSV, Excel, Parquet, LIBSVM, NPZ or MAT file, a folder of CSV or Parquet files, or -
    for standard input. Without -k the number of columns is chosen by cross-validation, or by
    --rule. Ctrl-C prints and saves the best model so far.
    """
    with Job("fit", options) as job:
        check_outputs(options, "out", "proof")
        from blockl0.app.cli.data import check_names, check_size, load

        data = load(job, options)
        check_size(data, options["columns"])
        check_names(data, options)
        if options["proof"] is not None and options["ridge"] is None:
            options["ridge"] = 0.0  # a proof is about a ridge that is a number
        fitted = fit_model(job, data, options)
        rows = explain(job, data, fitted, options)
        result = _result(data, fitted, rows, options)
        # saved first: the output says where the model is, and without a proof nothing is written
        if options["proof"] is not None and not fitted.interrupted:
            write_proof(job, data, fitted.model, options)
        _save(job, data, fitted.model, result, options)
        status = "interrupted" if fitted.interrupted else "done"
        job.answer(result, describe(data, result, options), status)
        if fitted.interrupted:
            raise SystemExit(INTERRUPTED)


def fit_model(job: Job, data: Any, options: dict[str, Any]) -> Fitted:
    """Fit with a number of columns, or choosing one; then try to prove it."""
    with job.timed("fit"):
        fit = fit_k if options["columns"] is not None else fit_choosing
        fitted = fit(job, data, options)
    fitted.interrupted |= str(fitted.model.status_) == "interrupted"
    if fitted.interrupted:
        job.notice("Interrupted: this is the best model so far.")
    else:
        _try_to_prove(job, data, fitted, options)
    return fitted


def fit_k(job: Job, data: Any, options: dict[str, Any]) -> Fitted:
    """Fit with at most this many columns."""
    from blockl0.app.cli.data import charge_coefficients, make_estimator
    from blockl0.app.cli.progress import SearchWatch, progress
    from blockl0.run import share_of_time, watching
    from blockl0.search.search import EFFORTS

    model = make_estimator(data, options, n_nonzero_coefs=options["columns"])
    charge_coefficients(model, data, options)
    rounds = EFFORTS[model.effort] if isinstance(model.effort, str) else model.effort
    shorter = "--effort fast is quicker; Ctrl-C takes the best so far"
    with (
        progress("Searching", job.quiet, shorter) as shown,
        watching(SearchWatch(shown, rounds)),
        share_of_time(SEARCH),
    ):
        return Fitted(model.fit(data.X, data.y))


def fit_choosing(job: Job, data: Any, options: dict[str, Any]) -> Fitted:
    """Fit by a criterion first, then by cross-validation, so that Ctrl-C leaves a model."""
    from blockl0.app.cli.data import check_folds, largest_size, make_estimator
    from blockl0.app.cli.progress import PathWatch, aborting, progress
    from blockl0.estimators.linear_cv import fit_path
    from blockl0.run import share_of_time, watching

    rule, folds = options["rule"], options["folds"]
    by_folds = rule in shared.FOLD_RULES
    if by_folds:
        check_folds(data, folds)
    most = largest_size(job, data, options["max_k"])
    more = {"n_nonzero_coefs": most, "cv": folds, "n_jobs": options["jobs"]}
    first = make_estimator(data, options, rule="bic" if by_folds else rule, **more)
    n_points = (most or min(20, data.n_units)) + 1
    shorter = "a smaller --max-k, or --time-limit, ends it sooner"
    with (
        progress("Path", job.quiet, shorter) as shown,
        watching(PathWatch(shown, n_points)),
        share_of_time((folds if by_folds else 0) + AFTER + 1),
    ):
        path = fit_path(first, data.X, data.y)
    if not by_folds or str(first.path_[-1].status) == "interrupted":
        return Fitted(first, _choice(job, first), str(first.path_[-1].status) == "interrupted")
    model = make_estimator(data, options, rule=rule, **more)
    watch_points = len(first.path_) * folds
    try:
        with (
            progress(
                f"Cross-validation, {folds} folds", job.quiet, f"{shorter}; so is --rule bic"
            ) as shown,
            watching(PathWatch(shown, watch_points)),
            share_of_time((folds + AFTER) / folds),
            aborting(),
        ):
            fit_path(model, data.X, data.y, path)
    except Interrupted:
        job.notice("Cross-validation was interrupted: the number of columns is chosen by BIC.")
        return Fitted(first, _choice(job, first), True)
    if _is_short(first, model, options):
        job.notice(
            "The folds did not come so far within --time-limit: the number of columns is chosen by "
            "BIC."
        )
        model = first
    return Fitted(model, _choice(job, model))


def _is_short(first: Any, model: Any, options: dict[str, Any]) -> bool:
    """Check if the time limit cut the folds before the size that BIC chooses on all rows."""
    import numpy as np

    if options["time_limit"] is None:
        return False
    n_scored = np.isfinite(model.cv_scores_).all(axis=0).sum()
    return bool(n_scored <= first.best_index_)


def _choice(job: Job, model: Any) -> dict[str, Any]:
    from blockl0.selection import readable_scores

    chosen, most = model.best_n_nonzero_coefs_, int(model.path_.n_nonzero_coefs[-1])
    is_cut = str(model.path_[-1].status) in ("interrupted", "time_limit")
    if chosen == most < model.result_.n_units and not is_cut:
        job.notice(f"The rule chose the most columns it could, {most}; more may be better.")
    choice = {
        "rule": model.rule,
        "n_nonzero_coefs": model.path_.n_nonzero_coefs.tolist(),
        "chosen": chosen,
    }
    if hasattr(model, "mean_scores_"):
        choice |= {"mean_scores": model.mean_scores_.tolist(), "se": model.se_scores_.tolist()}
        at = model.best_index_
        choice["unseen"] = {
            name: [float(mean[at]), float(error[at])]
            for name, (mean, error) in readable_scores(model).items()
        }
    else:
        choice["criterion"] = model.path_.criterion(model.rule).tolist()
    return choice


def budget_of(model: Any) -> int:
    """Return the budget: given, or chosen."""
    return int(getattr(model, "best_n_nonzero_coefs_", model.n_nonzero_coefs))


def _try_to_prove(job: Job, data: Any, fitted: Fitted, options: dict[str, Any]) -> None:
    """Run the exact search if it applies, and take any better choice that it finds."""
    from blockl0.app.cli import trust
    from blockl0.app.cli.data import bind
    from blockl0.app.cli.progress import ProofWatch, progress
    from blockl0.certify.levels import is_better, objective_at_zero
    from blockl0.estimators.binding import plain_estimator, take_result
    from blockl0.exact import obstacle
    from blockl0.run import share_of_time, watching

    k, work = int(fitted.model.n_nonzero_), options["prove"]
    if not (work and k and k < data.n_units):
        return
    model = plain_estimator(fitted.model)
    prepared = bind(model, data)
    problem = fitted.problem = prepared.problem
    fitted.has_bound = obstacle(problem) is None
    if not trust.is_promising(problem):
        _certify(job, fitted, problem)
        return
    with (
        job.timed("prove"),
        progress("Proving (about seconds)", job.quiet) as shown,
        watching(ProofWatch(shown, work)),
        share_of_time(2),
    ):
        proof = trust.prove(problem, options["seed"], work, options["gap"])
    if str(proof.status) == "interrupted":
        fitted.interrupted = True
    if is_better(proof.objective, fitted.model.objective_, objective_at_zero(problem)):
        job.notice("The exact search found a better choice than the first one; it is taken.")
        take_result(model, proof, prepared)
        fitted.model = model
    fitted.proof = proof
    fitted.has_bound = str(proof.status) != "no_bound"
    if str(proof.status) not in ("optimal", "interrupted"):
        _certify(job, fitted, problem)


def _certify(job: Job, fitted: Fitted, problem: Any) -> None:
    """Certify what the search itself could not, so that `certify` knows no more of the point."""
    from blockl0.app.cli import trust
    from blockl0.run import share_of_time

    known = fitted.model.certificate_
    if known is not None and known.level == 2:
        return
    with job.timed("certify"), share_of_time(2):
        found = trust.certified(problem, fitted.model.result_.coef)
    if found is not None and found.holds:
        fitted.certificate = found


def explain(job: Job, data: Any, fitted: Fitted, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per chosen column, most important first."""
    import numpy as np

    from blockl0.app.cli.progress import PathWatch, aborting, progress
    from blockl0.estimators.explain import NOT_REPEATED, summarize
    from blockl0.estimators.half_samples import default_half_samples
    from blockl0.run import share_of_time, watching

    names = data.table.feature_names
    n_halves = options["half_samples"]
    n_halves = default_half_samples(data.X) if n_halves is None else n_halves
    model, summary = fitted.model, None
    n_points = n_halves + (0 if hasattr(model, "path_") else int(model.n_nonzero_))
    if not fitted.interrupted and model.n_nonzero_:
        try:
            with (
                job.timed("explain"),
                progress("Explaining", job.quiet, "--half-samples 0 is quicker") as shown,
                watching(PathWatch(shown, n_points)),
                share_of_time(2 if options["proof"] else 1),
                aborting(),
            ):
                summary = summarize(
                    model, np.array(names, dtype=object), data.X, data.y, None, n_halves,
                    options["seed"],
                )  # fmt: skip
        except Interrupted:
            fitted.interrupted = True
            job.notice("Interrupted: what the columns are worth is not worked out.")
    summary = summary or model.summary()
    fitted.half_samples = summary.n_half_samples
    fitted.not_repeated = NOT_REPEATED in summary.notes
    fitted.cautions = [*summary.cautions, *at_bounds(data, model, options)]
    return _rows(data, model.coef_.reshape(-1, len(names)), summary)


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


def at_bounds(data: Any, model: Any, options: dict[str, Any]) -> list[str]:
    """Find chosen columns whose coefficients would be larger without their bounds."""
    import numpy as np

    from blockl0.app.cli.structure import bounds_of
    from blockl0.text import listing

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


def _result(data: Any, fitted: Fitted, rows: list[Any], options: dict[str, Any]) -> dict[str, Any]:
    from blockl0.app.cli import trust
    from blockl0.app.cli.data import bind
    from blockl0.certify.close_sets import count_close
    from blockl0.certify.levels import Choice, objective_at_zero
    from blockl0.estimators.binding import plain_estimator, price_at
    from blockl0.estimators.coefficient_costs import charge_of
    from blockl0.problem.near_dependence import left_out

    model, problem = fitted.model, fitted.problem
    if problem is None:
        problem = bind(plain_estimator(model), data).problem
    budget = budget_of(model)
    price = price_at(model, budget)
    charge = charge_of(problem, model.result_.coef, price)
    # redundant columns among the kept ones are open to choice
    choice = Choice(
        int(model.n_nonzero_), budget, data.n_units, problem.keep.size, problem.ridge > 0.0, price
    )
    scores = data.scores(model) | guesses(data)
    coef, is_over = model.result_.coef, fitted.interrupted
    certificate = trust.claim(
        model,
        fitted.proof,
        choice,
        lambda: None if is_over else left_out(problem, problem.from_given(coef)),
        data.unit_names,
        has_bound=fitted.has_bound,
        n_close=None if is_over else count_close(problem, coef),
        charge=charge,
        certificate=fitted.certificate,
    )
    return {
        "n_nonzero": int(model.n_nonzero_),
        "features": rows,
        "intercept": model.intercept_,
        "classes": getattr(model, "classes_", None),
        "targets": list(data.table.targets),
        "objective": model.objective_ - charge,
        "objective_without_columns": objective_at_zero(problem),
        "coefficient_price": price or None,
        "solver_status": str(model.status_),
        "scores": scores,
        "cautions": [*fitted.cautions, *no_better_than_guessing(scores, options)],
        "half_samples": fitted.half_samples,
        "not_repeated": fitted.not_repeated,
        "certificate": certificate,
        "choice": fitted.choice,
        "ridge": model.ridge_,
        "keep": list(options["keep"]),
    }


def no_better_than_guessing(scores: dict[str, Any], options: dict[str, Any]) -> list[str]:
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


def guesses(data: Any) -> dict[str, float]:
    """Return the accuracy of always guessing the most frequent class; empty for numbers."""
    import numpy as np

    if not data.is_classification:
        return {}
    labels, counts = np.unique(data.table.y, return_counts=True)
    found = {"guess": float(counts.max() / counts.sum())}
    if data.y_test is not None:
        found["guess_test"] = float(np.mean(data.y_test == labels[np.argmax(counts)]))
    return found


def _rows_of(data: Any, model: Any) -> dict[str, str]:
    """Return the fingerprint by which `predict` recognizes the training rows; moments have none."""
    from blockl0.app.tables.table import rows_fingerprint

    if data.is_streamed or not len(model.support_):
        return {}
    return {"rows": rows_fingerprint(data.X[:, model.support_])}


def _save(job: Job, data: Any, model: Any, result: dict[str, Any], options: dict[str, Any]) -> None:
    """Write the model file, with everything that `predict` and `certify` need."""
    if options["out"] is None:
        return
    from blockl0.app.cli.data import READING, STORED
    from blockl0.app.model_file import save_model

    budget = budget_of(model)
    metadata = {
        "data": job.data | _rows_of(data, model),
        "reading": {name: options[name] for name in READING},
        "problem": {
            "n_nonzero_coefs": budget,
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
