from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import blockl0
from blockl0.losses import LOSSES, Huber, Squared, get_loss, names_of
from grid import ONE_OUTPUT
from targets import amounts, is_positive

STEP = 1e-5
KINKS = {  # distance of (eta, y) to the nearest kink of the gradient
    "huber": lambda eta, y: np.abs(np.abs(y - eta) - 1.35),
    "squared_hinge": lambda eta, y: np.abs(1 - y * eta),
}


@pytest.fixture(params=ONE_OUTPUT)
def loss(request):
    return LOSSES[request.param]


@pytest.fixture
def points(loss, rng):
    eta = np.concatenate([3 * rng.standard_normal(400), [0.0, 10.0, -10.0]])
    y = np.where(rng.random(eta.size) < 0.5, -1.0, 1.0)
    if not loss.takes_labels:
        y = y + rng.standard_normal(eta.size)
    if is_positive(loss):
        y = amounts(loss, rng.poisson(2.0, eta.size))
    return eta, loss.check_target(y)


def away_from_kinks(loss, eta, y):
    distance = KINKS.get(loss.name, lambda eta, y: np.full_like(eta, np.inf))
    return distance(eta, y) > 10 * STEP


def test_registry_names():
    assert {"squared", "logistic", "huber", "squared_hinge", "poisson"} <= set(LOSSES)
    assert {"gamma", "tweedie"} <= set(LOSSES)
    assert all(name == loss.name for name, loss in LOSSES.items())


def test_gradient_is_the_finite_difference_of_value(loss, points):
    eta, y = points
    slope = (loss.value(eta + STEP, y) - loss.value(eta - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.gradient(eta, y), slope, atol=2e-5, rtol=1e-6)


def test_curvature_is_the_finite_difference_of_gradient(loss, points):
    eta, y = points
    smooth = away_from_kinks(loss, eta, y)
    assert smooth.sum() > 300
    bend = (loss.gradient(eta + STEP, y) - loss.gradient(eta - STEP, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.curvature(eta, y)[smooth], bend[smooth], atol=1e-6)


def test_convexity_inequality_and_majorizer(loss, points, rng):
    eta, y = points
    other = eta + 2 * rng.standard_normal(eta.size)
    model = loss.value(eta, y) + loss.gradient(eta, y) * (other - eta)
    slack = 1e-12 * (1 + np.abs(model))
    assert (loss.value(other, y) >= model - slack).all()
    upper = model + 0.5 * loss.curvature_bound * (other - eta) ** 2
    assert (loss.value(other, y) <= upper + slack).all()


def test_curvature_between_zero_and_bound(loss, points):
    curvature = loss.curvature(*points)
    assert (curvature >= 0).all()
    # also of p(1 − p): with p <= ½ it rounds to ¼ at most
    assert (curvature <= loss.curvature_bound).all()


def test_extreme_predictors_do_not_overflow(loss):
    eta, y = np.array([-1e100, -1e4, 1e4, 1e100]), np.ones(4)
    for values in (loss.value(eta, y), loss.gradient(eta, y), loss.curvature(eta, y)):
        assert values.dtype == np.float64
        assert np.isfinite(values).all()


def test_inputs_are_not_changed(loss, points):
    eta, y = points
    copies = eta.copy(), y.copy()
    loss.value(eta, y), loss.gradient(eta, y), loss.curvature(eta, y)
    assert (eta == copies[0]).all()
    assert (y == copies[1]).all()


@pytest.mark.parametrize("name", names_of(takes_labels=True))
def test_classification_targets(name):
    loss = LOSSES[name]
    assert loss.check_target(np.array([0.0, 1, 1])).tolist() == [-1, 1, 1]
    assert loss.check_target(np.array([-1.0, 1, 1])).tolist() == [-1, 1, 1]
    assert loss.check_target(np.ones(2)).tolist() == [1, 1]
    assert loss.check_target(np.zeros(2)).tolist() == [-1, -1]
    with pytest.raises(ValueError, match=rf"loss='{name}' needs `y` in \{{-1, 1\}}.*got 0, 1, 2\."):
        loss.check_target(np.array([0.0, 1, 2]))


def test_get_loss():
    assert get_loss("squared") is LOSSES["squared"]
    assert get_loss(Huber(delta=0.5)).delta == 0.5
    with pytest.raises(TypeError, match=r"`loss` must be one of 'gamma', .*got <class"):
        get_loss(Squared)
    with pytest.raises(ValueError, match=r"`delta` must be positive, got 0\."):
        Huber(delta=0.0)


def test_huber_tends_to_half_squares(rng):
    eta, y = rng.standard_normal((2, 20))
    np.testing.assert_allclose(Huber(delta=1e6).value(eta, y), Squared().value(eta, y))


def test_poisson_is_half_the_deviance_and_its_target_is_checked(rng):
    from sklearn.metrics import mean_poisson_deviance

    loss = LOSSES["poisson"]
    eta, y = rng.standard_normal(30), rng.poisson(1.0, 30).astype(float)
    deviance = mean_poisson_deviance(y, np.exp(eta))
    assert 2 * loss.value(eta, y).mean() == pytest.approx(deviance)
    with pytest.raises(ValueError, match=r"needs nonnegative `y`, got -2 in position 1"):
        loss.check_target(np.array([1.0, -2.0]))
    with pytest.raises(ValueError, match=r"needs a positive value in `y`, got only zeros"):
        loss.check_target(np.zeros(2))


def test_no_other_file_compares_the_names_of_losses():
    package = Path(blockl0.__file__).parent
    name = rf'["\'](?:{"|".join(LOSSES)})["\']'
    compared = re.compile(rf"[!=]= *{name}|{name} *[!=]=|(?:not )?in [(\[{{]{name}")
    found = [
        f"{path.name}: {line}"
        for path in package.rglob("*.py")
        if path.parent.name != "losses"
        for line in path.read_text(encoding="utf-8").splitlines()
        if compared.search(line)
    ]
    assert not found


def test_facts_fit_together(loss):
    eta = np.linspace(-3.0, 3.0, 7)
    assert loss.mean(eta).shape == eta.shape and (np.diff(loss.mean(eta)) > 0.0).all()
    assert (
        loss.has_probabilities <= loss.takes_labels and loss.takes_many_classes <= loss.takes_labels
    )
    assert loss.is_quadratic <= loss.shifts_with_target
    if loss.has_probabilities:
        np.testing.assert_allclose(loss.probabilities(eta).sum(axis=1), 1.0)
        np.testing.assert_allclose(loss.probabilities(eta)[:, 1], loss.mean(eta))
    if loss.shifts_with_target:
        y = eta[::-1]
        np.testing.assert_allclose(loss.value(eta + 5.0, y + 5.0), loss.value(eta, y), atol=1e-12)
    assert not loss.diverges(eta, np.ones(7))
    assert loss.diverges(eta - 1e3, np.ones(7)) == loss.needs_ridge
    assert loss.words.effect.count("{}") == 1 and loss.words.objective
    assert hasattr(loss.as_sklearn(), "fit")
    assert loss.can_train(np.ones(2))
