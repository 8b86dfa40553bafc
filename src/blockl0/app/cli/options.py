"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

FOLD_RULES = ("paired_se", "one_se", "min")
"""Rules that need folds."""
RULES = (*FOLD_RULES, "aic", "bic", "ebic", "gic")
FILE = click.Path(dir_okay=False, path_type=Path)


class Effort(click.ParamType):
    """Parameter type: the name of an effort or a number of rounds."""

    name = "EFFORT"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert numbers to integers."""
        if value in ("fast", "balanced", "thorough") or isinstance(value, int):
            return value
        if str(value).isdigit():
            return int(value)
        return self.fail(f"{value!r} is neither fast, balanced, thorough nor a number of rounds.")


class RidgeText(click.ParamType):
    """A number, or one in units of the columns' spreads."""

    name = "NUMBER|standardized:NUMBER"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert numbers to floats."""
        from blockl0.ridge import STANDARDIZED, read_ridge

        try:
            is_text = str(value).startswith(STANDARDIZED)
            return read_ridge(value if is_text else float(value)).given
        except ValueError:
            return self.fail(
                f"{value!r} is neither a number that is at least 0 nor one such after "
                f"{STANDARDIZED!r}."
            )


class LossName(click.ParamType):
    """Parameter type: the name of a loss, with a parameter after a colon."""

    name = "NAME[:NUMBER]"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Check the name, listing known ones in the error."""
        from blockl0.losses import get_loss, label_of, names_of

        known = (*names_of(takes_labels=False), *names_of(takes_labels=True))
        try:
            return label_of(get_loss(value, known))
        except (TypeError, ValueError) as error:
            return self.fail(str(error))


