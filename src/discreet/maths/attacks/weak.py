"""Noise below any protection: how often a published small count is simply the true one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from discreet.maths.noise.publishing import PublishedLaw

MOST_TRUE = 0.9  # beyond this chance noise does not protect
JUDGED = 3  # the smallest counts that can be published unchanged
FARTHEST = 40  # true counts beyond the published one that are compared with it
LARGEST = 10_000  # a law that publishes no smaller count is not judged


@dataclass(frozen=True)
class TrueCount:
    """A small published count, and the chance that it is the true one."""

    published: int
    chance: float


def surest_small_count(law: PublishedLaw) -> TrueCount:
    """Of the three smallest counts that can be published unchanged, the one that is the surest.

    Pr[n = j | j] = p(j | j) / sum over n of p(j | n), all true counts n being equally likely before. Nothing else is
    known of the cell: any other attack on it starts from here.
    """
    shown = (j for j in range(1, LARGEST) if law.row(j).at(j) > 0)
    judged = [TrueCount(j, _chance(law, j)) for j in islice(shown, JUDGED)]
    return max(judged, key=lambda one: one.chance, default=TrueCount(0, 0.0))


def _chance(law: PublishedLaw, published: int) -> float:
    likely = [law.row(true).at(published) for true in range(published + FARTHEST + 1)]
    return float(likely[published] / sum(likely))
