"""Risk measures of programmes and releases: what noise leaves to be found out."""
