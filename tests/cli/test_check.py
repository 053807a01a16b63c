"""Every bad input through the command line: one line for each mistake, exit code 2, nothing written."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.cli.app import main
from tests.cases import few
from tests.cli.town import CODELISTS, Columns, build, edit, households, persons

CHECK = ("check", "programme.toml")
WEIGHTED = (
    "Weighted: workers. A sum has the noise of its count times the mean weight, and one of its own within 2.45 times "
    "the largest weight of the cell. Sums and means of amounts are not protected."
)
PROTECT = ("protect", "programme.toml", "--secret", "secret.key", "--out", "out/release")
Told = tuple[int, str]
Command = Callable[..., Told]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command line in this process as the installed command does."""

    def run(folder: Path, *words: str) -> Told:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["discreet", *words])
        capsys.readouterr()
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        told = capsys.readouterr()
        return code, told.err + told.out

    return run


def refused(command: Command, folder: Path, *words: str) -> str:
    """What a refusal says, after everything that must hold of any has been asserted."""
    before = sorted(path.name for path in folder.rglob("*"))
    code, said = command(folder, *words)
    assert code == 2, said
    assert "Traceback" not in said
    assert not re.search(r"\b[79]0000\d{3}", said), "an id"
    assert not re.search(r"\b(60|120|59|119)\b", said), "a number of records"
    left = sorted(path.name for path in folder.rglob("*"))
    assert [name for name in left if name not in before] in ([], ["out"])
    for line in said.splitlines():
        assert line.count("; ") >= 1, f"no remedy: {line}"
    return said


def with_column(table: Columns, name: str, values: Callable[[list[Any]], Any]) -> Columns:
    return {**table, name: values(table[name])}


