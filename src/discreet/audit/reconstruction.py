"""Reconstruction: the records of small areas from only the published tables, and how many of them are right.

The cells of an area are in ``area_tables``, the search in ``maths.attacks.reconstruction``.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from discreet.audit.area_tables import (
    AreaSums,
    AreaTables,
    NoiseReader,
    Space,
    finest_codes,
    joint_space,
    places,
    tables_about,
)
from discreet.audit.evidence import Integers, Published, Universe
from discreet.errors import mistake
from discreet.io.progress import Progress, Quiet
from discreet.maths.attacks.reconstruction import LikeliestHistogram, Status, nothing
from discreet.programme.codelist import Codelist

BASELINE_DRAWS = 20  # guesses for each area that the baselines are the mean of


@dataclass(frozen=True)
class SolverLimits:
    """What a reconstruction may cost, and the confidence in the range of noise that has no bound."""

    work: float = 10.0  # of an area, in seconds of an idle machine: operations are counted, not the clock
    all_seconds: float | None = None  # of all areas together, by the clock; no area is begun after it
    workers: int = 1  # areas at a time
    most_areas: int = 100
    most_cells: int = 20_000  # of the cross of all variables
    most_terms: int = 2_000_000  # of the sums of an area, once cells that must be empty are left out
    confidence: float = 0.999  # that the true counts of an area are all in the range assumed


@dataclass(frozen=True, eq=False)
class AreaRecords:
    """What was reconstructed of one area."""

    area: str
    status: Status
    cells: Integers  # joint cells that have records, ascending
    counts: Integers  # how many
    certain: int  # records that are right for certain, if the noise is as assumed
    unique: bool  # nothing else fits the tables
    sums: int  # published cells about the area
    seconds: float

    @property
    def records(self) -> int:
        """The number of reconstructed records."""
        return int(self.counts.sum())

    def histogram(self, size: int) -> Integers:
        """Records in every joint cell."""
        histogram = np.zeros(size, dtype=np.int64)
        histogram[self.cells] = self.counts
        return histogram


@dataclass(frozen=True, kw_only=True)
class ReconstructionFindings:
    """The numbers of a reconstruction."""

    counted: str
    geography: str
    variables: tuple[str, ...]
    joint_cells: int
    areas: int
    status: Mapping[Status, int]  # areas by how the solver ended
    records: int
    certain: int  # of them right, if the noise is as assumed
    r_certain: float
    r_guessed: (
        float  # the share of the reconstructed records that the best guess without tables of pairs has too
    )
    unique_areas: int  # nothing else fits their tables
    confidence: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What an outsider reconstructs from the tables of some areas."""

    name: str
    counted: str
    geography: str
    space: Space
    areas: tuple[AreaRecords, ...]
    confidence: float  # 1 where the bound of the noise is known

    def records(self, area: AreaRecords) -> Iterator[tuple[dict[str, str], int]]:
        """The records of an area by their codes, with the number of each."""
        for cell, count in zip(area.cells.tolist(), area.counts.tolist(), strict=True):
            yield self.space.described(cell), count

    @cached_property
    def histograms(self) -> Integers:
        """(area, joint cell) -> records."""
        return np.array([area.histogram(self.space.size) for area in self.areas], dtype=np.int64)

    def findings(self, seed: int = 1) -> ReconstructionFindings:
        """The numbers, without the records; a guess is compared with the reconstructed records themselves."""
        made = self.histograms
        guessed = guesses(made, made, self.space, np.random.default_rng(seed))
        records, certain = sum(a.records for a in self.areas), sum(a.certain for a in self.areas)
        return ReconstructionFindings(
            counted=self.counted,
            geography=self.geography,
            variables=self.space.variables,
            joint_cells=self.space.size,
            areas=len(self.areas),
            status=Counter(area.status for area in self.areas),
            records=records,
            certain=certain,
            r_certain=share_of(certain, records),
            r_guessed=share_of(guessed.best, records),
            unique_areas=sum(area.unique for area in self.areas),
            confidence=self.confidence,
            seconds=round(sum(area.seconds for area in self.areas), 3),
        )


