"""The steps of a hierarchical release: count once, check invariants, pay, measure, fit, and write everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from discreet.errors import mistake
from discreet.formats.publication import Publication
from discreet.formats.writers import with_parquet
from discreet.hierarchy.cubes import areas_of, count_table, cube_estimates, leaf_counts, read_bounds
from discreet.hierarchy.estimate import Estimates, upward
from discreet.hierarchy.integers import Fit, Limits, integers, limits_of
from discreet.hierarchy.measure import Drawn
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.hierarchy.topdown import totals_first
from discreet.io.progress import Progress
from discreet.lazy import lazily
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import Output
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from discreet.release.assemble import write_cube
from discreet.release.folder import ReleaseFolder
from discreet.release.hierarchy import (
    estimates_place,
    write_areas,
    write_bounds,
    write_categories,
    write_estimates,
)
from discreet.release.manifest import CubeEntry, FileEntry
from discreet.release.measurements import write_measurements
from discreet.run.run import Places, Run
from discreet.run.tabulating import tabulate_together
from discreet.tabulate.tables import ConfidentialTable

if TYPE_CHECKING:
    from scipy import sparse
else:
    sparse = lazily("scipy.sparse")


STOPPED = (
    "the parts of {} areas were fitted by the largest number of steps without a proof that no fit is much better; "
    "all sums and bounds hold"
)


@dataclass(frozen=True)
class Written:
    """The entries of all cubes, the files that belong to none, and what the office should know."""

    cubes: dict[str, CubeEntry]
    files: tuple[FileEntry, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Fitting:
    """One run that measures a tree of areas and fits its tables."""

    programme: Programme
    chosen: HierarchicalMechanism
    folder: ReleaseFolder
    publication: Publication
    threads: int
    # of the table that is written next
    _judged: list[tuple[sparse.csr_array, Limits]] = field(default_factory=list, init=False)

    def make(
        self, run: Run, places: Places | None, pay: Callable[[], None]
    ) -> tuple[Written, Mapping[str, int]]:
        """Count, measure, fit and write everything; also the number of records.

        Everything that can be refused is refused before ``pay``; no noise is drawn before it. Areas that a killed run
        of the same snapshot has fitted are not fitted again.
        """
        self._refuse_large()
        cubes = [self.chosen.leaf]
        return tabulate_together(run, cubes, self.counted, self.write, places, pay, self.judge)

    def judge(self, table: ConfidentialTable) -> None:
        """Refuse invariants that the counts cannot meet."""
        counts = self.chosen.counts(table)
        self._judged[:] = [(counts, self._limits(counts))]

    def counted(self, table: ConfidentialTable) -> sparse.csr_array:
        """The counts of the smallest areas; on an engine they are judged in another process."""
        return self._judged[0][0] if self._judged else self.chosen.counts(table)

    def _limits(self, counts: sparse.csr_array) -> Limits:
        plan, bounds = self.chosen.plan, read_bounds(self.chosen)
        return limits_of(plan.spine, plan.strategy, counts, self.chosen.hierarchy.totals, bounds)

    def write(self, counted: list[sparse.csr_array], progress: Progress) -> Written:
        """Draw the noise, fit the areas and write all files that an interrupted run has not finished."""
        (counts,) = counted
        chosen, rule, cubes = self.chosen, self.chosen.hierarchy, self.programme.cubes
        limits = self._judged.pop()[1] if self._judged else self._limits(counts)
        drawn = chosen.drawn(counts)
        entries = {cube.id: entry for cube in cubes if (entry := self._finished(cube))}
        notes: tuple[str, ...] = ()
        if left := [cube for cube in cubes if cube.id not in entries]:
            made, notes = self._tables(left, drawn, limits, progress)
            entries |= made
        progress.stage("writing areas and categories")
        files = [
            write_areas(self.folder, chosen),
            write_categories(self.folder, chosen, cubes),
            *write_bounds(self.folder, rule),
        ]
        if Output.MEASUREMENTS in rule.outputs:
            progress.stage("writing measurements", len(chosen.plan.spine))
            files += write_measurements(self.folder, chosen, drawn, self.threads, progress)
        return Written(entries, tuple(files), notes)

    def _finished(self, cube: Cube) -> CubeEntry | None:
        """The cube as an interrupted run of the same noise has written it, estimates included."""
        entry = self.folder.finished(cube.id)
        if entry is None or Output.ESTIMATES not in self.chosen.hierarchy.outputs:
            return entry
        wanted = estimates_place(cube.id, ReleaseFormat.PARQUET)
        return entry if any(file.path == wanted for file in entry.files) else None

    def _tables(
        self, cubes: Sequence[Cube], drawn: Drawn, limits: Limits, progress: Progress
    ) -> tuple[dict[str, CubeEntry], tuple[str, ...]]:
        """Fit all areas and write cubes with their estimates; also what the office should know of the fit."""
        rule, areas = self.chosen.hierarchy, len(self.chosen.plan.spine)
        fit, climbed = Fit(rule.fit), None
        if fit is Fit.TREE or Output.ESTIMATES in rule.outputs:
            progress.stage("estimating areas", areas)
            climbed = upward(drawn, limits.totals, progress)
        progress.stage("fitting areas", areas)
        settled = drawn if fit is Fit.TREE else totals_first(drawn, limits)
        tables = integers(
            settled, limits, fit, self.threads, climbed=climbed, parts=self.folder, progress=progress
        )
        whole = leaf_counts(tables)
        estimates = None
        if climbed is not None and Output.ESTIMATES in rule.outputs:
            progress.stage("estimating areas again, from above")
            estimates = Estimates(climbed)
        made = {cube.id: self._cube(cube, whole, estimates, progress) for cube in cubes}
        return made, (STOPPED.format(tables.unfinished),) if tables.unfinished else ()

    def _cube(
        self, cube: Cube, whole: sparse.csr_array, estimates: Estimates | None, progress: Progress
    ) -> CubeEntry:
        progress.stage(f"writing {cube.id}")
        formats = with_parquet(self.programme.release.formats)
        table = count_table(self.chosen, whole, cube)
        entry = write_cube(self.folder, table, self.publication, formats)
        if estimates is not None:
            progress.stage(f"writing estimates of {cube.id}", areas_of(self.chosen, cube))
            parts = cube_estimates(self.chosen, estimates, cube, self.threads, progress)
            further = write_estimates(self.folder, cube, parts, table, formats)
            entry = entry.model_copy(update={"files": (*entry.files, *further)})
            self.folder.finish(entry)
        return entry

    def _refuse_large(self) -> None:
        """Refuse estimates of more cells than may be published: every cell has one, zero or not."""
        programme = self.programme
        for cube in programme.cubes if Output.ESTIMATES in self.chosen.hierarchy.outputs else ():
            if cube.size > programme.limits.published:
                value = f"estimates of {cube.size:,} cells; limits.published = {programme.limits.published:,}"
                remedy = 'use coarser breakdowns, or leave "estimates" out of noise.outputs'
                raise mistake(programme.path, f"cube {cube.id}", value, remedy)
