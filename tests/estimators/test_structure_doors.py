"""Groups, bounds, costs and several responses through the estimators."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import lsq_linear
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from blockl0 import (
    BestSubsetSelector,
    L0Classifier,
    L0ClassifierCV,
    L0Regressor,
    L0RegressorCV,
    groups_of,
)

pd = pytest.importorskip("pandas")


def categories(seed=0, m=200):
    """A table of three categories and three numbers; the target needs one of each."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "shop": rng.choice(list("ABCDE"), m),
            "day": rng.choice(["Mon", "Tue", "Wed"], m),
            "kind": rng.choice(["x", "y"], m),
            "price": rng.standard_normal(m),
            "size": rng.standard_normal(m),
            "age": rng.standard_normal(m),
        }
    )
    worth = table["shop"].map(dict(zip("ABCDE", (0, 1, -1, 2, 3), strict=True))).to_numpy()
    return table, worth + 1.5 * table["size"].to_numpy() + 0.3 * rng.standard_normal(m)


def encoder():
    return make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["shop", "day", "kind"]), remainder="passthrough"
    )


def residual(X, y, columns):
    A = np.column_stack([np.ones(len(y)), X[:, columns]])
    rest = y - A @ np.linalg.lstsq(A, y, rcond=None)[0]
    return 0.5 * float(np.sum(rest**2))


def test_an_encoder_gives_its_groups_and_a_category_counts_once():
    table, y = categories()
    made = encoder().fit(table)
    labels = groups_of(made)
    assert labels == ["shop"] * 5 + ["day"] * 3 + ["kind"] * 2 + ["price", "size", "age"]
    X = made.transform(table)
    model = L0Regressor(2, feature_groups=labels, random_state=0).fit(X, y)
    assert set(model.groups_) == {"shop", "size"}
    assert model.n_nonzero_ == 2
    assert set(np.array(labels)[model.support_]) == {"shop", "size"}
    # the best pair of groups, by enumeration
    names = sorted(set(labels))
    pairs = {
        pair: residual(X, y, [j for j, label in enumerate(labels) if label in pair])
        for pair in combinations(names, 2)
    }
    assert min(pairs, key=pairs.__getitem__) == ("shop", "size")
    assert model.objective_ == pytest.approx(min(pairs.values()), rel=1e-10)


def test_groups_by_name_and_of_columns_that_are_alone():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.standard_normal((80, 5)), columns=list("abcde"))
    y = X["a"] + X["b"] + 0.1 * rng.standard_normal(80)
    model = L0Regressor(1, feature_groups={"both": ["a", "b"]}, random_state=0).fit(X, y)
    assert model.groups_ == ("both",)
    assert model.support_.tolist() == [0, 1]
    assert "1 of 4 groups" in str(model.summary())
    full = model.summary(X, y, n_half_samples=4).to_frame()
    assert full["drop_one"].nunique() == 1
    with pytest.raises(ValueError, match="'z'"):
        L0Regressor(1, feature_groups={"both": ["a", "z"]}).fit(X, y)
    with pytest.raises(ValueError, match="once"):
        L0Regressor(1, feature_groups={"p": ["a", "b"], "q": ["b"]}).fit(X, y)


def test_cross_validation_counts_groups():
    table, y = categories(2, m=300)
    made = encoder().fit(table)
    X, labels = made.transform(table), groups_of(made)
    model = L0RegressorCV(feature_groups=labels, random_state=0).fit(X, y)
    assert model.best_n_nonzero_coefs_ == 2
    assert set(model.groups_) == {"shop", "size"}
    assert len(model.path_) == 7  # 0, …, 6 groups
    with pytest.raises(ValueError, match="n_groups"):
        L0RegressorCV(7, feature_groups=labels).fit(X, y)


def test_kept_groups_and_selectors():
    table, y = categories(3)
    made = encoder().fit(table)
    X = pd.DataFrame(made.transform(table), columns=made.get_feature_names_out())
    labels = groups_of(made)
    day = next(name for name in X.columns if "Mon" in name)
    model = L0Regressor(2, feature_groups=labels, keep=[day], random_state=0).fit(X, y)
    assert set(model.groups_) == {"day", "size"}
    chooser = BestSubsetSelector(2, feature_groups=labels, random_state=0).fit(X, y)
    assert set(chooser.groups_) == {"shop", "size"}
    assert chooser.transform(X).shape[1] == chooser.support_.size


@pytest.mark.parametrize("seed", range(6))
def test_signs_are_kept_and_the_subset_is_the_best(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((40, 6)), columns=list("abcdef"))
    y = X.to_numpy() @ rng.standard_normal(6) + 0.5 * rng.standard_normal(40)
    model = L0Regressor(2, positive=["a", "b", "c"], bounds={"d": (-0.2, None)}, random_state=0)
    model.fit(X, y)
    low, high = np.r_[0, 0, 0, -0.2, -np.inf, -np.inf], np.full(6, np.inf)
    assert (model.coef_ >= low).all()
    A, b = X.to_numpy() - X.to_numpy().mean(axis=0), y - y.mean()
    best = min(
        lsq_linear(A[:, s], b, (low[list(s)], high[list(s)]), method="bvls", tol=1e-14).cost
        for s in combinations(range(6), 2)
    )
    assert model.objective_ == pytest.approx(best, rel=1e-9)


