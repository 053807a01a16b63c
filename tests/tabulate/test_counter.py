"""Counting against brute force: count variables, weights, bases, hierarchies; nothing depends on order or threads."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet.maths.cells.lookup import change
from discreet.maths.cells.permutation import permuted
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.choose import cell_key_mechanism
from discreet.perturb.weights import weighted_sums
from discreet.population.reading import UnitReader, needs_of
from discreet.programme.noise import CellKeyNoise
from discreet.programme.programme import Programme
from discreet.tabulate import counter as grids
from discreet.tabulate.counter import CubeCounter, groups
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable
from tests.tabulate.village import (
    SECRET,
    Cell,
    Record,
    brute_force,
    brute_force_largest,
    cells_of,
    content,
    people,
    programme,
)

CUBES = """
[[cubes]]
id = "plain"
axes = ["GEO.H", "SEX", "AGE.H"]
[[cubes]]
id = "workers"
axes = ["AGE.M", "GEO.L"]
count = "works"
[[cubes]]
id = "weighted"
axes = ["GEO.H", "AGE.M"]
weight = "weight"
[[cubes]]
id = "weighted workers"
axes = ["SEX", "GEO.H"]
count = "works"
weight = "weight"
base = 'AGE != "o0"'
[[cubes]]
id = "old or north"
axes = ["GEO.H", "SEX", "AGE.L"]
base = '(AGE.L == "o" or GEO == "N") and not SEX == "2"'
[[cubes]]
id = "nation"
axes = ["GEO.N", "SEX"]
""".replace('"weighted workers"', '"weighted-workers"').replace('"old or north"', '"old-or-north"')


def works(record: Record) -> bool:
    return bool(record["works"])


TAKEN: dict[str, Callable[[Record], bool]] = {
    "plain": lambda record: True,
    "workers": works,
    "weighted": lambda record: True,
    "weighted-workers": lambda record: works(record) and record["age"] != "o0",
    "old-or-north": lambda record: (
        (record["age"][0] == "o" or record["town"][0] == "N") and record["sex"] != "2"
    ),
    "nation": lambda record: True,
}


def tables(asked: Programme, threads: int = 1) -> dict[str, ConfidentialTable]:
    assert asked.population is not None
    needs = needs_of(asked, asked.population.units["persons"], asked.cubes)
    reader = UnitReader(needs, SECRET, threads)
    with ThreadPoolExecutor(threads) as pool:
        counter = CubeCounter(asked.cubes, pool)
        for block in reader.blocks():
            counter.add(block)
        assert reader.found().problems(reader.needs, "") == []
        return {cube.id: counter.table(k) for k, cube in enumerate(asked.cubes)}


def cell_key(asked: Programme) -> CellKeyMechanism:
    assert isinstance(asked.noise, CellKeyNoise)
    made = cell_key_mechanism(asked.noise, SECRET)
    return replace(made, weights=weighted_sums(SECRET, made.variance))


def protected(asked: Programme, table: ConfidentialTable) -> ProtectedTable:
    return cell_key(asked).perturb(table)


def published(asked: Programme, table: ConfidentialTable) -> dict[Cell, int]:
    made = protected(asked, table)
    return dict(zip(cells_of(made.cube, made.cells.tolist()), made.values.tolist(), strict=True))


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return people()


@pytest.fixture(scope="module")
def asked(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> Programme:
    return programme(tmp_path_factory.mktemp("village"), records, CUBES)


@pytest.mark.parametrize(
    ("dense", "many"),
    [(grids.DENSE_CELLS, grids._MANY), (0, grids._MANY), (grids.DENSE_CELLS, 0), (0, 0)],
    ids=["dense", "sparse", "dense, two codes at a time", "sparse, two codes at a time"],
)
def test_every_cell_with_its_key_and_weight_is_what_brute_force_counts(
    asked: Programme, records: list[Record], monkeypatch: pytest.MonkeyPatch, dense: int, many: int
) -> None:
    monkeypatch.setattr(grids, "DENSE_CELLS", dense)
    monkeypatch.setattr(grids, "_MANY", many)
    for name, table in tables(asked).items():
        wanted = brute_force(table.cube, records, TAKEN[name])
        if table.cube.weight is None:
            wanted = {cell: (n, key, 0) for cell, (n, key, _) in wanted.items()}
        assert content(table) == wanted, name


def test_noise_is_that_of_the_counted_records_keys(asked: Programme, records: list[Record]) -> None:
    mechanism = cell_key(asked)
    for name, table in tables(asked).items():
        true = brute_force(table.cube, records, TAKEN[name])
        counts, keys = np.array([(n, key) for n, key, _ in true.values()]).T
        perturbed = counts + change(mechanism.lookup, counts, permuted(mechanism.permutation, keys))
        wanted = {cell: int(value) for cell, value in zip(true, perturbed, strict=True) if value}
        assert published(asked, table) == wanted, name


@pytest.mark.parametrize("dense", [grids.DENSE_CELLS, 0], ids=["dense", "sparse"])
def test_weighted_values_have_noise_scaled_by_the_largest_weight(
    asked: Programme, records: list[Record], monkeypatch: pytest.MonkeyPatch, dense: int
) -> None:
    monkeypatch.setattr(grids, "DENSE_CELLS", dense)
    held = tables(asked)
    noise = cell_key(asked).weights
    assert noise is not None
    for name in ("weighted", "weighted-workers"):
        table = held[name]
        true = brute_force(table.cube, records, TAKEN[name])
        largest = brute_force_largest(table.cube, records, TAKEN[name])
        made = protected(asked, table)
        assert made.weighted is not None
        places = made.cells if table.positions is None else np.searchsorted(table.positions, made.cells)
        drawn = noise.uniform(table.cells, places, "weight")
        wanted = []
        cells = cells_of(made.cube, made.cells.tolist())
        for cell, value, u in zip(cells, made.values.tolist(), drawn.tolist(), strict=True):
            core = value * true[cell][2] / (true[cell][0] * 10**6)
            wanted.append(core + u * min(noise.reach * largest[cell] / 10**6, core))
        np.testing.assert_allclose(made.weighted, wanted, rtol=1e-12)
    assert protected(asked, held["plain"]).weighted is None


def test_a_cell_whose_weights_are_all_zero_is_counted_and_weighs_nothing(tmp_path: Path) -> None:
    records = [
        {**record, "weight": 0.0 if record["town"] == "S1" else record["weight"]} for record in people(300)
    ]
    asked = programme(tmp_path, records, '[[cubes]]\nid = "c"\naxes = ["GEO.H"]\nweight = "weight"\n')
    made = protected(asked, tables(asked)["c"])
    assert made.weighted is not None
    at = cells_of(made.cube, made.cells.tolist()).index(("S1",))
    assert made.values[at] > 0
    assert made.weighted[at] == 0


@pytest.mark.parametrize(("batch", "threads", "seed"), [(97, 3, 1), (11, 1, 2), (2**20, 5, 3)])
def test_order_chunks_and_threads_change_no_bit(
    asked: Programme,
    records: list[Record],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    threads: int,
    seed: int,
) -> None:
    monkeypatch.setattr("discreet.io.files.BATCH", batch)
    shuffled = [records[k] for k in np.random.default_rng(seed).permutation(len(records))]
    other = tables(programme(tmp_path, shuffled, CUBES), threads)
    for name, table in tables(asked).items():
        assert other[name].cells.tobytes() == table.cells.tobytes()
        if table.weights is not None:
            assert other[name].weights is not None
            assert other[name].weights.tobytes() == table.weights.tobytes()  # type: ignore[union-attr]
        mine, theirs = protected(asked, table), protected(asked, other[name])
        assert mine.values.tobytes() == theirs.values.tobytes()
        assert (mine.weighted is None) == (theirs.weighted is None)
        if mine.weighted is not None and theirs.weighted is not None:
            assert mine.weighted.tobytes() == theirs.weighted.tobytes()


def test_the_same_group_has_the_same_value_however_it_is_reached(
    tmp_path: Path, records: list[Record]
) -> None:
    cubes = """