def reconstruct(
    published: Published,
    variable: str = "GEO",
    areas: Sequence[str] | None = None,
    variables: Sequence[str] | None = None,
    bound: int | None = None,
    limits: SolverLimits = SolverLimits(),
    counted: str | None = None,
    seed: int = 1,
    progress: Progress = Quiet(),
) -> Reconstruction:
    """Reconstruct the records of areas; without a list, of the finest ones, evenly chosen where they are many.

    ``bound`` replaces what is published of the noise by only a bound (0: the tables are assumed exact). The same
    seed gives the same records on a slow or busy machine as well, unless ``limits.all_seconds`` are over.
    """
    universe = _universe(published, variable, counted)
    chosen = areas_of(universe, variable, areas, limits.most_areas)
    space = joint_space(universe, variable, chosen, variables, published.places, limits.most_cells)
    tables = AreaTables(universe, variable, space)
    reader = NoiseReader(published.noise, bound, limits.confidence)
    deadline = math.inf if limits.all_seconds is None else time.monotonic() + limits.all_seconds
    progress.stage("reconstructing areas", len(chosen))
    with ThreadPoolExecutor(limits.workers) as pool:  # the solver runs outside Python's lock
        jobs: dict[str, Future[AreaRecords]] = {}
        try:
            for area, sums, values in _read(tables, chosen):
                job = partial(_area, area, sums, values, reader, limits, deadline, seed)
                jobs[area] = pool.submit(job)
            for done in as_completed(jobs.values()):
                done.result()
                progress.step()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    found = tuple(jobs[area].result() for area in chosen)
    return Reconstruction(
        published.name, universe.counted, variable, space, found, reader.effective_confidence
    )


def _universe(published: Published, variable: str, counted: str | None) -> Universe:
    """The requested universe, or the one with most tables about areas."""
    about = [(len(tables_about(universe, variable)), universe) for universe in published.universes]
    about = [(tables, universe) for tables, universe in about if tables]
    if not about:
        known = ", ".join(published.places) or "the variable that names areas"
        raise mistake("", "variable", variable, f"no table has it; give {known}")
    if counted is None:
        return max(about, key=lambda pair: pair[0])[1]
    for _, universe in about:
        if universe.counted == counted:
            return universe
    names = "; ".join(universe.counted for _, universe in about)
    raise mistake("", "counted", counted, f"choose from: {names}")


def areas_of(universe: Universe, geography: str, wanted: Sequence[str] | None, most: int) -> tuple[str, ...]:
    """The areas to attack: those requested, or the finest ones, evenly chosen where they are many."""
    tables = tables_about(universe, geography)
    axes = [axis for table in tables for axis in table.cube.axes if axis.variable == geography]
    if wanted is not None:
        known = {code for axis in axes for code in axis.codes[1:]}
        unknown = [area for area in wanted if area not in known]
        if unknown or not wanted:
            remedy = f"name areas of {geography} that a table has"
            raise mistake("", "areas", ", ".join(unknown[:5]) or "none", remedy)
        return tuple(dict.fromkeys(wanted))[:most]
    every = finest_codes(axes, universe.codelists[geography])
    if len(every) <= most:
        return every
    return tuple(every[k] for k in np.linspace(0, len(every) - 1, most).astype(int).tolist())


def _read(tables: AreaTables, areas: Sequence[str]) -> Iterator[tuple[str, AreaSums, Integers]]:
    """The published values of every area; areas that the same tables have are read together."""
    kinds: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for area in areas:
        kinds.setdefault((tables.kind(area), tables.depth(area)), []).append(area)
    for (kind, depth), members in kinds.items():
        sums = tables.sums(kind, depth)
        yield from zip(members, [sums] * len(members), tables.values(sums, members), strict=True)


def _area(
    area: str,
    sums: AreaSums,
    values: Integers,
    reader: NoiseReader,
    limits: SolverLimits,
    deadline: float,
    seed: int,
) -> AreaRecords:
    left = deadline - time.monotonic()
    if left <= 0:
        solved = nothing(Status.NOT_BEGUN, sums.sums.cells)
    else:
        readings = reader.readings(sums, values)
        # CP-SAT takes longer to import than most commands take to run
        from discreet.maths.attacks.histogram_search import likeliest  # noqa: PLC0415

        solved = likeliest(sums.sums, readings, limits.work, seed, limits.most_terms, left)
    return _records(area, solved, len(sums.signatures))


def _records(area: str, solved: LikeliestHistogram, sums: int) -> AreaRecords:
    cells = np.flatnonzero(solved.counts)
    return AreaRecords(
        area, solved.status, cells, solved.counts[cells], solved.certain, solved.unique, sums, solved.seconds
    )


@dataclass(frozen=True, eq=False, repr=False)
class TrueRecords:
    """The true records, confidential: for each variable the leaf of its codelist that each record has."""

    columns: Mapping[str, NDArray[np.integer]]
    codelists: Mapping[str, Codelist]

    def areas(self, reconstruction: Reconstruction) -> Integers:
        """The place of each record's area among those reconstructed, -1 elsewhere."""
        tree = self.codelists[reconstruction.geography]
        codes = [area.area for area in reconstruction.areas]
        return np.asarray(places(tree, codes)[self.columns[reconstruction.geography]], dtype=np.int64)

    def cells(self, reconstruction: Reconstruction) -> Integers:
        """The joint cell of each record."""
        return reconstruction.space.cells(self.columns, self.codelists)

    def histograms(self, reconstruction: Reconstruction) -> Integers:
        """(area, joint cell) -> true records."""
        shape = (len(reconstruction.areas), reconstruction.space.size)
        areas, cells = self.areas(reconstruction), self.cells(reconstruction)
        inside = areas >= 0
        flat = np.ravel_multi_index((areas[inside], cells[inside]), shape)
        return np.asarray(np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape), dtype=np.int64)


