"""Published values as possible true counts, by what an outsider knows of the noise: its law, or a bound, or a variance.

It owns that choice and its confidence; the formulas are maths.readings'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from discreet.audit.area_tables import AreaSums
from discreet.audit.published import Integers, KnownNoise
from discreet.errors import mistake
from discreet.maths.laws import Law
from discreet.maths.readings import Reading, Shown, both, by_law, plainly, within
from discreet.perturb.private import post_processed
from discreet.schema.crosstab import Signature

FAR_BELOW = -(10**9)  # no noise reaches it


@dataclass(eq=False)
class NoiseReader:
    """Turns published values into possible counts by what is known of the noise; equal values are turned once."""

    noise: KnownNoise
    bound: int | None
    confidence: float
    known: dict[tuple[int, int, int], Reading] = field(default_factory=dict)  # (law, value, sums) -> reading

    @property
    def by_law(self) -> bool:
        """Whether the law is used, not a bound alone."""
        return self.bound is None and self.noise.law is not None

    @property
    def confidence_held(self) -> float:
        """1 where the noise has a known bound."""
        if self.by_law:
            laws = [self.noise.law, *self.noise.laws.values()]
            return self.confidence if any(law and law.row(0).omitted for law in laws) else 1.0
        return 1.0 if self.bound is not None or self.noise.bound is not None else self.confidence

    def readings(self, sums: AreaSums, values: Integers) -> list[Reading]:
        """One for each sum; where tables disagree on a sum, each value is news."""
        found: dict[int, Reading] = {}
        for m, value in np.unique(np.stack([sums.sum_of, values]), axis=1).T.tolist():
            reading = self._reading(sums.signatures[m], value, len(sums.signatures))
            found[m] = both(found[m], reading) if m in found else reading
        return [found[m] for m in range(len(sums.signatures))]

    def _reading(self, signature: Signature, value: int, sums: int) -> Reading:
        law = self.noise.law_of(signature) if self.by_law else None
        key = (id(law), value, sums)
        if key not in self.known:
            self.known[key] = self._by_law(law, value, sums) if law else self._by_bound(value, sums)
        return self.known[key]

    def _by_law(self, law: Law, value: int, sums: int) -> Reading:
        """Every count that can be published so; of unbounded noise, those outside its tails of the given confidence."""
        tail = (1 - self.confidence) / sums if law.row(max(value, 0)).omitted else 0.0
        return by_law(self._shown(value), law, self.noise.keeps_zeros, tail)

    def _by_bound(self, value: int, sums: int) -> Reading:
        least = int(self.noise.keeps_zeros and value != 0)
        return within(self._shown(value), self._known_bound(sums), least, self.noise.variance)

    def _known_bound(self, sums: int) -> int:
        """The bound given or told; else Chebyshev's for all sums at once."""
        if self.bound is not None:
            return self.bound
        if self.noise.bound is not None:
            return self.noise.bound
        if self.noise.variance is None:
            remedy = "give a bound to try with, or the law of the noise"
            raise mistake("", "noise", "neither its law nor a bound nor its variance is public", remedy)
        return math.ceil(math.sqrt(self.noise.variance * sums / (1 - self.confidence)))

    def _shown(self, value: int) -> Shown:
        """The noisy counts that post-processing publishes as the value; negative ones may all be."""
        rule = self.noise.published
        reach = rule.rounding + rule.threshold
        noisy = np.arange(value - reach, value + reach + 1)
        noisy = noisy[post_processed(noisy, rule) == value]
        if not len(noisy):
            return plainly(value)
        bottom = np.array([FAR_BELOW])
        lowest = FAR_BELOW if post_processed(bottom, rule)[0] == value else int(noisy[0])
        return Shown(value, lowest, int(noisy[-1]))
