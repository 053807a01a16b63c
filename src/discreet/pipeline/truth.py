"""The true counts of a programme, counted again for an audit; nothing of them is written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from discreet.audit.published import Cells
from discreet.audit.truth import Truth
from discreet.maths.counting import counts_of
from discreet.perturb.mechanism import Mechanism
from discreet.pipeline.progress import Progress, Quiet
from discreet.pipeline.tabulating import Tabulator
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme
from discreet.swap.relocate import Relocations
from discreet.swap.swapping import swap
from discreet.tabulate.table import ConfidentialTable


def true_counts(
    programme: Programme,
    secret: bytes,
    mechanism: Mechanism,
    cubes: Sequence[Cube],
    threads: int = 1,
    progress: Progress | None = None,
) -> Truth:
    """Count cubes as they are, and as they are after swapping where the programme swaps."""
    told = progress or Quiet()
    plain = Tabulator(programme, secret, mechanism, threads, told)
    original = _counted(plain, cubes)
    if programme.swap is None:
        return Truth(original, original)
    moves = swap(programme, secret, threads, told).moves
    moved = Tabulator(programme, secret, mechanism, threads, told, Relocations(programme, moves, secret))
    return Truth(original, _counted(moved, cubes))


def _counted(tabulator: Tabulator, cubes: Sequence[Cube]) -> dict[str, Cells]:
    found: dict[str, Cells] = {}

    def keep(table: ConfidentialTable) -> None:
        found[table.cube.id] = occupied(table)

    tabulator.run(cubes, keep)
    return found


def occupied(table: ConfidentialTable) -> Cells:
    """The non-empty cells of a table and their true counts."""
    here = np.flatnonzero(counts_of(table.cells))
    cells = here if table.positions is None else table.positions[here]
    return cells.astype(np.int64), counts_of(table.cells[here])
