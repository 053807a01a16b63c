"""The strongest linear adversary against part of the tables: what is certain of the whole, at a small part of its cost.

The tables of the records with one code of each of some variables are published too: every table that has these
variables, restricted to the cells at or below the codes. A best informed attacker who fits only those
(``least_squares`` fits all) finds explicit unbiased combinations of published counts. An attacker who uses all tables
does at least as well, so that each count is at least so exposed. Where that already excludes every noise within an
office's limits, the other tables cannot change the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from discreet.audit.averaging import LEAST_AVERAGED, ExposedCell
from discreet.audit.cells import OwnedTable
from discreet.audit.evidence import Integers, Records, Truth, Universe, cells_of, values_at
from discreet.audit.representations import variances_by_count
from discreet.maths.attacks.averaging import successes
from discreet.maths.attacks.least_squares import Families, attained_variances, equations_of, errors
from discreet.maths.cells.alignment import nodes_along, wider_cells
from discreet.perturb.noise import Noise
from discreet.programme.codelist import Breakdown

SEED = 20  # of the noise by which counts are chosen
MOST_CELLS = 1 << 16  # of the part that is fitted
LEAST_SHARE = 4  # parts of less than a fourth of that are not tried
SAMPLE = 1 << 13  # cells by which the sizes of parts are estimated
VARIABLES = 4  # with the most cells, whose codes are tried
PARTS = 4  # that are tried
PROBES = 8  # noises that are fitted to choose the counts whose variance is computed
CHOSEN, AT_ONCE = 32, 8
FAR = 3  # times the variance of the most exposed count that is known
EFFORT, STEPS = 2 * 10**7, 60  # parts added up to compute the variances of more, and about how often each

Codes = Mapping[str, str]  # variable -> code: the records that are looked at


@dataclass(frozen=True, eq=False, repr=False)
class _Part:
    """The cells of one table that are at or below some codes, and have records."""

    owned: OwnedTable
    cells: Integers
    counts: Integers
    records: Records  # equal where the same records are counted


def exposed_by_parts(every: Iterable[Subpopulations], noise: Noise) -> tuple[ExposedCell, ...]:
    """Counts of parts of all universes, the most exposed first; what promises most is computed first."""
    found: list[ExposedCell] = []
    fits = [fit for some in every for fit in some.fits(noise)]
    for fit in sorted(fits, key=lambda one: one.least_simulated):
        found += fit.exposed(min((one.ratio for one in found), default=np.inf) * fit.variance)
    return tuple(sorted(found, key=lambda one: one.ratio))


class Subpopulations:
    """The tables of one universe whose true counts are known, by parts of its records."""

    def __init__(self, owned: Sequence[OwnedTable], truth: Truth) -> None:
        self._tables = [one for one in owned if one.table.id in truth.records and one.cube.shown is None]
        self._truth = truth

    @cached_property
    def cells(self) -> int:
        """How many cells with records the tables have."""
        return sum(len(self._listed(one)) for one in self._tables)

    def fits(self, noise: Noise) -> Iterator[Fit]:
        """Fits of the parts that are most likely to have the most exposed counts."""
        return filter(None, (self.fit(codes, noise) for codes in self._likely))

    def fit(self, codes: Codes, noise: Noise) -> Fit | None:
        """A fit of the tables of the records with these codes.

        Only noise that is the same for the same participants, of one law, is known here: there is nothing otherwise.
        """
        parts = [part for one in self._tables if (part := self._part(one, codes)) is not None]
        if not parts or not noise.same_noise or not noise.keeps_zeros or noise.laws:
            return None
        return Fit(parts, noise)

    def _listed(self, one: OwnedTable) -> Integers:
        return cells_of(self._truth.counted, one.table.id)[0]

    def _part(self, one: OwnedTable, codes: Codes) -> _Part | None:
        cube, (cells, counts) = one.cube, cells_of(self._truth.counted, one.table.id)
        axes = {axis.variable: k for k, axis in enumerate(cube.axes)}
        if not codes.keys() <= axes.keys():
            return None
        here: Integers | None = None
        for variable, code in codes.items():
            k = axes[variable]
            inside = _at_or_below(cube.axes[k], code)
            among = cells if here is None else cells[here]
            kept = np.flatnonzero(inside[nodes_along(among, cube.strides[k], cube.shape[k])])
            here = kept if here is None else here[kept]
        if here is None:
            here = np.arange(len(cells))
        if not len(here):
            return None
        return _Part(one, cells[here], counts[here], self._truth.records[one.table.id][here])

    @cached_property
    def _likely(self) -> tuple[Codes, ...]:
        """Parts of a size that is quickly fitted, those with the most cells by person first; all cells if they are few.

        Where persons are spread over many cells, many different groups of few persons are published.
        """
        if self.cells <= MOST_CELLS:
            return ({},)
        sizes: dict[str, int] = {}
        for one in self._tables:
            for axis in one.cube.axes:
                sizes[axis.variable] = sizes.get(axis.variable, 0) + len(self._listed(one)) * (len(axis) > 1)
        names = sorted(sizes, key=lambda name: -sizes[name])[:VARIABLES]
        pairs: list[tuple[str, ...]] = list(combinations(sorted(names), 2))
        groups = pairs or [(name,) for name in names]
        found = filter(None, map(self._densest, groups))
        return tuple(codes for _, codes in sorted(found, key=lambda one: -one[0])[:PARTS])

    def _densest(self, group: tuple[str, ...]) -> tuple[float, Codes] | None:
        """The codes of some variables with the most cells by person among those with enough cells, and how many."""
        tables = [
            (one, [k for name in group for k, axis in enumerate(one.cube.axes) if axis.variable == name])
            for one in self._tables
        ]
        tables = [(one, axes) for one, axes in tables if len(axes) == len(group)]
        every = max(1, sum(len(self._listed(one)) for one, _ in tables) // SAMPLE)
        numbers: dict[tuple[str, ...], int] = {}
        for one, axes in tables:
            sampled = np.ascontiguousarray(self._listed(one)[::every])  # as kernels need them
            for codes, often in _counted_codes(one, axes, sampled):
                numbers[codes] = numbers.get(codes, 0) + often
        enough = {
            codes: often * every
            for codes, often in numbers.items()
            if MOST_CELLS // LEAST_SHARE <= often * every <= MOST_CELLS
        }
        best: tuple[float, Codes] | None = None
        for one, axes in tables:
            for codes, persons in self._persons(one, axes, enough):
                share = enough.pop(codes) / persons
                if best is None or share > best[0]:
                    best = share, dict(zip(group, codes, strict=True))
        return best

    def _persons(
        self, one: OwnedTable, axes: Sequence[int], wanted: Mapping[tuple[str, ...], int]
    ) -> Iterator[tuple[tuple[str, ...], int]]:
        """The counts by some codes, as far as a table has them."""
        places = [{code: node for node, code in enumerate(one.cube.axes[k].codes)} for k in axes]
        known = [codes for codes in wanted if all(c in place for c, place in zip(codes, places, strict=True))]
        cells = np.array(
            [
                sum(
                    place[code] * one.cube.strides[k]
                    for k, code, place in zip(axes, codes, places, strict=True)
                )
                for codes in known
            ],
            dtype=np.int64,
        )
        counts = values_at(cells_of(self._truth.counted, one.table.id), cells)
        for codes, count in zip(known, counts.tolist(), strict=True):
            if count:
                yield codes, count


def _at_or_below(axis: Breakdown, code: str) -> NDArray[np.bool_]:
    """Node -> whether it is a code or below it; every node follows its parent."""
    found = np.zeros(len(axis), dtype=bool)
    for node, name in enumerate(axis.codes):
        found[node] = name == code or (node > 0 and found[axis.parents[node]])
    return found


def _counted_codes(
    one: OwnedTable, axes: Sequence[int], cells: Integers
) -> Iterator[tuple[tuple[str, ...], int]]:
    """How many of some cells are at or below each combination of codes along some axes, without totals."""
    cube = one.cube
    along = [nodes_along(cells, cube.strides[k], cube.shape[k]) for k in axes]
    above = [_above(cube.axes[k]) for k in axes]
    sizes = [cube.shape[k] for k in axes]
    for depths in product(*(range(1, len(one)) for one in above)):
        nodes = [level[depth][at] for level, depth, at in zip(above, depths, along, strict=True)]
        inside = np.all([node > 0 for node in nodes], axis=0)
        numbers = np.ravel_multi_index(tuple(node[inside] for node in nodes), sizes)
        found, times = np.unique(numbers, return_counts=True)
        chosen = [
            [cube.axes[k].codes[node] for node in along_axis.tolist()]
            for k, along_axis in zip(axes, np.unravel_index(found, sizes), strict=True)
        ]
        yield from zip(zip(*chosen, strict=True), times.tolist(), strict=True)


def _above(axis: Breakdown) -> list[NDArray[np.int32]]:
    """Depth -> node -> the node of this depth that it belongs to, -1 where it ends above."""
    found = []
    for depth in range(int(axis.depths.max()) + 1):
        at = np.where(axis.depths == depth, np.arange(len(axis)), -1).astype(np.int32)
        for node in np.flatnonzero(axis.depths > depth).tolist():
            at[node] = at[axis.parents[node]]
        found.append(at)
    return found


class Fit:
    """The groups of records that parts of some tables publish, and the sums that connect them."""

    def __init__(self, parts: Sequence[_Part], noise: Noise) -> None:
        self._parts, self._noise = parts, noise
        every = np.concatenate([part.records for part in parts])
        groups, self._first, self._unknown = np.unique(every, return_index=True, return_inverse=True)
        self._counts = np.concatenate([part.counts for part in parts])[self._first]
        by_count = variances_by_count(noise, self._universe.signature(()))
        self.variance = float(by_count[-1])
        self._variances = by_count[np.minimum(self._counts, len(by_count) - 1)].astype(np.float32)
        self._equations = equations_of(len(groups), self._families()).distinct()

    @property
    def _universe(self) -> Universe:
        return self._parts[0].owned.universe

    def _families(self) -> Iterator[Families]:
        """Totals and their parts along each axis, in the table that is the first to show the parts."""
        first = 0
        for part in self._parts:
            own, cube = part.owned, part.owned.cube
            unknown = self._unknown[first : first + len(part.cells)]
            first += len(part.cells)
            counted = own.grid.own(part.cells, own.grid.crosstabs(part.cells))
            for stride, axis in zip(cube.strides, cube.axes, strict=True):
                wider = wider_cells(part.cells, stride, axis.parents)
                at = np.flatnonzero(counted & (wider >= 0))
                at = at[np.argsort(wider[at], kind="stable")]
                nothing = np.zeros(len(at))
                yield Families(wider[at].astype(np.int64), unknown[wider[at]], unknown[at], nothing, nothing)

    @cached_property
    def _squares(self) -> NDArray[np.float64]:
        """Mean squares of simulated errors, for choosing counts; infinite for those that are not averaged."""
        generator = np.random.default_rng(SEED)
        drawn = generator.standard_normal((len(self._counts), PROBES)) * np.sqrt(self._variances)[:, None]
        squares = (errors(self._equations, self._variances, drawn.astype(np.float32)) ** 2).mean(axis=1)
        squares[self._counts < LEAST_AVERAGED] = np.inf
        return np.asarray(squares, dtype=np.float64)

    @property
    def least_simulated(self) -> float:
        """The least mean square of simulated errors."""
        return float(self._squares.min())

    def exposed(self, known: float = np.inf) -> tuple[ExposedCell, ...]:
        """The counts with the smallest variance, chosen by simulated errors; then it is computed, some at a time.

        The rest is left out when some are far from the variance of a count that is known to be more exposed. Where more
        counts are averaged than can be computed, all are left out if not even a simulated error is below it: the least
        of many is far below its variance.
        """
        affordable = max(CHOSEN, EFFORT // max(1, STEPS * len(self._equations.parts)))
        averaged = np.flatnonzero(np.isfinite(self._squares))
        if len(averaged) > affordable and self.least_simulated > known:
            return ()
        chosen = averaged[np.argsort(self._squares[averaged], kind="stable")[:affordable]]
        attained = np.empty(0)
        for first in range(0, len(chosen), AT_ONCE):
            if first and attained.min() > FAR * known:
                break
            some = attained_variances(self._equations, self._variances, chosen[first : first + AT_ONCE])
            attained = np.concatenate([attained, some])
        order = np.argsort(attained, kind="stable")
        return tuple(
            self._cell(int(one), float(variance))
            for one, variance in zip(chosen[order], attained[order], strict=True)
        )

    def _cell(self, unknown: int, variance: float) -> ExposedCell:
        at = int(self._first[unknown])
        for part in self._parts:
            if at < len(part.cells):
                break
            at -= len(part.cells)
        return ExposedCell(
            self._universe.counted,
            part.owned.cube.codes_of(int(part.cells[at])),
            int(self._equations.uses[unknown]) + 1,
            len(self._counts),
            variance / self.variance,
            float(successes(np.array([variance]))[0]),
        )
