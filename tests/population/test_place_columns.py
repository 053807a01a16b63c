"""Columns that are places: found in the data where they depend on the geography, and not elsewhere."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.io.databases import open_source
from discreet.population import place_columns
from discreet.population.place_columns import PlaceColumn, Relation, related_columns
from discreet.programme.sources import file_source

HOMES = 4000
AREAS, REGIONS = 60, 6


def people(seed: int = 1) -> dict[str, list[object]]:
    """Persons of households in areas of regions, with columns of every kind."""
    draw = np.random.default_rng(seed)
    area = draw.integers(0, AREAS, HOMES)
    size = draw.integers(1, 5, HOMES)
    home = np.repeat(np.arange(HOMES), size)
    moved = draw.random(HOMES) < 0.02
    near = np.where(moved, draw.integers(0, AREAS, HOMES), area)
    far = np.where(draw.random(HOMES) < 0.3, draw.integers(0, AREAS, HOMES), area)
    columns = {
        "home": [f"h{one}" for one in range(HOMES)],
        "region": [f"R{one % REGIONS}" for one in area],
        "area": [f"A{one}" for one in area],
        "name": [f"Name of {one}" for one in area],
        "grid": [f"{one}/{k % 5}" for k, one in enumerate(area)],
        "state": [f"S{one % REGIONS % 2}" for one in area],
        "near": [f"N{one}" for one in near],
        "postcode": [f"P{one % REGIONS}-{k % 90}" for k, one in enumerate(area)],
        "work": [f"W{one}" for one in far],
        "kind": [f"K{one}" for one in draw.integers(0, 9, HOMES)],
        "constant": ["same"] * HOMES,
        "rare": ["yes" if one else "no" for one in draw.random(HOMES) < 0.002],
        "income": [f"I{one}" for one in draw.integers(0, 3000, HOMES)],
    }
    found: dict[str, list[object]] = {name: [values[k] for k in home] for name, values in columns.items()}
    found["sex"] = draw.integers(1, 3, len(home)).tolist()
    return found


def related(folder: Path, columns: dict[str, list[object]], **options: object) -> dict[str, PlaceColumn]:
    path = folder / "persons.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2000)
    records = open_source(file_source(str(path), folder, "test", ""), "persons")
    others = [name for name in columns if name not in ("home", "region", "area")]
    found = related_columns(records, ["region", "area"], others, "home")
    return {one.column: one for one in found}


EXPECTED = {
    "name": PlaceColumn("name", "area", Relation.SAME, True),
    "grid": PlaceColumn("grid", "area", Relation.DECIDES, True),
    "state": PlaceColumn("state", "area", Relation.FOLLOWS, True),
    "near": PlaceColumn("near", "area", Relation.SAME, False),
    "postcode": PlaceColumn("postcode", "region", Relation.DECIDES, True),
}


def test_twins_finer_coarser_and_noisy_columns_are_places_and_others_are_not(tmp_path: Path) -> None:
    assert related(tmp_path, people()) == EXPECTED


def test_the_order_of_records_and_the_first_look_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_columns, "FIRST", 500)
    monkeypatch.setattr(place_columns, "SURE", 300)
    monkeypatch.setattr("discreet.io.files.BATCH", 1000)
    columns = people()
    for name in ("area", "kind"):
        order = np.argsort([str(one) for one in columns[name]], kind="stable")
        held = {key: [values[k] for k in order] for key, values in columns.items()}
        assert related(tmp_path, held) == EXPECTED


def test_households_are_judged_once(tmp_path: Path) -> None:
    """What all members share follows from an area of one household, and says nothing of places."""
    draw = np.random.default_rng(2)
    home = np.repeat(np.arange(800), 4)
    columns = {
        "home": [f"h{one}" for one in home],
        "region": [f"R{one % 5}" for one in home],
        "area": [f"A{one}" for one in home],  # an address
        "type": [f"T{one}" for one in draw.integers(0, 6, 800)[home]],
    }
    assert related(tmp_path, columns) == {}  # type: ignore[arg-type]


def test_missing_values_and_few_records_prove_nothing(tmp_path: Path) -> None:
    columns = people()
    columns["name"] = [None if k % 3 else one for k, one in enumerate(columns["name"])]
    assert related(tmp_path, columns) == EXPECTED
    few = {name: values[:12] for name, values in columns.items()}
    assert related(tmp_path, few) == {}
