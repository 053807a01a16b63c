"""An auditor's case: programme, secret, published tables, true counts; and its tables under other protections."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from discreet.audit.evidence import Cells, Published, PublishedTable, Records, Truth, Universe, published
from discreet.errors import BrokenRelease, Mistakes, mistake
from discreet.io.progress import Progress
from discreet.maths.cells import counting
from discreet.maths.cells.keys import derive
from discreet.maths.noise.additive import LawKind
from discreet.perturb.choose import mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.perturb.noise import Noise, cell_key_noise
from discreet.population.encode import Codes
from discreet.programme.cube import Cube
from discreet.programme.noise import BudgetRule, Claim, PrivateNoise
from discreet.programme.programme import Programme
from discreet.programme.sources import FileSource
from discreet.release.reader import Release
from discreet.run.identity import Identity, are_recognised, begin_again, file_states, require_unchanged
from discreet.run.run import Engine, Places, Run
from discreet.run.tabulating import tabulate
from discreet.tabulate.tables import ConfidentialTable, ProtectedTable


def true_counts(run: Run, cubes: Sequence[Cube]) -> Truth:
    """Count cubes before swapping, and after it where the programme swaps.

    Without keys of records it is not known which cells count the same ones.
    """
    original, records = _counted(run, cubes)
    places = run.places()
    if places is None:
        return Truth(original, original, records)
    return Truth(original, *_counted(run, cubes, places), records)


def _counted(
    run: Run, cubes: Sequence[Cube], places: Places | None = None
) -> tuple[dict[str, Cells], dict[str, Records]]:
    if not run.keyed:
        return dict(tabulate(run, cubes, occupied, places).made), {}
    found = tabulate(run, cubes, kept, places).made
    cells = {name: cells for name, (cells, _) in found.items()}
    return cells, {name: records for name, (_, records) in found.items()}


def kept(table: ConfidentialTable) -> tuple[Cells, Records]:
    """The non-empty cells of a table with their true counts, and which of them count the same records.

    The latter are a cell's key and its count. Cells of other records are equal in one of 2^32 cases; they then have the
    same noise, too.
    """
    here, counts, records = counting.occupied(table.cells)
    return (here if table.positions is None else table.positions[here], counts), records


def store_truth(run: Run, folder: Path) -> None:
    """Count the cubes where an engine counts, before swapping and after it, and leave them in a private folder."""
    tabulate(run, run.programme.cubes, partial(_stored, folder, _ORIGINAL))
    swapped = run.swap(folder)
    if swapped is not None:
        tabulate(run, run.programme.cubes, partial(_stored, folder, _COUNTED), swapped.places)


def _stored(folder: Path, side: str, table: ConfidentialTable) -> None:
    (cells, counts), records = kept(table)
    draft = folder / f"{secrets.token_hex(8)}.npz"
    np.savez(draft, cells=cells, counts=counts, records=records)
    draft.replace(_place(folder, side, table.cube))


def _place(folder: Path, side: str, cube: Cube) -> Path:
    return folder / f"{side} {quote(cube.id, safe='')}.npz"


def stored_truth(programme: Programme, folder: Path) -> Truth:
    """The true counts that tasks have stored."""
    original, records = _read_stored(programme, folder, _ORIGINAL)
    if programme.swap is None:
        return Truth(original, original, records)
    return Truth(original, *_read_stored(programme, folder, _COUNTED), records)


def _read_stored(
    programme: Programme, folder: Path, side: str
) -> tuple[dict[str, Cells], dict[str, Records]]:
    cells, records = {}, {}
    for cube in programme.cubes:
        with np.load(_place(folder, side, cube)) as found:
            cells[cube.id], records[cube.id] = (found["cells"], found["counts"]), found["records"]
    return cells, records


_ORIGINAL, _COUNTED = "original", "counted"


def occupied(table: ConfidentialTable) -> Cells:
    """The non-empty cells of a table and their true counts."""
    return kept(table)[0]


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """A release and everything behind it; attacks on it know the whole law of the noise, the worst case."""

    run: Run
    published: Published
    truth: Truth

    @property
    def programme(self) -> Programme:
        """The programme of the release."""
        return self.run.programme

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the noise."""
        return self.run.mechanism

    def columns(self, unit: str, names: Sequence[str], progress: Progress) -> dict[str, Codes]:
        """Some variables of a unit's records, as leaves of their codelists, before swapping."""
        return _read_columns(replace(self.run, progress=progress), unit, names)


