"""The table of kinds: every problem has a row, and every row has its classes."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import certify, solve
from blockl0.problem import as_problem
from blockl0.problem.fits import BoundedFits, BoundedNewtonFits, Fits, NewtonFits, make_fits
from blockl0.problem.kinds import KINDS, LEAST_SQUARES

X = np.random.default_rng(0).standard_normal((12, 4))
TARGETS = {
    "squares": ("squared", X[:, 0] + X[:, 1] ** 2),
    "curved": ("logistic", np.sign(X[:, 2] + 0.3)),
    "classes": ("softmax", np.arange(12) % 3),
}
SELECTIONS: dict[str, dict] = {
    "columns": {},
    "units": {"feature_groups": [0, 0, 1, 2]},
    "bounds": {"bounds": (-0.5, 0.5)},
}


@pytest.mark.parametrize("smooth, selection", KINDS)
def test_every_kind_has_fits_that_minimize_and_a_certificate(smooth, selection):
    loss, y = TARGETS[smooth]
    given = {"loss": loss, "ridge": 0.1, **SELECTIONS[selection]}
    problem = as_problem(X, y, n_nonzero_coefs=2, **given)
    assert problem.kind is KINDS[smooth, selection]
    for what in ("fits", "model", "moves"):
        assert isinstance(problem.kind.load(what), type)
    w = make_fits(problem).on(np.array([0, 1])).w
    here, rng = problem.smooth(w), np.random.default_rng(1)
    for _ in range(20):
        there = w.copy()
        there[:2] += 1e-3 * rng.standard_normal(w[:2].shape)
        if problem.is_within(there):
            assert here <= problem.smooth(there)
    best = solve(X, y, n_nonzero_coefs=2, random_state=0, **given)
    found = certify(X, y, best.coef, n_nonzero_coefs=2, level=1, **given)
    assert found.better_coef is None


def test_costs_and_responses_are_units():
    one = as_problem(X, X[:, 0], alpha=1.0, costs=[1.0, 2.0, 1.0, 1.0])
    two = as_problem(X, X[:, :2], alpha=1.0)
    assert one.kind is two.kind is KINDS["squares", "units"]
    assert as_problem(X, X[:, 0], alpha=1.0).kind is LEAST_SQUARES


def test_fits_go_by_loss_and_bounds():
    fits = {key: kind.load("fits") for key, kind in KINDS.items()}
    assert fits["squares", "columns"] is fits["squares", "units"] is Fits
    assert fits["squares", "bounds"] is BoundedFits
    assert fits["curved", "bounds"] is BoundedNewtonFits
    assert {fits[key] for key in fits if key[0] != "squares"} == {NewtonFits, BoundedNewtonFits}
