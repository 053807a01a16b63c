"""The synthetic census that the subjects share: its files, its programme and its records as encoded blocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.costs import Stopwatch, measured
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import secret_permutation
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.population.encode import EncodedRecords
from discreet.population.reading import UnitReader, needs_of
from discreet.programme import eu2021
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme, load_programme
from discreet.synth import generate

SECRET = bytes(range(32))
THIRTY = range(3, 33)  # the person groups whose first table is counted


def census(data: Path, persons: int) -> Path:
    """The folder of a census of so many persons; it is made where it does not stand yet."""
    folder = data / f"census-{persons}"
    if not folder.exists():
        measured("census", "make", persons=persons, folder=str(folder))
    return folder


def shuffled(data: Path, persons: int) -> Path:
    """The same persons in random order, so that ordering them is work."""
    folder = data / f"shuffled-{persons}"
    if not folder.exists():
        measured("census", "shuffle", source=str(census(data, persons)), folder=str(folder))
    return folder


def make(watch: Stopwatch, persons: int, folder: str) -> None:
    with watch.running():
        generate(persons, 1, Path(folder))


def shuffle(watch: Stopwatch, source: str, folder: str) -> None:
    out = Path(folder)
    out.mkdir(parents=True)
    for entry in Path(source).iterdir():
        if entry.name != "persons.parquet":
            (out / entry.name).symlink_to(entry.resolve())
    persons = pq.read_table(Path(source) / "persons.parquet")
    order = np.random.default_rng(1).permutation(len(persons))
    pq.write_table(persons.take(pa.array(order)), out / "persons.parquet", compression="zstd")


def first(block: EncodedRecords, records: int) -> EncodedRecords:
    """The first records of a block, to load the compiled kernels with."""
    few = slice(records)
    return EncodedRecords(
        {name: codes[few] for name, codes in block.codes.items()},
        block.keys[few],
        {name: flags[few] for name, flags in block.flags.items()},
        {name: weights[few] for name, weights in block.weights.items()},
    )


def programme(folder: str) -> Programme:
    return load_programme(Path(folder) / "programme.toml")


def chosen(declared: Programme, which: str) -> list[Cube]:
    """Person cubes: ``thirty`` are the first tables of the groups 3 to 32, ``all`` the whole person programme."""
    cubes = [cube for cube in declared.cubes if cube.unit == "persons"]
    if which == "all":
        return cubes
    first = {next(table.id for table in eu2021.tables([str(group)])) for group in THIRTY}
    return [cube for cube in cubes if cube.id in first]


def loaded(declared: Programme, cubes: Sequence[Cube], threads: int) -> list[EncodedRecords]:
    """The persons as encoded blocks with the columns that the cubes need."""
    assert declared.population is not None
    unit = declared.population.units["persons"]
    return list(UnitReader(needs_of(declared, unit, cubes), SECRET, threads).blocks())


def noise() -> CellKeyMechanism:
    """The cell key method with D = 5 and V = 2."""
    return CellKeyMechanism(
        build(solve(PTableParameters(5, 2.0, 0)), Order.PLAIN), secret_permutation(SECRET)
    )


@dataclass(frozen=True)
class LevelColumn:
    """A breakdown at one of its levels, as DuckDB holds it: the nodes of that level and the finest above it."""

    name: str
    kind: str
    node_of_leaf: NDArray[np.int32]


def level_columns(axis: Breakdown) -> list[LevelColumn]:
    """The columns of an axis, coarse to fine; the last is the axis itself."""
    kind = axis.full_name.replace(".", "_").lower()
    return [
        LevelColumn(f"{kind}_{level}", kind, _cut(axis, level)[axis.node_of_leaf])
        for level in range(1, int(axis.depths.max()) + 1)
    ]


def _cut(axis: Breakdown, level: int) -> NDArray[np.int32]:
    nodes = np.arange(len(axis), dtype=np.int32)
    while (below := axis.depths[nodes] > level).any():
        nodes[below] = axis.parents[nodes[below]]
    return nodes


def crossed(cube: Cube) -> list[Breakdown]:
    """The axes of a cube that cut it at all."""
    return [axis for axis in cube.axes if len(axis) > 1]


def cube_of(declared: Programme, axes: Sequence[str]) -> Cube:
    """A table of persons by these breakdowns."""
    names = (name.partition(".") for name in axes)
    breakdowns = (declared.variables[name].breakdowns[level or name] for name, _, level in names)
    return Cube("crossed", "persons", tuple(breakdowns))


def enum_table(
    connection: duckdb.DuckDBPyConnection, declared: Programme, cubes: Sequence[Cube], threads: int
) -> None:
    """Fill an in-memory table ``persons`` with an ENUM column for each level of the breakdowns of the cubes."""
    axes = {axis.full_name: axis for cube in cubes for axis in crossed(cube)}
    columns = {name: level_columns(axis) for name, axis in axes.items()}
    for name, axis in axes.items():
        codes = ", ".join("'" + code.replace("'", "''") + "'" for code in axis.codes)
        connection.execute(f"CREATE TYPE e_{columns[name][0].kind} AS ENUM ({codes})")
    fields = ", ".join(f"{column.name} e_{column.kind}" for levels in columns.values() for column in levels)
    connection.execute(f"CREATE TABLE persons ({fields})")
    for block in loaded(declared, cubes, threads):
        batch = pa.table(
            {
                column.name: pa.DictionaryArray.from_arrays(
                    column.node_of_leaf[block.codes[axis.variable]], pa.array(axis.codes)
                )
                for name, axis in axes.items()
                for column in columns[name]
            }
        )
        connection.register("batch", batch)
        connection.execute("INSERT INTO persons SELECT * FROM batch")
        connection.unregister("batch")
