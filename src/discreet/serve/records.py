"""Tables from records in memory: encoded units, and the source that counts and protects them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.maths.cells import counting
from discreet.perturb.mechanism import Mechanism
from discreet.population.encode import EncodedRecords
from discreet.population.household_sizes import household_problems
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.programme import Unit
from discreet.run.run import Places, Run, require_none
from discreet.serve.ahead import CellsAhead, likely_cubes
from discreet.serve.cache import key_of, table_cache
from discreet.serve.catalogue import Catalogue
from discreet.serve.noise_ranges import NoiseRanges, Ranges
from discreet.tabulate.counter import AxisRows, CubeCounter, DenseGrid, Nodes, SparseGrid, counted, grid_for
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable

RECORD_STEPS = 4e8  # records that one step of counting looks at in a second, on a slow core
CELLS = 2e7  # cells that are rolled up and perturbed in a second
MOST_SHORT = 50_000  # cells, margins included, of a table that is added up at once
ROOM = 1 << 16  # cells of a grid that several cubes are counted through
BLOCK = 1 << 19  # records that are counted into several cubes before the next ones
PART = 1 << 16  # records that are stored together, at least: each part takes some microseconds of a count
NARROW = 256  # axes of at most this many nodes are stored as bytes

Mask = NDArray[np.bool_]
Stopped = Callable[[], bool]  # whether work that nobody waits for should end


def never() -> bool:
    """Not to be stopped."""
    return False


class EncodedUnit:
    """The encoded records of one unit in memory; safe for threads."""

    def __init__(
        self,
        blocks: Iterable[EncodedRecords],
        axes: Sequence[Breakdown],
        likely: Iterable[Cube] = (),
        threads: int = 1,
    ) -> None:
        """Store all blocks, and count the cells of the first likely cubes while the next blocks are read.

        The nodes of records along ``axes`` are stored once a table needs them.
        """
        self._ahead = CellsAhead()
        read = list(_joined(self._counted_ahead(next(self._ahead.wanted(likely), ()), blocks, threads)))
        self._keys = np.concatenate([part.keys for part in read])
        keys = np.split(self._keys, np.cumsum([len(part) for part in read])[:-1])
        self._parts = [replace(part, keys=mine) for part, mine in zip(read, keys, strict=True)]
        narrow = [axis for axis in axes if 1 < len(axis) <= NARROW]
        wide = [axis for axis in axes if len(axis) > NARROW]
        self._narrow = _NodeColumns(narrow, self._parts, np.uint8)
        self._wide = _NodeColumns(wide, self._parts, np.uint32)

    def __len__(self) -> int:
        return len(self._keys)

    def count(self, cube: Cube) -> ConfidentialTable:
        """Count every cell of a cube, margins rolled up, or add it up from cells that were counted ahead."""
        return self._ahead.table(cube) or counted(cube, self._grid(cube))

    def reads(self, cube: Cube) -> int:
        """How many records are read for a cube."""
        return 0 if self._ahead.has(cube) else len(self)

    def prepare(self, likely: Iterable[Cube] = (), stopped: Stopped = never, threads: int = 1) -> None:
        """Count the cells of further likely cubes ahead, as far as there is room."""
        for some in self._ahead.wanted(likely):
            for _ in self._counted_ahead(some, self._blocks(), threads):
                if stopped():
                    return

    def _counted_ahead(
        self, some: Sequence[Cube], blocks: Iterable[EncodedRecords], threads: int
    ) -> Iterator[EncodedRecords]:
        """Pass blocks on, and add the cells of some cubes once all have passed."""
        with ThreadPoolExecutor(threads) as pool:
            counter = CubeCounter(some, pool, ROOM)
            for block in blocks:
                counter.add(block)
                yield block
        for k, cube in enumerate(some):
            finest = counter.finest(k)
            self._ahead.add(cube, finest.positions, finest.cells)

    def _blocks(self) -> Iterator[EncodedRecords]:
        """All records in parts, as they are counted together; nothing is copied."""
        for part in self._parts:
            for start in range(0, len(part), BLOCK):
                some = slice(start, start + BLOCK)
                codes = {name: column[some] for name, column in part.codes.items()}
                yield EncodedRecords(codes, part.keys[some], flags={}, weights={})

    def _grid(self, cube: Cube) -> DenseGrid | SparseGrid:
        narrow, wide = self._columns(cube)
        grid = grid_for(cube, AxisRows(cube, narrow.rows(cube), wide.rows(cube)))
        grid.add_records(Nodes(narrow.columns, wide.columns), self._keys, self._inside(cube))
        return grid

    def _columns(self, cube: Cube) -> tuple[_NodeColumns, _NodeColumns]:
        """The stored columns, or new ones for a cube with other axes, such as groupings."""
        used = [axis for axis in cube.axes if len(axis) > 1]
        if all(self._narrow.holds(axis) or self._wide.holds(axis) for axis in used):
            return self._narrow, self._wide
        narrow = [axis for axis in used if len(axis) <= NARROW]
        wide = [axis for axis in used if len(axis) > NARROW]
        return (
            _NodeColumns(narrow, self._parts, np.uint8),
            _NodeColumns(wide, self._parts, np.uint32),
        )

    def _inside(self, cube: Cube) -> Mask:
        """Which records are counted; empty where all are."""
        if cube.count is None and cube.base is None:
            return np.zeros(0, dtype=bool)
        return np.concatenate([_inside_part(cube, part) for part in self._parts])


def _joined(blocks: Iterable[EncodedRecords]) -> Iterator[EncodedRecords]:
    """The same records in blocks that are not small; what is large enough is not copied."""
    some: list[EncodedRecords] = []
    for block in blocks:
        some.append(block)
        if sum(map(len, some)) >= PART:
            yield _together(some)
            some = []
    if some:
        yield _together(some)


def _together(some: Sequence[EncodedRecords]) -> EncodedRecords:
    if len(some) == 1:
        return some[0]
    codes = {name: np.concatenate([one.codes[name] for one in some]) for name in some[0].codes}
    flags = {name: np.concatenate([one.flags[name] for one in some]) for name in some[0].flags}
    return EncodedRecords(codes, np.concatenate([one.keys for one in some]), flags, weights={})


def _inside_part(cube: Cube, part: EncodedRecords) -> Mask:
    masks = [part.flags[cube.count]] if cube.count else []
    masks += [cube.base.mask(part.codes)] if cube.base else []
    found: Mask = np.logical_and.reduce(masks)
    return found


class _NodeColumns:
    """The nodes of all records along some axes; a row is filled on first use."""

    def __init__(
        self, axes: Sequence[Breakdown], parts: Sequence[EncodedRecords], kind: type[np.generic]
    ) -> None:
        shape = len(axes), sum(map(len, parts))
        self.columns = np.empty(shape, dtype=kind)  # memory is taken as rows are filled
        self._parts = parts
        self._axes = {axis.full_name: (row, axis) for row, axis in enumerate(axes)}
        self._filled: set[int] = set()
        self._lock = Lock()

    def holds(self, axis: Breakdown) -> bool:
        """Whether an axis has a row here."""
        return axis.full_name in self._axes

    def rows(self, cube: Cube) -> dict[str, int]:
        """The rows of those axes of a cube that are stored here, filled."""
        found = [self._axes[axis.full_name] for axis in cube.axes if self.holds(axis)]
        for row, axis in found:
            if row not in self._filled:
                with self._lock:
                    self._fill(row, axis)
        return {axis.full_name: row for row, axis in found}

    def _fill(self, row: int, axis: Breakdown) -> None:
        if row in self._filled:
            return
        nodes, start = axis.node_of_leaf.astype(self.columns.dtype), 0
        for part in self._parts:
            counting.recode(part.codes[axis.root], nodes, self.columns[row, start : start + len(part)])
            start += len(part)
        self._filled.add(row)


class TableSource(Protocol):
    """A source of protected tables for crosses of breakdowns."""

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the source."""

    @property
    def noise(self) -> Ranges:
        """Intervals of true counts, given published ones."""

    def lacks(self, cube: Cube) -> str:
        """Why a table is not available here; empty where it is."""

    def table(self, cube: Cube) -> ProtectedTable:
        """The protected cells of a table with all its margins."""

    def seconds(self, cube: Cube) -> float:
        """About how long a table would take now."""

    def is_short(self, cube: Cube) -> bool:
        """Whether a table certainly takes a millisecond or two."""

    def prepare(self, stopped: Stopped = never) -> None:
        """Do the work that would slow down the first questions; safe while questions are answered."""


