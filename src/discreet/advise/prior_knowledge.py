"""The study of geography as prior knowledge (Soria-Comas & Drechsler) on a synthetic census."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.io.progress import Progress, Quiet
from discreet.maths.microaggregation import expected_absolute_sum, partition
from discreet.programme.codelist import Codelist
from discreet.programme.filter import Filter
from discreet.programme.programme import Programme, load_programme
from discreet.synth import generate

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
# employed; a census has no wages, so industry replaces them. The last group of each of these three is "not applicable".
# The groups are chosen so that 2 x 2 x (2 + 3 x 5 x 3) = 188 combinations exist, as many as in that study.
ATTRIBUTES = (
    Attribute("sex", "SEX", (("1",), ("2",))),
    Attribute("citizenship", "COC", (("1",), ("2", "3"))),
    Attribute("activity", "CAS", (("1.1",), ("1.2",), ("2",))),
    Attribute("skills", "OCC", (("1", "2", "3"), ("4", "5", "6", "7", "8", "10"), ("9",), ("12",))),
    Attribute("industry", "IND", (("1",), ("2", "3"), ("4",), ("5", "6", "7", "8"), ("9", "10"), ("12",))),
    Attribute("workplace", "LPW", (("1",), ("2",), ("3",), ("5",))),
)
SHAPE = tuple(len(attribute.groups) for attribute in ATTRIBUTES)


@dataclass(frozen=True, eq=False, repr=False)
class StudyRecords:
    """The fully observed persons: where they live (public) and which cell they fall in (to be protected)."""

    points: NDArray[np.float64]  # (record, 2), km; none where clusters are declared
    zips: NDArray[np.int64]
    cell: NDArray[np.int64]  # record -> position among the cells that can exist
    possible: NDArray[np.int64]  # cell -> flat position in the grid of all attributes
    persons: int  # of the census, before those not fully observed were left out
    shape: tuple[int, ...] = SHAPE  # of the grid of all attributes
    declared: NDArray[np.int64] | None = None  # record -> cluster, where the office has declared them
    source: str = "a synthetic census"


def make_records(persons: int, seed: int) -> StudyRecords:
    """Draw a census and read its records; the census itself is deleted."""
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
    cell = among(possible, grid[observed])
    table = table.filter(pa.array(observed))
    points = _points(table, seed)
    return StudyRecords(points, zip_codes(_codes(table["lau"]), points), cell, possible, persons)


def structural_zeros(programme: Programme, attributes: Sequence[Attribute] = ATTRIBUTES) -> NDArray[np.bool_]:
    """Mark the combinations of groups that a rule of the programme excludes, whichever codes they represent."""
    names = {attribute.variable for attribute in attributes}
    excluded = np.zeros(shape_of(attributes), dtype=bool)
    for rule in programme.structural_zeros:
        if set(rule.variables) <= names:
            excluded |= _excluded(rule, programme, attributes)
    return excluded.reshape(-1)


def shape_of(attributes: Sequence[Attribute]) -> tuple[int, ...]:
    """The number of groups of each attribute."""
    return tuple(len(attribute.groups) for attribute in attributes)


def _excluded(rule: Filter, programme: Programme, attributes: Sequence[Attribute]) -> NDArray[np.bool_]:
    """The excluded combinations: the rule is true of every combination of leaves within them."""
    whole = shape_of(attributes)
    axes = [axis for axis, attribute in enumerate(attributes) if attribute.variable in rule.variables]
    groups = [_leaf_groups(attributes[axis], programme) for axis in axes]
    leaves = np.meshgrid(*(np.arange(group.size, dtype=np.uint32) for group in groups), indexing="ij")
    named = {attributes[axis].variable: leaf.reshape(-1) for axis, leaf in zip(axes, leaves, strict=True)}
    true = rule.mask(named)
    places = np.stack([group.reshape(-1) for group in np.meshgrid(*groups, indexing="ij")])
    inside = (places != _UNOBSERVED).all(axis=0)
    shape = tuple(whole[axis] if axis in axes else 1 for axis in range(len(whole)))
    flat = np.ravel_multi_index(tuple(places[:, inside]), tuple(whole[axis] for axis in axes))
    possible = np.zeros(prod(shape), dtype=bool)
    possible[flat[~true[inside]]] = True
    return ~possible.reshape(shape)


def _leaf_groups(attribute: Attribute, programme: Programme) -> NDArray[np.int64]:
    return attribute.group_of_leaf(programme.variables[attribute.variable].codelist)


def _grid_positions(table: pa.Table, programme: Programme) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Each person's position in the grid of all attributes, and whether all attributes are stated."""
    position = np.zeros(len(table), dtype=np.int64)
    observed = np.ones(len(table), dtype=bool)
    for attribute in ATTRIBUTES:
        variable = programme.variables[attribute.variable]
        codes = pc.index_in(table[variable.column].cast(pa.string()), pa.array(variable.codelist.leaf_codes))
        group = _leaf_groups(attribute, programme)[codes.to_numpy()]
        observed &= group != _UNOBSERVED
        position = position * len(attribute.groups) + group
    return position, observed