def test_classes_with_groups_and_signs():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 6))
    y = (X[:, 0] + X[:, 1] - X[:, 4] + rng.logistic(size=200) > 0).astype(int)
    model = L0Classifier(2, feature_groups=[0, 0, 1, 1, 2, 2], random_state=0).fit(X, y)
    assert model.support_.tolist() == [0, 1, 4, 5]
    signed = L0Classifier(3, positive=True, random_state=0).fit(X, y)
    assert (signed.coef_ >= 0).all()
    assert 4 not in signed.support_
    three = L0ClassifierCV(3, feature_groups=list("aabbcc"), random_state=0)
    assert three.fit(X, np.digitize(X[:, 0] + X[:, 1], [-1, 1])).groups_ == ("a",)


def test_costs_buy_the_cheaper_of_two_alike():
    rng = np.random.default_rng(5)
    X = pd.DataFrame(rng.standard_normal((100, 4)), columns=list("abcd"))
    X["b"] = X["a"] + 0.01 * rng.standard_normal(100)
    y = X["a"] + 0.1 * rng.standard_normal(100)
    dear = L0Regressor(alpha=1.0, costs={"a": 5.0}, random_state=0).fit(X, y)
    assert dear.support_.tolist() == [1]
    assert L0Regressor(alpha=1.0, random_state=0).fit(X, y).support_.tolist() == [0]
    with pytest.raises(ValueError, match="budget"):
        L0Regressor(2, costs={"a": 5.0}).fit(X, y)


def test_several_responses_share_one_support():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((120, 8)) + 5.0
    W = np.zeros((8, 3))
    W[[1, 4]] = rng.standard_normal((2, 3))
    Y = X @ W + 2.0 + 0.1 * rng.standard_normal((120, 3))
    model = L0Regressor(2, random_state=0).fit(X, Y)
    assert model.support_.tolist() == [1, 4]
    assert model.coef_.shape == (3, 8)
    assert model.predict(X).shape == (120, 3)
    assert model.score(X, Y) > 0.9
    for response in range(3):
        A = np.column_stack([np.ones(120), X[:, [1, 4]]])
        exact = np.linalg.lstsq(A, Y[:, response], rcond=None)[0]
        np.testing.assert_allclose(model.coef_[response, [1, 4]], exact[1:], rtol=1e-9)
        assert model.intercept_[response] == pytest.approx(exact[0], rel=1e-8)
    np.testing.assert_allclose(model.to_sklearn().predict(X), model.predict(X))
    chosen = L0RegressorCV(5, random_state=0).fit(X, Y)
    assert chosen.best_n_nonzero_coefs_ == 2
    with pytest.raises(ValueError, match="1d array"):
        L0Regressor(2, loss="huber").fit(X, Y)


def test_groups_of_what_it_does_not_know():
    table, _ = categories()
    made = make_column_transformer(
        (PolynomialFeatures(2, include_bias=False), ["price", "size"]), (OneHotEncoder(), ["shop"])
    ).fit(table)
    with pytest.raises(ValueError, match="which"):
        groups_of(made)
    with pytest.raises(TypeError, match="StandardScaler"):
        groups_of(StandardScaler())
    rare = OneHotEncoder(min_frequency=0.25, drop="first").fit(table[["shop", "kind"]])
    assert len(groups_of(rare)) == len(rare.get_feature_names_out())


@pytest.mark.parametrize("drop", [None, "first", "if_binary", ["b", "x"]])
def test_groups_of_encoders_that_drop_levels(drop):
    """The label of every made column is the name that the encoder itself begins with."""
    table = pd.DataFrame({"shop": list("abcabc"), "kind": list("xyxyxy"), "n": range(6)})
    parts = [("codes", OneHotEncoder(drop=drop), ["shop", "kind"]), ("gone", "drop", ["n"])]
    for made in (
        ColumnTransformer(parts[:1], remainder="passthrough"),
        ColumnTransformer(parts),
        ColumnTransformer([("inner", ColumnTransformer(parts[:1]), ["shop", "kind"])]),
        ColumnTransformer([*parts[:1], ("same", "passthrough", ["n"])], sparse_threshold=1.0),
    ):
        names = made.fit(table).get_feature_names_out()
        assert groups_of(made) == [name.split("__")[-1].split("_")[0] for name in names]


def test_all_that_is_made_of_one_column_is_its_group():
    table = pd.DataFrame({"age": np.linspace(0.0, 1.0, 30), "shop": list("abc") * 10})
    made = make_column_transformer(
        (SplineTransformer(n_knots=4), ["age"]), (OneHotEncoder(), ["shop"])
    ).fit(table)
    labels = groups_of(made)
    assert labels == ["age"] * (len(labels) - 3) + ["shop"] * 3 and len(labels) > 6
    y = np.sin(6.0 * table["age"]) + (table["shop"] == "b")
    model = L0Regressor(1, feature_groups=labels).fit(made.transform(table), y)
    assert model.n_nonzero_ == 1 and model.support_.size > 1


def test_a_pipeline_with_a_grid_keeps_its_groups():
    table, y = categories(7)
    labels = groups_of(encoder().fit(table))
    steps = make_pipeline(encoder(), L0Regressor(feature_groups=labels, random_state=0))
    grid = GridSearchCV(steps, {"l0regressor__n_nonzero_coefs": [1, 2, 3]}, cv=3).fit(table, y)
    assert {"shop", "size"} <= set(grid.best_estimator_[-1].groups_)
