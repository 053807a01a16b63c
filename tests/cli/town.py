"""A small town with everything a programme can declare, made to be broken by the tests."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PROGRAMME = """
[population]
persons = "persons.parquet"
households = "households.parquet"
person_id = "pid"
household_id = "hid"
geography = ["region", "town"]

[variables.GEO]
column = "town"
codelist = "geo.csv"
breakdowns = { L = 1, H = 2 }

[variables.SEX]
units = ["persons"]
codelist = "sex.csv"

[variables.AGE]
units = ["persons"]
codelist = "age.csv"

[variables.TENURE]
units = ["households"]
codelist = "tenure.csv"

[[cubes]]
id = "people"
axes = ["GEO.H", "SEX", "AGE"]

[[cubes]]
id = "workers"
axes = ["GEO.L", "SEX"]
count = "works"
weight = "weight"

[[cubes]]
id = "homes"
unit = "households"
axes = ["GEO.H", "TENURE"]

[[structural_zeros]]
where = 'AGE == "child" and SEX == "9"'

[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
CODELISTS = {
    "geo.csv": "code,parent,label\nN,,North\nN1,N,\nN2,N,\nS,,South\nS1,S,\n",
    "sex.csv": "code,parent,label\n1,,men\n2,,women\n9,,not stated\n",
    "age.csv": "code,parent,label\nchild,,\nadult,,\n",
    "tenure.csv": "code,parent,label\nown,,\nrent,,\n",
}
TOWNS = ["N1", "N2", "S1"]
HOMES = 60

Columns = dict[str, list[Any]]


def persons() -> Columns:
    """Two persons in every household; ids that no message may show."""
    homes = [number // 2 for number in range(2 * HOMES)]
    towns = [TOWNS[home % 3] for home in homes]
    return {
        "pid": [70_000_001 + 13 * number for number in range(2 * HOMES)],
        "hid": [90_000_001 + 17 * home for home in homes],
        "region": [town[0] for town in towns],
        "town": towns,
        "sex": [("1", "2", "2", "1", "9")[number % 5] for number in range(2 * HOMES)],
        "age": ["child" if number % 5 == 1 else "adult" for number in range(2 * HOMES)],
        "works": [number % 2 for number in range(2 * HOMES)],
        "weight": [0.5 + number % 7 for number in range(2 * HOMES)],
    }


def households() -> Columns:
    return {
        "hid": [90_000_001 + 17 * home for home in range(HOMES)],
        "region": [TOWNS[home % 3][0] for home in range(HOMES)],
        "town": [TOWNS[home % 3] for home in range(HOMES)],
        "tenure": ["own" if home % 4 else "rent" for home in range(HOMES)],
    }


def build(folder: Path, **tables: Columns) -> Path:
    """Write the town; tables given here stand for those that it has."""
    folder.mkdir(exist_ok=True)
    (folder / "programme.toml").write_text(PROGRAMME)
    for name, text in CODELISTS.items():
        (folder / name).write_text(text)
    for name, columns in ({"persons": persons(), "households": households()} | tables).items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    (folder / "secret.key").write_text("ab" * 32)
    (folder / "secret.key").chmod(0o600)
    return folder


def edit(folder: Path, *changes: tuple[str, str], file: str = "programme.toml") -> None:
    text = (folder / file).read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    (folder / file).write_text(text)


def rewrite(folder: Path, **tables: Columns) -> Path:
    """Write some tables again, and leave the rest."""
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    return folder
