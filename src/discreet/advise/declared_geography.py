"""Geography as prior knowledge (Soria-Comas & Drechsler) on the office's own records, clusters public by declaration.

The office declares that everyone may know where each person lives, to the cluster: places are not protected, the other
attributes are. The clusters are the codes of a variable, or are made by micro-aggregation of coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from discreet.advise.prior_knowledge import (
    SENSITIVITY,
    Attribute,
    Cells,
    Clusters,
    Study,
    StudyRecords,
    among,
    clusters_of,
    in_pieces,
    shape_of,
    structural_zeros,
    study_records,
)
from discreet.errors import Mistakes, mistake
from discreet.io.column_names import shown_names
from discreet.io.databases import open_source
from discreet.io.files import Records
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.bayes_histogram import HistogramAdversary
from discreet.maths.noise.additive import discrete_laplace
from discreet.population.encode import BadColumn, numbers_of
from discreet.population.values import coder_of, values_problem
from discreet.programme.codelist import Breakdown
from discreet.programme.filter import alternatives
from discreet.programme.programme import Programme
from discreet.programme.variables import Variable

PERSONS = "persons"
MOST_CELLS = 20_000  # of the cross of all attributes
HALF = 0.5  # record that every cell of a region is believed to have more than are counted


@dataclass(frozen=True, kw_only=True)
class DeclaredGeography:
    """What the office declares to be public, and what is to be protected."""

    regions: str  # the breakdown that no cluster crosses, and within which frequencies are compared: GEO.M
    attributes: tuple[str, ...]  # the breakdowns that are crossed and protected: SEX, AGE.L
    clusters: str | None = None  # the variable whose finest codes are the clusters
    x: str = ""  # otherwise the columns of the coordinates
    y: str = ""

    def __post_init__(self) -> None:
        """Refuse clusters that are declared twice, or not at all."""
        if (self.clusters is None) == (not (self.x and self.y)):
            value = "neither" if self.clusters is None else "both"
            raise mistake("", "--clusters, or --x and --y", value, "give a variable, or both coordinates")
        if not self.attributes:
            raise mistake("", "--attributes", "none", "name the breakdowns to protect, such as SEX,AGE.L")


@dataclass(frozen=True, kw_only=True)
class PlaceKnown:
    """What an adversary who knows the cluster of a target, and everyone else in it, learns of the target's cell."""

    k: int
    epsilon: float
    targets: int  # sampled
    guessed: (
        float  # share of the targets in the commonest cell of their region: what the place tells by itself
    )
    right: (
        float  # mean probability that the adversary decides for the true cell, with the declared sensitivity
    )
    right_as_if_1: float  # the same with noise for sensitivity 1, which known cluster sizes rule out
    largest_odds: float  # e^epsilon: no odds between two cells of a person grow by more


@dataclass(frozen=True)
class DeclaredStudy:
    """The study of an office's own records: errors and utility, and the adversary who knows places."""

    study: Study
    smallest: int  # records of the smallest cluster
    largest: int
    unique: float  # share of the records that are the only one in their cell of their cluster, before noise
    adversaries: tuple[PlaceKnown, ...]


