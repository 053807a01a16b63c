"""A correction between two releases under one secret: which code a changed person has, by the cells that changed.

With the cell key method the noise of a cell depends on its people only. Between two releases with the same keys a cell
without a changed person is published with the same value, and one with a changed person with another value unless the
new noise hides the change. The hypotheses that a person has the code e are therefore compared by what is seen in each
cross-tabulation t: its cell changed with probability 1 - q if the person is there, and with r_t, the share of changed
cells in t, if not.
"""

from __future__ import annotations

from math import exp, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from discreet.maths.noise.law import Pmf

Floats = NDArray[np.float64]
UNKNOWN_HIDDEN = 0.2  # assumed where nothing is known of the noise; about that of V = 2
LEAST, MOST = 1e-6, 0.5  # of the chance that a change is hidden


def hidden_by_law(changes: Pmf) -> float:
    """q = sum_x p(x) p(x - 1): new noise that takes back the person who came."""
    return _within(float(changes.p[1:] @ changes.p[:-1]))


def hidden_by_variance(variance: float) -> float:
    """The same for normal noise: the density of N(0, 2 V) at one."""
    if variance <= 0:
        return LEAST
    return _within(exp(-1 / (4 * variance)) / sqrt(4 * pi * variance))


def _within(q: float) -> float:
    return min(max(q, LEAST), MOST)


def evidence(hidden: float, background: float) -> tuple[float, float]:
    """What a changed cell and an unchanged one add to the logarithm of the odds that the person is there."""
    seen = 1 - hidden
    background = min(max(background, LEAST), seen)
    return log(seen / background), log(hidden / (1 - background))


def posterior(scores: Floats) -> Floats:
    """The probability of each hypothesis, all being equally likely before."""
    weights = np.exp(scores - scores.max())
    found: Floats = weights / weights.sum()
    return found
