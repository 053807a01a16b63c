"""Checks of a programme and its data: all problems at once that ``protect`` would refuse, without writing anything."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from discreet.errors import DiscreetError, Mistakes, Problem
from discreet.hierarchy.mechanism import mechanism
from discreet.io.csv_form import USUAL
from discreet.io.databases import open_source
from discreet.io.progress import Progress, Quiet
from discreet.io.register import Register
from discreet.maths.cells.keys import SECRET_BYTES
from discreet.perturb.choose import cell_key_mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.weights import reach_of
from discreet.pipeline.earlier import NO_EARLIER, EarlierReleases
from discreet.pipeline.judgement import (
    counted_needs,
    data_problems,
    declared_problems,
    divided_warnings,
    found_warnings,
    noted,
    problems_of,
)
from discreet.pipeline.protect import prepare
from discreet.pipeline.spending import Spending
from discreet.population.reading import (
    UnitReader,
    missing_columns,
    only_present,
)
from discreet.programme.amounts import is_named_amount
from discreet.programme.cube import Cube
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme, ReadyMade, Unit
from discreet.release.manifest import is_release
from discreet.run.run import Engine, Inspection, checked_blocks
from discreet.swap.relocate import Relocations
from discreet.swap.swapping import swap
from discreet.tabulate.ready_made import ready_made_table


@dataclass(frozen=True, kw_only=True)
class Intention:
    """How a release would be made: with it, ``check`` also judges its place, the register and the ledger."""

    secret: bytes
    clock: Callable[[], datetime]
    out: Path | None = None
    private: Path | None = None
    register: Register | None = None
    spending: Spending | None = None
    earlier: EarlierReleases = NO_EARLIER
    another_ptable: bool = False
    engine: Engine | None = None

    def problems(self, programme: Programme) -> Iterator[Problem]:
        """What ``protect`` would refuse before it reads a record."""
        try:
            prepare(
                programme,
                self.secret,
                self.out,
                self.private,
                clock=self.clock,
                spending=self.spending,
                register=self.register,
                earlier=self.earlier,
                another_ptable=self.another_ptable,
                engine=self.engine,
            )
        except DiscreetError as error:
            yield from problems_of(error)

    def notes(self, programme: Programme) -> Iterator[str]:
        """What a sound release would be charged, and what it will be compared with, which ``check`` does not judge."""
        if self.spending is not None:
            yield self.spending.forecast(mechanism(programme, self.secret, self.secret))
        folders = [*((self.out,) if self.out and is_release(self.out) else ()), *self.earlier.folders]
        if folders:
            named = ", ".join(map(str, folders))
            yield f"Published before: {named}. protect compares both and may refuse what they reveal together."


def judged(
    declared: Collection[Problem],
    programme: Programme,
    threads: int,
    progress: Progress,
    intended: Intention | None,
    engine: Engine | None,
) -> tuple[list[Problem], list[str]]:
    """All problems, those of the declaration first, and notes on how files are read and on a sound programme."""
    looked = inspection_of(programme, engine)
    found = check_data(programme, threads, progress, intended, engine, looked)
    # a split that fits no cube is found in the declaration, and again by the mechanism
    reported = {(problem.value, problem.remedy) for problem in declared}
    problems = [*declared, *(one for one in found if one.file or (one.value, one.remedy) not in reported)]
    notes = [*reading_notes(programme)]
    if not problems:
        notes += check_notes(programme, looked, engine)
        notes += [] if intended is None else intended.notes(programme)
    return problems, notes


def check_data(
    programme: Programme,
    threads: int = 1,
    progress: Progress | None = None,
    intended: Intention | None = None,
    engine: Engine | None = None,
    inspection: Inspection | None = None,
) -> list[Problem]:
    """Read all data of a programme and return its problems, with those of an intended release where one is given.

    Without a secret ids are hashed under a temporary key to find duplicates. ``inspection`` notes what is no problem.
    """
    looked = inspection or inspection_of(programme, engine)
    found = _problems(programme, threads, progress or Quiet(), intended, engine, looked)
    return list(dict.fromkeys(found))


def inspection_of(programme: Programme, engine: Engine | None) -> Inspection:
    """The units whose geography is judged while their codes are read; swapping and engines judge it by themselves."""
    if engine is not None or programme.swap is not None or programme.population is None:
        return Inspection(frozenset())
    units = programme.population.units.values()
    return Inspection(frozenset(unit.name for unit in units if counted_needs(programme, unit) is not None))


def reading_notes(programme: Programme) -> Iterator[str]:
    """How CSV files are read, where they have not the usual form; nothing of files that cannot be read."""
    for unit in programme.population.units.values() if programme.population else ():
        try:
            records = open_source(unit.source, f"population.{unit.name}")
        except Mistakes:
            continue
        for form in dict.fromkeys(form for form in records.forms if form != USUAL):
            name = os.path.normpath(records.name)  # without the .. of a path in the programme
            yield f"{name} is read as CSV {form}; declare delimiter, encoding or decimal to change it."


def check_notes(programme: Programme, inspection: Inspection, engine: Engine | None = None) -> Iterator[str]:
    """What an office should know of a sound programme: mistakes that cannot change the release, what weights show.

    ``inspection``: that of ``check_data``.
    """
    yield from _amount_notes(programme)
    yield from divided_warnings(inspection.divided)
    given = programme, inspection.units
    yield from found_warnings(*given) if engine is None else engine.call(found_warnings, *given)
    weighted = [cube.id for cube in programme.cubes if cube.weight]
    if not weighted or not isinstance(programme.noise, CellKeyNoise):
        return
    reach = reach_of(cell_key_mechanism(programme.noise, bytes(SECRET_BYTES)).variance)
    yield (
        f"Weighted: {', '.join(weighted)}. A sum has the noise of its count times the mean weight, and one of its own "
        f"within {reach:.2f} times the largest weight of the cell. Sums and means of amounts are not protected."
    )


def _amount_notes(programme: Programme) -> Iterator[str]:
    """Columns that are named like amounts and that no variable counts."""
    counted = {variable.column for variable in programme.variables.values()}
    for unit in programme.population.units.values() if programme.population else ():
        names = open_source(unit.source, f"population.{unit.name}").schema.names
        found = [name for name in names if is_named_amount(name) and name not in counted]
        if found:
            shown = ", ".join(found[:5])
            yield f"Sums and means of amounts are not protected (in {unit.name}: {shown}); count them in bands."


def _problems(
    programme: Programme,
    threads: int,
    progress: Progress,
    intended: Intention | None,
    engine: Engine | None,
    inspection: Inspection,
) -> Iterator[Problem]:
    if engine is not None:
        engine.require(programme)
    passing = secrets.token_bytes(SECRET_BYTES)
    chosen = None
    try:
        chosen = mechanism(programme, passing, passing)
    except DiscreetError as error:
        if intended is None:
            yield from problems_of(error)
    if intended is None:
        yield from declared_problems(programme, chosen)
    else:
        yield from intended.problems(programme)
    secret = passing if intended is None else intended.secret
    for unit in programme.population.units.values() if programme.population else ():
        progress.stage(f"checking {unit.name}")
        yield from noted(
            partial(_unit_problems, programme, unit, chosen, secret, threads, progress, engine, inspection)
        )
    if engine is None:
        yield from _further_problems(programme, chosen, secret, threads, progress, inspection.units)
    else:
        yield from engine.call(_found_problems, programme, chosen, secret, threads)


def _found_problems(
    programme: Programme, chosen: Mechanism | None, secret: bytes, threads: int
) -> tuple[Problem, ...]:
    return tuple(_further_problems(programme, chosen, secret, threads, Quiet()))


def _further_problems(
    programme: Programme,
    chosen: Mechanism | None,
    secret: bytes,
    threads: int,
    progress: Progress,
    inspected: Collection[str] = (),
) -> Iterator[Problem]:
    """What is found beside the codes of records: places, swapping, and ready-made counts."""
    yield from data_problems(programme, inspected)
    if programme.swap is not None:
        yield from noted(partial(_swap_problems, programme, secret, threads, progress))
    for cube in programme.cubes:
        if ready := programme.ready_made.get(cube.id):
            yield from noted(partial(_ready_made_problems, cube, ready, chosen))


def _ready_made_problems(cube: Cube, ready: ReadyMade, chosen: Mechanism | None) -> Iterable[Problem]:
    """Read the counts, which raises their problems, and compare the noise with their number."""
    table = ready_made_table(cube, ready)
    return chosen.problems(table.total) if chosen else ()


def _swap_problems(
    programme: Programme, secret: bytes, threads: int, progress: Progress
) -> Iterable[Problem]:
    """Swap households in memory, which raises the problems that prevent it."""
    swapped = swap(programme, secret, threads, progress)
    moved = Relocations(programme, swapped.moves, secret)
    for unit in programme.population.units.values() if programme.population else ():
        if any(cube.unit == unit.name for cube in programme.cubes):
            moved.of(unit)
    return ()


def _unit_problems(
    programme: Programme,
    unit: Unit,
    chosen: Mechanism | None,
    secret: bytes,
    threads: int,
    progress: Progress,
    engine: Engine | None,
    inspection: Inspection,
) -> Iterator[Problem]:
    needs = counted_needs(programme, unit)
    if needs is None:
        return
    records = open_source(unit.source, f"population.{unit.name}")
    yield from missing_columns(needs, records)
    wanted = only_present(needs, records)
    if engine is not None:
        yield from engine.judge(wanted, secret, chosen, progress)
        return
    if unit.name in inspection.units:
        blocks = inspection.blocks(programme, wanted, secret, threads, chosen, progress)
    else:
        blocks = checked_blocks(UnitReader(wanted, secret, threads), chosen, progress)
    for _ in blocks:
        pass
