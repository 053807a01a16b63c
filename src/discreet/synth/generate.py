"""Generates a synthetic census of any size: its blocks, their Parquet files, and a programme for them."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import permutations
from pathlib import Path
from threading import Lock
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from discreet.errors import Mistakes, Problem
from discreet.io.ending import putting
from discreet.programme import eu2021
from discreet.programme.attributes import Attribute, Holder
from discreet.programme.codelist import Code, codelist, write_code_columns
from discreet.programme.definitions import text_columns
from discreet.synth.background import origins
from discreet.synth.block import IDS, LEVELS, UNITS, Country, PersonBlock, blocks, populate
from discreet.synth.draw import Dice, rows
from discreet.synth.geography import FICTIONAL, Geography, geography, region_counts
from discreet.text.phrase import others_of, translated

DEMO_TABLES = ("1", "3", "8", "9", "35")  # five groups of the EU programme: persons and households

# each of these means "under 15 years"; a table may contain any one of them
_CHILD = {"AGE": "Y_LT15", "CAS": "2.1", "EDU": "11"}
# each of these means "not employed"
_NOT_EMPLOYED = {"OCC": "12", "IND": "12", "SIE": "6", "LPW": "5"}
_OF_CHILDREN = ('LMS != "1"', 'FST in ("1", "2")', 'HST == "1.2.1"')
_ARRIVALS = 9  # bands of YAE: 1.1 (2020 to 2021), 1.2 (2015 to 2019), ... 1.9 (1980 to 1984)

_OTHERS = (
    'AGE == "Y0" and ROY != "4"',
    'AGE != "Y0" and ROY == "4"',
    'HST == "1.1" and FST in ("4", "5")',
    'HST != "1.1" and FST in ("1", "2", "3")',
    'FST == "1.1.1" and LMS != "2.1"',
    'FST == "1.1.2" and LMS != "2.2"',
    'FST == "1.2" and LMS == "2"',
    'HST == "2.1" and HAR != "1.2"',
    'HST != "2.1" and HAR == "1.2"',
    'YAE in ("1.1", "1.2", "1.3") and YAT != "1"',
    'YAE not in ("1.1", "1.2", "1.3") and YAT == "1"',
    'YAE == "3" and YAT != "3"',
    'YAE != "3" and YAT == "3"',
    'TPH == "1.1" and SPH != "1"',
    'TPH != "1.1" and SPH == "1"',
    'TPH == "3" and SPH in ("1", "2")',
)


def structural_zeros() -> tuple[str, ...]:
    """Expressions that are true of no record, for every pair of variables that implies each of them."""
    return (*_children(), *_employed(), *_arrivals(), *_OTHERS)


def _children() -> list[str]:
    alike = [f"{_is(one, _CHILD)} and {_is_not(other, _CHILD)}" for one, other in permutations(_CHILD, 2)]
    idle = [
        f"{_is(one, _CHILD)} and {_is_not(job, _NOT_EMPLOYED)}" for one in _CHILD for job in _NOT_EMPLOYED
    ]
    return [*alike, *idle, *(f"{_is(one, _CHILD)} and {fact}" for one in _CHILD for fact in _OF_CHILDREN)]


def _employed() -> list[str]:
    jobs = permutations(_NOT_EMPLOYED, 2)
    alike = [f"{_is(one, _NOT_EMPLOYED)} and {_is_not(other, _NOT_EMPLOYED)}" for one, other in jobs]
    at_work = [f'CAS == "1.1" and {_is(job, _NOT_EMPLOYED)}' for job in _NOT_EMPLOYED]
    return [*alike, *at_work, *(f'CAS != "1.1" and {_is_not(job, _NOT_EMPLOYED)}' for job in _NOT_EMPLOYED)]


def _arrivals() -> list[str]:
    """No one arrived before birth: under 5 not before 2015, under 10 not before 2010, and so on."""
    rules = []
    for first in range(_ARRIVALS - 2):
        before = ", ".join(f'"1.{band}"' for band in range(first + 3, _ARRIVALS + 1))
        rules.append(f'AGE == "Y{5 * first}-{5 * first + 4}" and YAE in ({before})')
    return rules


def _is(variable: str, codes: dict[str, str]) -> str:
    return f'{variable} == "{codes[variable]}"'


def _is_not(variable: str, codes: dict[str, str]) -> str:
    return f'{variable} != "{codes[variable]}"'


MEMBER_VARIABLES = {  # household variables stored with its members, for record swapping, and their labels
    "HHSIZE": translated("Size of the household", {"de": "Größe des Haushalts"}),
    "HHTYPE": translated("Type of the household", {"de": "Typ des Haushalts"}),
}
LEVEL_NAMES = {  # of the areas, which are called regions, provinces, districts and municipalities
    "N": translated("whole country", {"de": "ganzes Land"}),
    "L": translated("provinces", {"de": "Provinzen"}),
    "M": translated("districts", {"de": "Bezirke"}),
    "H": translated("municipalities", {"de": "Gemeinden"}),
}


def declare(folder: Path, geo: Geography, tables: Sequence[str] | None) -> None:
    """Write the codelists and the programme of a census into its folder."""
    lists = _codelists(geo)
    (folder / "codelists").mkdir()
    for variable, codes in lists.items():
        _write_codes(folder / "codelists" / f"{variable.lower()}.csv", codes)
    (folder / "programme.toml").write_text(programme(tuple(lists), tables), encoding="utf-8")


def _codelists(geo: Geography) -> dict[str, list[Code]]:
    regions = geo.rows()
    lists = {"GEO": regions, "LPW": eu2021.lpw_rows(codelist("GEO", regions))}
    names = [name for name in (*eu2021.variables(), *MEMBER_VARIABLES) if name not in lists]
    return lists | {name: rows(name) for name in names}


def _write_codes(path: Path, codes: Sequence[Code]) -> None:
    named = [one.code for one in codes]
    texts = text_columns(named, [one.label for one in codes], {one.code: one.definition for one in codes})
    write_code_columns(path, named, [one.parent for one in codes], texts)


def programme(variables: Sequence[str], tables: Sequence[str] | None) -> str:
    """The text of programme.toml; ``tables`` None selects the whole EU programme."""
    parts = [_POPULATION, *(_variable(name) for name in variables), _standard(tables)]
    parts += [f"[[structural_zeros]]\nwhere = '{rule}'\n" for rule in structural_zeros()]
    return "\n".join([*parts, _ENDING])


def _variable(name: str) -> str:
    column = "lau" if name == "GEO" else name.lower()
    standard = name in eu2021.variables()
    label = eu2021.texts(name).label if standard else MEMBER_VARIABLES[name]
    lines = [
        f"[variables.{name}]",
        f"label = {_text(label)}",
        f'column = "{column}"',
        f'codelist = "codelists/{name.lower()}.csv"',
        *_attribute(name),
        *([] if standard else [f"topic = {_text(eu2021.texts('TPH').topic)}"]),
    ]
    if standard and set(eu2021.breakdowns(name)) - {name}:
        lines.append(f"breakdowns = {_inline(eu2021.breakdowns(name))}")
        labels = LEVEL_NAMES if name == eu2021.GEOGRAPHY else eu2021.breakdown_labels(name)
        lines.append(f"[variables.{name}.breakdown_labels]")
        lines += [f"{level} = {_text(text)}" for level, text in labels.items()]
    return "\n".join(lines) + "\n"


def _attribute(name: str) -> list[str]:
    """Whose attribute a variable is; what its household decides about a person is fixed, which a release states."""
    held = eu2021.attribute_of(name) if name in eu2021.variables() else Attribute(Holder.HOUSEHOLD)
    fixed = held.fixed or name in (*MEMBER_VARIABLES, *_OF_MEMBERS)
    return [f'of = "{held.of}"', *(["fixed = true"] if fixed else [])]


def _text(text: str) -> str:
    """A text, or a table of it by language."""
    others = others_of(text)
    return _inline({eu2021.OWN: str(text), **others}) if others else json.dumps(text, ensure_ascii=False)


def _inline(entries: Mapping[str, object]) -> str:
    return (
        "{ "
        + ", ".join(f"{name} = {json.dumps(one, ensure_ascii=False)}" for name, one in entries.items())
        + " }"
    )


def _standard(tables: Sequence[str] | None) -> str:
    chosen = "" if tables is None else f"tables = {json.dumps(list(tables))}\n"
    return f'[standard]\nprogramme = "{eu2021.NAME}"\n{chosen}'


_POPULATION = """\
# A synthetic census: no record in it is a real person.
# Whose attribute a variable is (of, fixed) matters to noise with a guarantee: docs/explanation/neighbours.md