def declared_records(
    programme: Programme, declared: DeclaredGeography, progress: Progress | None = None
) -> StudyRecords:
    """Read the persons of a programme: regions, clusters or coordinates, and attributes."""
    progress = progress or Quiet()
    axes = [_breakdown(programme, name, "--attributes") for name in declared.attributes]
    if len({axis.variable for axis in axes}) < len(axes):
        raise mistake("", "--attributes", ",".join(declared.attributes), "name each variable once")
    regions = _breakdown(programme, declared.regions, "--regions")
    names = dict.fromkeys([regions.variable, *(axis.variable for axis in axes)])
    if declared.clusters is not None:
        names[_variable(programme, declared.clusters, "--clusters").name] = None
    if public := {regions.variable, declared.clusters} & {axis.variable for axis in axes}:
        raise mistake("", "--attributes", ", ".join(map(str, public)), "leave it out: places are public")
    attributes = [_attribute(axis) for axis in axes]
    if prod(shape_of(attributes)) > MOST_CELLS:
        value = f"{prod(shape_of(attributes)):,} combinations"
        raise mistake("", "--attributes", value, f"take coarser or fewer ones: at most {MOST_CELLS:,}")
    variables = {name: programme.variables[name] for name in names}
    plain = [] if declared.clusters is not None else [declared.x, declared.y]
    leaves, points = _read(programme, variables, plain, progress)
    grid = _positions(attributes, leaves, programme)
    possible = np.flatnonzero(~structural_zeros(programme, attributes))
    try:
        cell = among(possible, grid)
    except ValueError:
        remedy = "run discreet check, and correct the records or drop the rule"
        raise mistake(programme.path, "structural_zeros", "some records are in one", remedy) from None
    _, zips = np.unique(regions.node_of_leaf[leaves[regions.variable]], return_inverse=True)
    clusters = None if declared.clusters is None else _labels(leaves[declared.clusters], zips, declared)
    return StudyRecords(
        points,
        zips.astype(np.int64),
        cell,
        possible,
        len(cell),
        shape_of(attributes),
        clusters,
        "the programme's own persons",
    )


def _breakdown(programme: Programme, name: str, option: str) -> Breakdown:
    every = {
        axis.full_name: axis
        for variable in programme.variables.values()
        for axis in variable.breakdowns.values()
    }
    if name not in every:
        raise mistake("", option, name, alternatives(name, sorted(every)))
    return every[name]


def _variable(programme: Programme, name: str, option: str) -> Variable:
    if name not in programme.variables:
        raise mistake("", option, name, alternatives(name, sorted(programme.variables)))
    return programme.variables[name]


def _attribute(axis: Breakdown) -> Attribute:
    codes = [code for code, finest in zip(axis.codes, axis.finest, strict=True) if finest]
    return Attribute(axis.full_name, axis.variable, tuple((code,) for code in codes))


def _positions(
    attributes: Sequence[Attribute], leaves: Mapping[str, NDArray[np.int64]], programme: Programme
) -> NDArray[np.int64]:
    """Each record's position in the grid of all attributes."""
    position = np.zeros(len(leaves[attributes[0].variable]), dtype=np.int64)
    for one in attributes:
        group = one.group_of_leaf(programme.variables[one.variable].codelist)
        position = position * len(one.groups) + group[leaves[one.variable]]
    return position


def _labels(
    codes: NDArray[np.int64], regions: NDArray[np.int64], declared: DeclaredGeography
) -> NDArray[np.int64]:
    """The cluster of each record, numbered from 0; an error where a cluster crosses regions."""
    _, labels = np.unique(codes, return_inverse=True)
    pairs = np.unique(np.stack([labels, regions]), axis=1)
    if pairs.shape[1] > int(labels.max(initial=-1)) + 1:
        remedy = "declare regions that contain whole clusters"
        raise mistake("", "--regions", f"{declared.clusters} crosses {declared.regions}", remedy)
    return labels.astype(np.int64)


def _read(
    programme: Programme, variables: Mapping[str, Variable], plain: list[str], progress: Progress
) -> tuple[dict[str, NDArray[np.int64]], NDArray[np.float64]]:
    """The leaves of each record under each variable, and its coordinates."""
    if programme.population is None or PERSONS not in programme.population.units:
        raise mistake(programme.path, "population", "no records of persons", "declare their table")
    records = open_source(programme.population.units[PERSONS].source, f"population.{PERSONS}")
    columns = {name: variable.column for name, variable in variables.items()}
    for column in (*columns.values(), *plain):
        if column not in records.schema.names:
            raise mistake(
                records.name, column, "no such column", alternatives(column, shown_names(records, column))
            )
    progress.stage("reading persons")
    parts: dict[str, list[NDArray[np.int64]]] = {name: [] for name in variables}
    points: list[NDArray[np.float64]] = []
    for batch in records.batches(plain, list(dict.fromkeys(columns.values()))):
        for name, variable in variables.items():
            parts[name].append(_encoded(batch[columns[name]], variable, records))
        if plain:
            points.append(np.stack([_coordinate(batch[name], name, records) for name in plain], axis=1))
        progress.step(len(batch))
    if not next(iter(parts.values()), []):
        raise mistake(records.name, "persons", "no records", "give a table with records")
    leaves = {name: np.concatenate(each) for name, each in parts.items()}
    return leaves, np.concatenate(points) if plain else np.zeros((0, 2))


