"""Differencing of population bases and of releases: what subtraction of published counts reveals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.audit.cells import LocatedCrosstab, Reader, described, located_crosstabs
from discreet.audit.evidence import Cells, Integers, Published, Truth, Universe, values_at
from discreet.errors import Mistakes, mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.averaging import success
from discreet.maths.attacks.differencing import cancel
from discreet.maths.noise.additive import LawKind
from discreet.maths.noise.publishing import PublishedLaw
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Levels, Signature, codes_at
from discreet.programme.filter import Filter, parse_filter

MOST_COMBINATIONS = 1_000_000  # of codes that two filters are compared on


def nested(universes: Iterable[Universe]) -> Iterator[tuple[Universe, Universe]]:
    """All pairs of universes (outer, inner) of which the inner counts some of the outer's records."""
    for outer, inner in permutations(universes, 2):
        counted = outer.count in ("", inner.count)
        if outer.unit == inner.unit and counted and _contains(outer, inner):
            yield outer, inner


def _contains(outer: Universe, inner: Universe) -> bool:
    """Whether every record of the inner base is surely in the outer one."""
    if outer.base in ("", inner.base):
        return True
    if not inner.base:
        return False
    try:
        filters = [parse_filter(base, outer.codelists) for base in (outer.base, inner.base)]
    except Mistakes:  # codes that no table shows: conditions of equal text can still be compared
        return _has_all_conditions(inner.base, outer.base)
    columns = _combinations(filters, outer.codelists)
    if columns is None:
        return _has_all_conditions(inner.base, outer.base)
    wide, narrow = (one.mask(columns) for one in filters)
    return bool((wide | ~narrow).all())


def _has_all_conditions(inner: str, outer: str) -> bool:
    """Whether a filter has all conditions of another; filters with alternatives are not compared."""
    if " or " in inner or " or " in outer:
        return False
    return set(outer.split(" and ")) <= set(inner.split(" and "))


def _combinations(
    filters: Iterable[Filter], codelists: Mapping[str, Codelist]
) -> dict[str, NDArray[np.uint32]] | None:
    """Every combination of leaves of the variables that filters name; None where there are too many."""
    names = sorted({name for one in filters for name in one.variables})
    sizes = [len(codelists[name].leaves) for name in names]
    if prod(sizes) > MOST_COMBINATIONS:
        return None
    grid = np.indices(sizes, dtype=np.uint32).reshape(len(sizes), -1)
    return dict(zip(names, grid, strict=True))


SAMPLE = 2_000  # differences of a lot that a mean is computed from


class DifferenceNoise(Protocol):
    """The probability that the noise of a difference is zero."""

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


class ExactNoise:
    """Noise of known laws, independent from cell to cell; equal arguments are computed once."""

    def __init__(self, added: PublishedLaw, subtracted: PublishedLaw) -> None:
        self._sides = (added, subtracted)
        self._known: dict[tuple[frozenset[tuple[int, int]], ...], float] = {}
        self._change = cache(lambda law, count: law.row(count).shifted(-count))

    def right(self, added: Iterable[int], subtracted: Iterable[int]) -> float:
        """By the exact law of the summed noise."""
        parts = zip(self._sides, (added, subtracted), strict=True)
        found = [(law, _classes(law, counts)) for law, counts in parts]
        key = tuple(frozenset(classes.items()) for _, classes in found)
        if key not in self._known:
            plus, minus = ({self._change(law, n): many for n, many in part.items()} for law, part in found)
            self._known[key] = cancel(plus, minus)
        return self._known[key]


def _classes(law: PublishedLaw, counts: Iterable[int]) -> Counter[int]:
    """How many of some counts are noisy, by a count whose change has the same law."""
    return Counter(law.alike(count) for count in counts if count > 0 or not law.keeps_zeros)


class OutsiderNoise:
    """What an outsider knows of differences between the cells of two cross-tabulations, of one release or of two."""

    def __init__(self, noise: Noise, of_subtracted: Noise | None = None) -> None:
        self._sides, self._exact = (noise, of_subtracted or noise), cache(ExactNoise)

    def of(self, added: Signature, subtracted: Signature) -> DifferenceNoise | None:
        """By the law where it is public, else by the mean variance of both sides; None where neither is."""
        plus, minus = self._sides
        if plus.law is None or minus.law is None:
            if plus.variance is None or minus.variance is None:
                return None
            return NormalNoise((plus.variance + minus.variance) / 2)
        return self._exact(plus.published_of(added), minus.published_of(subtracted))


