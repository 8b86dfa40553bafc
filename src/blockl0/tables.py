"""Read tables of text, categories, dates and gaps into columns, as the command line does."""

from blockl0.app.tables import Table, read_table

__all__ = ["Table", "read_table"]
