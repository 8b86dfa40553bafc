"""Reading files: every format gives the same numbers, and everything done to them is said."""

from __future__ import annotations

import io
import re
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from blockl0.app.tables import apply_recipe, prepare, read_table
from blockl0.app.tables.formats import format_of, read_raw

pd = pytest.importorskip("pandas", reason="tables need pandas")


@pytest.fixture
def frame(rng):
    """Numbers, text, dates, truth values and a constant, with some gaps."""
    made = pd.DataFrame({
        "a": rng.standard_normal(40),
        "b": rng.integers(0, 5, 40),
        "city": np.array(["Paris", "Rome", "Oslo"])[np.arange(40) % 3],
        "when": pd.date_range("2020-01-01", periods=40).strftime("%Y-%m-%d"),
        "flag": np.arange(40) % 2 == 0,
        "one": 1.0,
        "y": rng.standard_normal(40),
    })  # fmt: skip
    return made


def notes_of(table):
    return " ".join(table.notes)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.csv.bz2", "t.parquet", "t.txt"])
def test_tables_of_every_format_are_the_same(tmp_path, frame, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / name)
    else:
        separator = {"t.tsv": "\t", "t.txt": ";"}.get(name, ",")
        frame.to_csv(tmp_path / name, sep=separator, index=False)
    coded = {"text": "one-hot", "dates": "days", "levels": "separate"}
    table = read_table(tmp_path / name, target="y", **coded)
    direct = read_table(frame, target="y", **coded)
    assert table.feature_names == ("a", "b", "city=Oslo", "city=Paris", "city=Rome", "when", "flag")
    # numbers are written in full and read back to the last bit
    np.testing.assert_array_equal(table.X, direct.X)
    np.testing.assert_array_equal(table.y, frame["y"])
    assert table.fingerprint == direct.fingerprint
    np.testing.assert_array_equal(table.X[:, 5] - table.X[0, 5], np.arange(40))
    np.testing.assert_array_equal(table.X[:, 4], frame["city"] == "Rome")
    assert "1 constant column (one) dropped" in notes_of(table)


def test_matrices_of_every_format_are_the_same(tmp_path, rng):
    X = sp.csr_array(rng.standard_normal((30, 12)) * (rng.random((30, 12)) < 0.3))
    y = rng.standard_normal(30)
    dump_svmlight_file(X, y, str(tmp_path / "t.svm"), zero_based=True)
    np.savez(tmp_path / "t.npz", X=X.toarray(), y=y)
    scipy.io.savemat(tmp_path / "t.mat", {"X": X, "y": y[:, None]})
    sp.save_npz(tmp_path / "whole.npz", sp.hstack([X, sp.csr_array(y[:, None])], format="csr"))
    tables = [read_table(tmp_path / name) for name in ("t.svm", "t.npz", "t.mat")]
    tables.append(read_table(tmp_path / "whole.npz", target=-1))
    for table in tables:
        dense = table.X.toarray() if sp.issparse(table.X) else table.X
        used = [int(name[1:]) for name in table.feature_names]
        np.testing.assert_allclose(dense, X.toarray()[:, used], atol=1e-15)
        np.testing.assert_allclose(table.y, y, atol=1e-15)
    assert [sp.issparse(table.X) for table in tables] == [True, False, True, True]


def test_libsvm_columns_keep_the_numbers_of_the_file(tmp_path):
    """Files that count from 1 and those that count from 0 cannot be mixed up by a guess."""
    (tmp_path / "fit.svm").write_text("1 1:2 3:1\n2 1:1 2:5\n3 3:4\n", encoding="utf-8")
    table = read_table(tmp_path / "fit.svm")
    assert table.feature_names == ("x1", "x2", "x3") and not table.notes
    (tmp_path / "new.svm").write_text("0 2:7 9:1\n", encoding="utf-8")
    new = apply_recipe(read_raw(tmp_path / "new.svm"), table.recipe(range(3)))
    assert new.tolist() == [[0.0, 7.0, 0.0]]


