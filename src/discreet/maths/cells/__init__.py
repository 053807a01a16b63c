"""Cells: keys, counting kernels, lookup of changes, alignment of tables."""
