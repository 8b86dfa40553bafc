"""The command line. Commands are loaded by name, and import what is slow inside."""

from __future__ import annotations

from importlib import import_module

from blockl0.text import install_hint

try:
    import click
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"The command line needs click and pandas: {install_hint('click', 'pandas')}."
    ) from error

COMMANDS = (
    "fit", "path", "certify", "verify", "compare", "predict", "report", "demo", "reproduce",
)  # fmt: skip
"""In the order of the help; each is the function `command` of the module of its name."""


class Commands(click.Group):
    """Group of commands, each loaded from its own file on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List all names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load the command of a name."""
        if cmd_name not in COMMANDS:
            return None
        return import_module(f"blockl0.app.cli.{cmd_name}").command


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: blockl0 fit data.csv --target y -k 8 --test 0.2 --out model.json",
)
@click.version_option(package_name="blockl0")
def main() -> None:
    """Which few columns of a table explain another one, and can that be trusted?

    Best-subset selection and l0-sparse optimization by block decomposition.

    Results go to standard output, as text or with --json as one JSON document; notices and progress
    go to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage, 3 data or options refused, 4
    model file refused, 5 not proven (certify), 6 file exists, 130 interrupted.
    """
