"""Random populations as files, to be swapped; whatever a test wants otherwise is a keyword."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.programme.programme import Programme, load_programme

SECRET = bytes(range(1, 33))
SWAP = """
k = 3
risk = ["AGE", "SEX"]
similar = [["TENURE", { composition = ["AGE", "SEX"] }], [{ composition = [] }]]
rate = 0.1
carry = ["grid"]
"""
PROGRAMME = """
[population]
persons = "persons.parquet"
%shouseholds = "households.parquet"
person_id = "pid"
household_id = "hid"
geography = ["country", "region", "town"]

[variables.GEO]
column = "town"
codelist = "geo.csv"
breakdowns = { L = 2, H = 3 }

[variables.SEX]
codelist = "sex.csv"

[variables.AGE]
codelist = "age.csv"

[variables.TENURE]
codelist = "tenure.csv"

[[cubes]]
id = "people"
axes = ["GEO.H", "SEX", "AGE"]

[swap]
%s
[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
REGIONS = ["N", "N", "N", "S", "S", "S"]
TOWNS = ["N1", "N2", "N3", "S1", "S2", "S3"]
GEO = "code,parent,label\nX,,\nN,X,\nS,X,\n" + "".join(f"{town},{town[0]},\n" for town in TOWNS)

Tables = dict[str, pa.Table]


def tables(seed: int, homes: int = 80, text: bool = False) -> Tables:
    """Households of one to four persons, most of them in large towns; ids beyond 2^31, or text."""
    rng = np.random.default_rng(seed)
    numbers = rng.choice(10**15, homes, replace=False) + 2**40
    ids = pa.array([f"h-{number:x}" for number in numbers] if text else numbers)
    town = rng.choice(6, homes, p=[0.3, 0.2, 0.1, 0.2, 0.15, 0.05])
    member = np.repeat(np.arange(homes), rng.integers(1, 5, homes))
    tenure = rng.choice(["own", "rent"], homes)
    grid = [f"g{home}" for home in range(homes)]
    where = {
        "country": pa.array(["X"] * homes),
        "region": pa.array([REGIONS[place] for place in town]),
        "town": pa.array([TOWNS[place] for place in town]),
        "grid": pa.array(grid),
    }
    household = pa.table({"hid": ids, **where, "tenure": tenure})
    person = pa.table(
        {
            "pid": pa.array(rng.permutation(len(member)) + 10**12),
            "sex": rng.choice(["1", "2"], len(member)),
            "age": rng.choice(["child", "adult", "old"], len(member), p=[0.3, 0.6, 0.1]),
        }
    )
    household_of = household.take(pa.array(member))
    for name in household.schema.names:
        person = person.append_column(name, household_of[name])
    return {"persons": person, "households": household}


def build(
    folder: Path, held: Tables, swap: str = SWAP, change: Callable[[str], str] = lambda text: text
) -> Programme:
    folder.mkdir(exist_ok=True, parents=True)
    text = PROGRAMME % ("" if "households" in held else "#", swap)
    (folder / "programme.toml").write_text(change(text))
    codelists = {"geo": GEO}
    for name, codes in {"sex": "12", "age": ["child", "adult", "old"], "tenure": ["own", "rent"]}.items():
        codelists[name] = "code,parent,label\n" + "".join(f"{code},,\n" for code in codes)
    for name, lines in codelists.items():
        (folder / f"{name}.csv").write_text(lines)
    for name, table in held.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=37)
    return load_programme(folder / "programme.toml")


def shuffled(held: Tables, seed: int) -> Tables:
    rng = np.random.default_rng(seed)
    return {name: table.take(pa.array(rng.permutation(len(table)))) for name, table in held.items()}
