"""Differencing of two geographies that do not nest, by records or by a public map."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from discreet.audit.cells import FirstShown, LocatedCrosstab, Reader, by_number, described, located_crosstabs
from discreet.audit.differencing import SHOWN, THRESHOLD, DifferenceNoise, MeanRate, OutsiderNoise
from discreet.audit.evidence import Cells, Integers, Published, Truth, Universe, values_at
from discreet.errors import mistake
from discreet.io.column_names import shown_names
from discreet.io.files import Records
from discreet.io.progress import Progress, Quiet
from discreet.io.whole_numbers import whole_numbers
from discreet.lazy import lazily
from discreet.maths.attacks.differencing import REACH, STEPS, CrossedGeography, Difference, differences
from discreet.population.encode import is_text
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Levels, Signature, codes_at
from discreet.programme.filter import alternatives

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")

Codes = NDArray[np.unsignedinteger[Any]]

_FIT = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_integer,
    pa.types.is_null,
)
_WIDE = 1 << 31  # more areas than any country has
_LARGEST = 10**12  # records of a piece


@dataclass(frozen=True, eq=False, repr=False)
class Crossing:
    """The pieces in which areas of two geographies overlap, each once, with their records; confidential."""

    names: tuple[str, str]
    codes: tuple[tuple[str, ...], tuple[str, ...]]
    a: Integers  # piece -> place of its area among the codes of the first geography
    b: Integers
    counts: Integers

    def __repr__(self) -> str:
        return f"Crossing({' x '.join(self.names)}, {len(self.a)} pieces)"


def read_crossing(
    records: Records, a: str, b: str, count: str | None = None, progress: Progress | None = None
) -> Crossing:
    """Read two columns of areas, one row for each record, or for each piece with its number of records."""
    wanted = [name for name in (a, b, count) if name is not None]
    _check(records, wanted)
    progress = progress or Quiet()
    progress.stage("reading areas")
    reading = _Reading(records.name, a, b, count)
    for batch in records.batches([] if count is None else [count], [a, b]):
        reading.add(batch)
        progress.step(len(batch))
    return reading.crossing()


def crossing_of_codes(a: Codelist, b: Codelist, blocks: Iterable[tuple[Codes, Codes]]) -> Crossing:
    """The crossing of two encoded variables: the leaf of each record in their codelists, block by block."""
    width = len(b.leaves)
    pieces, counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    for first, second in blocks:
        here, many = np.unique(first.astype(np.int64) * width + second, return_counts=True)
        pieces, at = np.unique(np.concatenate((pieces, here)), return_inverse=True)
        counts = np.bincount(at, weights=np.concatenate((counts, many))).astype(np.int64)
    return Crossing((a.name, b.name), (a.leaf_codes, b.leaf_codes), pieces // width, pieces % width, counts)


def _check(records: Records, wanted: list[str]) -> None:
    for name in wanted:
        if name not in records.schema.names:
            raise mistake(
                records.name, name, "no such column", alternatives(name, shown_names(records, name))
            )
    if len(set(wanted)) < len(wanted):
        twice = next(name for name in wanted if wanted.count(name) > 1)
        raise mistake(records.name, twice, "the same column twice", "name different columns")


class _Areas:
    """The areas of one column so far."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def see(self, column: pa.Array, file: str, name: str) -> Integers:
        """The place of each row's area."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not any(fits(kind) for fits in _FIT):
            raise mistake(file, name, f"values of type {kind}", "give areas as text or whole numbers")
        coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        texts = pc.cast(coded.dictionary, pa.string()).to_pylist()
        if coded.null_count or None in texts or "" in texts:
            raise mistake(file, name, "rows without an area", "give each an area, or leave these rows out")
        used = pc.unique(coded.indices).to_pylist()
        table = np.zeros(len(texts), dtype=np.int64)
        for place in used:
            table[place] = self.places.setdefault(texts[place], len(self.places))
        if len(self.places) >= _WIDE:
            raise mistake(file, name, "too many different values", "name a column of areas")
        indices: NDArray[Any] = coded.indices.to_numpy(zero_copy_only=False)
        places: Integers = table[indices]
        return places


class _Reading:
    """Adds up the records of each piece, batch by batch."""

    def __init__(self, file: str, a: str, b: str, count: str | None) -> None:
        self._file, self._names, self._count = file, (a, b), count
        self._areas = (_Areas(), _Areas())
        self._pieces, self._sums = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        a, b = (
            areas.see(batch.column(name), self._file, name)
            for areas, name in zip(self._areas, self._names, strict=True)
        )
        counts = np.ones(len(batch), dtype=np.int64) if self._count is None else self._counts(batch)
        pieces = np.concatenate((self._pieces, a * _WIDE + b))
        self._pieces, at = np.unique(pieces, return_inverse=True)
        sums = np.zeros(len(self._pieces), dtype=np.int64)
        np.add.at(sums, at, np.concatenate((self._sums, counts)))
        self._sums = sums

    def _counts(self, batch: pa.RecordBatch) -> Integers:
        remedy = f"give whole numbers from 0 to {_LARGEST}"
        try:
            column = batch.column(self._count)
            column = whole_numbers(column) if is_text(column.type) else pc.cast(column, pa.int64())
            low, high = (end.as_py() for end in pc.min_max(column).values())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise mistake(self._file, str(self._count), "not a whole number", remedy) from None
        if column.null_count:
            raise mistake(self._file, str(self._count), "rows without a number", remedy)
        if len(column) and not 0 <= low <= high <= _LARGEST:
            raise mistake(self._file, str(self._count), "a number out of range", remedy)
        counts: Integers = column.to_numpy(zero_copy_only=False)
        return counts

    def crossing(self) -> Crossing:
        """All pieces with records."""
        positive = self._sums > 0
        if not positive.any():
            raise mistake(self._file, " x ".join(self._names), "no records", "give a file that has some")
        pieces = self._pieces[positive]
        codes = (tuple(self._areas[0].places), tuple(self._areas[1].places))
        return Crossing(self._names, codes, pieces // _WIDE, pieces % _WIDE, self._sums[positive])


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Afterwards:
    """The differences that remain after noise; with exact counts, all of them are disclosed."""

    alpha: float
    expected: float  # differences of published counts that are the true ones
    above: int  # differences that are the true ones with a probability of at least alpha
    largest: float  # the largest of these probabilities


@dataclass(frozen=True)
class ListedDifference:
    """A difference by its areas; its count is below the threshold, and is not included."""

    plus_of: str  # the geography of the areas that are added up
    plus: tuple[str, ...]
    minus_of: str
    minus: tuple[str, ...]
    above: bool | None  # whether it remains after noise with a probability of at least alpha


@dataclass(frozen=True)
class AreaDifferences:
    """All differences below the threshold, without their sizes."""

    geographies: tuple[str, str]
    areas: tuple[int, int]
    pieces: int
    threshold: int
    reach: int
    found: int
    complete: bool
    exhaustive: bool
    components: int
    largest_component: int  # in blocks
    by_areas: dict[int, int]  # areas that are added and subtracted -> differences
    after: Afterwards | None
    listed: tuple[ListedDifference, ...]

    @property
    def revealed(self) -> int:
        """Differences that remain above alpha after noise; all of them where there is no noise."""
        return self.found if self.after is None else self.after.above


def difference_areas(
    crossing: Crossing,
    threshold: int = THRESHOLD,
    reach: int = REACH,
    steps: int = STEPS,
    noise: DifferenceNoise | None = None,
    alpha: float = 0.5,
    most: int | None = None,
) -> AreaDifferences:
    """Find the small areas that two geographies disclose, before and after noise; lists the most exposed ones.

    The noise is that of areas of the first geography minus areas of the second.
    """
    result = differences(crossing.a, crossing.b, crossing.counts, threshold, reach, steps)
    sizes = np.array([len(one.plus) + len(one.minus) for one in result.found], dtype=np.int64)
    rates = None if noise is None else _rates(crossing, result.found, noise)
    order = np.lexsort((sizes,) if rates is None else (sizes, -rates))[:most]
    above = None if rates is None else rates >= alpha
    return AreaDifferences(
        crossing.names,
        (len(np.unique(crossing.a)), len(np.unique(crossing.b))),
        len(crossing.a),
        threshold,
        reach,
        len(result.found),
        result.complete,
        result.exhaustive,
        result.components,
        result.largest,
        dict(sorted(Counter(sizes.tolist()).items())),
        None if rates is None else _afterwards(rates, alpha),
        tuple(
            _listed(crossing, result.found[at], None if above is None else bool(above[at])) for at in order
        ),
    )


def _rates(crossing: Crossing, found: Sequence[Difference], noise: DifferenceNoise) -> Floats:
    """The probability that each difference is published unchanged, by the true counts of its areas."""
    a, b = (
        np.bincount(places, weights=crossing.counts).astype(np.int64).tolist()
        for places in (crossing.a, crossing.b)
    )
    rates = np.empty(len(found))
    for at, one in enumerate(found):
        # a sum of noises is zero whatever its sign, so that geography a is always first
        of_a, of_b = (one.plus, one.minus) if one.plus_of is CrossedGeography.A else (one.minus, one.plus)
        rates[at] = noise.right([a[area] for area in of_a], [b[area] for area in of_b])
    return rates


def _afterwards(rates: Floats, alpha: float) -> Afterwards:
    above = int((rates >= alpha).sum())
    return Afterwards(alpha, float(rates.sum()), above, float(rates.max(initial=0.0)))


def _listed(crossing: Crossing, one: Difference, above: bool | None) -> ListedDifference:
    sides = ((one.plus_of, one.plus), (_other(one.plus_of), one.minus))
    named: list[tuple[str, tuple[str, ...]]] = []
    for geography, areas in sides:
        k = 0 if geography is CrossedGeography.A else 1
        named.append((crossing.names[k], tuple(sorted(crossing.codes[k][area] for area in areas))))
    return ListedDifference(*named[0], *named[1], above)


def _other(geography: CrossedGeography) -> CrossedGeography:
    return CrossedGeography.B if geography is CrossedGeography.A else CrossedGeography.A


WEIGHT = 4  # what differences may leave over: overlaps of the map, or addresses where the map counts them
CHUNK = 4_000_000  # entries of a matrix of differences at a time


@dataclass(frozen=True)
class MapFinding:
    """A difference of published counts, computed from public files and the map."""

    counted: str
    plus: tuple[str, ...]
    minus: tuple[str, ...]
    cell: dict[str, str]  # the categories besides the areas
    difference: int


@dataclass(frozen=True)
class MapDifferences:
    """What an outsider gets by subtracting areas of one geography from areas of the other."""

    geographies: tuple[str, str]
    candidates: int  # unions of areas with a small remainder in the map
    complete: bool
    crosstabs: int
    compared: int  # differences that were computed
    small: int  # from 1 to below the threshold
    examples: tuple[MapFinding, ...]


@dataclass(frozen=True)
class MapJudgement:
    """How many of these are true, for the office: numbers of differences, never their sizes."""

    geographies: tuple[str, str]
    exact: int  # small differences that a release without noise would disclose
    revealed: int  # of these, published with their true size
    expected: float | None  # the same by the law of the noise
    apparent: int
    apparent_right: int

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


def difference_maps(
    published: Published,
    lookup: Crossing,
    threshold: int = THRESHOLD,
    weight: int = WEIGHT,
    reach: int = REACH,
    steps: int = STEPS,
    progress: Progress | None = None,
) -> MapDifferences:
    """Subtract published areas of two variables, named and crossed by the lookup, where the remainder is small."""
    found = differences(lookup.a, lookup.b, lookup.counts, weight + 1, reach, steps)
    pairs = _pairs(published, lookup)
    progress, compared, small = progress or Quiet(), 0, 0
    progress.stage("subtracting areas", len(pairs))
    examples: list[MapFinding] = []
    for pair in pairs:
        tables = pair.tables(lookup, None)
        for lot in _lots(found.found, tables):
            keys, left = tables.left(lot)
            little = np.flatnonzero((left > 0) & (left < threshold))
            compared, small = compared + len(left), small + len(little)
            for at in little[: SHOWN - len(examples)]:
                number, rest = tables.split(int(keys[at]))
                examples.append(_finding(pair, lookup, lot[number], rest, int(left[at])))
        progress.step()
    return MapDifferences(
        lookup.names, len(found.found), found.complete, len(pairs), compared, small, tuple(examples)
    )


def judge_maps(
    published: Published,
    truth: Truth,
    lookup: Crossing,
    threshold: int = THRESHOLD,
    weight: int = WEIGHT,
    reach: int = REACH,
    steps: int = STEPS,
    progress: Progress | None = None,
) -> MapJudgement:
    """Count how many of the differences that the map suggests are true, before and after protection."""
    found = differences(lookup.a, lookup.b, lookup.counts, weight + 1, reach, steps)
    pairs, noises, rate = _pairs(published, lookup), OutsiderNoise(published.noise), MeanRate()
    progress, exact, revealed, apparent, right = progress or Quiet(), 0, 0, 0, 0
    progress.stage("judging differences of areas", len(pairs))
    for pair in pairs:
        shown, true = pair.tables(lookup, None), pair.tables(lookup, truth.counted)
        for lot in _lots(found.found, true):
            public, secret = shown.left(lot), true.left(lot)
            keys, left = _small(secret, threshold)
            exact, revealed = exact + len(keys), revealed + int((values_at(public, keys) == left).sum())
            rate.add(noises.of(*pair.signatures(lot)), len(keys), partial(true.counts, lot, keys))
            keys, left = _small(public, threshold)
            apparent, right = apparent + len(keys), right + int((values_at(secret, keys) == left).sum())
        progress.step()
    return MapJudgement(lookup.names, exact, revealed, rate.expected, apparent, right)


def require_areas(published: Published, lookup: Crossing) -> None:
    """Reject a map whose areas no two tables of a release have."""
    _pairs(published, lookup)


def _small(cells: Cells, threshold: int) -> Cells:
    keys, left = cells
    little = (left > 0) & (left < threshold)
    return keys[little], left[little]


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two cross-tabulations of a universe that differ only in the geography."""

    universe: Universe
    variables: tuple[str, str]
    levels: tuple[Levels, Levels]
    sides: tuple[LocatedCrosstab, LocatedCrosstab]

    @property
    def rest(self) -> Levels:
        """What both cross with their geography."""
        return tuple(level for level in self.levels[0] if level[0] != self.variables[0])

    def signatures(self, lot: Sequence[Difference]) -> tuple[Signature, Signature]:
        """Those of the areas that a lot adds and subtracts."""
        a, b = (self.universe.signature(levels) for levels in self.levels)
        return (a, b) if lot[0].plus_of is CrossedGeography.A else (b, a)

    def tables(self, lookup: Crossing, tables: Mapping[str, Cells] | None) -> _Tables:
        """The cells of both, from public tables or from others by their id."""
        width = prod(len(codes_at(self.universe.codelists[name], depth)) for name, depth in self.rest)
        read = [
            _by_area(side, variable, codes, width, Reader(tables))
            for side, variable, codes in zip(self.sides, self.variables, lookup.codes, strict=True)
        ]
        return _Tables(width, (read[0], read[1]), (len(lookup.codes[0]), len(lookup.codes[1])))


