"""Counts a programme's cubes unit by unit, as many in one pass over the records as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from discreet.errors import Mistakes, Problem
from discreet.io.progress import Progress
from discreet.maths.cells.keys import improbably_small
from discreet.perturb.mechanism import Mechanism
from discreet.population.reading import UnitReader, needs_of
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme, Unit
from discreet.swap.relocate import Relocations
from discreet.tabulate.counter import CubeCounter, groups
from discreet.tabulate.ready_made import ready_made_table
from discreet.tabulate.tables import ConfidentialTable


def record_problems(reader: UnitReader, key_modulus: int | None, records: int) -> Iterator[Problem]:
    """Everything wrong with a unit's table after it has been read to its end."""
    if not records:
        yield Problem(reader.records.name, "population", "no records", "give a table that holds some")
    yield from reader.problems()
    largest = reader.largest_given_key
    if key_modulus and largest is not None and improbably_small(largest, records, key_modulus):
        value = f"record keys too small for the p-table, which expects them up to {key_modulus - 1}"
        remedy = "use a p-table made for these keys, or leave record_key out so that the secret makes them"
        yield Problem(reader.records.name, "population.record_key", value, remedy)


def modulus_problems(modulus: int, key_modulus: int, cube: Cube) -> Iterator[Problem]:
    """Cell keys modulo M tell the key modulo m only where m divides M and M divides 2^32."""
    if modulus % key_modulus or 2**32 % modulus:
        value = f"cell keys modulo {modulus} with a p-table modulo {key_modulus}"
        remedy = "use a p-table of that modulus, or keys from 0 to 4294967295"
        yield Problem("", f"cubes.{cube.id}.counts", value, remedy)


CELLS_AT_ONCE = 400_000_000  # accumulators held together: 3.2 GB

Finish = Callable[[ConfidentialTable], None]


@dataclass(frozen=True)
class Tabulator:
    """What counting needs to know of a run."""

    programme: Programme
    secret: bytes
    mechanism: Mechanism
    threads: int
    progress: Progress
    relocations: Relocations | None = None  # households that were swapped

    def run(self, cubes: Sequence[Cube], finish: Finish) -> dict[str, int]:
        """Count the cubes and hand each table to ``finish``; return the number of records of each unit."""
        ready = [cube for cube in cubes if cube.id in self.programme.ready_made]
        for cube in ready:
            _require(
                modulus_problems(self.programme.ready_made[cube.id].modulus, self.mechanism.key_modulus, cube)
            )
            finish(ready_made_table(cube, self.programme.ready_made[cube.id]))
        units = self.programme.population.units if self.programme.population else {}
        rows: dict[str, int] = {}
        for name, unit in units.items():
            wanted = [cube for cube in cubes if cube.unit == name and cube not in ready]
            for group in groups(wanted, CELLS_AT_ONCE):
                rows[name] = self._count(unit, group, finish)
        return rows

    def _count(self, unit: Unit, cubes: Sequence[Cube], finish: Finish) -> int:
        moved = self.relocations.of(unit) if self.relocations else None
        reader = UnitReader(needs_of(self.programme, unit, cubes), self.secret, self.threads, moved)
        records = 0
        self.progress.stage(f"counting {unit.name}")
        with ThreadPoolExecutor(self.threads) as pool:
            counter = CubeCounter(cubes, pool)
            for block in reader.blocks():
                counter.add(block)
                records += len(block)
                self.progress.step(len(block))
            _require(record_problems(reader, self.mechanism.key_modulus, records))
            _require(self.mechanism.problems(records))
            self.progress.stage(f"perturbing and writing {unit.name}", len(cubes))

            def hand_over(k: int) -> None:
                finish(counter.table(k))
                self.progress.step()

            for _ in pool.map(hand_over, range(len(cubes))):
                pass
        return records


def _require(problems: Iterable[Problem]) -> None:
    found = tuple(problems)
    if found:
        raise Mistakes(found)
