"""Checks before and after a release: of declared data, and of release folders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.api.arguments import names_arguments
from discreet.api.audits import Published, release_of
from discreet.api.cubes import Cube
from discreet.api.declaration import Declaration
from discreet.api.noise import Noise
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import programme_of
from discreet.api.results import Result
from discreet.api.tables import summary_frame
from discreet.engine.computing import computing
from discreet.errors import Problem
from discreet.io.progress_bar import cores, shown_progress
from discreet.io.signing_key import read_public_key
from discreet.page.markup import Html, joined, listing, paragraph
from discreet.pipeline.check import check_data, check_notes
from discreet.release.certify import Certified, verify_certificate
from discreet.release.verify import Verification
from discreet.release.verify import verify as verify_folder

if TYPE_CHECKING:
    from discreet.engine.spark import SparkEngine

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Checked", "check", "verify"]


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
        return joined([found, *map(paragraph, self.notes)])


@names_arguments
def check(
    what: Population | Programme | str | Path,
    cubes: Cube | Iterable[Cube] | None = None,
    noise: Noise | None = None,
    *,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
    **declared: object,
) -> Checked:
    """Read all data of a programme and report every problem; nothing is counted or written.

    ``engine``: the Spark that reads the records, if not this machine.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> ds.check(census, ds.Cube("sex"), ds.CellKey(V=2, D=5))
    No problems.
    """
    if isinstance(what, str | Path):
        programme = Programme(Declaration.read(Path(what)))
    else:
        programme = programme_of(what, cubes, noise, **declared)
    inspected = programme.declaration.inspect()
    if inspected.sound is None:
        return Checked(tuple(inspected.problems))
    with computing(inspected.sound, given=engine) as where, shown_progress(not progress) as listener:
        found = check_data(where.programme, cores(threads), listener, engine=where.engine)
        problems = tuple(dict.fromkeys((*inspected.problems, *found)))
        return Checked(problems, () if problems else tuple(check_notes(where.programme, where.engine)))


@names_arguments
def verify(
    release: Published, *, certificate: bool = False, public_key: str | Path | None = None
) -> Result[Verification] | Result[Certified]:
    """Recompute every checksum of a release, and compare the cells that occur in several of its tables.

    With ``certificate`` its guarantee is recomputed instead. With the office's ``public_key`` the release must also be
    signed with it.

    >>> import discreet as ds
    >>> census = ds.Population(persons={"pid": [1, 2], "sex": ["F", "M"]}, person_id="pid")
    >>> table = ds.protect(census, ds.Cube("sex"), ds.CellKey(V=2, D=5), secret=ds.Secret.new())
    >>> ds.verify(table).passed
    True
    """
    if certificate:
        place = Path(release) if isinstance(release, str | Path) else release_of(release).folder
        proven = verify_certificate(place)
        state = "certified" if proven.passed else "the certificate does not prove its claim"
        return Result(proven, (f"{proven.name}: {state}.", proven.claim, *proven.problems))
    folder = Path(release) if isinstance(release, str | Path) else release_of(release).folder
    found = verify_folder(folder, None if public_key is None else read_public_key(Path(public_key)))
    facts = f"{found.files} files, {found.cubes} cubes, {found.cells} cells"
    return Result(
        found, (f"{found.name}: {'passed' if found.passed else 'failed'}. {facts}.", *found.problems)
    )
