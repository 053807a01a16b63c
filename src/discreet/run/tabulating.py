"""Counts a programme's cubes unit by unit, as many in one pass over the records as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from typing import Generic, Self

from discreet.errors import Problem
from discreet.io.progress import Progress
from discreet.programme.cube import Cube
from discreet.programme.cubes import ReadyMade
from discreet.programme.programme import Unit
from discreet.run.run import Each, Finish, Made, Places, Run, Tabulated, require_none
from discreet.tabulate.counter import CubeCounter, groups
from discreet.tabulate.ready_made import ready_made_table
from discreet.tabulate.tables import ConfidentialTable

CELLS_AT_ONCE = 400_000_000  # accumulators in memory at once: 3.2 GB


def tabulate(
    run: Run,
    cubes: Sequence[Cube],
    finish: Finish[Made],
    places: Places | None = None,
    pay: Callable[[], None] | None = None,
) -> Tabulated[Made]:
    """Count the cubes and finish each; with ``pay`` none before all records are judged and it was called."""
    if run.engine is not None:
        return run.engine.tabulate(run, cubes, finish, places, pay)
    with _Held(finish, pay, run.threads) as held:
        rows = _tabulate(run, cubes, held.finish, places)
    return Tabulated(held.made, rows)


def tabulate_together(
    run: Run,
    cubes: Sequence[Cube],
    each: Finish[Each],
    together: Callable[[list[Each], Progress], Made],
    places: Places | None,
    pay: Callable[[], None] | None,
    judge: Callable[[ConfidentialTable], None] | None = None,
) -> tuple[Made, Mapping[str, int]]:
    """Count the cubes, make something of each, and finish all of it together, in the order of the cubes."""
    if run.engine is not None:
        return run.engine.tabulate_together(run, cubes, each, together, places, pay, judge)
    finish = each if judge is None else partial(_judged, judge, each)
    found = tabulate(run, cubes, finish, places, pay if judge is None else None)
    if judge is not None and pay is not None:
        pay()
    return together([found.made[cube.id] for cube in cubes], run.progress), found.rows


def _judged(judge: Callable[[ConfidentialTable], None], each: Finish[Each], table: ConfidentialTable) -> Each:
    judge(table)
    return each(table)


class _Held(Generic[Made]):
    """Tables that wait for their noise until all records are read, so that a mistake in them costs nothing.

    Tables of more than ``CELLS_AT_ONCE`` cells together do not wait in memory: noise is then paid for and drawn before
    the last records are read.
    """

    def __init__(self, finish: Finish[Made], pay: Callable[[], None] | None, threads: int) -> None:
        self._finish, self._pay, self._threads = finish, pay, threads
        self.made: dict[str, Made] = {}
        self._tables: list[ConfidentialTable] = []
        self._lock = Lock()

    def finish(self, table: ConfidentialTable) -> None:
        """Finish a table now, or when all have come."""
        with self._lock:
            if self._pay is not None:
                self._tables.append(table)
                if sum(len(one.cells) for one in self._tables) > CELLS_AT_ONCE:
                    self._draw()
                return
        self._finished(table)

    def _finished(self, table: ConfidentialTable) -> None:
        self.made[table.cube.id] = self._finish(table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is None:
            self._draw()

    def _draw(self) -> None:
        if self._pay is not None:
            self._pay()
            self._pay = None
        with ThreadPoolExecutor(self._threads) as pool:
            for _ in pool.map(self._finished, self._tables):
                pass
        self._tables.clear()


def _tabulate(
    run: Run, cubes: Sequence[Cube], finish: Callable[[ConfidentialTable], None], places: Places | None
) -> dict[str, int]:
    programme = run.programme
    ready = [cube for cube in cubes if cube.id in programme.ready_made]
    for cube in ready:
        finish(checked_ready_made(run, cube))
    units = programme.population.units if programme.population else {}
    rows: dict[str, int] = {}
    for name, unit in units.items():
        wanted = [cube for cube in cubes if cube.unit == name and cube not in ready]
        for group in groups(wanted, CELLS_AT_ONCE):
            rows[name] = _count(run, unit, group, finish, places)
    return rows


def checked_ready_made(run: Run, cube: Cube) -> ConfidentialTable:
    """The table of a cube whose counts were given, with sound keys and enough records for the noise."""
    given = run.programme.ready_made[cube.id]
    require_none(modulus_problems(given, run.mechanism.key_modulus, cube))
    table = ready_made_table(cube, given)
    require_none(run.mechanism.problems(table.total))
    return table


def _count(
    run: Run,
    unit: Unit,
    cubes: Sequence[Cube],
    finish: Callable[[ConfidentialTable], None],
    places: Places | None,
) -> int:
    records = 0
    blocks = run.blocks(unit, cubes, places)
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
