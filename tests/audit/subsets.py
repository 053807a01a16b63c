"""Universes that count some of the same persons, with the same record keys: what can be subtracted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from discreet.audit.evidence import Cells, PublishedTable, Universe
from discreet.maths.cells.counting import counts_of
from discreet.perturb.mechanism import Mechanism
from discreet.population.encode import EncodedRecords
from discreet.programme.codelist import Codelist
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.tables import ConfidentialTable
from tests.audit.known import known as known_noise
from tests.audit.made import Columns, axis

EXACT = known_noise(same_noise=True, keeps_zeros=True)


def record_keys(persons: int, seed: int) -> NDArray[np.uint32]:
    return np.random.default_rng(seed).integers(0, 2**32, persons, dtype=np.uint32)


def universe(
    trees: Sequence[Codelist],
    crosses: Sequence[Sequence[str]],
    columns: Columns,
    keys: NDArray[np.uint32],
    mechanism: Mechanism | None,
    base: str = "",
    among: NDArray[np.bool_] | None = None,
) -> tuple[Universe, Mapping[str, Cells]]:
    """Count some persons, perturb if a mechanism is given; the universe and its true counts by cube."""
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube(f"{base}{'x'.join(names)}", "persons", tuple(axes[n] for n in names)) for names in crosses]
    chosen = np.ones(len(keys), dtype=bool) if among is None else among
    tables = counted(cubes, {name: column[chosen] for name, column in columns.items()}, keys[chosen])
    truth = {table.cube.id: occupied(table) for table in tables}
    shown = tuple(PublishedTable(table.cube, _loader(mechanism, table)) for table in tables)
    return Universe("persons", base, "", shown, {tree.name: tree for tree in trees}), truth


def counted(cubes: Sequence[Cube], columns: Columns, keys: NDArray[np.uint32]) -> list[ConfidentialTable]:
    """Count some cubes."""
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter(cubes, pool)
        counter.add(EncodedRecords(columns, keys, {}, {}))
        return [counter.table(k) for k in range(len(cubes))]


def occupied(table: ConfidentialTable) -> Cells:
    here = np.flatnonzero(counts_of(table.cells))
    cells = here if table.positions is None else table.positions[here]
    return cells.astype(np.int64), counts_of(table.cells[here])


def _loader(mechanism: Mechanism | None, table: ConfidentialTable):  # type: ignore[no-untyped-def]
    if mechanism is None:
        exact = occupied(table)
        return lambda: exact
    protected = mechanism.perturb(table)
    return lambda: (protected.cells, protected.values)
