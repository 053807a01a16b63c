"""A run over a programme: the inputs of every step from records to tables, and reading and checking records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, ParamSpec, Protocol, TypeVar

from discreet.errors import Mistakes, Problem
from discreet.io.databases import open_source
from discreet.io.progress import Progress, Quiet
from discreet.lazy import lazily
from discreet.maths.cells.keys import improbably_small
from discreet.perturb.mechanism import Mechanism
from discreet.population.encode import EncodedRecords
from discreet.population.places import GeographySeen
from discreet.population.reading import Findings, Needs, Relocation, UnitReader, needs_of
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme, Unit
from discreet.tabulate.tables import ConfidentialTable

if TYPE_CHECKING:
    from discreet.swap import relocate, swapping
else:
    relocate, swapping = lazily("discreet.swap.relocate"), lazily("discreet.swap.swapping")

Made = TypeVar("Made")
Given = ParamSpec("Given")
Each = TypeVar("Each")
Finish = Callable[[ConfidentialTable], Made]


class Places(Protocol):
    """The exchanged places of swapped households, for any table."""

    def of(self, unit: Unit) -> Relocation | None:
        """The relocation of a unit's table; None if it has no places."""


@dataclass(frozen=True)
class Swapped:
    """The places after swapping, and where the rule could not be followed."""

    places: Places
    conflicts: tuple[str, ...]


@dataclass(frozen=True)
class Tabulated(Generic[Made]):
    """What was made of each cube, by its id, and the number of records of each unit."""

    made: Mapping[str, Made]
    rows: Mapping[str, int]


