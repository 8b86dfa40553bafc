"""Resident memory of this process, and its peak during one call."""

from __future__ import annotations

import ctypes
import re
import sys
from pathlib import Path

STATUS = Path("/proc/self/status")


def resident() -> int:
    """Bytes in use now; where the system does not say, the peak so far."""
    return _status("VmRSS") or _lifetime_peak()


def peak() -> int:
    """Bytes at the peak since `reset_peak`."""
    return _status("VmHWM") or _lifetime_peak()


def reset_peak() -> None:
    """Give freed memory back and start the peak afresh (Linux; elsewhere the peak is for life)."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).malloc_trim(0)  # else a call could hide in memory the set-up had freed
    Path("/proc/self/clear_refs").write_text("5")


def limit(extra: int) -> None:
    """Let allocations fail beyond `extra` bytes from here (Linux)."""
    address_space = _status("VmSize")
    if address_space:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (address_space + extra,) * 2)


def _status(field: str) -> int | None:
    if not STATUS.exists():
        return None
    return 1024 * int(re.search(rf"{field}:\s+(\d+)", STATUS.read_text())[1])


def _lifetime_peak() -> int:
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
