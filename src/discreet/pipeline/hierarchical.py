"""The steps of a hierarchical release: count once, check invariants, pay, measure, fit, and write everything."""

from __future__ import annotations

from collections.abc import Callable

from scipy.sparse import csr_array

from discreet.errors import mistake
from discreet.formats.publication import Publication
from discreet.formats.writers import with_parquet
from discreet.hierarchy.cubes import count_table, cube_estimates, leaf_counts, read_bounds
from discreet.hierarchy.estimate import Estimates, upward
from discreet.hierarchy.integers import Fit, integers, limits_of
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.hierarchy.topdown import totals_first
from discreet.programme.cube import Cube
from discreet.programme.hierarchical import Output
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
from discreet.run.run import Run
from discreet.run.tabulating import tabulate
from discreet.swap.relocate import Relocations
from discreet.tabulate.tables import ConfidentialTable


class Fitting:
    """One run that measures a tree of areas and fits its tables."""

    def __init__(
        self, run: Run, chosen: HierarchicalMechanism, folder: ReleaseFolder, publication: Publication
    ) -> None:
        self._run, self._chosen = run, chosen
        self._folder, self._publication = folder, publication

    def make(
        self, relocations: Relocations | None, pay: Callable[[], None]
    ) -> tuple[dict[str, CubeEntry], tuple[FileEntry, ...], dict[str, int]]:
        """The entries of all cubes, the files that belong to none, and the number of records.

        Everything that can be refused is refused before ``pay``; no noise is drawn before it. Areas that a killed run
        of the same snapshot has fitted are not fitted again.
        """
        run, chosen, rule = self._run, self._chosen, self._chosen.hierarchy
        self._refuse_large()
        bounds = read_bounds(chosen)
        tables: list[ConfidentialTable] = []
        rows = tabulate(run, [chosen.leaf], tables.append, relocations)
        counts = chosen.counts(tables.pop())
        spine, strategy = chosen.plan.spine, chosen.plan.strategy
        limits = limits_of(spine, strategy, counts, rule.totals, bounds)
        pay()
        drawn, fit = chosen.drawn(counts), Fit(rule.fit)
        climbed = None
        if fit is Fit.TREE or Output.ESTIMATES in rule.outputs:
            run.progress.stage("estimating areas", len(spine))
            climbed = upward(drawn, limits.totals, run.progress)
        run.progress.stage("fitting areas", len(spine))
        settled = drawn if fit is Fit.TREE else totals_first(drawn, limits)
        fitted = integers(
            settled, limits, fit, run.threads, climbed=climbed, parts=self._folder, progress=run.progress
        )
        whole = leaf_counts(fitted)
        estimates = Estimates(climbed) if climbed and Output.ESTIMATES in rule.outputs else None
        run.progress.stage("writing tables", len(run.programme.cubes))
        entries = {cube.id: self._cube(cube, whole, estimates) for cube in run.programme.cubes}
        files = [
            write_areas(self._folder, chosen),
            write_categories(self._folder, chosen, run.programme.cubes),
            *write_bounds(self._folder, rule),
        ]
        if Output.MEASUREMENTS in rule.outputs:
            run.progress.stage("writing measurements")
            files += write_measurements(self._folder, chosen, drawn)
        return entries, tuple(files), rows

    def _cube(self, cube: Cube, whole: csr_array, estimates: Estimates | None) -> CubeEntry:
        formats = with_parquet(self._run.programme.release.formats)
        table = count_table(self._chosen, whole, cube)
        entry = write_cube(self._folder, table, self._publication, formats)
        if estimates is not None:
            found = cube_estimates(self._chosen, estimates, cube)
            further = write_estimates(self._folder, found, table, formats)
            entry = entry.model_copy(update={"files": (*entry.files, *further)})
        self._run.progress.step()
        return entry

    def _refuse_large(self) -> None:
        """Refuse estimates of more cells than may be published: every cell has one, zero or not."""
        programme = self._run.programme
        for cube in programme.cubes if Output.ESTIMATES in self._chosen.hierarchy.outputs else ():
            if cube.size > programme.limits.published:
                value = f"estimates of {cube.size:,} cells; limits.published = {programme.limits.published:,}"
                remedy = 'use coarser breakdowns, or leave "estimates" out of noise.outputs'
                raise mistake(programme.path, f"cube {cube.id}", value, remedy)
