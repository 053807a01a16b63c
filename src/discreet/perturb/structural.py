"""Which cells of a cube no record can be in, by the declared structural zeros; it looks at codes, not at counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.expression import Comparison, Filter, Term


def impossible(cube: Cube, cells: NDArray[np.int64], rules: Sequence[Filter]) -> NDArray[np.bool_]:
    """Mark the cells all of whose possible records pass some rule.

    A rule with an alternative (or) counts only where one of its parts covers the cell alone; a cell that is missed in
    this way gets noise, which costs nothing.
    """
    found = np.zeros(len(cells), dtype=bool)
    for rule in rules:
        found |= _covered(rule.term, cube, cells)
    return found


def _covered(term: Term, cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    if isinstance(term, Comparison):
        return _within(term, cube, cells)
    join = np.logical_and if term.word == "and" else np.logical_or
    parts = (_covered(part, cube, cells) for part in term.terms)
    return reduce(join, parts, np.full(len(cells), term.word == "and"))


def _within(term: Comparison, cube: Cube, cells: NDArray[np.int64]) -> NDArray[np.bool_]:
    for k, axis in enumerate(cube.axes):
        if axis.variable == term.variable:
            return passing_nodes(axis, term.lookup)[cube.nodes(cells, k)]
    return np.full(len(cells), all(term.passing))


def passing_nodes(axis: Breakdown, passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the nodes of an axis all of whose leaves pass."""
    nodes = np.ones(len(axis), dtype=bool)
    np.logical_and.at(nodes, axis.node_of_leaf, passing)
    for node in range(len(axis) - 1, 0, -1):
        nodes[axis.parents[node]] &= nodes[node]
    return nodes
