"""The steps of a hierarchical release: count once, check invariants, pay, measure, fit, and write everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scipy.sparse import csr_array

from discreet.errors import mistake
from discreet.formats.publication import Publication
from discreet.formats.writers import with_parquet
from discreet.hierarchy.cubes import count_table, cube_estimates, leaf_counts, read_bounds
from discreet.hierarchy.estimate import Estimates, upward
from discreet.hierarchy.integers import Fit, Limits, integers, limits_of
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.hierarchy.topdown import totals_first
from discreet.io.progress import Progress
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import Output
from discreet.programme.programme import Programme
from discreet.release.assemble import write_cube
from discreet.release.folder import ReleaseFolder
from discreet.release.hierarchy import (
    write_areas,
    write_bounds,
    write_categories,
    write_estimates,
    write_measurements,
)
from discreet.release.manifest import CubeEntry, FileEntry
from discreet.run.run import Places, Run
from discreet.run.tabulating import tabulate_together
from discreet.tabulate.tables import ConfidentialTable


@dataclass(frozen=True)
class Written:
    """The entries of all cubes, and the files that belong to none."""

    cubes: dict[str, CubeEntry]
    files: tuple[FileEntry, ...]


@dataclass(frozen=True, eq=False)
class Fitting:
    """One run that measures a tree of areas and fits its tables."""

    programme: Programme
    chosen: HierarchicalMechanism
    folder: ReleaseFolder
    publication: Publication
    threads: int

    def make(
        self, run: Run, places: Places | None, pay: Callable[[], None]
    ) -> tuple[Written, Mapping[str, int]]:
        """Count, measure, fit and write everything; also the number of records.

        Everything that can be refused is refused before ``pay``; no noise is drawn before it. Areas that a killed run
        of the same snapshot has fitted are not fitted again.
        """
        self._refuse_large()
        cubes = [self.chosen.leaf]
        return tabulate_together(run, cubes, self.chosen.counts, self.write, places, pay, self.judge)

    def judge(self, table: ConfidentialTable) -> None:
        """Refuse invariants that the counts cannot meet."""
        self._limits(self.chosen.counts(table))

    def _limits(self, counts: csr_array) -> Limits:
        plan, bounds = self.chosen.plan, read_bounds(self.chosen)
        return limits_of(plan.spine, plan.strategy, counts, self.chosen.hierarchy.totals, bounds)

    def write(self, counted: list[csr_array], progress: Progress) -> Written:
        """Draw the noise, fit the areas and write all files."""
        (counts,) = counted
        chosen, rule = self.chosen, self.chosen.hierarchy
        limits = self._limits(counts)
        drawn, fit, areas = chosen.drawn(counts), Fit(rule.fit), len(chosen.plan.spine)
        climbed = None
        if fit is Fit.TREE or Output.ESTIMATES in rule.outputs:
            progress.stage("estimating areas", areas)
            climbed = upward(drawn, limits.totals, progress)
        progress.stage("fitting areas", areas)
        settled = drawn if fit is Fit.TREE else totals_first(drawn, limits)
        fitted = integers(
            settled, limits, fit, self.threads, climbed=climbed, parts=self.folder, progress=progress
        )
        whole = leaf_counts(fitted)
        estimates = Estimates(climbed) if climbed and Output.ESTIMATES in rule.outputs else None
        progress.stage("writing tables", len(self.programme.cubes))
        entries = {cube.id: self._cube(cube, whole, estimates, progress) for cube in self.programme.cubes}
        files = [
            write_areas(self.folder, chosen),
            write_categories(self.folder, chosen, self.programme.cubes),
            *write_bounds(self.folder, rule),
        ]
        if Output.MEASUREMENTS in rule.outputs:
            progress.stage("writing measurements")
            files += write_measurements(self.folder, chosen, drawn)
        return Written(entries, tuple(files))

    def _cube(
        self, cube: Cube, whole: csr_array, estimates: Estimates | None, progress: Progress
    ) -> CubeEntry:
        formats = with_parquet(self.programme.release.formats)
        table = count_table(self.chosen, whole, cube)
        entry = write_cube(self.folder, table, self.publication, formats)
        if estimates is not None:
            found = cube_estimates(self.chosen, estimates, cube)
            further = write_estimates(self.folder, found, table, formats)
            entry = entry.model_copy(update={"files": (*entry.files, *further)})
        progress.step()
        return entry

    def _refuse_large(self) -> None:
        """Refuse estimates of more cells than may be published: every cell has one, zero or not."""
        programme = self.programme
        for cube in programme.cubes if Output.ESTIMATES in self.chosen.hierarchy.outputs else ():
            if cube.size > programme.limits.published:
                value = f"estimates of {cube.size:,} cells; limits.published = {programme.limits.published:,}"
                remedy = 'use coarser breakdowns, or leave "estimates" out of noise.outputs'
                raise mistake(programme.path, f"cube {cube.id}", value, remedy)
