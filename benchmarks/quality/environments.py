"""One virtual environment per peer, made when first needed and kept."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from .instances import HERE
from .peers import Peer

ENVIRONMENTS = HERE / ".envs"
INSTALL_SECONDS = 900
GIVEN = "BLOCKL0_PEERS_PYTHON"
"""The variable that names an interpreter with the peers, where nothing is to be installed."""


class Unavailable(RuntimeError):
    """A peer cannot be installed or started here."""


def python_of(peer: Peer) -> Path:
    """The interpreter of a peer's environment, installed if need be.

    Raises
    ------
    Unavailable
        If it cannot be installed; the end of pip's message is given.
    """
    if not peer.requirements:
        return Path(sys.executable)
    if given := os.environ.get(GIVEN):
        return Path(given)
    folder = ENVIRONMENTS / peer.name
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    stamp = folder / "installed.txt"
    wanted = "\n".join(peer.requirements)
    if not (python.exists() and stamp.exists() and stamp.read_text() == wanted):
        print(f"installing {', '.join(peer.requirements)} in {folder.relative_to(HERE)}")
        _install(peer, folder, python)
        stamp.write_text(wanted)
    return python


def _install(peer: Peer, folder: Path, python: Path) -> None:
    try:
        venv.create(folder, with_pip=True, clear=True)
        done = subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *peer.requirements],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(f"cannot be installed: {error}") from error
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        raise Unavailable(f"cannot be installed: {' '.join(errors)[-300:] or done.returncode}")
