"""The study of geography as prior knowledge (Soria-Comas and Drechsler) on a synthetic census.

It owns the course: clusters of places by MDAV inside zip codes, noise on their cross-classification, and predicted
beside realised errors. It takes no data but a census it draws itself; its noise is for study, not for release.

What is guaranteed, and to whom: geography is public, so the number of records of every cluster is known. Two data sets
that agree with this knowledge and differ in one record hold as many records in each cluster; the record has other
attributes, and one count falls by one while another grows by one. Only such substitutions are admissible neighbours,
and the sensitivity is 2, not 1. Structural zeros are public too and carry no noise. Each record is in one cluster, so
that the whole release is epsilon-differentially private for persons, given the knowledge.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import Mistakes, Problem
from discreet.maths.microaggregation import partition
from discreet.maths.sum_noise import expected_absolute_sum
from discreet.pipeline.progress import Progress, Quiet
from discreet.pipeline.study_records import SHAPE, StudyRecords, make_records
from discreet.pipeline.study_utility import Differences, differences

SENSITIVITY = 2
LARGEST = 50_000_000
_CELLS_AT_ONCE = 1 << 22

Cells = NDArray[np.int64]


@dataclass(frozen=True)
class Outcome:
    """One cluster size and epsilon; errors are of the sum of a cluster's noisy cells, in records."""

    k: int
    epsilon: float
    clusters: int
    small_clusters: int  # with fewer than k records, in zip codes that have no more
    predicted: float  # E|sum of the noises|
    predicted_as_if_1: float  # the same with the sensitivity 1, which the knowledge does not allow
    realised: float  # mean |sum of the noises|
    realised_nonnegative: float  # mean error once negative counts are set to zero
    realised_relative: float  # mean |sum of the noises| / records of the cluster
    utility: Differences  # with negative counts set to zero, as shares of what is then there
    utility_signed: Differences  # with negative counts kept, as shares of the known number of records

    @property
    def predicted_relative(self) -> float:
        """The predicted error as a share of the k records of a cluster."""
        return self.predicted / self.k


@dataclass(frozen=True)
class Study:
    """What was studied and found."""

    persons: int
    records: int
    zips: int
    cells: int  # m: combinations of attributes that can exist
    seed: int
    outcomes: tuple[Outcome, ...]


@dataclass(frozen=True, eq=False)
class _Clusters:
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
    progress.stage("clusters and noise", len(ks) * len(epsilons))
    zips = int(records.zips.max(initial=-1)) + 1
    true = _count(records.zips * records.possible.size + records.cell, zips, records.possible.size)
    outcomes = []
    for k in ks:
        clusters = _clusters(records, k)
        for epsilon in epsilons:
            rng = np.random.default_rng([seed, 2, k, *divmod(int(epsilon * 10**9), 2**32)])
            outcomes.append(_try(clusters, epsilon, true, records.possible, rng))
            progress.step()
    return Study(persons, records.cell.size, zips, records.possible.size, seed, tuple(outcomes))


def check(persons: int, seed: int, ks: Sequence[int], epsilons: Sequence[float]) -> None:
    """Refuse what cannot be studied, all at once."""
    problems = []
    if not 1_000 <= persons <= LARGEST:
        problems.append(Problem("", "records", str(persons), f"give a number from 1000 to {LARGEST}"))
    if seed < 0:
        problems.append(Problem("", "seed", str(seed), "give a number from 0 on"))
    if not ks or min(ks) < 2:
        problems.append(Problem("", "k", _listed(ks), "give cluster sizes from 2 on, such as 50,100"))
    if not epsilons or not all(1e-6 <= epsilon <= 100 for epsilon in epsilons):
        problems.append(Problem("", "epsilon", _listed(epsilons), "give numbers from 0.000001 to 100"))
    if problems:
        raise Mistakes(problems)


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:g}" for value in values) or "none"


def _clusters(records: StudyRecords, k: int) -> _Clusters:
    labels = partition(records.points, records.zips, k)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(labels.max(initial=-1) + 2))
    return _Clusters(k, records.cell[order], starts, records.zips[order][starts[:-1]])


def _try(
    clusters: _Clusters, epsilon: float, true: Cells, possible: Cells, rng: np.random.Generator
) -> Outcome:
    m, sizes = possible.size, np.diff(clusters.starts)
    signed, protected = np.zeros_like(true), np.zeros_like(true)
    errors, nonnegative = [], []
    for first, last, counts in _in_pieces(clusters, m):
        noisy = counts + _two_sided_geometric(rng, epsilon, counts.shape)
        errors.append(np.abs(noisy.sum(axis=1) - sizes[first:last]))
        np.add.at(signed, clusters.zip_of[first:last], noisy)
        np.maximum(noisy, 0, out=noisy)
        nonnegative.append(np.abs(noisy.sum(axis=1) - sizes[first:last]))
        np.add.at(protected, clusters.zip_of[first:last], noisy)
    error = np.concatenate(errors)
    return Outcome(
        clusters.k,
        epsilon,
        sizes.size,
        int((sizes < clusters.k).sum()),
        expected_absolute_sum(m, epsilon, SENSITIVITY),
        expected_absolute_sum(m, epsilon, 1),
        float(error.mean()),
        float(np.concatenate(nonnegative).mean()),
        float((error / sizes).mean()),
        differences(true, protected, protected.sum(axis=1), possible, SHAPE),
        differences(true, signed, true.sum(axis=1), possible, SHAPE),
    )


def _in_pieces(clusters: _Clusters, m: int) -> Iterator[tuple[int, int, Cells]]:
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