class _Tables:
    """The counts of two geographies, area by area and cell of the rest by cell of the rest."""

    def __init__(self, width: int, cells: tuple[Cells, Cells], areas: tuple[int, int]) -> None:
        self._width, self._cells = width, cells
        self._matrices = [
            sparse.csr_array((values, np.divmod(keys, width)), shape=(many, width))
            for (keys, values), many in zip(cells, areas, strict=True)
        ]
        self.sizes = [np.diff(matrix.indptr) for matrix in self._matrices]

    def left(self, lot: Sequence[Difference]) -> Cells:
        """The remainder of each difference of a lot, by (difference, cell of the rest) as one number, ascending."""
        first = 0 if lot[0].plus_of is CrossedGeography.A else 1
        plus = _sums([one.plus for one in lot], self._matrices[first])
        minus = _sums([one.minus for one in lot], self._matrices[1 - first])
        left = (plus - minus).tocoo()
        keys = left.row.astype(np.int64) * self._width + left.col
        order = np.argsort(keys)
        return keys[order], left.data[order].astype(np.int64)

    def counts(self, lot: Sequence[Difference], keys: Integers, at: int) -> tuple[Integers, Integers]:
        """The counts of the areas of one difference in its cell of the rest."""
        number, column = divmod(int(keys[at]), self._width)
        one = lot[number]
        first = 0 if one.plus_of is CrossedGeography.A else 1
        plus, minus = (
            np.array(areas, dtype=np.int64) * self._width + column for areas in (one.plus, one.minus)
        )
        return values_at(self._cells[first], plus), values_at(self._cells[1 - first], minus)

    def split(self, key: int) -> tuple[int, int]:
        """The difference and the cell of the rest that a number represents."""
        return divmod(key, self._width)


