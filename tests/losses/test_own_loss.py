"""A loss of the user's own goes through every door, and into a model file and back."""

from __future__ import annotations

import json
import pickle
import sys
import types

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from blockl0 import (
    BestSubsetSelector,
    L0Classifier,
    L0ClassifierCV,
    L0Regressor,
    L0RegressorCV,
    certify,
    l0_path,
    solve,
)
from blockl0.app.model_file import ModelFileError, load_model, save_model
from blockl0.app.report import make_report
from blockl0.losses import LOSSES, Huber, Logistic, Softmax, Squared, Tweedie, get_loss, label_of
from blockl0.losses.stored import parameters_of
from model_fuzz import signed
from own_losses import NOT_A_CLASS, Duck, Forgetful, LogCosh, Probit, Ruined

FAST = {"effort": "fast", "random_state": 0}
NUMBERS = [LogCosh(0.5), Duck()]


def draw(m=60, n=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n)) + 1.0
    return X, X[:, [1, 4]] @ [2.0, -1.5] + 3.0 + 0.3 * rng.standard_normal(m)


def labels(X, y):
    noise = np.random.default_rng(1).standard_normal(len(y))
    return np.where(y - y.mean() + noise > 0.0, "yes", "no")


def minimum(loss, X, y, ridge):
    """(coefficients, intercept) by a general minimizer."""
    A = np.column_stack([np.ones(len(y)), X])

    def value(v):
        eta = A @ v
        slope = A.T @ loss.gradient(eta, y) + ridge * np.r_[0.0, v[1:]]
        return loss.value(eta, y).sum() + 0.5 * ridge * v[1:] @ v[1:], slope

    v = minimize(value, np.zeros(A.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-10}).x
    return v[1:], v[0]


@pytest.mark.parametrize("loss", NUMBERS, ids=lambda loss: loss.name)
def test_estimators_of_numbers(loss):
    X, y = draw()
    model = L0Regressor(2, loss=loss, **FAST)
    assert model.get_params()["loss"] is loss
    model.fit(X, y)
    assert model.support_.tolist() == [1, 4] and model.loss is loss
    coef, intercept = minimum(loss, X[:, [1, 4]], y, 0.0)
    np.testing.assert_allclose(model.coef_[[1, 4]], coef, atol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, abs=1e-6)
    eta = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), eta)
    assert model.objective_ == pytest.approx(loss.value(eta, y).sum(), rel=1e-9)
    assert model.score(X, y) == pytest.approx(1.0 - np.var(y - eta) / np.var(y), abs=1e-3)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_, model.coef_)  # one seed, the same steps
    # pickled bits are the same bits
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    assert copied.loss.name == loss.name
    table = model.summary(X, y)
    assert np.all(table.columns["drop_one"] > 0.0)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))
    assert BestSubsetSelector(2, loss=loss, **FAST).fit_transform(X, y).shape == (60, 2)


def test_it_can_be_set_and_searched():
    X, y = draw()
    model = L0Regressor(2, **FAST).set_params(loss=LogCosh(2.0))
    assert model.fit(X, y).loss == LogCosh(2.0)
    grid = GridSearchCV(model, {"loss": ["squared", "huber:0.5", LogCosh(0.5)]}, cv=2).fit(X, y)
    assert set(grid.best_estimator_.support_) == {1, 4}
    assert np.isfinite(cross_val_score(model, X, y, cv=2)).all()


@pytest.mark.parametrize("rule", ["min", "bic"])
@pytest.mark.parametrize("loss", NUMBERS, ids=lambda loss: loss.name)
def test_the_number_of_columns_is_chosen(loss, rule):
    X, y = draw()
    model = L0RegressorCV(3, loss=loss, rule=rule, cv=3, random_state=0).fit(X, y)
    assert {1, 4} <= set(model.support_)
    path, n = model.path_, len(y)
    predictors = [X @ r.coef + path.intercepts[i] for i, r in enumerate(path)]
    values = np.array([loss.value(eta, y).sum() for eta in predictors])
    np.testing.assert_allclose(path.losses, values, rtol=1e-9)
    deviance = n * np.log(2.0 * values / n) if isinstance(loss, LogCosh) else 2.0 * values
    np.testing.assert_allclose(path.criterion("bic"), deviance + np.log(n) * path.n_nonzero)


