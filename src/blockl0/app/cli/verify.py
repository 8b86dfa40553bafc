"""`blockl0 verify`: check a proof of others; and the proof that `fit --proof` writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from blockl0.app.cli.data import load
from blockl0.app.cli.job import DATA, FAILED, Answer, Job, Refused, names_line
from blockl0.app.cli.models import Fitted, make_estimator
from blockl0.app.cli.progress import ProofWatch, watched
from blockl0.blas import one_blas_thread
from blockl0.errors import OutOfReachError
from blockl0.estimators.binding import read_data
from blockl0.solve import solve_problem
from blockl0.verify import ProofError
from blockl0.verify import verify as check_proof
from blockl0.verify.files import is_proof, read_proof

WORK = 60.0
"""Units of 1e9 multiplications for the search of a proof, where no --time-limit is given."""

TELLING = 1e-6
"""Gap of a proof above which it is mentioned."""


def run(job: Job, options: dict[str, Any]) -> Answer:
    """Check a proof on the data that it is about."""
    try:
        claim, _ = read_proof(_not_swapped(options))
        # proofs are about single columns
        data = load(job, {**options, "loss": claim["loss"], "levels": "separate"})
        with job.timed("verify"), one_blas_thread():
            read = read_data(make_estimator(data, options), data.X, data.y)
            found = check_proof(options["file"], read.X, read.target, exact=options["exact"])
    except ProofError as error:
        raise Refused(f"Refused: {error}", FAILED) from error
    names = data.table.feature_names
    result = {
        "verified": True, **{name: float(x) for name, x in found._asdict().items()},
        "exact": _in_fractions(found) if options["exact"] else None,
        "features": [names[j] for j in claim["support"]],
        "loss": claim["loss"], "n_nonzero_coefs": claim["budget"], "alpha": claim["price"],
        "ridge": claim["ridge"], "keep": [names[j] for j in claim["keep"]],
        "intercept": claim["intercept"],
    }  # fmt: skip
    return Answer(result, _lines(data, result, found))


def _in_fractions(found: Any) -> dict[str, str]:
    """Return the numbers of an exact answer, without rounding, in hexadecimal digits."""
    exact = {name: getattr(found, name) for name in ("lower_bound", "objective", "gap")}
    return {name: f"{x.numerator:#x}/{x.denominator:#x}" for name, x in exact.items()}


def _not_swapped(options: dict[str, Any]) -> Path:
    """Return the file with the proof; refuse one that was given as the data."""
    file, data = options["file"], options["data"]
    if is_proof(data) and not is_proof(file):
        raise click.UsageError(
            f"{data} is the proof and {file} is not: the proof comes first, as in "
            f"`blockl0 verify {data} {file}`."
        )
    return file


def _lines(data: Any, result: dict[str, Any], found: Any) -> list[str]:
    kept = f", {names_line(result['keep'])} among them" if result["keep"] else ""
    price = f", each at a price of {result['alpha']:g}" if result["alpha"] else ""
    ridge = f", ridge {result['ridge']:g}" if result["ridge"] else ""
    constant = ", with an intercept" if result["intercept"] else ""
    digits, how = (17, " in exact arithmetic") if result["exact"] else (10, "")
    # shares of fractions, which may differ by less than a float could tell
    at_zero = found.at_zero or 1
    below, allowed = (found.objective - found.lower_bound) / at_zero, found.allowance / at_zero
    reach = "nothing is rounded" if result["exact"] else f"allowances reach {allowed:.2g}"
    return [
        f"{data.table.source}: at most {result['n_nonzero_coefs']} of {data.X.shape[1]} "
        f"columns{kept}{price}; loss {result['loss']}{ridge}{constant}",
        f"  {names_line(result['features'])}",
        f"  objective   {result['objective']:.{digits}g}",
        f"  lower bound {result['lower_bound']:.{digits}g} (gap {result['gap']:.2g})",
        f"  which is {float(below):.2g} of the objective at zero below; {reach}",
        f"Verified{how}: no other choice has an objective below the lower bound.",
    ]


def write_proof(job: Job, fitted: Fitted, options: dict[str, Any]) -> None:
    """Search for a proof that a model is optimal, and write it to the file of `--proof`."""
    problem, seconds = fitted.prepared.problem, options["time_limit"]
    work = WORK if seconds is None else float("inf")
    try:
        title = "Writing the proof (seconds)"
        with job.timed("proof"), watched(job, title, ProofWatch, seconds or WORK):
            found = solve_problem(
                problem, "exact", init=fitted.model.coef_.T.reshape(problem.zero().shape),
                random_state=options["seed"], work_limit=work, proof=True,
            )  # fmt: skip
    except OutOfReachError as error:
        said = re.sub("`(ridge|proof)`", r"--\1", str(error))
        raise Refused(said.replace("give a --ridge", "give --ridge 1e-6 or more"), DATA) from error
    if found.proof is None:
        raise Refused("There is no proof: the one that was found does not hold.", FAILED)
    found.proof.save(options["proof"], force=options["force"])
    gap = "" if found.proof.gap < TELLING else f", with a gap of {found.proof.gap:.2g}"
    job.notice(f"The proof is in {options['proof']}{gap}; blockl0 verify checks it.")
