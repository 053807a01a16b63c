"""Which counts a published weighted sum leaves possible, for an attacker who knows that weights are whole numbers.

A cell of n records with whole weights >= 1, of sum W and largest s, is published with the count c and the sum W',
rounded to within r. With the exact mean weight, W' = c W/n: n is possible only where some whole W has
abs(c W/n - W') <= r, so that a mean of 7/3 shows that n is a multiple of 3. With noise of its own that reaches
a largest weights (``perturb.weights``), n is possible where some whole W >= n has
abs(c W/n - W') <= min(a (W - n + 1), c W/n) + r, because the largest weight is at most W - n + 1.

Weights that are multiples of another step are whole numbers of that step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]
Sums = NDArray[np.float64]
Marks = NDArray[np.bool_]


def leaves_possible(
    true: int | Counts, published: Counts, sums: Sums, *, reach: float, rounding: float
) -> Marks:
    """Whether a true count is possible beside each published count and weighted sum; reach 0 is the exact mean."""
    n = np.maximum(1, np.asarray(true, dtype=np.float64))
    c = published.astype(np.float64)
    exact = sums * n / c  # the W without any noise of its own
    found = np.zeros(len(published), dtype=bool)
    for whole in (np.floor(exact), np.ceil(exact)):
        weight = np.maximum(whole, n)
        core = c * weight / n
        room = np.minimum(reach * (weight - n + 1), core)
        found |= np.abs(core - sums) <= room + rounding * (1 + 1e-9)
    # one weight that is large enough: its noise grows faster than the distance
    return np.asarray(found | (reach > c / n))


def possible_counts(
    published: Counts, sums: Sums, changes: Marks, offset: int, *, reach: float, rounding: float
) -> Marks:
    """[cell, k]: whether the count ``published + offset - k`` is possible, by the changes that are, and by the sum.

    ``changes[cell, k]`` marks the changes k - offset that the noise of the count can make.
    """
    found = changes.copy()
    for k in range(changes.shape[1]):
        true = published + offset - k
        found[:, k] &= (true >= 1) & leaves_possible(true, published, sums, reach=reach, rounding=rounding)
    return found
