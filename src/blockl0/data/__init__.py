"""X as the library sees it: dense, sparse, centred, in blocks, and the storages of blocks."""
