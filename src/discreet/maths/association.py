"""Two-way tables as an analyst reads them: Cramer's V, the chi-square test of independence and the order of cells.

It owns these statistics on sparse cells; noise-aware tests are elsewhere, this is what somebody finds who ignores it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, rankdata

from discreet.maths.aligned import Integers
from discreet.maths.pmf import Floats


@dataclass(frozen=True)
class Independence:
    """chi2 = n (sum x^2 / (r c) - 1); V = sqrt(chi2 / (n min(rows - 1, columns - 1))); None where it has no meaning."""

    cramers_v: float | None
    p_value: float | None


NEITHER = Independence(None, None)


def independence(rows: Integers, columns: Integers, values: Integers) -> Independence:
    """Test the cells of a two-way table; negative values are taken as zero, and margins are sums of the cells."""
    here = values > 0
    rows, columns, x = rows[here], columns[here], values[here].astype(np.float64)
    r, c, n = np.bincount(rows, weights=x), np.bincount(columns, weights=x), float(x.sum())
    height, width = int((r > 0).sum()), int((c > 0).sum())
    if min(height, width) < 2:
        return NEITHER
    statistic = max(0.0, n * (float((x**2 / (r[rows] * c[columns])).sum()) - 1))
    freedom = (height - 1) * (width - 1)
    return Independence(
        math.sqrt(statistic / (n * (min(height, width) - 1))), float(chi2.sf(statistic, freedom))
    )


def rank_correlation(true: Integers, published: Integers) -> float | None:
    """Spearman's correlation of the cells' order, ties shared; None where one side does not vary."""
    if len(true) < 2:
        return None
    ranks: list[Floats] = [rankdata(side) - (len(true) + 1) / 2 for side in (true, published)]
    norm = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm else None
