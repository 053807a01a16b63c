"""From a programme and a secret to a protected release: swap, count, perturb, judge, charge, publish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.audit.verdict import GateVerdict, require_passed
from discreet.errors import DiscreetError, Mistakes
from discreet.formats.publication import Publication
from discreet.formats.writers import with_parquet
from discreet.hierarchy.blocks import Block, blocks_of
from discreet.hierarchy.mechanism import HierarchicalMechanism
from discreet.io.progress import Progress
from discreet.io.register import Register
from discreet.lazy import lazily
from discreet.perturb.mechanism import Mechanism
from discreet.pipeline.earlier import (
    NO_EARLIER,
    EarlierReleases,
    Pair,
    found_pairs,
    judge_pairs,
    pairs_with_earlier,
    require_comparable,
    require_releases,
)
from discreet.pipeline.judgement import (
    declared_problems,
    divided_warnings,
    found_data_problems,
    found_warnings,
    problems_of,
)
from discreet.pipeline.spending import Paid, Spending, uncharged
from discreet.programme.programme import Programme
from discreet.programme.release import ReleaseFormat
from discreet.programme.statistic import together
from discreet.release.assemble import release_manifest, write_cube, write_shared
from discreet.release.folder import ReleaseFolder, require_replaceable
from discreet.release.manifest import (
    CubeEntry,
    Digests,
    FileEntry,
    Manifest,
    PrivateManifest,
    require_outside,
    require_private_place,
    write_private_manifest,
)
from discreet.release.reader import Release
from discreet.run.identity import Identity, RunDigests, begin, begin_again, keyed_digest, require_unchanged
from discreet.run.issued import Issuing, issuing
from discreet.run.run import Engine, Inspection, Places, Run, Swapped, require_none
from discreet.run.tabulating import tabulate, tabulate_together
from discreet.tabulate.tables import ConfidentialTable, NoisyTable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from discreet.audit.corrections import Corrections
    from discreet.hierarchy import consistent
    from discreet.perturb import private as private_noise
    from discreet.pipeline import hierarchical
    from discreet.release import certificate
else:
    consistent, hierarchical = (
        lazily("discreet.hierarchy.consistent"),
        lazily("discreet.pipeline.hierarchical"),
    )
    private_noise, certificate = lazily("discreet.perturb.private"), lazily("discreet.release.certificate")

UNCHARGED = (
    "the noise is new in every run: publishing the same tables again adds its epsilon or rho to this one's; name the "
    "records with noise.snapshot, or give --ledger and --account"
)


@dataclass(frozen=True)
class Protected:
    """The result of a run that published a release."""

    release: Path
    run_id: str
    cubes: int
    cells: int  # published, without zeros
    resumed: int  # cubes that an interrupted run had finished
    notes: tuple[str, ...]  # warnings, and where noise and swapping deviate from the declaration
    verdicts: tuple[GateVerdict, ...] = ()  # of the gates that are declared; all passed
    revealed: tuple[Corrections, ...] = ()  # together with releases that were published before
    paid: Paid | None = None  # what it cost, where a guarantee is claimed


def protect(
    programme: Programme,
    secret: bytes,
    out: Path,
    private: Path | None,
    *,
    clock: Callable[[], datetime],
    threads: int = 1,
    progress: Progress | None = None,
    spending: Spending | None = None,
    register: Register | None = None,
    earlier: EarlierReleases = NO_EARLIER,
    another_ptable: bool = False,
    signing: Ed25519PrivateKey | None = None,
    engine: Engine | None = None,
) -> Protected:
    """Count and perturb every cube of a programme and publish them atomically at ``out``.

    The private manifest (full parameters, row counts) goes to ``private``, which must be outside the release; None
    writes none, for a release that stays in memory. With
    ``spending`` the release is charged to its account before any noise is drawn: what a killed run leaves behind is
    paid for. ``register`` is that of the secret; a declared snapshot needs it, and releases by the cell key method are
    recorded in it: another p-table than those recorded is refused, unless ``another_ptable`` accepts the risk. If a
    gate of the programme is broken, or the release exposes persons together with one that it replaces or that is in
    ``earlier``, nothing is published. With ``signing`` the release appears signed. ``engine``: where records
    are read and counted, if not on this machine.
    """
    ready = prepare(
        programme,
        secret,
        out,
        private,
        clock=clock,
        threads=threads,
        progress=progress,
        spending=spending,
        register=register,
        earlier=earlier,
        another_ptable=another_ptable,
        engine=engine,
    )
    making, issued = ready.making, ready.issued
    accepted = () if issued is None else issued.notes
    with ReleaseFolder(out, making.run_id) as folder:
        try:
            made = making.make(folder)
            verdicts = making.judged(folder, made)
            require_passed(verdicts)
            pairs = making.pairs(folder, made, out, earlier)
            beside = replace(earlier, another_ptable=another_ptable)
            revealed = judge_pairs(pairs, programme.gates.corrections, beside)
            if private is not None:
                write_private_manifest(making.private(made, clock()), private)
            if issued is not None:
                issued.record()
        except DiscreetError:
            folder.discard()
            raise
        folder.publish(made.manifest, signing)
    cells = sum(entry.cells for entry in made.manifest.cubes)
    notes = made.notes + accepted
    if programme.noise.is_guaranteed and making.identity.snapshot is None and spending is None:
        notes += (UNCHARGED,)
    paid = uncharged(making.mechanism) if spending is None else spending.paid(making.mechanism, ready.again)
    return Protected(
        out,
        making.run_id,
        len(made.manifest.cubes),
        cells,
        made.resumed,
        notes,
        tuple(verdicts),
        revealed,
        paid,
    )


@dataclass(frozen=True)
class Prepared:
    """A run that nothing known beforehand refuses."""

    making: _Protecting
    issued: Issuing | None  # what is recorded of it
    again: bool  # whether its account was charged for it before


def prepare(
    programme: Programme,
    secret: bytes,
    out: Path | None,
    private: Path | None,
    *,
    clock: Callable[[], datetime],
    threads: int = 1,
    progress: Progress | None = None,
    spending: Spending | None = None,
    register: Register | None = None,
    earlier: EarlierReleases = NO_EARLIER,
    another_ptable: bool = False,
    engine: Engine | None = None,
) -> Prepared:
    """Judge all that can be known before a record is read, or raise every problem; ``check`` asks the same.

    Without ``out`` or ``private`` the place of the release is not judged. Nothing is written, bound or charged.
    """
    errors = _Errors()
    with errors.gathering():
        if out is not None and private is not None:
            require_private_place(private, out)
    with errors.gathering():
        if out is not None and register is not None:
            require_outside(register.path, "register", out)
    with errors.gathering():
        if out is not None:
            require_replaceable(out)
            require_comparable(out, earlier)
        require_releases(earlier)
    making, issued, again = None, None, False
    with errors.gathering():
        making = _Protecting(*begin(programme, secret, threads, progress, register, engine), spending)
    with errors.gathering():
        require_none(declared_problems(programme, None if making is None else making.mechanism))
    if making is not None:
        with errors.gathering():
            issued = making.issuing(register, clock(), another_ptable)
            if issued is not None:
                issued.require()
        with errors.gathering():
            again = spending is not None and spending.require(making.mechanism, making.charge_key())
    errors.require_none()
    assert making is not None
    return Prepared(making, issued, again)


class _Errors:
    """The errors of several steps, raised together."""

    def __init__(self) -> None:
        self._found: list[DiscreetError] = []

    @contextmanager
    def gathering(self) -> Iterator[None]:
        """Note what a step raises on purpose."""
        try:
            yield
        except DiscreetError as error:
            self._found.append(error)

    def require_none(self) -> None:
        """Raise the only error as it is, or all problems at once."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise Mistakes(dict.fromkeys(one for error in self._found for one in problems_of(error)))