def _sums(areas: Sequence[tuple[int, ...]], matrix: sparse.csr_array) -> sparse.csr_array:
    """Add up the rows of the areas of each difference."""
    starts = np.cumsum([0, *map(len, areas)])
    flat = np.fromiter(chain.from_iterable(areas), dtype=np.int64, count=int(starts[-1]))
    chosen = sparse.csr_array(
        (np.ones(len(flat), dtype=np.int64), flat, starts), shape=(len(areas), matrix.shape[0])
    )
    return chosen @ matrix


def _by_area(one: LocatedCrosstab, variable: str, codes: Sequence[str], width: int, reader: Reader) -> Cells:
    """The cells of a cross-tabulation by area of the lookup times the width plus the number of the rest."""
    return by_number(_part_by_area(*part, variable, codes, width) for part in reader.parts(one))


def _part_by_area(
    part: FirstShown, cells: Integers, values: Integers, variable: str, codes: Sequence[str], width: int
) -> Cells:
    cube, crosstab = part.owned.cube, part.crosstab
    axis = next(k for k, axis in enumerate(cube.axes) if axis.variable == variable)
    place = np.full(cube.shape[axis], -1, dtype=np.int64)
    for index, code in enumerate(codes):
        place[cube.axes[axis].position.get(code, 0)] = index
    place[0] = -1  # the total is no area
    area = place[cube.nodes(cells, axis)]
    cells, values, area = cells[area >= 0], values[area >= 0], area[area >= 0]
    rest = replace(crosstab, order=tuple(k for k in crosstab.order if k != axis))
    return area * width + rest.numbers(cube, cells), values


