"""Tables on disk as X, y and names: formats, kinds of columns, and the recipe for new rows."""

from blockl0.app.tables.rows import whole_rows, with_target
from blockl0.app.tables.table import Table, apply_recipe, prepare, read_table

__all__ = ["Table", "apply_recipe", "prepare", "read_table", "whole_rows", "with_target"]
