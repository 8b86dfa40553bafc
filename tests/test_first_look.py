"""What is refused before pandas is imported is what the reader refuses, in the same words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from blockl0.tables import prepare
from blockl0.tables.csv_files import refuse_layout
from blockl0.tables.first_look import refusal
from blockl0.tables.formats import read_raw
from cli_runner import run

OPTIONS = {
    "target": "y", "header": "auto", "na": (), "text": "auto", "impute": None, "drop": (),
    "as_category": (), "as_number": (), "test": None, "format": None,
}  # fmt: skip
CELLS = {
    "whole": lambda rng: str(rng.integers(-50, 50)),
    "code": lambda rng: str(rng.integers(0, 3)),
    "decimal": lambda rng: f"{rng.normal():.3f}",
    "large": lambda rng: str(rng.integers(10**6, 10**9)),
    "date": lambda rng: str(20120101 + rng.integers(0, 28)),
    "exponent": lambda rng: f"{rng.normal():.2e}",
    "word": lambda rng: str(rng.choice(["red", "green", "blue", "May"])),
    "name": lambda rng: "".join(rng.choice(list("abcdefgh"), 6)),
    "truth": lambda rng: str(rng.choice(["True", "False"])),
    "mixed": lambda rng: str(rng.choice(["1.5", "2", "x", "y"])),
    "price": lambda rng: f"${rng.integers(1, 9)}",
    "label": lambda rng: (
        f"{rng.choice(['P', 'Q', 'A-', 'USD ', 'USD', 'kg ', 'E', 'id_'])}{rng.integers(1, 2000)}"
    ),
    "empty": lambda rng: "",
}
ODD = ["", "NA", "abc", "P17", "EUR5", "?", "1,5", "inf", "nan", "true", " 3 ", "1.660", "n/a", "-"]


def make(rng):
    """A table of few rows as text, most cells plain."""
    n, m = int(rng.integers(1, 5)), int(rng.integers(3, 30))
    kinds = rng.choice(list(CELLS), n, p=[0.2, 0.1, 0.2] + [0.05] * 10)
    names = [f"c{j}" if rng.random() < 0.9 else "Id" for j in range(n)]
    rows = [[CELLS[kind](rng) for kind in kinds] for _ in range(m)]
    y = [CELLS[str(rng.choice(["decimal", "word"]))](rng) for _ in range(m)]
    if rng.random() < 0.8:
        y = [CELLS["decimal"](rng) for _ in range(m)]
    for _ in range(int(rng.integers(0, 4))):
        rows[int(rng.integers(m))][int(rng.integers(n))] = str(rng.choice(ODD))
    if rng.random() < 0.1:
        y[int(rng.integers(m))] = str(rng.choice(ODD))
    if rng.random() < 0.1:
        rows[int(rng.integers(m))].append("7")
    if rng.random() < 0.1:
        rows[int(rng.integers(m))] = rows[0][:1]
    sep = str(rng.choice([",", ";", "\t"]))
    quoted = [
        [f'"{c}"' if sep in c else c for c in (*row, end)] for row, end in zip(rows, y, strict=True)
    ]
    return "\n".join(sep.join(row) for row in [[*names, "y"], *quoted]) + "\n"


def slow_error(path):
    """What the reader says, None where it reads the file."""
    try:
        prepare(read_raw(path), target="y")
    except ValueError as error:
        return str(error)
    return None


def test_what_is_refused_at_once_is_refused_in_the_same_words(tmp_path):
    path, rng, n_refused = tmp_path / "table.csv", np.random.default_rng(0), 0
    for _ in range(250):
        path.write_text(make(rng))
        error = refusal(path, OPTIONS)
        if error is not None:
            n_refused += 1
            assert str(error) == slow_error(path), path.read_text()
    assert n_refused > 25


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ("1,2\n3,\n1,4\n2,4\n", "Missing values in 1 column: b (1 row)"),
        ("1,2\n3,4\n1,x\n2,4\n5,6\n7,8\n", "'b' holds numbers, but also 'x' in 1 of 6 rows"),
        ("1,2\n3,4,5\n", "row 3 holds 3 values, but the first row 2"),
        ("1,2\n3,4\n", "-k must be at most 1, the number of columns, got 3."),
    ],
)
def test_errors_that_need_the_cells_do_not_wait_for_pandas(tmp_path, cells, said):
    path = tmp_path / "table.csv"
    path.write_text("a,b\n" + cells)
    code = (
        "import sys; from blockl0.cli import main\n"
        f"try: main(['fit', {str(path)!r}, '--target', 'a', '-k', '3'])\n"
        "finally: print('pandas' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said in run.stderr and run.stdout.split() == ["False"]


REFUSED = [
    (["-t", "one"], "There is nothing to explain: 'one' is 7 in all 40 rows."),
    (["-t", "word"], "There is nothing to explain: 'word' is 'red' in all 40 rows."),
    (["-t", "US", "--loss", "huber"], "'US' holds labels (No, Yes); use --loss logistic."),
    (["-t", "y", "--keep", "US", "--levels", "separate"],
     "--keep US: 'US' is a category; give its values, as --keep US=Yes."),
    (["-t", "y", "--keep", "place", "--levels", "separate"],
     "as --keep place=Bad --keep place=Good --keep place=Medium."),
    (["-t", "id"], "'id' holds 40 different values in 40 rows ('n0"),
    (["-t", "y", "--keep", "US=Yess", "--drop", "one", "--drop", "word", "--drop", "id"],
     "--keep US=Yess: there is no such column for the fit. Did you mean 'US=Yes'?"),
]  # fmt: skip
ONE_BY_ONE = """
import sys
from blockl0.cli import main
for arguments in ALL:
    try:
        main(["fit", PATH, *arguments])
    except SystemExit:
        print("pandas" in sys.modules, file=sys.stderr)
