"""The records of the prior-knowledge study: their places, zip codes and cells, from a synthetic census.

It owns the choice of attributes and which of their combinations can exist; it neither groups places nor adds noise.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.population.synth import generate
from discreet.schema.codelist import Codelist
from discreet.schema.expression import Filter
from discreet.schema.programme import Programme, load_programme

ZIP_RECORDS = 2_000  # about 4 million records in about 2,000 zip codes, as in Bavaria
_UNOBSERVED = -1


@dataclass(frozen=True)
class Attribute:
    """A variable of the census in a few groups of codes; codes in no group are "not stated"."""

    name: str
    variable: str
    groups: tuple[tuple[str, ...], ...]

    def group_of_leaf(self, tree: Codelist) -> NDArray[np.int64]:
        """The group of each leaf of the codelist, -1 for those in none."""
        group = np.full(len(tree.leaves), _UNOBSERVED, dtype=np.int64)
        for number, codes in enumerate(self.groups):
            for code in codes:
                group[tree.leaves_under(code)] = number
        return group


# The register of the original study has, among others, employment, and skills, wage and distance to work of the
# employed; a census has no wages, so the industry stands in. The last group of each of these three is "not applicable".
# The groups are chosen so that 2 x 2 x (2 + 3 x 5 x 3) = 188 combinations exist, as many as there.
ATTRIBUTES = (
    Attribute("sex", "SEX", (("1",), ("2",))),
    Attribute("citizenship", "COC", (("1",), ("2", "3"))),
    Attribute("activity", "CAS", (("1.1",), ("1.2",), ("2",))),
    Attribute("skills", "OCC", (("1", "2", "3"), ("4", "5", "6", "7", "8", "10"), ("9",), ("12",))),
    Attribute("industry", "IND", (("1",), ("2", "3"), ("4",), ("5", "6", "7", "8"), ("9", "10"), ("12",))),
    Attribute("workplace", "LPW", (("1",), ("2",), ("3",), ("5",))),
)
SHAPE = tuple(len(attribute.groups) for attribute in ATTRIBUTES)


@dataclass(frozen=True, eq=False)
class StudyRecords:
    """The fully observed persons: where they live (public) and which cell they fall in (to be protected)."""

    points: NDArray[np.float64]  # (record, 2), km
    zips: NDArray[np.int64]
    cell: NDArray[np.int64]  # record -> position among the cells that can exist
    possible: NDArray[np.int64]  # cell -> flat position in the grid of all attributes
    persons: int  # of the census, before those not fully observed were left out


def make_records(persons: int, seed: int) -> StudyRecords:
    """Draw a census and take its records; the census itself is thrown away."""
    with tempfile.TemporaryDirectory(prefix="discreet-study-") as folder:
        census = Path(folder) / "census"
        generate(persons, seed, census, tables=("1",))
        programme = load_programme(census / "programme.toml")
        columns = [programme.variables[attribute.variable].column for attribute in ATTRIBUTES]
        table = pq.read_table(
            census / "persons.parquet", columns=["hid", "lau", "grid_x", "grid_y", *columns]
        )
    grid, observed = _grid_positions(table, programme)
    possible = np.flatnonzero(~structural_zeros(programme))
    cell = _among(possible, grid[observed])
    table = table.filter(pa.array(observed))
    points = _points(table, seed)
    return StudyRecords(points, zip_codes(_codes(table["lau"]), points), cell, possible, persons)


def structural_zeros(programme: Programme) -> NDArray[np.bool_]:
    """Mark the combinations of groups that a rule of the programme excludes, whichever codes they stand for."""
    names = {attribute.variable for attribute in ATTRIBUTES}
    excluded = np.zeros(SHAPE, dtype=bool)
    for rule in programme.structural_zeros:
        if set(rule.variables) <= names:
            excluded |= _excluded(rule, programme)
    return excluded.reshape(-1)


def _excluded(rule: Filter, programme: Programme) -> NDArray[np.bool_]:
    """A combination is excluded where the rule is true of every combination of leaves within it."""
    axes = [axis for axis, attribute in enumerate(ATTRIBUTES) if attribute.variable in rule.variables]
    groups = [_leaf_groups(ATTRIBUTES[axis], programme) for axis in axes]
    leaves = np.meshgrid(*(np.arange(group.size, dtype=np.uint32) for group in groups), indexing="ij")
    named = {ATTRIBUTES[axis].variable: leaf.reshape(-1) for axis, leaf in zip(axes, leaves, strict=True)}
    true = rule.mask(named)
    places = np.stack([group.reshape(-1) for group in np.meshgrid(*groups, indexing="ij")])
    inside = (places != _UNOBSERVED).all(axis=0)
    shape = tuple(SHAPE[axis] if axis in axes else 1 for axis in range(len(SHAPE)))
    flat = np.ravel_multi_index(tuple(places[:, inside]), tuple(SHAPE[axis] for axis in axes))
    possible = np.zeros(prod(shape), dtype=bool)
    possible[flat[~true[inside]]] = True
    return ~possible.reshape(shape)


def _leaf_groups(attribute: Attribute, programme: Programme) -> NDArray[np.int64]:
    return attribute.group_of_leaf(programme.variables[attribute.variable].codelist)


def _grid_positions(table: pa.Table, programme: Programme) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each person's place in the grid of all attributes, and whether all of them are stated."""
    position = np.zeros(len(table), dtype=np.int64)
    observed = np.ones(len(table), dtype=bool)
    for attribute in ATTRIBUTES:
        variable = programme.variables[attribute.variable]
        codes = pc.index_in(table[variable.column].cast(pa.string()), pa.array(variable.codelist.leaf_codes))
        group = _leaf_groups(attribute, programme)[codes.to_numpy()]
        observed &= group != _UNOBSERVED
        position = position * len(attribute.groups) + group
    return position, observed


