"""Inference from noisy counts."""
