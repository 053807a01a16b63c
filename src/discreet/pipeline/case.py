"""What an auditor holds of a release: its programme, its secret, the published tables and the true counts.

It owns how these are brought together and that they belong together; what is measured on them is in measures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from discreet.audit.published import KnownNoise, Published, PublishedTable, Universe
from discreet.audit.truth import Truth
from discreet.errors import mistake
from discreet.maths.keys import derive
from discreet.perturb.choose import mechanism
from discreet.perturb.mechanism import Mechanism
from discreet.pipeline.identity import digest_inputs, identify, noise_key
from discreet.pipeline.progress import Progress, Quiet
from discreet.pipeline.truth import true_counts
from discreet.population.block import Codes
from discreet.population.needs import needs_of
from discreet.population.reading import UnitReader
from discreet.release.noise import noise_statement
from discreet.release.outsider import known_noise, published
from discreet.release.read import Release
from discreet.schema.cube import Cube
from discreet.schema.programme import Programme
from discreet.schema.rules import Disclosure


@dataclass(frozen=True, eq=False, repr=False)
class Case:
    """A release and everything behind it; attacks on it know the whole law of the noise, the worst case."""

    programme: Programme
    secret: bytes
    mechanism: Mechanism
    published: Published
    truth: Truth
    threads: int = 1

    def columns(self, unit: str, names: Sequence[str], progress: Progress) -> dict[str, Codes]:
        """Some variables of a unit's records, as leaves of their codelists, before swapping."""
        return read_columns(self.programme, self.secret, unit, names, self.threads, progress)


def open_case(
    programme: Programme, secret: bytes, release: Release, threads: int = 1, progress: Progress | None = None
) -> Case:
    """Bring a release and its confidential side together; one that does not belong to it is refused."""
    told = progress or Quiet()
    inputs = digest_inputs(programme, secret)
    chosen = mechanism(programme, secret, noise_key(programme, secret, inputs))
    _require_same(programme, chosen, secret, inputs, release)
    return make_case(programme, secret, chosen, release, threads, told)


def make_case(
    programme: Programme, secret: bytes, chosen: Mechanism, release: Release, threads: int, progress: Progress
) -> Case:
    """Count the truth again and read the published tables with the office's knowledge of the noise."""
    truth = true_counts(programme, secret, chosen, programme.cubes, threads, progress)
    return Case(programme, secret, chosen, informed(published(release), chosen), truth, threads)


def informed(seen: Published, chosen: Mechanism) -> Published:
    """The same tables before somebody who knows the whole law of the noise."""
    return replace(seen, noise=law_of(chosen))


def law_of(chosen: Mechanism) -> KnownNoise:
    """Everything about a mechanism but its key."""
    return known_noise(noise_statement(chosen.facts(), Disclosure.LAW))


def as_published(case: Case, tables: dict[str, PublishedTable], noise: KnownNoise) -> Published:
    """The release with other values in some of its tables; those without are left out."""
    universes = [
        replace(universe, tables=tuple(tables[one.id] for one in universe.tables if one.id in tables))
        for universe in case.published.universes
    ]
    return replace(case.published, universes=tuple(filter(_has_tables, universes)), noise=noise)


def read_columns(
    programme: Programme, secret: bytes, unit: str, names: Sequence[str], threads: int, progress: Progress
) -> dict[str, Codes]:
    """Read some variables of a unit's records."""
    population = programme.population
    if population is None or unit not in population.units:
        raise mistake(programme.path, "population", f"no records of {unit}", "declare their table")
    axes = tuple(max(programme.variables[name].breakdowns.values(), key=len) for name in dict.fromkeys(names))
    needs = needs_of(programme, population.units[unit], [Cube("records", unit, axes)])
    progress.stage(f"reading {unit}")
    parts: list[dict[str, Codes]] = []
    for block in UnitReader(needs, secret, threads).blocks():
        parts.append({name: block.codes[name] for name in names})
        progress.step(len(block))
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _require_same(
    programme: Programme, chosen: Mechanism, secret: bytes, inputs: str, release: Release
) -> None:
    """The public manifest carries keyed digests of what made the release: each is compared."""
    manifest, folder = release.manifest, release.folder
    if manifest.secret_fingerprint != derive(secret, "fingerprint", 8).hex():
        raise mistake(
            folder, "secret", "is not the one that made this release", "give the release's own secret"
        )
    identity = identify(programme, chosen, secret, inputs)
    if (identity.parameters, identity.ptable) != (manifest.digests.parameters, manifest.digests.ptable):
        remedy = "give the programme as it was when the release was made, or protect again"
        raise mistake(folder, "programme", "is not the one that made this release", remedy)
    if identity.inputs != manifest.digests.inputs:
        raise mistake(folder, "microdata", "are not those of this release", "restore them, or protect again")


def _has_tables(universe: Universe) -> bool:
    return bool(universe.tables)