[[cubes]]
id = "by-code"
axes = ["GEO.H", "AGE.H", "SEX"]
[[cubes]]
id = "by-base"
axes = ["GEO.H"]
base = 'AGE == "y1" and SEX == "1"'
[[cubes]]
id = "by-leaves"
axes = ["GEO.L", "SEX"]
base = 'AGE in ("y10", "y11")'
"""
    asked = programme(tmp_path, records, cubes)
    held = {name: published(asked, table) for name, table in tables(asked).items()}
    compared = 0
    for geo in ("_T", "N", "S", "N1", "N2", "S1", "S2", "S3"):
        group = held["by-code"].get((geo, "y1", "1"), 0)
        assert held["by-base"].get((geo,), 0) == group
        if geo in ("_T", "N", "S"):
            assert held["by-leaves"].get((geo, "1"), 0) == group
            compared += group > 0
    assert compared == 3


def test_the_same_group_has_the_same_weighted_sum_however_it_is_reached(
    tmp_path: Path, records: list[Record]
) -> None:
    cubes = """
[[cubes]]
id = "by-code"
axes = ["GEO.H", "AGE.H", "SEX"]
weight = "weight"
[[cubes]]
id = "by-base"
axes = ["GEO.H"]
base = 'AGE == "y1" and SEX == "1"'
weight = "weight"
"""
    asked = programme(tmp_path, records, cubes)
    held = {}
    for name, table in tables(asked).items():
        made = protected(asked, table)
        assert made.weighted is not None
        cells = cells_of(made.cube, made.cells.tolist())
        held[name] = dict(zip(cells, made.weighted.tolist(), strict=True))
    groups_compared = 0
    for geo in ("_T", "N", "S", "N1", "N2", "S1", "S2", "S3"):
        group = held["by-code"].get((geo, "y1", "1"), 0.0)
        assert held["by-base"].get((geo,), 0.0) == group
        groups_compared += group > 0
    assert groups_compared >= 5


def test_counted_flags_are_the_same_group_as_a_code_that_says_the_same(
    tmp_path: Path, records: list[Record]
) -> None:
    men = [{**record, "man": int(record["sex"] == "1")} for record in records]
    cubes = '[[cubes]]\nid = "sex"\naxes = ["GEO.H", "SEX"]\n[[cubes]]\nid = "men"\naxes = ["GEO.H"]\ncount = "man"\n'
    asked = programme(tmp_path, men, cubes)
    held = {name: published(asked, table) for name, table in tables(asked).items()}
    assert held["men"] == {(geo,): value for (geo, sex), value in held["sex"].items() if sex == "1"}


def test_a_column_may_be_an_axis_and_a_counted_flag_at_once(tmp_path: Path, records: list[Record]) -> None:
    cubes = (
        '[variables.WORKS]\ncodelist = "WORKS.csv"\n'
        '[[cubes]]\nid = "a"\naxes = ["WORKS"]\n[[cubes]]\nid = "b"\naxes = ["SEX"]\ncount = "works"\n'
    )
    (tmp_path / "WORKS.csv").write_text("code,parent,label\n0,,\n1,,\n")
    asked = programme(tmp_path, records, cubes)
    held = {name: published(asked, table) for name, table in tables(asked).items()}
    assert held["a"]["1",] == held["b"]["_T",]


def test_groups_keep_every_cube_once_and_within_the_limit(asked: Programme) -> None:
    for limit in (1, 50, 10**9):
        made: Sequence[Sequence[object]] = list(groups(asked.cubes, limit))
        assert [cube for group in made for cube in group] == list(asked.cubes)
    assert len(list(groups(asked.cubes, 10**9))) == 1
    assert len(list(groups(asked.cubes, 1))) == len(asked.cubes)
