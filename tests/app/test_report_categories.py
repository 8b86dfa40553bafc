"""Categories and bounds on the report page: one line each, numbers by numpy, code that runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from test_cli_structure import best, coded, fitted, shops, unit

from cli_runner import QUICK, answer

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(the table, the JSON document of its page, the page), made once."""
    folder = tmp_path_factory.mktemp("page")
    table = shops()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        table.to_csv("shops.csv", index=False)
        given = ["report", "shops.csv", "-t", "y", "--drop", "z", "--half-samples", "4"]
        given += ["--folds", "3", "--out", "page.html", "--costs", "none", "--ridge", "0"]
        patch.setattr("sys.argv", ["blockl0", *given])
        document = answer(*given)
        return table, document, Path("page.html").read_text(encoding="utf-8"), folder


def test_points_are_the_best_choices_and_their_coefficients(made):
    table, document, *_ = made
    data, parts, y = document["result"], coded(table), table["y"].to_numpy()
    assert data["columns"] == 6
    for point in data["points"][1:]:
        objective, names = best(parts, y, point["k"])
        assert {data["features"][f] for f in point["support"]} == set(map(unit, names))
        assert point["objective"] == pytest.approx(objective, rel=1e-5)
        X = pd.concat([parts[name] for name in names], axis=1)
        coef = dict(zip(X.columns, fitted(X.to_numpy(), y)[1][1:], strict=True))
        for at, f in enumerate(point["support"]):
            name = data["features"][f]
            if data["parts"][f] is None:
                assert point["coef"][at] == pytest.approx(coef[name], rel=1e-4)
                continue
            assert point["coef"][at] is None
            own = [coef[f"{name}={level}"] for level in data["parts"][f]]
            assert point["parts"][at] == pytest.approx(own, rel=1e-4)
            assert point["effect"][at] == pytest.approx(np.std(parts[name] @ own), rel=1e-4)
            assert data["references"][f] == min(table[name])


def test_a_category_is_lost_as_a_whole_and_proven(made):
    table, document, *_ = made
    data, parts, y = document["result"], coded(table), table["y"].to_numpy()
    point = data["points"][3]
    names = ["open" if data["features"][f] == "open=Yes" else data["features"][f]
             for f in point["support"]]  # fmt: skip
    for at, name in enumerate(names):
        rest = np.hstack([parts[other] for other in names if other != name])
        rise = fitted(rest, y)[0] - point["objective"]
        assert point["rise"][at] == pytest.approx(rise, rel=1e-3)
    assert all(p["certificate"]["mark"] == "proven" for p in data["points"])
    assert "ways to take 3 of 6 columns" in point["certificate"]["proven"]


def test_the_page_has_one_row_for_a_category_and_its_values_below(made):
    _, document, page, _ = made
    data = document["result"]
    point = data["points"][data["start"]]
    rows = re.findall(r'<tr( class="part")?><th scope="row" class="name">([^<]*)</th>', page)
    shop = rows.index(("", "shop (3 coefficients)"))
    assert [name for _, name in rows[shop + 1 : shop + 5]] == ["A (reference)", "B", "C", "D"]
    assert sum(not is_part for is_part, _ in rows) == len(point["support"])
    assert "Values of a category are compared with one of them" in page
    assert "6 columns to choose from" in page


def test_the_code_of_the_page_gives_its_numbers(made, monkeypatch):
    table, document, _, folder = made
    monkeypatch.chdir(folder)
    data = document["result"]
    point = data["points"][3]
    space = {}
    exec("3".join(data["recipes"]["python"]), space)
    names = best(coded(table), table["y"].to_numpy(), 3)[1]
    columns = [column for name in names for column in coded(table)[name]]
    assert set(space["X"].columns[space["chosen"]]) == set(columns)
    assert space["model"].objective_ == pytest.approx(point["objective"], rel=1e-5)
    command = shlex.split("3".join(data["recipes"]["command"]))
    fit = answer(*command[1:], *QUICK)["result"]
    assert fit["objective"] == pytest.approx(point["objective"], rel=1e-5)


