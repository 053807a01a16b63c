"""What would refuse a release before it is made: one judgement, which ``check`` reports and ``protect`` obeys.

Two functions: what the declaration shows (no record is read), and what a look at the data shows. What the place of the
release, the register of the secret and the ledger show is judged by ``prepare``, which also asks the first. What no one
can know beforehand is not here: whether a gate passes, what the release reveals beside an earlier one, and whether the
disk has room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
from discreet.lazy import lazily
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.weak import weak_problems
from discreet.population.household_sizes import household_problems
from discreet.population.place_columns import place_column_problems
from discreet.population.places import place_problems
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from discreet.run.identity import snapshot_problems
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


def data_problems(programme: Programme) -> Iterator[Problem]:
    """What a look at some columns shows before records are counted: places, and the sizes of households."""
    for unit in programme.population.units.values() if programme.population else ():
        yield from noted(partial(place_problems, programme, unit))
    yield from noted(partial(place_column_problems, programme))
    yield from noted(partial(household_problems, programme, {cube.unit for cube in programme.cubes}))


def found_data_problems(programme: Programme) -> tuple[Problem, ...]:
    """The same, found where an engine reads records."""
    return tuple(data_problems(programme))


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
