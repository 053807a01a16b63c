"""Records held in memory are counted as a pass over their blocks counts them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.population.encode import EncodedRecords
from discreet.population.reading import UnitReader, needs_of
from discreet.programme.cube import Cube
from discreet.programme.programme import Programme
from discreet.serve import records
from discreet.serve.records import EncodedUnit
from discreet.tabulate import counter as grids
from discreet.tabulate.counter import CubeCounter
from discreet.tabulate.tables import ConfidentialTable
from tests.serve.conftest import SECRET


def block_of(programme: Programme, cube: Cube) -> EncodedRecords:
    assert programme.population is not None
    needs = needs_of(programme, programme.population.units["persons"], [cube])
    (block,) = UnitReader(needs, SECRET, 1).blocks()
    return block


def pieces(block: EncodedRecords, sizes: list[int]) -> Iterator[EncodedRecords]:
    ends = np.cumsum(sizes)
    for start, end in zip([0, *ends], [*ends, len(block)], strict=True):
        part = slice(start, end)
        codes = {name: column[part] for name, column in block.codes.items()}
        flags = {name: column[part] for name, column in block.flags.items()}
        yield replace(block, codes=codes, keys=block.keys[part], flags=flags)


def whole(table: ConfidentialTable) -> NDArray[np.uint64]:
    if table.positions is None:
        return table.cells
    grid = np.zeros(table.cube.size, dtype=np.uint64)
    grid[table.positions] = table.cells
    return grid


@pytest.mark.parametrize("dense", [grids.DENSE_CELLS, 0], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["flag", "adults", "wide", "both"])
@pytest.mark.parametrize(("part", "parts"), [(1, 5), (701, 3), (1 << 16, 1)])
def test_a_unit_counts_what_a_pass_over_its_blocks_counts(
    programme: Programme, name: str, dense: int, part: int, parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cubes = {cube.id: cube for cube in programme.cubes}
    cube = replace(cubes["adults"], count="works") if name == "both" else cubes[name]
    block = block_of(programme, cube)
    with ThreadPoolExecutor(1) as pool:
        counter = CubeCounter([cube], pool)
        counter.add(block)
    monkeypatch.setattr(grids, "DENSE_CELLS", dense)
    monkeypatch.setattr(records, "PART", part)
    unit = EncodedUnit(list(pieces(block, [3, 700, 1, 1500])), cube.axes)
    assert len(unit._parts) == parts
    assert (whole(unit.count(cube)) == whole(counter.table(0))).all()
