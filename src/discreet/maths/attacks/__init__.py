"""Attacks in closed form and their kernels."""
