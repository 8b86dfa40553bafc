"""Groups that pay for their coefficients: against enumeration of all sets of groups."""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from blockl0 import L0ClassifierCV, L0Regressor, L0RegressorCV
from blockl0.app.report import make_report
from blockl0.estimators.coefficient_costs import extra_coefficients
from blockl0.estimators.reading import like_noise
from blockl0.losses import get_loss
from blockl0.validate import check_groups
from cli_runner import answer, run

pd = pytest.importorskip("pandas")


def groups_of_sizes(seed):
    """(parts of X, labels, target): numbers and categories, with or without a reference level."""
    rng = np.random.default_rng([seed, 31])
    m, parts = int(rng.integers(60, 140)), []
    signal = np.zeros(m)
    for size in rng.choice([1, 1, 2, 4, 8], int(rng.integers(3, 7))):
        part = rng.standard_normal((m, 1))
        if size > 1:
            part = np.eye(size + 1)[rng.integers(0, size + 1, m)]
            part = part if rng.random() < 0.5 else part[:, 1:]
        parts.append(part)
        if rng.random() < 0.6:
            signal += part @ rng.standard_normal(part.shape[1]) * rng.choice([0.2, 0.5, 1.0])
    labels = [i for i, part in enumerate(parts) for _ in range(part.shape[1])]
    return parts, labels, signal + rng.standard_normal(m)


def sets_of(parts):
    """(the number of groups, an intercept beside them) of all sets of parts."""
    for k in range(len(parts) + 1):
        for chosen in combinations(parts, k):
            yield k, np.column_stack([np.ones(len(parts[0])), *chosen])


