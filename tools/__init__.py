"""Scripts that maintain files of the project from its source."""