def test_functions_take_it():
    X, y = draw()
    for loss in NUMBERS:
        result = solve(X, y, n_nonzero_coefs=3, loss=loss, random_state=0)
        coef = result.coef[result.support]
        A = X[:, result.support]
        slope = A.T @ loss.gradient(A @ coef, y)
        assert (
            np.abs(slope).max() <= 1e-6 * (np.abs(A).T @ np.abs(loss.gradient(A @ coef, y))).max()
        )
        assert certify(X, y, result.coef, level=2, n_nonzero_coefs=3, loss=loss).holds
        path = l0_path(X, y, n_nonzero_coefs=3, loss=loss, random_state=0)
        assert path.at(3).objective <= result.objective * (1.0 + 1e-9)
        assert path.loss == loss.name


def test_labels_with_a_link_of_their_own(tmp_path):
    X, y = draw(m=120)
    y = labels(X, y)
    model = L0Classifier(2, loss=Probit(), ridge=1e-3, **FAST).fit(X, y)
    assert set(model.support_) == {1, 4} and model.classes_.tolist() == ["no", "yes"]
    signs = np.where(y == "yes", 1.0, -1.0)
    coef, _ = minimum(Probit(), X[:, model.support_], signs, model.ridge)
    np.testing.assert_allclose(model.coef_[0, model.support_], coef, atol=1e-5)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares[:, 1], Probit().mean(model.decision_function(X)))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert model.score(X, y) == np.mean(model.predict(X) == y)  # shares of the same rows
    chosen = L0ClassifierCV(3, loss=Probit(), cv=2, random_state=0).fit(X, y)
    assert {1, 4} & set(chosen.support_)
    assert BestSubsetSelector(2, loss=Probit(), **FAST).fit(X, y).ridge_ == "standardized:1.0"
    with pytest.raises(ValueError, match="no counterpart in scikit-learn"):
        model.to_sklearn()
    with pytest.raises(ValueError, match=r"Only binary .* by loss='probit', got 3 classes"):
        L0Classifier(2, loss=Probit()).fit(X, np.arange(120) % 3)
    loaded = load_model(save_model(model, tmp_path / "m.json"), losses=[Probit])
    np.testing.assert_allclose(loaded.predict_proba(X), shares, atol=1e-12)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_loss_of_the_other_kind_is_refused():
    X, y = draw()
    for model, loss in ((L0Regressor(2), Probit()), (L0Regressor(2), Logistic())):
        with pytest.raises(
            ValueError, match=r"L0Regressor takes a `loss` of numbers, got .*labels"
        ):
            model.set_params(loss=loss).fit(X, y)
    with pytest.raises(ValueError, match=r"L0Classifier takes a `loss` of labels, got 'logcosh'"):
        L0Classifier(2, loss=LogCosh()).fit(X, y > 3.0)
    with pytest.raises(TypeError, match=r"`loss` must be one of"):
        L0Regressor(2, loss=LogCosh).fit(X, y)
    # an estimator with an invalid loss can still be looked at
    assert not hasattr(L0Classifier(loss="nonsense"), "predict_proba")
    assert L0Regressor(loss=3).__sklearn_tags__().target_tags.positive_only is False


def test_the_report_speaks_its_words():
    X, y = draw()
    loss = LogCosh(0.5)
    made = make_report(X, y, loss=loss, n_nonzero_coefs=2, cv=2)
    data = made.to_dict()
    assert data["loss"] == "logcosh:0.5" == data["about"]["settings"]["loss"]
    assert "of the log-cosh loss of " in "".join(map(str, data["points"][2]["words"]["headline"]))
    assert "The objective is the log-cosh loss, summed" in made.to_html()
    python = data["recipes"]["python"]
    assert "from own_losses import LogCosh" in python[0] and "loss=LogCosh(width=0.5)" in python[1]
    assert data["recipes"]["command"][0].startswith("# the command line does not know this loss")
    for point in data["points"]:
        coef = np.zeros(8)
        coef[[data["numbers"][f] for f in point["support"]]] = point["coef"]
        mean = loss.value(X @ coef + point["intercept"], y).mean()
        assert point["loss"] == pytest.approx(mean, rel=1e-3)


# -- as text and in files --------------------------------------------------------------------------


def test_parameters_and_labels():
    assert parameters_of(get_loss(LogCosh(0.5))) == {"width": 0.5}
    assert parameters_of(get_loss(Duck(3.0))) == {"factor": 3.0}
    labels = {label_of(get_loss(loss)) for loss in (LogCosh(), LogCosh(0.5), Duck(3.0), Huber(2))}
    assert labels == {"logcosh", "logcosh:0.5", "duck:3", "huber:2"}
    space = types.SimpleNamespace(name="s", value=None, gradient=None, curvature=None)
    assert label_of(get_loss(space)) == "s"


