"""Genotypes in PLINK's `.bed` files: read by bed-reader, two bits each, one byte in memory.

A genotype is 0, 1 or 2 copies of an allele, or missing, which is refused unless it is to be filled
with the mean of its column. Columns are standardized when read, with means and spreads computed
when a block is first read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockl0.data.block import ArrayBlock, Block
from blockl0.data.source import ReadAhead, Source, even_parts, limits_of
from blockl0.files import check_exists
from blockl0.text import count
from blockl0.validate import check_choice, check_X

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.int8]

MISSING = -127
"""Code of bed-reader for a missing genotype."""


def open_file(X: Any, memory_limit: float | None = None) -> Source:
    """Open a path or a `bed_reader.open_bed`, refusing missing genotypes."""
    return open_bed(X, memory_limit=memory_limit)


def open_bed(
    path: Any,
    *,
    impute: str | None = None,
    standardize: bool = False,
    covariates: Any = None,
    memory_limit: float | None = None,
    like: BedFile | None = None,
) -> BedFile:
    """Open a PLINK file of genotypes as X for `solve`, `l0_path` and the estimators.

    Parameters
    ----------
    path : path-like or bed_reader.open_bed
        The `.bed` file, with its `.bim` and `.fam` beside it.
    impute : None (default) or "mean"
        How to treat missing genotypes: refuse them, or fill in the mean of their column.
    standardize : bool
        Whether to centre columns and divide them by their standard deviation. A ridge then
        treats rare and common variants alike; without a ridge the choice is the same.
    covariates : array-like (m, c), optional
        Columns to put before the genotypes, such as age or principal components. With
        ``keep=range(c)`` they are always in the model.
    memory_limit : float, optional
        Memory that a search may use, in bytes.
    like : BedFile, optional
        The file of the same variants that a model was fitted to, whose means and standard
        deviations are then used. Needed to predict for other samples.

    Returns
    -------
    BedFile
        A source of shape (m, c + variants); its `names` are those of the covariates and variants.
    """
    if impute is not None:
        check_choice("impute", impute, ("mean",))
    bed = path if hasattr(path, "sid_count") else _open(check_exists(path))
    return BedFile(bed, impute == "mean", standardize, covariates, memory_limit, like)


def _open(path: Path) -> Any:
    try:
        import bed_reader
    except ImportError as error:
        raise ImportError(
            f"{str(path)!r} is read by bed-reader, which is not installed; "
            "pip install 'blockl0[plink]'."
        ) from error
    try:
        return bed_reader.open_bed(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{str(path)!r} cannot be read as genotypes: {error}") from error


class Shares(NamedTuple):
    """Preprocessing of a block of genotypes: fill values for gaps, means to subtract, scales.

    A field is None if that step is skipped.
    """

    fill: Floats | None
    means: Floats | None
    scales: Floats | None

    def cut(self, idx: Any) -> Shares:
        """Restrict to some columns."""
        return Shares(*(None if a is None else a[idx] for a in self))

    def change(self, G: Bytes) -> Floats:
        """Convert genotypes (m, k) to float64, as a new array."""
        X = np.array(G, dtype=np.float64, order="F")
        if self.fill is not None:
            gaps = G == MISSING
            if gaps.any():
                X[gaps] = np.broadcast_to(self.fill, X.shape)[gaps]
        if self.means is not None and self.scales is not None:
            X -= self.means
            X *= self.scales
        return X


class Genotypes(ArrayBlock):
    """Block of genotypes (m, c), one byte each, preprocessed when read."""

    def __init__(self, G: Bytes, shares: Shares) -> None:
        super().__init__(G)
        self.shares = shares

    def columns(self, idx: Any) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k); idx may be a slice."""
        return self.shares.cut(idx).change(self.X[:, idx])


