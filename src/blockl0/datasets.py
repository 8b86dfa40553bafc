"""The paper's data: random designs, and e2006 from a local file, optionally with outliers."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from blockl0.errors import warn_caller
from blockl0.text import clause, cut
from blockl0.validate import check_integer, check_nonnegative, check_random_state

if TYPE_CHECKING:
    import scipy.sparse as sp

Floats = NDArray[np.float64]

CORRUPTED_SHARE, CORRUPTED_FACTOR = 0.02, 100.0
"""The paper's outliers: this share of all entries is multiplied by this factor."""
E2006_VARIABLE = "BLOCKL0_E2006"
"""Environment variable for the path of the e2006 file."""
E2006_SOURCE = (
    "either 'E2006_5000_10000.mat', which the authors of the paper distribute with their code, or "
    "'E2006.train' (also compressed) of the data set E2006-tfidf in the regression section of the "
    "LIBSVM data collection"
)
"""Where to find e2006."""
E2006_SHA256 = "0fa60f912fa1e829033bf83c7fda56422d555e1ec52987a621835933a584cfdd"
"""SHA-256 of the authors' file, data/E2006_5000_10000.mat in github.com/yuangzh/SparseBlockK. Its
10,000 columns are a selection: 'E2006.train' has 150,360 and 16,087 rows, another population."""
LARGEST_HYPERGEOMETRIC = 10**9
"""NumPy draws hypergeometric numbers only below this population."""


def make_random(
    m: int,
    n: int,
    *,
    n_nonzero: int = 100,
    noise: float = 10.0,
    corrupted: bool = False,
    corrupted_noise: bool = False,
    return_coef: bool = False,
    random_state: Any = None,
) -> tuple[Floats, ...]:
    """Make the paper's 'random-m-n': X = randn(m, n), y = Xw + noise·randn(m).

    w has `n_nonzero` standard normal entries at random places.

    Parameters
    ----------
    m, n : int
        Rows and columns.
    n_nonzero : int
        Nonzeros of w, at most n.
    noise : float
        Standard deviation of the noise.
    corrupted : bool
        Multiply 2 % of the entries of X by 100 before y is formed: 'random-m-n-C'.
    corrupted_noise : bool
        Multiply 2 % of the entries of the noise by 100 as well. The paper does not mention this,
        but the eight objectives it prints for a method that stayed at its start lie at quantiles
        .13 to .93 of 150 such draws, and at .92 to 1 of draws without it; see docs/reproduce.md.
    return_coef : bool
        Return w too.
    random_state : int, Generator or None

    Returns
    -------
    X : ndarray (m, n)
        In Fortran order, so that `solve` does not copy it.
    y : ndarray (m,)
    w : ndarray (n,)
        Only with ``return_coef=True``.

    Examples
    --------
    >>> X, y, w = make_random(256, 1024, return_coef=True, random_state=0)
    >>> X.shape, y.shape, int((w != 0).sum())
    ((256, 1024), (256,), 100)
    """
    m, n = check_integer("m", m, low=1), check_integer("n", n, low=1)
    n_nonzero = check_integer("n_nonzero", n_nonzero, 0, n, "n")
    noise = check_nonnegative("noise", noise)
    rng = check_random_state(random_state)
    X = rng.standard_normal((n, m)).T
    if corrupted:
        _corrupt(X.T.reshape(-1), rng)
    w = np.zeros(n)
    w[rng.choice(n, n_nonzero, replace=False)] = rng.standard_normal(n_nonzero)
    error = noise * rng.standard_normal(m)
    if corrupted_noise:
        _corrupt(error, rng)
    y = X @ w + error
    return (X, y, w) if return_coef else (X, y)


def load_e2006(
    m: int | None = None,
    n: int | None = None,
    *,
    corrupted: bool = False,
    random_state: Any = None,
    path: str | os.PathLike[str] | None = None,
) -> tuple[sp.csc_array, Floats]:
    """Draw the paper's 'e2006-m-n': m rows and n columns, uniformly, of financial reports' tf-idf.

    Columns that are zero in the rows drawn are kept, as in the paper. For any file other than the
    authors', a warning says that the draws come from another population.

    Parameters
    ----------
    m, n : int, optional
        Rows and columns to draw; all of them by default. Rows and columns stay in their order.
    corrupted : bool
        Multiply 2 % of the m·n entries, zeros included, by 100: 'e2006-m-n-C'.
    random_state : int, Generator or None
    path : path-like, optional
        The file, see `read_e2006`.

    Returns
    -------
    X : scipy.sparse.csc_array (m, n)
    y : ndarray (m,)
    """
    rng = check_random_state(random_state)
    everything, target = read_e2006(path)
    _compare_with_authors(path)
    n_rows, n_columns = everything.shape
    rows = _draw("m", m, n_rows, "n_rows", rng)
    columns = _draw("n", n, n_columns, "n_columns", rng)
    X, y = everything[:, columns][rows], target[rows]
    if corrupted:
        _corrupt(X.data, rng, n_entries=rows.size * columns.size)
    return X, y


