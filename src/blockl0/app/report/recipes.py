"""Where a page comes from, and how to repeat it: as Python code, and as a command.

Code and command are texts before k and texts after it.
"""

from __future__ import annotations

import csv
import json
import math
import platform
import shlex
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp

from blockl0 import __version__
from blockl0.app.report.points import Facts
from blockl0.app.report.words import clean
from blockl0.app.tables.formats import STDIN
from blockl0.losses import LOSSES, Loss, get_loss, label_of
from blockl0.losses.stored import original
from blockl0.problem.preprocess import AUTO
from blockl0.result import Status
from blockl0.text import count
from blockl0.validate import check_bounds

DATA_OPTIONS = {
    "--text": "text", "--impute": "impute", "--dates": "dates", "--drop": "drop", "--na": "na",
    "--header": "header", "--decimal": "decimal", "--format": "format", "--sheet": "sheet",
    "--max-levels": "max_levels", "--date-order": "date_order", "--as-category": "as_category",
    "--as-number": "as_number", "--levels": "levels", "--delimiter": "delimiter",
    "--quote": "quote", "--encoding": "encoding", "--skip-rows": "skip_rows",
    "--skip-bad-rows": "skip_bad_rows", "--fill-short-rows": "fill_short_rows",
}  # fmt: skip
"""Options of the command line for reading a file, and their names in `read_table`."""
REPEATED = ("--drop", "--na", "--as-category", "--as-number")
FLAGS = ("--skip-bad-rows", "--fill-short-rows")
NUMBERS = ("max_levels", "skip_rows")
PLAIN_FILES = {".csv": "pd.read_csv({})", ".parquet": "pd.read_parquet({})"}
BOUNDS = ("--positive", "--bounds", "--class-weight")
"""Options that bound coefficients."""
UNNAMED = "data.csv"
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")
"""Packages whose versions are named."""


def recipes(
    facts: Facts,
    source: str | None,
    command: str | None,
    notes: Sequence[str],
    time_limit: float | None,
) -> dict[str, list[str]]:
    """Return {"python": [before k, after k], "command": [before k, after k]}."""
    options = _given(command, tuple(DATA_OPTIONS))
    path = clean(source) if source and source not in ("-", STDIN) else UNNAMED
    return {
        "python": _python(facts, path, options, bool(notes), time_limit),
        "command": _command(facts, path, [*options, *_given(command, BOUNDS)]),
    }


