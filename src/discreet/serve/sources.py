"""Where protected tables come from: the seam, and its implementation over records in memory.

Confidential tables are made and perturbed in here and never leave; what comes out is protected. Whether a table may be
asked for is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from discreet.errors import Mistakes, Problem
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.table import ProtectedTable
from discreet.pipeline.progress import Progress
from discreet.pipeline.soundness import record_problems
from discreet.population.needs import needs_of
from discreet.population.reading import UnitReader
from discreet.schema.codelist import Breakdown
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme, Unit
from discreet.serve.catalogue import Catalogue
from discreet.serve.held import HeldUnit
from discreet.serve.intervals import NoiseReader
from discreet.serve.kept_tables import KeptTables
from discreet.swap.relocate import Relocations
from discreet.swap.swapping import swap


class TableSource(Protocol):
    """Somewhere that answers crosses of breakdowns with protected tables."""

    @property
    def catalogue(self) -> Catalogue:
        """What can be asked for."""

    @property
    def noise(self) -> NoiseReader:
        """What published counts say of true ones."""

    def lacks(self, cube: Cube) -> str:
        """Why a table cannot be had here, in words; empty where it can."""

    def table(self, cube: Cube) -> ProtectedTable:
        """The protected cells of a table with all its margins."""

    def prepare(self) -> None:
        """Do now what would make first questions slow; safe beside questions."""


class NoiseOf(Protocol):
    """Which mechanism perturbs a cube."""

    def mechanism(self, cube: Cube) -> Mechanism:
        """The mechanism, with the noise of every cross-tabulation of the cube."""

    def reader(self) -> NoiseReader:
        """What published counts say of true ones."""


class OneNoise:
    """The same mechanism for every table, as the cell key method is."""

    def __init__(self, mechanism: Mechanism, reader: NoiseReader) -> None:
        self._mechanism, self._reader = mechanism, reader

    def mechanism(self, cube: Cube) -> Mechanism:
        """The mechanism."""
        return self._mechanism

    def reader(self) -> NoiseReader:
        """What published counts say of true ones."""
        return self._reader


class MicrodataSource:
    """Records in memory: any cross of breakdowns, counted when it is asked for and perturbed as in the release."""

    def __init__(self, catalogue: Catalogue, units: dict[str, HeldUnit], noise: NoiseOf) -> None:
        self._catalogue, self._units, self._noise = catalogue, units, noise
        self._kept = KeptTables()

    @property
    def catalogue(self) -> Catalogue:
        """What can be asked for."""
        return self._catalogue

    @property
    def noise(self) -> NoiseReader:
        """What published counts say of true ones."""
        return self._noise.reader()

    def prepare(self) -> None:
        """Look up the nodes of every record along every axis."""
        for unit in self._units.values():
            unit.prepare()

    def lacks(self, cube: Cube) -> str:
        """Nothing: any cross can be counted."""
        return ""

    def table(self, cube: Cube) -> ProtectedTable:
        """Count and perturb a table, or take it from those kept."""
        kept = self._kept.get(cube)
        if kept is not None:
            return kept
        mechanism = self._noise.mechanism(cube)
        table = mechanism.perturb(self._units[cube.unit].count(cube))
        self._kept.put(cube, table)
        return table


def read_units(
    programme: Programme,
    catalogue: Catalogue,
    secret: bytes,
    mechanism: Mechanism,
    threads: int,
    progress: Progress,
) -> dict[str, HeldUnit]:
    """Read all records once, swapped as in the release; records that a release would refuse are refused here."""
    population = programme.population
    if population is None:
        raise Mistakes([Problem(str(programme.path), "population", "is missing", "serve a release instead")])
    relocations = None
    if programme.swap is not None:
        moves = swap(programme, secret, threads, progress).moves
        relocations = Relocations(programme, moves, secret)
    reading = _Reading(programme, catalogue, secret, mechanism, threads, progress)
    wanted = {name: unit for name, unit in population.units.items() if name in catalogue.units}
    progress.stage(f"reading {', '.join(wanted)}")
    # one reader alone leaves a core idle: while it waits for a batch, another encodes its own
    with ThreadPoolExecutor(min(threads, len(wanted))) as pool:
        held = pool.map(lambda unit: reading.unit(unit, relocations), wanted.values())
        return dict(zip(wanted, held, strict=True))


class _Reading:
    def __init__(
        self,
        programme: Programme,
        catalogue: Catalogue,
        secret: bytes,
        mechanism: Mechanism,
        threads: int,
        progress: Progress,
    ) -> None:
        self._programme, self._catalogue, self._secret = programme, catalogue, secret
        self._mechanism, self._threads, self._progress = mechanism, threads, progress

    def unit(self, unit: Unit, relocations: Relocations | None) -> HeldUnit:
        axes = list(self._axes(unit.name))
        needs = needs_of(self._programme, unit, self._wanted(unit.name, axes))
        moved = relocations.of(unit) if relocations else None
        reader = UnitReader(needs, self._secret, self._threads, moved)
        blocks = []
        for block in reader.blocks():
            blocks.append(block)
            self._progress.step(len(block))
        records = sum(len(block) for block in blocks)
        problems = [
            *record_problems(reader, self._mechanism.key_modulus, records),
            *self._mechanism.problems(records),
        ]
        if problems:
            raise Mistakes(problems)
        return HeldUnit(blocks, axes)

    def _axes(self, unit: str) -> Iterable[Breakdown]:
        for variable in self._catalogue.variables.values():
            if unit in variable.units:
                yield from variable.breakdowns.values()

    def _wanted(self, unit: str, axes: Iterable[Breakdown]) -> list[Cube]:
        """Cubes that need every column that can be asked for."""
        cubes = [Cube("", unit, (axis,)) for axis in axes]
        return cubes + [Cube("", unit, (), count=name) for name in self._catalogue.counts.get(unit, ())]
