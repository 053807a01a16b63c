"""SDMX REST, 2.1 and 3.0, over the declared tables of a table builder."""
