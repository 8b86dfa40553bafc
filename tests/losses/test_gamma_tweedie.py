"""Gamma and Tweedie: against deviances, other programs' fits, enumeration, and a numerical sup."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import GammaRegressor, PoissonRegressor, TweedieRegressor
from sklearn.metrics import d2_tweedie_score, mean_tweedie_deviance

from blockl0 import L0Regressor, L0RegressorCV, l0_path, solve
from blockl0.app.model_file import load_model, save_model
from blockl0.losses import LOSSES, Gamma, Poisson, Tweedie, best_intercept, get_loss

POWERS = (1.0, 1.001, 1.2, 1.5, 1.9, 1.999, 2.0)


def draw(power, seed=0, m=90, n=7):
    """Amounts with mean exp(eta), of which some are zero below power 2."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    mean = np.exp(0.5 + X[:, [1, 4]] @ [0.8, -0.6])
    if power == 2.0:
        return X, rng.gamma(4.0, mean / 4.0)
    if power == 1.0:
        return X, rng.poisson(mean).astype(float)
    counts = rng.poisson(1.5, m)
    return X, np.where(counts > 0, rng.gamma(2.0 * np.maximum(counts, 1), mean / 3.0), 0.0)


@pytest.fixture(params=POWERS)
def loss(request):
    return Tweedie(power=request.param)


def points(power, rng, size=60):
    eta, y = 3.0 * rng.standard_normal(size), np.exp(2.0 * rng.standard_normal(size))
    if power < 2.0:
        y[::5], y[1::9] = 0.0, 1e-200
    return eta, y


def test_the_loss_is_half_the_deviance(loss, rng):
    eta, y = points(loss.power, rng)
    for e, amount in zip(eta, y, strict=True):
        if amount in (0.0,) or amount > 1e-100:
            deviance = mean_tweedie_deviance([amount], [np.exp(e)], power=loss.power)
            value = loss.value(np.array([e]), np.array([amount]))[0]
            # the deviance of scikit-learn loses digits to cancellation, the more the nearer 1 or 2
            assert 2.0 * value == pytest.approx(deviance, rel=1e-9, abs=1e-10)


def test_derivatives_where_numbers_nearly_cancel(loss):
    y = np.exp(np.linspace(-3.0, 3.0, 7))
    for distance in (1e-9, 1e-5, 0.999, 1.001):
        eta = np.log(y) + distance
        a, b = loss.power - 1.0, 2.0 - loss.power
        u = (eta - np.log(y)).astype(np.longdouble)
        exact = y**b * (np.expm1(b * u) - np.expm1(-a * u))
        np.testing.assert_allclose(loss.gradient(eta, y), exact.astype(float), rtol=1e-13)
        # to second order the value is half the curvature times the distance squared
        if distance < 1e-3:
            expected = 0.5 * loss.curvature(eta, y) * (u.astype(float)) ** 2
            np.testing.assert_allclose(loss.value(eta, y), expected, rtol=2e-5)


def test_ends_of_the_powers_are_poisson_and_gamma(rng):
    eta, y = points(1.0, rng)
    for other, given in ((Poisson(), y), (Gamma(), y + 0.1)):
        same = Tweedie(1.0 if other.name == "poisson" else 2.0)
        for name in ("value", "gradient", "curvature"):
            np.testing.assert_allclose(
                getattr(same, name)(eta, given), getattr(other, name)(eta, given), rtol=1e-12
            )
        u = same.gradient(eta, given)
        np.testing.assert_allclose(
            same.conjugate(u, given), other.conjugate(u, given), rtol=1e-9, atol=1e-10
        )


def test_the_conjugate_is_the_largest_difference(loss, rng):
    eta, y = points(loss.power, rng)
    y = np.where(y == 1e-200, 0.3, y)
    slopes = loss.gradient(eta, y) + rng.standard_normal(eta.size)
    found = loss.conjugate(slopes, y)
    # predictors that far away belong to slopes like these where an exponent is small
    reach = 20.0 / min(rate for rate in (loss.power - 1.0, 2.0 - loss.power) if rate > 0.0)
    for u, amount, value in zip(slopes, y, found, strict=True):
        if not np.isfinite(value):
            continue

        def gap(e, u=u, amount=amount):
            return -(u * e - loss.value(np.array([e]), np.array([amount]))[0])

        best = -minimize_scalar(gap, bounds=(-reach, reach), options={"xatol": 1e-9}).fun
        assert value == pytest.approx(best, rel=1e-6, abs=1e-6)
        assert value >= best - 1e-9 * (1.0 + abs(best))