def test_standard_input(monkeypatch, frame):
    stdin = SimpleNamespace(buffer=io.BytesIO(frame.to_csv(index=False, sep="\t").encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    table = read_table("-", target="y", text="drop")
    assert table.feature_names == ("a", "b", "flag") and table.source == "standard input"
    np.testing.assert_array_equal(table.X[:, 0], frame["a"])


def test_the_target_by_name_and_by_number(frame):
    by_name, by_number = read_table(frame, target="b"), read_table(frame, target=1)
    assert by_name.target == by_number.target == "b"
    assert by_name.fingerprint == by_number.fingerprint != read_table(frame).fingerprint
    assert read_table(frame, target="-1").target == read_table(frame).target == "y"


def test_what_is_done_is_said(frame):
    table = read_table(frame, target="y", text="drop")
    assert table.feature_names == ("a", "b", "flag")
    for said in ("1 column (city) of text dropped", "1 column (when) of dates dropped"):
        assert said in notes_of(table)
    dropped = read_table(frame, target="y", drop=["a"])
    assert "a" not in dropped.feature_names and "1 column (a) dropped as asked" in notes_of(dropped)


def test_what_differs_by_rounding_only_is_constant(frame):
    rows = np.arange(len(frame))
    sums = np.where(rows % 2 == 0, 0.1 + 0.2, 0.3)
    table = read_table(frame.assign(sums=sums, late=1e12 + rows), target="y")
    assert "2 constant columns (one, sums) dropped" in notes_of(table)
    assert "late" in table.feature_names


def test_missing_values_are_refused_or_filled(frame):
    frame.loc[[3, 5], "a"] = np.nan
    frame.loc[7, "city"] = None
    with pytest.raises(ValueError, match=r"Missing values in 1 column: a \(2 rows\); --impute"):
        read_table(frame, target="y")
    known = frame["a"].dropna()
    for impute, value in (("median", known.median()), ("mean", known.mean())):
        table = read_table(frame, target="y", text="one-hot", impute=impute)
        np.testing.assert_allclose(table.X[[3, 5], 0], value)
        missing = table.feature_names.index("city=(missing)")
        assert table.X[:, missing].tolist() == [float(i == 7) for i in range(40)]
        assert f"filled by the {impute} of the column: a (2 rows)." in notes_of(table)
        assert "a level of its own, '(missing)': city (1 row)." in notes_of(table)
    table = read_table(frame, target="y", text="one-hot", impute="drop-rows")
    said = "3 rows with missing values left out: a (2 rows), city (1 row)."
    assert table.X.shape[0] == 37 and said in notes_of(table)
    # a gap in a column that is not used costs no row
    assert read_table(frame, target="y", text="drop", impute="drop-rows").X.shape[0] == 38


def test_rows_without_a_target_are_left_out(frame):
    """Whatever is done with gaps in other columns."""
    frame.loc[[3, 5, 6], "y"] = np.nan
    for impute in (None, "median", "drop-rows"):
        table = read_table(frame, target="y", impute=impute)
        assert len(table.y) == 37 == len(table.X)
        assert "3 rows of 40 without a target (y) left out." in notes_of(table)
    np.testing.assert_array_equal(table.y, frame["y"].dropna())
    cities = frame["city"].where(frame.index > 1)
    labels = read_table(frame.assign(city=cities), target="city", drop=["y"])
    assert len(labels.y) == 38 and set(labels.y) == {"Oslo", "Paris", "Rome"}
    with pytest.raises(ValueError, match="'y' has no value at all; give another --target"):
        read_table(frame.assign(y=np.nan), target="y")


def test_leaving_most_rows_out_is_said_with_what_would_help(frame):
    """The columns that cost the rows, and how many rows are left without them."""
    gaps = frame.assign(
        spare=frame["a"].where(frame.index < 4), b=frame["b"].where(frame.index != 2)
    )
    table = read_table(gaps, target="y", impute="drop-rows")
    assert len(table.y) == 3
    said = "leaves out 37 of 40 rows: spare (36 rows), b (1 row). --drop spare would keep 39 rows."
    assert said in notes_of(table)
    assert len(read_table(gaps, target="y", impute="drop-rows", drop=["spare"]).y) == 39
    with pytest.raises(ValueError, match=r"--drop NAME the column \(most rows lack spare\)"):
        read_table(gaps, target="y")


def test_missing_values_of_matrices(tmp_path, rng):
    X, y = rng.standard_normal((20, 3)), rng.standard_normal(20)
    X[4, 1] = np.nan
    np.savez(tmp_path / "t.npz", X=X, y=y)
    with pytest.raises(ValueError, match=r"x1 \(1 row\)"):
        read_table(tmp_path / "t.npz")
    table = read_table(tmp_path / "t.npz", impute="median")
    # 19 numbers: their median is one of them
    assert table.X[4, 1] == np.nanmedian(X[:, 1]) == table.recipe([1])[0].fill
    assert read_table(tmp_path / "t.npz", impute="drop-rows").X.shape == (19, 3)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    new = apply_recipe(read_raw(tmp_path / "t.npz"), table.recipe([0, 1]))
    np.testing.assert_array_equal(new, table.X[:, :2])


def test_new_rows_are_prepared_like_the_first_ones(frame):
    frame.loc[0, "a"] = np.nan
    table = read_table(
        frame, target="y", text="one-hot", dates="days", impute="median", levels="separate"
    )
    recipe = table.recipe(range(table.X.shape[1]))
    new = frame.iloc[::-1].assign(extra="ignored")[["extra", *frame.columns[::-1]]]
    np.testing.assert_array_equal(apply_recipe(read_raw(new), recipe), table.X[::-1])
    other = frame.head(2).assign(city="Lima")
    assert not apply_recipe(read_raw(other), recipe)[:, 2:5].any()
    with pytest.raises(ValueError, match=r"must hold the 2 columns \(b, flag\) of the model"):
        apply_recipe(read_raw(frame.drop(columns=["b", "flag"])), recipe)
    with pytest.raises(
        ValueError, match=r"Column 'b' must hold numbers, got 'many' in the row with index 0"
    ):
        apply_recipe(read_raw(frame.assign(b="many")), recipe)
    gaps = frame.assign(b=frame["b"].where(frame.index > 1))
    filled = apply_recipe(read_raw(gaps), recipe)[:2, 1]
    assert filled.tolist() == [frame["b"].median()] * 2
    strict = read_table(frame.tail(30), target="y", text="one-hot").recipe([1])
    with pytest.raises(ValueError, match=r"b \(2 rows\); the model has nothing to put there"):
        apply_recipe(read_raw(gaps), strict)


def test_labels_stay_labels(frame):
    assert read_table(frame, target="city").y[:3].tolist() == ["Paris", "Rome", "Oslo"]
    flags = read_table(frame, target="flag")
    assert flags.has_labels and flags.y.dtype == bool
    assert not read_table(frame, target="b").has_labels


def test_headers(tmp_path, frame):
    frame[["a", "b", "y"]].to_csv(tmp_path / "index.csv")
    table = read_table(tmp_path / "index.csv")
    assert table.feature_names == ("a", "b") and "numbers the rows" in notes_of(table)
    frame[["a", "b", "y"]].to_csv(tmp_path / "bare.csv", index=False, header=False)
    table = read_table(tmp_path / "bare.csv", target=2)
    assert table.feature_names == ("x0", "x1") and "no header" in notes_of(table)
    np.testing.assert_array_equal(table.X[:, 0], frame["a"])
    named = frame[["a", "b", "y"]].set_axis([0, 1, 2], axis=1)
    named.to_csv(tmp_path / "numbers.csv", index=False)
    assert read_table(tmp_path / "numbers.csv", target=2).X.shape == (40, 2)


def test_fingerprints_tell_data_apart(frame):
    first = read_table(frame, target="y").fingerprint
    assert first == read_table(frame.copy(), target="y").fingerprint
    assert first.startswith("sha256:") and len(first) == 71
    for changed in (frame.assign(a=frame.a + 1e-12), frame.assign(y=-frame.y)):
        assert read_table(changed, target="y").fingerprint != first
    renamed = frame.rename(columns={"a": "A"})
    assert read_table(renamed, target="y").fingerprint != first


def dirty(frame):
    return frame.assign(a=["?", *map(str, frame.a[1:])])


BAD = {
    "no target": (lambda f: f.drop(columns="y"), {}, r"Which column is to be explained"),
    "wrong target": (lambda f: f, {"target": "yy"}, r"no column 'yy'. Did you mean 'y'\?"),
    "far target": (lambda f: f, {"target": 9}, r"numbered 0 to 6, got 9"),
    "wrong drop": (lambda f: f, {"drop": ["aa"]}, r"no column 'aa'. Did you mean 'a'\?"),
    "drop by number": (lambda f: f, {"drop": ["1"]}, r"no column '1'"),
    "date target": (lambda f: f, {"target": "when"}, r"holds dates"),
    "text": (lambda f: f, {"text": "refuse"}, r"Columns of text: city; --text drop"),
    "dates": (lambda f: f, {"dates": "refuse"}, r"Columns of dates: when; --dates drop"),
    "dirty": (dirty, {}, r"'\?' in 1 of 40 rows .*index 0.*--na '\?'"),
    "complex": (lambda f: f.assign(a=f.a + 1j), {}, r"'a' holds complex numbers"),
    "one infinity": (lambda f: f.assign(a=[np.inf, *f.a[1:]]), {}, r"'a' holds infinity"),
    "nothing left": (lambda f: f[["when", "y"]], {}, r"No column is left to explain 'y'"),
    "one row": (lambda f: f.head(1).assign(z=2), {}, r"No column|At least 2 rows"),
    "choice": (lambda f: f, {"text": "onehot"}, r"`text` must be one of .*Did you mean 'one-hot'"),
    "impute": (lambda f: f, {"impute": "zero"}, r"`impute` must be one of"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_tables_are_refused(frame, case):
    change, options, pattern = BAD[case]
    with pytest.raises(ValueError, match=pattern):
        read_table(change(frame), **options)


FILES = {
    "t.csv": (b"", r"not a table"),
    "u.csv": (b"a,y\n1,2\n1,2,3\n", r"not a table|more values"),
    "l.csv": (b"a,y\n1,\x81\x8d\n", r"UTF-8"),
    "h.csv": (b"a,y\n", r"at least one row"),
    "t.svm": (b"1 1:2\n2 a:b\n", r"not a LIBSVM file: line 2 holds 'a:b', where column:value is"),
    "t.npz": (b"PK nothing", r"not an NPZ file"),
    "t.mat": (b"nothing", r"not a MAT file"),
    "t.parquet": (b"nothing", r"not a Parquet file|needs pyarrow"),
    "t.xls": (b"", r"\.xls files are not read; save it as CSV or \.xlsx"),
    "t.xyz": (b"", r"does not tell its format; known are .csv"),
}


@pytest.mark.parametrize("name", FILES)
def test_damaged_files_are_refused(tmp_path, name):
    content, pattern = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, ModuleNotFoundError), match=pattern):
        read_table(tmp_path / name, target="y")


def test_absent_files_are_refused_with_a_hint(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,2\n", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match=r"no file .*Did you mean .*data\.csv"):
        read_table(tmp_path / "dta.csv")
    # an end in common does not make names similar
    for name in ("prices.csv", "a.csv", "wine.csv"):
        with pytest.raises(FileNotFoundError, match=r"There is no file '[^']*'\.$"):
            read_table(tmp_path / name)


def test_arrays_that_would_run_code_are_not_loaded(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.array([[{}]], dtype=object))
    with pytest.raises(ValueError, match="plain arrays"):
        read_table(tmp_path / "t.npz")


def test_texts_that_are_no_categories_are_left_out(frame):
    """Free text, identifiers and what has too many values: each said as what it is."""
    frame = pd.concat([frame] * 5, ignore_index=True)
    rows = np.arange(200)
    frame = frame.assign(
        name=[f"n{i}" for i in rows], town=[f"t{i % 50}" for i in rows],
        remark=[f"said no {i % 150} times" for i in rows], short=[f"s{i % 30}" for i in rows],
    )  # fmt: skip
    table = read_table(frame, target="y")
    assert "as a whole: city (3 values), short (30 values); --levels" in notes_of(table)
    apart = read_table(frame, target="y", levels="separate")
    assert "columns of 0 and 1: city (3 values), short (30 values)." in notes_of(apart)
    assert "1 column (remark) of free text left out." in notes_of(table)
    assert "Left out as identifiers, with a different value in every row: name" in notes_of(table)
    assert "too many different values left out: town (50 values) (--max-levels 50 makes" in (
        notes_of(table)
    )
    more = read_table(frame, target="y", max_levels=50)
    assert "town=t7" in more.feature_names
    few = read_table(frame, target="y", max_levels=3)
    assert "city=Rome" in few.feature_names and "short=s1" not in few.feature_names
    # what was asked for is done, within the limit
    asked = read_table(frame.head(20), target="y", text="drop", as_category=["name"])
    assert "name=n7" in asked.feature_names and "city=Rome" not in asked.feature_names
    assert "name=n7" in read_table(frame.head(20), target="y", text="one-hot").feature_names
    with pytest.raises(ValueError, match="`max_levels` must be at least 2, got 1"):
        read_table(frame, target="y", max_levels=1)


def test_numbers_that_may_be_codes_are_told_with_both_options(frame):
    frame = frame.assign(shop=np.arange(40) % 4 + 1, sample_id=1000 + 7 * np.arange(40))
    table = read_table(frame, target="y")
    numbered = read_table(frame.rename(columns={"sample_id": "rowid"}), target="y")
    assert "Left out as identifiers, with a different value in every row: rowid" in notes_of(
        numbered
    )
    assert "taken as numbers: b (5 values), shop (4 values)." in notes_of(table)
    assert "--as-category b makes a category of them" in notes_of(table)
    assert "Left out as identifiers, with a different value in every row: sample_id" in notes_of(
        table
    )
    assert "sample_id" not in table.feature_names
    both = read_table(
        frame, target="y", as_category=["shop"], as_number=["b", "sample_id"], dates="days"
    )
    assert {"shop=2", "shop=4", "b", "sample_id"} < set(both.feature_names)
    assert "codes" not in notes_of(both) and "shop (4 values)" in notes_of(both)
    recipe = both.recipe(range(both.X.shape[1]))
    np.testing.assert_array_equal(apply_recipe(read_raw(frame[::-1]), recipe), both.X[::-1])
    gaps = frame.assign(shop=frame["shop"].where(frame.index != 3))
    assert "shop=4" in read_table(gaps, target="y", as_category=["shop"]).feature_names
    for key in ("as_category", "as_number"):
        with pytest.raises(ValueError, match=r"no column 'Shop'. Did you mean 'shop'\?"):
            read_table(frame, target="y", **{key: ["Shop"]})
    with pytest.raises(ValueError, match="'b' is to be a category and a number"):
        read_table(frame, target="y", as_category=["b"], as_number=["b"])
    with pytest.raises(ValueError, match="'city' must hold numbers, got 'Paris'"):
        read_table(frame, target="y", as_number=["city"])


def test_declared_categories_are_categories(tmp_path, frame):
    """Of a DataFrame or of Parquet, also where they are numbers."""
    frame["b"] = frame["b"].astype("category")
    table = read_table(frame, target="y")
    assert [name for name in table.feature_names if name.startswith("b")] == [
        f"b={i}" for i in range(1, 5)
    ]
    assert table.units[1][:2] == ("b", "b") and table.units[1].reference == "0"
    np.testing.assert_array_equal(table.X[:, table.feature_names.index("b=3")], frame["b"] == 3)
    recipe = table.recipe(range(table.X.shape[1]))
    np.testing.assert_array_equal(apply_recipe(read_raw(frame[::-1]), recipe), table.X[::-1])


def test_columns_that_others_determine_are_named(frame, rng):
    frame = frame.assign(total=frame["a"] + 2.0 * frame["b"] - 3.0, again=5.0 * frame["y"] + 1.0)
    table = read_table(frame.assign(y=rng.standard_normal(40)), target="y", drop=["again"])
    assert re.search(r"Columns that others determine: (a|b|total) \(by", notes_of(table))
    assert (
        all(name in table.notes[-1] for name in ("a", "b", "total"))
        and "city" not in (table.notes[-1])
    )
    assert "determine" not in notes_of(read_table(frame, target="y", drop=["total", "again"]))
    # also where the first rows alone would say more
    long = pd.DataFrame(rng.standard_normal((1500, 2)), columns=["u", "v"])
    long["w"] = long["u"].where(long.index < 1400, long["v"])
    assert not read_table(long.assign(y=long["u"] * long["v"]), target="y").notes
    same = long.assign(w=2.0 * long["u"], y=long["v"] ** 2)
    assert "determine: w (by u)" in notes_of(read_table(same, target="y")) or (
        "determine: u (by w)" in notes_of(read_table(same, target="y"))
    )


def test_markers_of_missing_values(tmp_path, frame):
    frame["a"] = frame["a"].astype(object)
    frame.loc[2, "a"] = "unknown"
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match="'unknown' in 1 of 40 rows"):
        read_table(tmp_path / "t.csv", target="y")
    table = read_table(tmp_path / "t.csv", target="y", na=["unknown"], impute="median")
    assert table.X.shape[1] == 5 and len(table.units) == 4


def test_names_tell_formats(tmp_path):
    assert [format_of(tmp_path / n) for n in ("a.CSV", "b.tsv.xz", "c.pq")] == [
        "csv",
        "csv",
        "parquet",
    ]


def test_rows_can_be_taken_before_anything_is_learned(frame):
    """The medians of a fit come from its own rows alone."""
    frame.loc[0, "a"] = np.nan
    raw = read_raw(frame)
    table = prepare(raw.take(np.arange(10)), target="y", impute="median")
    assert table.X[0, 0] == frame["a"][1:10].median()  # one of nine numbers


def test_many_columns_take_time_in_proportion():
    """Duplicates and names are looked up, not searched for; the square takes 20 s and more."""
    from blockl0.app.tables.csv_files import name_notes
    from blockl0.app.tables.formats import Raw, from_frame
    from blockl0.app.tables.rows import whole_rows
    from blockl0.app.tables.table import without_columns

    n = 40_000
    names = [f"c{j}" for j in range(n)]
    started = time.process_time()
    assert list(name_notes(names, True)) == []
    (note,) = name_notes([*names, "c7", "c39999"], True)
    assert "as c7.1: c7, c39999." in note
    with pytest.raises(ValueError, match="'c39999' more than once"):
        from_frame(pd.DataFrame(np.zeros((1, n + 1)), columns=[*names, "c39999"]))
    raw = Raw(np.zeros((2, n)), tuple(names))
    assert whole_rows(raw, names).all()
    assert len(without_columns(raw, names[5:]).names) == 5
    assert time.process_time() - started < 2.0


def test_a_column_named_as_a_value_of_a_category_is_refused():
    frame = pd.DataFrame({"shop": list("ABAB"), "shop=B": [1.0, 2.0, 3.0, 5.0], "y": range(4)})
    with pytest.raises(ValueError, match="Two columns would be called 'shop=B'"):
        read_table(frame, target="y")


def test_a_text_that_says_missing_beside_gaps_is_the_same_value(frame):
    frame["city"] = frame["city"].astype(object)
    frame.loc[[7, 9], "city"] = None
    frame.loc[11, "city"] = "(missing)"
    table = read_table(frame, target="y", text="one-hot", impute="mean")
    assert len(set(table.feature_names)) == len(table.feature_names)
    missing = table.feature_names.index("city=(missing)")
    assert np.flatnonzero(table.X[:, missing]).tolist() == [7, 9, 11]
