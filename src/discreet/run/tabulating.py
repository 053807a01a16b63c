"""Counts a programme's cubes unit by unit, as many in one pass over the records as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from discreet.errors import Problem
from discreet.programme.cube import Cube
from discreet.programme.cubes import ReadyMade
from discreet.programme.programme import Unit
from discreet.run.run import Run, require_none
from discreet.swap.relocate import Relocations
from discreet.tabulate.counter import CubeCounter, groups
from discreet.tabulate.ready_made import ready_made_table
from discreet.tabulate.tables import ConfidentialTable

CELLS_AT_ONCE = 400_000_000  # accumulators in memory at once: 3.2 GB

Finish = Callable[[ConfidentialTable], None]


def tabulate(
    run: Run, cubes: Sequence[Cube], finish: Finish, relocations: Relocations | None = None
) -> dict[str, int]:
    """Count the cubes and pass each table to ``finish``; return the number of records of each unit."""
    programme = run.programme
    ready = [cube for cube in cubes if cube.id in programme.ready_made]
    for cube in ready:
        given = programme.ready_made[cube.id]
        require_none(modulus_problems(given, run.mechanism.key_modulus, cube))
        table = ready_made_table(cube, given)
        require_none(run.mechanism.problems(table.total))
        finish(table)
    units = programme.population.units if programme.population else {}
    rows: dict[str, int] = {}
    for name, unit in units.items():
        wanted = [cube for cube in cubes if cube.unit == name and cube not in ready]
        for group in groups(wanted, CELLS_AT_ONCE):
            rows[name] = _count(run, unit, group, finish, relocations)
    return rows


def _count(
    run: Run, unit: Unit, cubes: Sequence[Cube], finish: Finish, relocations: Relocations | None
) -> int:
    records = 0
    blocks = run.blocks(unit, cubes, relocations)
    run.progress.stage(f"counting {unit.name}")
    with ThreadPoolExecutor(run.threads) as pool:
        counter = CubeCounter(cubes, pool)
        for block in blocks:
            counter.add(block)
            records += len(block)
        run.progress.stage(f"perturbing and writing {unit.name}", len(cubes))

        def hand_over(k: int) -> None:
            finish(counter.table(k))
            run.progress.step()

        for _ in pool.map(hand_over, range(len(cubes))):
            pass
    return records


def modulus_problems(given: ReadyMade, key_modulus: int, cube: Cube) -> Iterator[Problem]:
    """Cell keys modulo M give the key modulo m only where m divides M and M divides 2^32."""
    modulus = given.modulus
    if given.keyed and (modulus % key_modulus or 2**32 % modulus):
        value = f"cell keys modulo {modulus} with a p-table modulo {key_modulus}"
        remedy = "use a p-table of that modulus, or keys from 0 to 4294967295"
        yield Problem("", f"cubes.{cube.id}.counts", value, remedy)
