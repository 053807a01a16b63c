"""Whether the totals of an adjusted release add up: every listed total is the sum of its finest cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from discreet.errors import BrokenRelease
from discreet.maths.consistent import lattice
from discreet.programme.release import ReleaseFormat
from discreet.release.manifest import CubeEntry, Manifest
from discreet.release.reader import CubeFile, PublishedCodes, read_codes

NAMED = 5  # cells that are listed for each cube


def sum_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """One sentence for each of the first totals of each cube that are not the sum of their parts."""
    places = sorted({axis.codelist for cube in manifest.cubes for axis in cube.axes})
    codes = {place: read_codes(folder / place) for place in places}
    for cube in manifest.cubes:
        try:
            yield from _cube_problems(folder, cube, codes)
        except BrokenRelease as broken:
            yield str(broken)


def _cube_problems(folder: Path, cube: CubeEntry, codes: Mapping[str, PublishedCodes]) -> Iterator[str]:
    file = cube.file(ReleaseFormat.PARQUET)
    axes = [codes[axis.codelist] for axis in cube.axes]
    if file is None or cube.weight:
        yield f"cube {cube.id}: no table of counts, whose totals could add up"
        return
    parents = [_parents(axis) for axis in axes]
    rows = list(CubeFile(cube, folder / file.path, tuple(axis.codes for axis in axes)).parts())
    listed = np.concatenate([np.zeros(0, np.int64), *(part.cells for part in rows)])
    values = np.concatenate([np.zeros(0, np.int64), *(part.values for part in rows)])
    finest = np.ones(len(listed), dtype=bool)
    for k, tree in enumerate(parents):
        is_inner = np.isin(np.arange(len(tree)), tree)
        finest &= ~is_inner[np.concatenate([np.zeros(0, np.int64), *(part.nodes[k] for part in rows)])]
    cells = lattice(parents, listed[finest])
    sums = np.rint(cells.sums(values[finest].astype(np.float64))).astype(np.int64)
    every = np.union1d(listed, cells.positions)
    found, wanted = _at(listed, values, every), _at(*_ordered(cells.positions, sums), every)
    wrong = np.flatnonzero(found != wanted)
    for place in wrong[:NAMED].tolist():
        where = _named(cube, axes, int(every[place]))
        yield f"cube {cube.id}: {where}: {found[place]}, but its parts add up to {wanted[place]}"
    if len(wrong) > NAMED:
        yield f"cube {cube.id}: {len(wrong) - NAMED} more totals are not the sum of their parts"


def _parents(axis: PublishedCodes) -> NDArray[np.int32]:
    """Node -> parent; a code whose parent is not listed before it makes the release invalid."""
    place = {code: node for node, code in enumerate(axis.codes)}
    parents = [place.get(parent, -1) if node else -1 for node, parent in enumerate(axis.parents)]
    if any(not 0 <= parent < node for node, parent in enumerate(parents) if node):
        raise BrokenRelease("codelists: a code does not follow its parent; fetch the release again")
    return np.array(parents, dtype=np.int32)


def _ordered(
    cells: NDArray[np.int64], values: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    order = np.argsort(cells)
    return cells[order], values[order]


def _at(listed: NDArray[np.int64], values: NDArray[np.int64], cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """The values of cells, zero where they are not listed."""
    found = np.zeros(len(cells), dtype=np.int64)
    found[np.searchsorted(cells, listed)] = values
    return found


def _named(cube: CubeEntry, axes: list[PublishedCodes], cell: int) -> str:
    pairs = []
    for entry, axis in zip(reversed(cube.axes), reversed(axes), strict=True):
        cell, node = divmod(cell, len(axis.codes))
        if node:
            pairs.append(f"{entry.variable}={axis.codes[node]}")
    return ", ".join(reversed(pairs)) or "the grand total"