@pytest.mark.parametrize("loss", [LogCosh(0.5), Duck(3.0)], ids=lambda loss: loss.name)
def test_a_model_file_knows_where_the_class_is(loss, tmp_path):
    X, y = draw()
    model = L0Regressor(2, loss=loss, **FAST).fit(X, y)
    file = save_model(model, tmp_path / "m.json")
    stored = json.loads(file.read_text(encoding="utf-8"))
    assert stored["loss_class"] == f"own_losses:{type(loss).__name__}"
    assert stored["loss_parameters"] == parameters_of(get_loss(loss))
    for loaded in (
        load_model(file, losses=(type(loss),)),
        load_model(file, losses=[Probit, loss]),
        load_model(file, trust=True),
    ):
        np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)
        assert parameters_of(loaded.loss_object) == parameters_of(get_loss(loss))
        np.testing.assert_array_equal(loaded.to_sklearn().coef_, model.coef_[[1, 4]])  # stored
    with pytest.raises(ModelFileError, match=r"own_losses:\w+, which is not part of .*trust=True"):
        load_model(file)


def test_nothing_is_imported_unless_the_file_is_trusted(tmp_path, monkeypatch):
    X, y = draw()
    (tmp_path / "stranger.py").write_text("raise SystemExit('it ran')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    file = save_model(L0Regressor(2, loss=LogCosh(), **FAST).fit(X, y), tmp_path / "m.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(signed({**document, "loss_class": "stranger:Loss"}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="which is not part of blockl0"):
        load_model(file)
    assert "stranger" not in sys.modules
    # a class that has moved is found by its name
    assert load_model(file, losses=[LogCosh]).loss == "logcosh"
    with pytest.raises(SystemExit, match="it ran"):
        load_model(file, trust=True)


FLAWS = {
    "no module": ({"loss_class": "no_such_module:Loss"}, "cannot be imported: No module named"),
    "no class": ({"loss_class": "own_losses:Absent"}, "cannot be imported: .*Absent"),
    "an instance": ({"loss_class": "own_losses:NOT_A_CLASS"}, "but that is LogCosh.*, no loss"),
    "a function": ({"loss_class": "os:getcwd"}, "no loss"),
    "parameter": ({"loss_parameters": {"depth": 1}}, "cannot be made with the parameters"),
    "other name": ({"loss": "other"}, "loss is 'other', and should be 'logcosh'"),
    "not a path": ({"loss_class": "own_losses"}, "loss_class is 'own_losses', and should be an i"),
    "a call": ({"loss_class": "os:system('x')"}, "should be an import path"),
    "not an object": ({"loss_parameters": [1]}, "loss_parameters is a list of 1, and should be"),
    "for labels": ({"loss_class": "own_losses:Probit", "loss": "probit", "loss_parameters": {}},
                   "classes is null, and should be a list"),
}  # fmt: skip


@pytest.mark.parametrize("flaw", FLAWS)
def test_what_cannot_be_loaded_is_said(flaw, tmp_path):
    X, y = draw()
    changes, expected = FLAWS[flaw]
    file = save_model(L0Regressor(2, loss=LogCosh(), **FAST).fit(X, y), tmp_path / "m.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(signed({**document, **changes}), encoding="utf-8")
    with pytest.raises(ModelFileError, match=expected):
        load_model(file, trust=True)
    assert NOT_A_CLASS == LogCosh()


def test_what_cannot_be_saved_is_said(tmp_path, monkeypatch):
    class Local(LogCosh):
        name = "local"

    X, y = draw()
    cases = [
        (Local(), "class Local, defined in a function, where no other program"),
        (Forgetful(), "Forgetful of its loss takes `half`, but has no attribute"),
        (Ruined(np.float64(2.0) * np.ones(1)), "must be what JSON can hold"),
    ]
    for loss, expected in cases:
        model = L0Regressor(2, **FAST).fit(X, y).set_params(loss=loss)
        with pytest.raises(ValueError, match=expected):
            save_model(model, tmp_path / "m.json")
    monkeypatch.setattr(LogCosh, "__module__", "__main__")
    model.set_params(loss=LogCosh())
    with pytest.raises(ValueError, match=r"defined in the main program.*a module of its own"):
        save_model(model, tmp_path / "m.json")
    monkeypatch.setattr(LogCosh, "__module__", "elsewhere")
    with pytest.raises(ValueError, match="cannot be imported as elsewhere:LogCosh"):
        save_model(model, tmp_path / "m.json")
    assert not (tmp_path / "m.json").exists()


def test_parameters_of_built_in_losses_are_kept(tmp_path):
    X, y = draw()
    positive = np.exp(0.2 * y)
    for loss, target, label in (
        (Huber(delta=0.5), y, "huber:0.5"),
        ("huber:0.5", y, "huber:0.5"),
        (Tweedie(1.7), positive, "tweedie:1.7"),
        (Squared(), y, "squared"),
    ):
        model = L0Regressor(2, loss=loss, **FAST).fit(X, target)
        file = save_model(model, tmp_path / "m.json", force=True)
        assert ("loss_parameters" in json.loads(file.read_text())) == (":" in label)
        loaded = load_model(file)
        assert loaded.loss == label and loaded.own_loss is None
        assert loaded.loss_object == get_loss(loss)
        np.testing.assert_allclose(loaded.predict(X), model.predict(X), rtol=1e-12)
    document = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(signed({**document, "loss_parameters": {"x": 1}}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="'squared' cannot be made with the parameters"):
        load_model(file)
    # what a class raises is a sentence, in which the message ends as well
    document |= {"loss": "huber", "loss_parameters": {"delta": -1.0}}
    file.write_text(signed(document), encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"-1\.0}: .*delta.*[^.]\.$"):
        load_model(file)


def test_predictions_of_a_file_are_clipped_as_those_of_the_estimator(tmp_path):
    X, y = draw()
    model = L0Regressor(2, loss="poisson", ridge=1e-3, **FAST).fit(X, np.round(np.exp(0.2 * y)))
    loaded = load_model(save_model(model, tmp_path / "m.json"))
    for factor in (1e6, -1e6):
        np.testing.assert_allclose(loaded.predict(factor * X), model.predict(factor * X))
        assert (loaded.predict(factor * X) > 0.0).all()


def test_a_subclass_of_the_squared_loss_is_taken_for_no_more_than_it_says():
    class Shifted(Squared):
        name = "shifted"

        def value(self, eta, y):
            return 0.5 * (y - eta) ** 2 + 0.1 * eta**2

        def gradient(self, eta, y):
            return 1.2 * eta - y

        def curvature(self, eta, y):
            return np.full_like(eta, 1.2)

        curvature_bound = 1.2

    X, y = draw()
    model = L0Regressor(2, loss=Shifted(), **FAST).fit(X, y)
    coef, intercept = minimum(Shifted(), X[:, model.support_], y, 0.0)
    np.testing.assert_allclose(model.coef_[model.support_], coef, atol=1e-6)
    assert model.intercept_ == pytest.approx(intercept, abs=1e-6)


@pytest.mark.parametrize("delta", [0.123456789, 1234567.8, 3.0, 1e-7])
def test_a_parameter_is_kept_to_its_last_digit(delta, tmp_path):
    loss = Huber(delta)
    assert get_loss(label_of(loss)) == loss
    X, y = draw()
    save_model(L0Regressor(2, loss=loss, random_state=0).fit(X, y), tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").loss_object == loss


def test_facts_that_are_not_so_are_refused():
    class Whole(LogCosh):
        is_quadratic = True

    class Many(LogCosh):
        n_outputs = 3

    X, y = draw()
    with pytest.raises(ValueError, match="says that it is quadratic, but it is not"):
        solve(X, y, n_nonzero_coefs=2, loss=Whole())
    with pytest.raises(ValueError, match=r"n_outputs = 1 .* got n_outputs = 3 .* loss='softmax'"):
        solve(X, y, n_nonzero_coefs=2, loss=Many())


def test_one_way_to_say_which_loss_several_classes_have():
    assert get_loss("softmax") == Softmax() == get_loss("logistic").for_classes(3)
    assert get_loss(label_of(Softmax(3))) == Softmax(3)
    for loss in LOSSES.values():
        assert loss.for_classes(2) is loss and loss.for_classes(0) is loss
        assert (loss.for_classes(3) is not loss) == loss.takes_many_classes
    eta = np.log([[1.0, 2.0, 5.0]])
    np.testing.assert_allclose(Softmax().probabilities(eta), [[0.125, 0.25, 0.625]])


def test_a_quadratic_that_says_nothing_of_shifts_keeps_its_intercept_inside(rng):
    class Plain(Squared):
        name = "plain"
        is_quadratic = True

    assert not Plain().shifts_with_target
    X = rng.standard_normal((40, 8)) + 5.0
    y = X[:, 0] - 2.0 * X[:, 3] + 100.0 + 0.1 * rng.standard_normal(40)
    known, own = (
        L0Regressor(2, loss=loss, random_state=0).fit(X, y) for loss in ("squared", Plain())
    )
    assert own.support_.tolist() == known.support_.tolist() == [0, 3]
    assert own.intercept_ == pytest.approx(known.intercept_, rel=1e-10)
    assert own.objective_ == pytest.approx(known.objective_, rel=1e-10)
