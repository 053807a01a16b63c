"""Discreet: protected frequency tables from census microdata."""
