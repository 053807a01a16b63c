"""Choosing parameters before a release: adviser, forecast, curves."""
