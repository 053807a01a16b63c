"""A run over a programme: the inputs of every step from records to tables, and reading and checking records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from discreet.errors import Mistakes, Problem
from discreet.io.progress import Progress, Quiet
from discreet.maths.cells.keys import improbably_small
from discreet.perturb.mechanism import Mechanism
from discreet.population.encode import EncodedRecords
from discreet.population.reading import UnitReader, needs_of
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme, Unit
from discreet.swap.relocate import Relocations
from discreet.swap.result import SwapResult
from discreet.swap.swapping import swap


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One run over a programme; confidential: its secret and mechanism are not in its repr."""

    programme: Programme
    secret: bytes = field(repr=False)
    mechanism: Mechanism = field(repr=False)
    threads: int = 1
    progress: Progress = field(default=Quiet(), repr=False)

    def swap(self) -> SwapResult | None:
        """Swap households if the programme declares it; the same secret gives the same swap."""
        if self.programme.swap is None:
            return None
        return swap(self.programme, self.secret, self.threads, self.progress)

    def relocations(self, swapped: SwapResult | None) -> Relocations | None:
        """The exchanged places, for any table."""
        return Relocations(self.programme, swapped.moves, self.secret) if swapped else None

    def blocks(
        self, unit: Unit, cubes: Iterable[Cube], relocations: Relocations | None = None
    ) -> Iterator[EncodedRecords]:
        """Stream the records of a unit with what some cubes need; raise at the end if some are invalid."""
        moved = relocations.of(unit) if relocations else None
        reader = UnitReader(needs_of(self.programme, unit, cubes), self.secret, self.threads, moved)
        return checked_blocks(reader, self.mechanism, self.progress)


def checked_blocks(
    reader: UnitReader, mechanism: Mechanism | None, progress: Progress
) -> Iterator[EncodedRecords]:
    """Stream a table to its end and raise all its problems, also those with the noise if it is given."""
    records = 0
    for block in reader.blocks():
        yield block
        records += len(block)
        progress.step(len(block))
    require_none(_record_problems(reader, mechanism, records))


def require_none(problems: Iterable[Problem]) -> None:
    """Raise the problems, if there are any."""
    found = tuple(problems)
    if found:
        raise Mistakes(found)


def _record_problems(reader: UnitReader, mechanism: Mechanism | None, records: int) -> Iterator[Problem]:
    """All problems of a unit's table after it has been read to its end."""
    if not records:
        yield Problem(reader.records.name, "population", "no records", "give a table with records")
    yield from reader.problems()
    if mechanism is None:
        return
    largest, modulus = reader.largest_given_key, mechanism.key_modulus
    if modulus and largest is not None and improbably_small(largest, records, modulus):
        value = f"record keys too small for the p-table, which expects them up to {modulus - 1}"
        remedy = "use a p-table made for these keys, or omit record_key so that keys are made from the secret"
        yield Problem(reader.records.name, "population.record_key", value, remedy)
    yield from mechanism.problems(records)
