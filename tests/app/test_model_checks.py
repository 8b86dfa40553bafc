"""Model files whose checksum fits and whose content does not: refused before any prediction."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockl0 import L0Classifier, L0Regressor
from blockl0.app.model_checks import check_problem, check_reading
from blockl0.app.model_file import ModelFileError, load_model, save_model
from blockl0.app.tables.recipe import Feature
from model_fuzz import HUGE, mutated, signed

METADATA = {
    "reading": {
        "target": "y", "text": "drop", "impute": None, "dates": "drop", "drop": [], "na": ["?"],
        "header": "auto", "format": None, "test": 0.2, "seed": 0,
    },
    "problem": {"n_nonzero_coefs": 2, "ridge": None, "keep": ["x2"]},
}  # fmt: skip


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((40, 6))


@pytest.fixture(scope="module")
def documents(X, tmp_path_factory):
    """One document for each shape of coefficients, and a column of text among them."""
    path, y = tmp_path_factory.mktemp("models") / "m.json", X[:, 1] - 2.0 * X[:, 4]
    fast = {"effort": "fast", "random_state": 0}
    three = np.array(["a", "b", "c"])[np.digitize(y, [-1.0, 1.0])]
    fitted = {
        "numbers": L0Regressor(2, **fast).fit(X, y),
        "parameter": L0Regressor(2, loss="huber:0.5", **fast).fit(X, y),
        "two": L0Classifier(2, **fast).fit(X, y > 0.0),
        "three": L0Classifier(2, **fast).fit(X, three),
    }
    features = [Feature("x1", "x1", fill=0.5), Feature("c=u", "c", "level", "u", None, ("u", "v"))]
    found = {}
    for name, model in fitted.items():
        save_model(model, path, features=features, metadata=METADATA, force=True)
        found[name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def entry(i, **changes):
    return lambda d: d["features"][i].update(changes)


def put(**changes):
    return lambda d: d.update(changes)


FLAWS = {
    "NaN": ("numbers", entry(0, coef=[float("nan")]), "not JSON (NaN is no number)"),
    "infinity": ("numbers", put(intercept=[-float("inf")]), "not JSON (-Infinity is no number)"),
    "null": ("numbers", entry(0, coef=[None]), "features[0].coef is null, and should be a finite"),
    "truth": ("numbers", put(intercept=[True]), "intercept is true, and should be a finite number"),
    "text": ("numbers", put(intercept=["1.5"]), "intercept is '1.5', and should be a finite numb"),
    "400 digits": ("numbers", entry(1, coef=[HUGE]), "features[1].coef is an integer of too many"),
    "400 digits as index": ("numbers", entry(1, index=HUGE), "features[1].index is an integer of"),
    "400 digits as size": ("numbers", put(n_features_in=HUGE), "n_features_in is an integer of to"),
    "400 digits as version": ("numbers", put(format_version=HUGE), "format an integer of too many"),
    "twice": ("numbers", entry(1, index=1), "the index 1 occurs twice in features"),
    "negative": ("numbers", entry(0, index=-1), "features[0].index is -1, and should be a whole"),
    "outside": ("numbers", entry(0, index=6), "is 6, and should be a whole number between 0 and 5"),
    "fraction": ("numbers", entry(0, index=1.0), "features[0].index is 1.0, and should be a whole"),
    "no column": ("numbers", put(n_features_in=0), "features[0].index is 1, and should be"),
    "classes": ("numbers", put(classes=["a", "b"]), "classes is a list of 2, and should be null"),
    "no classes": ("two", put(classes=None), "classes is null, and should be a list"),
    "one class": ("two", put(classes=[True]), "should be a list of at least two labels"),
    "same class": ("three", put(classes=["a", "b", "a"]), "the label 'a' occurs twice in classes"),
    "classes of two kinds": ("two", put(classes=[0, "1"]), "all of one kind"),
    "more classes": ("two", put(classes=["a", "b", "c"]), "should be a list of 3 numbers"),
    "fewer classes": ("three", put(classes=["a", "b"]), "should be a list of 1 number"),
    "hinge of three": (
        "three",
        put(loss="squared_hinge"),
        "should be a list of two labels for the",
    ),
    "loss": ("numbers", put(loss="cubic"), "loss is 'cubic', and should be one of squared, huber"),
    "another loss": ("two", put(loss="squared"), "classes is a list of 2, and should be null"),
    "labels lost": ("numbers", put(loss="logistic"), "classes is null, and should be a list"),
    "no intercept": ("numbers", put(intercept=[]), "intercept is [], and should be a list of 1"),
    "intercepts": ("numbers", put(intercept=[1.0, 2.0]), "intercept is a list of 2, and should be"),
    "coefficients": ("three", entry(0, coef=[1.0]), "coef is a list of 1, and should be a list of"),
    "nested": ("numbers", entry(0, coef=[[1.0]]), "coef is a list of 1, and should be a finite"),
    "fill": ("numbers", entry(0, fill="0"), "features[0].fill is '0', and should be a finite"),
    "kind": ("numbers", entry(0, kind="cube"), "features[0].kind is 'cube', and should be one of"),
    "level": ("numbers", entry(1, level="w"), "features[1].level is 'w', and should be one of its"),
    "order": ("numbers", entry(0, order="day-first"), "order is 'day-first', and should be one of"),
    "order of a date": (
        "numbers",
        entry(0, kind="date", order=["x"]),
        "should be one of day-first",
    ),
    "levels": ("numbers", entry(1, levels=["u", "u"]), "the level 'u' occurs twice"),
    "level of a number": ("numbers", entry(0, level="w"), "should be left out for the kind number"),
    "name": ("numbers", entry(0, name=3), "features[0].name is 3, and should be a text"),
    "surrogate": ("numbers", entry(0, column="\ud800"), "and should be a text of whole characters"),
    "no index": ("numbers", lambda d: d["features"][0].pop("index"), "features[0] has no 'index'"),
    "no features": ("numbers", lambda d: d.pop("features"), "it has no 'features'"),
    "no list": ("numbers", put(features={"a": 1}), "features is an object, and should be a list"),
    "no feature": ("numbers", put(features=[3]), "features[0] is 3, and should be an object"),
    "target": ("numbers", put(target=None), "target is null, and should be a text"),
    "targets": ("numbers", put(targets=["y"]), "targets is a list of 1, and should be left out"),
    "one name": ("numbers", put(targets=["y", "y"]), "the name 'y' occurs twice in targets"),
    "no rows": ("numbers", put(targets=["y", "z"]), "and should be a list of 2 numbers"),
    "labels": ("three", put(targets=["y", "z"]), "targets is a list of 2, and should be left"),
    "metadata": ("numbers", put(metadata=[]), "metadata is [], and should be an object"),
    "version": ("numbers", put(format_version=True), "its format version is true"),
}


@pytest.mark.parametrize("case", FLAWS)
def test_what_does_not_fit_is_refused(documents, tmp_path, case):
    kind, change, message = FLAWS[case]
    document = json.loads(json.dumps(documents[kind]))
    change(document)
    path = tmp_path / "m.json"
    path.write_text(signed(document), encoding="utf-8")
    with pytest.raises(ModelFileError) as caught:
        load_model(path)
    assert message in str(caught.value) and len(str(caught.value)) < 400


TEXTS = {
    "beyond numbers": ('"ridge": null', '"ridge": 1e999', "1e999 is no number"),
    "5000 digits": ('"ridge": null', '"ridge": ' + "9" * 5000, "is not JSON"),
    "a name twice": ('"ridge": null', '"ridge": null, "ridge": 1', "occurs twice"),
    "deep": ('"ridge": null', '"ridge": ' + "[" * 100_000 + "]" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("case", TEXTS)
def test_what_json_does_not_have_is_refused(documents, tmp_path, case):
    before, after, message = TEXTS[case]
    text = json.dumps(documents["numbers"])
    assert before in text
    (tmp_path / "m.json").write_text(text.replace(before, after), encoding="utf-8")
    with pytest.raises(ModelFileError, match=message):
        load_model(tmp_path / "m.json")


def test_mutated_files_are_refused_or_predict(documents, X, tmp_path):
    """Whatever is changed: the package's own error, or finite numbers and known classes."""
    rng, path, n_refused = np.random.default_rng(1), tmp_path / "m.json", 0
    for _ in range(250):
        text = signed(mutated(documents[rng.choice(list(documents))], rng))
        path.write_text(text, encoding="utf-8")
        try:
            model = load_model(path)
            prediction = model.answer(model.decide(X[:, : len(model.features)]))
        except ModelFileError:
            n_refused += 1
            continue
        except ValueError as error:
            assert "overflows" in str(error), text
            continue
        known = model.classes
        fits = np.isfinite(prediction) if known is None else np.isin(prediction, known)
        assert fits.all(), text
        for check in (check_reading, lambda m, n=model.n_features_in: check_problem(m, n)):
            try:
                check(model.metadata)
            except ValueError as error:
                assert str(error).startswith("metadata."), text
    assert n_refused > 100


