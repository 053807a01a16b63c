"""A village as files, and swaps made by hand, for the tests of what is written after a swap."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.population.encode import hashed_ids
from discreet.programme.programme import Programme, load_programme
from discreet.swap.result import HOUSEHOLD, Moves, SwapHouseholds, SwapResult, Why

SECRET = b"s" * 32
HOMES = 24
PROGRAMME = """
[population]
persons = "persons.parquet"
households = "households.parquet"
families = "families.parquet"
dwellings = "dwellings.parquet"
person_id = "pid"
household_id = "hid"
family_id = "fid"
dwelling_id = "did"
geography = ["region", "town"]

[variables.SEX]
units = ["persons"]
codelist = "sex.csv"

[variables.SIZE]
units = ["households"]
column = "persons"
codelist = "size.csv"

[[cubes]]
id = "people"
axes = ["SEX"]

[swap]
k = 3
risk = ["SEX"]
similar = [["SIZE"]]
carry = ["grid_x", "grid_y", "grid"]

[noise]
kind = "cell-key"
V = 2.0
D = 5
"""
TOWNS = ("N1", "N2", "S1", "S2")
PLACE = ("region", "town", "grid_x", "grid_y", "grid")


def household_ids(kind: str) -> list[Any]:
    """Ids that no public file may show: 64-bit numbers beyond 2^31, or text."""
    numbers = [7_000_000_000_001 + 1_000_003 * home for home in range(HOMES)]
    return numbers if kind == "numbers" else [f"household-{number}" for number in numbers]


def places(homes: Sequence[int]) -> dict[str, pa.Array]:
    towns = [TOWNS[home % 4] for home in homes]
    return {
        "region": pa.array([town[0] for town in towns]).cast(pa.dictionary(pa.int8(), pa.string())),
        "town": pa.array(towns, pa.large_string()),
        "grid_x": pa.array([100 + home for home in homes], pa.int32()),
        "grid_y": pa.array([None if home == 5 else 200 - home for home in homes], pa.int32()),
        "grid": pa.array([f"E{home}" for home in homes]).cast(pa.dictionary(pa.int32(), pa.string())),
    }


def tables(kind: str = "numbers") -> dict[str, pa.Table]:
    """Two persons in every household, a family in every second, a dwelling for each and an empty one."""
    ids = household_ids(kind)
    homes = list(range(HOMES))
    members = [home for home in reversed(homes) for _ in range(2)]
    return {
        "persons": pa.table(
            {
                "pid": pa.array(range(2 * HOMES), pa.int64()),
                **places(members),
                "hid": [ids[home] for home in members],
                "sex": [str(1 + number % 2) for number in range(2 * HOMES)],
            }
        ),
        "households": pa.table(
            {"hid": ids, "did": [f"d{home}" for home in homes], **places(homes), "persons": [2] * HOMES}
        ),
        "families": pa.table({"fid": homes[::2], "hid": ids[::2], **places(homes[::2])}),
        "dwellings": pa.table({"did": ["d99", *(f"d{home}" for home in homes)], **places([3, *homes])}),
    }


def build(folder: Path, kind: str = "numbers", **changed: pa.Table) -> Programme:
    folder.mkdir(exist_ok=True)
    (folder / "programme.toml").write_text(PROGRAMME)
    (folder / "sex.csv").write_text("code,parent,label\n1,,\n2,,\n")
    (folder / "size.csv").write_text("code,parent,label\n1,,\n2,,\n3,,\n")
    for name, table in (tables(kind) | changed).items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=7)
    return load_programme(folder / "programme.toml")


def swapped(pairs: Sequence[tuple[int, int]], kind: str = "numbers") -> SwapResult:
    """The result of exchanging these homes, in the order of the hashes; home 23 stayed for want of a donor."""
    hashes = hashed_ids(pa.array(household_ids(kind)), SECRET, HOUSEHOLD)
    order = np.argsort(hashes)
    row = np.argsort(order)  # home -> row
    partner = np.full(HOMES, -1, dtype=np.int64)
    level, profile = np.full((2, HOMES), -1, dtype=np.int8)
    why = np.zeros(HOMES, dtype=np.uint8)
    at_risk = np.full(HOMES, -1, dtype=np.int8)
    for one, two in pairs:
        partner[row[one]], partner[row[two]] = row[two], row[one]
        why[row[one]], why[row[two]] = Why.AT_RISK, Why.DONOR
        at_risk[row[one]] = level[row[one]] = level[row[two]] = 1
        profile[row[one]] = profile[row[two]] = 0
    why[row[23]], at_risk[row[23]] = Why.NO_DONOR, 0
    town = np.array([home % 4 for home in order], dtype=np.int32)
    households = SwapHouseholds(
        hashes[order],
        ("region", "town"),
        (("N", "S"), TOWNS),
        np.stack([town // 2, town]),
        np.full(HOMES, 2, dtype=np.int32),
        np.full((2, HOMES), 0.25),
        at_risk,
        np.zeros(HOMES, dtype=np.uint8),
        np.zeros((1, HOMES), dtype=np.int32),
    )
    moved = np.flatnonzero(partner >= 0)
    donors = places([int(home) for home in order[partner[moved]]])
    moves = Moves(households.ids[moved], donors)
    return SwapResult(households, partner, level, profile, partner >= 0, why, (), moves)