class Share(click.ParamType):
    """Parameter type: a share, such as 0.01 or 1%."""

    name = "SHARE"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert percents to shares."""
        if isinstance(value, float):
            return value
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
        except ValueError:
            share = -1.0
        if not 0.0 <= share < 1.0:
            return self.fail(f"{value!r} is not a share like 0.01 or 1%, at least 0 and below 1.")
        return share


class BoundsType(click.ParamType):
    """Parameter type: bounds of a column's coefficient, NAME=LOW:HIGH."""

    name = "NAME=LOW:HIGH"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Check that the text can be parsed."""
        from blockl0.app.cli.structure import parse_bounds

        try:
            parse_bounds(value)
        except ValueError as error:
            return self.fail(str(error))
        return value


def _one_or_several(ctx: Any, param: Any, value: tuple[str, ...]) -> Any:
    """Return None, a name, or a list of names."""
    return None if not value else value[0] if len(value) == 1 else list(value)


def _all(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return decorate


format_options = _all(
    click.option(
        "--format",
        type=click.Choice(["csv", "excel", "parquet", "libsvm", "npz", "mat"]),
        help="Of the data, where the name does not tell.",
    ),
    click.option("--na", multiple=True, metavar="TEXT", help="Also treat TEXT as missing."),
    click.option(
        "--header",
        type=click.Choice(["auto", "yes", "no"]),
        default="auto",
        show_default=True,
        help="Whether the first line of a CSV file holds the names.",
    ),
    click.option(
        "--decimal",
        type=click.Choice(["auto", "point", "comma"]),
        default="auto",
        show_default=True,
        help="Decimal separator of numbers stored as text.",
    ),
    click.option(
        "--sheet", metavar="NAME|NUMBER", help="Excel sheet to read.  [default: the first]"
    ),
    click.option(
        "--delimiter",
        metavar="NAME|LETTER",
        help="Between the values of a CSV file: comma, tab, semicolon, bar, blank, or a letter.  "
        "[default: what the first two rows have most of]",
    ),
    click.option(
        "--quote",
        type=click.Choice(["double", "single", "backslash", "none"]),
        help="Around values of a CSV file: double, single, double with a backslash before those "
        "inside, or none.  [default: double]",
    ),
    click.option(
        "--encoding",
        metavar="NAME",
        help="Of a CSV file.  [default: UTF-8, UTF-16 or Windows-1252]",
    ),
    click.option(
        "--skip-rows", type=click.IntRange(min=0), help="Lines above the names to leave out."
    ),
    click.option(
        "--skip-bad-rows/--refuse-bad-rows",
        default=None,
        help="Leave out rows of a CSV file that do not hold a value for each name.",
    ),
    click.option(
        "--fill-short-rows/--refuse-short-rows",
        default=None,
        help="Take the values that rows of a CSV file lack at their end for missing.",
    ),
)
data_options = _all(
    click.argument("data", metavar="DATA"),
    click.option(
        "-t",
        "--target",
        metavar="NAME|NUMBER",
        multiple=True,
        callback=_one_or_several,
        help="The column to explain; several, of numbers, are explained by the same columns.",
    ),
    click.option(
        "--text",
        type=click.Choice(["auto", "one-hot", "drop", "refuse"]),
        default="auto",
        show_default=True,
        help="What to do with columns of text; auto takes categories, and leaves free text and "
        "identifiers out.",
    ),
    click.option(
        "--levels",
        type=click.Choice(["together", "separate"]),
        default="together",
        show_default=True,
        help="Whether a category is in or out with all its values, or each value by itself.",
    ),
    click.option(
        "--max-levels",
        type=click.IntRange(min=2),
        default=30,
        show_default=True,
        help="Text with more different values is left out.",
    ),
    click.option(
        "--as-category", multiple=True, metavar="NAME", help="A column of codes, not of numbers."
    ),
    click.option(
        "--as-number", multiple=True, metavar="NAME", help="A column of numbers, not of codes."
    ),
    click.option(
        "--impute",
        type=click.Choice(["median", "mean", "drop-rows"]),
        help="What to do with missing numbers (refused otherwise).",
    ),
    click.option(
        "--dates",
        type=click.Choice(["drop", "days", "refuse"]),
        default="drop",
        show_default=True,
        help="What to do with columns of dates.",
    ),
    click.option(
        "--date-order",
        type=click.Choice(["auto", "day-first", "month-first"]),
        default="auto",
        show_default=True,
        help="What 01/02/2012 means, where no other date of the column tells.",
    ),
    click.option("--drop", multiple=True, metavar="NAME", help="Leave a column out."),
    format_options,
)
bound_options = _all(
    click.option(
        "--positive",
        multiple=True,
        metavar="NAMES",
        help="Columns whose coefficients may not be negative, or all of numbers.",
    ),
    click.option(
        "--bounds",
        type=BoundsType(),
        multiple=True,
        help="Bounds of a coefficient, in the units of the table; a side may be empty.",
    ),
)
columns_option = click.option(
    "-k", "--columns", type=click.IntRange(min=0), help="At most so many columns."
)
stream_option = click.option(
    "--stream",
    is_flag=True,
    help="Read CSV or Parquet files in parts, as folders and what does not fit in memory are.",
)
gap_option = click.option(
    "--gap",
    type=Share(),
    default=0.0,
    metavar="SHARE",
    help="Stop once no other choice can be better by more than this (e.g. 1%).",
)
test_option = click.option(
    "--test",
    type=click.FloatRange(0.0, 1.0, max_open=True),
    default=0.0,
    metavar="SHARE",
    help="Hold out this share of the rows, and score on them.",
)
search_options = _all(
    click.option(
        "--loss",
        type=LossName(),
        help="By default squared, and logistic for text targets; others are huber, poisson, gamma, "
        "tweedie and squared_hinge. huber:0.5, tweedie:1.7: with another parameter.",
    ),
    click.option(
        "--ridge",
        type=RidgeText(),
        help="Ridge penalty.  [default: none for numbers, standardized:1 for labels]",
    ),
    click.option("--keep", multiple=True, metavar="NAME", help="A column that must be chosen."),
    bound_options,
    click.option("--effort", type=Effort(), help="fast, balanced, thorough, or rounds."),
    click.option(
        "--time-limit",
        type=click.FloatRange(min=0.0, min_open=True),
        metavar="SECONDS",
        help="For all that follows the reading; the best answer so far is then taken.",
    ),
)
costs_option = click.option(
    "--costs",
    type=click.Choice(["coefficients", "none"]),
    default="coefficients",
    show_default=True,
    help="What a category pays beside its place among the columns: for each coefficient beyond its "
    "first the price of --rule, if that is a criterion, or of BIC; or nothing.",
)
class_weight_option = click.option(
    "--class-weight",
    multiple=True,
    metavar="balanced|CLASS=WEIGHT",
    help="Weight the rows of classes: every class alike in sum (balanced), or as given.",
)
choice_options = _all(
    click.option(
        "--rule",
        type=click.Choice(RULES),
        default="paired_se",
        show_default=True,
        help="How the number of columns is chosen: the fewest that predict held-out rows as well "
        "as the best (paired_se), the fewest within one standard error of the best "
        "cross-validated loss (one_se), the best (min), or a criterion.",
    ),
    click.option("--folds", type=click.IntRange(min=2), default=5, show_default=True),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help="Number of folds to run in parallel.  [default: 1]",
    ),
)
halves_option = click.option(
    "--half-samples",
    type=click.IntRange(min=0),
    help="Repeat the choice on so many halves of the rows.  [default: 10, 0 for large data]",
)
seed_option = click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
output_options = _all(
    click.option("--json", is_flag=True, help="One JSON document on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="No notices and no progress."),
)
force_option = click.option("--force", is_flag=True, help="Replace files that exist.")


def out_option(help: str, **more: Any) -> Callable[[Command], Command]:
    """Make an option for an output file."""
    return click.option("-o", "--out", type=FILE, metavar="FILE", help=help, **more)
