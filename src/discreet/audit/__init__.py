"""Attacks, risk measures, utility and gates on a release."""
