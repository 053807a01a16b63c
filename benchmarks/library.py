"""The library: ``protect`` of a table in memory against the same cube inside ``discreet protect``."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import discreet as ds
from benchmarks.costs import Stopwatch, measured
from benchmarks.lines import Line, Section, Target
from discreet.io.secret import make_secret

PERSONS = 10_000_000
AREAS, REGIONS = 2_000, 40
LARGEST_RATIO = 1.3


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    command = measured("library", "by_command", repeats, persons=persons)
    library = measured("library", "by_library", repeats, persons=persons)
    coded = measured("library", "by_library_coded", repeats, persons=persons)
    shuffled_command = measured("library", "by_command_shuffled", repeats, persons=persons)
    shuffled_library = measured("library", "by_library_shuffled", repeats, persons=persons)
    ratio = library.cpu / command.cpu
    shuffled = shuffled_library.cpu / shuffled_command.cpu
    return [
        Section(
            f"One three-way cube of {persons:,} persons: library against command",
            (
                Line("discreet protect", "a Parquet file", command),
                Line(
                    "ds.protect",
                    "an Arrow table of text",
                    library,
                    targets=(Target("ratio", ratio, LARGEST_RATIO),),
                ),
                Line("ds.protect", "an Arrow table of dictionaries", coded),
                Line("discreet protect", "a Parquet file of persons in random order", shuffled_command),
                Line(
                    "ds.protect",
                    "an Arrow table of text, persons in random order",
                    shuffled_library,
                    targets=(Target("ratio", shuffled, LARGEST_RATIO),),
                ),
            ),
        )
    ]


def census(persons: int, shuffled: bool = False) -> pa.Table:
    """Persons with a place, its region, their sex and age; text as plain columns, by place or in random order."""
    draw = np.random.default_rng(1)
    area = draw.integers(0, AREAS, persons)
    area = area if shuffled else np.sort(area)
    names = pa.array([f"A{k:04d}" for k in range(AREAS)])
    regions = pa.array([f"R{k:02d}" for k in range(REGIONS)])
    return pa.table(
        {
            "pid": np.arange(persons),
            "lau": names.take(pa.array(area)),
            "nuts3": regions.take(pa.array(area * REGIONS // AREAS)),
            "sex": pa.array(["F", "M"]).take(pa.array(draw.integers(0, 2, persons))),
            "age": draw.integers(0, 100, persons).astype(np.int8),
        }
    )


def _population(table: pa.Table) -> ds.Population:
    return ds.Population(persons=table, person_id="pid", geography=["nuts3", "lau"])


def _cube() -> ds.Cube:
    return ds.Cube("lau", "sex", ds.bands("age", 0, 15, 30, 45, 65))


def by_library(watch: Stopwatch, persons: int) -> dict[str, float]:
    return _in_memory(watch, census(persons))


def by_library_shuffled(watch: Stopwatch, persons: int) -> dict[str, float]:
    return _in_memory(watch, census(persons, shuffled=True))


def _in_memory(watch: Stopwatch, table: pa.Table) -> dict[str, float]:
    ds.protect(_population(table.slice(0, 1000)), _cube(), ds.CellKey(V=2, D=5), secret=bytes(32))  # compiles
    with watch.running():
        ds.protect(_population(table), _cube(), ds.CellKey(V=2, D=5), secret=bytes(32))
    return {}


def by_library_coded(watch: Stopwatch, persons: int) -> dict[str, float]:
    table = census(persons)
    for name in ("lau", "nuts3", "sex"):
        table = table.set_column(table.schema.get_field_index(name), name, table[name].dictionary_encode())
    return _in_memory(watch, table)


def by_command(watch: Stopwatch, persons: int) -> dict[str, float]:
    return _from_files(watch, census(persons))


def by_command_shuffled(watch: Stopwatch, persons: int) -> dict[str, float]:
    return _from_files(watch, census(persons, shuffled=True))


def _from_files(watch: Stopwatch, table: pa.Table) -> dict[str, float]:
    """The work of the command in this process, after it has been compiled, as that of the library is."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        programme = _population(table).programme(_cube(), ds.CellKey(V=2, D=5)).to_toml(folder / "declared")
        pq.write_table(
            table, programme.parent / "persons.parquet"
        )  # with plain columns, as offices have them
        make_secret(folder / "secret.key")
        secret = ds.Secret.read(folder / "secret.key")
        small = _population(table.slice(0, 1000)).programme(_cube(), ds.CellKey(V=2, D=5))
        ds.protect(small, secret=secret)
        with watch.running():
            ds.protect(ds.load_programme(programme), secret=secret, out=folder / "out")
    return {}
