"""Reports and pictures of results."""
