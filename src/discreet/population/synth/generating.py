"""Making a synthetic census of any size: lays out the country, draws its blocks and writes them in order.

It owns the course of the work and its safety on disk; it draws nothing itself.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from discreet.errors import Mistakes, Problem
from discreet.population.synth.block import Block, Country, blocks, populate
from discreet.population.synth.declaring import declare
from discreet.population.synth.draw import Dice
from discreet.population.synth.geography import FICTIONAL, geography, region_counts
from discreet.population.synth.origin import origins
from discreet.population.synth.writing import CensusFiles
from discreet.schema import eu2021
from discreet.schema.codelist import codelist

LARGEST = 1_000_000_000
MOST_THREADS = 4  # by default: writing does not keep up with more, and each holds a block in memory


@dataclass(frozen=True)
class Census:
    """What was written: the folder, the rows of each unit and the regions of each level."""

    folder: Path
    rows: dict[str, int]
    regions: dict[str, int]
    seconds: float


def generate(
    persons: int,
    seed: int,
    out: Path,
    *,
    tables: Sequence[str] | None = None,
    country: str = FICTIONAL,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Census:
    """Write a synthetic census to a new folder; the same arguments give the same bytes, whatever the threads.

    ``progress`` is told how many persons have been written so far.
    """
    started = time.monotonic()
    check(persons, seed, out, tables, country, threads)
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    try:
        draft.chmod(0o755)
        nation = _nation(persons, seed, country)
        declare(draft, nation.geo, tables)
        rows = _write(draft, nation, threads or min(MOST_THREADS, os.cpu_count() or 1), progress)
        draft.replace(out)  # takes the place of an empty folder, refuses any other
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    regions = {f"NUTS {k}": len(nation.geo.regions[k - 1]) for k in (1, 2, 3)}
    regions["LAU"] = len(nation.geo.regions[3])
    return Census(out, rows, regions, round(time.monotonic() - started, 2))


def check(
    persons: int, seed: int, out: Path, tables: Sequence[str] | None, country: str, threads: int | None
) -> None:
    """Refuse what cannot be made, all at once and before anything is written."""
    problems = []
    if not 1 <= persons <= LARGEST:
        problems.append(Problem("", "persons", str(persons), f"give a number from 1 to {LARGEST}"))
    if seed < 0:
        problems.append(Problem("", "seed", str(seed), "give a number from 0 on"))
    if threads is not None and threads < 1:
        problems.append(Problem("", "threads", str(threads), "give at least 1 thread"))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        problems.append(
            Problem(str(out), "out", "is not an empty folder", "name a new one or empty it first")
        )
    for question in (lambda: eu2021.tables(tables), lambda: region_counts(max(persons, 1), country)):
        try:
            question()
        except Mistakes as mistakes:
            problems.extend(mistakes.problems)
    if problems:
        raise Mistakes(problems)


def _nation(persons: int, seed: int, country: str) -> Country:
    dice = Dice(seed, 0)
    geo = geography(persons, country, dice)
    workplaces = codelist("LPW", eu2021.lpw_rows(codelist("GEO", geo.rows()))).leaf_codes
    return Country(seed, geo, origins(geo, dice), workplaces)


def _write(folder: Path, nation: Country, threads: int, progress: Callable[[int], None]) -> dict[str, int]:
    with CensusFiles(folder) as files, closing(_in_order(nation, threads)) as drawn:
        for tables in drawn:
            files.add(tables)
            progress(files.units["persons"].rows)
    return {unit: file.rows for unit, file in files.units.items()}


def _in_order(nation: Country, threads: int) -> Generator[dict[str, pa.Table], None, None]:
    """Draw blocks in parallel, hand them out in order; only a few are ever in memory."""
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[dict[str, pa.Table]]] = deque()
        for block in blocks(nation.geo.persons):
            ahead.append(_submit(pool, nation, block))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _submit(pool: ThreadPoolExecutor, nation: Country, block: Block) -> Future[dict[str, pa.Table]]:
    return pool.submit(populate, nation, block)
