"""A village of random records, and its cubes counted by brute force in plain Python."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.maths.cells.keys import hash_integers, record_keys
from discreet.programme.codelist import Breakdown
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme, load_programme
from discreet.tabulate.tables import ConfidentialTable

SECRET = bytes(range(100, 132))
PARENTS = {
    "GEO": {"N": "", "N1": "N", "N2": "N", "S": "", "S1": "S", "S2": "S", "S3": "S"},
    "SEX": {"1": "", "2": ""},
    "AGE": {"y": "", "y0": "y", "y1": "y", "y10": "y1", "y11": "y1", "o": "", "o0": "o", "o1": "o"},
}
COLUMNS = {"GEO": "town", "SEX": "sex", "AGE": "age"}
LEAVES = {
    name: [code for code in parents if code not in parents.values()] for name, parents in PARENTS.items()
}
HEAD = """
[population]
persons = "persons.parquet"
person_id = "pid"
geography = ["town"]
"""
REST = """
[variables.GEO]
column = "town"
codelist = "GEO.csv"
breakdowns = { N = 0, L = 1, H = 2 }
[variables.SEX]
codelist = "SEX.csv"
[variables.AGE]
codelist = "AGE.csv"
breakdowns = { L = 1, M = 2, H = 3 }
[noise]
kind = "cell-key"
V = 3.0
D = 6
"""

Record = dict[str, Any]
Cell = tuple[str, ...]


def people(number: int = 1500, seed: int = 5) -> list[Record]:
    """Some records; towns are uneven, so that there are small cells, large ones and empty ones."""
    draw = np.random.default_rng(seed)
    pids = draw.choice(10**12, number, replace=False)
    keys = record_keys(hash_integers(SECRET, "record-key/persons", pids.astype(np.int64)))
    shares = np.array([30, 10, 50, 9.5, 0.5]) / 100
    return [
        {
            "pid": int(pid),
            "key": int(key),
            "town": str(draw.choice(LEAVES["GEO"], p=shares)),
            "sex": str(draw.choice(LEAVES["SEX"])),
            "age": str(draw.choice(LEAVES["AGE"])),
            "works": int(draw.random() < 0.3),
            "weight": float(draw.choice([0, 0.25, 1.5, 3.333333, 1000])),
        }
        for pid, key in zip(pids, keys, strict=True)
    ]


def programme(folder: Path, records: Sequence[Record], cubes: str, head: str = HEAD) -> Programme:
    """Write the village, and a programme that asks for some cubes."""
    folder.mkdir(exist_ok=True)
    for name, parents in PARENTS.items():
        lines = "".join(f"{code},{parent},\n" for code, parent in parents.items())
        (folder / f"{name}.csv").write_text("code,parent,label\n" + lines)
    kept = [name for name in records[0] if name != "key"]
    table = pa.table({name: [record[name] for record in records] for name in kept})
    pq.write_table(table, folder / "persons.parquet")
    (folder / "programme.toml").write_text(head + REST + cubes)
    return load_programme(folder / "programme.toml")


def chain(axis: Breakdown, code: str) -> list[str]:
    """A code's ancestors that the axis has, from the finest to the total."""
    codes = [code]
    while parent := PARENTS[axis.variable][codes[-1]]:
        codes.append(parent)
    return [code for code in [*codes, "_T"] if code in axis.codes]


def brute_force(
    cube: Cube, records: Iterable[Record], counts: Callable[[Record], bool] = lambda record: True
) -> dict[Cell, tuple[int, int, int]]:
    """Every cell with anybody in it: how many, the sum of their keys, the sum of their weights in millionths."""
    cells: dict[Cell, tuple[int, int, int]] = defaultdict(lambda: (0, 0, 0))
    for record in records:
        if counts(record):
            weight = round(record["weight"] * 10**6)
            for cell in itertools.product(
                *(chain(axis, record[COLUMNS[axis.variable]]) for axis in cube.axes)
            ):
                n, key, weights = cells[cell]
                cells[cell] = n + 1, (key + record["key"]) % 2**32, weights + weight
    return dict(cells)


def brute_force_largest(
    cube: Cube, records: Iterable[Record], counts: Callable[[Record], bool] = lambda record: True
) -> dict[Cell, int]:
    """The largest weight in every cell with anybody in it, in millionths."""
    cells: dict[Cell, int] = defaultdict(int)
    for record in filter(counts, records):
        for cell in itertools.product(*(chain(axis, record[COLUMNS[axis.variable]]) for axis in cube.axes)):
            cells[cell] = max(cells[cell], round(record["weight"] * 10**6))
    return dict(cells)


def finest(cube: Cube, cell: Cell) -> bool:
    return all(axis.finest[axis.position[code]] for axis, code in zip(cube.axes, cell, strict=True))


def cells_of(cube: Cube, positions: Iterable[int]) -> list[Cell]:
    at = np.fromiter(positions, dtype=np.int64)
    nodes = [cube.nodes(at, k) for k in range(len(cube.axes))]
    return [
        tuple(axis.codes[row[place]] for axis, row in zip(cube.axes, nodes, strict=True))
        for place in range(len(at))
    ]


def content(table: ConfidentialTable) -> dict[Cell, tuple[int, int, int]]:
    """What a confidential table holds, as brute force tells it."""
    positions = range(len(table.cells)) if table.positions is None else table.positions.tolist()
    weights = np.zeros(len(table.cells), dtype=np.uint64) if table.weights is None else table.weights
    told = zip(cells_of(table.cube, positions), table.cells.tolist(), weights.tolist(), strict=True)
    return {cell: (acc & 0xFFFFFFFF, acc >> 32, weight) for cell, acc, weight in told if acc}