def rehearse(
    programme: Programme,
    secret: bytes,
    out: Path,
    threads: int = 1,
    progress: Progress | None = None,
    earlier: EarlierReleases = NO_EARLIER,
    engine: Engine | None = None,
) -> list[GateVerdict]:
    """Run all steps of protect up to its gates, and judge them; nothing is published, charged or stored.

    Noise with a guarantee is drawn for this only: it is not that of any release.
    """
    require_releases(earlier)
    making = _Protecting(*begin_again(programme, secret, "", threads, progress, engine))
    require_none(declared_problems(programme, making.mechanism))
    with ReleaseFolder(out, f"{making.run_id}rehearsal") as folder:
        try:
            made = making.make(folder)
            pairs = making.pairs(folder, made, out, earlier)
            beside = [pair.verdict(programme.gates.corrections) for pair in pairs]
            return [*making.judged(folder, made), *beside]
        finally:
            folder.discard()


@dataclass(frozen=True)
class _Made:
    """A release that is written and not yet published."""

    manifest: Manifest
    rows: dict[str, int]
    resumed: int
    notes: tuple[str, ...]


def _published_cube(
    mechanism: Mechanism,
    folder: ReleaseFolder,
    publication: Publication,
    formats: Sequence[ReleaseFormat],
    split: bool,
    table: ConfidentialTable,
) -> CubeEntry:
    """Perturb one cube and write its files."""
    return write_cube(folder, mechanism.perturb(table), publication, formats, split)