def test_bounds_are_on_the_page_and_in_its_code(made, monkeypatch, tmp_path):
    table, *_ = made
    monkeypatch.chdir(tmp_path)
    table.to_csv("shops.csv", index=False)
    given = ["report", "shops.csv", "-t", "y", "--drop", "z", "-k", "2", "--half-samples", "0"]
    given += ["--positive", "price", "--bounds", "size=:0.1", "--out", "page.html"]
    monkeypatch.setattr("sys.argv", ["blockl0", *given])
    data = answer(*given)["result"]
    assert "Bounds were given for the coefficients of price, size" in Path("page.html").read_text()
    point = data["points"][2]
    coef = {data["features"][f]: c for f, c in zip(point["support"], point["coef"], strict=True)}
    assert coef["size"] == 0.1 and "price" not in coef
    space = {}
    exec("2".join(data["recipes"]["python"]), space)
    assert space["model"].objective_ == pytest.approx(point["objective"], rel=1e-5)
    command = shlex.split("2".join(data["recipes"]["command"]))
    assert "--positive price --bounds size=:0.1" in " ".join(command)
    fit = answer(*command[1:], *QUICK)["result"]
    assert fit["objective"] == pytest.approx(point["objective"], rel=1e-5)


def test_groups_of_ones_own_are_listed_by_their_labels():
    from blockl0.app.report import make_report

    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.standard_normal((60, 5)), columns=list("abcde"))
    y = X["a"] + X["b"] - X["e"] + 0.1 * rng.standard_normal(60)
    report = make_report(
        X, y, feature_groups={"pair": ["a", "b"]}, n_nonzero_coefs=3, cv=None, half_samples=0,
        positive=["c"],
    )  # fmt: skip
    data = report.to_dict()
    pair = data["features"].index("pair")
    assert data["parts"][pair] == ["a", "b"] and data["references"][pair] is None
    assert 'feature_groups={"pair": ["a", "b"]}' in data["recipes"]["python"][0]
    assert "(reference)" not in report.to_html().split("<script")[0]


def test_names_of_values_are_text_on_the_page():
    from blockl0.app.report import make_report

    rng = np.random.default_rng(4)
    names = ["<i>=<script>alert(1)</script>", "<i>=b&c", "x"]
    X = rng.standard_normal((50, 3))
    report = make_report(
        X, X @ [1.0, -1.0, 0.2], feature_names=names, feature_groups=["<i>", "<i>", "x"],
        references={"<i>": "</table>"}, cv=None, half_samples=0, n_nonzero_coefs=1,
    )  # fmt: skip
    page = report.to_html()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page and "&lt;/table&gt; (reference)" in page
    assert "<script>alert" not in page and "<i>" not in page


def test_all_doors_choose_the_same_columns_as_often(made, monkeypatch):
    from blockl0 import L0RegressorCV
    from blockl0.app.tables import read_table

    *_, folder = made
    monkeypatch.chdir(folder)
    data = made[1]["result"]
    given = ("shops.csv", "-t", "y", "--drop", "z", "--folds", 3, "--costs", "none")
    point = data["points"][data["start"]]
    fit = answer("fit", *given, "--half-samples", 4, "--effort", "fast")["result"]
    path = answer("path", *given)["result"]
    read = read_table("shops.csv", target="y", drop=["z"])
    model = L0RegressorCV(feature_groups=read.groups, cv=3, random_state=0).fit(read.X, read.y)
    ks = (fit["choice"]["chosen"], path["chosen"], model.best_n_nonzero_coefs_)
    assert ks == (point["k"],) * 3
    again = dict(zip([data["features"][f] for f in point["support"]], point["again"], strict=True))
    assert {row["name"]: row["again"] for row in fit["features"]} == pytest.approx(again)
