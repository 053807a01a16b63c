"""The synthetic census of blocks as an office has it: records in Parquet, codelists, public bounds and a programme."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.tree_census import LEVELS, RACES, TreeCensus, tree_census

BATCH = 1 << 20  # persons of a row group
LETTERS = "SCTGB"
GROUPS = (("HOUSEHOLD", range(1)), ("INSTITUTION", range(1, 5)), ("OTHER", range(5, 8)))
SIZES = (8, 2, 2, RACES)

PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"
geography = ["geo"]

[variables.GEO]
codelist = "geo.csv"
of = "person"
breakdowns = { State = 0, County = 1, Tract = 2, Block_Group = 3, Block = 4 }

[variables.HHGQ]
codelist = "hhgq.csv"
of = "person"
breakdowns = { INST = 1, FULL = 2 }

[variables.VOTINGAGE]
codelist = "votingage.csv"
of = "person"

[variables.HISPANIC]
codelist = "hispanic.csv"
of = "person"

[variables.CENRACE]
codelist = "cenrace.csv"
of = "person"

[[cubes]]
id = "race"
axes = ["GEO.Block_Group", "VOTINGAGE", "HISPANIC", "CENRACE"]

[[cubes]]
id = "quarters"
axes = ["GEO.Block", "HHGQ.FULL", "VOTINGAGE"]

[noise]
kind = "hierarchical"
geography = "GEO"
strategy = "pl94-2020"
rho = "293764/114921"
neighbours = "substitute"
snapshot = "2020"
outputs = [OUTPUTS]

[noise.invariants]
totals = ["State"]
bounds = { file = "bounds.csv", query = "HHGQ" }

[limits]
cells = 8000000000
"""


def tree_files(
    folder: Path, blocks: int, outputs: Sequence[str], seed: int = 1, groups_of_a_county: int = 200
) -> Path:
    """Write the census of so many blocks, unless it is there; returns the programme file."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "bounds.csv").exists():
        census = tree_census(blocks, seed, groups_of_a_county)
        codes = _areas(folder, census)
        _codelists(folder)
        _records(folder, census, codes)
        _bounds(folder, census, codes)
    listed = ", ".join(f'"{one}"' for one in outputs)
    path = folder / f"{'-'.join(outputs)}.toml"
    path.write_text(PROGRAMME.replace("OUTPUTS", listed), encoding="utf-8")
    return path


def _areas(folder: Path, census: TreeCensus) -> NDArray[np.str_]:
    """Write the codelist of the geography; returns the codes of the blocks."""
    columns: list[list[str]] = [[], [], []]
    above = np.array([""])
    for depth, parents in enumerate(census.parents[1:], start=1):
        letter = LETTERS[depth + 1]
        if depth == 1:
            above = np.array([f"C{at:04d}" for at in range(len(census.parents[0]))])
            _listed(columns, above, np.full(len(above), ""))
        here = np.array([f"{letter}{at:07d}" for at in range(len(parents))])
        _listed(columns, here, above[parents])
        above = here
    table = pa.table(dict(zip(("code", "parent", "label"), columns, strict=True)))
    pa_csv.write_csv(table, folder / "geo.csv")
    return above


def _listed(columns: list[list[str]], codes: NDArray[np.str_], parents: NDArray[np.str_]) -> None:
    for column, values in zip(columns, (codes, parents, codes), strict=True):
        column += values.tolist()


def _codelists(folder: Path) -> None:
    housing = [(name, "") for name, _ in GROUPS]
    housing += [(f"H{at}", name) for name, some in GROUPS for at in some]
    _codelist(folder / "hhgq.csv", housing)
    for name, size in zip(("votingage", "hispanic", "cenrace"), SIZES[1:], strict=True):
        _codelist(folder / f"{name}.csv", [(code, "") for code in _codes(name[0].upper(), size)])


def _codelist(path: Path, rows: Iterable[tuple[str, str]]) -> None:
    lines = (f"{code},{parent},{code}" for code, parent in rows)
    path.write_text("\n".join(["code,parent,label", *lines]) + "\n", encoding="utf-8")


def _codes(letter: str, size: int) -> list[str]:
    return [f"{letter}{at:02d}" if size > 10 else f"{letter}{at}" for at in range(size)]


def _records(folder: Path, census: TreeCensus, codes: NDArray[np.str_]) -> None:
    """One row for each person, in the order of the blocks; text columns as dictionaries."""
    counts = census.counts
    ends = np.cumsum(counts.data)
    block_of = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    names = [_codes(letter, size) for letter, size in zip("HVHC", SIZES, strict=True)]
    text = pa.dictionary(pa.int32(), pa.string())
    columns = ("geo", "hhgq", "votingage", "hispanic", "cenrace")
    schema = pa.schema([("pid", pa.int64()), *((name, text) for name in columns)])
    labels = [pa.array(codes.tolist()), *(pa.array(one) for one in names)]
    with pq.ParquetWriter(folder / "persons.parquet", schema) as writer:
        for start in range(0, census.persons, BATCH):
            person = np.arange(start, min(start + BATCH, census.persons))
            entry = np.searchsorted(ends, person, side="right")
            along = [block_of[entry], *np.unravel_index(counts.indices[entry], SIZES)]
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(at.astype(np.int32)), label)
                for at, label in zip(along, labels, strict=True)
            ]
            writer.write_table(pa.table([pa.array(person), *arrays], schema=schema))


def _bounds(folder: Path, census: TreeCensus, codes: NDArray[np.str_]) -> None:
    """Facilities of each type in each block: at least one person each, none where there is no facility."""
    blocks, types = census.bounds.lower.shape
    table = {
        "GEO": np.repeat(codes, types).tolist(),
        "HHGQ": np.tile(_codes("H", types), blocks).tolist(),
        "lower": census.bounds.lower.reshape(-1),
        "upper": census.bounds.upper.reshape(-1),
    }
    pa_csv.write_csv(pa.table(table), folder / "bounds.csv")


assert len(LETTERS) == len(LEVELS)
