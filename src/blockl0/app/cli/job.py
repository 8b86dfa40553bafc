"""One run of a command: notices, timings, answers as text or JSON, and exit codes."""

from __future__ import annotations

import json
import os
import shlex
import sys
import textwrap
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from opcode import opmap
from pathlib import Path
from typing import Any, NamedTuple

import click

from blockl0.errors import ModelFileError
from blockl0.files import check_exists, check_free, write_whole
from blockl0.text import one_line

FAILED, DATA, MODEL, NOT_PROVEN, EXISTS, INTERRUPTED = 1, 3, 4, 5, 6, 130
"""Exit codes; 0 is success, 2 wrong usage (click's), 130 Ctrl-C by convention."""
CHECKING, RAISE = ("blockl0", "sklearn"), opmap["RAISE_VARARGS"]
"""Packages whose checks address users, and the opcode by which checks raise."""
SEVERAL_LIMITS = ("compare", "reproduce")
"""Commands whose --time-limit is for each method."""
SCHEMA, SCHEMA_VERSION = "blockl0-result", 3


class Refused(click.ClickException):
    """Error with its own exit code."""

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]


class Interrupted(BaseException):
    """Ctrl-C with nothing to keep; unlike KeyboardInterrupt, no search catches it."""


class Answer(NamedTuple):
    """What a command found.

    Attributes
    ----------
    result : dict
        For the JSON document.
    lines : sequence of str
        For people.
    is_cut : bool
        Whether Ctrl-C ended the command early.
    exit_code : int
        If the command was not cut.
    """

    result: dict[str, Any]
    lines: Sequence[str]
    is_cut: bool = False
    exit_code: int = 0


