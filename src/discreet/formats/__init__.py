"""One writer per file format."""
