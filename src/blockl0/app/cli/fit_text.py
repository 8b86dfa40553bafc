"""Text output of `blockl0 fit`."""

from __future__ import annotations

from typing import Any

import numpy as np

from blockl0.app.cli.job import bullet, table
from blockl0.app.cli.options import FOLD_RULES
from blockl0.certify.words import INFERENCE
from blockl0.estimators.explain import NOT_REPEATED
from blockl0.estimators.half_samples import FIRM
from blockl0.estimators.reading import units_differ
from blockl0.problem.preprocess import read_ridge
from blockl0.text import count, percent, short

KEYS = {
    "per_sd": "per std. dev.", "entry": "enters at k", "drop_one": "loss without",
    "again": "chosen again",
}  # fmt: skip
"""Possible columns of the table besides the coefficient, with titles."""
RECALLS = 4
"""Classes whose recall is shown, the lowest first."""
HEAD = 16
"""Characters of a class name in the head of a table."""
LARGEST_RISE = 10.0
"""Multiple of the objective from which rises are relative to the objective without columns."""


def describe(data: Any, result: dict[str, Any], options: dict[str, Any]) -> list[str]:
    """Format the result for people, line by line."""
    name, n = ", ".join(map(repr, data.table.targets)), data.n_units
    lines = [f"{data.table.source}: {data.X.shape[0]} rows, {count(n, 'column')} to choose from"]
    if result["choice"]:
        lines.append(_choice_line(result["choice"], options))
    k = result["n_nonzero"]
    ridge = f", ridge {read_ridge(result['ridge']).words}" if result["ridge"] else ""
    lines += ["", f"{k} of {n} columns chosen for {name} ({data.loss} loss{ridge}):", ""]
    lines += [_table_of(result), *_legend(result), ""]
    scores = result["scores"]
    lines += [_score_line(scores), *_unseen_line(result), *_class_lines(scores)]
    lines += ["", "Can it be trusted?"]
    said = [result["certificate"]["words"]]
    if k < n and result["features"] and "again" in result["features"][0]:
        said.append(_stability(result["features"], result["half_samples"]))
    elif result["not_repeated"]:
        said.append(NOT_REPEATED)
    said += result["cautions"]
    if "test" not in scores and not data.is_streamed:
        said.append("No rows were held out; --test 0.2 tells how well it does on new ones.")
    if result["coefficient_price"]:
        said.append(_charge_line(result, options))
    if result["features"]:
        said.append(INFERENCE)
    lines += [bullet(sentence) for sentence in said]
    if options["out"] is not None:
        lines += ["", f"The model is in {options['out']}."]
    return lines


def _stability(rows: list[dict[str, Any]], n_samples: int) -> str:
    """Say in a sentence how often the columns are selected again."""
    shares = sorted((row["again"], row["name"]) for row in rows)
    n_firm = sum(share >= FIRM for share, _ in shares)
    which = "the column is" if len(shares) == 1 else f"{n_firm} of {len(shares)} columns are"
    if n_firm < len(shares) == 1:
        which = "the column is not"
    weakest = f"; least often {shares[0][1]} ({shares[0][0]:.0%})" if shares[0][0] < FIRM else ""
    return (
        f"Repeated on {n_samples} half-samples of the rows: {which} chosen again in at least "
        f"{percent(FIRM)} of them{weakest}."
    )


def _charge_line(result: dict[str, Any], options: dict[str, Any]) -> str:
    """Say what categories pay for their coefficients, and how to avoid it."""
    rule = options.get("rule")
    criterion = "BIC" if rule in (None, *FOLD_RULES) else rule.upper()
    return (
        f"Each coefficient of a category beyond its first is charged "
        f"{short(result['coefficient_price'])} of loss, the price of {criterion}, so that large "
        "categories are not chosen for their size; --costs none chooses by the loss alone."
    )


def _score_line(scores: dict[str, Any]) -> str:
    """Format the score on training and held-out rows, each beside that of guessing."""

    def beside(name: str) -> str:
        return f" (guessing: {scores[name]:.4g})" if name in scores else ""

    def of_each(name: str) -> str:
        each = scores.get(f"{name}_of_each", {})
        parts = ", ".join(f"{target} {value:.4g}" for target, value in each.items())
        return f" ({parts})" if parts else ""

    line = f"{scores['metric']} {scores['train']:.4g}{beside('guess')}{of_each('train')} on the "
    line += f"{scores['n_train']} rows of the fit"
    if "test" in scores:
        line += f", {scores['test']:.4g}{beside('guess_test')}{of_each('test')} on "
        line += f"{scores['n_test']} rows held out"
    return f"{line}."


def _unseen_line(result: dict[str, Any]) -> list[str]:
    """Write the score on held-out folds, if the size was chosen by them."""
    unseen = (result["choice"] or {}).get("unseen")
    if not unseen:
        return []
    name = "accuracy" if "accuracy" in unseen else "explained"
    mean, error = unseen[name]
    metric = "accuracy" if name == "accuracy" else result["scores"]["metric"]
    return [f"{metric} on held-out folds {mean:.3g} \N{PLUS-MINUS SIGN} {error:.2g}."]


def _class_lines(scores: dict[str, Any]) -> list[str]:
    """Format AUC, log loss and recalls on training and held-out rows."""
    rows = {"train": "on the rows of the fit", "test": "on the rows held out"}
    return [
        f"{class_line(scores[f'{name}_classes'])} {where}."
        for name, where in rows.items()
        if f"{name}_classes" in scores
    ]


