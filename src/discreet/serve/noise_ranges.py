"""What a published count says of the true one, from the public words on the noise and from nothing else.

It owns the choice between an exact interval (the law is public) and an approximate one (its variance is); the
probabilities are ``maths.noisy_intervals``'.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import Protocol

from discreet.audit.evidence import KnownNoise
from discreet.errors import Mistakes
from discreet.maths.inference.intervals import checked_level, exact_interval
from discreet.maths.noise.additive import Law
from discreet.maths.noise.publishing import CountNoise, Publishing, count_noise
from discreet.programme.cube import Signature
from discreet.programme.noise import Negatives, PostProcessing
from discreet.serve.answer import NoiseRange
from discreet.text.phrase import phrase


class NoiseReader(Protocol):
    """What a published count says of the true one."""

    def range_of(self, signature: Signature, published: int, level: float) -> NoiseRange | None:
        """Where the true count is likely to be; None where too little of the noise is public."""


class PublicNoise:
    """Reads what is known of a noise: a law for each cross-tabulation, or a variance."""

    def __init__(self, known: KnownNoise, law_of: Callable[[Signature], Law | None] | None = None) -> None:
        self._known = known
        self._law_of = law_of or (lambda signature: known.laws.get(str(signature), known.law))
        self._noise_of = lru_cache(maxsize=64)(self._count_noise)
        self._exact = lru_cache(maxsize=10_000)(exact_interval)

    def range_of(self, signature: Signature, published: int, level: float) -> NoiseRange | None:
        """Where the true count is likely to be; None where too little of the noise is public."""
        checked_level(level)
        noise = self._noise_of(signature)
        if noise is None:
            return self._rough(published, level)
        try:
            found = self._exact(noise, published, level)
        except Mistakes:  # the law never publishes such a count
            return None
        words = phrase(
            "Before the noise was added, the count was from {low} to {high}: whatever it was, such a range holds it "
            "with at least {percent}% probability.",
            low=found.low,
            high=found.high,
            percent=100 * level,
        )
        return NoiseRange(found.low, found.high, level, words)

    def _count_noise(self, signature: Signature) -> CountNoise | None:
        law = self._law_of(signature)
        if law is None:
            return None
        try:
            return count_noise(law, _publishing(self._known.published, self._known.keeps_zeros))
        except Mistakes:  # a law that spreads too far to be told by columns
            return None

    def _rough(self, published: int, level: float) -> NoiseRange | None:
        """Normal noise of the public variance, no further than the public bound."""
        if self._known.variance is None:
            return None
        reach = ceil(NormalDist().inv_cdf((1 + level) / 2) * sqrt(self._known.variance))
        if self._known.bound is not None:
            reach = min(reach, self._known.bound)
        low, high = max(0, published - reach), published + reach
        words = phrase(
            "Before the noise was added, the count was about from {low} to {high} ({percent}%), judged by the largest "
            "variance of the noise.",
            low=low,
            high=high,
            percent=100 * level,
        )
        return NoiseRange(low, high, level, words)


def _publishing(rule: PostProcessing, keeps_zeros: bool) -> Publishing:
    return Publishing(rule.negatives is Negatives.ZERO, rule.rounding, rule.threshold, keeps_zeros)