def set_first(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda column: [value, *column[1:]]


def as_arrow(kind: pa.DataType) -> Callable[[list[Any]], Any]:
    return lambda column: pa.array([float(v) for v in column]).cast(kind)


def test_the_town_is_sound_and_protected(tmp_path: Path, command: Command) -> None:
    build(tmp_path)
    assert command(tmp_path, *CHECK) == (0, f"programme.toml: no mistakes. 3 cubes.\n{WEIGHTED}\n")
    assert command(tmp_path, *PROTECT, "--quiet") == (0, "")
    assert command(tmp_path, "verify", "out/release", "--quiet")[0] == 0


PERSONS: list[tuple[str, Columns, list[str]]] = [
    (
        "unknown code",
        with_column(persons(), "sex", set_first("7")),
        ["SEX", "1 codes that are not leaves of the codelist", "'7'"],
    ),
    (
        "many unknown codes",
        with_column(persons(), "age", lambda c: [f"x{n % 9}" for n in range(len(c))]),
        ["AGE", "9 codes that are not leaves of the codelist", "'x0', 'x1', 'x2', 'x3', 'x4', ..."],
    ),
    (
        "a code with codes below it",
        with_column(persons(), "town", lambda c: ["N", "N", *c[2:]]),
        ["GEO", "not leaves of the codelist: 'N'"],
    ),
    ("null code", with_column(persons(), "sex", set_first(None)), ["SEX", "some records have no value"]),
    ("null id", with_column(persons(), "pid", set_first(None)), ["column pid", "some records have no id"]),
    ("null flag", with_column(persons(), "works", set_first(None)), ["column works", "missing"]),
    ("null weight", with_column(persons(), "weight", set_first(None)), ["column weight", "missing"]),
    (
        "duplicate ids",
        with_column(persons(), "pid", lambda c: [c[1], *c[1:]]),
        ["population.persons", "duplicate ids in 'pid'"],
    ),
    (
        "floats as codes",
        with_column(persons(), "sex", lambda c: [float(v) + 0.5 for v in c]),
        ["SEX", "3 codes that are not leaves of the codelist: '1.5', '2.5', '9.5'"],
    ),
    (
        "decimals as codes",
        with_column(persons(), "age", lambda c: pa.array([0.25] * len(c)).cast(pa.decimal128(5, 2))),
        ["AGE", "1 codes that are not leaves of the codelist: '0.25'"],
    ),
    (
        "dictionary of floats",
        with_column(persons(), "sex", lambda c: pa.array([float(v) + 6 for v in c]).dictionary_encode()),
        ["SEX", "3 codes that are not leaves of the codelist: '15', '7', '8'"],
    ),
    (
        "dates as codes",
        with_column(persons(), "sex", lambda c: pa.array([0] * len(c), pa.date32())),
        ["SEX", "1 codes that are not leaves of the codelist: '1970-01-01'"],
    ),
    (
        "lists as codes",
        with_column(persons(), "sex", lambda c: [[v] for v in c]),
        ["SEX", "values of type list"],
    ),
    (
        "bytes as codes",
        with_column(persons(), "sex", lambda c: [b"\xff" for _ in c]),
        ["SEX", "values of type binary"],
    ),
    (
        "all null",
        with_column(persons(), "sex", lambda c: pa.nulls(len(c))),
        ["SEX", "some records have no value"],
    ),
    (
        "floats as ids",
        with_column(persons(), "pid", as_arrow(pa.float64())),
        ["column pid", "ids of type double"],
    ),
    (
        "decimals as ids",
        with_column(persons(), "pid", as_arrow(pa.decimal128(20, 0))),
        ["column pid", "ids of type decimal128"],
    ),
    ("flag of two", with_column(persons(), "works", set_first(2)), ["column works", "other than 0 and 1"]),
    (
        "flag as text",
        with_column(persons(), "works", lambda c: ["yes" for _ in c]),
        ["column works", "text in a counted column"],
    ),
    ("negative weight", with_column(persons(), "weight", set_first(-0.5)), ["column weight", "negative"]),
    (
        "weight not a number",
        with_column(persons(), "weight", set_first(float("nan"))),
        ["column weight", "weights"],
    ),
    (
        "infinite weight",
        with_column(persons(), "weight", set_first(float("inf"))),
        ["column weight", "infinite"],
    ),
    ("empty table", {name: [] for name in persons()}, ["persons.parquet", "no records"]),
    (
        "structural zero",
        {**persons(), "age": ["child" for _ in persons()["age"]]},
        ["structural_zeros", "records with AGE"],
    ),
    ("unknown column", {k: v for k, v in persons().items() if k != "sex"}, ["unknown column 'sex'"]),
    (
        "misspelt column",
        {"wieght" if k == "weight" else k: v for k, v in persons().items()},
        ["unknown column 'weight'", "did you mean 'wieght'?"],
    ),
    ("no id column", {k: v for k, v in persons().items() if k != "pid"}, ["unknown column 'pid'"]),
]


@pytest.mark.parametrize(
    ("columns", "says"), [case[1:] for case in PERSONS], ids=[case[0] for case in PERSONS]
)
@pytest.mark.parametrize("words", [CHECK, PROTECT], ids=["check", "protect"])
def test_bad_records_are_refused(
    tmp_path: Path, command: Command, words: tuple[str, ...], columns: Columns, says: list[str]
) -> None:
    said = refused(command, build(tmp_path, persons=columns), *words)
    assert len(said.splitlines()) == 1, said
    for part in says:
        assert part in said


PLACES: list[tuple[str, Columns, list[str]]] = [
    (
        "geography that does not nest",
        with_column(persons(), "region", set_first("S")),
        ["population.geography (persons)", "town 'N1' is in region 'N' and in 'S'", "in the codelist in N"],
    ),
    (
        "geography that contradicts the codelist",
        with_column(persons(), "region", lambda c: ["S" if v == "N" else "N" for v in c]),
        ["variables.GEO", "'S1' is in N, but in the codelist in S"],
    ),
    (
        "a region left open",
        with_column(persons(), "region", set_first(None)),
        ["column region", "have no place"],
    ),
    (
        "a geography column that is not there",
        {"regoin" if k == "region" else k: v for k, v in persons().items()},
        ["population.geography (persons)", "unknown column 'region'", "did you mean 'regoin'?"],
    ),
]


@pytest.mark.parametrize(("columns", "says"), [case[1:] for case in PLACES], ids=[case[0] for case in PLACES])
def test_misplaced_records_are_refused(
    tmp_path: Path, command: Command, columns: Columns, says: list[str]
) -> None:
    said = refused(command, build(tmp_path, persons=columns), *CHECK)
    assert len(said.splitlines()) == 1 + said.count("in the codelist in N"), said
    for part in says:
        assert part in said


PROGRAMMES: list[tuple[str, tuple[str, str], list[str]]] = [
    (
        "unknown breakdown",
        ('["GEO.H", "SEX"', '["GEO.X", "SEX"'),
        ["cubes[0].axes", "'GEO.X'", "GEO.L, GEO.H"],
    ),
    (
        "unknown variable",
        ('"SEX", "AGE"]', '"SXE", "AGE"]'),
        ["unknown variable 'SXE'", "did you mean 'SEX'?"],
    ),
    ("cube too large", ("[noise]", "[limits]\ncells = 20\n[noise]"), ["72 cells", "limits.cells = 20"]),
    (
        "no such file",
        ('"persons.parquet"', '"people.parquet"'),
        ["population.persons", "no file 'people.parquet'"],
    ),
    ("no such codelist", ('"sex.csv"', '"sexes.csv"'), ["variables.SEX.codelist", "no file 'sexes.csv'"]),
    ("wrong type", ("D = 5", 'D = "five"'), ["noise.D", "'five'"]),
    ("unknown key", ("D = 5", "D = 5\nd = 5"), ["unknown key 'd'", "use one of D, V"]),
    ("no noise", ('[noise]\nkind = "cell-key"\nV = 2.0\nD = 5\n', ""), ["noise", "is missing"]),
    ("infeasible noise", ("D = 5", "D = 5\njs = 40"), ["js = 40", "feasible"]),
    ("unit without a table", ('unit = "households"', 'unit = "families"'), ["no table of families"]),
]


@pytest.mark.parametrize(
    ("change", "says"), [case[1:] for case in PROGRAMMES], ids=[case[0] for case in PROGRAMMES]
)
@pytest.mark.parametrize("words", [CHECK, PROTECT], ids=["check", "protect"])
def test_bad_programmes_are_refused(
    tmp_path: Path, command: Command, words: tuple[str, ...], change: tuple[str, str], says: list[str]
) -> None:
    edit(build(tmp_path), change)
    said = command(tmp_path, *words)
    assert said[0] == 2, said
    assert "Traceback" not in said[1]
    for part in says:
        assert part in said[1]
    assert not list(tmp_path.glob("out/*"))


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("X1,X,\n", ["code 'X1' has the unknown parent 'X'"]),
        ("A,B,\nB,A,\n", ["code 'A' is its own ancestor", "code 'B' is its own ancestor"]),
        ("N1,S,\n", ["code 'N1' occurs twice"]),
        ("C,C,\nX1,X,\n", ["code 'C' is its own ancestor", "unknown parent 'X'"]),
    ],
)
def test_broken_hierarchies_are_refused(
    tmp_path: Path, command: Command, lines: str, says: list[str]
) -> None:
    build(tmp_path)
    (tmp_path / "geo.csv").write_text(CODELISTS["geo.csv"] + lines)
    said = refused(command, tmp_path, *CHECK)
    for part in says:
        assert part in said
    assert "geo.csv" in said


