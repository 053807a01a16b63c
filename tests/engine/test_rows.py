"""What leaves a task: cells of parts of the records add up, and files are divided among tasks in their order."""

import pickle
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.serializers import ChunkedStream, pickle_protocol

from discreet.engine import rows
from discreet.engine.rows import (
    Kind,
    packed,
    part_size,
    row_of,
    rows_of_cells,
    rows_of_ids,
    rows_of_whole,
    unpacked,
)
from discreet.engine.spark import TASK_BYTES, divided, finishing_tasks
from discreet.engine.tasks import Packed
from discreet.errors import DatabaseUnavailable, Mistakes, Problem
from discreet.io.files import FilePart
from discreet.programme.cube import Cube
from discreet.programme.programme import load_programme
from discreet.tabulate import counter
from discreet.tabulate.counter import CubeParts, FinestCells
from discreet.tabulate.tables import ConfidentialTable
from tests.engine.small_town import divide, make_town, persons


@pytest.fixture(scope="module")
def cubes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Cube]:
    folder = tmp_path_factory.mktemp("town")
    programme = make_town(folder)
    divide(persons(), folder, 1)
    return {cube.id: cube for cube in load_programme(programme).cubes}


def random_cells(cube: Cube, seed: int) -> FinestCells:
    random = np.random.default_rng(seed)
    finest = np.ones(cube.size, dtype=bool)
    for k, axis in enumerate(cube.axes):
        finest &= axis.finest[cube.nodes(np.arange(cube.size), k)]
    some = np.flatnonzero(finest & (random.random(cube.size) < 0.4)).astype(np.uint64)
    cells = random.integers(1, 2**63, len(some), dtype=np.uint64)
    if not cube.weight:
        return FinestCells(some, cells)
    weights = random.integers(1, 10**6, len(some), dtype=np.uint64)
    return FinestCells(some, cells, weights * np.uint64(3), weights)


