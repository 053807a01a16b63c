"""Covariances between the estimates of different areas and counts of a hierarchical release, in closed form.

With the gain G_c = C_c C^-1 of a child (``maths.tree.least_squares``), m_c - G_c m is uncorrelated with everything that
is not below the parent, so that the final estimates of a node u and of an ancestor a have Cov(x_u, x_a) = G_u .. V_a,
the gains of all nodes from u up to the child of a. For nodes u and v on different paths below their last common
ancestor a, with its covariance V and the sum C of its children's,

    Cov(x_u, x_v) = (G_u ..) (V - C) (G_v ..)'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.hierarchy.estimate import Covariances, node_variances
from discreet.maths.tree.marginals import Blocks
from discreet.maths.tree.matrices import product
from discreet.programme.strategy import Histogram

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Cell:
    """A count of one area: for each variable of the histogram which categories it sums, 0 or 1."""

    node: int
    rows: tuple[Floats, ...]


class Joint:
    """The covariances of any counts of a tree; those between two nodes are computed once."""

    def __init__(self, found: Covariances) -> None:
        self._found = found
        self._between: dict[tuple[int, int], Blocks] = {}
        self._variances: dict[int, Blocks] = {}

    def matrix(self, cells: Sequence[Cell]) -> Floats:
        """The covariance matrix of the estimates of some counts."""
        histogram = self._found.plan.strategy.histogram
        by_node: dict[int, list[int]] = {}
        for at, cell in enumerate(cells):
            by_node.setdefault(cell.node, []).append(at)
        result = np.zeros((len(cells), len(cells)))
        nodes = sorted(by_node)
        for first, u in enumerate(nodes):
            for v in nodes[first:]:
                some, other = ([cells[at] for at in by_node[node]] for node in (u, v))
                part = _inner(histogram, self.between(u, v), some, other)
                result[np.ix_(by_node[u], by_node[v])] = part
                result[np.ix_(by_node[v], by_node[u])] = part.T
        return result

    def between(self, u: int, v: int) -> Blocks:
        """Cov(x_u, x_v) of two nodes, (subset, d, d)."""
        if u > v:
            return _transposed(self.between(v, u))
        if (u, v) not in self._between:
            self._between[u, v] = self._computed(u, v)
        return self._between[u, v]

    def _computed(self, u: int, v: int) -> Blocks:
        above, beside = self._path(u), self._path(v)
        common = next(node for node in above if node in beside)
        middle = self._variance(common)
        if common not in (u, v):
            children = self._found.of(common).children
            if children is None:
                raise ValueError("an ancestor has children")
            middle = middle - children
        left, right = self._gains(above, common), self._gains(beside, common)
        found = middle if left is None else product(left, middle)
        return found if right is None else product(found, _transposed(right))

    def _path(self, node: int) -> list[int]:
        """A node and its ancestors, the root last."""
        parent, found = self._found.plan.spine.parent, [node]
        while parent[found[-1]] >= 0:
            found.append(int(parent[found[-1]]))
        return found

    def _gains(self, path: Sequence[int], top: int) -> Blocks | None:
        """The product of the gains from a node up to the child of ``top``; None for ``top`` itself."""
        some = [self._gain(node, parent) for node, parent in pairwise(path)]
        below = some[: path.index(top)]
        return reduce(product, below) if below else None

    def _gain(self, node: int, parent: int) -> Blocks:
        inverse = self._found.of(parent).children_inverse
        if inverse is None:
            raise ValueError("a parent has children")
        return product(self._found.of(node).up, inverse)

    def _variance(self, node: int) -> Blocks:
        if node not in self._variances:
            found = node_variances(self._found, np.array([node]))
            self._variances[node] = found.blocks[int(found.which[0])]
        return self._variances[node]


def _transposed(blocks: Blocks) -> Blocks:
    return np.ascontiguousarray(np.swapaxes(blocks, -1, -2))


def _inner(histogram: Histogram, blocks: Blocks, some: Sequence[Cell], other: Sequence[Cell]) -> Floats:
    """f' (sum_S M_S (x) P_S) g for all pairs of counts of two nodes.

    P_S is a product over the regular variables: f.g - (1.f)(1.g)/n for those of S, (1.f)(1.g)/n for the others.
    """
    dense = [_dense_rows(histogram, one) for one in (some, other)]
    inside, outside = [], []
    for v in histogram.regular:
        f, g = (np.stack([cell.rows[v] for cell in one]) for one in (some, other))
        means = np.outer(f.sum(axis=1), g.sum(axis=1)) / histogram.shape[v]
        inside.append(f @ g.T - means)
        outside.append(means)
    found = np.zeros((len(some), len(other)))
    for subset, block in enumerate(blocks):
        part = product(product(dense[0], block), np.ascontiguousarray(dense[1].T))
        for at in range(len(histogram.regular)):
            part = part * (inside[at] if subset >> at & 1 else outside[at])
        found += part
    return found


def _dense_rows(histogram: Histogram, cells: Sequence[Cell]) -> Floats:
    """(count, dense cell) -> 1 where the count sums it."""
    codes = histogram.dense_codes
    found = np.ones((len(cells), len(codes)))
    for at, v in enumerate(histogram.dense):
        found *= np.stack([cell.rows[v] for cell in cells])[:, codes[:, at]]
    return found
