"""The table builder."""
