"""Options of the command line, and those that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FOLD_RULES = ("paired_se", "one_se", "min")
"""Rules that need folds."""
RULES = (*FOLD_RULES, "aic", "bic", "ebic", "gic")
FILE = click.Path(dir_okay=False, path_type=Path)
SECONDS = click.FloatRange(min=0.0, min_open=True)


class Parsed(click.ParamType):
    """Parameter type that a function parses, which raises a ValueError for other texts."""

    def __init__(self, name: str, parse: Callable[[Any], Any]) -> None:
        self.name, self.parse = name, parse

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Parse a text."""
        try:
            return self.parse(value)
        except (TypeError, ValueError) as error:
            return self.fail(str(error))


def _effort(value: Any) -> Any:
    """Return the name of an effort, or a number of rounds."""
    if value in ("fast", "balanced", "thorough") or isinstance(value, int):
        return value
    if str(value).isdigit():
        return int(value)
    raise ValueError(f"{value!r} is neither fast, balanced, thorough nor a number of rounds.")


def _ridge(value: Any) -> Any:
    """Return a number, or one in units of the columns' spreads."""
    from blockl0.problem.preprocess import STANDARDIZED, read_ridge

    try:
        is_text = str(value).startswith(STANDARDIZED)
        return read_ridge(value if is_text else float(value)).given
    except ValueError:
        raise ValueError(
            f"{value!r} is neither a number that is at least 0 nor one such after {STANDARDIZED!r}."
        ) from None


def _loss(value: Any) -> str:
    """Return the name of a loss with its parameter, listing known ones in the error."""
    from blockl0.losses import get_loss, label_of, names_of

    return label_of(get_loss(value, (*names_of(takes_labels=False), *names_of(takes_labels=True))))


def _share(value: Any) -> float:
    """Return a share, given as 0.01 or 1%."""
    if isinstance(value, float):
        return value
    text = str(value).strip()
    try:
        share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        share = -1.0
    if not 0.0 <= share < 1.0:
        raise ValueError(f"{value!r} is not a share like 0.01 or 1%, at least 0 and below 1.")
    return share


def _bounds(value: Any) -> Any:
    """Return the text itself, if it can be parsed."""
    from blockl0.app.cli.structure import parse_bounds

    parse_bounds(value)
    return value


EFFORT = Parsed("EFFORT", _effort)


# -- ways to write an option -----------------------------------------------------------------------


def option(names: str, help: str, *, default: Any = None, **more: Any) -> Decorator:
    """Make an option of one or two names; a default is shown in the help text."""
    if default is not None:
        more = {"default": default, "show_default": True, **more}
    return click.option(*names.split(), help=help, **more)


def choice(names: str, values: str, help: str, default: str | None = None) -> Decorator:
    """Make an option that takes one of some words, the first of which is often the default."""
    return option(names, help, type=click.Choice(values.split()), default=default)


def whole(names: str, help: str, *, least: int = 1, **more: Any) -> Decorator:
    """Make an option for a whole number that is at least `least`."""
    return option(names, help, type=click.IntRange(min=least), **more)


def several(names: str, help: str, metavar: str | None = "NAME", **more: Any) -> Decorator:
    """Make an option that may be given several times."""
    return option(names, help, multiple=True, metavar=metavar, **more)


def flag(names: str, help: str) -> Decorator:
    """Make an option without a value."""
    return option(names, help, is_flag=True)


def both(names: str, help: str) -> Decorator:
    """Make a pair of options, --yes/--no, of which neither need be given."""
    return click.option(names, default=None, help=help)


def file(names: str, help: str, **more: Any) -> Decorator:
    """Make an option for a file to write."""
    return option(names, help, type=FILE, metavar="FILE", **more)


