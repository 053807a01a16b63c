"""Sentences for people in the languages that Discreet speaks; it owns no choice of what is said."""
