"""`blockl0 compare`: several methods on the same data, one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sklearn.metrics import r2_score

from blockl0.app.cli.data import CommandData
from blockl0.app.cli.job import DATA, Answer, Job, Refused, names_line, table
from blockl0.app.cli.models import bind, make_estimator
from blockl0.app.cli.progress import progress
from blockl0.certify.levels import PERFECT, objective_at_zero
from blockl0.solve import METHODS, solve_problem
from blockl0.text import short
from blockl0.units import COLUMNS

USUAL = ("refit", "exact", "dec", "forward", "omp", "cosamp", "pgm", "cvx-l1")
LARGEST_EXACT = 200
"""Columns up to which the exact search is among the usual methods."""


def run(job: Job, data: CommandData, options: dict[str, Any]) -> Answer:
    """Run the methods that take the problem, and compare their answers."""
    model = make_estimator(data, options, n_nonzero_coefs=options["columns"])
    bound, (m, n) = bind(model, data), data.X.shape
    is_small = n <= LARGEST_EXACT and n < m
    usual = [name for name in USUAL if name != "exact" or is_small]
    methods = _able(job, bound.problem, options["methods"], usual)
    rows, is_cut = _run_all(job, data, bound, methods, options)
    if not rows:
        raise KeyboardInterrupt
    least = PERFECT * objective_at_zero(bound.problem)
    result = {"k": options["columns"], "methods": _ranked(rows, least)}
    return Answer(result, _lines(data, result, least, bool(options["ridge"])), is_cut)


def _able(job: Job, problem: Any, asked: Sequence[str], usual: Sequence[str]) -> list[str]:
    """Return the methods to run: those requested, or the usual ones that take the problem."""
    unable = {
        m: reason for m in asked or usual if (reason := METHODS[m].refusal(problem)) is not None
    }
    if not unable:
        return list(asked or usual)
    method, reason = next(iter(unable.items()))
    ways = {
        "--levels separate": problem.units is not COLUMNS,
        "no --positive and no --bounds": problem.bounds is not None,
        "one --target": problem.y.ndim == 2,
    }
    need = " and ".join(way for way, is_needed in ways.items() if is_needed)
    if asked:
        able = ", ".join(m for m in usual if METHODS[m].refusal(problem) is None)
        raise Refused(f"{method} {reason}; compare {able}, or give {need}.", DATA)
    job.notice(f"Left out, since they need {need}: {', '.join(unable)}.")
    return [m for m in usual if m not in unable]


def _run_all(
    job: Job, data: Any, bound: Any, methods: Any, options: dict[str, Any]
) -> tuple[list[dict[str, Any]], bool]:
    """Run all methods; return their rows, and whether Ctrl-C was pressed."""
    rows: list[dict[str, Any]] = []
    with progress("Comparing", job.quiet) as shown:
        for i, method in enumerate(methods):
            shown(i, len(methods), method)
            try:
                rows.append(_run(data, bound, method, options))
            except KeyboardInterrupt:
                return rows, True
            if rows[-1]["status"] == "interrupted":
                return rows, True
    return rows, False


def _run(data: Any, bound: Any, method: str, options: dict[str, Any]) -> dict[str, Any]:
    has_effort = options["effort"] is not None and "effort" in METHODS[method].defaults
    given: dict[str, Any] = {"effort": options["effort"]} if has_effort else {}
    result = solve_problem(
        bound.problem, method, random_state=options["seed"], time_limit=options["time_limit"],
        **given,
    )  # fmt: skip
    coef, intercept = bound.invert(result.coef)
    support = COLUMNS.support(coef)

    def r2(X: Any, y: Any) -> float:
        return float(r2_score(y, X[:, support] @ coef[support] + intercept))

    return {
        "method": method,
        "objective": result.objective,
        "n_nonzero": result.n_nonzero,
        "seconds": result.seconds,
        "r2": r2(data.X, data.y),
        "r2_test": None if data.X_test is None else r2(data.X_test, data.y_test),
        "status": str(result.status),
        "gap": result.gap,
        "columns": data.names_of(support),
    }


def _ranked(rows: list[dict[str, Any]], least: float) -> list[dict[str, Any]]:
    """Sort by objective and count shared columns; objectives below `least` are equal."""
    rows = sorted(rows, key=lambda row: max(row["objective"], least))
    best = set(rows[0]["columns"])
    return [row | {"same_as_best": len(best & set(row["columns"]))} for row in rows]


def _lines(data: Any, result: dict[str, Any], least: float, has_ridge: bool) -> list[str]:
    rows, best = result["methods"], result["methods"][0]
    has_test = best["r2_test"] is not None
    titles = ["method", "objective", "above best", "nonzeros", "same", "R²"]
    titles += ["R² held out"] * has_test + ["seconds", "status"]
    cells = []
    for row in rows:
        excess = max(row["objective"], least) / max(best["objective"], least) - 1.0
        status = row["status"] if not row["gap"] else f"{row['status']}, gap {row['gap']:.1%}"
        cells.append([
            row["method"], f"{row['objective']:.6g}", f"{excess:.2%}" if excess > 5e-5 else "-",
            str(row["n_nonzero"]), f"{row['same_as_best']} of {best['n_nonzero']}",
            short(row["r2"]), *([short(row["r2_test"])] if has_test else []),
            f"{row['seconds']:.3g}", status,
        ])  # fmt: skip
    n_rows, n = data.X.shape[0], data.n_units
    lines = [
        f"{data.table.source}: {n_rows} rows, {n} columns, at most {result['k']} chosen",
        "",
        table(titles, cells),
        "",
    ]
    proven = any(row["status"] == "optimal" and not row["gap"] for row in rows)
    about = " for this ridge penalty" if has_ridge else ""
    words = f"proven the best of all{about}" if proven else "the best found"
    return [*lines, f"The choice of {best['method']}, {words}: {names_line(best['columns'])}"]
