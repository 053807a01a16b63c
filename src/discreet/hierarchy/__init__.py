"""Tables that add up: which cubes are fitted together, in which order, and the fit of noisy tables."""
