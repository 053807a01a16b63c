"""What fixed zeros and the same noise for the same participants give away, whatever the epsilon; it owns no law."""

from __future__ import annotations

from discreet.maths.laws import Law
from discreet.maths.pmf import Pmf


def fixed_zeros_delta(law: Law) -> float:
    """1 - p(1 -> 0): the least delta of every epsilon where zeros stay zero; 0 where they do not.

    A positive published count rules the empty cell out, and a single person is published so with this probability.
    """
    return 1 - law.row(1).at(0) if law.row(0).at(0) == 1 else 0.0


def agreement(law: Law, count: int) -> float:
    """Pr[cells with i and i + 1 persons, of independent noise, are published alike] = sum_j p_i(j) p_{i+1}(j).

    For additive noise this is sum_v p(v) p(v + 1).
    """
    return _inner(law.row(count), law.row(count + 1))


def same_participants_delta(law: Law, count: int) -> float:
    """1 - sum_j p_i(j) p_{i+1}(j): the least delta of every epsilon with the same noise for the same participants.

    Take two cells that hold the same i persons, and Bob, who would be in one of them. Without Bob the participants are
    the same, so that the published counts are always equal. With Bob they differ with this probability, and that they
    do is proof.
    """
    return 1 - agreement(law, count)


def _inner(first: Pmf, second: Pmf) -> float:
    low, high = max(first.first, second.first), min(first.last, second.last)
    if low > high:
        return 0.0
    one = first.p[low - first.first : high + 1 - first.first]
    return float(one @ second.p[low - second.first : high + 1 - second.first])
