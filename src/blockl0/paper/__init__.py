"""The tables and figures of the paper, one module each, and what they share.

`blockl0 reproduce` runs them; see `docs/reproduce.md`.
"""
