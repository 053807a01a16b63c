"""Intervals of the true count given the published one: exact where the law is public, else by the variance."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist

from discreet.errors import Mistakes
from discreet.maths.inference.intervals import checked_level, exact_interval
from discreet.maths.noise.additive import Law
from discreet.perturb.noise import Noise
from discreet.programme.cube import Signature
from discreet.serve.answer import NoiseRange
from discreet.text.phrase import phrase


class NoiseRanges:
    """Where true counts are likely to be, by the laws of a noise where they are public, else by its variance."""

    def __init__(self, noise: Noise, law_of: Callable[[Signature], Law] | None = None) -> None:
        """``law_of`` gives the laws of cross-tabulations that no release contains."""
        self._noise, self._law_of = noise, law_of or noise.law_of
        self._is_public = noise.law is not None or law_of is not None
        self._exact = lru_cache(maxsize=10_000)(exact_interval)

    def range_of(self, signature: Signature, published: int, level: float) -> NoiseRange | None:
        """Where the true count is likely to be; None where too little of the noise is public."""
        checked_level(level)
        if not self._is_public:
            return self._rough(published, level)
        try:
            found = self._exact(self._noise.published(self._law_of(signature)), published, level)
        except Mistakes:  # the law never publishes such a count, or spreads too far for a table of it
            return None
        message = phrase(
            "Before the noise was added, the count was from {low} to {high}: whatever it was, such a range contains "
            "it with at least {percent}% probability.",
            low=found.low,
            high=found.high,
            percent=100 * level,
        )
        return NoiseRange(found.low, found.high, level, message)

    def _rough(self, published: int, level: float) -> NoiseRange | None:
        """Normal noise of the public variance, no further than the public bound."""
        if self._noise.variance is None:
            return None
        reach = ceil(NormalDist().inv_cdf((1 + level) / 2) * sqrt(self._noise.variance))
        if self._noise.bound is not None:
            reach = min(reach, self._noise.bound)
        low, high = max(0, published - reach), published + reach
        message = phrase(
            "Before the noise was added, the count was about from {low} to {high} ({percent}%), judged by the largest "
            "variance of the noise.",
            low=low,
            high=high,
            percent=100 * level,
        )
        return NoiseRange(low, high, level, message)
