"""A population made in memory, its published tables and its truth: what the attacks are tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.audit.case import kept
from discreet.audit.evidence import Cells, Published, PublishedTable, Truth, Universe
from discreet.maths.cells.counting import counts_of
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import secret_permutation
from discreet.maths.noise.hellinger import PTableLaw
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise
from discreet.population.encode import EncodedRecords
from discreet.programme.codelist import Breakdown, Code, Codelist, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.tables import ConfidentialTable
from tests.audit.known import known as known_noise

Columns = Mapping[str, NDArray[np.uint32]]  # variable -> leaf index of each person


@dataclass(frozen=True)
class Made:
    """A release without files, and what it hides."""

    published: Published
    truth: Truth
    columns: Columns


def flat(name: str, categories: int) -> Codelist:
    """A codelist of one level: A0, A1, .."""
    return codelist(name, [Code(f"{name}{k}", "", "") for k in range(categories)])


def nested(name: str, regions: int, towns: int) -> Codelist:
    """A codelist of two levels: A0 with A0.0, A0.1, .."""
    rows = [Code(f"{name}{k}", "", "") for k in range(regions)]
    rows += [Code(f"{name}{k}.{town}", f"{name}{k}", "") for k in range(regions) for town in range(towns)]
    return codelist(name, rows)


def axis(tree: Codelist) -> Breakdown:
    """The finest breakdown of a codelist."""
    return breakdown(tree.name, tree.name, tree, tree.leaves)


def random_columns(trees: Sequence[Codelist], persons: int, seed: int) -> Columns:
    """Persons with independent, uneven codes."""
    generator = np.random.default_rng(seed)
    columns = {}
    for tree in trees:
        shares = generator.dirichlet(np.full(len(tree.leaves), 2.0))
        columns[tree.name] = generator.choice(len(tree.leaves), size=persons, p=shares).astype(np.uint32)
    return columns


def cell_key(V: float, D: int, js: int = 0) -> tuple[CellKeyMechanism, Noise]:
    """The cell key method, and an outsider who knows all of its law."""
    table = solve(PTableParameters(D, V, js))
    known = known_noise(True, True, V, D, PTableLaw(table))
    return CellKeyMechanism(build(table, Order.PLAIN), secret_permutation(bytes(32))), known


def made(
    trees: Sequence[Codelist],
    crosses: Sequence[Sequence[str]],
    columns: Columns,
    mechanism: Mechanism,
    known: Noise,
    seed: int,
) -> Made:
    """Count the crosses of the variables with fresh record keys and perturb them."""
    axes = {tree.name: axis(tree) for tree in trees}
    cubes = [Cube("x".join(names), "persons", tuple(axes[name] for name in names)) for names in crosses]
    persons = len(next(iter(columns.values())))
    keys = np.random.default_rng(seed).integers(0, 2**32, persons, dtype=np.uint32)
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter(cubes, pool)
        counter.add(EncodedRecords(columns, keys, {}, {}))
        tables = [counter.table(k) for k in range(len(cubes))]
    truth = {table.cube.id: _counts(table) for table in tables}
    shown = tuple(_shown(mechanism, table) for table in tables)
    universe = Universe("persons", "", "", shown, {tree.name: tree for tree in trees})
    records = {table.cube.id: kept(table)[1] for table in tables}
    return Made(Published("made", (universe,), known), Truth(truth, truth, records), columns)


def _counts(table: ConfidentialTable) -> Cells:
    here = np.flatnonzero(counts_of(table.cells))
    cells = here if table.positions is None else table.positions[here]
    return cells, counts_of(table.cells[here])


def _shown(mechanism: Mechanism, table: ConfidentialTable) -> PublishedTable:
    protected = mechanism.perturb(table)
    return PublishedTable(table.cube, lambda: (protected.cells, protected.values))
