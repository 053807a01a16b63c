"""Hierarchical release: marginals of a histogram measured in every area of a tree, fitted together."""