"""


def write_table(path, first):
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal():.3f},{rng.normal():.3f},{rng.choice(['Yes', 'No'])},7,red,"
        f"{rng.choice(['Bad', 'Good', 'Medium'])},n{i}{first if i == 0 else 'a'}"
        for i in range(40)
    ]
    path.write_text("\n".join(["y,x,US,one,word,place,id", *rows]) + "\n", encoding="utf-8")


def test_targets_and_categories_are_refused_without_pandas(tmp_path):
    """One process for all: what none of them has imported was not needed by any."""
    path = tmp_path / "table.csv"
    write_table(path, "a")
    code = ONE_BY_ONE.replace("PATH", repr(str(path)))
    code = code.replace("ALL", repr([arguments for arguments, _ in REFUSED]))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    answers = done.stderr.split("False\n")
    assert len(answers) == len(REFUSED) + 1 and not answers[-1], done.stderr
    for answer, (_, said) in zip(answers, REFUSED, strict=False):
        assert said in answer


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_targets_and_categories_are_refused_as_after_reading(
    tmp_path, arguments, said, monkeypatch
):
    """In the same words where pandas has to read the file: here for the sake of an é."""
    path, seen = tmp_path / "table.csv", []
    monkeypatch.setattr(
        "blockl0.cli.data.read_raw", lambda *args, **how: seen.append(1) or read_raw(*args, **how)
    )
    for first, is_read in (("a", False), ("é", True)):
        write_table(path, first)
        assert said in run("fit", path, *arguments, code=3).stderr
        assert bool(seen) == is_read


@pytest.mark.parametrize(
    "arguments",
    [
        ["-k", "9", "--keep", "us=Yess"],
        ["--keep", "us=No"],
        ["--keep", "us=Noo"],
        ["--keep", "color=blu"],
        ["--keep", "color=blu", "--drop", "color"],
        ["--keep", "color=blu", "--max-levels", "2"],
        ["--keep", "color=blu", "--levels", "separate"],
        ["--keep", "x=2"],
        ["--keep", "y=1"],
        ["-k", "9", "--drop", " x"],
        ["-k", "9", "--drop", "x"],
        ["--positive", "us=Yess"],
    ],
)
def test_what_is_wrong_at_once_is_what_is_wrong_after_reading(tmp_path, arguments, monkeypatch):
    path, rng = tmp_path / "table.csv", np.random.default_rng(3)
    rows = [
        f"{rng.normal():.3f},{rng.normal():.3f},{rng.choice(['Yes', 'No'])},"
        f"{rng.choice(['blue', 'red', 'green'])}"
        for _ in range(40)
    ]
    path.write_text("\n".join(["y,x,us,color", *rows]) + "\n")
    command = (
        "fit",
        path,
        "-t",
        "y",
        "-q",
        *arguments,
        *([] if "-k" in arguments else ["-k", "2"]),
    )
    early = run(*command, code=3)
    monkeypatch.setattr("blockl0.cli.data.refuse_unknown", lambda options: None)
    late = run(*command, code=3)
    assert [line for line in early.stderr.splitlines() if line.startswith("Error")] == [
        line for line in late.stderr.splitlines() if line.startswith("Error")
    ]


def test_blanks_around_texts_are_no_part_of_them(tmp_path):
    path, rng = tmp_path / "table.csv", np.random.default_rng(4)
    rows = [f"{rng.normal():.2f},{rng.choice(['A', 'A ', 'B'])}" for _ in range(40)]
    path.write_text("\n".join(["x,c", *rows]) + "\n")
    assert set(prepare(read_raw(path), target="c").y) == {"A", "B"}
    assert prepare(read_raw(path), target="x").feature_names == ("c=B",)
    path.write_text("\n".join(["x,c", *(row.replace("B", "A") for row in rows)]) + "\n")
    said = "There is nothing to explain: 'c' is 'A' in all 40 rows."
    assert said in run("fit", path, "-t", "c", "-k", "1", code=3).stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty."),
        (b"\n\n", "the file is empty."),
        (b"PK\x03\x04aaaa", "This is no text, but an Excel workbook"),
        (b"sep=;\na;y\n1;2\n", "The first line, 'sep=;', is for Excel alone"),
        (b"a y\n1 2\n3 4\n", "The columns are separated by blanks"),
    ],
)
def test_what_is_no_table_is_refused_at_once_in_the_same_words(tmp_path, content, said):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=said) as error:
        refuse_layout(path)
    assert str(error.value) == slow_error(path)


def test_a_file_with_anything_to_interpret_is_left_to_the_reader(tmp_path):
    path = Path(tmp_path / "table.csv")
    for content in ("y,a\n1,2\n2,\n3,4\n", "y;a\n1,5;2\n2,5;\n3,1;2\n", "y,a\n1,é\n2,\n"):
        path.write_text(content, encoding="utf-8")
        for more in ({"impute": "median"}, {"as_category": ("a",)}, {"test": 0.5}):
            assert refusal(path, {**OPTIONS, **more}) is None


def marks(rng):
    """A table of columns that are each written with decimal commas, points or neither."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(4, 12))
    styles = rng.choice(["comma", "point", "whole", "group", "both", "word"], n + 1)

    def cell(style):
        style = str(rng.choice(["comma", "point"])) if style == "both" else style
        number = f"{rng.integers(1, 40)}.{rng.integers(1, 100)}"
        group = f"{rng.integers(1, 9)}.{rng.integers(100, 999)}"
        return {
            "comma": number.replace(".", ","), "point": number, "whole": number.split(".")[0],
            "group": group, "word": str(rng.choice(["red", "blue"])),
        }[style]  # fmt: skip

    rows = [[cell(style) for style in styles] for _ in range(m)]
    if rng.random() < 0.2:
        rows[int(rng.integers(m))][int(rng.integers(n))] = str(rng.choice(ODD))
    names = [*(f"c{j}" for j in range(n)), "y"]
    return "\n".join(";".join(row) for row in [names, *rows]) + "\n"


def test_mixed_decimal_marks_are_refused_at_once_in_the_same_words(tmp_path):
    path, rng, n_refused = tmp_path / "table.csv", np.random.default_rng(1), 0
    for _ in range(250):
        path.write_text(marks(rng))
        error = refusal(path, OPTIONS)
        if error is not None:
            n_refused += "decimal" in str(error)
            assert str(error) == slow_error(path), path.read_text()
    assert n_refused > 25
    # an option decides, and a column that is left out decides nothing
    path.write_text("a;b;y\n1,5;2.25;3\n2,5;3.75;1\n")
    assert "decimal point in row 2, '2.25'" in str(refusal(path, OPTIONS))
    assert refusal(path, {**OPTIONS, "decimal": "comma"}) is None
    assert refusal(path, {**OPTIONS, "drop": ("b",)}) is None
