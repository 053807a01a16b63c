"""Gates that no release of a programme can be judged by: variables that clash with its tables, found by declaration.

Everything here is asked of the same functions that judge a release: which areas and variables are reconstructed
(``area_tables``), what an intruder's file may contain (``linkage``), which columns are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from discreet.audit.area_tables import Space, joint_space
from discreet.audit.evidence import Universe, tables_of
from discreet.audit.linkage import file_problems
from discreet.audit.reconstruction import SolverLimits, areas_of
from discreet.errors import Mistakes, Problem
from discreet.io.databases import open_source
from discreet.population.reading import missing_columns, needs_of
from discreet.programme.cube import Cube
from discreet.programme.gates import ReconstructionGate
from discreet.programme.programme import Programme

PERSONS = "persons"


def gate_problems(programme: Programme) -> Iterator[Problem]:
    """Why declared gates could not be judged on any release of a programme; no record is read."""
    gates = programme.gates
    if gates.differencing is not None:
        names = [variable.name for pair in gates.differencing.pairs for variable in pair]
        yield from _unreadable(programme, names, "gates.differencing.pairs")
    if gates.reconstruction is not None:
        yield from _reconstruction(programme, gates.reconstruction)


def _reconstruction(programme: Programme, gate: ReconstructionGate) -> Iterator[Problem]:
    key, universe = "gates.reconstruction", _universe(programme, gate.place)
    file = str(programme.path)
    if universe is None:
        value = f"no table of all persons has {gate.place!r}"
        remedy = (
            f"name a place that a cube of persons without base, count and weight has; {_known(programme)}"
        )
        yield Problem(file, f"{key}.place", value, remedy)
        return
    if gate.place in gate.variables:
        value = f"{gate.place} is the place"
        yield Problem(
            file, f"{key}.variables", value, "leave it out: the records of each place are reconstructed"
        )
        return
    try:
        space = _space(programme, universe, gate)
    except Mistakes as mistakes:
        for problem in mistakes.problems:
            yield Problem(file, f"{key}.{problem.key}", problem.value, problem.remedy)
        return
    known = gate.quasi or space.variables[:-1] or space.variables
    for problem in file_problems(space, gate.place, known, gate.errors):
        name = "quasi" if problem.key == "quasi-identifiers" else problem.key
        yield Problem(file, f"{key}.{name}", problem.value, problem.remedy)
    yield from _unreadable(programme, (gate.place, *space.variables), key)


def _space(programme: Programme, universe: Universe, gate: ReconstructionGate) -> Space:
    limits = SolverLimits(most_areas=gate.areas)
    chosen = areas_of(universe, gate.place, None, limits.most_areas)
    return joint_space(
        universe, gate.place, chosen, gate.variables or None, programme.places, limits.most_cells
    )


def _universe(programme: Programme, place: str) -> Universe | None:
    """The tables of all persons, if one of them has the place."""
    for universe in tables_of(programme):
        if (universe.unit, universe.base, universe.count) == (PERSONS, "", ""):
            axes = (axis.variable for table in universe.tables for axis in table.cube.axes)
            if place in axes:
                return universe
    return None


def _known(programme: Programme) -> str:
    cubes: Iterable[Cube] = (
        cube
        for cube in programme.cubes
        if cube.unit == PERSONS and not (cube.base or cube.count or cube.weight)
    )
    names = sorted({axis.variable for cube in cubes for axis in cube.axes})
    return f"they have {', '.join(names)}" if names else "there is no such cube"


def _unreadable(programme: Programme, names: Sequence[str], key: str) -> Iterator[Problem]:
    """Variables that the records of persons do not have: gates look at records, not only at tables."""
    population = programme.population
    if population is None or PERSONS not in population.units:
        yield Problem(
            str(programme.path), key, "no records of persons", "declare their table, or remove the gate"
        )
        return
    unit = population.units[PERSONS]
    for name in dict.fromkeys(names):
        units = programme.variables[name].units
        if units is not None and PERSONS not in units:
            value = f"{name} is a variable of {', '.join(units)}"
            yield Problem(str(programme.path), key, value, "name a variable of persons")
    axes = tuple(
        max(variable.breakdowns.values(), key=len)
        for variable in (programme.variables[name] for name in dict.fromkeys(names))
        if variable.units is None or PERSONS in variable.units
    )
    records = open_source(unit.source, f"population.{PERSONS}")
    yield from missing_columns(needs_of(programme, unit, [Cube("records", PERSONS, axes)]), records)
