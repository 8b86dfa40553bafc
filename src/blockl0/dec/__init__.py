"""Method "dec": the paper's block decomposition, readable beside Algorithm 1."""

from blockl0.dec.decomposition import AS_PRINTED, solve_dec

__all__ = ["AS_PRINTED", "solve_dec"]
