"""The main workflow, end to end, on data shipped with scikit-learn: `blockl0 demo`.

Which 6 of 64 columns explain the progression of diabetes in 442 patients: ten measurements in their
own units, with squares and products of their deviations from the mean? Solve, certify, compare with
common methods, and write the report page.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes

import blockl0
from blockl0.files import check_free, write_whole
from blockl0.text import as_csv

K = 6
LARGEST_K = 12
"""Largest number of columns in the report."""
OTHERS = {
    "forward": "forward selection",
    "omp": "orthogonal matching pursuit",
    "cosamp": "CoSaMP",
    "cvx-l1": "Lasso path, re-fitted",
    "pgm": "iterative hard thresholding",
}


def quadratic_diabetes() -> tuple[Any, Any, list[str]]:
    """Return X (442, 64), y and names: ten columns, and products and squares of their deviations.

    Deviations, because products of columns far from zero are nearly multiples of them.
    """
    data: Any = load_diabetes(scaled=False)
    names, columns = list(data.feature_names), list(data.data.T)
    centred = (data.data - data.data.mean(axis=0)).T
    for i, j in combinations_with_replacement(range(10), 2):
        if i == j and names[i] == "sex":
            continue  # two values: its square is redundant
        names.append(f"{names[i]}^2" if i == j else f"{names[i]}*{names[j]}")
        columns.append(centred[i] * centred[j])
    return np.column_stack(columns), data.target, names


def command_name() -> str:
    """Return the command that runs the command line from here, so that printed commands work."""
    beside = Path(sys.executable).with_name("blockl0")
    found = shutil.which("blockl0")
    if found is not None and (not beside.exists() or Path(found).resolve() == beside.resolve()):
        return "blockl0"
    if beside.exists():
        here = Path.cwd()
        return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
    return f"{shlex.quote(sys.executable)} -m blockl0"


def run(folder: Any, *, force: bool = False, echo: Callable[[str], Any] = print) -> Path:
    """Run all steps, print the results, and return the path of the page."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    table, page = (check_free(folder / name, force) for name in ("diabetes.csv", "report.html"))
    X, y, names = quadratic_diabetes()
    started = time.perf_counter()
    warm_up()
    echo(
        f"Compiled functions are ready after {time.perf_counter() - started:.1f} s; times below "
        "are of searches alone."
    )
    echo(f"Diabetes: which {K} of {X.shape[1]} columns explain y in {X.shape[0]} patients?\n")
    # `solve` has no intercept, so the data are centred; the estimators do that themselves
    X_centred, y_centred = X - X.mean(axis=0), y - y.mean()
    result = solve_and_certify(X_centred, y_centred, names, echo)
    compare(X_centred, y_centred, result, echo)
    write_whole(table, as_csv([*names, "y"], np.column_stack([X, y]).tolist()), force)
    write_page(X, y, names, page, force, str(table), echo)
    echo(f"\nThe page is {page}; open it in a browser. The data are in {table}; go on with")
    words = ["fit", str(table), "--target", "y", "-k", str(K), "--test", "0.2"]
    echo(f"  {command_name()} {shlex.join(words)}")
    return page


def warm_up() -> None:
    """Compile what a search and a proof need, so that no timing includes it."""
    X, y = np.eye(12)[:, :5] + 0.1, np.arange(12.0)
    for method in ("refit", "exact", *OTHERS):
        blockl0.solve(X, y, n_nonzero_coefs=2, method=method, random_state=0)


def solve_and_certify(X: Any, y: Any, names: list[str], echo: Callable[[str], Any]) -> Any:
    """Print the result of the default method, and how much of it can be proven."""
    result = blockl0.solve(X, y, n_nonzero_coefs=K, random_state=0)
    echo(f"1. Solve: {', '.join(names[j] for j in result.support)}")
    echo(f"   objective {result.objective:.0f}, R² {_r2(result, y):.3f}, {result.seconds:.2f} s")
    certificate = blockl0.certify(X, y, result.coef, n_nonzero_coefs=K, level=3)
    proof = blockl0.solve(X, y, n_nonzero_coefs=K, method="exact", random_state=0, time_limit=120)
    echo("2. Certify: " + str(certificate))
    echo(f"   All subsets, by branch and bound: {proof.message}")
    echo(f"   lower bound {proof.lower_bound:.0f}, {proof.n_iter} nodes, {proof.seconds:.2f} s")
    return result


def compare(X: Any, y: Any, result: Any, echo: Callable[[str], Any]) -> None:
    """Print the distance of common methods from it."""
    echo("3. Compare: the same number of columns, by other methods")
    for method, name in OTHERS.items():
        other = blockl0.solve(X, y, n_nonzero_coefs=K, method=method, random_state=0)
        excess = other.objective / result.objective - 1.0
        same = np.intersect1d(other.support, result.support).size
        echo(f"   {name:28s} objective {excess:+7.2%}, {same} of {K} columns the same")


def write_page(
    X: Any, y: Any, names: list[str], page: Path, force: bool, source: str,
    echo: Callable[[str], Any],
) -> None:  # fmt: skip
    """Write the report for every number of columns up to 12, with cross-validation."""
    from blockl0.app.report import make_report

    echo(f"4. Report: every k up to {LARGEST_K}, five-fold cross-validation …")
    report = make_report(
        X, y, feature_names=names, target="y", n_nonzero_coefs=LARGEST_K, random_state=0,
        source=source, command=f"blockl0 report {source} --target y -k {LARGEST_K}",
    )  # fmt: skip
    write_whole(page, report.to_html(), force)


def _r2(result: Any, y: Any) -> float:
    return 1.0 - 2.0 * result.objective / float(y @ y)