def test_mistakes_of_several_kinds_and_places_are_told_together(tmp_path: Path, command: Command) -> None:
    people = with_column(with_column(persons(), "sex", set_first("7")), "pid", lambda c: [c[1], *c[1:]])
    people = with_column(with_column(people, "works", set_first(5)), "weight", set_first(-1.0))
    people = with_column(people, "region", set_first("S"))
    del people["age"]
    homes = with_column(with_column(households(), "tenure", set_first(None)), "hid", lambda c: [c[1], *c[1:]])
    build(tmp_path, persons=people, households=homes)
    edit(
        tmp_path,
        (
            "[noise]",
            '[[cubes]]\nid = "wrong"\naxes = ["GEO.H", "SXE"]\n\n[[cubes]]\nid = "people"\naxes = ["SEX"]\n[noise]',
        ),
    )
    said = refused(command, tmp_path, *CHECK)
    for part in (
        "unknown variable 'SXE'",
        "id 'people' occurs twice",
        "unknown column 'age'",
        "codes that are not leaves of the codelist: '7'",
        "duplicate ids in 'pid'",
        "values other than 0 and 1",
        "weights that are negative",
        "town 'N1' is in region",
        "variables.TENURE: some records have no value",
        "duplicate ids in 'hid'",
    ):
        assert part in said
    assert len(said.splitlines()) == 10 + 1  # the region also contradicts the codelist


