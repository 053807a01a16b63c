"""Counting a programme's cubes unit by unit, as many in one pass over the records as memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from discreet.errors import Mistakes, Problem
from discreet.perturb.mechanism import Mechanism
from discreet.pipeline.progress import Progress
from discreet.pipeline.soundness import modulus_problems, record_problems
from discreet.population.needs import needs_of
from discreet.population.reading import UnitReader
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme, Unit
from discreet.swap.relocate import Relocations
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
