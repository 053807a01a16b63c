"""Pure functions on arrays and numbers; no files, no configuration, no logging."""
