"""The former place of sparse coding."""

from blockl0.estimators.coding import SINDyL0, sparse_encode

__all__ = ["SINDyL0", "sparse_encode"]
