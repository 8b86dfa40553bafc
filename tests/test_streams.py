"""Tables read in parts: the same answers as from all rows at once, or a reason why not."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from blockl0.tables import chunks
from cli_runner import answer

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


def frame(seed=0, m=400):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 8)) * 10.0 ** np.arange(-2, 6) + 1e3 * np.arange(8)
    made = pd.DataFrame(X, columns=[f"c{j}" for j in range(8)])
    made["town"] = rng.choice(["Rome", "Oslo", 'a "b"', "x,y"], m)
    made["flat"] = 7
    made["y"] = X[:, 1] - 0.01 * X[:, 4] + 2.0 * (made["town"] == "Rome") + rng.standard_normal(m)
    return made


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder in which files of some kilobytes have several parts."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 4000)
    monkeypatch.setattr(chunks, "LEAST_ROWS", 40)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def both(*arguments):
    return answer("fit", *arguments), answer("fit", *arguments, "--stream")


def check_equal(ours, known):
    """The same columns, coefficients, scores and choice."""
    a, b = ours["result"], known["result"]
    assert [row["name"] for row in a["features"]] == [row["name"] for row in b["features"]]
    coef = [[row["coef"] for row in r["features"]] for r in (a, b)]
    np.testing.assert_allclose(*coef, rtol=1e-8)
    assert a["intercept"] == pytest.approx(b["intercept"], rel=1e-8)
    assert a["objective"] == pytest.approx(b["objective"], rel=1e-10)
    assert a["scores"]["train"] == pytest.approx(b["scores"]["train"], rel=1e-10)
    assert ours["data"]["n_samples"] == known["data"]["n_samples"]
    assert ours["data"]["n_features"] == known["data"]["n_features"]
    if b["choice"]:
        for name in ("mean_scores", "se"):
            np.testing.assert_allclose(a["choice"][name], b["choice"][name], rtol=1e-8)
    for row, other in zip(a["features"], b["features"], strict=True):
        assert row["per_sd"] == pytest.approx(other["per_sd"], rel=1e-8)
        assert row["drop_one"] == pytest.approx(other["drop_one"], rel=1e-7)


def write(made, name):
    """The same rows in one of several forms."""
    if name == "t.parquet":
        made.to_parquet(name, index=False)
    elif name == "comma.csv":
        made.to_csv(name, index=False, sep=";", decimal=",")
    elif name == "latin.csv":
        made.assign(town=made["town"] + "é").to_csv(name, index=False, encoding="cp1252")
    elif name == "packed.csv.gz":
        with gzip.open(name, "wt") as file:
            made.to_csv(file, index=False)
    else:
        made.to_csv(name, index=name == "numbered.csv")


NAMES = ("t.csv", "t.parquet", "comma.csv", "latin.csv", "packed.csv.gz", "numbered.csv")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_in_parts_gives_what_it_gives_at_once(here, name):
    write(frame(), name)
    kind = "parquet" if name.endswith("parquet") else "csv"
    assert sum(1 for _ in chunks.Chunks((here / name,), kind)) > 5
    known, ours = both(name, "-t", "y", "-k", 3)
    check_equal(ours, known)
    said = [text for text in known["notices"] if "half-samples" not in text]
    assert [text for text in said if text not in ours["notices"]] == []


def test_cross_validation_has_the_same_folds(here):
    write(frame(1), "t.csv")
    known, ours = both("t.csv", "-t", "y", "--max-k", 5, "--seed", 3)
    check_equal(ours, known)
    assert ours["result"]["choice"]["chosen"] == known["result"]["choice"]["chosen"]


def test_the_path_is_the_same(here):
    write(frame(2), "t.parquet")
    known, ours = (
        answer("path", "t.parquet", "-t", "y", "-k", 4, *more)["result"]["points"]
        for more in ((), ("--stream",))
    )
    assert [p["columns"] for p in ours] == [p["columns"] for p in known]
    for name in ("bic", "cv_loss", "cv_explained"):
        np.testing.assert_allclose([p[name] for p in ours], [p[name] for p in known], rtol=1e-8)