class Engine(Protocol):
    """Where a run is computed: on this machine (``run.tabulating``) or on Spark; the bytes are the same.

    What is passed to an engine is called where the records are, perhaps on another machine: functions at the top of a
    module, and objects that can be pickled. ``pay`` is always called here, after all records are judged and before
    ``finish`` can draw any noise.
    """

    def call(self, function: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
        """Call a function that reads records, and return what it returns, which is small."""

    def require(self, programme: Programme) -> None:
        """Refuse records that the engine cannot read."""

    def swap(self, run: Run, private: Path) -> Swapped:
        """Swap the households of a programme that declares it; ``private``: a folder for confidential files."""

    def judge(
        self, needs: Needs, secret: bytes, mechanism: Mechanism | None, progress: Progress
    ) -> tuple[Problem, ...]:
        """Read the records of a unit and return their problems."""

    def tabulate(
        self,
        run: Run,
        cubes: Sequence[Cube],
        finish: Finish[Made],
        places: Places | None,
        pay: Callable[[], None] | None,
    ) -> Tabulated[Made]:
        """Count cubes and finish each where it was counted."""

    def tabulate_together(
        self,
        run: Run,
        cubes: Sequence[Cube],
        each: Finish[Each],
        together: Callable[[list[Each], Progress], Made],
        places: Places | None,
        pay: Callable[[], None] | None,
        judge: Callable[[ConfidentialTable], None] | None = None,
    ) -> tuple[Made, Mapping[str, int]]:
        """Count cubes, and finish all of them together.

        ``judge`` may refuse a table before ``pay``; ``each`` then draws no noise.
        """


@dataclass(eq=False)
class Inspection:
    """The units whose geography is judged while their records are read for something else."""

    units: frozenset[str]
    divided: dict[Problem, None] = field(
        default_factory=dict
    )  # households in two places: they refuse nothing

    def blocks(
        self,
        programme: Programme,
        needs: Needs,
        secret: bytes,
        threads: int,
        mechanism: Mechanism | None,
        progress: Progress,
    ) -> Iterator[EncodedRecords]:
        """As ``checked_blocks``; also look at places and households."""
        records = open_source(needs.unit.source, f"population.{needs.unit.name}")
        seen = GeographySeen(programme, needs.unit, records)
        reader = UnitReader(needs, secret, threads, records=records, looks=seen.looks)
        yield from checked_blocks(reader, mechanism, progress, seen)
        self.divided.update(dict.fromkeys(seen.divided()))


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One run over a programme; confidential: its secret and mechanism are not in its repr."""

    programme: Programme
    secret: bytes = field(repr=False)
    mechanism: Mechanism = field(repr=False)
    threads: int = 1
    progress: Progress = field(default=Quiet(), repr=False)
    engine: Engine | None = field(default=None, repr=False)  # None: this machine
    inspection: Inspection | None = field(default=None, repr=False)  # never where households are swapped
    keyed: bool = True  # False: only counts are needed, of records that were judged when a release was made

    def swap(self, private: Path | None = None) -> Swapped | None:
        """Swap households if the programme declares it; the same secret gives the same swap.

        ``private``: a folder for confidential files, which an engine needs.
        """
        if self.programme.swap is None:
            return None
        if self.engine is not None:
            if private is None:
                raise ValueError("an engine stores the exchanged places in a folder")
            return self.engine.swap(self, private)
        swapped = swapping.swap(self.programme, self.secret, self.threads, self.progress)
        return Swapped(relocate.Relocations(self.programme, swapped.moves, self.secret), swapped.conflicts)

    def places(self) -> Places | None:
        """The places after swapping; None where nothing is swapped."""
        swapped = self.swap()
        return swapped.places if swapped else None

    def sent(self) -> Run:
        """The run as it is known where an engine calls a function: there, everything is on one machine."""
        return replace(self, progress=Quiet(), engine=None)

    def call(self, function: Callable[Given, Made], *given: Given.args, **named: Given.kwargs) -> Made:
        """Call a function that reads records where they are read."""
        if self.engine is None:
            return function(*given, **named)
        return self.engine.call(function, *given, **named)

    def blocks(
        self, unit: Unit, cubes: Iterable[Cube], places: Places | None = None
    ) -> Iterator[EncodedRecords]:
        """Stream the records of a unit with what some cubes need; raise at the end if some are invalid."""
        needs = needs_of(self.programme, unit, cubes)
        if self.inspection is not None and unit.name in self.inspection.units:
            given = self.secret, self.threads, self.mechanism, self.progress
            return self.inspection.blocks(self.programme, needs, *given)
        if not self.keyed:
            needs = needs.counts_only()
        moved = places.of(unit) if places else None
        reader = UnitReader(needs, self.secret, self.threads, moved)
        return checked_blocks(reader, self.mechanism, self.progress)


def checked_blocks(
    reader: UnitReader, mechanism: Mechanism | None, progress: Progress, seen: GeographySeen | None = None
) -> Iterator[EncodedRecords]:
    """Stream a table to its end and raise all its problems, also those of noise and places where these are given."""
    for block in reader.blocks():
        yield block
        progress.step(len(block))
    found = record_problems(reader.found(), reader.needs, reader.records.name, mechanism)
    require_none([*found, *(() if seen is None else seen.problems())])


def require_none(problems: Iterable[Problem]) -> None:
    """Raise the problems, if there are any."""
    found = tuple(problems)
    if found:
        raise Mistakes(found)


def record_problems(
    found: Findings, needs: Needs, table: str, mechanism: Mechanism | None
) -> Iterator[Problem]:
    """All problems of a unit's table after it has been read to its end."""
    if not found.records:
        yield Problem(table, "population", "no records", "give a table with records")
    yield from found.problems(needs, table)
    if mechanism is None:
        return
    largest, modulus = found.largest, mechanism.key_modulus
    if modulus and largest is not None and improbably_small(largest, found.records, modulus):
        value = f"record keys too small for the p-table, which expects them up to {modulus - 1}"
        remedy = "use a p-table made for these keys, or omit record_key so that keys are made from the secret"
        yield Problem(table, "population.record_key", value, remedy)
    yield from mechanism.problems(found.records)
