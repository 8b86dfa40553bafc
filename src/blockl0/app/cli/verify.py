"""`blockl0 verify`: check a proof of others; and the proof that `fit --proof` writes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from blockl0.app.cli import options as shared
from blockl0.app.cli.output import DATA, FAILED, Job, Refused, names_line
from blockl0.blas import one_blas_thread
from blockl0.files import check_exists

WORK = 60.0
"""Units of 1e9 multiplications for the search of a proof, where no --time-limit is given."""

TELLING = 1e-6
"""Gap of a proof above which it is mentioned."""


@click.command("verify", short_help="Check a proof of the optimum.")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--exact",
    is_flag=True,
    help="Compute in integers and fractions, without any rounding: slower, for the squared loss.",
)
@shared.data_options
@shared.test_option
@shared.seed_option
@shared.output_options
def command(**options: Any) -> None:
    """Check a proof FILE of `fit --proof`, or of Python's `proof=`, on the DATA that it is about.

    Nothing of the search that found it is used: all bounds are worked out anew from the data. They
    must be read as they were for the fit, so that --test and the like are needed here, too. The
    exit code is 1 when the proof is refused: it is damaged, is about other data, or proves less
    than it claims. Roundings are allowed for, and it is said how far that reaches; with --exact
    there are none.
    """
    with Job("verify", options) as job:
        check_exists(options["file"])
        from blockl0.app.cli.data import load
        from blockl0.verify import ProofError, verify
        from blockl0.verify.files import read_proof

        try:
            claim, _ = read_proof(_not_swapped(options))
            # proofs are about single columns
            data = load(job, {**options, "loss": claim["loss"], "levels": "separate"})
            with job.timed("verify"), one_blas_thread():
                given = _as_given(job, data, options)
                found = verify(options["file"], *given, exact=options["exact"])
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
        job.answer(result, _lines(data, result, found))


def _in_fractions(found: Any) -> dict[str, str]:
    """Return the numbers of an exact answer, without rounding, in hexadecimal digits."""
    exact = {name: getattr(found, name) for name in ("lower_bound", "objective", "gap")}
    return {name: f"{x.numerator:#x}/{x.denominator:#x}" for name, x in exact.items()}


def _not_swapped(options: dict[str, Any]) -> Path:
    """Return the file with the proof; refuse one that was given as the data."""
    from blockl0.verify.files import is_proof

    file, data = options["file"], options["data"]
    if is_proof(data) and not is_proof(file):
        raise click.UsageError(
            f"{data} is the proof and {file} is not: the proof comes first, as in "
            f"`blockl0 verify {data} {file}`."
        )
    return file


def _as_given(job: Job, data: Any, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return X and the target, encoded for the loss."""
    from blockl0.app.cli.data import make_estimator

    read = make_estimator(data, options)._read(data.X, data.y)
    return read.X, read.target


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


def write_proof(job: Job, data: Any, model: Any, options: dict[str, Any]) -> None:
    """Search for a proof that a model is optimal, and write it to the file of `--proof`."""
    from blockl0.app.cli.data import bind, make_estimator
    from blockl0.app.cli.fit import budget_of
    from blockl0.app.cli.progress import ProofWatch, progress
    from blockl0.errors import OutOfReachError
    from blockl0.run import watching
    from blockl0.solve import solve_problem

    options = {**options, "ridge": model.ridge_}
    given = make_estimator(data, options, n_nonzero_coefs=budget_of(model))
    problem, seconds = bind(given, data).problem, options["time_limit"]
    work = WORK if seconds is None else float("inf")
    try:
        with (
            job.timed("proof"),
            progress("Writing the proof (seconds)", job.quiet) as shown,
            watching(ProofWatch(shown, seconds or WORK)),
        ):
            found = solve_problem(
                problem, "exact", init=model.coef_.T.reshape(problem.zero().shape),
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
