"""Record swapping in a notebook: the swapped population and the auditor's figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from discreet.api.arguments import names_arguments, require
from discreet.api.cubes import Cube
from discreet.api.noise import CellKey, Swap
from discreet.api.population import Population
from discreet.api.programme import Programme
from discreet.api.protect import Secrets
from discreet.api.results import Result
from discreet.api.secret import Secret, secret_key
from discreet.engine.computing import computing, require_embedded
from discreet.errors import mistake
from discreet.io.progress_bar import cores, shown_progress
from discreet.page.charts import Drawing
from discreet.page.markup import Html
from discreet.pipeline.swap import Swapped, SwappedRecords, swap_in_memory, write_swap
from discreet.programme.programme import Programme as ResolvedProgramme
from discreet.programme.sources import MemorySource
from discreet.programme.swap import SwapRule
from discreet.report.swap import machine_figures, swap_page
from discreet.swap.figures import SwapFigures

if TYPE_CHECKING:
    import pandas as pd

    from discreet.engine.spark import SparkEngine


@dataclass(frozen=True, eq=False, repr=False)
class SwapResult:
    """A swapped population and the figures of the auditor: risk before and after, distances, changes of tables.

    The figures are confidential; ``population`` is a ``Population`` whose households have exchanged their places.

    >>> import discreet as ds
    >>> columns = {"hid": [k // 2 for k in range(80)], "lau": [f"L{k // 20}" for k in range(80)]}
    >>> persons = {"pid": range(80), **columns, "age": [k * 7 % 90 for k in range(80)], "size": ["2"] * 80}
    >>> census = ds.Population(persons=persons, person_id="pid", household_id="hid", geography=["lau"])
    >>> rule = ds.Swap(risk=["age"], similar=[["size"]], rate=0.1)
    >>> ds.swap(census, rule, secret=ds.Secret.new()).figures.households
    40
    """

    figures: SwapFigures
    population: Population | None  # None where it was written to a folder
    rule: SwapRule
    name: str = "swap"

    @property
    def result(self) -> Result[SwapFigures]:
        """The figures with a summary, a frame and charts."""
        page = swap_page(self.figures, self.rule, self.name)
        return Result(self.figures, self.lines, page.parts)

    @property
    def lines(self) -> tuple[str, ...]:
        """The result in plain text."""
        found = self.figures
        moved = f"{found.swapped:,} of {found.households:,} households exchanged their places"
        return (moved, *(f"{why}: {number:,}" for why, number in found.reasons.items()), *found.conflicts)

    def summary(self) -> str:
        """How many households moved, and why."""
        return "\n".join(self.lines)

    def to_pandas(self) -> pd.DataFrame:
        """Every figure of the auditor's report by name, as a pandas data frame."""
        return Result(machine_figures(self.figures), self.lines).to_pandas()

    def chart(self, name: str | None = None) -> Drawing:
        """A chart of the auditor's report as an Altair object."""
        return self.result.chart(name)

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> Html:
        return self.result._repr_html_()


@names_arguments
def swap(
    what: Population | Programme | str | Path,
    rule: Swap | None = None,
    *,
    secret: Secrets,
    columns: Sequence[str] = (),
    out: str | Path | None = None,
    report: str | Path | None = None,
    threads: int = 0,
    progress: bool = True,
    engine: SparkEngine | None = None,
) -> SwapResult:
    """Swap households that are at risk with similar ones elsewhere; the same secret gives the same swap.

    The result has the swapped ``population``, with the columns of the rule, of the geography and ``columns``: others
    could undo the swap. To publish, give the rule to ``protect`` instead: ``protect(.., swap=rule)``. ``out`` and
    ``report`` write microdata, private log and report instead, as the command does, and then Spark may do it: with an
    ``engine``, or where a programme declares one. ``report`` is next to the secret's file by default.

    >>> import discreet as ds
    >>> persons = {
    ...     "pid": range(400),
    ...     "hid": [k // 2 for k in range(400)],
    ...     "lau": [f"L{k // 40}" for k in range(400)],
    ...     "age": [k * 7 % 90 for k in range(400)],
    ...     "size": ["2"] * 400,
    ... }
    >>> census = ds.Population(persons=persons, person_id="pid", household_id="hid", geography=["lau"])
    >>> rule = ds.Swap(risk=["age"], similar=[["size"]], rate=0.05)
    >>> swapped = ds.swap(census, rule, secret=ds.Secret.new())
    >>> swapped.figures.swapped > 0
    True
    >>> swapped.population
    Population(persons; geography lau)
    """
    key = secret_key(secret)
    if isinstance(what, Population):
        if rule is None:
            raise mistake("", "swap", "a population without a rule", "give Swap(risk=[..], similar=[[..]])")
        named = [*rule.risk, *(one for profile in rule.similar for one in profile if isinstance(one, str))]
        if not (rule.similar and rule.similar[0] and named):
            remedy = 'name columns in which both households agree: similar=[["size"]]'
            raise mistake("", "swap.similar", "is empty", remedy)
        # a programme publishes something: neither this cube nor this noise is used
        axis = named[0]
        cubes = [Cube(axis), *(Cube(column) for column in columns if column != axis)]
        programme = what.programme(cubes, CellKey(V=2, D=5), swap=rule, name="swap")
    else:
        programme = what if isinstance(what, Programme) else Programme.read(what)
    resolved = programme.resolved
    if out is not None:
        private = _private(report, key, Path(out))
        with computing(resolved, given=engine) as where, shown_progress(not progress) as listener:
            written: Swapped = write_swap(
                where.programme, key.key, Path(out), private, cores(threads), listener, where.engine
            )
        return SwapResult(written.figures, None, _rule(resolved), resolved.name)
    given = report is None and engine is None
    require(given, "report, engine", "without out", "give a new folder for the microdata: out=")
    require_embedded(resolved, "swap")
    with shown_progress(not progress) as listener:
        found: SwappedRecords = swap_in_memory(resolved, key.key, cores(threads), listener)
    tables = {unit: _used(table, resolved, unit) for unit, table in found.tables.items()}
    population = what.with_records(tables) if isinstance(what, Population) else None
    return SwapResult(found.figures, population, _rule(resolved), resolved.name)


def _private(report: str | Path | None, secret: Secret, out: Path) -> Path:
    """The folder of log and report: as given, or next to the secret."""
    found = Path(report) if report is not None else secret.beside(f"{out.resolve().name}.swap")
    if found is None:
        remedy = "give a new private folder for log and report, or save the secret (Secret.save)"
        raise mistake("", "report", "microdata are written under a secret without a file", remedy)
    return found


def _rule(programme: ResolvedProgramme) -> SwapRule:
    if programme.swap is None:
        remedy = "declare [swap], or give a population and a rule"
        raise mistake(programme.path, "swap", "is missing", remedy)
    return programme.swap


def _used(table: pa.Table, programme: ResolvedProgramme, unit: str) -> pa.Table:
    """The columns whose effect on the swap was checked."""
    source = programme.population.units[unit].source if programme.population else None
    used = source.used if isinstance(source, MemorySource) else None
    return table if used is None else table.select([name for name in table.column_names if name in used])