def _adjusted_cubes(
    blocks: Sequence[Block],
    folder: ReleaseFolder,
    publication: Publication,
    formats: Sequence[ReleaseFormat],
    split: bool,
    noisy: list[NoisyTable],
    progress: Progress,
) -> dict[str, CubeEntry]:
    """Fit all noisy tables so that they add up, and write the files of every cube."""
    progress.stage("making totals add up", len(noisy))
    tables = consistent.tables_that_add_up(blocks, {table.cube.id: table for table in noisy}, progress)
    return {one.cube.id: write_cube(folder, one, publication, formats, split) for one in tables}


def _places(swapped: Swapped | None) -> Places | None:
    return swapped.places if swapped else None


class _Protecting:
    """The steps of a run that makes a release."""

    def __init__(self, run: Run, identity: Identity, spending: Spending | None = None) -> None:
        self.run, self.identity, self.spending = run, identity, spending
        self.programme, self.mechanism = run.programme, run.mechanism
        self.run_id = identity.run_id()
        self._measured: tuple[FileEntry, ...] = ()  # of a hierarchical release, beside its cubes
        self._fit_notes: tuple[str, ...] = ()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Which cubes are fitted together, where totals must add up."""
        return blocks_of(self.programme) if self.programme.release.consistent else ()

    def issuing(self, register: Register | None, time: datetime, forced: bool) -> Issuing | None:
        """What is recorded of the release, where its noise has cell keys."""
        identity = self.identity
        digests = RunDigests(identity.inputs, identity.parameters, identity.ptable)
        return issuing(
            self.programme, self.mechanism, digests, register, run_id=self.run_id, time=time, forced=forced
        )

    def make(self, folder: ReleaseFolder) -> _Made:
        """Swap, count, perturb and write everything that an earlier run of the same identity has not finished."""
        finished = {cube.id: entry for cube in self.programme.cubes if (entry := folder.finished(cube.id))}
        inspection = Inspection(self._inspected(finished))
        require_none(self.run.call(found_data_problems, self.programme, inspection.units))
        warnings = self.run.call(found_warnings, self.programme, inspection.units)
        swapped = self.run.swap(folder.private)
        run = replace(self.run, inspection=inspection)
        entries, rows, resumed = self._cubes(run, folder, finished, swapped)
        warnings = divided_warnings(inspection.divided) + warnings
        require_unchanged(self.programme, self.identity)
        self.run.progress.stage("writing codelists and notes")
        publication, formats = self._publication(), self.programme.release.formats
        shared = write_shared(
            folder, self.programme.cubes, entries, formats, publication, self._certificate()
        )
        shared = (*shared, *self._measured)
        manifest = release_manifest(publication, entries, shared, self._digests(), self.identity.fingerprint)
        notes = warnings + self.mechanism.notes + self._fit_notes + (swapped.conflicts if swapped else ())
        return _Made(manifest, rows, resumed, notes)

    def _inspected(self, finished: Mapping[str, CubeEntry]) -> frozenset[str]:
        """The units whose geography is judged while they are counted: swapping needs it before, and executors count
        only parts of a table."""
        if self.programme.swap is not None or self.run.engine is not None:
            return frozenset()
        if self.programme.hierarchy is not None:
            return frozenset({self.programme.hierarchy.unit})
        left = [cube for cube in self.programme.cubes if cube.id not in finished]
        if left and self.blocks:
            left = list(self.programme.cubes)  # tables that are fitted together are all counted again
        return frozenset(cube.unit for cube in left if cube.id not in self.programme.ready_made)

    def _certificate(self) -> str | None:
        chosen = self.mechanism
        if isinstance(chosen, HierarchicalMechanism):
            return certificate.hierarchical_certificate(chosen, self.programme.release.name)
        is_guaranteed = self.programme.noise.is_guaranteed
        if not is_guaranteed or not isinstance(chosen, private_noise.PrivateMechanism):
            return None
        return certificate.certificate(chosen, self.programme.cubes, self.programme.release.name)

    def judged(self, folder: ReleaseFolder, made: _Made) -> list[GateVerdict]:
        """Judge the gates on what was written, as an audit would."""
        gates = self.programme.gates
        if not gates.declared:
            return []
        # importing the attacks takes longer than making a small release, and most runs declare no gates
        from discreet.audit.gates import judge_release  # noqa: PLC0415

        return judge_release(self.run, Release(folder.tree, made.manifest))

    def pairs(
        self, folder: ReleaseFolder, made: _Made, out: Path, earlier: EarlierReleases
    ) -> Iterator[Pair]:
        """What the release reveals beside those published before."""
        release, noise = Release(folder.tree, made.manifest), self.mechanism.noise()
        known = noise.of_adjusted() if self.programme.adds_up else noise
        if self.run.engine is None:
            yield from pairs_with_earlier(release, out, earlier, known, self.run.progress)
        elif earlier.compared_with(out):
            found, lines = self.run.call(found_pairs, release, out.resolve(), earlier.untold(), known)
            for line in lines:
                earlier.tell(line)
            yield from found

    def _cubes(
        self, run: Run, folder: ReleaseFolder, finished: Mapping[str, CubeEntry], swapped: Swapped | None
    ) -> tuple[list[CubeEntry], dict[str, int], int]:
        entries, resumed = dict(finished), len(finished)
        publication, formats = self._publication(), with_parquet(self.programme.release.formats)
        split = self.programme.release.split
        if isinstance(self.mechanism, HierarchicalMechanism):
            fitting = hierarchical.Fitting(self.programme, self.mechanism, folder, publication, run.threads)
            written, rows = fitting.make(run, _places(swapped), self._pay)
            self._measured, self._fit_notes = written.files, written.notes
            return [written.cubes[cube.id] for cube in self.programme.cubes], dict(rows), 0
        if self.blocks and resumed < len(self.programme.cubes):
            entries, rows = self._adjusted(run, folder, swapped, publication)
            return [entries[cube.id] for cube in self.programme.cubes], rows, 0
        finish = partial(_published_cube, self.mechanism, folder, publication, formats, split)
        left = [cube for cube in self.programme.cubes if cube.id not in entries]
        found = tabulate(run, left, finish, _places(swapped), self._paying)
        entries.update(found.made)
        return [entries[cube.id] for cube in self.programme.cubes], dict(found.rows), resumed

    @property
    def _paying(self) -> Callable[[], None] | None:
        """What is called before noise is drawn; None where it costs nothing."""
        waits = self.programme.noise.is_guaranteed or self.identity.snapshot is not None
        return self._pay if waits else None

    def _pay(self) -> None:
        """Bind the snapshot and charge the account: the last step before noise is drawn."""
        if self.identity.snapshot is not None:
            self.identity.snapshot.bind()
        if self.spending is not None:
            self.spending.charge(self.mechanism, self.programme.release.name, self.charge_key())

    def charge_key(self) -> str:
        """The same noise of the same statistics costs nothing again; fresh noise is never the same."""
        chosen, snapshot = self.mechanism, self.identity.snapshot
        if snapshot is None or not isinstance(chosen, private_noise.PrivateMechanism | HierarchicalMechanism):
            return self.run_id
        return keyed_digest(together(chosen.identities(self.programme.cubes)).encode(), chosen.key)

    def _adjusted(
        self, run: Run, folder: ReleaseFolder, swapped: Swapped | None, publication: Publication
    ) -> tuple[dict[str, CubeEntry], dict[str, int]]:
        """Perturb all cubes before one is written: their cells are fitted together."""
        cubes, formats = self.programme.cubes, with_parquet(self.programme.release.formats)
        fit = partial(
            _adjusted_cubes, self.blocks, folder, publication, formats, self.programme.release.split
        )
        written, rows = tabulate_together(
            run, cubes, self.mechanism.measure, fit, _places(swapped), self._paying
        )
        return written, dict(rows)

    def private(self, made: _Made, finished: datetime) -> PrivateManifest:
        """The private manifest of the run."""
        return PrivateManifest(
            release=self.programme.release.name,
            run_id=self.run_id,
            discreet_version=version("discreet"),
            finished=finished,
            parameters=self.programme.canonical(),
            digests=self._digests().model_dump(),
            rows=made.rows,
            secret_fingerprint=self.identity.fingerprint,
            notes=made.notes,
        )

    def _publication(self) -> Publication:
        rule = self.programme.release
        noise = replace(self.mechanism.noise().public(rule.disclose), adjusted=self.programme.adds_up)
        swapped = self.programme.swap is not None
        return Publication(
            rule.name,
            rule.agency,
            rule.version,
            noise,
            rule.title,
            frozenset(self.programme.places),
            swapped,
            self.programme.labels,
            tuple(dict.fromkeys(zero.text for zero in self.programme.structural_zeros)),
            {cube.id: cube.title for cube in self.programme.cubes},
            rule.language,
        )

    def _digests(self) -> Digests:
        identity = self.identity
        return Digests(
            inputs=identity.inputs,
            parameters=identity.parameters,
            ptable=identity.ptable,
            salt=identity.salt,
        )