READING = {
    "na": ("?", "metadata.reading.na is '?', and should be a list"),
    "drop": ([1], "metadata.reading.drop is 1, and should be a text"),
    "header": ("maybe", "header is 'maybe', and should be one of auto, yes, no"),
    "impute": ("mode", "impute is 'mode', and should be one of null, median"),
    "target": ([], "target is [], and should be a name or a number"),
    "levels": ("some", "levels is 'some', and should be one of together, separate"),
    "sheet": ({}, "sheet is {}, and should be a name or a number"),
    "text": ("some", "text is 'some', and should be one of auto, one-hot, drop, refuse"),
    "date_order": ("year", "date_order is 'year', and should be one of auto, day-first, month-fi"),
    "as_category": ("a", "metadata.reading.as_category is 'a', and should be a list"),
    "as_number": ([None], "metadata.reading.as_number is null, and should be a text"),
    "max_levels": (1, "max_levels is 1, and should be a whole number between 2 and"),
    "test": (1.0, "test is 1.0, and should be at least 0 and below 1"),
    "seed": (-1, "seed is -1, and should be a whole number"),
}


@pytest.mark.parametrize("key", READING)
def test_how_data_were_read(key):
    value, message = READING[key]
    assert check_reading(METADATA) == METADATA["reading"] and check_reading({}) == {}
    with pytest.raises(ValueError, match="metadata") as caught:
        check_reading({"reading": METADATA["reading"] | {key: value}})
    assert message in str(caught.value)


