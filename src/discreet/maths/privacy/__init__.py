"""Differential privacy: losses, sensitivity, divergence and accounting."""
