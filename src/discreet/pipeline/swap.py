"""The swap command: from a programme to swapped microdata, a public summary, a private log and the auditor's report.

Both folders are published atomically, the private one first, with a mark that is removed when the other one is there:
a run that was killed at any moment before that is repeated by calling it again, which replaces both.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from discreet.errors import mistake
from discreet.io.atomic_folder import AtomicFolder, require_free
from discreet.io.progress import Progress, Quiet
from discreet.page.charts import require_room
from discreet.population.place_columns import place_column_problems
from discreet.programme.programme import PopulationRule, Programme
from discreet.programme.section import with_home
from discreet.programme.sources import FileSource
from discreet.programme.swap import SwapRule
from discreet.report.swap import write_report
from discreet.run.run import Engine, require_none
from discreet.swap.figures import SwapFigures, figures_of, read_members
from discreet.swap.output import (
    PublicSummary,
    public_summary,
    swapped_tables,
    write_log,
    write_microdata,
    write_summary,
)
from discreet.swap.result import SwapResult, profile_names
from discreet.swap.swapping import swap

OUT, PRIVATE = "--out", "--report"
UNFINISHED = ".unfinished"  # in the private folder while that of the microdata is not there yet


@dataclass(frozen=True)
class Swapped:
    """What was written; the figures are confidential."""

    microdata: Path
    private: Path
    records: dict[str, int]  # unit -> records whose place changed
    figures: SwapFigures
    summary: PublicSummary


def write_swap(
    programme: Programme,
    secret: bytes,
    out: Path,
    private: Path,
    threads: int = 1,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Swapped:
    """Swap the households of a programme and write microdata, summary, log and report.

    An engine does all of it in one task: each table is one file, whose records are in the order of the source.
    """
    if engine is not None:
        engine.require(programme)
        return engine.call(write_swap, programme, secret, out.resolve(), private.resolve(), threads)
    progress = progress or Quiet()
    rule, population = _declared(programme)
    _require_apart(programme, out, private)
    require_none(place_column_problems(programme))
    require_room()
    replaceable = partial(_require_free_or_unfinished, out, private)
    with (
        AtomicFolder(out, OUT, require_replaceable=replaceable) as public,
        AtomicFolder(private, PRIVATE, require_replaceable=replaceable) as confidential,
    ):
        result = swap(programme, secret, threads, progress)
        progress.stage("writing microdata")
        records = write_microdata(programme, result.moves, secret, public, progress.step)
        summary = public_summary(result, rule, population.geography, programme.release.disclose)
        write_summary(summary, public)
        progress.stage("writing the private log and report")
        write_log(programme, result, secret, confidential)
        figures = _figures(programme, rule, result, secret)
        write_report(figures, rule, programme.release.title or programme.name, confidential)
        replaceable(public.place, OUT)
        with confidential.file(UNFINISHED) as mark:
            mark.write(_mark(out))
        confidential.publish()
        public.publish()
        (confidential.place / UNFINISHED).unlink()
    return Swapped(public.place, confidential.place, records, figures, summary)


@dataclass(frozen=True, eq=False, repr=False)
class SwappedRecords:
    """Records after swapping, and the figures of the auditor; all of it is confidential."""

    tables: dict[str, pa.Table]  # unit -> its records
    figures: SwapFigures
    conflicts: tuple[str, ...]  # where the rule could not be followed


def swap_in_memory(
    programme: Programme, secret: bytes, threads: int = 1, progress: Progress | None = None
) -> SwappedRecords:
    """Swap the households of a programme, as ``write_swap`` does, without writing anything."""
    rule, _ = _declared(programme)
    require_none(place_column_problems(programme))
    result = swap(programme, secret, threads, progress or Quiet())
    tables = swapped_tables(programme, result.moves, secret)
    return SwappedRecords(tables, _figures(programme, rule, result, secret), result.conflicts)


def _figures(programme: Programme, rule: SwapRule, result: SwapResult, secret: bytes) -> SwapFigures:
    return figures_of(result, read_members(programme, result.households, secret), rule.k, profile_names(rule))


def _declared(programme: Programme) -> tuple[SwapRule, PopulationRule]:
    if programme.swap is None or programme.population is None:
        remedy = "add [swap] with at least risk = [..] and similar = [[..]]"
        raise mistake(programme.path, "swap", "is missing", remedy)
    return programme.swap, programme.population


def _require_apart(programme: Programme, out: Path, private: Path) -> None:
    """Refuse, before any work, folders that are not free, inside each other or inside a folder of records."""
    _require_free_or_unfinished(out, private, out, OUT)
    _require_free_or_unfinished(out, private, private, PRIVATE)
    one, two = out.resolve(), private.resolve()
    if one.is_relative_to(two) or two.is_relative_to(one):
        value = "is inside the folder of the microdata, or the reverse"
        raise mistake(private, PRIVATE, value, "choose two separate folders")
    for folder in _folders_read(programme):
        for place, option in ((one, OUT), (two, PRIVATE)):
            if place.is_relative_to(folder):
                value = "is inside a folder whose files are all read as records"
                raise mistake(place, option, value, "choose a folder elsewhere")


def _require_free_or_unfinished(out: Path, private: Path, place: Path, option: str) -> None:
    """Refuse a folder that is not free, unless the private one has the mark of a run for the same microdata."""
    try:
        left_over = (private / UNFINISHED).read_bytes() == _mark(out)
    except OSError:
        left_over = False
    if not left_over:
        require_free(place, option)


def _mark(out: Path) -> bytes:
    return os.fsencode(out.resolve())


def _folders_read(programme: Programme) -> Iterator[Path]:
    units = programme.population.units if programme.population else {}
    for unit in units.values():
        if isinstance(unit.source, FileSource):
            folder = (programme.path.parent / with_home(unit.source.given)).resolve()
            if folder.is_dir():
                yield folder