class MeanRate:
    """The mean probability that differences are right, each lot by a sample of at most ``SAMPLE``."""

    def __init__(self) -> None:
        self._sum, self._known = 0.0, True

    def add(
        self,
        noise: DifferenceNoise | None,
        many: int,
        cells: Callable[[int], tuple[Integers, Integers]],
    ) -> None:
        """Add a lot of differences; ``cells`` gives the true counts that one of them adds and subtracts."""
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
        """The expected number of right ones among all; None where the noise is not known."""
        return self._sum if self._known else None


THRESHOLD = 10
SHOWN = 10  # differences that are listed

Pair = tuple[LocatedCrosstab, LocatedCrosstab]
Read = Mapping[str, Cells]


@dataclass(frozen=True)
class Apparent:
    """A difference of published counts, computed from public files only."""

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
    nonempty: int | None  # where at least one person is left over, since the same people have the same noise
    examples: tuple[Apparent, ...]


@dataclass(frozen=True)
class Judgement:
    """How many of these are true, for the office: numbers of differences, never their sizes."""

    outer: str
    inner: str
    exact: int  # small differences that a release without noise would disclose
    revealed: int  # of these, published with their true size
    expected: float | None  # the same by the law of the noise
    apparent: int  # small differences that are published
    apparent_right: int  # of these, true of the records that were counted
    apparent_original: int  # of these, true of the records before swapping

    @property
    def revealed_rate(self) -> float | None:
        """The share of true small differences that is revealed."""
        return self.revealed / self.exact if self.exact else None

    @property
    def apparent_share(self) -> float | None:
        """The share of published small differences that are true."""
        return self.apparent_right / self.apparent if self.apparent else None

    def as_json(self) -> Mapping[str, object]:
        """The document, with the shares."""
        return {**vars(self), "revealed_rate": self.revealed_rate, "apparent_share": self.apparent_share}


def difference(
    published: Published, threshold: int = THRESHOLD, progress: Progress | None = None
) -> tuple[Subtraction, ...]:
    """Subtract every population base from those that contain it, cell by cell, using only public tables."""
    pairs = list(nested(published.universes))
    progress = _stage(progress, "subtracting population bases", len(pairs))
    found = []
    for outer, inner in pairs:
        found.append(_subtracted(outer, inner, published.noise.same_noise, threshold))
        progress.step()
    return tuple(found)


def judge(
    published: Published, truth: Truth, threshold: int = THRESHOLD, progress: Progress | None = None
) -> tuple[Judgement, ...]:
    """Count how many of the differences of population bases are true, before and after protection."""
    pairs = list(nested(published.universes))
    progress = _stage(progress, "judging differences of population bases", len(pairs))
    found = []
    for outer, inner in pairs:
        found.append(_judged(published, truth, outer, inner, threshold))
        progress.step()
    return tuple(found)


def _stage(progress: Progress | None, name: str, total: int) -> Progress:
    progress = progress or Quiet()
    progress.stage(name, total)
    return progress


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
    """The remainder of each cell of the outer universe that is not zero in the inner one."""
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
    """The cells of every cross-tabulation that both universes publish; from public tables, or from others by id."""
    wide, narrow = located_crosstabs(outer), located_crosstabs(inner)
    shared = sorted(
        (levels for levels in wide if levels in narrow),
        key=lambda levels: (wide[levels].table, narrow[levels].table, levels),
    )
    read = (Reader(tables), Reader(tables))  # one table of each side is in memory at a time
    for levels in shared:
        pair = (wide[levels], narrow[levels])
        yield levels, pair, (read[0].cells(pair[0]), read[1].cells(pair[1]))


