"""How far one column decides another, from the counts of their pairs of values.

A value x of one column predicts the commonest value y among the other records with x. Of all N records whose x others
have too, R are predicted so, and B by the commonest y of all; the share

    lambda(y | x) = (R - B) / (N - B)

is Goodman & Kruskal's (1954), with each record left out of its own prediction: columns with many rare values would
predict any other column otherwise. It is 1 where y is a function of x, and about 0 where x and y are unrelated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Dependence:
    """How well one column predicts another."""

    predicted: int  # records whose value the others with the same x predict
    usual: int  # those with the commonest value
    judged: int  # records whose x others have too

    @property
    def gained(self) -> int:
        """The records that the commonest value leaves open."""
        return self.judged - self.usual

    @property
    def share(self) -> float:
        """lambda; zero where there is nothing to predict."""
        return (self.predicted - self.usual) / self.gained if self.gained else 0.0


def dependence(x: Integers, y: Integers, counts: Integers) -> Dependence:
    """How far x decides y, from the counts of all pairs that occur, each listed once."""
    if not len(x):
        return Dependence(0, 0, 0)
    order = np.lexsort((-counts, x))
    x, y, counts = x[order], y[order], counts[order]
    starts = np.flatnonzero(np.concatenate(([True], x[1:] != x[:-1])))
    sizes = np.add.reduceat(counts, starts)
    first = counts[starts]
    following = np.minimum(starts + 1, len(x) - 1)
    has_second = np.diff(starts, append=len(x)) > 1
    second = np.where(has_second, counts[following], 0)
    judged = sizes >= 2
    predicted = int(first[judged & (first - 1 > second)].sum())
    kept = np.repeat(judged, np.diff(starts, append=len(x)))
    usual = int(np.bincount(y[kept], weights=counts[kept]).max()) if kept.any() else 0
    return Dependence(predicted, usual, int(sizes[judged].sum()))