[population]
persons = "persons.parquet"
households = "households.parquet"
families = "families.parquet"
dwellings = "dwellings.parquet"
person_id = "pid"
household_id = "hid"
family_id = "fid"
dwelling_id = "did"
geography = ["nuts1", "nuts2", "nuts3", "lau"]
fixed_families = true
"""

_OF_MEMBERS = ("FST", "HST")  # derived from the household, and counted by person

_ENDING = """\
[noise]
kind = "cell-key"
V = 2.0
D = 5
js = 0

[release]
title = { en = "Synthetic census", de = "Synthetische Volkszählung" }
formats = ["parquet"]
"""


ROW_GROUP = 1 << 20


class UnitFile:
    """One Parquet file that collects blocks until a row group is full."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, 0
        self._waiting: list[pa.Table] = []
        self._writer: pq.ParquetWriter | None = None

    def add(self, table: pa.Table) -> None:
        """Add a block, and write a row group when it is full."""
        self._waiting.append(table)
        self.rows += table.num_rows
        if sum(waiting.num_rows for waiting in self._waiting) >= ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        """Write the remaining rows and close the file."""
        self._flush()
        self.close()

    def close(self) -> None:
        """Close the file without writing the remaining rows."""
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if not self._waiting:
            return
        # one dictionary per column and row group: the blocks contain different grid cells
        table = pa.concat_tables(self._waiting).unify_dictionaries().combine_chunks()
        self._waiting = []
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self.path.absolute(),  # Arrow takes a relative path such as census:2021 for an address
                table.schema,
                compression="zstd",
                compression_level=1,
                use_dictionary=[name for name in table.column_names if name not in IDS],
                write_statistics=list(LEVELS),  # for the other columns they cost time and save nothing
            )
        self._writer.write_table(table, row_group_size=max(1, table.num_rows))


