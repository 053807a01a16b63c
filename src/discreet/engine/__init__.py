"""The seam to where data live: reading files and databases as Arrow batches; no statistics."""
