"""Finished cells on disk, one JSON line each, so that a killed run resumes."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

import blockl0
from blockl0.datasets import E2006_VARIABLE
from blockl0.paper.cells import DRAWS_APART, Cell, is_e2006

Frame = Any
"""A table or column of pandas, whose types say too little to be checked."""

FILE_NAME = "cells.jsonl"
NOT_IN_CELLS = ("app", "paper", "files.py", "model_file.py", "report.py", "tables.py")
"""Parts of the package that no cell depends on, except `CELL_FILES`."""
CELL_FILES = ("paper/cells.py", "paper/variants.py")


class Store:
    """Store the finished cells of a folder.

    A line cut off when a run was killed is skipped. A cell computed by another version of the
    code, or from another e2006 file, stays in the file but is computed again.

    Parameters
    ----------
    folder : Path
        Created if it does not exist.
    """

    n_stale: int

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path: Path = folder / FILE_NAME
        self.n_stale = 0
        self._records: dict[Cell, dict[str, Any]] = {}
        text = self.path.read_bytes() if self.path.exists() else b""
        self._is_torn = bool(text) and not text.endswith(b"\n")
        for line in text.splitlines():
            self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            cell = Cell(**record.pop("cell"))
        except (ValueError, KeyError, TypeError):
            return  # cut off when a run was killed
        if record.pop("origin", None) == origin(cell):
            self._records[cell] = record
        else:
            self.n_stale += 1

    def add(self, cell: Cell, record: dict[str, Any]) -> None:
        """Write a finished cell and flush it to disk."""
        line = json.dumps({"cell": asdict(cell), "origin": origin(cell)} | record) + "\n"
        if self._is_torn:
            line, self._is_torn = "\n" + line, False
        with open(self.path, "ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self._records[cell] = record

    def __contains__(self, cell: Cell) -> bool:
        return cell in self._records

    def __getitem__(self, cell: Cell) -> dict[str, Any]:
        return self._records[cell]

    def __len__(self) -> int:
        return len(self._records)

    def frame(self, cells: Iterable[Cell]) -> Frame:
        """Return the finished ones of some cells, one row each, the key in columns.

        `number` is the draw among those of the same price.
        """
        rows = [
            {**vars(cell), "number": cell.draw % DRAWS_APART, **self._records[cell]}
            for cell in dict.fromkeys(cells)
            if cell in self._records
        ]
        return pd.DataFrame(rows)

    def jobs(self) -> list[int]:
        """Return the numbers of parallel jobs of the runs that filled the store."""
        return sorted({record["jobs"] for record in self._records.values()})


def origin(cell: Cell) -> str:
    """Return the origin of a cell's number besides its key: the code, and for e2006 the file."""
    return fingerprint() + (f" {_file_digest()}" if is_e2006(cell.dataset) else "")


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Hash the code that cells run."""
    root = Path(blockl0.__file__).parent
    files = [
        file for file in root.rglob("*.py") if file.relative_to(root).parts[0] not in NOT_IN_CELLS
    ]
    digest = hashlib.sha256()
    for file in sorted([*files, *(root / name for name in CELL_FILES)]):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=1)
def _file_digest() -> str:
    path = Path(os.environ.get(E2006_VARIABLE, "")).expanduser()
    if not path.is_file():
        return ""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
