"""Solution quality and time of blockl0 beside its peers: ``python -m benchmarks.quality``."""
