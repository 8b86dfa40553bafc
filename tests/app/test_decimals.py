"""Decimal commas: every number is the one that was written, or the column is refused by name."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from blockl0.app.tables import read_table
from blockl0.app.tables.formats import read_raw

pd = pytest.importorskip("pandas", reason="tables need pandas")


@pytest.fixture
def write(tmp_path):
    def write(text, name="t.csv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def column(read, name):
    return read.X[:, read.feature_names.index(name)].tolist()


COMMAS = "km;price;y\n1.660;12,5;1\n980;8,25;2\n12.400;3,5;3\n"


def test_points_are_between_thousands_once_there_are_decimal_commas(write):
    table = read_table(write(COMMAS))
    assert column(table, "km") == [1660.0, 980.0, 12400.0]
    assert column(table, "price") == [12.5, 8.25, 3.5]
    assert table.decimal == "comma"
    assert table.notes == (
        "Numbers with a decimal comma: price.",
        "In a file with decimal commas, points are between thousands (1.660 is 1660): km.",
    )


def test_the_comma_may_be_anywhere(write):
    """In the target, in a column that is left out, beside gaps, after the doubtful one."""
    target = write("km;n;y\n1.660;1;1,5\n980;2;2\n12.400;4;3,25\n")
    assert column(read_table(target), "km") == [1660.0, 980.0, 12400.0]
    dropped = write(COMMAS)
    assert column(read_table(dropped, drop=["price"]), "km") == [1660.0, 980.0, 12400.0]
    gaps = write("km;price;y\n;12,5;1\n1.660;;2\n980;;3\n-2.500;n/a;4\n")
    table = read_table(gaps, impute="mean")
    assert column(table, "km")[1:] == [1660.0, 980.0, -2500.0]
    assert table.feature_names == ("km",)  # a price alone is constant when it is imputed


REFUSED = {
    "fraction": ("9.8", r"decimal point in row 3, '9\.8', but there is '12,5' in row 2 of colu"),
    "below one": ("0.980", r"Column 'km' has a decimal point in row 3, '0\.980'"),
    "no zero": (".980", r"Column 'km' has a decimal point in row 3, '\.980'"),
    "long": ("1980.125", r"Column 'km' has a decimal point in row 3, '1980\.125'"),
    "exponent": ("1.980e2", r"Column 'km' has a decimal point in row 3, '1\.980e2'"),
    "ungrouped": ("1980", r"Column 'km' holds '1\.660' in row 2: 1660 .* but '1980' in row 3 has"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_mixed_files_are_refused(write, case):
    value, message = REFUSED[case]
    path = write(COMMAS.replace("\n980", f"\n{value}"))
    with pytest.raises(ValueError, match=message) as caught:
        read_table(path)
    for option in ("--decimal comma", "--decimal point", "--drop"):
        assert option in str(caught.value)
    # a column that is not used does not matter
    assert read_table(path, drop=["km"]).feature_names == ("price",)
    with pytest.raises(ValueError, match=message):
        read_table(path, target="km", drop=["y"])


def test_the_option_decides(write):
    path = write(COMMAS.replace("\n980", "\n1980"))
    assert column(read_table(path, decimal="comma"), "km") == [1660.0, 1980.0, 12400.0]
    points = read_table(path, decimal="point", drop=["price"])
    assert column(points, "km") == [1.66, 1980.0, 12.4] and points.decimal == "point"
    with pytest.raises(
        ValueError, match=r"form that is not read, as '12,5'.*--decimal comma reads"
    ):
        read_table(path, decimal="point")
    with pytest.raises(ValueError, match=r"row 3, '9\.8', but --decimal comma was given"):
        read_table(write(COMMAS.replace("\n980", "\n9.8")), decimal="comma")
    with pytest.raises(ValueError, match="`decimal` must be one of 'auto', 'comma', 'point'"):
        read_table(path, decimal=",")


def test_without_a_decimal_comma_points_are_decimal(write):
    """Also where a comma could be one between thousands, which is refused by itself."""
    path = write("km;n;y\n1.660;1;1\n2.980;2;2\n12.400;4;3\n")
    assert column(read_table(path), "km") == [1.66, 2.98, 12.4]
    assert column(read_table(path, decimal="comma"), "km") == [1660.0, 2980.0, 12400.0]
    path = write("km;n;y\n1.660;1,234;1\n2.980;2,345;2\n12.400;4,567;3\n")
    assert column(read_table(path, drop=["n"]), "km") == [1.66, 2.98, 12.4]
    message = (
        r"'n' holds '1,234' in row 2: 1234 .*; or 1\.234\. --decimal point reads 1234, --decimal"
    )
    with pytest.raises(ValueError, match=message):
        read_table(path)
    assert column(read_table(path, decimal="point"), "n") == [1234.0, 2345.0, 4567.0]
    assert column(read_table(path, decimal="comma"), "n") == [1.234, 2.345, 4.567]


def test_one_column_in_both_ways(write):
    rows = "".join(f"{value};{i}\n" for i, value in enumerate(["1.5", "3,25", "2.5", "7", "8.5"]))
    path = write("a;y\n" + rows)
    for decimal in ("auto", "comma"):
        message = r"'a' has a decimal comma in row 3, '3,25', and a decimal point in row 2, '1\.5'"
        with pytest.raises(ValueError, match=message):
            read_table(path, decimal=decimal)
    with pytest.raises(ValueError, match="Column 'a'"):
        read_table(path, decimal="point")


HINTS = {
    "in quotes": 'a,km,y\n"3,25",1.660,1\n"2,5",2.980,2\n"1,5",3.120,3\n',
    "beside texts": "a;km;y\n3,25;1.660;1\nnone;2.980;2\n1,5;3.120;3\nn.a.;3.120;4\n",
}


@pytest.mark.parametrize("case", HINTS)
def test_a_hint_is_enough_to_ask(write, case):
    """Where a comma is not beyond doubt, 1.660 is not decided; other fractions are clear."""
    path = write(HINTS[case])
    with pytest.raises(ValueError, match=r"'1\.660' in row 2: 1660 .* as '3,25' in row 2 of colum"):
        read_table(path, drop=["a"])
    assert column(read_table(path, drop=["a"], decimal="point"), "km")[:2] == [1.66, 2.98]
    assert column(read_table(path, drop=["a"], decimal="comma"), "km")[:2] == [1660.0, 2980.0]
    assert (
        column(read_table(write(HINTS[case].replace("2.980", "0.5")), drop=["a"]), "km")[1] == 0.5
    )


def test_decimal_commas_in_quotes(write):
    path = write(HINTS["in quotes"])
    with pytest.raises(ValueError, match="--decimal comma"):
        read_table(path, drop=["km"])
    assert column(read_table(path, decimal="comma"), "a") == [3.25, 2.5, 1.5]


def test_standard_input_and_no_header(monkeypatch):
    text = "1.234,5;1;2\n1.660;2;3\n980;5;4\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    table = read_table("-", target="x2")
    assert column(table, "x0") == [1234.5, 1660.0, 980.0] and len(table.y) == 3


# -- against what was written ----------------------------------------------------------------------


def spelled(value, decimal, grouped, places):
    """As spreadsheets write a number."""
    text = f"{value:,.{places}f}" if grouped else f"{value:.{places}f}"
    return (
        text.translate(str.maketrans(",.", ".,")) if decimal == "comma" else text.replace(",", "")
    )


@pytest.mark.parametrize("seed", range(40))
def test_numbers_are_those_that_were_written(write, seed):
    """Columns of any size, decimals and grouping: read as they were, or refused."""
    rng = np.random.default_rng(seed)
    decimal = ("comma", "point")[seed % 2]
    columns = {}
    for j in range(4):
        places, grouped = int(rng.integers(0, 4)), bool(rng.integers(2))
        values = rng.uniform(-1.0, 1.0, 6) * 10.0 ** rng.integers(0, 7)
        columns[f"c{j}"] = [spelled(v, decimal, grouped, places) for v in values]
    columns["y"] = [str(i * i) for i in range(6)]
    path = write(pd.DataFrame(columns).to_csv(sep=";", index=False))
    truth = {}
    for name, texts in columns.items():
        plain = [t.replace(".", "").replace(",", ".") if decimal == "comma" else t for t in texts]
        truth[name] = [float(t) for t in plain]
    told = read_table(path, decimal=decimal)
    for name in told.feature_names:
        assert column(told, name) == truth[name], name
    if decimal == "comma" and not any("," in text for texts in columns.values() for text in texts):
        return  # nothing in the file tells
    try:
        found = read_table(path)
    except ValueError as error:
        assert decimal == "comma" and "--decimal" in str(error)
    else:
        for name in found.feature_names:
            assert column(found, name) == truth[name], (name, columns[name])


# -- commands --------------------------------------------------------------------------------------


@pytest.fixture
def models(tmp_path, monkeypatch, rng):
    """Fitted to a file with decimal commas, which was found out or told."""
    pytest.importorskip("click")
    from cli_runner import QUICK, run

    monkeypatch.chdir(tmp_path)
    km, price = rng.integers(1000, 99_999, 30), rng.uniform(1.0, 50.0, 30)
    columns = ((km, True, 0), (price, True, 2), (km / 7, False, 1))
    texts = [[spelled(v, "comma", grouped, n) for v in values] for values, grouped, n in columns]
    rows = [";".join(cells) for cells in zip(*texts, strict=True)]
    (tmp_path / "de.csv").write_text("\n".join(["km;price;y", *rows]), encoding="utf-8")
    run("fit", "de.csv", "-t", "y", "-k", 1, *QUICK, "-o", "auto.json")
    run("fit", "de.csv", "-t", "y", "-k", 1, *QUICK, "--decimal", "comma", "-o", "comma.json")
    return run


def test_new_rows_of_a_model(models, tmp_path):
    """Few rows may show no comma: then the model's data are a reason to ask."""
    run = models
    (tmp_path / "new.csv").write_text("km;n\n14.000;1\n", encoding="utf-8")
    done = run("predict", "auto.json", "new.csv", code=3)
    assert "as in the data of the fit; or 14. --decimal comma reads 14000" in done.stderr
    told = run("predict", "auto.json", "new.csv", "--decimal", "comma")
    assert float(told.stdout.split()[-1]) == pytest.approx(2000.0, abs=0.2)
    # what was told for the fit holds for new rows, unless other things are told
    assert run("predict", "comma.json", "new.csv").stdout == told.stdout
    point = run("predict", "comma.json", "new.csv", "--decimal", "point")
    assert float(point.stdout.split()[-1]) == pytest.approx(2.0, abs=0.2)
    (tmp_path / "new.csv").write_text("km;n\n14000.5;1\n14.000;2\n", encoding="utf-8")
    done = run("predict", "auto.json", "new.csv")
    assert [float(line) for line in done.stdout.split()[1:]] == pytest.approx([2000, 2], abs=0.2)


def test_models_and_documents_remember(models):
    run = models
    document = json.loads(run("fit", "de.csv", "-t", "y", "-k", 1, "--json").stdout)
    assert document["data"]["decimal"] == "comma" and document["options"]["decimal"] == "auto"
    for model in ("auto.json", "comma.json"):
        done = run("certify", "de.csv", "--model", model)
        assert "These are not the data" not in done.stderr
    done = run("certify", "de.csv", "--model", "auto.json", "--decimal", "point", code=2)
    assert "The model was fitted with --decimal auto, not point" in done.stderr


def test_other_formats_have_no_decimals(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(3), y=np.arange(3.0))
    assert read_raw(tmp_path / "t.npz", decimal="comma").decimal == "point"
