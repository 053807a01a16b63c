"""Checks of a programme's data: all problems at once, without counting or writing."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from discreet.errors import DiscreetError, Mistakes, Problem
from discreet.hierarchy.blocks import block_problems
from discreet.io.csv_form import USUAL
from discreet.io.databases import open_source
from discreet.io.progress import Progress, Quiet
from discreet.maths.cells.keys import SECRET_BYTES
from discreet.perturb.choose import cell_key_mechanism, mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.weak import weak_problems
from discreet.perturb.weights import reach_of
from discreet.population.household_sizes import household_problems
from discreet.population.place_columns import place_column_problems
from discreet.population.places import place_problems
from discreet.population.reading import UnitReader, missing_columns, needs_of, only_present, with_all_rules
from discreet.programme.amounts import is_named_amount
from discreet.programme.cube import Cube
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme, ReadyMade, Unit
from discreet.run.run import checked_blocks
from discreet.run.tabulating import modulus_problems
from discreet.swap.households import gather
from discreet.swap.tables import open_tables
from discreet.tabulate.ready_made import ready_made_table


def check_data(programme: Programme, threads: int = 1, progress: Progress | None = None) -> list[Problem]:
    """Read all data of a programme and return its problems.

    Ids are hashed under a temporary key to find duplicates.
    """
    return list(dict.fromkeys(_problems(programme, threads, progress or Quiet())))


def reading_notes(programme: Programme) -> Iterator[str]:
    """How CSV files are read, where they have not the usual form; nothing of files that cannot be read."""
    for unit in programme.population.units.values() if programme.population else ():
        try:
            records = open_source(unit.source, f"population.{unit.name}")
        except Mistakes:
            continue
        for form in dict.fromkeys(form for form in records.forms if form != USUAL):
            yield f"{records.name} is read as CSV {form}; declare delimiter, encoding or decimal to change it."


def check_notes(programme: Programme) -> Iterator[str]:
    """What a sound programme publishes that its counts do not show: sums of weights; and what it leaves unprotected."""
    yield from _amount_notes(programme)
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


def _problems(programme: Programme, threads: int, progress: Progress) -> Iterator[Problem]:
    passing = secrets.token_bytes(SECRET_BYTES)
    chosen = None
    try:
        chosen = mechanism(programme, passing, passing)
    except Mistakes as mistakes:
        yield from mistakes.problems
    except DiscreetError as error:
        yield Problem(str(programme.path), "noise", str(error), "change the parameters")
    if chosen is not None:
        yield from weak_problems(programme, chosen)
    yield from block_problems(programme)
    for unit in programme.population.units.values() if programme.population else ():
        progress.stage(f"checking {unit.name}")
        yield from _noted(partial(_unit_problems, programme, unit, chosen, passing, threads, progress))
        yield from _noted(partial(place_problems, programme, unit))
    yield from _noted(partial(place_column_problems, programme))
    if programme.swap is not None:
        yield from _noted(partial(_swap_problems, programme, passing, threads, progress))
    yield from _noted(partial(household_problems, programme, {cube.unit for cube in programme.cubes}))
    for cube in programme.cubes:
        if ready := programme.ready_made.get(cube.id):
            yield from _noted(partial(_ready_made_problems, cube, ready, chosen))
            yield from modulus_problems(ready.modulus, chosen.key_modulus, cube) if chosen else ()


def _ready_made_problems(cube: Cube, ready: ReadyMade, chosen: Mechanism | None) -> Iterable[Problem]:
    """Read the counts, which raises their problems, and compare the noise with their number."""
    table = ready_made_table(cube, ready)
    return chosen.problems(table.total) if chosen else ()


def _swap_problems(
    programme: Programme, passing: bytes, threads: int, progress: Progress
) -> Iterable[Problem]:
    """Assemble the households, which raises the problems that prevent swapping."""
    gather(open_tables(programme), passing, threads, progress)
    return ()


def _noted(look: Callable[[], Iterable[Problem]]) -> Iterator[Problem]:
    """The problems of a check, first those that it returns, then those that it raises."""
    try:
        yield from look()
    except Mistakes as mistakes:
        yield from mistakes.problems


def _unit_problems(
    programme: Programme,
    unit: Unit,
    chosen: Mechanism | None,
    passing: bytes,
    threads: int,
    progress: Progress,
) -> Iterator[Problem]:
    cubes = [
        cube for cube in programme.cubes if cube.unit == unit.name and cube.id not in programme.ready_made
    ]
    if not cubes:
        return
    records = open_source(unit.source, f"population.{unit.name}")
    needs = needs_of(programme, unit, cubes)
    yield from missing_columns(needs, records)
    wanted = only_present(with_all_rules(needs, programme, records), records)
    for _ in checked_blocks(UnitReader(wanted, passing, threads), chosen, progress):
        pass
