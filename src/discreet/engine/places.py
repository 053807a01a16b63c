"""Swapping for tasks: one task pairs all households and stores the exchanged places; the others read them.

Pairing needs all households at once, by a few numbers each. The files are as confidential as the records: they are in
a folder that only its owner can open, without the secret, and are removed with it.
"""

from __future__ import annotations

import pickle
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from discreet.errors import Mistakes, mistake
from discreet.population.reading import Relocation
from discreet.programme.programme import Unit
from discreet.run.run import Run
from discreet.swap.relocate import Link, Relocations, hashing
from discreet.swap.swapping import swap


def store_places(run: Run, folder: Path) -> tuple[str, ...]:
    """Swap the households of a programme and store what becomes of each table; return where the rule was not met."""
    swapped = swap(run.programme, run.secret, run.threads)
    places = Relocations(run.programme, swapped.moves, run.secret)
    units = run.programme.population.units if run.programme.population else {}
    for name, unit in units.items():
        found = places.link(unit)
        content = None if found is None else (found.unhashed(), places.leaves(unit))
        try:
            draft = folder / f"{name}.{secrets.token_hex(8)}"
            draft.write_bytes(pickle.dumps(content))
            draft.replace(folder / name)
        except OSError:
            raise _unseen(folder) from None
    return swapped.conflicts


def _unseen(folder: Path) -> Mistakes:
    value = "executors cannot read and write the work folder of the run"
    return mistake(
        folder, "engine", value, "choose a folder for --out that all machines of the cluster share"
    )


@dataclass(frozen=True)
class StoredPlaces:
    """The exchanged places that a task has stored."""

    folder: Path
    secret: bytes = field(repr=False)

    def of(self, unit: Unit) -> Relocation | None:
        """The relocation of a unit's table; None if it has no places."""
        try:
            content = pickle.loads((self.folder / unit.name).read_bytes())  # noqa: S301, of this run
        except OSError:
            raise _unseen(self.folder) from None
        if content is None:
            return None
        (column, ids, moves, purpose), leaves = content
        link = Link(column, ids, moves, hashing(self.secret, purpose))
        return Relocation(link.column, link.moves_of, leaves)
