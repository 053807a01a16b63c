"""Targeted record swapping."""