@dataclass(frozen=True)
class Update:
    """What two releases disclose together."""

    crosstabs: int
    compared: int  # cells that are not zero in both
    changed: int
    small: int  # changed by less than the threshold
    participants: (
        int | None
    )  # cells whose people changed for certain; None unless the noise follows the people
    skipped: tuple[str, ...]  # cross-tabulations whose codes are not the same in both
    examples: tuple[Apparent, ...]


@dataclass(frozen=True)
class UpdateJudgement:
    """How many of these are true, for the office: numbers of cells, never their sizes."""

    moved: int  # cells whose true count changed, by less than the threshold
    seen: int  # of these, published with a change
    revealed: int  # of these, published with the true change
    expected: (
        float | None
    )  # the same by the law of the noise, if the people of a cell decide it or chance does
    still: int  # cells whose true count is the same
    unfounded: int  # of these, published with a change
    apparent: int  # small changes that are published
    apparent_right: int  # of these, true of the records that were counted

    @property
    def apparent_share(self) -> float | None:
        """The share of published small changes that are true."""
        return self.apparent_right / self.apparent if self.apparent else None

    def as_json(self) -> Mapping[str, object]:
        """The document, with the share of true changes that is revealed and of published ones that is true."""
        rate = self.revealed / self.moved if self.moved else None
        return {**vars(self), "revealed_rate": rate, "apparent_share": self.apparent_share}


@dataclass(frozen=True, eq=False)
class _Both:
    """A cross-tabulation of both releases, and its places."""

    universe: Universe
    levels: Levels
    first: LocatedCrosstab
    second: LocatedCrosstab


def difference_releases(
    first: Published,
    second: Published,
    same_keys: bool,
    threshold: int = THRESHOLD,
    progress: Progress | None = None,
) -> Update:
    """Subtract the first release from the second; with the same keys, the same people have the same noise."""
    both, skipped = _both(first, second)
    progress, compared, changed, small = progress or Quiet(), 0, 0, 0
    progress.stage("subtracting releases", len(both))
    examples: list[Apparent] = []
    for one, old, new in _cells(both, Reader(), Reader()):
        numbers, change = _change(one, old, new)
        moved = np.flatnonzero((change != 0) & (np.abs(change) < threshold))
        compared, changed, small = (
            compared + len(numbers),
            changed + int((change != 0).sum()),
            small + len(moved),
        )
        for at in moved[: SHOWN - len(examples)]:
            cell = described(one.levels, one.universe.codelists, int(numbers[at]))
            examples.append(Apparent(cell, int(change[at])))
        progress.step()
    # other noise that follows the people is bound to its data, and new where these change
    follows = same_keys and all(one.noise.kind is LawKind.CELL_KEY for one in (first, second))
    certain = changed if follows else None
    return Update(len(both), compared, changed, small, certain, skipped, tuple(examples))


@dataclass(frozen=True, eq=False)
class ChangedCells:
    """The cells of one cross-tabulation that two releases publish with different values."""

    universe: Universe
    levels: Levels
    tables: tuple[str, ...]  # of the second release that show it
    compared: int  # cells that are not zero in one of the two
    numbers: Integers  # of those that changed, ascending
    sizes: tuple[int, ...]  # how many codes each of its levels has


def changed_cells(
    first: Published,
    second: Published,
    progress: Progress | None = None,
    instead: tuple[Read, Read] | None = None,
) -> list[ChangedCells]:
    """What changed between two releases, by cross-tabulation of both; ``instead`` replaces what they publish."""
    both, _ = _both(first, second)
    progress, found = _stage(progress, "comparing with the earlier release", len(both)), []
    readers = (Reader(), Reader()) if instead is None else (Reader(instead[0]), Reader(instead[1]))
    for one, old, new in _cells(both, *readers):
        numbers, change = _change(one, old, new)
        tables = tuple(part.owned.table.id for part in one.second.parts)
        crosstab = one.first.parts[0].crosstab
        sizes = tuple(crosstab.levels[k].size for k in crosstab.order if crosstab.depths[k])
        changed = numbers[change != 0]
        found.append(ChangedCells(one.universe, one.levels, tables, len(numbers), changed, sizes))
        progress.step()
    return found