class MicrodataSource:
    """Records in memory: any cross of breakdowns, counted on request and perturbed as in the release."""

    def __init__(
        self,
        catalogue: Catalogue,
        units: dict[str, EncodedUnit],
        mechanism: Callable[[Cube], Mechanism],
        noise: NoiseRanges,
        threads: int = 1,
    ) -> None:
        """``mechanism`` gives the noise of every cross-tabulation of a cube; ``threads`` count cells ahead."""
        self._catalogue, self._units, self._mechanism, self._noise = catalogue, units, mechanism, noise
        self._threads = threads
        self._cache = table_cache()

    @property
    def catalogue(self) -> Catalogue:
        """The catalogue of the source."""
        return self._catalogue

    @property
    def noise(self) -> NoiseRanges:
        """Intervals of true counts, given published ones."""
        return self._noise

    def prepare(self, stopped: Stopped = never) -> None:
        """Count the cells of likely tables."""
        for name, unit in self._units.items():
            likely = likely_cubes(name, list(_axes(self._catalogue, name)), self._catalogue.places)
            unit.prepare(likely, stopped, self._threads)

    def lacks(self, cube: Cube) -> str:
        """Nothing: any cross can be counted."""
        return ""

    def seconds(self, cube: Cube) -> float:
        """The steps of all records (one for each axis, and those of the filter) and the cells; 0 from the cache."""
        if self._cache.get(key_of(cube)) is not None:
            return 0.0
        steps = 1 + len(cube.axes) + (cube.base.steps if cube.base else 0)
        return self._units[cube.unit].reads(cube) * steps / RECORD_STEPS + cube.size / CELLS

    def is_short(self, cube: Cube) -> bool:
        """Whether a small table is in the cache, or is added up."""
        if cube.size > MOST_SHORT:
            return False
        return self._cache.get(key_of(cube)) is not None or not self._units[cube.unit].reads(cube)

    def table(self, cube: Cube) -> ProtectedTable:
        """Count and perturb a table, or take it from the cache."""
        cached = self._cache.get(key_of(cube))
        if cached is not None:
            return cached
        table = self._mechanism(cube).perturb(self._units[cube.unit].count(cube))
        self._cache.put(key_of(cube), table)
        return table


