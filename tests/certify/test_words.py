"""What is proven is said in one place, by one measure of better, and out of reach is a class."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import blockl0
from blockl0 import OutOfReachError, Status, certify, solve
from blockl0.certify import certify_problem, move_search, stationarity, words
from blockl0.certify import levels as proof
from blockl0.certify.levels import Choice, ProofStatus, is_better, is_perfect, proof_of
from blockl0.problem.problem import as_problem
from linear_data import Linear

SOURCE = Path(blockl0.__file__).parent
KINDS = tuple(words.VERDICTS)
NAMES = [f"c{j}" for j in range(9)]


make = Linear(30, 9, {0: 1.0, 1: -1.0})


# -- out of reach ----------------------------------------------------------------------------------


def test_out_of_reach_is_public_and_a_value_error():
    assert issubclass(OutOfReachError, ValueError) and "OutOfReachError" in blockl0.__all__


def test_a_certificate_out_of_reach(monkeypatch):
    X, y = make()
    coef = solve(X, y, n_nonzero_coefs=3, random_state=0).coef
    monkeypatch.setattr(stationarity, "GLOBAL_COLUMNS", 0)
    monkeypatch.setattr(move_search, "WORK_LIMIT", 1)
    said = (
        r"`level`=4 is out of reach of a complete certificate with 9 columns: .* Give `n_samples`"
    )
    with pytest.raises(OutOfReachError, match=said):
        certify(X, y, coef, n_nonzero_coefs=3, level=4)
    with pytest.raises(OutOfReachError, match=said):
        certify_problem(as_problem(X, y, n_nonzero_coefs=3), coef, level=4)
    assert certify(X, y, coef, n_nonzero_coefs=3, level=4, n_samples=5).holds
    monkeypatch.setattr(stationarity, "NODE_LIMIT", 0)
    with pytest.raises(OutOfReachError, match=r"`level`=4 is too large: .* ask for a lower level"):
        certify(X, y, coef, n_nonzero_coefs=3, level=4, n_samples=5)


def test_an_exact_search_without_a_bound_says_so(caplog):
    X = np.random.default_rng(0).standard_normal((2, 1001))
    found = solve(X, np.ones(2), n_nonzero_coefs=1, method="exact")
    assert found.status is Status.NO_BOUND and found.note in caplog.text
    assert found.note.startswith("No bound exists, as X has more columns than rows")
    assert "a ridge of about" in found.note and "certify(level=2)" in found.note
    assert found.note in found.summary()
    # which is then a proof, with a budget of one
    assert certify(X, np.ones(2), found.coef, n_nonzero_coefs=1, level=2).holds
    assert solve(X, np.ones(2), n_nonzero_coefs=1, ridge=50.0, method="exact").note is None


def test_bad_input_is_not_out_of_reach():
    X, y = make()
    for level in ("basic", 2):
        with pytest.raises(ValueError, match="at most n_nonzero_coefs=1 nonzeros") as error:
            certify(X, y, np.ones(9), n_nonzero_coefs=1, level=level)
        assert not isinstance(error.value, OutOfReachError)


def test_no_branch_on_the_text_of_an_exception():
    name = r"(error|e|err|exc\w*)"
    branches = (
        rf" in str\({name}\)",
        rf"\b{name}\.args",
        rf"^\s*(el)?if\b.*\bstr\({name}\)",
        rf"str\({name}\).*\.(ends|starts)with\(",
    )
    pattern = re.compile("|".join(branches), re.MULTILINE)
    found = [path.name for path in SOURCE.rglob("*.py") if pattern.search(path.read_text("utf-8"))]
    assert not found


def test_the_report_swallows_nothing_but_out_of_reach(monkeypatch):
    from blockl0.app.report import proof as prover

    X, y = make(40, 6)
    problem = as_problem(X, y, n_nonzero_coefs=3)
    result = solve(X, y, n_nonzero_coefs=3, random_state=0)
    found = prover._Quadratic(problem, prover.objective_at_zero(problem))
    before, choice = ProofStatus("swaps", n_possible=9), Choice(3, 3, 6)

    def fail(error):
        def certify_problem(*given, **more):
            raise error("this fails.")

        return certify_problem

    monkeypatch.setattr(prover, "certify_problem", fail(OutOfReachError))
    assert found.try_pairs(before, result, choice, problem) is before
    monkeypatch.setattr(prover, "certify_problem", fail(ValueError))
    with pytest.raises(ValueError, match="this fails"):
        found.try_pairs(before, result, choice, problem)


# -- one tolerance ---------------------------------------------------------------------------------


def test_better_means_the_same_everywhere():
    """`is_better` agrees with what `certify` takes for an improvement, to either side of it."""
    X = np.eye(2)
    for share, is_enough in ((0.5, False), (2.0, True)):
        y = np.array([1.0, 1.0 + 0.5 * share * proof.TOL])
        here, there = 0.5 * y[1] ** 2, 0.5 * y[0] ** 2
        assert is_better(there, here, 0.5 * (y @ y)) == is_enough
        answer = certify(X, y, [1.0, 0.0], n_nonzero_coefs=1, level=2)
        assert answer.holds != is_enough


def test_perfect_fits_are_not_bettered_by_rounding():
    assert is_perfect(1e-20, 1.0) and not is_perfect(1e-9, 1.0)
    assert not is_better(0.0, 1e-20, 1.0) and is_better(0.0, 1e-9, 1.0)


# -- what is known ---------------------------------------------------------------------------------


def certificate(level):
    X, y = make()
    return certify(X, y, solve(X, y, n_nonzero_coefs=3).coef, n_nonzero_coefs=3, level=level)


def test_the_kind_of_a_proof():
    swap, single = certificate(2), certificate(1)
    some = Choice(3, 3, 9)
    assert proof_of(Status.OPTIMAL, swap, some).kind == "optimal"
    assert proof_of(Status.CONVERGED, swap, some).kind == "swaps"
    assert proof_of(Status.CONVERGED, single, some).kind == "single"
    assert proof_of(Status.TIME_LIMIT, None, some).kind == "none"
    # every other choice is one exchange away
    assert proof_of(Status.CONVERGED, swap, Choice(1, 1, 9)).kind == "optimal"
    assert proof_of(Status.CONVERGED, swap, Choice(8, 8, 9)).kind == "optimal"
    assert proof_of(Status.CONVERGED, swap, Choice(3, 3, 9, n_kept=2)).kind == "optimal"
    # nothing to choose
    assert proof_of(Status.CONVERGED, None, Choice(9, 9, 9)).kind == "all"
    assert proof_of(Status.CONVERGED, None, Choice(3, 3, 9, n_kept=3)).kind == "all"


def test_a_bound_adds_to_a_proof():
    swaps = ProofStatus("swaps")
    assert swaps.bounded(0.0).kind == "optimal"
    assert swaps.bounded(0.1) == ProofStatus("swaps", 0.1)
    assert swaps.bounded(0.9) == swaps == swaps.bounded(None)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_said_at_every_length(kind):
    known = ProofStatus(kind, None, 10, 18, 0.25, (0,), (4,))
    choice = Choice(3, 3, 9, n_kept=1)
    for text in (
        words.short(known, choice), words.sentence(known, choice),
        words.proven(known, choice, NAMES), words.left_open(known, choice),
    ):  # fmt: skip
        assert not text[0].islower() and text.endswith(".") and "  " not in text
    assert words.sentence(known, choice).startswith(words.VERDICTS[kind])
    assert known.is_optimal == (kind in ("all", "optimal"))


def test_sentences():
    some, kept = Choice(3, 3, 9), Choice(3, 3, 9, n_kept=1)
    assert (
        words.sentence(ProofStatus("optimal"), some)
        == "Proven: no other 3 columns fit these rows better."
    )
    assert words.sentence(ProofStatus("optimal"), kept).startswith(
        "Proven: with the column kept, no "
    )
    assert words.sentence(ProofStatus("swaps", 0.05), some) == (
        "Proven up to one exchange: exchanging one of the 3 columns for others cannot improve the "
        "fit. Nothing can improve it by more than 5\N{NO-BREAK SPACE}%. Better choices that differ "
        "in more columns may exist."
    )
    assert words.sentence(ProofStatus("none"), some).endswith("Better choices may exist.")
    assert (
        words.sentence(ProofStatus("all"), Choice(9, 9, 9))
        == "Nothing to choose: all 9 columns are in."
    )
    assert words.sentence(ProofStatus("all"), Choice(0, 0, 9)).startswith("No column is chosen")


def test_a_certificate_by_numbers_and_by_names():
    X, y = make()
    worse = np.zeros(9)
    worse[[0, 8]] = np.linalg.lstsq(X[:, [0, 8]], y, rcond=None)[0]
    found = certify(X, y, worse, n_nonzero_coefs=2, level=2)
    ends = f"from {found.objective:.8g} to {found.better_objective:.8g}."
    assert str(found).endswith(ends) and "changing columns 1, 8 lowers" in str(found)
    assert words.claim_of(found, NAMES) == f"Refuted: changing c1, c8 lowers the objective {ends}"
    better = certify(X, y, found.better_coef, n_nonzero_coefs=2, level=2)
    assert "none of the 36 ways to pick 2 of the 9 columns" in words.claim_of(better, NAMES)
    assert "quadratic upper bound" in words.claim_of(better, NAMES, 1, is_exact=False)
    drawn = certify(X, y, found.better_coef, n_nonzero_coefs=2, level=2, n_samples=20)
    share = f"95% confidence at least {drawn.confidence:.2%} of all"
    assert share in str(drawn) and share in words.claim_of(drawn, NAMES)
    assert "--samples" in words.unknown_claim(4, is_sampled=False)
    assert "--level" in words.unknown_claim(4, is_sampled=True)


def test_the_caution_about_inference_is_one_text():
    from blockl0 import L0Regressor
    from blockl0.app.report import make_report

    X, y = make()
    summary = " ".join(str(L0Regressor(2, random_state=0).fit(X, y).summary()).split())
    page = make_report(X, y, n_nonzero_coefs=1, cv=None).to_dict()["inference"]
    assert words.INFERENCE in summary and page[0].startswith(words.INFERENCE)
    texts = [
        path for path in SOURCE.rglob("*.py") if "too optimistic. For" in path.read_text("utf-8")
    ]
    assert [path.name for path in texts] == ["words.py"]


@pytest.mark.parametrize(
    ("gap", "said"),
    [(1e-6, "0.1"), (0.0012, "0.2"), (0.01, "1.0"), (0.034, "4"), (0.03, "3"), (1.0, "100")],
)
def test_a_gap_is_rounded_up_so_that_it_holds(gap, said):
    assert words.at_most(gap).split("\N{NO-BREAK SPACE}")[0] in (said, said.removesuffix(".0"))


def test_no_bound_is_not_blamed_on_a_missing_ridge():
    lacking = ProofStatus("swaps", has_bound=False)
    without, penalized = (
        words.sentence(lacking, Choice(3, 3, 20, has_ridge=has_ridge))
        for has_ridge in (False, True)
    )
    assert "without a ridge" in without and "classes" not in without
    assert "several classes" in penalized and "without a ridge" not in penalized
