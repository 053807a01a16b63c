"""What the rows of a p-table amount to, for showing and for checking; it accepts biased rows, which PTable refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from discreet.errors import Problem

Law = Mapping[int, float]  # change -> probability


@dataclass(frozen=True)
class RowFacts:
    """The moments and the range of one row."""

    count: int
    total: float
    mean: float
    variance: float
    stay: float
    least: int
    most: int
    smallest_positive: int | None  # the smallest positive count that the row can publish
    monotone: bool  # p never falls from the lowest change up to no change


@dataclass(frozen=True)
class Demands:
    """What a table is checked for, beyond being unbiased; none means that anything will do."""

    D: int | None = None
    V: float | None = None
    js: int | None = None
    monotone: bool = False
    tolerance: float = 1e-6


def row_facts(count: int, law: Law) -> RowFacts:
    """Compute sum p, sum v p, sum v^2 p, p(0) and the range of the changes that can happen."""
    possible = sorted(change for change, p in law.items() if p > 0)
    upward = [law[change] for change in sorted(law) if change <= 0]
    return RowFacts(
        count,
        total=sum(law.values()),
        mean=sum(change * p for change, p in law.items()),
        variance=sum(change**2 * p for change, p in law.items()),
        stay=law.get(0, 0.0),
        least=possible[0],
        most=possible[-1],
        smallest_positive=min((count + change for change in possible if count + change > 0), default=None),
        monotone=0 not in law or all(a <= b + 1e-8 for a, b in pairwise(upward)),
    )


def unmet(rows: Sequence[RowFacts], wanted: Demands) -> Iterator[Problem]:
    """Name every demand that a row does not meet."""
    for row in rows:
        key = f"count {row.count}"
        if abs(row.total - 1.0) > wanted.tolerance:
            yield Problem("", key, f"the probabilities sum to {row.total:.8g}", "make them sum to 1")
        if abs(row.mean) > wanted.tolerance:
            yield Problem(
                "", key, f"the mean change is {row.mean:.6g}", "make it 0, or allow it with --tolerance"
            )
        if wanted.V is not None and row.variance > wanted.V + wanted.tolerance * max(1.0, wanted.V):
            yield Problem("", key, f"the variance is {row.variance:.6g}", f"keep it within V = {wanted.V:g}")
        if wanted.D is not None and max(-row.least, row.most) > wanted.D:
            change = max(-row.least, row.most)
            yield Problem("", key, f"a change of {change}", f"keep changes within D = {wanted.D}")
        if wanted.js is not None and row.smallest_positive is not None and row.smallest_positive <= wanted.js:
            published = f"{row.smallest_positive} can be published"
            yield Problem("", key, published, f"publish only 0 and counts above js = {wanted.js}")
        if wanted.monotone and not row.monotone:
            yield Problem("", key, "p falls on the way up to no change", "compute the table with monotony")