class Job:
    """One run of a command: its options, notices, timings and result.

    Parameters
    ----------
    command : str
    options : dict
        As given; "json" and "quiet" are used here, the others recorded.
    """

    def __init__(self, command: str, options: dict[str, Any]) -> None:
        self.command = command
        self.as_json = bool(options.get("json"))
        self.quiet = bool(options.get("quiet"))
        self.options = {k: v for k, v in options.items() if k not in ("json", "quiet")}
        self.notices: list[str] = []
        self.timings: dict[str, float] = {}
        self.data: dict[str, Any] = {}
        self._limit: Any = None

    def begin_clock(self) -> None:
        """Start the clock of --time-limit, which everything that follows shares."""
        from blockl0.run import Timer, limited_by

        limit = self.options.get("time_limit")
        if limit is not None and self.command not in SEVERAL_LIMITS:
            self._limit = limited_by(Timer(limit))
            self._limit.__enter__()

    def notice(self, text: str) -> None:
        """Print a notice on standard error, once, and keep it for the JSON document."""
        if text not in self.notices:
            self.notices.append(text)
            if not self.quiet:
                click.echo(f"Note: {text}", err=True)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time of a block to the timings, with compilation apart."""
        # it brings NumPy, which help and refusals of options do without
        from blockl0.run import compile_seconds

        started, compiled = time.perf_counter(), compile_seconds()
        try:
            yield
        finally:
            compiled = compile_seconds() - compiled
            passed = max(time.perf_counter() - started - compiled, 0.0)
            self.timings[name] = self.timings.get(name, 0.0) + passed
            if compiled:
                self.timings["compile"] = self.timings.get("compile", 0.0) + compiled

    def answer(self, answer: Answer) -> None:
        """Print the result, as lines of text or as one JSON document, and exit with its code."""
        if self.as_json:
            click.echo(to_json(self._document(answer)))
        else:
            # a console without a character shows a replacement instead of failing
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            click.echo("\n".join(answer.lines).encode(encoding, "replace").decode(encoding))
        code = INTERRUPTED if answer.is_cut else answer.exit_code
        if code:
            raise SystemExit(code)

    def _document(self, answer: Answer) -> dict[str, Any]:
        import blockl0

        return {
            "schema": SCHEMA,
            "schema_version": SCHEMA_VERSION,
            "command": self.command,
            "version": blockl0.__version__,
            "status": "interrupted" if answer.is_cut else "done",
            "seed": self.options.get("seed"),
            "options": self.options,
            "data": self.data,
            "result": answer.result,
            "notices": self.notices,
            "timings": {name: round(seconds, 4) for name, seconds in self.timings.items()},
        }

    def __enter__(self) -> Job:
        self._catch = warnings.catch_warnings()
        self._catch.__enter__()
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = lambda message, *_, **__: self.notice(str(message))
        self._check_data()
        return self

    def _check_data(self) -> None:
        """Refuse missing data before anything slow is imported."""
        source = self.options.get("data")
        if source in (None, "-") or Path(source).is_dir():
            return
        try:
            check_exists(source)
        except OSError as error:
            self._catch.__exit__(None, None, None)
            raise Refused(str(error), DATA) from error

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        self._catch.__exit__(None, None, None)
        if self._limit is not None:
            self._limit.__exit__(None, None, None)
        refused = _as_refusal(error)
        if refused is not None:
            raise refused from error


def _as_refusal(error: BaseException | None) -> BaseException | None:
    """Convert a failure to an error for users; None if it passes unchanged."""
    if error is None or isinstance(error, click.ClickException):
        return None
    if isinstance(error, KeyboardInterrupt | Interrupted):
        return Refused("Interrupted before there was an answer; nothing is saved.", INTERRUPTED)
    if isinstance(error, ModelFileError):
        return Refused(str(error), MODEL)
    if isinstance(error, FileExistsError):
        return Refused(str(error), EXISTS)
    if isinstance(error, ModuleNotFoundError | MemoryError):
        return Refused(str(error) or "There is not enough memory for this.", FAILED)
    is_message = isinstance(error, OSError) or _is_deliberate(error)
    return Refused(str(error), DATA) if is_message else None


def _is_deliberate(error: BaseException) -> bool:
    """Check if an error comes from a check, rather than from a failed operation, a bug of ours.

    Checks are `raise` statements, of this package or of scikit-learn.
    """
    place = error.__traceback__
    if place is None or not isinstance(error, ValueError | TypeError):
        return False
    while place.tb_next is not None:
        place = place.tb_next
    package = str(place.tb_frame.f_globals.get("__name__")).split(".")[0]
    is_raised = place.tb_frame.f_code.co_code[place.tb_lasti] == RAISE
    return package in CHECKING and is_raised


def check_outputs(options: dict[str, Any], *names: str) -> None:
    """Refuse output files that cannot be written, or are also read, before any work is done."""
    seen: dict[Path, str] = {}
    for name in names:
        if options[name] is None:
            continue
        path = check_free(options[name], options["force"])
        for source in ("data", "model"):
            given = options.get(source)
            if given is not None and path.exists() and _is_same(path, Path(given)):
                raise Refused(
                    f"--{name} {path} would replace the {source}; give another name.", EXISTS
                )
        other = seen.setdefault(Path(os.path.realpath(path)), name)
        if other != name:
            raise Refused(f"--{other} and --{name} are both {path}; give two names.", EXISTS)


def _is_same(path: Path, source: Path) -> bool:
    """Check if writing one would replace the other; /dev/stdin is never replaced."""
    return source.exists() and path.is_file() and path.samefile(source)


def command_line() -> str:
    """Return the command as it was typed."""
    return shlex.join(["blockl0", *sys.argv[1:]])


def save(path: Path | None, text: str, force: bool) -> None:
    """Write a file atomically, if one is requested."""
    if path is not None:
        try:
            write_whole(path, text, force)
        except FileExistsError:
            raise
        except OSError as error:
            raise Refused(f"{path} cannot be written: {error}.") from error


# -- formats ---------------------------------------------------------------------------------------


def to_json(document: Any) -> str:
    """Convert to strict JSON: anything but finite numbers is null."""
    is_utf = "utf" in (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return json.dumps(plain(document), indent=1, ensure_ascii=not is_utf, allow_nan=False)


def plain(value: Any) -> Any:
    """Convert any value to what JSON can represent."""
    if isinstance(value, dict):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def names_line(names: Sequence[str]) -> str:
    """Join names."""
    return ", ".join(map(one_line, names)) or "none"


def bullet(text: str) -> str:
    """Format a sentence as a wrapped list item."""
    return textwrap.fill(text, 92, initial_indent="  - ", subsequent_indent="    ")


def table(titles: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Format rows under titles: a rich table on a terminal, aligned text elsewhere.

    The first `left` columns, and a last one called "columns", are left-aligned.
    """
    is_left = [j < left or title == "columns" for j, title in enumerate(titles)]
    titles, rows = [*map(one_line, titles)], [[*map(one_line, row)] for row in rows]
    if sys.stdout.isatty():
        try:
            return _rich_table(titles, rows, is_left)
        except ImportError:
            pass
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        done = [
            cell.ljust(width) if to_left else cell.rjust(width)
            for cell, width, to_left in zip(cells, widths, is_left, strict=True)
        ]
        return "  " + "  ".join(done).rstrip()

    return "\n".join(
        [line(titles), "  " + "-" * (sum(widths) + 2 * len(widths) - 2), *map(line, rows)]
    )


def _rich_table(titles: Sequence[str], rows: Sequence[Sequence[str]], is_left: list[bool]) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for title, to_left in zip(titles, is_left, strict=True):
        grid.add_column(title, justify="left" if to_left else "right", overflow="fold")
    for row in rows:
        # as Text: brackets in column names are not markup
        grid.add_row(*(Text(cell) for cell in row))
    console = Console()
    with console.capture() as capture:
        console.print(grid)
    return capture.get().rstrip("\n")
