"""The former place of method "dec"."""

from blockl0.dec.decomposition import AS_PRINTED, solve_dec

__all__ = ["AS_PRINTED", "solve_dec"]
