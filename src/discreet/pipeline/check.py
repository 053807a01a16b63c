"""Everything that is wrong with a programme's data, at once; nothing is counted or written."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from discreet.errors import DiscreetError, Mistakes, Problem
from discreet.maths.keys import SECRET_BYTES
from discreet.maths.lookup import Lookup
from discreet.perturb.choose import mechanism
from discreet.pipeline.progress import Progress, Quiet
from discreet.pipeline.soundness import modulus_problems, record_problems
from discreet.population.needs import needs_of
from discreet.population.places import place_problems
from discreet.population.reading import UnitReader
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme, Unit
from discreet.schema.rules import ReadyMade
from discreet.tabulate.ready_made import ready_made_table


def check_data(programme: Programme, threads: int = 1, progress: Progress | None = None) -> list[Problem]:
    """Read all the data that a programme names and say what is wrong with it.

    Ids are hashed under a key that is thrown away, to find those that stand twice.
    """
    return list(dict.fromkeys(_problems(programme, threads, progress or Quiet())))


def _problems(programme: Programme, threads: int, progress: Progress) -> Iterator[Problem]:
    passing = secrets.token_bytes(SECRET_BYTES)
    try:
        lookup = mechanism(programme.noise, passing).lookup
    except Mistakes as mistakes:
        yield from mistakes.problems
        return
    except DiscreetError as error:
        yield Problem(str(programme.path), "noise", str(error), "change the parameters")
        return
    for unit in programme.population.units.values() if programme.population else ():
        progress.stage(f"checking {unit.name}")
        yield from _noted(partial(_unit_problems, programme, unit, lookup, passing, threads, progress))
        yield from _noted(partial(place_problems, programme, unit))
    for cube in programme.cubes:
        if ready := programme.ready_made.get(cube.id):
            yield from _noted(partial(_ready_problems, cube, ready, lookup))


def _noted(look: Callable[[], Iterable[Problem]]) -> Iterable[Problem]:
    """What a look finds, raised or returned."""
    try:
        return list(look())
    except Mistakes as mistakes:
        return mistakes.problems


def _unit_problems(
    programme: Programme, unit: Unit, lookup: Lookup, passing: bytes, threads: int, progress: Progress
) -> Iterable[Problem]:
    cubes = [
        cube for cube in programme.cubes if cube.unit == unit.name and cube.id not in programme.ready_made
    ]
    if not cubes:
        return ()
    reader = UnitReader(needs_of(programme, unit, cubes), passing, threads)
    records = 0
    for block in reader.blocks():
        records += len(block)
        progress.step(len(block))
    return record_problems(reader, lookup, records)


def _ready_problems(cube: Cube, ready: ReadyMade, lookup: Lookup) -> Iterator[Problem]:
    yield from modulus_problems(ready.modulus, lookup, cube)
    ready_made_table(cube, ready)
