"""Synthetic censuses to try things on: no record in them is a real person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.api.arguments import names_arguments
from discreet.api.declaration import Declaration
from discreet.api.drawings import shown
from discreet.api.population import Population, declared_population
from discreet.api.programme import Programme
from discreet.api.protect import protect
from discreet.api.releases import Release
from discreet.api.secret import Secret
from discreet.api.tables import summary_frame
from discreet.errors import BrokenRelease, mistake
from discreet.io.atomic_folder import require_free
from discreet.io.progress_bar import shown_progress
from discreet.io.temporary_folder import TemporaryFolder, temporary_folder
from discreet.page.markup import As, Column, Html, table
from discreet.release.verify import verify
from discreet.synth.generate import DEMO_TABLES, Census, generate
from discreet.synth.geography import FICTIONAL

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class SyntheticCensus:
    """A synthetic census: its tables, its population and the programme of its folder.

    >>> import discreet as ds
    >>> census = ds.synth(500, tables=["3.1"])
    >>> census.read("persons").num_rows
    500
    >>> census.programme()
    Programme('census', 1 cube)
    """

    census: Census
    temporary: TemporaryFolder | None = None  # deleted with the census

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.census.folder

    def read(self, unit: str = "persons") -> pa.Table:
        """The records of persons, households, families or dwellings."""
        if unit not in self.census.rows:
            raise mistake(self.folder, "unit", repr(unit), f"choose from {', '.join(self.census.rows)}")
        return pq.read_table((self.folder / f"{unit}.parquet").absolute())

    def population(self) -> Population:
        """The population with all variables and codelists."""
        return declared_population(self._declared)

    def programme(self) -> Programme:
        """The programme of the folder: tables of the EU census."""
        return Programme(self._declared)

    @property
    def _declared(self) -> Declaration:
        return Declaration.read(self.folder / "programme.toml", self.temporary)

    def summary(self) -> str:
        """The number of records of each unit."""
        return ", ".join(f"{rows:,} {unit}" for unit, rows in self.census.rows.items())

    def to_pandas(self) -> pd.DataFrame:
        """The number of records of each unit as a pandas data frame."""
        return summary_frame([{"unit": unit, "records": rows} for unit, rows in self.census.rows.items()])

    def __repr__(self) -> str:
        return f"SyntheticCensus({self.summary()})"

    def _repr_html_(self) -> Html:
        columns = [Column("unit"), Column("records", As.COUNT)]
        return shown([table("Synthetic census", columns, list(self.census.rows.items()))])


@names_arguments
def synth(
    persons: int,
    *,
    seed: int = 1,
    out: str | Path | None = None,
    tables: Sequence[str] | None = None,
    country: str = FICTIONAL,
    threads: int = 0,
    progress: bool = True,
) -> SyntheticCensus:
    """Make a synthetic census; the same size and seed give the same records.

    ``tables`` are tables or groups of the EU programme; ``out`` is a new folder, a temporary one by default.

    >>> import discreet as ds
    >>> ds.synth(500).read("persons").column_names[:3]
    ['pid', 'hid', 'fid']
    """
    with temporary_folder(out is None) as temporary, shown_progress(not progress) as listener:
        place = temporary.path / "census" if temporary is not None else Path(str(out))
        listener.stage("persons", persons)
        before = [0]

        def step(done: int) -> None:
            listener.step(done - before[0])
            before[0] = done

        made = generate(
            persons, seed, place, tables=tables, threads=threads or None, progress=step, country=country
        )
    return SyntheticCensus(made, temporary)


@names_arguments
def demo(
    persons: int = 20_000, *, out: str | Path | None = None, threads: int = 0, progress: bool = True
) -> Release:
    """A release to try things on: a synthetic census, its EU tables with cell key noise, verified.

    ``out`` is a new folder for census, secret and release; temporary ones by default.

    >>> import discreet as ds
    >>> release = ds.demo(500, progress=False)
    >>> release["3.1"].sel(SEX="1").variables
    ('GEO', 'AGE')
    """
    if out is not None:
        require_free(Path(out), "out")
        Path(out).mkdir(parents=True)
    census = synth(
        persons, out=None if out is None else Path(out) / "census", tables=DEMO_TABLES, progress=progress
    )
    secret = Secret.new() if out is None else Secret.new().save(Path(out) / "secret.key")
    place = None if out is None else Path(out) / "release"
    release = protect(census.programme(), secret=secret, out=place, threads=threads, progress=progress)
    found = verify(release.folder)
    if not found.passed:
        raise BrokenRelease("\n".join(found.problems))
    return release
