"""Translatable sentences."""
