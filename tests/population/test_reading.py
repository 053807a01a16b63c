"""Ids of a whole table are compared with the memory of one copy of their hashes."""

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.population.reading import UnitReader, needs_of
from discreet.programme.programme import load_programme

PERSONS = 400_000
PROGRAMME = """
[population]
persons = "persons.parquet"
person_id = "pid"
[variables.SEX]
column = "sex"
codelist = "sex.csv"
of = "person"
[[cubes]]
id = "t"
axes = ["SEX"]
[noise]
kind = "cell-key"
V = 2.0
D = 5
"""


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("twice", [False, True])
def test_duplicate_ids_are_found_in_all_blocks_with_little_memory(
    tmp_path: Path, twice: bool, ascending: bool
) -> None:
    ids = np.arange(PERSONS)
    if twice and ascending:
        ids[PERSONS // 2 :] -= 1  # at the edge of two row groups
    elif twice:
        ids[-1] = 0  # far from its double
    elif not ascending:
        ids = ids[::-1]
    table = pa.table({"pid": ids, "sex": pa.array(["F"] * PERSONS).dictionary_encode()})
    pq.write_table(table, tmp_path / "persons.parquet", row_group_size=PERSONS // 8)
    (tmp_path / "sex.csv").write_text("code,parent,label\nF,,F\n")
    (tmp_path / "programme.toml").write_text(PROGRAMME)
    programme = load_programme(tmp_path / "programme.toml")
    assert programme.population is not None
    reader = UnitReader(
        needs_of(programme, programme.population.units["persons"], programme.cubes), bytes(32), 1
    )
    for _ in reader.blocks():
        pass
    tracemalloc.start()
    try:
        assert reader.found().duplicates is twice
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (
        peak < 1.2 * 8 * PERSONS
    )  # beside the hashes themselves, which are given back while they are copied
    assert reader.found().duplicates is twice
