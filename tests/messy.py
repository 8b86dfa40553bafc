"""Three tables as people send them, made from scikit-learn's data: for demos, teaching and tests.

``python tests/messy.py FOLDER`` writes them; nothing is downloaded. `clean_tables` returns the same
numbers without the mess, to compare with what was read.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

TARGETS = {"patients.csv": "progression", "wines.csv": "proline", "tumours.txt": "diagnosis"}
"""The files, and the target of each."""
CULTIVARS = ("Barolo", "Grignolino", "Barbera")
REMARKS = (
    'Came back twice; says "better, on the whole".',
    "Asked for the results by letter, not by phone.",
    "Could not come in the morning, moved to the next day.",
    "Second sample taken,\nthe first one was spoilt.",
    "Nothing unusual to report this time.",
)


def make_messy_tables(folder: str | os.PathLike[str]) -> dict[str, Path]:
    """Write the three tables into a folder, creating it if necessary.

    ``patients.csv``
        442 patients (`load_diabetes`, in its real units) as a European spreadsheet saves them:
        semicolons, Windows-1252, decimal commas, points between thousands, dates as 31.01.2012,
        "k. A." for an unknown value, patients without a target, a column that is nearly
        empty.
    ``wines.csv``
        178 wines (`load_wine`) as an American one saves them: commas, quotes, a mark at the
        beginning, 14.2%, $1,250.00, (3.1) for a negative number, dates as 01/31/2012, tasting notes
        over two lines, tank numbers as codes.
    ``tumours.txt``
        569 tumours (`load_breast_cancer`) as "Unicode text": tabs, UTF-16, thousands separated by
        blanks and by apostrophes, a Unicode minus, dates as 20120131, two columns of one name, an
        empty column, a number for each sample.

    Parameters
    ----------
    folder : path-like

    Returns
    -------
    dict of Path
        Paths by file name; `TARGETS` has the target of each.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(path.name for path in make_messy_tables(folder).values())
    ['patients.csv', 'tumours.txt', 'wines.csv']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    clean = clean_tables()
    written = {}
    for name, write in _WRITERS.items():
        written[name] = folder / name
        written[name].write_bytes(write(clean[name]))
    return written


def clean_tables() -> dict[str, Any]:
    """Return the contents by file name: DataFrames of numbers, texts, dates and gaps."""
    return {name: make() for name, make in _MAKERS.items()}


# -- what is meant ---------------------------------------------------------------------------------