def test_the_conjugate_is_infinite_exactly_where_there_is_no_largest(rng):
    y, u = np.array([0.0, 0.0, 2.0, 2.0]), np.array([-1e-3, 0.0, -1e3, 1e3])
    assert np.isfinite(Tweedie(1.5).conjugate(u, y)).tolist() == [False, True, True, True]
    assert Tweedie(1.5).conjugate(u, y)[1] == 0.0  # the limit of eta to minus infinity
    slopes = np.array([1.0 + 1e-9, 1.0, -5.0])
    assert np.isfinite(Gamma().conjugate(slopes, np.ones(3))).tolist() == [False, True, True]
    # a matrix of slopes and a column of targets, as the bounds by duality ask
    U, column = rng.standard_normal((4, 3)), y[:, None]
    whole = Tweedie(1.5).conjugate(U, column)
    for j in range(3):
        np.testing.assert_allclose(whole[:, j], Tweedie(1.5).conjugate(U[:, j], y))


def test_predictors_of_any_size_are_finite(loss):
    eta = np.array([-1e100, -1e4, -700.0, 700.0, 1e4, 1e100])
    for y in (1e-120, 1.0, 1e120):
        for name in ("value", "gradient", "curvature"):
            assert np.isfinite(getattr(loss, name)(eta, np.full(6, y))).all()
        assert (np.diff(loss.gradient(eta, np.full(6, y))) >= 0.0).all()
    assert np.isfinite(loss.mean(eta)).all() and (loss.mean(eta) > 0.0).all()


@pytest.mark.parametrize("power", [0.0, 0.99, 2.01, 3.0, -1.0])
def test_other_powers_are_refused_with_the_reason(power):
    with pytest.raises(ValueError, match=r"`power` must be between 1 .*got .*; .* not convex"):
        Tweedie(power=power)


def test_targets_are_checked():
    with pytest.raises(ValueError, match=r"'gamma' needs positive `y`, got 0 in position 1.*tweed"):
        Gamma().check_target(np.array([1.0, 0.0]))
    with pytest.raises(ValueError, match=r"'tweedie' needs nonnegative `y`, got -1 in position 1"):
        Tweedie().check_target(np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"'tweedie' needs a positive value in `y`, got only zero"):
        Tweedie().check_target(np.zeros(3))


def test_a_parameter_is_given_behind_a_colon():
    assert get_loss("tweedie:1.7") == Tweedie(power=1.7)
    assert get_loss("huber:0.5").delta == 0.5
    with pytest.raises(ValueError, match=r"`power` must be between 1"):
        get_loss("tweedie:3")
    with pytest.raises(ValueError, match=r"`power` of loss='tweedie' must be a number, got 'x'"):
        get_loss("tweedie:x")
    with pytest.raises(ValueError, match=r"loss='gamma' has no parameter, got 'gamma:2'"):
        get_loss("gamma:2")
    with pytest.raises(ValueError, match=r"`loss` must be one of .*got 'tweedy'"):
        get_loss("tweedy:1.5")


def theirs(power, ridge, m):
    """scikit-learn's model of the same objective, which it divides by the number of samples."""
    options = {"alpha": ridge / m, "solver": "newton-cholesky", "tol": 1e-9}
    if power == 1.0:
        return PoissonRegressor(**options)
    return GammaRegressor(**options) if power == 2.0 else TweedieRegressor(power=power, **options)


@pytest.mark.parametrize("ridge", [0.0, 2.0])
@pytest.mark.parametrize("power", [1.0, 1.2, 1.5, 1.9, 2.0])
def test_coefficients_on_the_support_are_those_of_scikit_learn(power, ridge):
    X, y = draw(power)
    name = {1.0: "poisson", 2.0: "gamma"}.get(power, f"tweedie:{power}")
    model = L0Regressor(2, loss=name, ridge=ridge, random_state=0).fit(X, y)
    S = model.support_
    assert S.tolist() == [1, 4]
    plain = theirs(power, ridge, len(y)).fit(X[:, S], y)
    np.testing.assert_allclose(model.coef_[S], plain.coef_, atol=1e-7)
    assert model.intercept_ == pytest.approx(plain.intercept_, abs=1e-7)
    assert model.score(X, y) == pytest.approx(plain.score(X[:, S], y), rel=1e-6)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X), rtol=1e-12)
    # what they minimize is not lower there than here
    deviance = mean_tweedie_deviance(y, plain.predict(X[:, S]), power=power)
    theirs_value = 0.5 * len(y) * deviance + 0.5 * ridge * plain.coef_ @ plain.coef_
    assert model.objective_ <= theirs_value * (1.0 + 1e-12)
    assert model.objective_ == pytest.approx(theirs_value, rel=1e-8)


@pytest.mark.parametrize("power", [1.5, 2.0])
def test_coefficients_are_those_of_statsmodels(power):
    sm = pytest.importorskip("statsmodels.api")
    X, y = draw(power)
    model = L0Regressor(2, loss=Tweedie(power), random_state=0).fit(X, y)
    log = sm.families.links.Log()
    family = sm.families.Gamma(log) if power == 2.0 else sm.families.Tweedie(log, var_power=power)
    found = sm.GLM(y, sm.add_constant(X[:, model.support_]), family).fit(tol=1e-13, maxiter=200)
    mine = [model.intercept_, *model.coef_[model.support_]]
    np.testing.assert_allclose(mine, found.params, atol=1e-7)
    assert 2.0 * model.objective_ == pytest.approx(found.deviance, rel=1e-10)


