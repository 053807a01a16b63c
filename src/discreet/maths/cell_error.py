"""What noise does to one cell: expected errors of the published count for a known true count.

It owns the measures; the law of the published count comes from elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.maths.pmf import Floats


@dataclass(frozen=True)
class CellError:
    """Expected errors of a published count b for the true count a.

    l1 = E abs(b - a); rmse = sqrt(E (b - a)^2); relative = l1/a; unchanged = Pr[b = a]; false_zero = Pr[b = 0] where
    a > 0; false_positive = Pr[b > 0] where a = 0. None where a measure has no meaning.
    """

    count: int
    l1: float
    rmse: float
    relative: float | None
    unchanged: float
    false_zero: float | None
    false_positive: float | None


def expected_error(count: int, published: NDArray[np.int64], p: Floats) -> CellError:
    """The expected errors where published[k] has the probability p[k]; a value may stand several times."""
    distance = np.abs(published - count).astype(np.float64)
    l1 = float(p @ distance)
    return CellError(
        count,
        l1,
        math.sqrt(float(p @ distance**2)),
        l1 / count if count else None,
        float(p[distance == 0].sum()),
        float(p[published == 0].sum()) if count else None,
        None if count else float(p[published > 0].sum()),
    )
