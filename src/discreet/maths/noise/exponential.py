"""The exponential mechanism for a utility that is written out: p(b | a) proportional to e^(eta u(a, b) / Delta u).

Delta u is the largest abs(u(a, b) - u(a', b)) over neighbouring counts a, a' and the values b that both can have
(Rinott et al. 2018, (4.7) and (4.8)). In general eta = epsilon/2 (theorem 4.1); where u depends only on b - a the
normalising sums cancel and eta = epsilon (theorem 4.2), which is ``additive.exponential_mechanism``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from discreet.errors import mistake
from discreet.maths.noise.additive import AdditiveLaw, Number, exponential_mechanism, positive
from discreet.maths.noise.law import Listed, Pmf
from discreet.maths.privacy.divergence import PrivacyLoss, both_ways, largest_delta, smallest_epsilon

MOST_UTILITIES = 50_000  # in all rows together: they are written out in manifests


@dataclass(frozen=True)
class UtilityRow:
    """The utility of publishing first, first + 1, .. for one true count."""

    first: int
    values: tuple[Fraction, ...]

    @property
    def last(self) -> int:
        """The largest value that can be published."""
        return self.first + len(self.values) - 1

    def shifted(self, by: int) -> UtilityRow:
        """The same utilities for values that are larger by a constant."""
        return UtilityRow(self.first + by, self.values)


@dataclass(frozen=True, eq=False)
class UtilityTable:
    """u(a, b) for the true counts a = 0, 1, ..; the last row, moved along, serves all larger counts.

    From the last row on u thus depends on b - a only, and a single row is a utility of the change. Two tables with the
    same content are equal.
    """

    rows: tuple[UtilityRow, ...]

    def __post_init__(self) -> None:
        sizes = [len(row.values) for row in self.rows]
        if not sizes or min(sizes) < 2 or sum(sizes) > MOST_UTILITIES:
            value = f"{len(sizes)} rows with {min(sizes, default=0)} values at least, {sum(sizes)} in all"
            remedy = (
                f"list at least two published values for every count, and at most {MOST_UTILITIES} in all"
            )
            raise mistake("", "utility", value, remedy)
        for count, (row, after) in enumerate(pairwise(self._with_next())):
            if row.last < after.first or after.last < row.first:
                value = f"counts {count} and {count + 1} have no published value in common"
                raise mistake(
                    "", "utility", value, "list published values that overlap: one record must be hidden"
                )

    @property
    def last(self) -> int:
        """The count whose row serves all larger ones."""
        return len(self.rows) - 1

    def row(self, count: int) -> UtilityRow:
        """The utilities of one true count."""
        return self.rows[count] if count < self.last else self.rows[-1].shifted(count - self.last)

    @cached_property
    def sensitivity(self) -> Fraction:
        """Delta u: the largest difference between neighbouring counts, over the values that both can have."""
        return max(
            abs(one.values[b - one.first] - other.values[b - other.first])
            for one, other in pairwise(self._with_next())
            for b in range(max(one.first, other.first), min(one.last, other.last) + 1)
        )

    @cached_property
    def digest(self) -> str:
        """A SHA-256 of the content."""
        text = "\n".join(f"{row.first} {' '.join(map(str, row.values))}" for row in self.rows)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UtilityTable) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        what = "of the change" if self.last == 0 else f"of counts 0 to {self.last}"
        return f"{what}, sha256 {self.digest[:16]}"

    def _with_next(self) -> Iterator[UtilityRow]:
        """The rows and the one after them, which is the last one moved along."""
        yield from self.rows
        yield self.rows[-1].shifted(1)


@dataclass(frozen=True)
class UtilityLaw:
    """p(b | a) = e^(epsilon u(a, b) / (2 Delta u)) / sum, for a utility that does not depend on b - a only.

    Epsilon-DP where all rows have the same values (theorem 4.1); values that only one of two neighbours can have cost a
    delta, which is certified from the integers drawn like that of any other law.
    """

    table: UtilityTable
    epsilon_parameter: Fraction

    @property
    def settled(self) -> int:
        """The last row serves all larger counts."""
        return self.table.last

    @property
    def parameter(self) -> Fraction:
        """Its epsilon."""
        return self.epsilon_parameter

    def exponents(self, count: int) -> Listed:
        """The exact exponents of the row of a count; the least is 0."""
        row, scale = self.table.row(count), 2 * self.table.sensitivity
        best = max(row.values)
        weights = tuple(
            self.epsilon_parameter * (best - value) / scale if scale else Fraction(0) for value in row.values
        )
        return Listed(row.first, weights)

    def row(self, count: int) -> Pmf:
        """The law of the published count."""
        return self.exponents(count).pmf()

    def delta(self, epsilon: float) -> float:
        """The largest over all neighbouring rows."""
        return largest_delta(self._losses, epsilon)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at this delta; inf below the probability of values that a neighbour cannot have."""
        return smallest_epsilon(self._losses, delta)

    @property
    def rho(self) -> None:
        """None: the last row ends, so that some value rules a neighbour out."""
        return

    @cached_property
    def _losses(self) -> tuple[PrivacyLoss, ...]:
        return tuple(both_ways(pairwise(self.row(count) for count in range(self.table.last + 2))))


def utility_law(epsilon: Number, table: UtilityTable) -> AdditiveLaw | UtilityLaw:
    """The exponential mechanism of a utility table: added noise where there is a single row, of the change."""
    if table.last == 0:
        return exponential_mechanism(epsilon, table.rows[0].values, table.rows[0].first)
    return UtilityLaw(table, positive("epsilon", epsilon))