class BedFile(Source):
    """Source of covariates in memory and genotypes in a file; see `open_bed`.

    Attributes
    ----------
    names : ndarray of str (n,)
        x0, x1, … or those of a data frame for covariates, and the variants' names.
    """

    engine: ReadAhead = ReadAhead()
    bed: Any
    is_filled: bool
    is_standardized: bool
    shape: tuple[int, int]
    held_bytes: int

    def __init__(
        self,
        bed: Any,
        is_filled: bool,
        is_standardized: bool,
        covariates: Any,
        limit: Any,
        like: BedFile | None = None,
    ) -> None:
        self.bed, self.is_filled, self.is_standardized = bed, is_filled, is_standardized
        self.like = like
        if like is not None and not np.array_equal(like.bed.sid, bed.sid):
            raise ValueError("`like` must be a file of the same variants, in the same order.")
        m, n = int(bed.iid_count), int(bed.sid_count)
        self.covariates: Floats = _covariates(covariates, m)
        c, limits = self.covariates.shape[1], limits_of(limit)
        self.shape, self.held_bytes = (m, c + n), limits.held
        # two bits each, and every variant starts on a new byte
        self.nbytes: int = (m + 3) // 4 * n + self.covariates.nbytes
        files = even_parts((m, n), 1, limits.block)
        moved = tuple(slice(part.start + c, part.stop + c) for part in files)
        self.parts: tuple[slice, ...] = (*((slice(0, c),) if c else ()), *moved)
        self._shares: dict[int, Shares] = {}
        self._given = covariates

    @property
    def names(self) -> NDArray[Any]:
        """Names of all columns."""
        c = self.covariates.shape[1]
        given = getattr(self._given, "columns", None)
        first = [f"x{j}" for j in range(c)] if given is None else list(map(str, given))
        return np.concatenate([np.array(first, dtype=object), self.bed.sid.astype(object)])

    def block(self, i: int) -> Block:
        """Read block i."""
        part, c = self.parts[i], self.covariates.shape[1]
        if part.stop <= c:
            return ArrayBlock(self.covariates)
        G = self._read(np.s_[part.start - c : part.stop - c])
        if i not in self._shares:
            self._shares[i] = self._learn(G, part.start - c)
        return Genotypes(G, self._shares[i])

    def columns(self, idx: Ints) -> Floats:
        """Return X[:, idx] as a new Fortran-ordered array (m, k), one read per variant."""
        idx = np.asarray(idx, dtype=np.int64)
        X, c = np.empty((self.shape[0], idx.size), order="F"), self.covariates.shape[1]
        own = idx < c
        X[:, own] = self.covariates[:, idx[own]]
        places = np.flatnonzero(~own)
        step = max(1, self.held_bytes // (8 * self.shape[0]))
        for start in range(0, places.size, step):
            at = places[start : start + step]
            G = self._read(idx[at] - c)
            X[:, at] = self._learn(G, idx[at] - c).change(G)
        return X

    def columns_nbytes(self, idx: Ints) -> float:
        """Count the bytes of these columns."""
        n_own = int(np.sum(np.asarray(idx) < self.covariates.shape[1]))
        return 8 * self.shape[0] * n_own + (self.shape[0] + 3) // 4 * (len(idx) - n_own)

    def block_nbytes(self, i: int) -> float:
        """Count the bytes of a block."""
        return self.columns_nbytes(np.arange(self.parts[i].start, self.parts[i].stop))

    def _read(self, variants: Any) -> Bytes:
        return self.bed.read(index=np.s_[:, variants], dtype="int8", order="F", num_threads=1)

    def _learn(self, G: Bytes, variants: Any) -> Shares:
        """Compute means and scales of columns just read, refusing gaps that may not be filled."""
        n_missing = np.count_nonzero(G == MISSING, axis=0)
        if n_missing.any() and not self.is_filled:
            raise ValueError(self._gap_message(G, n_missing, variants))
        if not (self.is_standardized or n_missing.any()):
            return Shares(None, None, None)
        has_gaps = bool(n_missing.any())
        if self.like is not None:
            first = np.arange(G.shape[1])
            G = self.like._read(variants if np.ndim(variants) else variants + first)
            n_missing = np.count_nonzero(G == MISSING, axis=0)
        m = G.shape[0]
        if has_gaps and (n_missing == m).any():
            raise ValueError(self._unknown_message(n_missing, variants))
        sums = G.sum(axis=0, dtype=np.int64) - MISSING * n_missing
        squares = np.einsum("ij,ij->j", G, G, dtype=np.int64) - MISSING**2 * n_missing
        known = np.maximum(m - n_missing, 1)
        means = sums / known
        fill = means if has_gaps else None
        if not self.is_standardized:
            return Shares(fill, None, None)
        # filled entries add nothing to the sum of squares about the mean
        spread = np.sqrt(np.maximum(squares - sums * means, 0.0) / m)
        return Shares(fill, means, 1.0 / np.where(spread > 0.0, spread, 1.0))

    def _variant(self, variants: Any, at: int) -> str:
        """Return the name of a variant, given indices or the first of a range."""
        j = np.asarray(variants)[at] if np.ndim(variants) else variants + at
        return str(self.bed.sid[int(j)])

    def _unknown_message(self, n_missing: Ints, variants: Any) -> str:
        name = self._variant(variants, int(np.argmax(n_missing)))
        return (
            f"The genotypes of variant {name!r} are missing in all samples, and have no mean; "
            "leave the variant out."
        )

    def _gap_message(self, G: Bytes, n_missing: Ints, variants: Any) -> str:
        at = int(np.argmax(n_missing > 0))
        row = int(np.argmax(G[:, at] == MISSING))
        return (
            f"The genotypes of variant {self._variant(variants, at)!r} are missing in "
            f"{count(int(n_missing[at]), 'sample')}, the first of which is "
            f"{str(self.bed.iid[row])!r}; impute='mean' of blockl0.storage.open_bed fills gaps by "
            "the mean of their variant."
        )


def _covariates(given: Any, m: int) -> Floats:
    """Check covariates (m, c); without any, return an array of no columns."""
    if given is None:
        return np.empty((m, 0), order="F")
    C = np.asfortranarray(check_X(given), dtype=np.float64)
    if C.shape[0] != m:
        raise ValueError(f"`covariates` must have {m} rows, one per sample, got {C.shape[0]}.")
    return C
