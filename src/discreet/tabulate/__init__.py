"""Counting and rolling up the cubes; no noise."""
