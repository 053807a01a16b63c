"""Targeted record swapping: risk, pairing, what moved and why."""