def among(possible: NDArray[np.int64], grid: NDArray[np.int64]) -> NDArray[np.int64]:
    """The places of the records' combinations among those that can exist."""
    cell = np.minimum(np.searchsorted(possible, grid), possible.size - 1)
    if (possible[cell] != grid).any():
        raise ValueError("a record is in a structural zero and would be counted in another cell")
    return cell


def _points(table: pa.Table, seed: int) -> NDArray[np.float64]:
    """A random point of each household's km cell, shared by its members."""
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


LEAST_COUNT = 50  # cells with fewer true observations are not compared
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)

Counts = NDArray[np.int64]  # (zip, cell)
Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True)
class UtilityDifferences:
    """Absolute differences of relative frequencies, in percentage points, over the compared cells."""

    compared: int
    mean: float
    quantiles: dict[float, float]
    largest: float


def differences(
    true: Counts,
    protected: Counts,
    records: NDArray[np.int64],
    possible: NDArray[np.int64],
    shape: tuple[int, ...],
) -> UtilityDifferences:
    """Compare counts of the cells that can exist; protected ones are shares of ``records`` of each zip code."""
    exact = _shares(true, true.sum(axis=1), possible, shape)
    noisy = _shares(protected, records, possible, shape)
    points = np.concatenate(list(_each_table(_spread(true, possible, shape), noisy - exact)))
    if not points.size:
        return UtilityDifferences(0, 0.0, dict.fromkeys(QUANTILES, 0.0), 0.0)
    quantiles = dict(zip(QUANTILES, np.quantile(points, QUANTILES).tolist(), strict=True))
    return UtilityDifferences(points.size, float(points.mean()), quantiles, float(points.max()))


def _spread(values: NDArray[Number], possible: NDArray[np.int64], shape: tuple[int, ...]) -> NDArray[Number]:
    """Counts on the grid of all attributes, zero in structural zeros."""
    grid = np.zeros((len(values), prod(shape)), dtype=values.dtype)
    grid[:, possible] = values
    return grid.reshape(len(values), *shape)


def _shares(
    counts: Counts, records: NDArray[np.int64], possible: NDArray[np.int64], shape: tuple[int, ...]
) -> NDArray[np.float64]:
    """Relative frequencies within each zip code; all zero for an empty one."""
    return _spread(counts / np.maximum(records, 1)[:, None], possible, shape)


def _each_table(true: Counts, gaps: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """The differences in each cross-tabulation of one attribute, of two, and so on up to all."""
    axes = range(1, true.ndim)
    for crossed in range(1, true.ndim):
        for selected in combinations(axes, crossed):
            others = tuple(axis for axis in axes if axis not in selected)
            compared = true.sum(axis=others) >= LEAST_COUNT
            yield 100 * np.abs(gaps.sum(axis=others))[compared]


SENSITIVITY = 2
LARGEST = 50_000_000
_CELLS_AT_ONCE = 1 << 22

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class StudyOutcome:
    """One cluster size and epsilon; errors are of the sum of a cluster's noisy cells, in records."""

    k: int
    epsilon: float
    clusters: int
    small_clusters: int  # with fewer than k records, in zip codes that have no more
    predicted: float  # E|sum of the noises|
    predicted_as_if_1: float  # the same with sensitivity 1, which prior knowledge rules out
    realised: float  # mean |sum of the noises|
    realised_nonnegative: float  # mean error once negative counts are set to zero
    realised_relative: float  # mean |sum of the noises| / records of the cluster
    utility: UtilityDifferences  # with negative counts set to zero, as shares of their sum
    utility_signed: (
        UtilityDifferences  # with negative counts unchanged, as shares of the known number of records
    )

    @property
    def predicted_relative(self) -> float:
        """The predicted error as a share of the k records of a cluster."""
        return self.predicted / self.k


@dataclass(frozen=True)
class Study:
    """The parameters and results of the study."""

    persons: int
    records: int
    zips: int
    cells: int  # m: combinations of attributes that can exist
    seed: int
    outcomes: tuple[StudyOutcome, ...]
    source: str = "a synthetic census"


@dataclass(frozen=True, eq=False)
class Clusters:
    """The cells of the records, cluster by cluster."""

    k: int
    cell: Cells  # sorted by cluster
    starts: Cells  # cluster -> its first record; one more at the end
    zip_of: Cells


def study(
    persons: int, seed: int, ks: Sequence[int], epsilons: Sequence[float], progress: Progress | None = None
) -> Study:
    """Draw a census and try every cluster size with every epsilon; the same arguments give the same result."""
    check(persons, seed, ks, epsilons)
    progress = progress or Quiet()
    progress.stage("synthetic census")
    records = make_records(persons, seed)
    return study_records(records, seed, ks, epsilons, progress)


def study_records(
    records: StudyRecords, seed: int, ks: Sequence[int], epsilons: Sequence[float], progress: Progress
) -> Study:
    """Try every cluster size with every epsilon on some records; declared clusters are taken as they are."""
    progress.stage("clusters and noise", len(ks) * len(epsilons))
    zips = int(records.zips.max(initial=-1)) + 1
    true = _count(records.zips * records.possible.size + records.cell, zips, records.possible.size)
    outcomes = []
    for k in ks:
        clusters = clusters_of(records, k)
        for epsilon in epsilons:
            rng = np.random.default_rng([seed, 2, k, *divmod(int(epsilon * 10**9), 2**32)])
            outcomes.append(_try(clusters, epsilon, true, records, rng))
            progress.step()
    return Study(
        records.persons, records.cell.size, zips, records.possible.size, seed, tuple(outcomes), records.source
    )


def check(persons: int, seed: int, ks: Sequence[int], epsilons: Sequence[float]) -> None:
    """Refuse invalid arguments, all at once."""
    problems = []
    if not 1_000 <= persons <= LARGEST:
        problems.append(Problem("", "records", str(persons), f"give a number from 1000 to {LARGEST}"))
    if seed < 0:
        problems.append(Problem("", "seed", str(seed), "give a number of at least 0"))
    if not ks or not all(2 <= k <= LARGEST for k in ks):
        problems.append(
            Problem("", "k", _listed(ks), f"give cluster sizes from 2 to {LARGEST}, such as 50,100")
        )
    if not epsilons or not all(1e-6 <= epsilon <= 100 for epsilon in epsilons):
        problems.append(Problem("", "epsilon", _listed(epsilons), "give numbers from 0.000001 to 100"))
    if problems:
        raise Mistakes(problems)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.6g}" if isinstance(value, float) else str(value) for value in values) or "none"


