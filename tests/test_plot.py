"""The displays draw what they say, into given axes or new ones."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import L0RegressorCV, l0_path, solve

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 14))
    y = X[:, :3] @ [3.0, 2.0, 1.0] + rng.standard_normal(60)
    return X, y, L0RegressorCV(12, random_state=0).fit(X, y)


def test_displays(fitted):
    import matplotlib.pyplot as plt

    from blockl0 import plot

    X, y, model = fitted
    path = plot.CoefficientPathDisplay.from_estimator(model)
    assert len(path.ax_.texts) == 10  # the ten largest are named
    curve = plot.SelectionCurveDisplay.from_estimator(model)
    assert curve.n_nonzero[curve.chosen] == model.n_nonzero_ and curve.errors is not None
    by_criterion = plot.SelectionCurveDisplay.from_path(model.path_, "ebic")
    assert by_criterion.ax_.get_ylabel() == "EBIC"
    chart = plot.SelectionMapDisplay.from_path(l0_path(X, y, n_nonzero_coefs=5, random_state=0))
    assert chart.chosen.sum() == 15 and chart.names[0] == "x0"
    _, ax = plt.subplots()
    result = solve(X, y, n_nonzero_coefs=3, random_state=0)
    assert plot.ConvergenceDisplay.from_result(result, ax=ax).ax_ is ax
    assert plot.ConvergenceDisplay.from_estimator(model).figure_ is not None
    assert plot.SelectionMapDisplay.from_estimator(model).marked == model.best_index_
    plt.close("all")


def test_the_chosen_point_is_inside_the_picture(fitted):
    import matplotlib.pyplot as plt

    from blockl0 import plot

    # nothing is chosen among noise, though all points but that one are near each other
    values = np.r_[-1.0, np.linspace(0.45, 0.5, 12)]
    curve = plot.SelectionCurveDisplay(np.arange(13), values, np.full(13, 2.0), 0, 12, "R²").plot()
    low, high = curve.ax_.get_ylim()
    assert low < -1.0 < 0.5 < high
    plt.close("all")


def test_estimators_without_a_path_are_named(fitted):
    from sklearn.exceptions import NotFittedError

    from blockl0 import L0Regressor, plot

    X, y, _ = fitted
    for display in (
        plot.CoefficientPathDisplay,
        plot.SelectionCurveDisplay,
        plot.SelectionMapDisplay,
    ):
        with pytest.raises(TypeError, match=r"L0Regressor has no path.*l0_path.*L0RegressorCV"):
            display.from_estimator(L0Regressor(2).fit(X, y))
        with pytest.raises(NotFittedError):
            display.from_estimator(L0RegressorCV(2))


def test_pictures_say_what_was_chosen_and_what_is_left_out(fitted):
    import matplotlib.pyplot as plt

    from blockl0 import plot

    X, y, _ = fitted
    model = L0RegressorCV(12, rule="one_se", random_state=0).fit(X, y)
    curve = plot.SelectionCurveDisplay.from_estimator(model)
    labels = [text.get_text() for text in curve.ax_.get_legend().get_texts()]
    assert f"chosen: {model.n_nonzero_} columns" in labels
    best = int(np.argmax(model.mean_scores_))
    assert best == model.best_index_ or f"best loss: {best} columns" in labels
    # the empty model is far below: named, not drawn
    assert any("0 columns at" in text.get_text() for text in curve.ax_.texts)
    assert curve.ax_.get_ylim()[0] > curve.values[0]
    chart = plot.SelectionMapDisplay.from_path(model)
    assert chart.marked == model.best_index_ and "chosen" in chart.ax_.get_xlabel()
    path = plot.CoefficientPathDisplay.from_estimator(model)
    named = {text.get_text() for text in path.ax_.texts}
    largest = np.argsort(-np.abs(model.path_[-1].coef))[:10]
    assert named == {f"x{j}" for j in largest}
    result = solve(X, y, n_nonzero_coefs=3, method="dec", random_state=0)
    legend = plot.ConvergenceDisplay.from_result(result).ax_.get_legend()
    assert f"{result.objective:.6g}" in legend.get_texts()[0].get_text()
    plt.close("all")


def test_names_are_no_formulas(fitted):
    """A column may be called $$, or have half a formula or a tab in its name."""
    import matplotlib.pyplot as plt
    import pandas as pd

    from blockl0 import plot

    X, y, _ = fitted
    names = ["$$", "$a$", r"$\frac{", "price in $", "a_$b^$", "two\tcells", *map(str, range(8))]
    model = L0RegressorCV(12, random_state=0).fit(pd.DataFrame(X, columns=names), y)
    path = plot.CoefficientPathDisplay.from_estimator(model)
    path.figure_.canvas.draw()
    assert {text.get_text() for text in path.ax_.texts} <= {*names, "two cells"}
    chart = plot.SelectionMapDisplay.from_estimator(model)
    chart.figure_.canvas.draw()
    shown = {text.get_text() for text in chart.ax_.get_yticklabels()}
    assert {"$$", "$a$", r"$\frac{"} <= shown <= {*names, "two cells"}
    assert "two\tcells" not in shown
    plt.close("all")


def test_curves_are_in_units_that_people_read(fitted):
    from blockl0 import L0ClassifierCV, plot

    X, y, model = fitted
    curve = plot.SelectionCurveDisplay.from_estimator(model)
    assert curve.label == "R² on held-out rows"
    r2 = 1.0 - model.mean_scores_ / model.cv_null_scores_.mean()
    np.testing.assert_allclose(curve.values, r2)
    labels = L0ClassifierCV(3, random_state=0).fit(X, y > 0)
    curve = plot.SelectionCurveDisplay.from_estimator(labels)
    assert "accuracy" in curve.label and curve.guess == max(np.mean(y > 0), np.mean(y <= 0))
    np.testing.assert_allclose(curve.values, labels.cv_accuracies_.mean(axis=0))
    scored = L0RegressorCV(3, scoring="r2", random_state=0).fit(X, y)
    assert plot.SelectionCurveDisplay.from_estimator(scored).label == "r2"


def test_coefficients_are_drawn_per_standard_deviation_where_units_differ(fitted):
    from blockl0 import plot

    X, y, same = fitted
    scale = np.where(np.arange(14) == 1, 1e3, 1.0)
    other = L0RegressorCV(4, random_state=0).fit(X * scale, y)
    drawn, plain, given = (
        plot.CoefficientPathDisplay.from_estimator(other, **how)
        for how in ({}, {"per": "unit"}, {"X": X * scale, "per": "sd"})
    )
    assert "standard deviation" in drawn.label and plain.label == "coefficient"
    np.testing.assert_allclose(drawn.coefs, given.coefs)
    used = np.flatnonzero(other.path_.coefs.toarray().any(axis=0))
    np.testing.assert_allclose(drawn.coefs, plain.coefs * (X * scale).std(axis=0)[used])
    assert plot.CoefficientPathDisplay.from_estimator(same).label == "coefficient"
    path = l0_path(X, y, n_nonzero_coefs=3, random_state=0)
    with pytest.raises(ValueError, match=r"`per='sd'` needs the data"):
        plot.CoefficientPathDisplay.from_path(path, per="sd")


def test_one_point_is_solved_at_once(fitted):
    from blockl0 import plot

    X, y, _ = fitted
    result = solve(X, y, n_nonzero_coefs=14, random_state=0)
    assert len(result.history.seconds) == 1
    shown = plot.ConvergenceDisplay.from_result(result)
    assert "solved at once" in shown.ax_.texts[0].get_text()
