"""The whole path: a programme and a secret in, a protected release out; it owns the order, not the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from discreet.errors import DiscreetError
from discreet.perturb.choose import mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.pipeline.identity import Identity, digest_inputs, identify, noise_key
from discreet.pipeline.progress import Progress, Quiet
from discreet.pipeline.spending import Spending
from discreet.pipeline.tabulating import Tabulator
from discreet.release.assemble import release_manifest, write_cube, write_shared
from discreet.release.folder import ReleaseFolder
from discreet.release.manifest import CubeEntry, Digests
from discreet.release.noise import noise_statement
from discreet.release.private import PrivateManifest, require_private_place, write_private_manifest
from discreet.release.publication import Publication
from discreet.release.writers import with_parquet, writers
from discreet.schema.programme import Programme
from discreet.swap.relocate import Relocations
from discreet.swap.result import SwapResult
from discreet.swap.swapping import swap
from discreet.tabulate.table import ConfidentialTable


@dataclass(frozen=True)
class Protected:
    """What a run published."""

    release: Path
    run_id: str
    cubes: int
    cells: int  # published, zeros not among them
    resumed: int  # cubes that an interrupted run had finished
    notes: tuple[str, ...]  # what noise and swapping could not have as it was declared


def protect(
    programme: Programme,
    secret: bytes,
    out: Path,
    private: Path,
    *,
    clock: Callable[[], datetime],
    threads: int = 1,
    progress: Progress | None = None,
    spending: Spending | None = None,
) -> Protected:
    """Count, perturb and publish every cube of a programme at ``out``, whole or not at all.

    The private manifest (full parameters, row counts) goes to ``private``, which must lie outside the release. With
    ``spending`` the release is charged to its account before it appears.
    """
    require_private_place(private, out)
    inputs = digest_inputs(programme, secret)
    chosen = mechanism(programme, secret, noise_key(programme, secret, inputs))
    run = _Run(programme, chosen, identify(programme, chosen, secret, inputs), progress or Quiet())
    run_id = run.identity.run_id()
    with ReleaseFolder(out, run_id) as folder:
        try:
            swapped = run.swapped(secret, threads)
            entries, rows, resumed = run.cubes(folder, secret, threads, swapped)
            if spending is not None:
                spending.charge(chosen, programme.release.name, run_id)
        except DiscreetError:
            folder.discard()
            raise
        notes = chosen.notes + (swapped.conflicts if swapped else ())
        write_private_manifest(run.private(run_id, rows, clock(), notes), private)
        run.publish(folder, entries)
    cells = sum(entry.cells for entry in entries)
    return Protected(out, run_id, len(entries), cells, resumed, notes)


@dataclass(frozen=True)
class _Run:
    programme: Programme
    mechanism: Mechanism
    identity: Identity
    progress: Progress

    def cubes(
        self, folder: ReleaseFolder, secret: bytes, threads: int, swapped: SwapResult | None
    ) -> tuple[list[CubeEntry], dict[str, int], int]:
        """Count, perturb and write the cubes that an earlier run of the same identity has not finished."""
        entries = {cube.id: entry for cube in self.programme.cubes if (entry := folder.finished(cube.id))}
        resumed = len(entries)
        makers = writers(self._publication())
        wanted = {form: makers[form] for form in with_parquet(self.programme.release.formats)}

        def finish(table: ConfidentialTable) -> None:
            entries[table.cube.id] = write_cube(folder, self.mechanism.perturb(table), wanted)

        left = [cube for cube in self.programme.cubes if cube.id not in entries]
        relocations = Relocations(self.programme, swapped.moves, secret) if swapped else None
        tabulator = Tabulator(self.programme, secret, self.mechanism, threads, self.progress, relocations)
        rows = tabulator.run(left, finish)
        return [entries[cube.id] for cube in self.programme.cubes], rows, resumed

    def swapped(self, secret: bytes, threads: int) -> SwapResult | None:
        """Swap households where the programme says so; the secret makes it the same in every run."""
        if self.programme.swap is None:
            return None
        return swap(self.programme, secret, threads, self.progress)

    def publish(self, folder: ReleaseFolder, entries: Sequence[CubeEntry]) -> None:
        """Add what belongs to no single cube, and put the release in its place."""
        self.progress.stage("publishing")
        publication, formats = self._publication(), self.programme.release.formats
        shared = write_shared(folder, self.programme.cubes, entries, formats, publication)
        fingerprint = self.identity.fingerprint
        folder.publish(release_manifest(publication, entries, shared, self._digests(), fingerprint))

    def private(
        self, run_id: str, rows: dict[str, int], finished: datetime, notes: tuple[str, ...]
    ) -> PrivateManifest:
        """What the office keeps of the run."""
        return PrivateManifest(
            release=self.programme.release.name,
            run_id=run_id,
            discreet_version=version("discreet"),
            finished=finished,
            parameters=self.programme.canonical(),
            digests=self._digests().model_dump(),
            rows=rows,
            secret_fingerprint=self.identity.fingerprint,
            notes=notes,
        )

    def _publication(self) -> Publication:
        rule, population = self.programme.release, self.programme.population
        columns = population.geography if population else ()
        noise = noise_statement(self.mechanism.facts(), rule.disclose)
        places = {v.name for v in self.programme.variables.values() if v.column in columns}
        swapped = self.programme.swap is not None
        return Publication(
            rule.name, rule.agency, rule.version, noise, geography=frozenset(places), swapped=swapped
        )

    def _digests(self) -> Digests:
        identity = self.identity
        return Digests(inputs=identity.inputs, parameters=identity.parameters, ptable=identity.ptable)
