"""How probably a difference of published counts is the true one, by whatever is known of the noise.

It owns the choice between the exact law and a variance; the arithmetic is maths.signed_sums'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from discreet.audit.published import NOTHING_MORE, Integers, KnownNoise
from discreet.maths.averaging import success
from discreet.maths.laws import AdditiveLaw, Law
from discreet.maths.pmf import Pmf
from discreet.maths.row_laws import PTableLaw
from discreet.maths.signed_sums import cancel
from discreet.perturb.private import post_processed
from discreet.schema.crosstab import Signature
from discreet.schema.noise import Negatives, PostProcessing

SAMPLE = 2_000  # differences of a lot that a mean is worked out on


class DifferenceNoise(Protocol):
    """Says how probably the noise of a difference is zero."""

    def right(self, added: Iterable[int], subtracted: Iterable[int]) -> float:
        """Pr[the published difference is the true one], given the true counts of its cells."""
        ...


class NormalNoise:
    """Noise of which the variance V is known: erf(1/2 / sqrt(2 V m)) for m cells that are not empty."""

    def __init__(self, variance: float) -> None:
        self._variance = variance

    def right(self, added: Iterable[int], subtracted: Iterable[int]) -> float:
        """The chance that normal noise with the variance m V rounds to zero."""
        cells = sum(count > 0 for part in (added, subtracted) for count in part)
        return success(self._variance, cells) if cells else 1.0


class CellChange:
    """The law of what is added to a count until it is published, for every true count."""

    def __init__(self, law: Law, keeps_zeros: bool, published: PostProcessing = NOTHING_MORE) -> None:
        self._law, self._keeps_zeros, self._published = law, keeps_zeros, published
        self._alike = _alike(law, published)
        self._laws: dict[int, Pmf] = {}

    def classes(self, counts: Iterable[int]) -> Counter[int]:
        """How many of some counts are noisy, by a count whose change has the same law."""
        return Counter(self._alike(count) for count in counts if count > 0 or not self._keeps_zeros)

    def law(self, count: int) -> Pmf:
        """The law of the change of a count."""
        if count not in self._laws:
            row = self._law.row(count)
            values = post_processed(row.values, self._published) - count
            first = int(values.min())
            self._laws[count] = Pmf(
                first, np.bincount(values - first, weights=row.p).astype(np.float64), row.omitted
            )
        return self._laws[count]


class ExactNoise:
    """Noise of known laws, independent from cell to cell; the same question is worked out once."""

    def __init__(self, added: CellChange, subtracted: CellChange) -> None:
        self._sides = (added, subtracted)
        self._known: dict[tuple[frozenset[tuple[int, int]], ...], float] = {}

    def right(self, added: Iterable[int], subtracted: Iterable[int]) -> float:
        """By the exact law of the summed noise."""
        parts = zip(self._sides, (added, subtracted), strict=True)
        found = [(change, change.classes(counts)) for change, counts in parts]
        key = tuple(frozenset(classes.items()) for _, classes in found)
        if key not in self._known:
            plus, minus = ({change.law(n): many for n, many in part.items()} for change, part in found)
            self._known[key] = cancel(plus, minus)
        return self._known[key]


def _alike(law: Law, published: PostProcessing) -> Callable[[int], int]:
    """Count -> a count whose change has the same law, one for as many as possible."""
    changed = published.threshold > 0 or published.rounding > 1
    if isinstance(law, PTableLaw) and not changed:
        return law.ptable.row_of
    if isinstance(law, AdditiveLaw) and published.rounding == 1:
        clipped = published.negatives is Negatives.ZERO or changed
        far = published.threshold - law.pmf.first if clipped else 0
        return lambda count: min(count, far)
    return lambda count: count


class OutsiderNoise:
    """What an outsider can say of differences between the cells of two cross-tabulations."""

    def __init__(self, noise: KnownNoise) -> None:
        self._noise = noise
        self._known: dict[tuple[Law, Law], ExactNoise] = {}

    def of(self, added: Signature, subtracted: Signature) -> DifferenceNoise | None:
        """By the law where it is public, else by the variance; None where neither is."""
        noise = self._noise
        if noise.law is None:
            return None if noise.variance is None else NormalNoise(noise.variance)
        laws = (noise.law_of(added), noise.law_of(subtracted))
        if laws not in self._known:
            self._known[laws] = ExactNoise(
                *(CellChange(law, noise.keeps_zeros, noise.published) for law in laws)
            )
        return self._known[laws]


class MeanRate:
    """The mean probability that differences are right, each lot on a spread of at most so many of it."""

    def __init__(self) -> None:
        self._sum, self._known = 0.0, True

    def add(
        self,
        noise: DifferenceNoise | None,
        many: int,
        cells: Callable[[int], tuple[Integers, Integers]],
    ) -> None:
        """Take so many differences in; ``cells`` gives the true counts that one of them adds and subtracts."""
        if not many:
            return
        if noise is None:
            self._known = False
            return
        chosen = np.unique(np.linspace(0, many - 1, SAMPLE).astype(np.int64)).tolist()
        rates = [noise.right(*(side.tolist() for side in cells(at))) for at in chosen]
        self._sum += float(np.mean(rates)) * many

    @property
    def expected(self) -> float | None:
        """The expected number of right ones among all; None where nothing is known of the noise."""
        return self._sum if self._known else None