def clusters_of(records: StudyRecords, k: int) -> Clusters:
    """The declared clusters, or clusters of k neighbours within each zip code, from places only."""
    labels = partition(records.points, records.zips, k) if records.declared is None else records.declared
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
    return Clusters(k, records.cell[order], starts, records.zips[order][starts[:-1]])


def _try(
    clusters: Clusters, epsilon: float, true: Cells, records: StudyRecords, rng: np.random.Generator
) -> StudyOutcome:
    possible, shape = records.possible, records.shape
    m, sizes = possible.size, np.diff(clusters.starts)
    signed, protected = np.zeros_like(true), np.zeros_like(true)
    errors, nonnegative = [], []
    for first, last, counts in in_pieces(clusters, m):
        noisy = counts + _two_sided_geometric(rng, epsilon, counts.shape)
        errors.append(np.abs(noisy.sum(axis=1) - sizes[first:last]))
        np.add.at(signed, clusters.zip_of[first:last], noisy)
        np.maximum(noisy, 0, out=noisy)
        nonnegative.append(np.abs(noisy.sum(axis=1) - sizes[first:last]))
        np.add.at(protected, clusters.zip_of[first:last], noisy)
    error = np.concatenate(errors)
    return StudyOutcome(
        clusters.k,
        epsilon,
        sizes.size,
        int((sizes < clusters.k).sum()),
        expected_absolute_sum(m, epsilon, SENSITIVITY),
        expected_absolute_sum(m, epsilon, 1),
        float(error.mean()),
        float(np.concatenate(nonnegative).mean()),
        float((error / sizes).mean()),
        differences(true, protected, protected.sum(axis=1), possible, shape),
        differences(true, signed, true.sum(axis=1), possible, shape),
    )


def in_pieces(clusters: Clusters, m: int) -> Iterator[tuple[int, int, Cells]]:
    """The counts of some clusters at a time, as (cluster, cell), so that small clusters fit in memory too."""
    number, step = clusters.zip_of.size, max(1, _CELLS_AT_ONCE // m)
    for first in range(0, number, step):
        last = min(first + step, number)
        low, high = clusters.starts[first], clusters.starts[last]
        cluster = np.repeat(np.arange(last - first), np.diff(clusters.starts[first : last + 1]))
        yield first, last, _count(cluster * m + clusters.cell[low:high], last - first, m)


def _count(position: Cells, rows: int, columns: int) -> Cells:
    return np.bincount(position, minlength=rows * columns).reshape(rows, columns)


def _two_sided_geometric(rng: np.random.Generator, epsilon: float, shape: tuple[int, ...]) -> Cells:
    """The difference of two geometric variables; a floating-point generator, which a release must not use."""
    p = -math.expm1(-epsilon / SENSITIVITY)
    return rng.geometric(p, shape) - rng.geometric(p, shape)
