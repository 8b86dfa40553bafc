"""Reading data files: CSV, Excel, Parquet, LIBSVM, NPZ, MAT, or standard input."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from blockl0.app.tables.csv_files import read_csv
from blockl0.app.tables.csv_text import PACKED, PLAIN, Dialect, make_dialect
from blockl0.app.tables.decimals import Decimals, Shown, resolve_decimals
from blockl0.app.tables.excel import Sheet, read_excel
from blockl0.datasets import read_libsvm, read_mat
from blockl0.files import check_exists
from blockl0.text import clause, install_hint
from blockl0.validate import check_choice, is_sparse

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
    ".mat": "mat",
}
"""Format of a file by its suffix."""
KINDS = tuple(dict.fromkeys(FORMATS.values()))
SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
"""Spreadsheets that are not read, but can be saved in another format."""
MATRIX_NAMES, TARGET_NAMES = ("X", "x", "A", "data"), ("y", "Y", "target", "b", "label", "labels")
"""Names of a matrix and its target in NPZ and MAT files, in order of preference."""
STDIN = "standard input"
USUAL_TARGETS = ("y", "target")
"""Columns of a table taken for the target if none is named."""


@dataclass(frozen=True, eq=False)
class Raw:
    """The content of a file, before any decision about its columns.

    Attributes
    ----------
    data : DataFrame, ndarray or csc_array (m, n)
    names : tuple of str
        Names of the columns.
    y : ndarray (m,) or None
        A target that the file holds apart from the columns.
    y_name : str
        Its name.
    source : str
    notes : tuple of str
    is_open : bool
        Whether columns that are not mentioned are zero, as in LIBSVM files.
    decimal : "point" or "comma"
        How its texts write numbers.
    doubts : dict of str
        Columns with ambiguous numbers, and why; they are refused when used.
    """

    data: Any
    names: tuple[str, ...]
    y: Any = None
    y_name: str = "y"
    source: str = "data"
    notes: tuple[str, ...] = ()
    is_open: bool = False
    decimal: str = "point"
    doubts: Mapping[str, str] = field(default_factory=dict)

    def refuse_doubts(self, columns: Iterable[str]) -> None:
        """Raise for the first of these columns that is ambiguous."""
        for name in columns:
            if name in self.doubts:
                raise ValueError(self.doubts[name])

    @property
    def is_frame(self) -> bool:
        """Whether columns may be of different kinds."""
        return hasattr(self.data, "iloc")

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.data.shape[0])

    def take(self, rows: Any) -> Raw:
        """Return a copy with some of the rows."""
        if self.is_frame:
            data = self.data.iloc[rows]
        else:
            data = self.data
            data = data.tocsr()[rows].tocsc() if is_sparse(data) else data[rows]
        return replace(self, data=data, y=None if self.y is None else self.y[rows])


def read_raw(
    source: Any,
    *,
    format: str | None = None,
    na: Iterable[str] = (),
    header: str = "auto",
    as_text: Iterable[str] = (),
    decimal: str = "auto",
    likely_decimal: str | None = None,
    sheet: str | int | None = None,
    **written: Any,
) -> Raw:
    """Read a file, standard input for "-", or a DataFrame.

    Parameters
    ----------
    source : path-like, "-", or DataFrame
    format : "csv", "excel", "parquet", "libsvm", "npz" or "mat", optional
        By default from the name; CSV, with any separator, for standard input.
    na : sequence of str
        Texts to treat as missing, besides the empty one, NA, NaN, null and the like.
    header : "auto" (default), "yes" or "no"
        Whether the first line of a CSV file holds the names.
    as_text : sequence of str
        Columns of a CSV file to read as text even if they look like numbers, such as 01.
    decimal : "auto" (default), "point" or "comma"
        Decimal separator of a CSV file. By default a comma if some numeric column cannot be read
        otherwise; points then separate thousands, and decimal points are refused.
    likely_decimal : "point" or "comma", optional
        Decimal separator of a file of the same origin: 1.660 is refused if nothing else decides.
    sheet : str or int, optional
        Which Excel sheet to read, by name or number from 1.
    **written
        How a CSV file is written: the options of `csv_text.Dialect`, None for the default.
        `skip_rows` applies to Excel files as well.
    """
    dialect = make_dialect(written)
    check_choice("header", header, ("auto", "yes", "no"))
    check_choice("decimal", decimal, ("auto", "point", "comma"))
    spelled = {"decimal": decimal, "as_text": tuple(as_text)}
    if hasattr(source, "iloc"):
        return replace(from_decimals(from_frame(source, **spelled)), source="a DataFrame")
    if str(source) == "-":
        name, stream = STDIN, io.BytesIO(sys.stdin.buffer.read())
        kind = format or "csv"
    else:
        name, stream = str(source), check_exists(source)
        kind = format or format_of(stream)
    if sheet is not None and kind != "excel":
        raise ValueError(f"{name} has no sheets: --sheet is for Excel files.")
    is_likely = likely_decimal == "comma"
    if kind != "csv":
        _refuse_dialect(name, dialect, kind)
    if kind == "csv":
        how = {"na": tuple(na), "header": header, "is_likely": is_likely, "dialect": dialect}
        raw = _read_csv(stream, **how, **spelled)
    elif kind == "excel":
        how = {"na": tuple(na), "header": header, "sheet": sheet, "skip_rows": dialect.skip_rows}
        raw = _from_sheet(read_excel(stream, **how), spelled)
    elif kind == "parquet":
        raw = from_decimals(from_frame(_read_parquet(stream, tuple(na)), **spelled))
    else:
        raw = _READERS[kind](stream)
    if raw.n_rows == 0 or not raw.names:
        raise ValueError(" ".join((no_rows(name), *raw.notes)))
    return replace(raw, source=name)


def _refuse_dialect(name: str, dialect: Dialect, kind: str) -> None:
    """Refuse options of CSV files for other formats."""
    for option, default in vars(PLAIN).items():
        if getattr(dialect, option) != default and (option, kind) != ("skip_rows", "excel"):
            shown = option.replace("_", "-")
            raise ValueError(f"{name} is no CSV file: --{shown} is for these.")


def no_rows(name: str) -> str:
    """Write the error for an empty source."""
    return f"{name} must hold at least one row and one column besides a header."


def format_of(path: Path) -> str:
    """Return the format that a file name indicates."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    if suffixes and suffixes[-1] in FORMATS:
        return FORMATS[suffixes[-1]]
    if suffixes and suffixes[-1] in SPREADSHEETS:
        raise ValueError(f"{suffixes[-1]} files are not read; save it as CSV or .xlsx.")
    raise ValueError(
        f"The name {path.name!r} does not tell its format; known are {', '.join(FORMATS)}. "
        f"Give --format {', '.join(KINDS[:-1])} or {KINDS[-1]}."
    )