def judge_releases(
    first: Published,
    second: Published,
    truths: tuple[Truth, Truth],
    threshold: int = THRESHOLD,
    progress: Progress | None = None,
) -> UpdateJudgement:
    """Count how many of the changes between two releases are true."""
    both, _ = _both(first, second)
    progress, noises, rate = progress or Quiet(), OutsiderNoise(second.noise, first.noise), MeanRate()
    progress.stage("judging changes between releases", len(both))
    moved, seen, revealed, still, unfounded, apparent, right = 0, 0, 0, 0, 0, 0, 0
    shown = _cells(both, Reader(), Reader())
    true = _cells(both, Reader(truths[0].counted), Reader(truths[1].counted))
    for (one, *public), (_, *secret) in zip(shown, true, strict=True):
        numbers, change = _change(one, *secret)
        said = values_at(public[1], numbers) - values_at(public[0], numbers)
        small, same = (change != 0) & (np.abs(change) < threshold), change == 0
        moved, still = moved + int(small.sum()), still + int(same.sum())
        seen, revealed = seen + int((said[small] != 0).sum()), revealed + int((said == change)[small].sum())
        unfounded += int((said[same] != 0).sum())
        signature = one.universe.signature(one.levels)
        counts = counts_of_pairs((secret[1], secret[0]), numbers[small])
        rate.add(noises.of(signature, signature), int(small.sum()), counts)
        numbers, said = _change(one, *public)
        little = (said != 0) & (np.abs(said) < threshold)
        at = numbers[little]
        true_change = values_at(secret[1], at) - values_at(secret[0], at)
        apparent, right = apparent + len(at), right + int((true_change == said[little]).sum())
        progress.step()
    return UpdateJudgement(moved, seen, revealed, rate.expected, still, unfounded, apparent, right)


def require_common(first: Published, second: Published) -> None:
    """Reject two releases that have no cross-tabulation in common."""
    _both(first, second)


def _change(one: _Both, old: Cells, new: Cells) -> tuple[Integers, Integers]:
    """The cells that are not zero in one of the two, and by how much they grew."""
    numbers = np.union1d(old[0], new[0])
    numbers = numbers[one.first.has(numbers) & one.second.has(numbers)]
    return numbers, values_at(new, numbers) - values_at(old, numbers)


def _both(first: Published, second: Published) -> tuple[list[_Both], tuple[str, ...]]:
    """The cross-tabulations of both releases, by table, and those whose codes differ."""
    others = {(one.unit, one.base, one.count): one for one in second.universes}
    found: list[_Both] = []
    skipped: list[str] = []
    same_codes = cache(_same_codes)
    for universe in first.universes:
        other = others.get((universe.unit, universe.base, universe.count))
        if other is None:
            continue
        ours, theirs = located_crosstabs(universe), located_crosstabs(other)
        for levels in (levels for levels in ours if levels in theirs):
            if all(same_codes(universe, other, *level) for level in levels):
                found.append(_Both(universe, levels, ours[levels], theirs[levels]))
            else:
                skipped.append(str(universe.signature(levels)))
    if not found:
        remedy = "give two releases of the same tables"
        raise mistake("", "releases", "they have no cross-tabulation in common", remedy)
    return sorted(found, key=lambda one: (one.first.table, one.second.table)), tuple(skipped)


def _same_codes(one: Universe, other: Universe, variable: str, depth: int) -> bool:
    return codes_at(one.codelists[variable], depth) == codes_at(other.codelists[variable], depth)


def _cells(both: list[_Both], first: Reader, second: Reader) -> Iterator[tuple[_Both, Cells, Cells]]:
    for one in both:
        yield one, first.cells(one.first), second.cells(one.second)


def common_values(
    first: Published, second: Published, truth: Truth | None = None
) -> Iterator[tuple[Integers, Integers, Integers]]:
    """The cells of all cross-tabulations of both releases: values in the first, in the second, and counts of the first.

    The counts are the true ones, or without them the published.
    """
    both, _ = _both(first, second)
    counted = Reader(None if truth is None else truth.counted)
    for one, old, new in _cells(both, Reader(), Reader()):
        numbers, change = _change(one, old, new)
        shown = values_at(old, numbers)
        yield shown, shown + change, values_at(counted.cells(one.first), numbers)
