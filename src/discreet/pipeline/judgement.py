"""What would refuse a release before it is made: one judgement, which ``check`` reports and ``protect`` obeys.

What the declaration shows (no record is read), what a look at the data shows, and what is only a warning. What the
place of the release, the register of the secret and the ledger show is judged by ``prepare``, which also asks the
first. What no one can know beforehand is not here: whether a gate passes, what the release reveals beside an earlier
one, and whether the disk has room.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from discreet.errors import (
    DiscreetError,
    Mistakes,
    Problem,
)
from discreet.formats.dataset import column_problems
from discreet.formats.sdmx_ids import described, id_problems
from discreet.hierarchy.blocks import block_problems
from discreet.io.databases import open_source
from discreet.io.progress import Quiet
from discreet.lazy import lazily
from discreet.maths.cells.keys import SECRET_BYTES
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.weak import weak_problems
from discreet.population.household_sizes import household_problems
from discreet.population.place_columns import place_column_problems
from discreet.population.places import divided_households, place_problems
from discreet.population.reading import Needs, UnitReader, needs_of, with_all_rules
from discreet.programme.programme import Programme, Unit
from discreet.programme.release import ReleaseFormat
from discreet.run.identity import snapshot_problems
from discreet.run.run import checked_blocks
from discreet.run.tabulating import modulus_problems

if TYPE_CHECKING:
    from discreet.audit import declared_gates
    from discreet.hierarchy import cubes as hierarchical_cubes
else:
    declared_gates = lazily("discreet.audit.declared_gates")
    hierarchical_cubes = lazily("discreet.hierarchy.cubes")


def declared_problems(programme: Programme, chosen: Mechanism | None) -> Iterator[Problem]:
    """What the declaration and the law of the noise show; ``chosen`` is None where no noise could be made."""
    if chosen is not None:
        yield from weak_problems(programme, chosen)
        if programme.hierarchy is not None:
            yield from hierarchical_cubes.bounds_problems(chosen)
    yield from block_problems(programme)
    yield from snapshot_problems(programme)
    if programme.gates.differencing is not None or programme.gates.reconstruction is not None:
        yield from noted(partial(declared_gates.gate_problems, programme))
    for cube in programme.cubes:
        yield from column_problems(cube)
        if chosen is not None:
            yield from chosen.cube_problems(cube)
            if ready := programme.ready_made.get(cube.id):
                yield from modulus_problems(ready, chosen.key_modulus, cube)
    if ReleaseFormat.SDMX_CSV in programme.release.formats:
        yield from id_problems([described(cube, programme.labels) for cube in programme.cubes])


def data_problems(programme: Programme, inspected: Collection[str] = ()) -> Iterator[Problem]:
    """What a look at some columns shows before records are counted: places, and the sizes of households.

    ``inspected``: units whose places are judged while they are counted.
    """
    for unit in programme.population.units.values() if programme.population else ():
        if unit.name not in inspected:
            yield from noted(partial(place_problems, programme, unit))
    yield from noted(partial(place_column_problems, programme))
    yield from noted(partial(household_problems, programme, {cube.unit for cube in programme.cubes}))


def found_data_problems(programme: Programme, inspected: Collection[str] = ()) -> tuple[Problem, ...]:
    """The same, found where an engine reads records."""
    return tuple(data_problems(programme, inspected))


def found_warnings(programme: Programme, inspected: Collection[str] = ()) -> tuple[str, ...]:
    """Mistakes in records that cannot change the release, which ``check`` and ``protect`` state and do not refuse."""
    read = programme.swap is None and "persons" not in inspected
    return (
        *divided_warnings(noted(partial(divided_households, programme)) if read else ()),
        *(f"Not refused, because no cube counts it: {problem}" for problem in _uncounted(programme)),
    )


def divided_warnings(found: Iterable[Problem]) -> tuple[str, ...]:
    """Households in two places, as warnings."""
    return tuple(f"Not refused, because nothing is swapped: {problem}" for problem in found)


def counted_needs(programme: Programme, unit: Unit) -> Needs | None:
    """What protect reads of a unit; None where no cube counts it."""
    cubes = [
        cube for cube in programme.cubes if cube.unit == unit.name and cube.id not in programme.ready_made
    ]
    if programme.hierarchy is not None and unit.name == programme.hierarchy.unit:
        cubes = [programme.hierarchy.leaf_cube(programme.variables)]
    return needs_of(programme, unit, cubes) if cubes else None


def _uncounted(programme: Programme) -> tuple[Problem, ...]:
    """Structural zeros that records break in columns that no cube counts, and what else is wrong with these columns."""
    return tuple(
        problem
        for unit in (programme.population.units.values() if programme.population else ())
        for problem in noted(partial(_uncounted_of, programme, unit))
    )


def _uncounted_of(programme: Programme, unit: Unit) -> Iterable[Problem]:
    needs = counted_needs(programme, unit)
    if needs is None:
        return ()
    records = open_source(unit.source, f"population.{unit.name}")
    every = with_all_rules(needs, programme, records)
    rules = tuple(rule for rule in every.rules if rule not in needs.rules)
    names = {name for rule in rules for name in rule.variables}
    if rules:
        variables = tuple(variable for variable in every.variables if variable.name in names)
        wanted = replace(every, variables=variables, rules=rules, flags=(), weights=(), order=None)
        wanted = replace(wanted, id_column=None, record_key=None)
        for _ in checked_blocks(UnitReader(wanted, secrets.token_bytes(SECRET_BYTES), 1), None, Quiet()):
            pass
    return ()


def noted(look: Callable[[], Iterable[Problem]]) -> Iterator[Problem]:
    """The problems of a step, first those that it returns, then what it raises."""
    try:
        yield from look()
    except DiscreetError as error:
        yield from problems_of(error)


def problems_of(error: DiscreetError) -> tuple[Problem, ...]:
    """An error as problems; the text of another kind of error ends with its remedy."""
    if isinstance(error, Mistakes):
        return error.problems
    value, _, remedy = str(error).partition("; ")
    return (Problem("", "", value, remedy or "change the parameters"),)