def group(*decorators: Decorator) -> Decorator:
    """Combine options, in the order of the help text."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


def _one_or_several(ctx: Any, param: Any, value: tuple[str, ...]) -> Any:
    """Return None, a name, or a list of names."""
    return None if not value else value[0] if len(value) == 1 else list(value)


# -- options of several commands -------------------------------------------------------------------

FORMAT = group(
    choice(
        "--format",
        "csv excel parquet libsvm npz mat",
        "Format of the data, if the file name does not tell.",
    ),
    several("--na", "Also treat TEXT as missing.", "TEXT"),
    choice(
        "--header", "auto yes no", "Whether the first line of a CSV file holds the names.", "auto"
    ),
    choice("--decimal", "auto point comma", "Decimal separator of numbers stored as text.", "auto"),
    option("--sheet", "Excel sheet to read.  [default: the first]", metavar="NAME|NUMBER"),
    option(
        "--delimiter",
        "Separator of a CSV file: comma, tab, semicolon, bar, blank, or a character.  "
        "[default: the most frequent in the first two lines]",
        metavar="NAME|LETTER",
    ),
    choice(
        "--quote",
        "double single backslash none",
        "Quotes around values of a CSV file: double, single, double with inner ones escaped by a "
        "backslash, or none.  [default: double]",
    ),
    option(
        "--encoding",
        "Encoding of a CSV file.  [default: UTF-8, UTF-16 or Windows-1252]",
        metavar="NAME",
    ),
    whole("--skip-rows", "Lines above the names to leave out.", least=0),
    both(
        "--skip-bad-rows/--refuse-bad-rows",
        "Leave out rows of a CSV file that do not hold a value for each name.",
    ),
    both(
        "--fill-short-rows/--refuse-short-rows",
        "Treat values that rows of a CSV file lack at their end as missing.",
    ),
)
TABLE = group(
    click.argument("data", metavar="DATA"),
    several(
        "-t --target",
        "The column to explain; give several numeric ones to explain them by the same columns.",
        "NAME|NUMBER",
        callback=_one_or_several,
    ),
    choice(
        "--text",
        "auto one-hot drop refuse",
        "What to do with text columns; auto uses categories, and leaves out free text and "
        "identifiers.",
        "auto",
    ),
    choice(
        "--levels",
        "together separate",
        "Whether a category is in or out as a whole, or each of its values by itself.",
        "together",
    ),
    whole("--max-levels", "Text with more different values is left out.", least=2, default=30),
    several("--as-category", "Treat a column as a category."),
    several("--as-number", "Treat a column as numbers."),
    choice(
        "--impute",
        "median mean drop-rows",
        "What to do with missing numbers (refused otherwise).",
    ),
    choice("--dates", "drop days refuse", "What to do with columns of dates.", "drop"),
    choice(
        "--date-order",
        "auto day-first month-first",
        "What 01/02/2012 means, if no other date of the column tells.",
        "auto",
    ),
    several("--drop", "Leave a column out."),
    FORMAT,
)
BOUNDS = group(
    several(
        "--positive",
        "Columns whose coefficients may not be negative; all means every numeric column.",
        "NAMES",
    ),
    several(
        "--bounds",
        "Bounds of a coefficient, in the units of the table; a side may be empty.",
        None,
        type=Parsed("NAME=LOW:HIGH", _bounds),
    ),
)
KEEP = several("--keep", "A column that must be chosen.")
COLUMNS = whole("-k --columns", "At most this many columns.", least=0)
LARGEST = whole("-k --max-k", "The largest number of columns.  [default: 20]")
STREAM = flag(
    "--stream",
    "Read CSV or Parquet files in parts; automatic for folders and data larger than memory.",
)
GAP = click.option(
    "--gap",
    type=Parsed("SHARE", _share),
    default=0.0,
    metavar="SHARE",
    help="Stop once no other choice can be better by more than this (e.g. 1%).",
)
TEST = click.option(
    "--test",
    type=click.FloatRange(0.0, 1.0, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="Hold out this share of the rows, and score on them.",
)
SEARCH = group(
    option(
        "--loss",
        "By default squared, and logistic for text targets; others are huber, poisson, gamma, "
        "tweedie and squared_hinge; huber:0.5 or tweedie:1.7 set the parameter.",
        type=Parsed("NAME[:NUMBER]", _loss),
    ),
    option(
        "--ridge",
        "Ridge penalty.  [default: none for numbers, standardized:1 for classes]",
        type=Parsed("NUMBER|standardized:NUMBER", _ridge),
    ),
    KEEP,
    BOUNDS,
    option("--effort", "fast, balanced, thorough, or rounds.", type=EFFORT),
    option(
        "--time-limit",
        "Limit for everything after reading; then the best answer so far is used.",
        type=SECONDS,
        metavar="SECONDS",
    ),
    choice(
        "--costs",
        "coefficients none",
        "Charge a category for each coefficient beyond its first, at the price of --rule if that "
        "is a criterion, else of BIC; or charge nothing.",
        "coefficients",
    ),
    several(
        "--class-weight",
        "Weight the rows by class: the same total for every class (balanced), or as given.",
        "balanced|CLASS=WEIGHT",
    ),
)
RULE = option(
    "--rule",
    "How the number of columns is chosen: the fewest that predict held-out rows as well as the "
    "best (paired_se), the fewest within one standard error of the best cross-validated loss "
    "(one_se), the best (min), or a criterion.",
    type=click.Choice(RULES),
    default="paired_se",
)
FOLDS = group(
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True),
    whole("--jobs", "Number of folds to run in parallel.  [default: 1]"),
)
HALVES = whole(
    "--half-samples",
    "Repeat the choice on this many halves of the rows.  [default: 10, 0 for large data]",
    least=0,
)
SEED = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
ANSWER = group(
    flag("--json", "One JSON document on standard output."),
    flag("-q --quiet", "No notices and no progress."),
)
FORCE = flag("--force", "Replace files that exist.")