PROBLEM = {
    "n_nonzero_coefs": (7, "is 7, and should be a whole number between 0 and 6"),
    "ridge": (-0.5, "is -0.5, and should be at least 0"),
    "keep": ([None], "is null, and should be a text"),
    "positive": ("all", "is 'all', and should be a list"),
    "bounds": ([3], "is 3, and should be a text"),
}


@pytest.mark.parametrize("key", PROBLEM)
def test_the_problem_of_a_model(key):
    value, message = PROBLEM[key]
    assert check_problem(METADATA, 6) == METADATA["problem"] and check_problem({}, 6) is None
    with pytest.raises(ValueError, match=rf"metadata\.problem\.{key} {message}"):
        check_problem({"problem": METADATA["problem"] | {key: value}}, 6)


def test_what_cannot_be_loaded_is_not_saved(tmp_path, X):
    model = L0Regressor(2, random_state=0).fit(X, X[:, 1] + X[:, 4])
    for change, message in (
        ({"target": 3}, "target is 3, and should be a text"),
        ({"metadata": {"a": float("nan")}}, "not JSON compliant"),
        ({"feature_names": ["\ud800"] * 6}, "whole characters"),
    ):
        with pytest.raises(ValueError, match=f"This estimator cannot be saved: .*{message}"):
            save_model(model, tmp_path / "m.json", **change)
    model.intercept_ = np.nan
    with pytest.raises(ValueError, match="cannot be saved"):
        save_model(model, tmp_path / "m.json")
    assert not list(tmp_path.iterdir())


def test_predictions_are_finite_or_refused(tmp_path, X, documents):
    model = L0Regressor(2, random_state=0).fit(X, X[:, 1] - 2.0 * X[:, 4])
    loaded = load_model(save_model(model, tmp_path / "m.json"))
    for value, seen in ((np.nan, "NaN"), (np.inf, "infinity"), (1e200, "1e")):
        bad = X.copy()
        bad[3, 0] = value  # a column that the model does not use
        np.testing.assert_array_equal(loaded.predict(bad), loaded.predict(X))
        bad[3, 4] = value
        with pytest.raises(ValueError, match=f"{seen}.*column 'x4', row 3"):
            loaded.predict(bad)
    with pytest.raises(TypeError, match="`X` must hold numbers"):
        loaded.predict(X.astype(str))
    document = json.loads(json.dumps(documents["numbers"]))
    document["features"][0]["coef"] = [1e300]
    (tmp_path / "m.json").write_text(signed(document), encoding="utf-8")
    with pytest.raises(ValueError, match="prediction for row 0 overflows"):
        load_model(tmp_path / "m.json").decide(np.full((3, 2), 1e100))
