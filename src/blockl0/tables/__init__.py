"""Tables on disk as X, y and names: formats, kinds of columns, the recipe that new rows repeat."""

from blockl0.tables.table import Table, apply_recipe, prepare, read_table, whole_rows

__all__ = ["Table", "apply_recipe", "prepare", "read_table", "whole_rows"]
