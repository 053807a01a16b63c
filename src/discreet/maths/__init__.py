"""Pure functions on arrays and numbers: p-tables, keys, counting kernels; no files, no configuration."""