class CensusFiles:
    """The files of all units, closed together."""

    def __init__(self, folder: Path) -> None:
        self.units = {unit: UnitFile(folder / f"{unit}.parquet") for unit in UNITS}

    def __enter__(self) -> CensusFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for unit in self.units.values():
            if kind is None:
                unit.finish()
            else:
                unit.close()

    def add(self, tables: dict[str, pa.Table]) -> None:
        """Append one block to every file."""
        for unit, table in tables.items():
            self.units[unit].add(table)


LARGEST = 1_000_000_000
MOST_THREADS = 4  # by default: writing is slower than more threads, and each needs a block of memory


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
    """Write a synthetic census to a new folder; the same arguments give the same bytes with any number of threads.

    ``progress`` receives the number of persons made so far, those of unfinished blocks by the share that is done.
    """
    started = time.monotonic()
    check(persons, seed, out, tables, country, threads)
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = out.with_name(f".{out.name}-{secrets.token_hex(8)}")  # named first: a signal may end what follows
    try:
        draft.mkdir()
        draft.chmod(0o755)
        nation = _nation(persons, seed, country)
        declare(draft, nation.geo, tables)
        rows = _write(draft, nation, threads or min(MOST_THREADS, os.cpu_count() or 1), progress)
        with putting(str(out)):
            draft.replace(out)  # replaces an empty folder, refuses any other
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    regions = {f"NUTS {k}": len(nation.geo.regions[k - 1]) for k in (1, 2, 3)}
    regions["LAU"] = len(nation.geo.regions[3])
    return Census(out, rows, regions, round(time.monotonic() - started, 2))


def check(
    persons: int, seed: int, out: Path | None, tables: Sequence[str] | None, country: str, threads: int | None
) -> None:
    """Refuse invalid arguments, all at once and before anything is written; without ``out`` all but the folder."""
    problems = []
    if not 1 <= persons <= LARGEST:
        problems.append(Problem("", "persons", str(persons), f"give a number from 1 to {LARGEST}"))
    if seed < 0:
        problems.append(Problem("", "seed", str(seed), "give a number of at least 0"))
    if threads is not None and threads < 1:
        problems.append(Problem("", "threads", str(threads), "give at least 1 thread"))
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        problems.append(
            Problem(str(out), "out", "is not an empty folder", "choose a new one or empty it first")
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


WRITTEN = 0.2  # of the time that a person takes


class _Made:
    """Adds up what threads have drawn and what is written, in persons."""

    def __init__(self, progress: Callable[[int], None]) -> None:
        self._progress, self._lock = progress, Lock()
        self._drawn: dict[int, float] = {}
        self._written = 0

    def drawn(self, block: PersonBlock, share: float) -> None:
        """A share of a block is drawn."""
        with self._lock:
            self._drawn[block.number] = share * int(block.persons.sum())
            self._report()

    def written(self, persons: int) -> None:
        """So many persons are written."""
        with self._lock:
            self._written = persons
            self._report()

    def _report(self) -> None:
        self._progress(int((1 - WRITTEN) * sum(self._drawn.values()) + WRITTEN * self._written))


def _write(folder: Path, nation: Country, threads: int, progress: Callable[[int], None]) -> dict[str, int]:
    made = _Made(progress)
    with CensusFiles(folder) as files, closing(_in_order(nation, threads, made)) as drawn:
        for tables in drawn:
            files.add(tables)
            made.written(files.units["persons"].rows)
    rows = {unit: file.rows for unit, file in files.units.items()}
    progress(rows["persons"])
    return rows


def _in_order(nation: Country, threads: int, made: _Made) -> Generator[dict[str, pa.Table], None, None]:
    """Draw blocks in parallel and yield them in order; only a few are in memory at a time."""
    with ThreadPoolExecutor(threads) as pool:
        ahead: deque[Future[dict[str, pa.Table]]] = deque()
        for block in blocks(nation.geo.persons):
            ahead.append(pool.submit(_populated, nation, block, made))
            if len(ahead) > threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _populated(nation: Country, block: PersonBlock, made: _Made) -> dict[str, pa.Table]:
    tables = populate(nation, block, partial(made.drawn, block))
    made.drawn(block, 1.0)
    return tables
