"""Counting and rolling up cubes."""
