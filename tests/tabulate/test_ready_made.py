"""Ready-made counts with cell keys: the same protected values as from records, and refusals of everything doubtful."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.maths.cells.counting import counts_of
from discreet.maths.cells.lookup import Order, build
from discreet.maths.cells.permutation import secret_permutation
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.pipeline.check import check_data
from discreet.pipeline.protect import protect
from discreet.programme.cube import Cube
from discreet.programme.cubes import ReadyMade
from discreet.programme.programme import load_programme
from discreet.release.reader import open_release
from discreet.release.verify import verify
from discreet.tabulate.ready_made import ready_made_table
from tests.tabulate.village import SECRET, Record, brute_force, content, finest, people, programme

AXES = ("GEO", "SEX", "AGE")
CUBE = '[[cubes]]\nid = "c"\naxes = ["GEO.H", "SEX", "AGE.M"]\n'
Row = dict[str, Any]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return people(1200, seed=8)


@pytest.fixture(scope="module")
def counted(records: list[Record], tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Every cell, totals included, by brute force."""
    cube = programme(tmp_path_factory.mktemp("village"), records, CUBE).cubes[0]
    return [
        {**dict(zip(AXES, cell, strict=True)), "n": n, "ckey": key, "finest": finest(cube, cell)}
        for cell, (n, key, _) in brute_force(cube, records).items()
    ]


def write(path: Path, rows: list[Row]) -> None:
    columns = (*AXES, "n", "ckey") if all("ckey" in row for row in rows) else (*AXES, "n")
    table = pa.table({name: [row[name] for row in rows] for name in columns})
    if path.suffix == ".csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path)


def ready(
    folder: Path, records: list[Record], rows: list[Row], file: str = "c.parquet", more: str = ""
) -> Path:
    """A programme without a population, made of a ready-made cube alone."""
    counts = f'counts = {{ file = "{file}", count = "n", key = "ckey"{more} }}\n'
    folder.mkdir(exist_ok=True)
    write(folder / file, rows)
    programme(folder, records, CUBE + counts, head="")
    (folder / "persons.parquet").unlink()
    return folder / "programme.toml"


def released(path: Path, out: Path) -> pa.Table:
    def noon() -> datetime:
        return datetime(2026, 1, 1, 12, tzinfo=UTC)

    protect(load_programme(path), SECRET, out, out.with_name(f"{out.name}.json"), clock=noon)
    return open_release(out).read_cube("c")


@pytest.mark.parametrize("file", ["c.parquet", "c.csv"])
@pytest.mark.parametrize("totals", [False, True])
def test_values_are_those_from_the_records(
    records: list[Record], counted: list[Row], tmp_path: Path, file: str, totals: bool
) -> None:
    programme(tmp_path / "records", records, CUBE)
    wanted = released(tmp_path / "records/programme.toml", tmp_path / "a")
    rows = [row for row in counted if totals or row["finest"]][::-1]
    made = ready(tmp_path / "ready", records, rows, file)
    assert check_data(load_programme(made)) == []
    assert released(made, tmp_path / "b").equals(wanted)


@pytest.mark.parametrize("modulus", [256, 4096, 2**31])
def test_keys_of_a_smaller_modulus_give_the_noise_of_that_modulus(
    records: list[Record], counted: list[Row], tmp_path: Path, modulus: int
) -> None:
    rows = [{**row, "ckey": row["ckey"] % modulus} for row in counted]  # totals too, reduced
    loaded = load_programme(ready(tmp_path, records, rows, more=f", modulus = {modulus}"))
    table = ready_made_table(loaded.cubes[0], loaded.ready_made["c"])
    lookup = build(solve(PTableParameters(6, 3.0)), Order.PLAIN, modulus=modulus)
    small = CellKeyMechanism(lookup, secret_permutation(bytes(32), modulus))
    from_records = {tuple(row[axis] for axis in AXES): (row["n"], row["ckey"] % modulus) for row in counted}
    assert {cell: (n, key % modulus) for cell, (n, key, _) in content(table).items()} == from_records
    assert len(small.perturb(table)) > 0