@pytest.mark.parametrize("name", ["places", "weighted"])
@given(seed=st.integers(0, 10**6), parts=st.integers(1, 5), targets=st.integers(1, 9))
def test_parts_add_up_whatever_their_number(
    cubes: dict[str, Cube], name: str, seed: int, parts: int, targets: int
) -> None:
    cube = cubes[name]
    found = [random_cells(cube, seed + k) for k in range(parts)]
    whole = CubeParts.whole(cube)
    for one in found:
        whole.add(one)
    table = whole.table()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "SMALLEST_PART", 7)
        patch.setattr(rows, "CELLS", 5)
        sent = [row for one in found for row in rows_of_cells(3, cube, one, targets)]
        by_target: dict[int, CubeParts] = {}
        position_of: dict[int, int] = {}
        size = part_size(cube, targets)
        for row in unpacked(packed(sent)):
            assert row.number == 3
            for position in row.cells.positions.tolist():
                assert position_of.setdefault(position // size, row.target) == row.target
            by_target.setdefault(row.target, CubeParts.some(cube)).add(row.cells)
        again = CubeParts.whole(cube)
        for part in by_target.values():
            for row in unpacked(packed(rows_of_whole(3, part.finest(), 1))):
                again.add(row.cells)
    other = again.table()
    assert (other.cells == table.cells).all()
    if cube.weight:
        assert np.array_equal(np.asarray(other.weights), np.asarray(table.weights))
        assert np.array_equal(np.asarray(other.largest), np.asarray(table.largest))


@pytest.mark.parametrize("name", ["places", "weighted"])
@given(seed=st.integers(0, 10**6), parts=st.integers(0, 5))
def test_parts_add_up_to_the_same_where_a_cube_is_too_large_for_a_grid(
    cubes: dict[str, Cube], name: str, seed: int, parts: int
) -> None:
    cube = cubes[name]
    found = [random_cells(cube, seed + k) for k in range(parts)]
    table = added_up(cube, found)
    here = np.flatnonzero(table.cells)
    without = added_up(replace(cube, margins=False), found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counter, "DENSE_CELLS", 0)
        listed = added_up(cube, found)
        finest = added_up(replace(cube, margins=False), found)
    assert np.array_equal(np.asarray(listed.positions), here)
    assert np.array_equal(listed.cells, table.cells[here])
    assert np.array_equal(np.asarray(finest.positions), np.asarray(without.positions))
    assert np.array_equal(finest.cells, without.cells)
    assert np.array_equal(np.asarray(finest.positions), here[cube.is_finest(here)])
    if cube.weight:
        assert np.array_equal(np.asarray(listed.weights), np.asarray(table.weights)[here])
        assert np.array_equal(np.asarray(listed.largest), np.asarray(table.largest)[here])


def added_up(cube: Cube, parts: Sequence[FinestCells]) -> ConfidentialTable:
    whole = CubeParts.whole(cube)
    for part in parts:
        whole.add(part)
    return whole.table()


def test_a_cube_without_records_has_a_row(cubes: dict[str, Cube]) -> None:
    none = np.empty(0, dtype=np.uint64)
    (row,) = unpacked(packed(rows_of_cells(0, cubes["places"], FinestCells(none, none), 4)))
    assert len(row.cells.positions) == 0
    assert len(list(rows_of_whole(0, row.cells, 0))) == 1


@given(st.lists(st.integers(0, 2**64 - 1), max_size=60), st.integers(1, 7))
def test_equal_ids_meet(ids: list[int], targets: int) -> None:
    found: dict[int, set[int]] = {}
    total = 0
    for row in unpacked(packed(rows_of_ids(2, np.array(ids, dtype=np.uint64), targets))):
        assert row.kind is Kind.IDS
        assert 0 <= row.target < targets
        total += len(row.ids)
        found.setdefault(row.target, set()).update(row.ids.tolist())
    assert total == len(ids)
    assert set().union(*found.values()) == set(ids)
    assert sum(map(len, found.values())) == len(set(ids))


def test_errors_of_tasks_are_the_same_on_the_driver() -> None:
    problems = (Problem("a", "b", "c", "d"), Problem("e", "f", "g", "h"))
    (row,) = unpacked(packed([row_of(Kind.RAISED, 2, Mistakes(problems))]))
    assert row.object.problems == problems
    (row,) = unpacked(packed([row_of(Kind.RAISED, 2, DatabaseUnavailable(problems[0]))]))
    assert row.object.problem == problems[0]


@given(st.lists(st.integers(0, 10**9), max_size=300), st.integers(1, 10**9))
def test_files_are_divided_in_their_order(sizes: list[int], most: int) -> None:
    parts = [FilePart(Path(f"{k}"), 0, 1, size) for k, size in enumerate(sizes)]
    found = divided(parts, most)
    assert [part for one in found for part in one] == parts
    assert 1 <= len(found) <= max(1, len(parts))
    largest = max(sizes, default=0)
    for one in found:
        assert sum(part.size for part in one) <= 2 * (max(most, largest) + largest)


def test_ten_thousand_small_files_are_few_tasks() -> None:
    parts = [FilePart(Path(f"{k}"), 0, 1, 10_000) for k in range(10_000)]
    assert [len(one) for one in divided(parts, 12_500_000)] == [1250] * 8


def test_one_huge_file_is_many_tasks() -> None:
    parts = [FilePart(Path("one"), k, k + 1, TASK_BYTES // 2) for k in range(200)]
    assert [(one.first, one.last) for (one,) in divided(parts, TASK_BYTES)] == [
        (2 * k, 2 * k + 2) for k in range(100)
    ]


def test_small_cubes_share_a_task_and_large_ones_do_not(
    cubes: dict[str, Cube], monkeypatch: pytest.MonkeyPatch
) -> None:
    few = list(cubes.values())
    assert finishing_tasks(few, 8) == [0, 1, 2]
    assert finishing_tasks(few * 4, 4) == [k // 3 for k in range(12)]
    monkeypatch.setattr("discreet.engine.spark.TOGETHER", 1)
    assert finishing_tasks(few * 4, 4) == list(range(12))
    assert finishing_tasks([], 4) == []


def test_what_is_shared_with_tasks_can_be_encrypted(tmp_path: Path) -> None:
    """``spark.io.encryption.enabled`` writes a broadcast through a stream that refuses buffers."""
    arrays = [np.arange(100_000), np.arange(3, dtype=np.uint64)]
    stream: Any = ChunkedStream((tmp_path / "broadcast").open("wb"), 1000)  # type: ignore[no-untyped-call]
    pickle.dump(Packed(arrays), stream, pickle_protocol)
    stream.close()
    content, chunks = (tmp_path / "broadcast").read_bytes(), b""
    while (size := int.from_bytes(content[:4], "big", signed=True)) > 0:
        chunks, content = chunks + content[4 : 4 + size], content[4 + size :]
    found = pickle.loads(chunks)
    assert [one.tolist() for one in found] == [one.tolist() for one in arrays]