def _among(possible: NDArray[np.int64], grid: NDArray[np.int64]) -> NDArray[np.int64]:
    cell = np.minimum(np.searchsorted(possible, grid), possible.size - 1)
    if (possible[cell] != grid).any():
        raise ValueError("a record lies in a structural zero, where it would be counted as somebody else")
    return cell


def _points(table: pa.Table, seed: int) -> NDArray[np.float64]:
    """Every household somewhere in its km cell; its members share the place."""
    _, household = np.unique(table["hid"].to_numpy(), return_inverse=True)
    jitter = np.random.default_rng([seed, 1]).random((int(household.max(initial=-1)) + 1, 2))
    cells = np.stack([table["grid_x"].to_numpy(), table["grid_y"].to_numpy()], axis=1)
    points: NDArray[np.float64] = cells + jitter[household]
    return points


def zip_codes(lau: NDArray[np.int64], points: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cut each municipality into zip codes of about 2,000 records: into columns by x, these into rows by y."""
    parts = np.maximum(1, np.rint(np.bincount(lau) / ZIP_RECORDS)).astype(np.int64)
    columns = np.rint(np.sqrt(parts)).astype(np.int64)
    rows = -(-parts // columns)
    column = lau * columns.max() + _parts_of_each(lau, points[:, 0], columns[lau])
    row = _parts_of_each(column, points[:, 1], rows[lau])
    _, number = np.unique(column * rows.max() + row, return_inverse=True)
    return number.astype(np.int64)


def _parts_of_each(
    group: NDArray[np.int64], along: NDArray[np.float64], parts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Cut the members of each group, ordered along an axis, into about equal parts; a place is never cut."""
    order = np.lexsort((along, group))
    new_group = np.r_[True, np.diff(group[order]) != 0][: group.size]
    new_place = new_group | np.r_[True, np.diff(along[order]) != 0][: group.size]
    here = np.arange(group.size)
    start = np.maximum.accumulate(np.where(new_group, here, 0))
    rank = np.maximum.accumulate(np.where(new_place, here, 0)) - start
    part = np.empty(group.size, dtype=np.int64)
    part[order] = rank * parts[order] // np.bincount(np.cumsum(new_group))[np.cumsum(new_group)]
    return part


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    codes = [chunk.indices.to_numpy() for chunk in column.unify_dictionaries().chunks]
    return np.concatenate(codes).astype(np.int64)