def penalty(rule, m, n_coefs, k, n_groups):
    """The penalties of the criteria, as `Path.criterion` documents them."""
    if rule == "aic":
        return 2.0 * n_coefs
    if rule == "gic":
        return n_coefs * np.log(n_groups) * np.log(np.log(m))
    choices = comb(n_groups, min(k, n_groups // 2))
    return n_coefs * np.log(m) + (2.0 * np.log(choices) if rule == "ebic" else 0.0)


RULES = ["aic", "bic", "ebic", "gic"]


@pytest.mark.parametrize("rule", RULES)
def test_criteria_choose_what_enumeration_does(rule):
    chooses_as_enumeration(rule, [RULES.index(rule)])


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_criteria_choose_what_enumeration_does_on_many(rule):
    chooses_as_enumeration(rule, range(4, 24))


def chooses_as_enumeration(rule, seeds):
    for seed in seeds:
        parts, labels, y = groups_of_sizes(seed)
        X, m = np.hstack(parts), len(y)
        values = []
        for k, A in sets_of(parts):
            coef, _, rank, _ = np.linalg.lstsq(A, y, rcond=None)
            deviance = m * np.log(np.sum((y - A @ coef) ** 2) / m)
            values.append(deviance + penalty(rule, m, rank - 1, k, len(parts)))
        found = L0RegressorCV(
            rule=rule, feature_groups=labels, costs="coefficients", random_state=0
        ).fit(X, y)
        chosen = found.path_.criterion(rule)[found.best_index_]
        assert chosen == pytest.approx(min(values), abs=1e-6), seed


def test_criteria_of_classes_choose_what_enumeration_does():
    for seed in range(2):
        parts, labels, signal = groups_of_sizes(seed)
        parts = [part[:, :-1] if part.shape[1] > 1 else part for part in parts[:4]]
        labels = [i for i, part in enumerate(parts) for _ in range(part.shape[1])]
        y = (signal > np.median(signal)).astype(int)
        values = []
        for _, A in sets_of(parts):
            if A.shape[1] == 1:
                deviance = -2.0 * np.sum(np.log(np.where(y == 1, y.mean(), 1.0 - y.mean())))
            else:
                oracle = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
                shares = oracle.fit(A[:, 1:], y).predict_proba(A[:, 1:])
                deviance = -2.0 * np.sum(np.log(shares[np.arange(len(y)), y]))
            values.append(deviance + np.log(len(y)) * (A.shape[1] - 1))
        found = L0ClassifierCV(
            rule="bic", feature_groups=labels, costs="coefficients", ridge=0.0, random_state=0
        ).fit(np.hstack(parts), y)
        chosen = found.path_.criterion("bic")[found.best_index_]
        assert chosen == pytest.approx(min(values), abs=1e-4), seed


def towns(seed, m=300):
    """Two columns that matter, the second a little, two of noise, and random names of 25 towns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    names = rng.integers(0, 25, m)
    y = X[:, 0] + 0.25 * X[:, 1] + 0.7 * rng.standard_normal(m)
    return np.hstack([X, np.eye(25)[names][:, 1:]]), ["a", "b", "c", "d", *["town"] * 24], y, names


def test_a_large_group_of_noise_is_not_chosen_for_its_size():
    for seed in range(2):
        X, labels, y, _ = towns(seed)
        model = L0RegressorCV(
            rule="bic", feature_groups=labels, costs="coefficients", random_state=0
        ).fit(X, y)
        assert model.path_.at(2).groups == ("a", "b")
        # the model by itself, and its half-samples, pay the same
        alone = model._plain().fit(X, y)
        assert alone.groups_ == model.groups_
        assert alone.alpha == pytest.approx(model.path_.alphas[model.best_index_])
        again = model.summary(X, y, n_half_samples=2).columns["again"]
        np.testing.assert_array_equal(again, alone.summary(X, y, n_half_samples=2).columns["again"])


def test_single_columns_pay_nothing():
    X, _, y, _ = towns(0)
    plain, charged = (
        L0RegressorCV(3, costs=costs, feature_groups=groups, random_state=0).fit(X[:, :4], y)
        for costs, groups in ((None, None), ("coefficients", list("abcd")))
    )
    assert charged.costs_ is None and (charged.path_.alphas == 0.0).all()
    np.testing.assert_allclose(plain.path_.losses, charged.path_.losses, rtol=1e-12)
    assert plain.best_n_nonzero_coefs_ == charged.best_n_nonzero_coefs_


def test_free_coefficients_are_counted():
    rng = np.random.default_rng(0)
    levels = np.eye(4)[rng.integers(0, 4, 50)]
    copied = rng.standard_normal((50, 1)) * [[1.0, 2.0, 0.0]]
    X = np.hstack([levels, levels[:, 1:], copied, rng.standard_normal((50, 1))])
    units = check_groups([*"aaaa", *"bbb", *"ccc", "d"], 11)
    np.testing.assert_array_equal(extra_coefficients(X, units), [2, 2, 0, 0])
    np.testing.assert_array_equal(extra_coefficients(X, units, False), [3, 2, 0, 0])


def test_most_groups_of_noise_are_called_that_and_groups_that_matter_are_not():
    rng, loss = np.random.default_rng(1), get_loss("squared")
    told = {"noise": 0, "signal": 0}
    for _ in range(200):
        Z, noise = rng.standard_normal((120, 6)), rng.standard_normal(120)
        for kind, y in {"noise": noise, "signal": noise + Z @ np.full(6, 0.4)}.items():
            A = np.column_stack([np.ones(120), Z])
            rest = 0.5 * np.sum((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2)
            rise = 0.5 * np.sum((y - y.mean()) ** 2) - rest
            told[kind] += like_noise("g", rise, 6, rest, 113.0, loss) is not None
    assert told["signal"] <= 2 and 180 <= told["noise"] <= 199
    assert like_noise("g", 0.0, 1, 1.0, 100.0, loss) is None
    assert like_noise("g", np.nan, 6, 1.0, 100.0, loss) is None


def test_summary_cautions_of_a_group_like_noise():
    X, labels, y, _ = towns(0)
    few, names = X[:, [0, *range(4, 28)]], ["a", *labels[4:]]
    chosen = L0Regressor(2, feature_groups=names, random_state=0).fit(few, y)
    cautions = chosen.summary(few, y).cautions
    assert any(note.startswith("“town” has 24 coefficients") for note in cautions)
    y = y + few[:, 1:] @ np.linspace(-1.0, 1.0, 24)
    chosen = L0Regressor(2, feature_groups=names, random_state=0).fit(few, y)
    assert not any("columns of noise" in note for note in chosen.summary(few, y).cautions)


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, _, y, names = towns(0)
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame["town"], frame["y"] = [f"town {i}" for i in names], y
    frame.to_csv("towns.csv", index=False)
    return frame


def test_the_command_line_charges_coefficients_and_shows_them(table):
    given = ("towns.csv", "-t", "y", "-k", 2, "--half-samples", 2)
    result = answer("fit", *given, "--out", "m.json")["result"]
    assert {row["name"] for row in result["features"]} == {"a", "b"}
    assert result["certificate"]["optimal"] and result["coefficient_price"] > 0.0
    rest = np.column_stack([np.ones(len(table)), table[["a", "b"]]])
    residual = table["y"] - rest @ np.linalg.lstsq(rest, table["y"], rcond=None)[0]
    # the objective is that of the loss, and the price that of BIC
    assert result["objective"] == pytest.approx(0.5 * np.sum(residual**2), rel=1e-9)
    price = np.log(len(table)) * result["objective"] / len(table)
    assert result["coefficient_price"] == pytest.approx(price, rel=1e-6)
    certified = answer("certify", "towns.csv", "--model", "m.json")["result"]
    assert certified["holds"] and certified["objective"] == pytest.approx(result["objective"])
    aic = answer("fit", *given, "--rule", "aic")["result"]["coefficient_price"]
    assert aic == pytest.approx(2.0 * price / np.log(len(table)), rel=1e-3)
    free = answer("fit", *given[:4], 3, *given[5:], "--costs", "none")["result"]
    town = next(row for row in free["features"] if row["name"] == "town")
    assert town["coefficients"] == 24 and free["coefficient_price"] is None
    assert "“town” has 24 coefficients" in " ".join(free["cautions"])
    text = run("fit", *given[:4], 3, *given[5:], "--costs", "none").stdout
    assert "town (24 coefficients)" in text


def test_paths_and_pages_charge_coefficients(table):
    points = answer("path", "towns.csv", "-t", "y", "--rule", "bic", "--csv", "p.csv")["result"]
    sizes = [point["n_coefficients"] for point in points["points"]]
    assert points["chosen"] == 2 and sizes == [0, 1, 2, 3, 4, 4]
    assert pd.read_csv("p.csv")["n_coefficients"].tolist() == sizes
    given = ("towns.csv", "-t", "y", "--folds", 2, "--half-samples", 2)
    page = answer("report", *given)["result"]
    assert page["points"][2]["coefficients"] == [1, 1] and page["points"][2]["price"] > 0.0
    assert "is charged BIC&#x27;s price" in Path("report.html").read_text(encoding="utf-8")
    assert all(point["certificate"]["mark"] == "proven" for point in page["points"])
    free = answer("report", *given, "--costs", "none", "--force")["result"]
    at = free["points"][5]["support"].index(free["features"].index("town"))
    assert len(free["points"][5]["parts"][at]) == 24 and "price" not in free["points"][5]


def test_the_page_of_python_makes_the_same_choice(table):
    X, labels, y, _ = towns(0)
    report = make_report(X, y, feature_groups=labels, cv=None, half_samples=0).to_dict()
    assert 'costs="coefficients"' in report["recipes"]["python"][0]
    names = [report["features"][f] for f in report["points"][2]["support"]]
    assert sorted(names) == ["x0", "x1"]
