"""Reconstruction of a private bit of every record from random subset queries (Dinur & Nissim 2003).

A flexible mechanism answers any count that a user describes. With m = n log^2 n random subsets of n records and noise
below the order of sqrt(n), nearly all records follow (theorem 3 of Dinur & Nissim, as cited by Bach 2020, section
2.1); noise of the order of sqrt(m), as under a budget that all queries share, withstands (theorem 5 there).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.maths.cells.lookup import KEYS, Lookup, Order, build, change
from discreet.maths.noise.additive import AdditiveLaw
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.law import Floats

if TYPE_CHECKING:
    from scipy import special
else:
    special = lazily("scipy.special")

Integers = NDArray[np.int64]
Bits = NDArray[np.bool_]

LARGE = 1000  # a count that has the noise of large counts
MOST_REPETITIONS = 1_000
MOST_RECORDS, MOST_QUERIES = 2_000, 100_000  # of one demonstration: some hundred megabytes


def queries_of_theorem(records: int) -> int:
    """n log^2 n, natural logs, rounded up: the number of queries of theorem 3."""
    return math.ceil(records * math.log(records) ** 2)


def usual_queries(records: int) -> list[int]:
    """Numbers of queries that show how the share of records rises: n/2, n, 2n, .. up to those of the theorem."""
    most = queries_of_theorem(max(records, 2))
    doubled = [records // 2 * 2**step for step in range(12)]
    return [*(one for one in doubled if 0 < one < most), most]


class SubsetAnswers(Protocol):
    """How the mechanism answers: the counts of the records that are in each subset and have the bit."""

    def answer(self, asked: Bits, bits: Bits, generator: np.random.Generator) -> Integers:
        """(query, record) subsets -> published counts."""
        ...

    def deviation(self, queries: int) -> float:
        """The standard deviation of the noise of one of so many answers."""
        ...


@dataclass(frozen=True, eq=False)
class AddedNoise:
    """Independent noise of one law in every answer, however many there are."""

    law: AdditiveLaw

    def answer(self, asked: Bits, bits: Bits, generator: np.random.Generator) -> Integers:
        """Add noise to the true counts."""
        return _counts(asked, bits) + _drawn(self.law, len(asked), generator)

    def deviation(self, queries: int) -> float:
        """That of the law."""
        return math.sqrt(self.law.pmf.variance)


@dataclass(frozen=True, eq=False)
class SharedBudget:
    """Two-sided geometric noise under one epsilon that all answers share: epsilon / m each, sensitivity 1."""

    epsilon: float

    def answer(self, asked: Bits, bits: Bits, generator: np.random.Generator) -> Integers:
        """Add noise to the true counts."""
        return _counts(asked, bits) + _geometric(self.epsilon / len(asked), len(asked), generator)

    def deviation(self, queries: int) -> float:
        """sqrt(2a) / (1 - a), a = e^(-epsilon/m)."""
        each = self.epsilon / queries
        return math.sqrt(2 * math.exp(-each)) / -math.expm1(-each)


@dataclass(frozen=True, eq=False)
class CellKeys:
    """The cell key method: a record key for every record, and the change that the sum of the keys looks up."""

    law: PTableLaw

    def answer(self, asked: Bits, bits: Bits, generator: np.random.Generator) -> Integers:
        """Perturb the true counts; empty subsets stay empty."""
        keys = generator.integers(0, KEYS, asked.shape[1], dtype=np.int64)
        counts = _counts(asked, bits)
        cell_keys = (asked.astype(np.int64) @ np.where(bits, keys, 0)) % KEYS
        return np.where(counts == 0, 0, counts + change(self._lookup, counts, cell_keys.astype(np.uint32)))

    def deviation(self, queries: int) -> float:
        """That of large counts."""
        return math.sqrt(self.law.row(LARGE).variance)

    @cached_property
    def _lookup(self) -> Lookup:
        return build(self.law.ptable, Order.PLAIN)


def _counts(asked: Bits, bits: Bits) -> Integers:
    found: Integers = np.count_nonzero(asked & bits, axis=1).astype(np.int64)
    return found


def _drawn(law: AdditiveLaw, size: int, generator: np.random.Generator) -> Integers:
    """A floating-point draw, which a release must not use."""
    found: Integers = generator.choice(law.pmf.values, size, p=law.pmf.p / law.pmf.p.sum())
    return found


def _geometric(epsilon: float, size: int, generator: np.random.Generator) -> Integers:
    p = -math.expm1(-epsilon)
    found: Integers = generator.geometric(p, size) - generator.geometric(p, size)
    return found


def least_squares(asked: Bits, answers: Integers, deviation: float) -> Floats:
    """The linear estimate of every bit, for bits that are 0 or 1 with equal probability and noise of this deviation.

    c = 1/2 + A' (A A' + 4 sigma^2 I)^-1 (y - A 1/2), solved by the smaller of the two equivalent systems. Rounded at
    1/2 it is the reconstruction; where m >> n it is that of ordinary least squares.
    """
    A = asked.astype(np.float64)
    y = answers - 0.5 * A.sum(axis=1)
    queries, records = A.shape
    ridge = max(4 * deviation**2, 1e-9)
    if queries < records:
        return 0.5 + A.T @ np.linalg.solve(A @ A.T + ridge * np.eye(queries), y)
    return 0.5 + np.linalg.solve(A.T @ A + ridge * np.eye(records), A.T @ y)


def predicted_share(records: int, queries: int, deviation: float) -> float:
    """The expected share of right bits of many records, Phi(1 / (2 sqrt(eta))).

    Each bit is seen as through normal noise of variance eta: the noise of the answers and what is not known of the
    other records, eta = 4 sigma^2 / m + (n / m) eta / (1 + 4 eta), for bits of variance 1/4 and subsets of half of the
    records. With m >> n this is 4 sigma^2 / m, so that sigma must grow like sqrt(m) to protect.
    """
    s, r = 4 * deviation**2 / queries, records / queries
    b = 1 - 4 * s - r
    root = math.sqrt(b * b + 16 * s)
    eta = 2 * s / (b + root) if b > 0 else (root - b) / 8
    return float(special.ndtr(0.5 / math.sqrt(eta))) if eta > 0 else 1.0


@dataclass(frozen=True, kw_only=True)
class SubsetReconstruction:
    """How many bits came back from so many random subset queries."""

    records: int
    queries: int
    deviation: float  # of the noise of one answer
    share: float  # of the records whose bit is right, on average over the repetitions
    error: float  # the standard error of that share
    exact: float  # share of the repetitions in which every record is right
    predicted: float


def reconstruct_subsets(
    answers: SubsetAnswers,
    records: int,
    queries: int,
    repetitions: int,
    generator: Callable[[Sequence[int]], np.random.Generator],
) -> SubsetReconstruction:
    """Ask random subsets of some random populations, and round the estimates.

    A subset has every record by the toss of a coin. ``generator`` makes the random numbers of one population from what
    distinguishes it from others.
    """
    for name, value, least, most in (
        ("records", records, 2, MOST_RECORDS),
        ("queries", queries, 1, MOST_QUERIES),
        ("repetitions", repetitions, 1, MOST_REPETITIONS),
    ):
        if not least <= value <= most:
            raise mistake("", name, str(value), f"give a whole number from {least} to {most}")
    deviation = answers.deviation(queries)
    shares = np.empty(repetitions)
    for at in range(repetitions):
        numbers = generator((records, queries, at))
        bits = numbers.random(records) < 0.5
        asked = numbers.random((queries, records)) < 0.5
        found = least_squares(asked, answers.answer(asked, bits, numbers), deviation) > 0.5
        shares[at] = float((found == bits).mean())
    spread = float(shares.std(ddof=1)) if repetitions > 1 else 0.5
    return SubsetReconstruction(
        records=records,
        queries=queries,
        deviation=deviation,
        share=float(shares.mean()),
        error=spread / math.sqrt(repetitions),
        exact=float((shares == 1).mean()),
        predicted=predicted_share(records, queries, deviation),
    )