# -- tables with named columns ---------------------------------------------------------------------


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ModuleNotFoundError(f"Tables need pandas: {install_hint('pandas')}.") from error
    return pandas


def _read_csv(stream: Any, **how: Any) -> Raw:
    _pandas()
    return from_decimals(read_csv(stream, **how))


def from_decimals(read: Decimals) -> Raw:
    """Wrap a frame whose decimals have been resolved."""
    names = tuple(str(name) for name in read.frame.columns)
    return Raw(read.frame, names, notes=tuple(read.notes), decimal=read.decimal, doubts=read.doubts)


def _from_sheet(read: Sheet, spelled: dict[str, Any]) -> Raw:
    raw = from_decimals(from_frame(read.frame, **spelled))
    return replace(raw, notes=(*read.notes, *raw.notes))


def pyarrow_parquet(path: Path) -> Any:
    """Open a Parquet file to be read in parts; the caller closes it."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Reading Parquet needs pyarrow: {install_hint('pyarrow')}."
        ) from error
    try:
        return ParquetFile(path)
    except (OSError, ArrowException) as error:
        raise ValueError(f"{path.name} is not a Parquet file: {clause(error)}.") from error


def _read_parquet(stream: Any, na: tuple[str, ...]) -> Any:
    try:
        frame = _pandas().read_parquet(stream)
    except ImportError as error:
        raise ModuleNotFoundError(
            f"Reading Parquet needs pyarrow: {install_hint('pyarrow')}."
        ) from error
    except (OSError, ValueError) as error:
        raise ValueError(f"This is not a Parquet file: {error}.") from error
    return frame.replace(list(na), np.nan) if na else frame


def from_frame(
    frame: Any, decimal: str = "auto", as_text: Iterable[str] = (), shown: Shown | None = None
) -> Decimals:
    """Check a frame, converting numbers that are spelled as text."""
    names = tuple(str(name) for name in frame.columns)
    if len(set(names)) < len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"Column names must differ, got {twice!r} more than once.")
    frame = frame.set_axis(list(names), axis=1)
    return resolve_decimals(frame, None, decimal=decimal, as_text=set(as_text), shown=shown)


# -- matrices --------------------------------------------------------------------------------------


def _read_libsvm(stream: Any) -> Raw:
    X, y = read_libsvm(stream)
    return Raw(X, tuple(f"x{j}" for j in range(X.shape[1])), y, "label", is_open=True)


def _read_npz(stream: Any) -> Raw:
    try:
        with np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise ValueError(f"This is not an NPZ file of plain arrays: {clause(error)}.") from error
    if {"format", "shape", "data"} <= arrays.keys():
        if isinstance(stream, io.BytesIO):
            stream.seek(0)
        import scipy.sparse as sp  # slow to import, and no other format needs it

        matrix: Any = sp.csc_array(sp.load_npz(stream))
        return Raw(matrix, tuple(f"x{j}" for j in range(matrix.shape[1])))
    return _from_arrays(arrays)


def _read_mat(stream: Any) -> Raw:
    return _from_arrays(read_mat(stream))


def _from_arrays(arrays: dict[str, Any]) -> Raw:
    """Pick the matrix, the target and the names among named arrays."""
    matrices = [k for k, v in arrays.items() if v.ndim == 2 and v.dtype.kind in "biuf"]
    large = [name for name in matrices if min(arrays[name].shape) > 1]
    known = [name for name in MATRIX_NAMES if name in matrices] or large
    if not known or (known == large and len(large) > 1):
        raise ValueError(
            f"The file must hold one matrix of numbers, or name it X; it holds {sorted(arrays)}."
        )
    name = known[0]
    X: Any = arrays[name]
    X = X.tocsc().astype(np.float64) if is_sparse(X) else np.asarray(X, dtype=np.float64)
    vectors = {
        other: np.ravel(array)
        for other, array in arrays.items()
        if other != name and not is_sparse(array) and array.size == X.shape[0]
    }
    target = next((known for known in TARGET_NAMES if known in vectors), None)
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    for key in ("feature_names", "names", "columns"):
        if key in arrays and np.size(arrays[key]) == X.shape[1]:
            names = tuple(_text(entry) for entry in np.ravel(arrays[key]))
    return Raw(X, names, None if target is None else vectors[target], target or "y")


def _text(entry: Any) -> str:
    """Return a name; MAT files wrap the texts of a cell array in arrays."""
    return str(entry.item() if isinstance(entry, np.ndarray) and entry.size == 1 else entry).strip()


_READERS: dict[str, Callable[[Any], Raw]] = {
    "libsvm": _read_libsvm,
    "npz": _read_npz,
    "mat": _read_mat,
}