def _encoded(column: pa.Array, variable: Variable, records: Records) -> NDArray[np.int64]:
    try:
        found = coder_of(variable, records.decimal).encode(column)
    except BadColumn as bad:
        raise mistake(records.name, f"variables.{variable.name}", bad.value, bad.remedy) from None
    if found.wrong:
        raise Mistakes(
            [
                values_problem(variable, why, values, records.name, hidden=True)
                for why, values in found.wrong.items()
            ]
        )
    return found.codes.astype(np.int64)


def _coordinate(column: pa.Array, name: str, records: Records) -> NDArray[np.float64]:
    try:
        found = numbers_of(column, "a column of coordinates", records.decimal).astype(np.float64)
    except BadColumn as bad:
        raise mistake(records.name, name, bad.value, "give each record its coordinates as numbers") from None
    if not np.isfinite(found).all():
        raise mistake(records.name, name, "records without a coordinate", "give each a number")
    return found


def study_declared(
    records: StudyRecords,
    seed: int,
    ks: Sequence[int],
    epsilons: Sequence[float],
    targets: int = 100,
    progress: Progress | None = None,
) -> DeclaredStudy:
    """Try every cluster size with every epsilon; declared clusters are one size, the mean number of their records."""
    progress = progress or Quiet()
    if records.declared is not None:
        ks = [max(1, round(records.cell.size / (int(records.declared.max(initial=0)) + 1)))]
    found = study_records(records, seed, ks, epsilons, progress)
    sizes, unique, adversaries = [], [], []
    progress.stage("adversaries who know places", len(ks) * len(epsilons))
    for k in ks:
        clusters = clusters_of(records, k)
        sizes.append(np.diff(clusters.starts))
        unique.append(_unique(clusters, records.possible.size))
        for epsilon in epsilons:
            adversaries.append(_adversary(records, clusters, epsilon, targets, seed))
            progress.step()
    return DeclaredStudy(
        found,
        int(min(each.min() for each in sizes)),
        int(max(each.max() for each in sizes)),
        unique[0],
        tuple(adversaries),
    )


def _unique(clusters: Clusters, cells: int) -> float:
    ones = sum(int((counts == 1).sum()) for _, _, counts in in_pieces(clusters, cells))
    return ones / len(clusters.cell)


def _adversary(
    records: StudyRecords, clusters: Clusters, epsilon: float, targets: int, seed: int
) -> PlaceKnown:
    """The exact probabilities of right decisions, averaged over sampled targets."""
    generator = np.random.default_rng([seed, 3, clusters.k])
    sampled = generator.choice(len(clusters.cell), min(targets, len(clusters.cell)), replace=False)
    m = records.possible.size
    laws = [discrete_laplace(str(epsilon / scale)) for scale in (SENSITIVITY, 1)]
    guessed, right = 0, np.zeros(2)
    for at in sampled.tolist():
        cluster = int(np.searchsorted(clusters.starts, at, side="right")) - 1
        own = int(clusters.cell[at])
        others = _others(clusters.cell[clusters.starts[cluster] : clusters.starts[cluster + 1]], own, m)
        region = _others(records.cell[records.zips == clusters.zip_of[cluster]], own, m) + HALF
        guessed += int(region.argmax()) == own
        prior = tuple((region / region.sum()).tolist())
        for one, law in enumerate(laws):
            right[one] += HistogramAdversary(law, tuple(others.tolist()), prior).correct(own)
    right /= len(sampled)
    return PlaceKnown(
        k=clusters.k,
        epsilon=epsilon,
        targets=len(sampled),
        guessed=guessed / len(sampled),
        right=float(right[0]),
        right_as_if_1=float(right[1]),
        largest_odds=exp(epsilon),
    )


def _others(cells: Cells, own: int, m: int) -> Cells:
    """The number of others in each cell."""
    counts = np.bincount(cells, minlength=m)
    counts[own] -= 1
    return counts