def read_units(run: Run, catalogue: Catalogue) -> dict[str, EncodedUnit]:
    """Read all records once, swapped as in the release; records that a release would refuse are refused here."""
    programme, population = run.programme, run.programme.population
    if population is None:
        raise Mistakes([Problem(str(programme.path), "population", "is missing", "serve a release instead")])
    require_none(household_problems(programme, catalogue.units))
    relocations = run.places()
    wanted = {name: unit for name, unit in population.units.items() if name in catalogue.units}
    run.progress.stage(f"reading {', '.join(wanted)}")
    # a single reader leaves a core idle: while it waits for a batch, another encodes its own
    with ThreadPoolExecutor(min(run.threads, len(wanted))) as pool:
        found = pool.map(lambda unit: _read_unit(run, catalogue, unit, relocations), wanted.values())
        return dict(zip(wanted, found, strict=True))


def _read_unit(run: Run, catalogue: Catalogue, unit: Unit, relocations: Places | None) -> EncodedUnit:
    axes = list(_axes(catalogue, unit.name))
    every_axis = [Cube("", unit.name, (axis,)) for axis in axes]
    every_count = [Cube("", unit.name, (), count=name) for name in catalogue.counts.get(unit.name, ())]
    likely = likely_cubes(unit.name, axes, catalogue.places)
    return EncodedUnit(run.blocks(unit, every_axis + every_count, relocations), axes, likely, run.threads)


def _axes(catalogue: Catalogue, unit: str) -> Iterable[Breakdown]:
    for variable in catalogue.variables.values():
        if unit in variable.units:
            yield from variable.breakdowns.values()
