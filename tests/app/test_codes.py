"""Digits with leading zeros are codes, wherever a table comes from."""

from __future__ import annotations

import numpy as np
import pytest

from blockl0 import L0Regressor
from blockl0.app.tables import chunks as chunks_module
from blockl0.app.tables import read_table
from cli_runner import answer, run

pd = pytest.importorskip("pandas", reason="tables need pandas")

CODES = ["01067", "04103", "10115", "20095", "50667", "80331"]
LEVELS = np.array([9.0, 2.0, 11.0, 4.0, 7.0, 12.5])


@pytest.fixture
def rents(rng):
    """Rents that depend on the postcode as a category, and on the size."""
    at = rng.permutation(np.arange(240) % len(CODES))
    size = rng.uniform(30.0, 120.0, 240)
    rent = LEVELS[at] + 0.01 * size + 0.5 * rng.standard_normal(240)
    return pd.DataFrame({"plz": np.array(CODES, dtype=object)[at], "size": size, "rent": rent})


def write(frame, path):
    """The table as one of several files, or as it is; codes are text."""
    if path.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need blockl0[excel]")
        typed = frame.assign(plz=[c if c[0] == "0" else int(c) for c in frame["plz"]])
        typed.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
        frame.to_parquet(path, index=False)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    return path if path.suffix else frame


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx", "t.parquet", "frame"])
def test_codes_are_categories_whatever_they_come_from(tmp_path, rents, name):
    """A workbook holds those with a zero as text and the others as numbers."""
    source = write(rents, tmp_path / name)
    table = read_table(source, target="rent")
    assert [unit.name for unit in table.units] == ["plz", "size"]
    assert table.units[0].levels == tuple(CODES[1:]) and table.units[0].reference == CODES[0]
    said = "Digits with leading zeros are codes, taken for categories: plz (as 0"
    assert any(note.startswith(said) and "--as-number plz" in note for note in table.notes)
    one_hot = np.column_stack([rents["plz"] == code for code in CODES])
    A = np.column_stack([one_hot, rents["size"]]).astype(float)
    residual = rents["rent"] - A @ np.linalg.lstsq(A, rents["rent"], rcond=None)[0]
    best = 1.0 - residual @ residual / ((rents["rent"] - rents["rent"].mean()) ** 2).sum()
    model = L0Regressor(n_nonzero_coefs=2, feature_groups=table.groups).fit(table.X, table.y)
    assert model.score(table.X, table.y) == pytest.approx(best, rel=1e-9)
    numbers = read_table(source, target="rent", as_number=["plz"])
    assert numbers.X[:, 0].tolist() == [float(code) for code in rents["plz"]]
    assert L0Regressor(2).fit(numbers.X, numbers.y).score(numbers.X, numbers.y) < best - 0.1


@pytest.mark.parametrize(
    ("cells", "is_code"),
    [
        (["007", "012", "100"], True),
        (["01", "02", "12"], True),
        (["00", "10", "20"], True),
        (["0", "5", "12"], False),
        (["0.5", "00.7", "1.5"], False),
        (["-01", "02", "12"], False),
        (["05", "7.5", "12"], False),
        (["01:15", "02:30", "12:00"], None),
    ],
)
def test_codes_are_digits_alone_some_with_a_zero_before(tmp_path, cells, is_code):
    rows = [f"{cells[i % 3]},{i * i % 7}" for i in range(12)]
    (tmp_path / "t.csv").write_text("\n".join(["c,y", *rows, ",3"]), encoding="utf-8")
    table = read_table(tmp_path / "t.csv", target="y", impute="drop-rows")
    assert (table.features[0].kind == "level") == (is_code is not False)
    assert any("leading zeros" in note for note in table.notes) == bool(is_code)


def test_codes_of_the_target_are_numbers_and_said(tmp_path):
    rows = [f"{i * i % 7},0{i}" for i in range(1, 9)]
    (tmp_path / "t.csv").write_text("\n".join(["x,y", *rows]), encoding="utf-8")
    table = read_table(tmp_path / "t.csv")
    assert table.y.tolist() == [float(i) for i in range(1, 9)]
    assert any("'y' holds '01', read as the number 1" in note for note in table.notes)


def test_new_rows_have_the_codes_of_the_fit(tmp_path, rents, monkeypatch):
    """Also those of a file in which no code has a zero before it, and of one read in parts."""
    monkeypatch.chdir(tmp_path)
    write(rents, tmp_path / "t.csv")
    run("fit", "t.csv", "-t", "rent", "-k", 2, "-o", "m.json", "--prove", 0)
    plain = rents[~rents["plz"].str.startswith("0")]
    for part in (rents, plain):
        write(part, tmp_path / "new.csv")
        document = answer("predict", "m.json", "new.csv")
        assert document["result"]["score"]["value"] > 0.9
        monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 2000)
        run("predict", "m.json", "new.csv", "--stream", "-o", "p.csv", "--force")
        made = pd.read_csv("p.csv")["rent"]
        np.testing.assert_allclose(made, document["result"]["predictions"], rtol=1e-9)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_codes_that_a_late_part_shows_are_codes_of_all_parts(tmp_path, rents, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chunks_module, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(chunks_module, "LEAST_ROWS", 40)
    late = rents.sort_values("plz", ascending=False)
    write(late, tmp_path / name)
    options = ("fit", name, "-t", "rent", "-k", 2, "--prove", 0, "--half-samples", 0)
    whole, parts = answer(*options), answer(*options[:-2], "--stream")
    assert parts["result"]["objective"] == pytest.approx(whole["result"]["objective"], rel=1e-9)
    assert [n for n in whole["data"]["notes"] if "zeros" in n] == [
        n for n in parts["data"]["notes"] if "zeros" in n
    ]
