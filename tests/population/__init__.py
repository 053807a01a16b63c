"""Tests of the population package."""
