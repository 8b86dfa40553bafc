"""`blockl0 path`: the best columns for every number of columns."""

from __future__ import annotations

from typing import Any

from blockl0.app.cli.data import CommandData
from blockl0.app.cli.job import Answer, Interrupted, Job, names_line, save, table
from blockl0.app.cli.models import Fitted, fit_choosing, guesses
from blockl0.app.cli.report import write_report
from blockl0.estimators.coefficient_costs import charge_of
from blockl0.problem.preprocess import read_ridge
from blockl0.selection import CRITERIA, readable_scores
from blockl0.text import as_csv, count, short


def run(job: Job, data: CommandData, options: dict[str, Any]) -> Answer:
    """Fit the path, and write its table and its page."""
    with job.timed("fit"):
        fitted = fit_choosing(job, data, options)
    result = _result(fitted)
    save(options["csv"], _as_csv(result["points"]), options["force"])
    lines, is_cut = _lines(data, result), fitted.is_cut
    if options["html"] is not None and not is_cut:
        is_cut = not _write_page(job, data, options, result["points"][-1]["k"])
        lines += [] if is_cut else ["", f"The page is {options['html']}"]
    return Answer(result, lines, is_cut)


def _write_page(job: Job, data: Any, options: dict[str, Any], k: int) -> bool:
    """Write the page; return whether it was finished before Ctrl-C."""
    try:
        write_report(job, data, options, options["html"], k)
    except Interrupted:
        job.notice("Interrupted: the page is not written.")
        return False
    return True


def _result(fitted: Fitted) -> dict[str, Any]:
    model, data = fitted.model, fitted.data
    path = model.path_
    criteria = {name: path.criterion(name) for name in CRITERIA}
    shares = readable_scores(model)
    points, before = [], set()
    charged = None if model.costs_ is None else fitted.prepared.problem
    place = {name: j for j, name in enumerate(data.unit_names)}
    for i, result in enumerate(path):
        columns = data.names_of(result.support)
        chosen, charge = set(columns), 0.0
        if charged is not None:
            charge = charge_of(charged, result.coef, float(path.alphas[i]))
        point: dict[str, Any] = {
            "k": int(path.n_nonzero_coefs[i]),
            "n_nonzero": result.n_nonzero,
            "n_coefficients": int(path.n_coefficients[i]),
            "loss": float(path.losses[i]),
            "objective": result.objective - charge,
            **{name: float(values[i]) for name, values in criteria.items()},
        }
        if hasattr(model, "mean_scores_"):
            point |= {"cv_loss": -model.mean_scores_[i], "cv_se": model.se_scores_[i]}
        for name, (mean, error) in shares.items():
            point |= {f"cv_{name}": mean[i], f"cv_{name}_se": error[i]}
        point |= {
            "columns": columns,
            "enter": sorted(chosen - before, key=place.__getitem__),
            "leave": sorted(before - chosen, key=place.__getitem__),
            "status": str(result.status),
        }
        points.append(point)
        before = chosen
    return {
        "rule": model.rule, "chosen": model.best_n_nonzero_coefs_, "ridge": model.ridge_,
        **guesses(data),
        "points": points,
    }  # fmt: skip


def _lines(data: Any, result: dict[str, Any]) -> list[str]:
    points = result["points"]
    score = next((name for name in ("cv_accuracy", "cv_explained") if name in points[0]), None)
    sizes = ["n_coefficients"] if data.table.groups is not None else []
    measures = [*sizes, "loss", "bic", *([score, f"{score}_se"] if score else [])]
    measures += ["cv_auc"] if "cv_auc" in points[0] else []
    titles = {
        "n_coefficients": "coefs",
        "bic": "BIC",
        "cv_accuracy": "CV accuracy",
        f"{score}_se": "± SE",
    }
    titles["cv_auc"] = "CV AUC"
    titles["cv_explained"] = f"CV {data.metric}"
    rows = []
    for point in points:
        star = "*" if point["k"] == result["chosen"] else ""
        changes = [f"+{name}" for name in point["enter"]] + [f"-{name}" for name in point["leave"]]
        numbers = [short(float(point[name])) for name in measures]
        rows.append([f"{point['k']}{star}", *numbers, "  ".join(changes)])
    n_rows, n = data.X.shape[0], data.n_units
    best = next(point for point in points if point["k"] == result["chosen"])
    guess = (
        ["", f"Guessing the commonest class: {result['guess']:.4g}"] if "guess" in result else []
    )
    words = read_ridge(result["ridge"]).words
    said = f"Losses and criteria are those of fits with ridge {words}."
    ridge = ["", said] if result["ridge"] else []
    return [
        f"{data.table.source}: {n_rows} rows, {count(n, 'column')} to choose from",
        "",
        table(["k", *(titles.get(name, name) for name in measures), "columns"], rows, left=0),
        *guess,
        *ridge,
        "",
        f"Rule {result['rule']} chooses {count(result['chosen'], 'column')}: "
        f"{names_line(best['columns'])}",
    ]


def _as_csv(points: list[dict[str, Any]]) -> str:
    names = [name for name in points[0] if name not in ("columns", "enter", "leave")]
    rows = ([*(point[name] for name in names), "; ".join(point["columns"])] for point in points)
    return as_csv([*names, "columns"], rows)
