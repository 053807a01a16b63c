"""How much of real files ``discreet init`` understands: ``python -m benchmarks.init DATA``.

DATA is a folder with public census files (``us_calm``, ``ohio2010``, ``uk``, ``trafford2021``); a synthetic census is
made. The expected answers are from the codebooks of the files. Each draft is then checked, protected and verified
without an edit. A second table has the same files with meaningless names of columns, and with their rows shuffled.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from typer.testing import CliRunner

from discreet.cli.app import app
from discreet.population.look import look
from discreet.programme.columns import unit_of
from discreet.programme.inference import Decision, Inferred, Role, infer
from discreet.programme.sources import file_source

CODED = {Role.CODES, Role.LEVEL}
OUT = {Role.LEFT_OUT, Role.LABELS, Role.MEMBER_NUMBER}


@dataclass(frozen=True)
class Expected:
    """A case: its files, and what their codebooks say."""

    name: str
    files: tuple[Path, ...]
    ids: Mapping[str, str | None]
    geography: tuple[str, ...] = ()
    others: Mapping[str, set[Role]] = field(default_factory=dict)  # column -> its role; all others are codes
    weight: str | None = None
    counts: str | None = None


@dataclass(frozen=True)
class Measured:
    """How much of a case was right."""

    right: int
    variables: int
    ids: int
    all_ids: int
    hierarchy: bool
    wrong: tuple[str, ...]
    seconds: float


def cases(data: Path, work: Path) -> list[Expected]:
    """The real files and the synthetic census."""
    calm, uk, ohio = data / "us_calm", data / "uk", data / "ohio2010"
    age, bands = {Role.AGE}, {Role.BANDS}
    return [
        Expected(
            "us_calm: persons, households",
            (calm / "persons.parquet", calm / "households.parquet"),
            {"persons": "person_id", "households": "household_id"},
            ("county", "tract", "blkgrp", "taz"),
            {
                "age": age,
                "age_ref": age,
                "wkhp": bands,
                "pincp": OUT,
                "hincp": OUT,
                "seed_hh": OUT,
                "person_no": OUT,
            },
        ),
        Expected(
            "ohio2010: guernsey_sasm_persons",
            (ohio / "guernsey_sasm_persons.parquet",),
            {"persons": None},
            ("county", "tract", "blkgrp", "block"),
        ),
        Expected(
            "ohio2010: franklin_sf1_p12_cells",
            (ohio / "franklin_sf1_p12_cells.parquet",),
            {},
            ("tract", "blkgrp", "block"),
            counts="count",
        ),
        Expected(
            "uk: scotland2011",
            (uk / "scotland2011_teaching.parquet",),
            {"persons": "record_number"},
            ("region",),
        ),
        Expected(
            "uk: ew2011, random 10k",
            (uk / "ew2011_teaching_random10k.parquet",),
            {"persons": "person_id"},
            ("region",),
        ),
        Expected(
            "uk: ew2011, first 50k",
            (uk / "ew2011_teaching_first50k.parquet",),
            {"persons": "person_id"},
            ("region",),
        ),
        Expected("uk: ni2021", (uk / "ni2021_teaching.parquet",), {"persons": "serialnum"}),
        Expected(
            "trafford2021: one table by output area",
            (_one_table(data / "trafford2021" / "tables.parquet", work),),
            {},
            ("area",),
            dict.fromkeys(("table", "level", "dims", "unit"), OUT),
            counts="value",
        ),
        _census(work),
    ]


def _one_table(path: Path, work: Path) -> Path:
    whole = pq.read_table(path)
    named = pc.equal(whole["table"].cast(pa.string()), "highest_level_qualification")
    chosen = work / "one_table.parquet"
    pq.write_table(whole.filter(pc.and_(named, pc.equal(whole["level"].cast(pa.string()), "oa"))), chosen)
    return chosen


def _census(work: Path) -> Expected:
    made = work / "synthetic"
    run("synth", "--persons", "20000", "--out", made, "--quiet")
    units = {"persons": "pid", "households": "hid", "families": "fid", "dwellings": "did"}
    files = tuple(made / f"{unit}.parquet" for unit in units)
    return Expected(
        "synthetic census: four units", files, units, ("nuts1", "nuts2", "nuts3", "lau"), {"age": {Role.AGE}}
    )


def run(*words: object) -> bool:
    """Run a command; whether it succeeded."""
    return CliRunner().invoke(app, [str(word) for word in words]).exit_code == 0


def measured(case: Expected) -> Measured:
    """Judge the columns of a case."""
    start = time.perf_counter()
    tables = [
        look(file_source(path.name, path.parent, "", ""), unit_of(path.name) or "persons", path.name)
        for path in case.files
    ]
    found = infer(tables)
    seconds = time.perf_counter() - start
    wrong = list(_wrong(case, found))
    ids = [unit for unit, column in case.ids.items() if found.ids.get(unit, "") == column]
    extra = [unit for unit in found.ids if unit not in case.ids]
    hierarchy = found.geography == case.geography
    judged = _variables(case, found)
    return Measured(
        len(judged) - len(wrong),
        len(judged),
        len(ids),
        len(case.ids) + len(extra),
        hierarchy,
        tuple(wrong),
        seconds,
    )


def _variables(case: Expected, found: Inferred) -> list[Decision]:
    """The columns that are neither ids nor places by their codebook, whatever they were taken for."""
    taken = {*case.ids.values(), *case.geography}
    return [one for one in found.decisions if one.column not in taken]


def _wrong(case: Expected, found: Inferred) -> Sequence[str]:
    wrong = []
    for one in _variables(case, found):
        expected = case.others.get(one.column, CODED)
        if one.column == case.counts:
            expected = {Role.COUNT}
        if one.column == case.weight:
            expected = {Role.WEIGHT}
        if one.role not in expected:
            wrong.append(f"{one.column} ({one.role})")
    return wrong


def _published(case: Expected, folder: Path) -> bool:
    programme, secret = folder / "programme.toml", folder / "secret.key"
    return (
        run("init", *case.files, "--out", folder, "--quiet")
        and run("check", programme)
        and run("secret", "--out", secret)
        and run("protect", programme, "--secret", secret, "--out", folder / "release")
        and run("verify", folder / "release")
    )


def disguised(case: Expected, work: Path, *, shuffled: bool) -> Expected:
    """The same files with the columns named v1, v2, .., and the rows in random order."""
    tables = [pq.read_table(path) for path in case.files]
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    alias = {name: f"v{number}" for number, name in enumerate(names, start=1)}
    folder = Path(tempfile.mkdtemp(dir=work))
    rng = np.random.default_rng(1)
    for path, table in zip(case.files, tables, strict=True):
        renamed = table.rename_columns([alias[name] for name in table.column_names])
        order = rng.permutation(len(table)) if shuffled else np.arange(len(table))
        pq.write_table(renamed.take(pa.array(order)), folder / path.name)
    return Expected(
        case.name,
        tuple(folder / path.name for path in case.files),
        {unit: alias[name] if name else None for unit, name in case.ids.items()},
        tuple(alias[name] for name in case.geography),
        {alias[name]: roles for name, roles in case.others.items()},
        alias[case.weight] if case.weight else None,
        alias[case.counts] if case.counts else None,
    )


def _line(one: Measured) -> list[str]:
    ids = f"{one.ids} of {one.all_ids}" if one.all_ids else "-"
    return [f"{one.right} of {one.variables}", ids, "yes" if one.hierarchy else "no"]


def main(data: Path) -> None:
    """Print both tables."""
    with tempfile.TemporaryDirectory(prefix="discreet-init-") as place:
        work = Path(place)
        known = cases(data, work)
        print("| file | variables right | ids right | places right | published without an edit | seconds |")
        print("|---|---|---|---|---|---|")
        for case in known:
            one = measured(case)
            published = (
                "yes" if _published(case, work / case.name.replace(" ", "_").replace(":", "")) else "no"
            )
            print(f"| {' | '.join([case.name, *_line(one), published, f'{one.seconds:.1f}'])} |", flush=True)
            _show_wrong(one)
        print(
            "\n| file | no names: variables | ids | places | no names, no order: variables | ids | places |"
        )
        print("|---|---|---|---|---|---|---|")
        for case in known:
            found = [measured(disguised(case, work, shuffled=mixed)) for mixed in (False, True)]
            cells = [text for one in found for text in _line(one)]
            print(f"| {' | '.join([case.name, *cells])} |", flush=True)
            for one in found:
                _show_wrong(one)


def _show_wrong(one: Measured) -> None:
    for wrong in one.wrong:
        print(f"wrong: {wrong}", file=sys.stderr)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