def _lots(found: Sequence[Difference], tables: _Tables) -> Iterator[list[Difference]]:
    """The differences that add areas of one geography, then of the other, few enough at a time for memory."""
    for geography in CrossedGeography:
        first = 0 if geography is CrossedGeography.A else 1
        lot: list[Difference] = []
        room = CHUNK
        for one in (one for one in found if one.plus_of is geography):
            sizes = (
                tables.sizes[first][list(one.plus)].sum(),
                tables.sizes[1 - first][list(one.minus)].sum(),
            )
            room -= int(sum(sizes)) + 1
            if lot and room < 0:
                yield lot
                lot, room = [], CHUNK
            lot.append(one)
        if lot:
            yield lot


def _pairs(published: Published, lookup: Crossing) -> list[_Pair]:
    """All cross-tabulations of one geography that have a counterpart of the other."""
    found = []
    for universe in published.universes:
        if not set(lookup.names) <= set(universe.codelists):
            continue
        depths = [_depth(universe, *named) for named in zip(lookup.names, lookup.codes, strict=True)]
        (a, b), every = zip(lookup.names, depths, strict=True), located_crosstabs(universe)
        for levels, side in every.items():
            other = tuple(sorted(b if level == a else level for level in levels))
            if a in levels and b[0] not in dict(levels) and other in every:
                found.append(_Pair(universe, lookup.names, (levels, other), (side, every[other])))
    if not found:
        remedy = "name two variables that tables of the same records have, and their codes"
        raise mistake("", "lookup", " x ".join(lookup.names), remedy)
    return found


def _depth(universe: Universe, variable: str, codes: Sequence[str]) -> int:
    """The depth of the codes of a lookup, which must all have the same."""
    tree = universe.codelists[variable]
    unknown = next((code for code in codes if code not in tree.position), None)
    if unknown is not None:
        raise mistake("", f"lookup.{variable}", f"{unknown!r} is no code of the release", "give its codes")
    depths = {tree.depths[tree.position[code]] for code in codes}
    if len(depths) > 1:
        raise mistake("", f"lookup.{variable}", "codes of several levels", "give areas of one level")
    return depths.pop()


def _finding(pair: _Pair, lookup: Crossing, one: Difference, rest: int, left: int) -> MapFinding:
    sides = lookup.codes if one.plus_of is CrossedGeography.A else lookup.codes[::-1]
    plus, minus = (
        tuple(sorted(codes[area] for area in areas))
        for codes, areas in zip(sides, (one.plus, one.minus), strict=True)
    )
    cell = described(pair.rest, pair.universe.codelists, rest)
    return MapFinding(pair.universe.counted, plus, minus, cell, left)
