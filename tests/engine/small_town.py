"""A town of 600 persons in 250 households: places, ages, flags and weights, with any programme over them."""

import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

PLACES = {"A": ("A1", "A2", "A3"), "B": ("B1", "B2"), "C": ("C1", "C2", "C3", "C4")}
AGES = ("0-14", "15-29", "30-49", "50-64", "65+")

DECLARED = """
[population]
persons = "{persons}"
person_id = "pid"
household_id = "hid"
geography = ["district", "quarter"]
weights = ["factor"]
[population.flags.commutes]
of = "person"
place = false
[variables.GEO]
column = "quarter"
codelist = "geo.csv"
breakdowns = {{ L = 1, H = 2 }}
of = "person"
[variables.SEX]
column = "sex"
codelist = "sex.csv"
of = "person"
[variables.AGE]
column = "age"
codelist = "age.csv"
bands = [0, 15, 30, 50, 65]
of = "person"
[variables.WORK]
column = "work"
codelist = "work.csv"
missing = "NA"
of = "person"
[[structural_zeros]]
where = 'AGE == "0-14" and WORK == "E"'
"""
CELL_KEY = '[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\njs = 0\n'
CUBES = """
[[cubes]]
id = "places"
axes = ["GEO.H", "SEX", "AGE"]
[[cubes]]
id = "commuters"
axes = ["WORK", "GEO.L"]
count = "commutes"
base = 'AGE != "0-14"'
[[cubes]]
id = "weighted"
axes = ["SEX", "WORK", "GEO.H"]
weight = "factor"
"""


def _codes(path: Path, rows: list[tuple[str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("code", "parent", "label"), *((code, above, code) for code, above in rows)]
        )


def persons(skewed: bool = False) -> pa.Table:
    """The same persons at every call; ``skewed``: more than half of them in one quarter."""
    random = np.random.default_rng(17)
    quarters = [(district, quarter) for district, found in PLACES.items() for quarter in found]
    weights = np.full(len(quarters), 0.4 / (len(quarters) - 1)) if skewed else np.full(len(quarters), 1.0)
    weights[0] = 0.6 if skewed else 1.0
    homes = random.choice(len(quarters), 250, p=weights / weights.sum())
    household = np.sort(random.integers(250, size=600))
    age = random.integers(0, 95, size=600)
    work = np.where(age < 15, "N", np.array(["E", "U", "N"])[random.integers(3, size=600)]).astype(object)
    work[random.random(600) < 0.05] = None
    return pa.table(
        {
            "pid": pa.array([f"P{k:05}" for k in range(600)]),
            "hid": household,
            "district": [quarters[homes[h]][0] for h in household],
            "quarter": [quarters[homes[h]][1] for h in household],
            "sex": np.array(["F", "M"])[random.integers(2, size=600)],
            "age": age.astype(np.int16),
            "work": pa.array(work.tolist(), pa.string()),
            "commutes": random.integers(2, size=600).astype(bool),
            "factor": np.round(random.uniform(0.5, 4.0, 600), 3),
        }
    )


def make_town(folder: Path, noise: str = CELL_KEY, cubes: str = CUBES, more: str = "") -> Path:
    """Write codelists and programme; the records are written by ``divide``."""
    folder.mkdir(parents=True, exist_ok=True)
    _codes(
        folder / "geo.csv",
        [*((code, "") for code in PLACES), *((one, code) for code, found in PLACES.items() for one in found)],
    )
    _codes(folder / "sex.csv", [("F", ""), ("M", "")])
    _codes(folder / "age.csv", [(code, "") for code in AGES])
    _codes(folder / "work.csv", [(code, "") for code in ("E", "U", "N", "NA")])
    programme = folder / "programme.toml"
    programme.write_text(DECLARED.format(persons="persons") + cubes + noise + more)
    return programme


def divide(table: pa.Table, folder: Path, parts: int, empty: bool = False) -> None:
    """Write the records as Parquet files in a folder, with empty files among them."""
    (folder / "persons").mkdir(parents=True, exist_ok=True)
    for old in (folder / "persons").glob("*.parquet"):
        old.unlink()
    edges = np.linspace(0, len(table), parts + 1).astype(int)
    for k in range(parts):
        piece = table.slice(edges[k], edges[k + 1] - edges[k])
        pq.write_table(piece, folder / "persons" / f"{k:03}.parquet", row_group_size=97)
        if empty:
            pq.write_table(table.slice(0, 0), folder / "persons" / f"{k:03}e.parquet")


def write_text(table: pa.Table, path: Path) -> None:
    """Write the records as a CSV file; flags are 0 and 1 in text."""
    at = table.schema.get_field_index("commutes")
    pa_csv.write_csv(table.set_column(at, "commutes", table["commutes"].cast(pa.int8())), path)
