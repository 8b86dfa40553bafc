"""The command line."""

from blockl0.text import install_hint

try:
    import click  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"The command line needs click and pandas: {install_hint('click', 'pandas')}."
    ) from error

from blockl0.app.cli.commands import main

__all__ = ["main"]