def open_case(
    programme: Programme,
    secret: bytes,
    release: Release,
    threads: int = 1,
    progress: Progress | None = None,
    others: Iterable[Case] = (),
) -> Case:
    """Bring a release and its confidential side together; anything of another release is rejected.

    The true counts of ``others`` are those of this release where the same records were counted for the same tables.
    """
    return _case(recognise(programme, secret, release, threads, progress), release, others)


def open_counts(
    programme: Programme,
    secret: bytes,
    release: Release,
    threads: int = 1,
    progress: Progress | None = None,
    others: Iterable[Case] = (),
) -> Case:
    """The same for measures that only compare counts: keys of records are not known.

    The release states the digest of its records, so that these are the ones that were judged when it was made: ids and
    structural zeros, which change no count, are not judged again. Records without a digest, in a database, are.
    """
    run, identity = _recognised(programme, secret, release, threads, progress)
    case = _case(replace(run, keyed=not are_recognised(programme)), release, others)
    require_unchanged(programme, identity)
    return case


def _case(run: Run, release: Release, others: Iterable[Case]) -> Case:
    known = (other.truth for other in others if counts_the_same(run, other.run))
    return make_case(run, release, next(known, None))


def counts_the_same(run: Run, other: Run) -> bool:
    """Whether two runs count the same files of records into the same tables, whatever noise they add."""
    files = file_states(run.programme)
    return (
        bool(files)
        and files == file_states(other.programme)
        and (run.secret, run.keyed) == (other.secret, other.keyed)
        and _counted_by(run.programme) == _counted_by(other.programme)
    )


def _counted_by(programme: Programme) -> dict[str, Any]:
    """Everything declared that true counts depend on, and more; records that are not in files have no state."""
    units = programme.population.units.values() if programme.population else ()
    declared = {name: what for name, what in programme.canonical().items() if name not in _NOT_COUNTED}
    apart = [unit.source for unit in units if not isinstance(unit.source, FileSource)]
    return {**declared, "split": programme.release.split, "apart": list(map(id, apart))}


_NOT_COUNTED = {"noise", "release", "labels"}


