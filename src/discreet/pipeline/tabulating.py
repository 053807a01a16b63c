"""Counting a programme's cubes unit by unit, as many in one pass over the records as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from discreet.errors import Mistakes, Problem
from discreet.maths.lookup import Lookup
from discreet.pipeline.progress import Progress
from discreet.population.needs import needs_of
from discreet.population.reading import UnitReader
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme, Unit
from discreet.tabulate.counter import CubeCounter, groups
from discreet.tabulate.ready_made import ready_made_table
from discreet.tabulate.table import ConfidentialTable

CELLS_AT_ONCE = 400_000_000  # accumulators held together: 3.2 GB

Finish = Callable[[ConfidentialTable], None]


@dataclass(frozen=True)
class Tabulator:
    """What counting needs to know of a run."""

    programme: Programme
    secret: bytes
    lookup: Lookup
    threads: int
    progress: Progress

    def run(self, cubes: Sequence[Cube], finish: Finish) -> dict[str, int]:
        """Count the cubes and hand each table to ``finish``; return the number of records of each unit."""
        ready = [cube for cube in cubes if cube.id in self.programme.ready_made]
        for cube in ready:
            _require_modulus(self.programme.ready_made[cube.id].modulus, self.lookup, cube)
            finish(ready_made_table(cube, self.programme.ready_made[cube.id]))
        units = self.programme.population.units if self.programme.population else {}
        rows: dict[str, int] = {}
        for name, unit in units.items():
            wanted = [cube for cube in cubes if cube.unit == name and cube not in ready]
            for group in groups(wanted, CELLS_AT_ONCE):
                rows[name] = self._count(unit, group, finish)
        return rows

    def _count(self, unit: Unit, cubes: Sequence[Cube], finish: Finish) -> int:
        reader = UnitReader(needs_of(self.programme, unit, cubes), self.secret, self.threads)
        records = 0
        self.progress.stage(f"counting {unit.name}")
        with ThreadPoolExecutor(self.threads) as pool:
            counter = CubeCounter(cubes, pool)
            for block in reader.blocks():
                counter.add(block)
                records += len(block)
                self.progress.step(len(block))
            self._require_sound(reader, unit, records)
            self.progress.stage(f"perturbing and writing {unit.name}", len(cubes))

            def hand_over(k: int) -> None:
                finish(counter.table(k))
                self.progress.step()

            for _ in pool.map(hand_over, range(len(cubes))):
                pass
        return records

    def _require_sound(self, reader: UnitReader, unit: Unit, records: int) -> None:
        problems = [*reader.problems(), *_key_problems(reader, self.lookup, records)]
        if not records:
            key = f"population.{unit.name}"
            problems.append(Problem(reader.records.name, key, "no records", "give a table that holds some"))
        if problems:
            raise Mistakes(problems)


def _require_modulus(modulus: int, lookup: Lookup, cube: Cube) -> None:
    """Cell keys modulo M tell the key modulo m only where m divides M and both divide 2^32."""
    if modulus % lookup.modulus or 2**32 % modulus:
        value = f"cell keys modulo {modulus} with a p-table modulo {lookup.modulus}"
        remedy = "use a p-table of that modulus, or keys from 0 to 4294967295"
        raise Mistakes([Problem("", f"cubes.{cube.id}.counts", value, remedy)])


def _key_problems(reader: UnitReader, lookup: Lookup, records: int) -> list[Problem]:
    """Given record keys must fill the range that the p-table expects; small keys would leave cells unprotected."""
    largest = reader.largest_given_key
    if largest is None or records < 40 or largest >= lookup.modulus // 2:
        return []
    value = (
        f"record keys stay below {lookup.modulus // 2}, the p-table expects them up to {lookup.modulus - 1}"
    )
    remedy = "use a p-table made for these keys, or leave record_key out so that the secret makes them"
    return [Problem(reader.records.name, "population.record_key", value, remedy)]
