"""Measurements of Discreet against the tools that offices use today; no part of the installed package."""