@pytest.mark.parametrize("power", [1.3, 2.0])
def test_the_chosen_columns_are_the_best_of_all(power):
    X, y = draw(power, m=40, n=6)
    model = L0Regressor(2, loss=Tweedie(power), ridge=0.1, effort="fast", random_state=0).fit(X, y)
    values = {}
    for S in combinations(range(6), 2):
        plain = theirs(power, 0.1, len(y)).fit(X[:, S], y)
        deviance = mean_tweedie_deviance(y, plain.predict(X[:, S]), power=power)
        values[S] = 0.5 * len(y) * deviance + 0.05 * plain.coef_ @ plain.coef_
    assert tuple(model.support_) == min(values, key=values.__getitem__)
    assert model.objective_ == pytest.approx(min(values.values()), rel=1e-8)
    assert model.certificate_ is not None and model.certificate_.level == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gamma", "tweedie", "tweedie:1.2"])
def test_every_door_knows_them(name, tmp_path):
    power = get_loss(name).power
    X, y = draw(power)
    ones = np.column_stack([X, np.ones(len(y))])
    problem = {"loss": name, "keep": [7], "random_state": 0}
    assert solve(ones, y, n_nonzero_coefs=3, **problem).support.tolist() == [1, 4, 7]
    path = l0_path(ones, y, n_nonzero_coefs=5, **problem)
    assert {1, 4, 7} <= set(path.best("ebic").support.tolist())
    # the scale is a free parameter: that of y does not matter to the choice
    other = l0_path(ones, 1e-3 * y, n_nonzero_coefs=5, **problem)
    np.testing.assert_allclose(
        np.diff(other.criterion("bic")), np.diff(path.criterion("bic")), rtol=1e-5, atol=1e-4
    )
    chosen = L0RegressorCV(3, loss=name, random_state=0).fit(X, y)
    assert 1 in chosen.support_
    assert chosen.score(X, y) == pytest.approx(d2_tweedie_score(y, chosen.predict(X), power=power))
    loaded = load_model(save_model(chosen, tmp_path / "m.json"))
    np.testing.assert_allclose(loaded.predict(X), chosen.predict(X), rtol=1e-12)
    assert loaded.loss == name and loaded.loss_object.power == power


def test_the_score_of_weighted_and_of_constant_targets():
    X, y = draw(1.5)
    model = L0Regressor(2, loss="tweedie", effort="fast", random_state=0).fit(X, y)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    expected = d2_tweedie_score(y, model.predict(X), sample_weight=weights, power=1.5)
    assert model.score(X, y, weights) == pytest.approx(expected, rel=1e-9)
    assert model.score(X[:3], np.full(3, 2.0)) == 0.0  # as R², which is then no share
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, y[1:])
    with pytest.raises(ValueError, match="needs nonnegative `y`"):
        model.score(X, -y - 1.0)


def test_rates_that_vanish_are_told_of():
    from sklearn.exceptions import ConvergenceWarning

    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    X[:, 1] = X[:, 0] > 0.0
    y = np.where(X[:, 0] > 0.0, 0.0, rng.gamma(2.0, 1.0, 60))
    with pytest.warns(ConvergenceWarning, match="separate the data"):
        L0Regressor(1, loss="tweedie", keep=[1]).fit(X, y)
    L0Regressor(1, loss="tweedie", keep=[1], ridge=1e-3).fit(X, y)
    # positive amounts have a finite fit, however small some of them are
    L0Regressor(1, loss="gamma", keep=[1]).fit(X, y + 1e-12)


def test_the_registry_has_one_of_each():
    assert LOSSES["gamma"] == Gamma() and LOSSES["tweedie"] == Tweedie(1.5)
    assert repr(Gamma()) == "Gamma()" and repr(Tweedie(1.7)) == "Tweedie(power=1.7)"


def test_an_intercept_far_along_an_exponential_is_found():
    """Newton's steps have length one there: they alone would need thousands."""
    loss = Tweedie(1.999999)
    eta = np.array([-88750.56414438, 3616.57427386, 3613.62412707, 81520.36574345])
    y = np.array([0.0, 5.18848237, 0.20847456, 7.74855061])
    b = best_intercept(loss, eta, y)
    at = [loss.value(eta + c, y).sum() for c in (b - 1e-3, b, b + 1e-3)]
    assert at[1] <= min(at[0], at[2]) and at[1] < 1e6


def test_more_columns_are_never_worse_close_to_power_two():
    X = np.array([[-2.49, 0.49], [-1.64, -0.96], [0.76, -0.91], [0.71, -2.16]])
    y = np.array([0.0, 5.18848237, 0.20847456, 7.74855061])
    for scale in (1.0, 1e8):
        Z = X * [scale, 1.0]
        models = [
            L0Regressor(k, loss="tweedie:1.999999", random_state=0, effort="fast").fit(Z, y)
            for k in range(3)
        ]
        objectives = [model.objective_ for model in models]
        assert objectives == sorted(objectives, reverse=True)
