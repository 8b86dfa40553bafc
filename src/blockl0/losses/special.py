"""SciPy's special functions, loaded when they are first called.

The command line asks for the names of losses before it has read anything; loading `scipy.special`
takes longer than all of that.
"""

from __future__ import annotations

from typing import Any


def expit(x: Any) -> Any:
    """Return 1 / (1 + exp(−x))."""
    from scipy import special

    return special.expit(x)


def xlogy(x: Any, y: Any) -> Any:
    """Return x log y, 0 where x is."""
    from scipy import special

    return special.xlogy(x, y)


def xlog1py(x: Any, y: Any) -> Any:
    """Return x log(1 + y), 0 where x is."""
    from scipy import special

    return special.xlog1py(x, y)
