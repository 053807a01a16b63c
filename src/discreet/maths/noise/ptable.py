"""The perturbation table of the cell key method: the law of the published count for each count, and its moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.maths.reproducible import dot, log, total

TOLERANCE = 1e-6  # R's files carry eight digits, so sums and means of theirs can be off by some 1e-7


@dataclass(frozen=True, eq=False)
class PTable:
    """Rows i = 0..last; row i gives p(i -> j) for the targets j, and the last row serves all larger counts.

    Every row sums to 1 and has mean i (the noise is unbiased); row 0 stays zero; a count 1..js is never
    published; no change exceeds D; no variance exceeds V. A table that breaks one of these by more than
    ``tolerance`` is refused. D, V and js are checked where they are known.

    >>> import discreet as ds
    >>> table = ds.ptable(V=2, D=5).found
    >>> table.reach, round(table.variance(table.last_row), 3)
    (5, 2.0)
    """

    targets: tuple[NDArray[np.int64], ...]
    probabilities: tuple[NDArray[np.float64], ...]
    D: int | None = None
    V: tuple[float, ...] | None = None  # the bound of the variance in rows 1, 2, ..
    js: int | None = None
    tolerance: float = TOLERANCE
    notes: tuple[str, ...] = ()  # constraints that the solver had to relax, as sentences

    def __post_init__(self) -> None:
        problems = tuple(_problems(self))
        if problems:
            raise Mistakes(problems)
        for array in (*self.targets, *self.probabilities):
            array.setflags(write=False)

    @property
    def last_row(self) -> int:
        """The row that serves its own count and all larger ones."""
        return len(self.targets) - 1

    def row_of(self, count: int) -> int:
        """The row that serves a count."""
        return min(count, self.last_row)

    def changes(self, row: int) -> NDArray[np.int64]:
        """The possible changes v = j - i, ascending."""
        return self.targets[row] - row

    def mean(self, row: int) -> float:
        """The expected change: sum v p."""
        return dot(self.changes(row), self.probabilities[row])

    def variance(self, row: int) -> float:
        """The expected squared change: sum v^2 p."""
        return dot(self.changes(row) ** 2, self.probabilities[row])

    def stay(self, row: int) -> float:
        """The probability that the count is published as it is."""
        return total(self.probabilities[row][self.targets[row] == row])

    def entropy(self, row: int) -> float:
        """The entropy -sum p log p, in nats."""
        p = self.probabilities[row][self.probabilities[row] > 0]
        return -dot(p, log(p))

    @cached_property
    def reach(self) -> int:
        """The largest change that the table can make."""
        return max(int(np.abs(self.changes(row)).max()) for row in range(len(self.targets)))

    @cached_property
    def smallest_positive(self) -> int:
        """The smallest positive count that the table can publish; js + 1 where js is used to the full."""
        positive = [int(j[(j > 0) & (p > 0)].min(initial=np.iinfo(np.int64).max)) for j, p in self._rows()]
        return min(positive, default=0)

    @cached_property
    def transition_matrix(self) -> NDArray[np.float64]:
        """The dense matrix (row i, target j) -> p."""
        width = max(int(j.max()) for j in self.targets) + 1
        matrix = np.zeros((len(self.targets), width))
        for row, (j, p) in enumerate(self._rows()):
            matrix[row, j] = p
        matrix.setflags(write=False)
        return matrix

    def is_monotone(self, row: int) -> bool:
        """Whether p never falls from the lowest target up to v = 0; true where the row has no v = 0."""
        p = self.probabilities[row][self.targets[row] <= row]
        return row not in self.targets[row] or bool((np.diff(p) >= -self.tolerance).all())

    def _rows(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        return zip(self.targets, self.probabilities, strict=True)


def ptable_of_rows(
    rows: Sequence[tuple[Sequence[int], Sequence[float]]], js: int | None = None, tolerance: float = TOLERANCE
) -> PTable:
    """Make a table from (targets, probabilities) of i = 0, 1, ..; the targets of a row in any order."""
    targets, probabilities = [], []
    for j, p in rows:
        order = np.argsort(np.asarray(j, dtype=np.int64), kind="stable")
        targets.append(np.asarray(j, dtype=np.int64)[order])
        probabilities.append(np.asarray(p, dtype=np.float64)[order])
    return PTable(tuple(targets), tuple(probabilities), js=js, tolerance=tolerance)


def _problems(table: PTable) -> Iterator[Problem]:
    if not table.targets or len(table.targets) != len(table.probabilities):
        yield Problem(
            "", "p-table", "rows missing", "give targets and probabilities for every row, 0 included"
        )
        return
    means: dict[int, float] = {}
    for row, (j, p) in enumerate(zip(table.targets, table.probabilities, strict=True)):
        shape = tuple(_shape_problems(row, j, p))
        yield from shape
        if not shape:
            yield from _law_problems(table, row)
            yield from _support_problems(table, row)
            if abs(total(p) - 1.0) <= table.tolerance < abs(table.mean(row)):
                means[row] = table.mean(row)
    yield from _biased(means, "row", "make it 0, or the published counts are biased")


def _biased(means: Mapping[int, float], named: str, remedy: str) -> Iterator[Problem]:
    """One problem for all counts whose mean change is not 0: the first of them, and the largest mean."""
    if not means:
        return
    first, *others = means
    value = f"the mean change is {means[first]:.6g}"
    if others:
        largest = max(means, key=lambda one: abs(means[one]))
        rest = "row" if len(others) == 1 else "rows"
        value += f", and not 0 in {len(others)} other {rest} (up to {means[largest]:.6g})"
    yield Problem("", f"{named} {first}", value, remedy)


def _shape_problems(row: int, j: NDArray[np.int64], p: NDArray[np.float64]) -> Iterator[Problem]:
    key = f"row {row}"
    if len(j) == 0 or len(j) != len(p):
        yield Problem(
            "", key, f"{len(j)} targets, {len(p)} probabilities", "give one probability for each target"
        )
    elif (np.diff(j) <= 0).any():
        yield Problem("", key, "targets repeat or do not ascend", "list each target once, ascending")
    elif (j < 0).any():
        yield Problem("", key, f"target {j.min()}", "leave out negative counts")
    elif not np.isfinite(p).all() or (p < 0).any() or (p > 1).any():
        yield Problem("", key, "a probability outside 0..1", "correct it")


def _law_problems(table: PTable, row: int) -> Iterator[Problem]:
    key, whole = f"row {row}", total(table.probabilities[row])
    if abs(whole - 1.0) > table.tolerance:
        yield Problem("", key, f"the probabilities sum to {whole:.8g}", "make them sum to 1")
    bound = None if table.V is None or row == 0 else table.V[row - 1]
    if bound is not None and table.variance(row) > bound + table.tolerance * max(1.0, bound):
        yield Problem("", key, f"the variance is {table.variance(row):.8g}, above V = {bound:g}", "raise V")


def _support_problems(table: PTable, row: int) -> Iterator[Problem]:
    key, used = f"row {row}", table.targets[row][table.probabilities[row] > 0]
    if row == 0 and (used != 0).any():
        yield Problem("", key, "zero can become positive", "let row 0 stay zero")
    if table.js is not None and ((used > 0) & (used <= table.js)).any():
        yield Problem(
            "", key, f"target {used[used > 0].min()}", f"publish only 0 and counts above js = {table.js}"
        )
    if table.D is not None and np.abs(used - row).max() > table.D:
        yield Problem(
            "", key, f"a change of {np.abs(used - row).max()}", f"keep changes within D = {table.D}"
        )


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
class TableFacts:
    """The worst of all rows, and what they publish."""

    largest_change: int
    largest_variance: float
    largest_bias: float
    smallest_published: int
    monotone: bool


def table_facts(rows: Sequence[RowFacts]) -> TableFacts:
    """Summarise the rows of a table."""
    return TableFacts(
        largest_change=max(max(-row.least, row.most) for row in rows),
        largest_variance=max(row.variance for row in rows),
        largest_bias=max(abs(row.mean) for row in rows),
        smallest_published=min(row.smallest_positive or row.count + 1 for row in rows[1:]),
        monotone=all(row.monotone for row in rows),
    )


@dataclass(frozen=True)
class Demands:
    """What a table is checked for, in addition to being unbiased; None means no demand."""

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
    means = {row.count: row.mean for row in rows if abs(row.mean) > wanted.tolerance}
    yield from _biased(means, "count", "make it 0, or allow it with --tolerance")
    for row in rows:
        key = f"count {row.count}"
        if abs(row.total - 1.0) > wanted.tolerance:
            yield Problem("", key, f"the probabilities sum to {row.total:.8g}", "make them sum to 1")
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
