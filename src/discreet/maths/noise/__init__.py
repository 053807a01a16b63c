"""Noise laws: probabilities, p-tables, exact thresholds and draws."""