def _given(command: str | None, names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Extract some options of a command line and their values, in order."""
    try:
        tokens = shlex.split(command or "")
    except ValueError:
        return []
    found = []
    for i, token in enumerate(tokens):
        name, has_value, value = token.partition("=")
        if name in names and (has_value or name in FLAGS):
            found.append((name, value))
        elif name in names and i + 1 < len(tokens):
            found.append((name, tokens[i + 1]))
    return found


def _python(
    facts: Facts, path: str, options: list[tuple[str, str]], is_prepared: bool,
    time_limit: float | None,
) -> list[str]:  # fmt: skip
    task = facts.task
    kind = "L0Classifier" if task.has_labels else "L0Regressor"
    common = _fit_options(facts)
    search = [*common, 'rule="bic"', f"effort={_literal(task.effort)}"]
    search += [f"random_state={_literal(task.random_state)}"]
    if task.keep is not None:
        search.append(f"keep={_literal([facts.names[j] for j in _kept(facts)])}")
    if time_limit is not None:
        search.append(f"time_limit={time_limit:.6g}")
    budgets = [int(k) for k in facts.model.path_.n_nonzero_coefs]
    grid = f"range({budgets[0]}, {budgets[-1] + 1})"
    grid = grid if budgets == list(range(budgets[0], budgets[-1] + 1)) else str(budgets)
    reading = _reading(facts, path, options, is_prepared)
    search += _groups(facts, any("read_table(" in line for line in reading))
    before = [
        "import pandas as pd",
        f"from blockl0 import {kind}, {kind}CV",
        *_importing(task.loss),
        *reading,
        "",
        "# the path of the report, then the model at one k",
        f"model = {kind}CV(",
        f"    {', '.join([grid, *search])}",
        ").fit(X, y)",
        "columns = list(X.columns[model.path_.at(",
    ]
    fit = ", ".join(["len(columns)", "keep=columns", *common])
    after = [
        ").support])",
        f"model = {kind}({fit}).fit(X, y)",
        *_printing(task.has_labels, facts.classes),
    ]
    return ["\n".join(before), "\n".join(after) + "\n"]


def _kept(facts: Facts) -> list[int]:
    """Return the columns of X that always stay."""
    units = facts.prepared.problem.units
    return units.columns(facts.prepared.problem.keep).tolist()


def _groups(facts: Facts, has_table: bool) -> list[str]:
    """Write the groups of the search, which a table provides."""
    if facts.task.structure.get("feature_groups") is None:
        return []
    costs = [] if facts.model.costs_ is None else [f"costs={_literal(facts.model.costs)}"]
    if has_table:
        return ["feature_groups=table.groups", *costs]
    groups = {e.name: [facts.names[j] for j in e.columns] for e in facts.listed if e.parts}
    return [f"feature_groups={_literal(groups)}", *costs]


def _bounds(facts: Facts) -> list[str]:
    """Write the bounds of coefficients, by name."""
    if facts.prepared.problem.bounds is None:
        return []
    n, given = len(facts.names), facts.task.structure
    low, high = check_bounds(given["bounds"], given["positive"], n) or ((), ())
    held = {
        name: (None if least == -math.inf else least, None if most == math.inf else most)
        for name, least, most in zip(facts.names, low, high, strict=True)
    }
    held = {name: pair for name, pair in held.items() if pair != (None, None)}
    if len(held) == n and set(held.values()) == {(0.0, None)}:
        return ["positive=True"]
    return [f"bounds={_literal(held)}"]


def _fit_options(facts: Facts) -> list[str]:
    """Write options that differ from the defaults of the estimator."""
    task = facts.task
    options = []
    if task.loss_name != type(facts.model)().loss:
        options.append(f"loss={_loss_source(task.loss)}")
    if task.ridge != AUTO:
        options.append(f"ridge={_literal(task.ridge)}")
    options += _bounds(facts)
    if facts.task.structure.get("class_weight") is not None:
        options.append(f"class_weight={_literal(facts.task.structure['class_weight'])}")
    return options


def _loss_source(loss: Any) -> str:
    """Write a loss as Python source: its name, or the code of a custom object."""
    known = get_loss(loss)
    return _literal(label_of(known)) if _is_built_in(known) else repr(original(known))


def _is_built_in(loss: Loss) -> bool:
    return type(loss) is type(LOSSES.get(loss.name))


def _importing(loss: Any) -> list[str]:
    """Write the import of a custom loss."""
    kind = type(original(get_loss(loss)))
    own = [f"from {kind.__module__} import {kind.__qualname__}"]
    return [] if _is_built_in(get_loss(loss)) else own


def _reading(
    facts: Facts, path: str, options: list[tuple[str, str]], is_prepared: bool
) -> list[str]:
    """Write lines that make X, a DataFrame, and y."""
    target, names = facts.target, facts.names
    reader = PLAIN_FILES.get(PurePath(path).suffix.lower())
    if reader and not options and not is_prepared and _is_plain(path, target, names):
        return [
            "",
            f"data = {reader.format(_literal(path))}",
            f"y = data[{_literal(target)}]",
            f"X = data.drop(columns={_literal(target)})",
        ]
    given: dict[str, Any] = {"target": target}
    for name, value in options:
        key = DATA_OPTIONS[name]
        given[key] = [*given.get(key, []), value] if name in REPEATED else value
        if key in NUMBERS and value.isdigit():
            given[key] = int(value)
        if name in FLAGS:
            given[key] = True
    arguments = ", ".join(f"{key}={_literal(value)}" for key, value in given.items())
    entries = "table.X.toarray()" if sp.issparse(facts.task.X) else "table.X"
    return [
        "from blockl0.app.tables import read_table",
        "",
        f"table = read_table({_literal(path)}, {arguments})",
        f"X = pd.DataFrame({entries}, columns=table.feature_names)",
        "y = table.y",
    ]


def _is_plain(path: str, target: str, names: list[str]) -> bool:
    """Check if pandas alone would find these columns; True for unreadable files."""
    if PurePath(path).suffix.lower() != ".csv":
        return True
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            return set(next(csv.reader(file), [])) == {target, *names}
    except OSError:
        return True
    except (UnicodeDecodeError, csv.Error):
        return False


def _printing(has_labels: bool, classes: list[str] | None) -> list[str]:
    chosen = "chosen = model.support_"
    if not has_labels:
        return [chosen, "print(pd.Series(model.coef_[chosen], X.columns[chosen]))"]
    rows = "model.classes_" if classes and len(classes) > 2 else "model.classes_[1:]"
    return [
        chosen,
        f"print(pd.DataFrame(model.coef_[:, chosen], {rows}, X.columns[chosen]).T)",
    ]


def _literal(value: Any) -> str:
    """Write a value as Python source, text in double quotes with escapes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
    if isinstance(value, float):
        value = float(value)  # NumPy's repr differs
    return repr(value)


def _command(facts: Facts, path: str, options: list[tuple[str, str]]) -> list[str]:
    task = facts.task
    before = ["blockl0", "fit", path, "--target", facts.target, "-k"]
    after = []
    loss = get_loss(task.loss)
    if not _is_built_in(loss):
        return ["# the command line does not know this loss, whatever k: ", ""]
    if not loss.is_quadratic:
        after += ["--loss", task.loss_name]
    if task.ridge != AUTO:
        given = task.ridge
        after += ["--ridge", given if isinstance(given, str) else f"{float(given):g}"]
    if facts.task.structure["feature_groups"] is not None and facts.model.costs is None:
        after += ["--costs", "none"]
    for unit in facts.prepared.problem.keep:
        after += ["--keep", facts.listed[unit].name]
    if task.effort != "fast":
        after += ["--effort", str(task.effort)]
    if task.random_state:
        after += ["--seed", str(task.random_state)]
    for name, value in options:
        after += [name, value] if value else [name]
    return [shlex.join(before) + " ", f" {shlex.join(after)}" if after else ""]


# -- the foot of the page --------------------------------------------------------------------------


def about(
    facts: Facts,
    source: str | None,
    fingerprint: str | None,
    command: str | None,
    notes: Sequence[str],
    seconds: float,
    time_limit: float | None,
) -> dict[str, Any]:
    """List the contents of the foot of the page."""
    task = facts.task
    return {
        "source": None if source is None else clean(source),
        "fingerprint": None if fingerprint is None else clean(fingerprint),
        "command": None if command is None else clean(command),
        "notes": [*map(clean, notes), *_own_notes(facts)],
        "date": date.today().isoformat(),
        "seconds": round(seconds, 1),
        "versions": {
            "blockl0": __version__,
            "Python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
        },
        "settings": {
            "loss": task.loss_name,
            "ridge": facts.model.ridge_,
            "effort": task.effort,
            "random_state": task.random_state,
            "folds": facts.folds.n_scored,
            "half_samples": facts.again.n_samples,
            "time_limit": time_limit,
        },
    }


def _own_notes(facts: Facts) -> list[str]:
    """List notes on this run."""
    path, folds, found = facts.model.path_, facts.folds, []
    if any(result.status is Status.TIME_LIMIT for result in path):
        last = count(int(path.n_nonzero_coefs[-1]), "column")
        found.append(f"The time limit cut the search short; the path ends at {last}.")
    n_lost = folds.n_folds - folds.n_scored
    if n_lost:
        found.append(f"{count(n_lost, 'fold')} could not be scored: a class was missing there.")
    if np.isnan(folds.losses[folds.is_scored]).any():
        found.append("The time limit cut some folds short; larger sizes have no score there.")
    if not folds.n_folds:
        found.append("There was no cross-validation.")
    return found
