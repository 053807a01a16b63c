"""Checks before and after a release: of declared data, and of release folders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.api.arguments import in_arguments, names_arguments
from discreet.api.audits import Published, release_of
from discreet.api.cubes import Cube
from discreet.api.declaration import Declaration
from discreet.api.drawings import shown
from discreet.api.noise import Noise
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import Secrets, earlier_releases, private_place, programme_of, spending_of
from discreet.api.releases import Release
from discreet.api.results import Result
from discreet.api.secret import secret_key
from discreet.api.tables import summary_frame
from discreet.engine.computing import computing
from discreet.engine.verifying import verified
from discreet.errors import DiscreetError, Problem, mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.register import Register
from discreet.io.signing_key import read_public_key
from discreet.page.markup import Html, listing, paragraph
from discreet.perturb.ledger import Ledger
from discreet.pipeline.check import Intention, judged
from discreet.pipeline.earlier import EarlierReleases
from discreet.pipeline.judgement import problems_of
from discreet.release.certify import Certified, verify_certificate
from discreet.release.verify import Verification

if TYPE_CHECKING:
    import pandas as pd

    from discreet.engine.spark import SparkEngine

__all__ = ["Checked", "check", "verify"]
UNKNOWN = (
    "Not judged here: gates, and what the release reveals beside an earlier one; rehearse(..) judges both."
)


@dataclass(frozen=True)
class Checked:
    """The problems of a programme and its data, and notes on what it would publish.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 1], "sex": ["F", "M"]}, person_id="pid")
    >>> found = ds.check(census, ds.Cube("sex"), ds.CellKey(V=2, D=5))
    >>> found.passed, len(found.problems)
    (False, 1)
    """

    problems: tuple[Problem, ...]
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there are no problems."""
        return not self.problems

    def summary(self) -> str:
        """The problems and notes, a line each."""
        return "\n".join((*(map(str, self.problems) if self.problems else ["No problems."]), *self.notes))

    def to_pandas(self) -> pd.DataFrame:
        """The problems as a pandas data frame."""
        return summary_frame([asdict(one) for one in self.problems], [one.name for one in fields(Problem)])

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> Html:
        found = listing(map(str, self.problems)) if self.problems else paragraph("No problems.")
        return shown([found, *map(paragraph, self.notes)])


@names_arguments
def check(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    secret: Secrets | None = None,
    out: str | Path | None = None,
    private_manifest: str | Path | None = None,
    register: str | Path | None = None,
    ledger: Ledger | str | Path | None = None,
    account: str = "",
    earlier: Iterable[Release | str | Path] = (),
    accept_corrections: bool = False,
    another_ptable: bool = False,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
    **declared: object,
) -> Checked:
    """Read all data of a programme and report every problem; nothing is counted or written.

    With the ``secret`` and other arguments of ``protect`` that a release would be made with, the register, the ledger
    and the places of files are judged, too. ``engine``: the Spark that reads the records, if not this machine.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> ds.check(census, ds.Cube("sex"), ds.CellKey(V=2, D=5))
    No problems.
    """
    if isinstance(what, str | Path):
        programme = Programme(Declaration.read(Path(what)))
    else:
        programme = programme_of(what, cubes, noise, **declared)
    release = (out, private_manifest, register, ledger, account, tuple(earlier))
    if secret is None and any(release):
        remedy = "give it: register, ledger and private manifest are judged with it"
        raise mistake("", "secret", "is missing, and arguments of a release are given", remedy)
    inspected = programme.declaration.inspect()
    sound = inspected.sound
    if sound is None:
        return Checked(tuple(inspected.problems))
    problems = list(inspected.problems)
    intended: Intention | None = None
    if secret is not None:
        try:
            beside = earlier_releases(earlier, accept_corrections)
            intended = _intended(secret, *release[:5], beside, another_ptable)
        except DiscreetError as error:
            problems += problems_of(error)
    with computing(sound, given=engine) as where, shown_progress(not progress) as listener:
        if intended is not None:
            intended = replace(intended, engine=where.engine)
        problems, notes = judged(problems, where.programme, cores(threads), listener, intended, where.engine)
    if not problems and sound.gates.declared:
        notes.append(UNKNOWN)
    return Checked(tuple(problems), tuple(map(in_arguments, notes)))


def _intended(
    secret: Secrets,
    out: str | Path | None,
    private_manifest: str | Path | None,
    register: str | Path | None,
    ledger: Ledger | str | Path | None,
    account: str,
    earlier: EarlierReleases,
    another_ptable: bool,
) -> Intention:
    """The release as ``protect`` would make it."""
    key = secret_key(secret)
    return Intention(
        secret=key.key,
        clock=lambda: datetime.now(UTC),
        out=None if out is None else Path(out),
        private=None if out is None else private_place(private_manifest, key, Path(out)),
        register=key.register() if register is None else Register.of(Path(register), key.key),
        spending=spending_of(ledger, account, key),
        earlier=earlier,
        another_ptable=another_ptable,
    )


@names_arguments
def verify(
    release: Published,
    *,
    certificate: bool = False,
    public_key: str | Path | None = None,
    engine: SparkEngine | None = None,
) -> Result[Verification] | Result[Certified]:
    """Recompute every checksum of a release, and compare the cells that occur in several of its tables.

    With ``certificate`` its guarantee is recomputed instead. With the office's ``public_key`` the release must also be
    signed with it. With an ``engine`` a task of Spark reads the release, which can be at an address of its own.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> ds.verify(table).passed
    True
    """
    if certificate:
        if engine is not None:
            raise mistake("", "engine", "with certificate", "copy the certificate to this machine")
        folder = Path(release) if isinstance(release, str | Path) else release_of(release).folder
        proven = verify_certificate(folder)
        state = "certified" if proven.passed else "the certificate does not prove its claim"
        return Result(proven, (f"{proven.name}: {state}.", proven.claim, *proven.problems))
    place = str(release) if isinstance(release, str | Path) else str(release_of(release).folder)
    key = None if public_key is None else read_public_key(Path(public_key))
    found = verified(place, key, given=engine)
    cubes = f"{found.cubes:,} cube{'' if found.cubes == 1 else 's'}"
    facts = f"{found.files:,} files, {cubes}, {found.cells:,} cells"
    return Result(
        found, (f"{found.name}: {'passed' if found.passed else 'failed'}. {facts}.", *found.problems)
    )