def refusal(path: Path) -> str:
    """What check says; protecting says the same and writes nothing."""
    loaded = load_programme(path)
    problems = check_data(loaded)
    assert problems
    out = path.parent / "release"
    with pytest.raises(Mistakes) as caught:
        released(path, out)
    assert not out.exists()
    assert set(caught.value.problems) <= set(problems)
    return "\n".join(map(str, problems))


def at(rows: list[Row], **codes: str) -> Row:
    return next(row for row in rows if all(row[name] == code for name, code in codes.items()))


def changed(rows: list[Row], where: Row, **values: Any) -> list[Row]:
    return [{**row, **values} if row is where else row for row in rows]


TOTAL = {"GEO": "_T", "SEX": "_T", "AGE": "_T"}
CASES: dict[str, tuple[Callable[[list[Row]], list[Row]], str]] = {
    "a total that is too large": (
        lambda rows: changed(rows, at(rows, **TOTAL), n=at(rows, **TOTAL)["n"] + 1),
        "the total at _T, _T, _T is not the sum",
    ),
    "a sub-total with another key": (
        lambda rows: changed(rows, at(rows, GEO="N", SEX="1", AGE="y"), ckey=5),
        "the total at N, 1, y is not the sum",
    ),
    "a hole that a total betrays": (
        lambda rows: [row for row in rows if row is not next(row for row in rows if row["finest"])],
        "is not the sum of its finest cells",
    ),
    "no finest cells at all": (lambda rows: [row for row in rows if not row["finest"]], "is not the sum"),
    "a cell twice": (lambda rows: [*rows, rows[0]], "duplicate cells"),
    "an unknown code": (lambda rows: changed(rows, rows[0], SEX="3"), "1 codes that are not in SEX: '3'"),
    "a code below the breakdown": (
        lambda rows: changed(rows, rows[0], AGE="y10"),
        "1 codes that are not in AGE.M: 'y10'",
    ),
    "no code": (lambda rows: changed(rows, rows[0], SEX=None), "have no value of SEX"),
    "no count": (lambda rows: changed(rows, rows[0], n=None), "values of 'n' that are not whole numbers"),
    "a negative count": (
        lambda rows: changed(rows, rows[0], n=-1),
        "values of 'n' that are not whole numbers",
    ),
    "a key out of range": (
        lambda rows: changed(rows, rows[0], ckey=2**32),
        "values of 'ckey' that are not whole",
    ),
    "a key of an empty cell": (
        lambda rows: changed(
            [row for row in rows if row["finest"]], next(r for r in rows if r["finest"]), n=0
        ),
        "empty cells with a key",
    ),
    "fractions": (
        lambda rows: [{**row, "n": row["n"] + 0.5} for row in rows],
        "values of 'n' that are not whole",
    ),
    "keys of a smaller modulus than declared": (
        lambda rows: [{**row, "ckey": row["ckey"] % 256} for row in rows if row["finest"]],
        "cell keys too small for the modulus 4294967296",
    ),
    "counts that overflow": (
        lambda rows: [{**row, "n": 2**31} for row in rows if row["finest"]],
        "add up to more than 4294967295",
    ),
    "no cells": (lambda rows: [], "no cells"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_doubtful_is_refused(
    records: list[Record], counted: list[Row], tmp_path: Path, case: str
) -> None:
    make, says = CASES[case]
    said = refusal(ready(tmp_path, records, make(counted)))
    assert says in said
    assert "c.parquet" in said
    assert f" {len(records)}" not in said


@pytest.mark.parametrize("column", ["n", "ckey"])
def test_hexadecimal_digits_are_no_number(
    records: list[Record], counted: list[Row], tmp_path: Path, column: str
) -> None:
    rows = [{**row, column: str(row[column])} for row in counted if row["finest"]]
    rows[0][column] = hex(int(rows[0][column]))
    said = refusal(ready(tmp_path, records, rows, "c.csv"))
    assert f"values of {column!r} that are not whole numbers from 0 to 4294967295" in said


def test_a_modulus_that_the_p_table_cannot_take_is_refused(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    for modulus in (256, 1000):
        rows = [{**row, "ckey": row["ckey"] % modulus} for row in counted if row["finest"]]
        said = refusal(ready(tmp_path / str(modulus), records, rows, more=f", modulus = {modulus}"))
        assert f"cell keys modulo {modulus} with a p-table modulo 4294967296" in said


def test_missing_columns_are_told_together(records: list[Record], counted: list[Row], tmp_path: Path) -> None:
    path = ready(tmp_path, records, counted)
    pq.write_table(pa.table({"GEO": ["N1"], "n": [1]}), tmp_path / "c.parquet")
    said = refusal(path)
    for name in ("SEX", "AGE", "ckey"):
        assert f"unknown column '{name}'" in said


def test_a_programme_of_ready_made_cubes_runs_from_the_command_line(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    path = ready(tmp_path, records, [row for row in counted if row["finest"]], "c.csv")
    (tmp_path / "secret.key").write_text(SECRET.hex())
    (tmp_path / "secret.key").chmod(0o600)
    program = [sys.executable, "-c", "from discreet.cli.app import main; main()"]
    words = ["protect", path.name, "--secret", "secret.key", "--out", "release"]
    done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert verify(tmp_path / "release").passed
    assert len(open_release(tmp_path / "release").read_cube("c")) > 50


PRIVATE = '[noise]\nkind = "geometric"\nepsilon = 2\nallow_weak = true\n{}'


def private(path: Path, more: str = "") -> Path:
    """The same programme with noise of a known law, and variables that belong to persons."""
    text = re.sub(r"\[noise\]\n(?:[^\[\n].*\n)*", "", path.read_text())
    owned = re.sub(r"(\[variables\.\w+\]\n)", r'\1of = "person"\n', text)
    path.write_text(f"{owned}\n{PRIVATE.format(more)}")
    return path


def test_noise_with_a_guarantee_needs_no_cell_keys(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    """The same counts with and without keys, and with keys of any modulus, have the same noise."""
    rows = [row for row in counted if row["finest"]]
    bare = [{name: value for name, value in row.items() if name != "ckey"} for row in counted]
    tables = []
    for name, given, more in (
        ("keys", rows, ""),
        ("none", bare, ""),
        ("odd", [{**row, "ckey": row["ckey"] % 1000} for row in rows], ", modulus = 1000"),
    ):
        path = private(ready(tmp_path / name, records, given, more=more))
        loaded = load_programme(path)
        assert check_data(loaded) == []
        assert len(released(path, tmp_path / f"{name}-release")) > 0
        tables.append(counts_of(ready_made_table(loaded.cubes[0], loaded.ready_made["c"]).cells).tolist())
    assert tables[0] == tables[1] == tables[2]


def test_noise_by_participants_needs_cell_keys(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    bare = [{name: value for name, value in row.items() if name != "ckey"} for row in counted]
    path = private(
        ready(tmp_path, records, bare), 'draw = "participants"\nclaim = "none"\nkeep_zeros = "all"\n'
    )
    assert "unknown column 'ckey'" in refusal(path)


def test_columns_may_be_named_as_those_of_the_records(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    path = ready(tmp_path, records, counted)
    before = ready_made_table(*_first(path))
    table = pq.read_table(tmp_path / "c.parquet")
    names = ["town" if name == "GEO" else name for name in table.column_names]
    pq.write_table(table.rename_columns(names), tmp_path / "c.parquet")
    after = ready_made_table(*_first(path))
    assert np.array_equal(before.cells, after.cells)


def _first(path: Path) -> tuple[Cube, ReadyMade]:
    programme = load_programme(path)
    cube = next(one for one in programme.cubes if one.id in programme.ready_made)
    return cube, programme.ready_made[cube.id]


def test_missing_columns_say_what_they_are_for(
    records: list[Record], counted: list[Row], tmp_path: Path
) -> None:
    path = ready(tmp_path, records, counted)
    pq.write_table(pa.table({"GEO": ["N1"], "gender": ["1"], "AGE": ["y"]}), tmp_path / "c.parquet")
    said = refusal(path)
    assert (
        "unknown column 'n'; the file has GEO, gender, AGE; name the column of the counts with counts.count"
        in said
    )
    assert 'name the column of the cell keys with counts.key = "..", or use noise with a guarantee' in said
    assert "unknown column 'SEX'; " in said
    assert len(said.splitlines()) == 3
    with_guarantee = refusal(private(path))
    assert "cell keys" not in with_guarantee
    assert len(with_guarantee.splitlines()) == 2
