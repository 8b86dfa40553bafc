"""The command line."""

import sys

from blockl0.text import install_hint

try:
    import click  # noqa: F401
except ImportError as error:  # pragma: no cover
    raise SystemExit(
        f"The command line needs click and pandas: {install_hint('click', 'pandas')}."
    ) from error

try:
    # NumPy and all that takes most of a second, in which Ctrl-C may come, too
    from blockl0.app.cli.commands import main
except KeyboardInterrupt:
    print("Error: Interrupted before there was an answer; nothing is saved.", file=sys.stderr)
    raise SystemExit(130) from None

__all__ = ["main"]
