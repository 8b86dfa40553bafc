"""The peers: what to install for each and which methods its adapter offers.

One line here and one module ``peers/<name>.py`` with a dict ``METHODS`` (name to a function
``(X, y, s) -> support``) add a peer. Only the worker of an environment imports an adapter.
"""

from __future__ import annotations

from dataclasses import dataclass

REFERENCE = "abess-default"


@dataclass(frozen=True)
class Peer:
    """One package in its own environment; without requirements, the current environment.

    ``order`` is the memory order in which it gets X, the one it is fastest with; the largest sizes
    it is tried on are ``max_rows``, ``max_columns`` and ``max_size`` (of the support).
    """

    name: str
    methods: tuple[str, ...]
    requirements: tuple[str, ...] = ()
    order: str = "F"
    max_rows: int = 10**9
    max_columns: int = 10**9
    max_size: int = 10**9

    def admits(self, m: int, n: int, s: int | None) -> bool:
        """Tell whether this peer is tried on a problem of that size."""
        return m <= self.max_rows and n <= self.max_columns and (s or 0) <= self.max_size


PEERS: tuple[Peer, ...] = (
    Peer("abess", (REFERENCE, "abess-exchange", "abess-path"), ("abess==0.4.11",)),
    Peer(
        "blockl0",
        ("blockl0-fast", "blockl0-balanced", "blockl0-thorough", "blockl0-dec"),
    ),
    Peer("forward", ("forward",)),
    Peer("sklearn", ("sklearn-omp", "sklearn-omp-unit"), ("scikit-learn==1.9.1",)),
    Peer("spams", ("spams-omp",), ("spams-bin==2.6.14",)),
    Peer(
        "fastsparsegams",
        (
            "fastsparsegams-cd-path",
            "fastsparsegams-cd-grid",
            "fastsparsegams-cdpsi-path",
            "fastsparsegams-cdpsi-grid",
        ),
        ("fastsparsegams==0.2.0",),
        order="C",  # in Fortran order it crashes now and then (segmentation fault)
    ),
    Peer("pycasso", ("pycasso-mcp",), ("pycasso==2.0.1",)),
    Peer("skglm", ("skglm-mcp", "skglm-l05"), ("skglm==0.5",)),
    Peer("skscope", ("skscope-scope",), ("skscope==0.1.8",)),
    # needs requests without saying so; its n x n matrices end at a few thousand columns
    Peer(
        "okridge",
        ("okridge-beam50",),
        ("okridge==0.1.1", "requests", "numpy<2"),
        order="C",
        max_columns=5000,
    ),
    # exact methods of the price form: only where a path within seconds is conceivable
    Peer(
        "l0bnb",
        ("l0bnb",),
        ("l0bnb==1.0.0", "numpy<2"),  # uses np.Inf
        max_columns=100,
        max_size=10,
    ),
    Peer(
        "el0ps",
        ("el0ps",),
        ("el0ps==0.0.4", "mpich"),  # its tree search loads an MPI library
        max_columns=100,
        max_size=10,
    ),
)

PAPER_METHODS = (
    "pgm",
    "apgm",
    "qpm",
    "ssp",
    "romp",
    "omp",
    "cosamp",
    "cvx-l1",
    "forward",
    "dec",
)
PAPER_PRICE_METHODS = ("pgm-l0", "apgm-l0", "pgm-l1", "pgm-lp", "dec")
PAPER_OURS = "refit"
BASELINES = Peer("baselines", (PAPER_OURS, *dict.fromkeys((*PAPER_METHODS, *PAPER_PRICE_METHODS))))
"""The methods of the paper's experiments, as blockl0 offers them; only for ``--paper``."""
PRICE_PEERS: tuple[Peer, ...] = (
    Peer(
        "priced",
        (
            "blockl0-fast",
            "blockl0-balanced",
            "blockl0-thorough",
            "blockl0-dec",
            "pgm-l0",
        ),
    ),
    Peer(
        "fastsparsegams_priced",
        ("fastsparsegams-cd-prices", "fastsparsegams-cdpsi-prices"),
        ("fastsparsegams==0.2.0",),  # on these grids it crashes in C order (segmentation fault)
    ),
    Peer("skglm_priced", ("skglm-mcp-prices", "skglm-l05-prices"), ("skglm==0.5",)),
)
"""The methods that take a price, or a path of prices; only for ``--prices``."""
LONG_PRICED = Peer("priced", ("blockl0-path",))
"""A long path of prices of blockl0 for the best known objectives; only for ``--prices --long``."""
LONG = Peer("long", ("blockl0-long",))
"""Long runs of blockl0 for the best known objectives; only for ``--long``."""