@dataclass(frozen=True)
class JudgedReconstruction:
    """How many records of a reconstruction are right, over all attacked areas, and how many by guessing."""

    areas: int
    records: int  # true ones
    exact: int  # of them reconstructed: the overlap of both multisets
    uniques: int  # true records that no other in the area equals
    uniques_found: int  # of them reconstructed
    apparent_uniques: int  # reconstructed records that no other in the reconstructed area equals
    true_uniques: int  # of them true and unique
    by_margins: float  # expected overlap of records drawn from the product of the area's own margins
    by_elsewhere: float  # expected overlap of records drawn from the other areas' reconstructions
    broken_promises: (
        int  # areas in which fewer records are right than were certain: the noise was not as assumed
    )
    by_commonest: float = 0.0  # overlap if all records of an area have its most frequent categories

    @property
    def r_recon(self) -> float:
        """The share of the true records that is reconstructed exactly."""
        return share_of(self.exact, self.records)

    @property
    def baseline(self) -> float:
        """The share that the best of the guesses gets right: an attack must beat it to be one."""
        return share_of(max(self.by_margins, self.by_elsewhere, self.by_commonest), self.records)

    @property
    def gain(self) -> float:
        """What the attack adds to the best guess; negative where guessing is better."""
        return self.r_recon - self.baseline

    def as_json(self) -> Mapping[str, object]:
        """The shares."""
        return {
            "areas": self.areas,
            "records": self.records,
            "r_recon": self.r_recon,
            "baseline": self.baseline,
            "baseline_margins": share_of(self.by_margins, self.records),
            "baseline_elsewhere": share_of(self.by_elsewhere, self.records),
            "baseline_commonest": share_of(self.by_commonest, self.records),
            "gain": self.gain,
            "r_recon_uniques": share_of(self.uniques_found, self.uniques),
            "true_share_of_apparent_uniques": share_of(self.true_uniques, self.apparent_uniques),
            "areas_outside_assumed_noise": self.broken_promises,
        }


def judge(reconstruction: Reconstruction, records: TrueRecords, seed: int = 1) -> JudgedReconstruction:
    """Compare a reconstruction with the true records; an area without one counts as nothing found."""
    true, made = records.histograms(reconstruction), reconstruction.histograms
    overlap = np.minimum(true, made).sum(axis=1)
    guessed = guesses(true, made, reconstruction.space, np.random.default_rng(seed))
    certain = np.array([area.certain for area in reconstruction.areas], dtype=np.int64)
    return JudgedReconstruction(
        len(true),
        int(true.sum()),
        int(overlap.sum()),
        int((true == 1).sum()),
        int(((true == 1) & (made > 0)).sum()),
        int((made == 1).sum()),
        int(((true == 1) & (made == 1)).sum()),
        guessed.margins,
        guessed.elsewhere,
        int((overlap < certain).sum()),
        guessed.commonest,
    )


@dataclass(frozen=True)
class Guesses:
    """How many records guesses get right that use no more than statistics of the areas."""

    margins: float  # drawn from the product of the area's own margins
    elsewhere: float  # drawn from the other areas
    commonest: float  # all with the most frequent categories of the area

    @property
    def best(self) -> float:
        """The best of them."""
        return max(self.margins, self.elsewhere, self.commonest)


def guesses(true: Integers, made: Integers, space: Space, generator: np.random.Generator) -> Guesses:
    """Expected overlaps of as many guessed as reconstructed records with the true ones, summed over areas."""
    pool, margins, elsewhere, commonest = made.sum(axis=0), 0.0, 0.0, 0.0
    for truth, own in zip(true, made, strict=True):
        records, product = int(own.sum()), _independent(own, space)
        margins += _overlap(truth, product, records, generator)
        elsewhere += _overlap(truth, (pool - own).astype(np.float64), records, generator)
        commonest += min(records, int(truth[int(product.argmax())]))
    return Guesses(margins, elsewhere, commonest)


def _independent(histogram: Integers, space: Space) -> NDArray[np.float64]:
    """The product of the one-way margins."""
    grid, product = histogram.reshape(space.shape), np.ones(())
    for k in range(len(space.shape)):
        others = tuple(axis for axis in range(len(space.shape)) if axis != k)
        product = np.multiply.outer(product, grid.sum(axis=others).astype(np.float64))
    return product.ravel()


def _overlap(
    truth: Integers, weights: NDArray[np.float64], records: int, generator: np.random.Generator
) -> float:
    total = weights.sum()
    if not records or total <= 0:
        return 0.0
    draws = generator.multinomial(records, weights / total, size=BASELINE_DRAWS)
    return float(np.minimum(draws, truth).sum(axis=1).mean())


def share_of(part: float, whole: float) -> float:
    """The share of a part in a whole; 0 of 0 is 0."""
    return part / whole if whole else 0.0