def recognise(
    programme: Programme,
    secret: bytes,
    release: Release,
    threads: int = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Run:
    """The run that made a release; programme, secret or microdata of another release are rejected."""
    return _recognised(programme, secret, release, threads, progress, engine)[0]


def _recognised(
    programme: Programme,
    secret: bytes,
    release: Release,
    threads: int,
    progress: Progress | None,
    engine: Engine | None = None,
) -> tuple[Run, Identity]:
    salt = release.manifest.digests.salt
    run, identity = begin_again(programme, secret, salt, threads, progress, engine)
    _require_same(identity, release)
    return run, identity


def make_case(run: Run, release: Release, truth: Truth | None = None) -> Case:
    """Count the records again and read the published tables with the office's knowledge of the noise."""
    truth = true_counts(run, run.programme.cubes) if truth is None else truth
    return Case(run, informed(published(release), run.mechanism), truth)


@dataclass(frozen=True, eq=False, repr=False)
class Earlier:
    """An earlier release of the same population, which is subtracted from the audited one."""

    published: Published
    truth: Truth | None  # its own true counts; None where its programme is not given
    same_secret: bool  # whether both releases were made with one secret
    same_ptable: bool = True  # whether that gives the same people the same noise in both


def informed(seen: Published, chosen: Mechanism) -> Published:
    """The same tables for an attacker who knows the whole law of the noise."""
    known = chosen.noise()
    return replace(seen, noise=known.of_adjusted() if seen.noise.adjusted else known)


def as_published(case: Case, tables: dict[str, PublishedTable], noise: Noise) -> Published:
    """The release with other values in some of its tables; those without are left out."""
    universes = [
        replace(universe, tables=tuple(tables[one.id] for one in universe.tables if one.id in tables))
        for universe in case.published.universes
    ]
    return replace(case.published, universes=tuple(filter(_has_tables, universes)), noise=noise)


def _read_columns(run: Run, unit: str, names: Sequence[str]) -> dict[str, Codes]:
    """Read some variables of a unit's records."""
    programme, population = run.programme, run.programme.population
    if population is None or unit not in population.units:
        raise mistake(programme.path, "population", f"no records of {unit}", "declare their table")
    axes = tuple(max(programme.variables[name].breakdowns.values(), key=len) for name in dict.fromkeys(names))
    run.progress.stage(f"reading {unit}")
    blocks = run.blocks(population.units[unit], [Cube("records", unit, axes)])
    parts = [{name: block.codes[name] for name in names} for block in blocks]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _require_same(identity: Identity, release: Release) -> None:
    """Compare the keyed digests in the public manifest with what made the release."""
    manifest, folder = release.manifest, release.folder
    if manifest.secret_fingerprint != identity.fingerprint:
        raise mistake(
            folder, "secret", "is not the one that made this release", "give the release's own secret"
        )
    if (identity.parameters, identity.ptable) != (manifest.digests.parameters, manifest.digests.ptable):
        remedy = "give the programme as it was when the release was made, or protect again"
        raise mistake(folder, "programme", "is not the one that made this release", remedy)
    if identity.inputs != manifest.digests.inputs:
        raise mistake(folder, "microdata", "are not those of this release", "restore them, or protect again")


def _has_tables(universe: Universe) -> bool:
    return bool(universe.tables)


EXACT = cell_key_noise(variance=0.0, bound=0)  # no change at all
COMPARED_EPSILON = Fraction(1)  # of all compared tables, for releases without a guarantee


def variants(case: Case, place: str, left_out: dict[str, str]) -> Iterator[tuple[str, Published]]:
    """The tables about places, by protection; those that equal the release itself are left out.

    A protection that is not available for these tables is added to ``left_out`` with the reason.
    """
    cubes = [cube for cube in case.programme.cubes if _is_about(cube, place) and not cube.weight]
    yield "none", _exact(case, cubes, case.truth.original)
    if case.truth.is_swapped:
        yield "swapping only", _exact(case, cubes, case.truth.counted)
        yield "noise only", _noisy(case, cubes, case.mechanism)
    name = f"epsilon {COMPARED_EPSILON} for these tables"
    try:
        private = _private(case, cubes)
        noisy = _noisy(case, cubes, private) if private else None
    except (Mistakes, BrokenRelease) as impossible:
        left_out[name] = str(impossible)
    else:
        if noisy:
            yield name, noisy


def _is_about(cube: Cube, place: str) -> bool:
    return any(axis.variable == place for axis in cube.axes)


def _exact(case: Case, cubes: list[Cube], truth: Mapping[str, Cells]) -> Published:
    tables = {cube.id: _table(cube, truth[cube.id]) for cube in cubes}
    return as_published(case, tables, EXACT)


def _private(case: Case, cubes: list[Cube]) -> Mechanism | None:
    """Geometric noise with a budget of one for these tables; None where the release has its own law already."""
    if isinstance(case.programme.noise, PrivateNoise):
        return None
    rule = PrivateNoise(LawKind.GEOMETRIC, BudgetRule(COMPARED_EPSILON), claim=Claim.NONE)
    programme = replace(case.programme, cubes=tuple(cubes), noise=rule, swap=None)
    return mechanism(programme, case.run.secret, derive(case.run.secret, "compared-protection"))


def _noisy(case: Case, cubes: list[Cube], chosen: Mechanism) -> Published:
    """Perturb the counts before swapping."""
    truth, made = case.truth, {}
    for cube in cubes:
        cells, _ = truth.original[cube.id]
        made[cube.id] = _shown(
            chosen.perturb(ConfidentialTable(cube, truth.original_records[cube.id], cells))
        )
    return as_published(case, made, chosen.noise())


def _shown(protected: ProtectedTable) -> PublishedTable:
    return _table(protected.cube, (protected.cells, protected.values))


def _table(cube: Cube, cells: Cells) -> PublishedTable:
    return PublishedTable(cube, lambda: cells)
