"""Differencing of population bases: what is left when cells of one are subtracted from cells of a larger one.

Two releases are differencing_releases', geographies that do not nest differencing_areas'. Breakdowns of one variable
are cuts of one tree, so that they differ by published cells alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.audit.bases import nested
from discreet.audit.crosstab_cells import Held, Reader, described, held
from discreet.audit.difference_noise import MeanRate, OutsiderNoise
from discreet.audit.published import Cells, Integers, Published, Universe
from discreet.audit.truth import Truth, values_at
from discreet.engine.progress import Progress, Quiet
from discreet.schema.crosstab import Levels

THRESHOLD = 10
SHOWN = 10  # differences that are spelled out

Pair = tuple[Held, Held]
Read = Mapping[str, Cells]


@dataclass(frozen=True)
class Apparent:
    """A difference of published counts as anybody can take it."""

    cell: Mapping[str, str]  # without totals
    difference: int


@dataclass(frozen=True)
class Subtraction:
    """What an outsider gets by subtracting the cells of one universe from those of another."""

    outer: str
    inner: str
    crosstabs: int
    compared: int
    small: int  # differences from 1 to below the threshold
    nonempty: int | None  # where somebody is surely left over, because the same people have the same noise
    examples: tuple[Apparent, ...]

    def summary(self) -> dict[str, Any]:
        """JSON-ready; every number in it is public."""
        return asdict(self)


@dataclass(frozen=True)
class Judgement:
    """How much of that is true, for the office: numbers of differences, never their sizes."""

    outer: str
    inner: str
    exact: int  # small differences that a release without noise would give away
    revealed: int  # of these, published with their true size
    expected: float | None  # the same by the law of the noise
    apparent: int  # small differences that are published
    apparent_right: int  # of these, true of the records that were counted
    apparent_original: int  # of these, true of the records before swapping

    def summary(self) -> dict[str, Any]:
        """JSON-ready, with the share of true differences that is revealed."""
        rate = self.revealed / self.exact if self.exact else None
        share = self.apparent_right / self.apparent if self.apparent else None
        return {**asdict(self), "revealed_rate": rate, "apparent_share": share}


def difference(
    published: Published, threshold: int = THRESHOLD, progress: Progress | None = None
) -> tuple[Subtraction, ...]:
    """Subtract every population base from those that hold it, cell by cell, from public tables alone."""
    pairs = list(nested(published.universes))
    told = _stage(progress, "subtracting population bases", len(pairs))
    found = []
    for outer, inner in pairs:
        found.append(_subtracted(outer, inner, published.noise.same_noise, threshold))
        told.step()
    return tuple(found)


def judge(
    published: Published, truth: Truth, threshold: int = THRESHOLD, progress: Progress | None = None
) -> tuple[Judgement, ...]:
    """Say how many of the differences of population bases are true, before and after protection."""
    pairs = list(nested(published.universes))
    told = _stage(progress, "judging differences of population bases", len(pairs))
    found = []
    for outer, inner in pairs:
        found.append(_judged(published, truth, outer, inner, threshold))
        told.step()
    return tuple(found)


def _stage(progress: Progress | None, name: str, total: int) -> Progress:
    told = progress or Quiet()
    told.stage(name, total)
    return told


def _subtracted(outer: Universe, inner: Universe, same_noise: bool, threshold: int) -> Subtraction:
    crosstabs, compared, small, nonempty = 0, 0, 0, 0
    examples: list[Apparent] = []
    for levels, pair, (wide, narrow) in _shared(outer, inner, None):
        numbers, left = _left(pair, wide, narrow)
        little = (left > 0) & (left < threshold)
        crosstabs, compared = crosstabs + 1, compared + len(left)
        small, nonempty = small + int(little.sum()), nonempty + int((left != 0).sum())
        examples += [
            Apparent(described(levels, outer.codelists, int(numbers[at])), int(left[at]))
            for at in np.flatnonzero(little)[: SHOWN - len(examples)]
        ]
    certain = nonempty if same_noise else None
    return Subtraction(outer.counted, inner.counted, crosstabs, compared, small, certain, tuple(examples))


def _left(pair: Pair, wide: Cells, narrow: Cells) -> Cells:
    """What is left of each cell of the outer universe of which the inner one has something."""
    numbers, values = narrow
    seen = (values > 0) & pair[0].has(numbers)
    return numbers[seen], values_at(wide, numbers[seen]) - values[seen]


def _judged(
    published: Published, truth: Truth, outer: Universe, inner: Universe, threshold: int
) -> Judgement:
    exact, revealed, apparent, right, original = 0, 0, 0, 0, 0
    rates, noises = MeanRate(), OutsiderNoise(published.noise)
    public, counted, before = (
        _shared(outer, inner, tables) for tables in (None, truth.counted, truth.original)
    )
    for (levels, pair, shown), (_, _, true), (_, _, real) in zip(public, counted, before, strict=True):
        numbers, left = _left(pair, *true)
        little = (left > 0) & (left < threshold)
        at, left = numbers[little], left[little]
        exact, revealed = exact + len(at), revealed + int((_at(shown, at) == left).sum())
        noise = noises.of(outer.signature(levels), inner.signature(levels))
        rates.add(noise, len(at), counts_of_pairs(true, at))
        numbers, left = _left(pair, *shown)
        little = (left > 0) & (left < threshold)
        at, left = numbers[little], left[little]
        apparent += len(at)
        right, original = (
            right + int((_at(true, at) == left).sum()),
            original + int((_at(real, at) == left).sum()),
        )
    return Judgement(
        outer.counted,
        inner.counted,
        exact,
        revealed,
        rates.expected,
        apparent,
        right,
        original,
    )


def counts_of_pairs(
    sides: tuple[Cells, Cells], numbers: Integers
) -> Callable[[int], tuple[Integers, Integers]]:
    """The counts of one cell of each side, for every difference of two cells."""
    added, subtracted = (values_at(side, numbers) for side in sides)
    return lambda at: (added[at : at + 1], subtracted[at : at + 1])


def _at(sides: tuple[Cells, Cells], numbers: Integers) -> Integers:
    return values_at(sides[0], numbers) - values_at(sides[1], numbers)


def _shared(
    outer: Universe, inner: Universe, tables: Read | None
) -> Iterator[tuple[Levels, Pair, tuple[Cells, Cells]]]:
    """The cells of every cross-tabulation that both universes publish; of public tables, or of others by id."""
    wide, narrow = held(outer), held(inner)
    shared = sorted(
        (levels for levels in wide if levels in narrow),
        key=lambda levels: (wide[levels].table, narrow[levels].table, levels),
    )
    read = (Reader(tables), Reader(tables))  # one table of each side is in memory at a time
    for levels in shared:
        pair = (wide[levels], narrow[levels])
        yield levels, pair, (read[0].cells(pair[0]), read[1].cells(pair[1]))
