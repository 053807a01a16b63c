"""The ONS package ``cell-key-perturbation`` on one table of counts against Discreet: same cells, bit for bit."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from cell_key_perturbation.create_perturbed_table import create_perturbed_table

from benchmarks.census import first
from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.io.files import BATCH
from discreet.io.ptable_files import read_ptable
from discreet.maths.cells.permutation import no_permutation
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.population import encode
from discreet.population.encode import EncodedRecords
from discreet.population.values import Coder
from discreet.programme.codelist import Breakdown, Code, breakdown, codelist
from discreet.programme.cube import Cube
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.tables import ProtectedTable

PERSONS = 5_000_000
CODES = {"area": 400, "sex": 2, "age": 21}
ROWS, KEYS = 750, 256  # of the package's p-tables; larger counts use the rows 501 to 750 again
THREADS = os.cpu_count() or 1


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    work = f"400 areas x sex x 21 ages, {persons:,} records"
    ours = measured("ons", "discreet", repeats, records=persons)
    encoded = measured("ons", "discreet_encoded", repeats, records=persons)
    theirs = measured("ons", "package", repeats, records=persons)
    equal = measured("ons", "compared", records=persons)
    same = Target("cells that differ", equal.facts["different"], 0, 0)
    ratio = encoded.cpu / theirs.cpu
    notes = (
        (
            f"All {equal.facts['cells']:,} finest cells were compared; {equal.facts['wrapped']:,} of them count more "
            "than 750 and use the package's rows 501 to 750 again."
        ),
        (
            "The p-table is a file in the package's format with changes drawn at random. The ratio on the package's "
            f"line is that of records in memory; with encoding it is {ours.cpu / theirs.cpu:.3g}."
        ),
    )
    return [
        Section(
            "The ONS package on the same records, keys and p-table",
            (
                Line(work, "Discreet: count, all margins, noise", encoded, targets=(same,)),
                Line(work, "Discreet: and encode the data frame first", ours),
                Line(
                    work,
                    "cell-key-perturbation: finest cells",
                    theirs,
                    ratio,
                    (Target("ratio", ratio, 0.1, 3),),
                ),
            ),
            notes,
        )
    ]


def frame(records: int) -> pd.DataFrame:
    """Records in areas of very unequal size, so that counts reach from a few to far beyond the p-table."""
    rng = np.random.default_rng(5)
    sizes = rng.lognormal(0, 0.8, CODES["area"])
    return pd.DataFrame(
        {
            "area": rng.choice(CODES["area"], records, p=sizes / sizes.sum()),
            "sex": rng.integers(0, CODES["sex"], records),
            "age": rng.integers(0, CODES["age"], records),
            "record_key": rng.integers(0, KEYS, records),
        }
    )


def p_table() -> pd.DataFrame:
    """A change for each count and key; every row differs, so that a wrong row shows."""
    counts, keys = np.divmod(np.arange(ROWS * KEYS), KEYS)
    changes = np.random.default_rng(6).integers(-4, 5, ROWS * KEYS)
    return pd.DataFrame(
        {"pcv": counts + 1, "ckey": keys, "pvalue": np.maximum(changes, -(counts + 1))}, dtype=np.int64
    )


def axis(name: str, categories: int) -> Breakdown:
    """A variable without levels."""
    tree = codelist(name, [Code(str(code), "", "") for code in range(categories)])
    return breakdown(name, name, tree, tree.leaves)


def noise_of(table: pd.DataFrame) -> CellKeyMechanism:
    """The mechanism of a p-table file in the package's format."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "ptable.csv"
        table.to_csv(path, index=False)
        lookup = read_ptable(path).lookup
        return CellKeyMechanism(lookup, no_permutation(lookup.modulus))


def blocks_of(data: pd.DataFrame, cube: Cube) -> list[EncodedRecords]:
    """The records of a data frame, encoded by batches."""
    columns = pa.table({name: pa.array(data[name].to_numpy()) for name in data.columns})
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda batch: _encoded(batch, cube), columns.to_batches(max_chunksize=BATCH)))


def protected(blocks: list[EncodedRecords], cube: Cube, noise: CellKeyMechanism) -> ProtectedTable:
    """Count with the keys that are given, roll up and perturb."""
    with ThreadPoolExecutor(THREADS) as pool:
        counter = CubeCounter([cube], pool)
        for block in blocks:
            counter.add(block)
        return noise.perturb(counter.table(0))


def _encoded(batch: pa.RecordBatch, cube: Cube) -> EncodedRecords:
    leaves = {axis.variable: {code: at for at, code in enumerate(axis.codes[1:])} for axis in cube.axes}
    codes = {name: Coder(leaves[name]).encode(batch.column(name)).codes for name in leaves}
    return EncodedRecords(codes, encode.given_keys(batch.column("record_key")), {}, {})


def ons_cube() -> Cube:
    return Cube("ons", "persons", tuple(axis(name, size) for name, size in CODES.items()))


def discreet(watch: Stopwatch, records: int) -> dict[str, Any]:
    data, noise, cube = frame(records), noise_of(p_table()), ons_cube()
    protected(blocks_of(data[:1000], cube), cube, noise)  # loads the compiled kernels
    with watch.running():
        table = protected(blocks_of(data, cube), cube, noise)
    return {"cells": len(table)}


def discreet_encoded(watch: Stopwatch, records: int) -> dict[str, Any]:
    noise, cube = noise_of(p_table()), ons_cube()
    blocks = blocks_of(frame(records), cube)
    protected([first(blocks[0], 1000)], cube, noise)
    with watch.running():
        table = protected(blocks, cube, noise)
    return {"cells": len(table)}


def package(watch: Stopwatch, records: int) -> dict[str, Any]:
    data, table = frame(records), p_table()
    with watch.running():
        found = create_perturbed_table(data, table, ["area"], ["sex", "age"], "record_key", threshold=0)
    return {"cells": len(found)}


def compared(watch: Stopwatch, records: int) -> dict[str, Any]:
    data, table = frame(records), p_table()
    cube = ons_cube()
    ours = protected(blocks_of(data, cube), cube, noise_of(table))
    theirs = create_perturbed_table(data, table, ["area"], ["sex", "age"], "record_key", threshold=0)
    grid = np.zeros(cube.shape, dtype=np.int64)
    grid.reshape(-1)[ours.cells] = ours.values
    found = grid[theirs["area"] + 1, theirs["sex"] + 1, theirs["age"] + 1]
    return {
        "cells": len(theirs),
        "wrapped": int((theirs["pre_sdc_count"] > ROWS).sum()),
        "different": int((found != theirs["count"].to_numpy(dtype=np.int64)).sum()),
    }