def class_line(found: dict[str, Any]) -> str:
    """Format the scores of classes; of many the lowest recalls."""
    parts = [f"AUC {found['auc']:.4g}"]
    if "log_loss" in found:
        parts.append(f"log loss {found['log_loss']:.4g}")
    each = sorted(found["recall"].items(), key=lambda item: item[1])
    parts.append("recall " + ", ".join(f"{name} {share:.1%}" for name, share in each[:RECALLS]))
    if len(each) > RECALLS:
        parts.append(f"{found['balanced_accuracy']:.1%} in the mean of {len(each)} classes")
    return ", ".join(parts)


def _choice_line(choice: dict[str, Any], options: dict[str, Any]) -> str:
    sizes = choice["n_nonzero_coefs"]
    how = {
        "min": "best score",
        "one_se": "fewest within one standard error of the best score",
        "paired_se": "best ridge and fewest columns that predict as well as the best",
    }
    rule = how.get(choice["rule"])
    by = f"{options['folds']}-fold cross-validation, {rule}" if rule else choice["rule"].upper()
    chosen = count(choice["chosen"], "column")
    return f"{chosen} chosen among {sizes[0]} to {sizes[-1]} by {by}"


def _table_of(result: dict[str, Any]) -> str:
    """Tabulate the chosen columns; a missing drop-one loss marks a kept column."""
    heads = _heads(result)
    titles = ["column", *([f"coef {head}" for head in _brief(heads)] or ["coefficient"])]
    known = result["features"][0] if result["features"] else {}
    keys = [key for key in KEYS if key in known and key != "per_sd"]
    if known and "entry" in known and _has_effects(result):
        keys.insert(0, "per_sd")
    rows = []
    for row in result["features"]:
        values = [""] * (len(titles) - 1) if "levels" in row else _numbers(row["coef"])
        known = [_cell(key, row.get(key), result) for key in keys]
        rows.append([_title(row), *values, *known])
        rows += [[*cells, *[""] * len(keys)] for cells in _level_cells(row, len(values))]
    intercepts = [short(float(b)) for b in np.ravel(result["intercept"])]
    rows.append(["(intercept)", *intercepts, *[""] * len(keys)])
    return table([*titles, *(KEYS[key] for key in keys)], rows)


def _title(row: dict[str, Any]) -> str:
    """Return the name of a column, with the number of coefficients of a category."""
    size = row.get("coefficients", 1)
    return row["name"] if size == 1 else f"{row['name']} ({size} coefficients)"


def _heads(result: dict[str, Any]) -> list[Any]:
    """Return the heads of several coefficients per column: classes or targets."""
    if result["classes"] is not None:
        return list(result["classes"]) if len(result["classes"]) > 2 else []
    return result["targets"] if len(result["targets"]) > 1 else []


def _level_cells(row: dict[str, Any], n_values: int) -> list[list[str]]:
    """Return rows for the levels of a category below its name, reference first."""
    if "levels" not in row:
        return []
    zero = [f"  {row['reference']} (reference)", *["0"] * n_values]
    return [zero, *([f"  {one['level']}", *_numbers(one["coef"])] for one in row["levels"])]


def _numbers(coef: Any) -> list[str]:
    return [short(float(value)) for value in (coef if isinstance(coef, list) else [coef])]


def _brief(classes: list[Any]) -> list[str]:
    """Shorten class names for the head of a table if they stay different."""
    names = [str(label) for label in classes]
    brief = [name if len(name) <= HEAD else f"{name[: HEAD - 1].rstrip()}…" for name in names]
    return brief if len(set(brief)) == len(brief) else names


def _has_effects(result: dict[str, Any]) -> bool:
    """Check if effects per standard deviation help: units differ, one number per column."""
    rows = [row for row in result["features"] if "levels" not in row]
    if not rows or isinstance(rows[0]["coef"], list):
        return False
    return units_differ([row["per_sd"] / row["coef"] if row["coef"] else 0.0 for row in rows])


def _legend(result: dict[str, Any]) -> list[str]:
    """Explain the columns of the table that are present."""
    lines, classes = [], result["classes"]
    if classes is not None and len(classes) == 2:
        lines.append(
            f"  A positive coefficient makes {classes[1]} more likely, a negative one {classes[0]}."
        )
    if result["features"] and "drop_one" in result["features"][0]:
        if _has_effects(result):
            lines.append(
                "  Per std. dev.: the coefficient times the standard deviation of its column."
            )
        lines.append("  Loss without: how much the objective rises when the column is left out and")
        whole = ", as a share of that without any column" if _rises_far(result) else ""
        lines.append(f"  the others are re-fitted{whole}.")
    return lines


def _rises_far(result: dict[str, Any]) -> bool:
    """Check if the objective is so small that shares of it are meaningless."""
    rises = [row["drop_one"] for row in result["features"]]
    return any(rise >= LARGEST_RISE * result["objective"] for rise in rises)


def _cell(key: str, value: Any, result: dict[str, Any]) -> str:
    if key == "entry":
        return str(int(value))
    if key == "again":
        return f"{value:.0%}"
    if key == "per_sd":
        return "" if value is None else short(float(value))
    if value != value:
        return "kept"
    if _rises_far(result):
        return f"{value / result['objective_without_columns']:.1%}"
    return f"+{value / result['objective']:.1%}"