def read_e2006(path: str | os.PathLike[str] | None = None) -> tuple[Any, Floats]:
    """Read all of e2006 from a local file.

    Parameters
    ----------
    path : path-like, optional
        By default the environment variable BLOCKL0_E2006. A name that ends in ``.mat`` is read as
        the authors' MATLAB file (5000 x 10000, variables ``x`` and ``y``), any other as LIBSVM
        text, which may be compressed (``.bz2``, ``.gz``).

    Returns
    -------
    X : scipy.sparse.csc_array
    y : ndarray
    """
    if path is None:
        path = os.environ.get(E2006_VARIABLE) or None
    if path is None:
        raise FileNotFoundError(
            f"The file of e2006 is needed: give `path`, or set the environment variable "
            f"{E2006_VARIABLE}, to {E2006_SOURCE}."
        )
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {str(path)!r}; e2006 is {E2006_SOURCE}.")
    import scipy.sparse as sp  # slow, and not needed for random data

    matrix, y = _parse(file)
    X: Any = sp.csc_array(matrix, dtype=np.float64)
    X.sum_duplicates()
    y = np.asarray(y, dtype=np.float64).ravel()
    if X.shape[0] != y.size:
        raise ValueError(
            f"{str(path)!r} must hold one target for each row, got {X.shape[0]} rows and "
            f"{y.size} targets."
        )
    return X, y


def _compare_with_authors(path: str | os.PathLike[str] | None) -> None:
    """Warn of a file that is not the authors': the paper's numbers are not about its columns."""
    file = Path(path or os.environ[E2006_VARIABLE]).expanduser()
    with open(file, "rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != E2006_SHA256:
        warn_caller(
            f"{file.name!r} is not the e2006 file of the paper's authors (its sha256 begins with "
            f"{digest[:8]}, theirs with {E2006_SHA256[:8]}): the paper's numbers do not carry over "
            "to draws from it."
        )


def _parse(file: Path) -> tuple[Any, Any]:
    is_mat = file.suffix.lower() == ".mat"
    try:
        # columns in LIBSVM's own collection are numbered from 1
        return _x_and_y(read_mat(file)) if is_mat else read_libsvm(file, first_column=None)
    except Exception as error:  # the readers raise anything for a foreign file
        kind = "a MATLAB file with the variables 'x' and 'y'" if is_mat else "LIBSVM text"
        raise ValueError(
            f"{str(file)!r} cannot be read as {kind} ({error}); e2006 is {E2006_SOURCE}."
        ) from error


def _x_and_y(content: dict[str, Any]) -> tuple[Any, Any]:
    if "x" not in content or "y" not in content:
        raise ValueError(f"it holds {sorted(content)}")
    return content["x"], content["y"]


def _draw(
    name: str, size: int | None, total: int, total_name: str, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw `size` of `total` numbers, ascending, every subset equally likely."""
    if size is None:
        return np.arange(total)
    size = check_integer(name, size, 1, total, total_name)
    return np.sort(rng.choice(total, size, replace=False))


def _corrupt(entries: Floats, rng: np.random.Generator, n_entries: int | None = None) -> None:
    """Multiply the chosen share of `n_entries` by the factor, in place.

    Only the stored `entries` can change, since scaling a zero does nothing. So it suffices to draw
    how many of the chosen ones are stored, and then which.
    """
    total = entries.size if n_entries is None else n_entries
    chosen = round(CORRUPTED_SHARE * total)
    if entries.size == total:
        hit = chosen
    elif total < LARGEST_HYPERGEOMETRIC:
        hit = rng.hypergeometric(entries.size, total - entries.size, chosen)
    else:
        hit = rng.binomial(entries.size, CORRUPTED_SHARE)  # practically the same at this size
    entries[rng.choice(entries.size, int(hit), replace=False)] *= CORRUPTED_FACTOR


def read_libsvm(source: Any, *, first_column: int | None = 0) -> tuple[Any, Any]:
    """Read (X as a csc_array, y) from LIBSVM text: a path, possibly compressed, or a stream.

    `first_column` is the number that the file gives to its first column: 0, so that columns keep
    their numbers, or None to guess between 0 and 1, which may differ between two files.
    """
    from sklearn.datasets import load_svmlight_file

    read: Any = load_svmlight_file
    is_zero_based = "auto" if first_column is None else first_column == 0
    try:
        X, y = read(str(source) if isinstance(source, Path) else source, zero_based=is_zero_based)[
            :2
        ]
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(
            f"This is not a LIBSVM file: {_bad_line(source) or clause(error)}."
        ) from error
    from scipy.sparse import csc_array

    return csc_array(X), y


def _bad_line(source: Any) -> str:
    """Describe the first line that is not a target and column:value pairs, "" if not found."""
    try:
        text = source.getvalue() if hasattr(source, "getvalue") else Path(source).read_bytes()
    except OSError:
        return ""
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        for i, word in enumerate(line.split("#")[0].split()):
            column, between, value = word.partition(":")
            parts = [column] if i == 0 else [column.removeprefix("qid"), value]
            if (i > 0 and not between) or not all(map(_is_number, filter(None, parts))):
                return f"line {number} holds {cut(word)!r}, where column:value is expected"
    return ""


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_mat(source: Any) -> dict[str, Any]:
    """Read the variables of a MAT file, by name."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        arrays = loadmat(source)
    except NotImplementedError as error:
        raise ValueError("MAT files of version 7.3 are not read; save with '-v7'.") from error
    except (MatReadError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"This is not a MAT file: {clause(error)}.") from error
    return {name: value for name, value in arrays.items() if not name.startswith("__")}
