"""Microdata: reading, checking and encoding records."""