def test_an_infeasible_noise_does_not_hide_the_records(tmp_path: Path, command: Command) -> None:
    edit(build(tmp_path, persons=with_column(persons(), "sex", set_first("7"))), ("D = 5", "D = 5\njs = 40"))
    said = refused(command, tmp_path, *CHECK)
    assert "noise" in said
    assert "'7'" in said


def test_an_unknown_code_is_not_taken_for_a_structural_zero(tmp_path: Path, command: Command) -> None:
    edit(build(tmp_path, persons=with_column(persons(), "sex", set_first("7"))), ('SEX == "9"', 'SEX == "1"'))
    people = with_column(persons(), "sex", lambda c: ["7" if v == "1" else v for v in c])
    pq.write_table(pa.table(people), tmp_path / "persons.parquet")
    assert "structural_zeros" not in refused(command, tmp_path, *CHECK)


def test_a_rule_is_judged_and_refuses_nothing_where_no_cube_has_its_variables(
    tmp_path: Path, command: Command
) -> None:
    edit(
        build(tmp_path, persons={**persons(), "age": ["child" for _ in persons()["age"]]}),
        ('axes = ["GEO.H", "SEX", "AGE"]', 'axes = ["GEO.H", "SEX"]'),
    )
    code, said = command(tmp_path, *CHECK)
    assert code == 0
    assert "Not refused, because no cube counts it" in said
    assert "structural_zeros" in said


def test_ids_taken_for_codes_are_not_shown(tmp_path: Path, command: Command) -> None:
    edit(build(tmp_path), ("[variables.SEX]", '[variables.SEX]\ncolumn = "hid"'))
    for words in (CHECK, PROTECT):
        assert "the column 'hid' contains values that are not in the codelist" in refused(
            command, tmp_path, *words
        )
    many = {**persons(), "number": [f"K{n}" for n in range(120)]}
    build(
        tmp_path,
        persons={name: [*column] * 10 for name, column in many.items()}
        | {"pid": list(range(1200)), "number": [f"7000000{n}" for n in range(1200)]},
    )
    edit(tmp_path, ("[variables.SEX]", '[variables.SEX]\ncolumn = "number"'))
    assert "the column 'number' contains values that are not in the codelist" in refused(
        command, tmp_path, *CHECK
    )


def test_a_table_without_the_geography_is_sound_where_no_cube_wants_it(
    tmp_path: Path, command: Command
) -> None:
    homes = {k: v for k, v in households().items() if k in ("hid", "tenure")}
    edit(build(tmp_path, households=homes), ('axes = ["GEO.H", "TENURE"]', 'axes = ["TENURE"]'))
    assert command(tmp_path, *CHECK)[0] == 0
    assert command(tmp_path, *PROTECT)[0] == 0


def test_columns_may_name_coarse_places_otherwise_than_the_codelist_if_they_do_it_alike(
    tmp_path: Path, command: Command
) -> None:
    names = {"N": "the north", "S": "1"}
    tables = {"persons": persons(), "households": households()}
    for table in tables.values():
        table["region"] = [names[region] for region in table["region"]]
    build(tmp_path, **tables)
    assert command(tmp_path, *CHECK)[0] == 0
    tables["persons"]["region"] = ["the north" for _ in tables["persons"]["region"]]
    assert "'S1' is in the north, but in the codelist in S" in refused(
        command, build(tmp_path, **tables), *CHECK
    )