def _patients() -> Any:
    from sklearn.datasets import load_diabetes

    data = _frame(load_diabetes, scaled=False)
    rows = np.arange(len(data))
    clinics = np.array(["Köln", "Lübeck", "Jena", "Ulm"])
    made = {
        "patient": [f"P-{1000 + i}" for i in rows],
        "visit": _days(rows, len(rows)),
        "clinic": clinics[rows * 7 // 3 % 4],
        "age": data["age"],
        "sex": data["sex"],
        "bmi": _gaps(data["bmi"], 0.04, 11),
        "pressure": data["bp"],
        "cholesterol": (10.0 * data["s1"]).round(),  # mg/l, so that there are thousands
        "ldl": (10.0 * data["s2"]).round(),
        "hdl": data["s3"],
        "ratio": data["s4"],
        "triglycerides": data["s5"],
        "glucose": data["s6"],
        "followup": _gaps(data["s6"] - 0.5, 0.9, 3),
        "remark": _remarks(rows),
        "progression": _gaps(data["target"], 0.03, 29),
    }
    return _table(made)


def _wines() -> Any:
    from sklearn.datasets import load_wine

    data = _frame(load_wine)
    rows = np.arange(len(data))
    made = {
        "lot": [f"{CULTIVARS[int(c)][:3].upper()}{10_000 + 37 * i}" for i, c in zip(
            rows, data["target"], strict=True)],
        "bottled": _days(rows, len(rows)),
        "cultivar": np.array(CULTIVARS)[data["target"].to_numpy(int)],
        "alcohol": data["alcohol"],
        "acid": data["malic_acid"],
        "ash": _gaps(data["ash"], 0.05, 17),
        "magnesium": data["magnesium"],
        "phenols": data["total_phenols"],
        "flavanoids": data["flavanoids"],
        "colour": data["color_intensity"],
        "hue": data["hue"],
        "tank": rows * 11 % 6 + 1,
        # centred, so that some numbers are negative
        "tone": (data["proanthocyanins"] - 1.59).round(2),
        "price": (200.0 * data["color_intensity"] + 7.5 * (rows * 13 % 10)).round(2),
        "note": _remarks(rows),
        "proline": data["proline"],
    }  # fmt: skip
    return _table(made)


def _tumours() -> Any:
    from sklearn.datasets import load_breast_cancer

    data = _frame(load_breast_cancer)
    rows = np.arange(len(data))
    made = {
        "sample id": 84_000 + 91 * rows,
        "taken": _days(rows, len(rows)),
        "site": np.array(["left", "right", "both"])[rows * 5 // 2 % 3],
        "texture": data["mean texture"],
        "texture.1": data["texture error"],
        "smoothness": _gaps(100.0 * data["mean smoothness"], 0.03, 7).round(3),
        "symmetry": (100.0 * data["mean symmetry"] - 18.0).round(2),
        "area": data["worst area"].round(),
        "perimeter": (10.0 * data["worst perimeter"]).round(),
        "fractal": (1000.0 * data["mean fractal dimension"]).round(2),
        "spare": np.full(len(rows), np.nan),
        "remark": _remarks(rows),
        "diagnosis": np.array(["malignant", "benign"])[data["target"].to_numpy(int)],
    }
    return _table(made)


def _frame(load: Any, **options: Any) -> Any:
    return load(as_frame=True, **options).frame.astype(np.float64)


def _table(columns: dict[str, Any]) -> Any:
    import pandas

    return pandas.DataFrame(columns)


def _days(rows: Any, n: int) -> Any:
    """Return shuffled dates in the year 2012."""
    import pandas

    return pandas.Timestamp("2012-01-01") + pandas.to_timedelta(rows * 101 % min(n, 366), "D")


def _gaps(values: Any, share: float, shift: int) -> Any:
    """Remove some values."""
    rows = np.arange(len(values))
    return values.where((rows * 7919 + shift * 631) % 1000 >= 1000 * share)


def _remarks(rows: Any) -> list[str | None]:
    """Make remarks that are all different, or missing."""
    return [None if i % 7 == 3 else f"{i + 1}. {REMARKS[i * 3 % len(REMARKS)]}" for i in rows]


# -- how it is written -----------------------------------------------------------------------------


def _write_patients(clean: Any) -> bytes:
    spelled = {name: clean[name] for name in clean}
    spelled["visit"] = clean["visit"].dt.strftime("%d.%m.%Y")
    for name in ("age", "sex"):
        spelled[name] = _spell(clean[name], "{:.0f}".format)
    for name, places in {"bmi": 1, "pressure": 2, "hdl": 1, "ratio": 2, "triglycerides": 4,
                         "glucose": 0, "followup": 1, "progression": 0}.items():  # fmt: skip
        spelled[name] = _spell(clean[name], _european(places))
    for name in ("cholesterol", "ldl"):
        spelled[name] = _spell(clean[name], _european(0))
    spelled["bmi"] = spelled["bmi"].fillna("k. A.")
    return _csv(spelled, ";", "cp1252")


def _write_wines(clean: Any) -> bytes:
    spelled = {name: clean[name] for name in clean}
    spelled["bottled"] = clean["bottled"].dt.strftime("%m/%d/%Y")
    spelled["alcohol"] = _spell(clean["alcohol"], "{:.2f}%".format)
    spelled["tone"] = _spell(clean["tone"], lambda v: f"({-v:.2f})" if v < 0 else f"{v:.2f}")
    spelled["price"] = _spell(clean["price"], "${:,.2f}".format)
    for name in ("magnesium", "proline"):
        spelled[name] = _spell(clean[name], "{:,.0f}".format)
    spelled["ash"] = _spell(clean["ash"], str).fillna("n/a")
    return _csv(spelled, ",", "utf-8-sig")


def _write_tumours(clean: Any) -> bytes:
    spelled = {name: clean[name] for name in clean}
    spelled["taken"] = clean["taken"].dt.strftime("%Y%m%d")
    spelled["symmetry"] = _spell(clean["symmetry"], lambda v: f"{v:.2f}".replace("-", "\u2212"))
    spelled["area"] = _spell(clean["area"], lambda v: f"{v:,.0f}".replace(",", "\u00a0"))
    spelled["perimeter"] = _spell(clean["perimeter"], lambda v: f"{v:,.0f}".replace(",", "'"))
    text = _csv(spelled, "\t", "utf-8").decode().replace("texture.1", "texture", 1)
    return text.encode("utf-16")


def _spell(values: Any, spell: Callable[[Any], str]) -> Any:
    return values.map(spell, na_action="ignore").astype(object)


def _european(places: int) -> Callable[[float], str]:
    marks = str.maketrans(",.", ".,")
    return lambda value: f"{value:,.{places}f}".translate(marks)


def _csv(columns: dict[str, Any], separator: str, encoding: str) -> bytes:
    """Write CSV as spreadsheets do, with Windows line ends."""
    text = _table(columns).to_csv(sep=separator, index=False, lineterminator="\r\n")
    return text.encode(encoding)


_MAKERS: dict[str, Callable[[], Any]] = {
    "patients.csv": _patients, "wines.csv": _wines, "tumours.txt": _tumours,
}  # fmt: skip
_WRITERS: dict[str, Callable[[Any], bytes]] = {
    "patients.csv": _write_patients, "wines.csv": _write_wines, "tumours.txt": _write_tumours,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``python tests/messy.py FOLDER``: write the tables and name them."""
    parser = argparse.ArgumentParser(
        prog="python tests/messy.py",
        description="Write three messy tables, made from scikit-learn's data.",
    )
    parser.add_argument("folder", nargs="?", default="messy", help="default: messy")
    folder = parser.parse_args(arguments).folder
    names = list(make_messy_tables(folder))
    sys.stdout.write(f"{', '.join(names)} are in {folder}\n")


if __name__ == "__main__":
    main()
