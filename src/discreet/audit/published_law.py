"""The law of what is published: noise, then post-processing, with empty cells left empty where that is the rule.

It owns how post-processing and kept zeros change a law, and the Bayes factors of published counts; the noise itself is
maths'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from discreet.audit.evidence import NOTHING_MORE, Integers, KnownNoise
from discreet.maths.attacks.bayes import Adversary, probabilities
from discreet.maths.cells.alignment import distinct_numbers
from discreet.maths.noise.additive import Law
from discreet.maths.noise.hellinger import settled
from discreet.maths.noise.law import Floats, Pmf
from discreet.perturb.private import post_processed
from discreet.programme.cube import Signature
from discreet.programme.noise import Negatives, PostProcessing

MOST_KEPT = 64  # pairs of rows that are kept to be looked up again
EMPTY = np.ones(1)  # the law of a cell that stays empty


@dataclass(frozen=True)
class PublishedLaw:
    """A law of noise and what is done to its counts before they are published."""

    law: Law
    processed: PostProcessing = NOTHING_MORE
    keeps_zeros: bool = False
    _found: dict[tuple[int, int, bool], float] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _beside: dict[int, Adversary] = field(default_factory=dict, init=False, repr=False, compare=False)

    def row(self, count: int) -> Pmf:
        """The law of the published value of a true count."""
        if count == 0 and self.keeps_zeros:
            return Pmf(0, EMPTY)
        noisy = self.law.row(count)
        values = post_processed(noisy.values, self.processed)
        p = np.zeros(int(values.max() - values.min()) + 1)
        np.add.at(p, values - values.min(), noisy.p)
        return Pmf(int(values.min()), p, noisy.omitted)

    def log_factors(self, known: Integers, published: Integers) -> Floats:
        """log P(j | x0 + 1)/P(j | x0) of pairs; inf where only the target explains j, -inf where it cannot.

        What differs in x0 and j alike has the same factor, so that few different pairs are worked out.
        """
        if not len(known):
            return np.zeros(0)
        base, hidden = np.minimum(known, settled(self.law, self.keeps_zeros)), published == 0
        change = published - (known - base)
        lowest, width = int(change.min()), int(change.max() - change.min()) + 1
        number = (base * width + change - lowest) * 2 + hidden
        pairs, where, _ = distinct_numbers(number, (int(base.max()) + 1) * width * 2)
        found = [
            self._factor(pair // 2 // width, pair // 2 % width + lowest, bool(pair % 2))
            for pair in pairs.tolist()
        ]
        return np.array(found)[where]

    def _factor(self, known: int, value: int, hidden: bool) -> float:
        """The log factor of a published value, worked out once; a hidden one is 0, shifted with the known count."""
        pair = (known, value, hidden)
        if pair not in self._found:
            self._found[pair] = self._worked_out(known, value, hidden)
        return self._found[pair]

    def _worked_out(self, known: int, value: int, hidden: bool) -> float:
        adversary = self._adversary(known)
        low, high = self._behind(value, hidden)
        if known == 0 and self.keeps_zeros:
            here = _mass(adversary.with_target, low, high)
            return (math.log(here) if here > 0 else -math.inf) if hidden else math.inf
        here, away = (_mass(law, low, high) for law in (adversary.with_target, adversary.without))
        if low == high or (here == 0 and away == 0):
            return adversary.log_factor(high)
        if away == 0:
            return math.inf
        return math.log(here) - math.log(away) if here > 0 else -math.inf

    def _adversary(self, known: int) -> Adversary:
        """The rows of the noise beside so many others; a few are kept, for pairs come in their order."""
        if known not in self._beside:
            if len(self._beside) >= MOST_KEPT:
                self._beside.clear()
            self._beside[known] = Adversary(self.law, known)
        return self._beside[known]

    def _behind(self, value: int, hidden: bool) -> tuple[float, int]:
        """The least and the largest noisy count that is published as this value."""
        rule, half = self.processed, self.processed.rounding // 2
        if hidden and (rule.threshold or rule.negatives is Negatives.ZERO):
            visible = (
                -(-max(rule.threshold, 1) // rule.rounding) * rule.rounding
            )  # the least multiple that is shown
            return -math.inf, value + visible - half - 1
        return value - half, value - half + rule.rounding - 1


class PublishedLaws:
    """The laws of the published cells of all cross-tabulations, each made once; an error where one is not known."""

    def __init__(self, noise: KnownNoise) -> None:
        self._noise = noise
        self._made: dict[Law, PublishedLaw] = {}

    def of(self, signature: Signature) -> PublishedLaw:
        """The law of a cross-tabulation's cells."""
        law = self._noise.law_of(signature)
        return self._made.setdefault(law, PublishedLaw(law, self._noise.published, self._noise.keeps_zeros))


def _mass(law: Pmf, low: float, high: int) -> float:
    if low == -math.inf:
        return law.cdf(high)
    return float(probabilities(law, np.arange(int(low), high + 1)).sum())