def test_given_record_keys_are_checked_and_ids_beside_them_too(tmp_path: Path, command: Command) -> None:
    people = {**persons(), "rkey": [n * 35_791_394 for n in range(120)]}
    people["pid"][0] = people["pid"][1]
    edit(build(tmp_path, persons=people), ('person_id = "pid"', 'person_id = "pid"\nrecord_key = "rkey"'))
    assert "duplicate ids in 'pid'" in refused(command, tmp_path, *CHECK)
    for keys, says in (
        ([n % 256 for n in range(120)], "record keys too small for the p-table"),
        ([-1] + [2**31] * 119, "record keys out of range"),
        ([0.5] * 120, "record keys that are not all whole numbers"),
        (["x"] * 120, "text among the record keys"),
    ):
        pq.write_table(pa.table({**persons(), "rkey": keys}), tmp_path / "persons.parquet")
        assert says in refused(command, tmp_path, *CHECK)


def test_columns_as_other_tools_write_them_are_accepted(tmp_path: Path, command: Command) -> None:
    build(tmp_path)
    assert command(tmp_path, *PROTECT, "--quiet")[0] == 0
    wanted = {path.name: path.read_bytes() for path in (tmp_path / "out/release/parquet").iterdir()}
    columns = persons()
    other = {
        **columns,
        "pid": pa.array([str(v) for v in columns["pid"]], pa.large_string()),
        "sex": [int(v) for v in columns["sex"]],
        "age": pa.array(columns["age"], pa.string_view()).cast(pa.large_string()).dictionary_encode(),
        "works": [bool(v) for v in columns["works"]],
        "weight": pa.array([Decimal(str(v)) for v in columns["weight"]], pa.decimal128(8, 3)),
    }
    pq.write_table(pa.table(other), tmp_path / "persons.parquet")
    assert command(tmp_path, *PROTECT, "--quiet") == (0, "")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out/release/parquet").iterdir()} == wanted


def test_check_as_json(tmp_path: Path, command: Command) -> None:
    build(tmp_path)
    assert json.loads(command(tmp_path, *CHECK, "--json")[1]) == {
        "sound": True,
        "problems": [],
        "notes": [WEIGHTED],
    }
    build(tmp_path, persons=with_column(persons(), "sex", set_first("7")))
    code, said = command(tmp_path, *CHECK, "--json")
    assert code == 2
    assert [set(problem) for problem in json.loads(said)["problems"]] == [{"file", "key", "value", "remedy"}]
    (tmp_path / "programme.toml").write_text("no toml")
    code, said = command(tmp_path, *CHECK, "--json")
    assert (code, json.loads(said)["sound"]) == (2, False)


@pytest.mark.parametrize("words", few([CHECK, PROTECT], 1, single=True), ids=["check", "protect"])
def test_the_installed_command_refuses_alike(tmp_path: Path, words: tuple[str, ...]) -> None:
    build(tmp_path, persons=with_column(persons(), "sex", set_first("7")))
    program = [sys.executable, "-c", "from discreet.cli.app import main; main()"]
    done = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'7'" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not list(tmp_path.glob("out/*"))


def test_a_share_that_fits_no_cube_is_reported_once(command: Command, tmp_path: Path) -> None:
    town = build(tmp_path / "town")
    path = town / "programme.toml"
    text = path.read_text().replace('weight = "weight"\n', "").partition("[noise]")[0]
    split = 'split = { by_level = { "GEO:1" = 1 } }'
    path.write_text(f'{text}[noise]\nkind = "geometric"\nepsilon = 9\nclaim = "none"\n{split}\n')
    said = refused(command, town, *CHECK).splitlines()
    assert [line.split(": ")[1] for line in said] == [
        "noise.split, margin GEO:0",
        "noise.split, margin GEO:2",
    ]


@pytest.mark.parametrize("sums", ["", ", sums = true"])
def test_a_mistake_in_one_cube_is_reported_where_cross_tabulations_are_left_out(
    command: Command, tmp_path: Path, sums: str
) -> None:
    town = build(tmp_path / "town")
    path = town / "programme.toml"
    text = path.read_text().replace('weight = "weight"\n', "").partition("[noise]")[0]
    noise = f'claim = "none"\nnegatives = "keep"\nsplit = {{ margins = "none"{sums} }}\n'
    path.write_text(
        f'{text}[[cubes]]\nid = "wrong"\naxes = []\n[noise]\nkind = "geometric"\nepsilon = 9\n{noise}'
    )
    (line,) = refused(command, town, *CHECK).splitlines()
    assert "cubes[3].axes: is empty" in line
