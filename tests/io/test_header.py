"""Names of columns in messages: a typo is answered with the names that there are, a lost header with no value."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet as ds
from discreet.errors import Mistakes
from discreet.io.column_names import shown_names
from discreet.io.databases import open_source
from discreet.io.header import could_be_name, is_record, may_be_shown
from discreet.programme.sources import MemorySource, resolve_source
from tests.cli import town
from tests.cli.called import discreet
from tests.fuzz.oracle import ID

RECORDS = [
    ["70000123", "90000077", "F", "A1", "3.5", "2021-05-01"],
    ["70000124", "90000077", "M", "A1", "2.5", "2021-05-02"],
    ["70000125", "90000078", "F", "B1", "0.5", ""],
    ["70000126", "90000079", "M", "B1", "1", "2021-05-04"],
]
NAMES = ["pid", "hid", "sex", "lau", "w", "day"]
LOST = "the first line looks like a record, not like the names of columns"


def test_a_record_is_no_header_and_a_header_no_record() -> None:
    assert is_record(RECORDS[0], RECORDS[1:])
    assert not is_record(NAMES, RECORDS)
    assert not is_record(NAMES, [])
    assert not is_record(NAMES, [row[:2] for row in RECORDS])


@pytest.mark.parametrize(
    "names",
    [
        ["p0001", "h0001", "F", "A1", "3.5", "x"],  # ids with letters
        ["7", "9", "1", "2", "3.5", "2021-05-09"],
        ["70000123", "90000077", "sex", "A1", "3.5", "2021-05-01"],  # damaged, too
    ],
)
def test_records_of_other_forms_are_found(names: list[str]) -> None:
    ids = [[f"p{n:04}", f"h{n:04}", *RECORDS[n % 4][2:]] for n in range(2, 9)]
    assert is_record(names, ids if names[0] == "p0001" else RECORDS)


def test_persons_by_name_are_found() -> None:
    rows = [["Anna Smith", "12 High Street", "Leeds"], ["John Peter Brown", "3 Low Road", "York"]] * 3
    rows += [["Ada Jones", "7 Mill Lane", "York"], ["Carl May", "45 Old Road", "Leeds"]] * 3
    assert is_record(["Mary Wood", "15 Park Lane", "Leeds"], rows)
    assert not is_record(["Full name", "Street and number", "Town"], rows)


@pytest.mark.parametrize(
    ("names", "row"),
    [
        (["NUTS1", "NUTS2", "NUTS3", "LAU2", "id"], ["DE1", "DE12", "DE123", "DE123456", "1"]),
        (["q1", "q2", "q3", "q4"], ["1", "2", "3", "4"]),
        (["id", "no"], ["7", "no"]),
        (["2011", "2021", "id", "sex", "age"], ["7", "8", "1", "F", "3"]),
        (["A1", "A2", "A3"], ["x", "y", "z"]),
        (["", "id"], ["1", "2"]),
    ],
)
def test_headers_that_people_write_are_headers(names: list[str], row: list[str]) -> None:
    assert not is_record(names, [row] * 5)


@pytest.mark.parametrize(
    "name", ["sex", "é", "GEO.L", "age in years", "ISCO08", "2011 income", "v1", "x" * 100, "年齢"]
)
def test_names_are_shown(name: str) -> None:
    assert may_be_shown(name)
    assert could_be_name(name)


@pytest.mark.parametrize(
    "name", ["70000123", "3.5", "w70000123", "sex\n70000123", "x" * 101, "", "2021-05-01"]
)
def test_values_are_not_shown(name: str) -> None:
    assert not may_be_shown(name)


def written(folder: Path, kind: str, names: list[str]) -> str:
    """A programme over records whose columns have these names; its other files are those of a town."""
    town.build(folder)
    rows = RECORDS[1:]
    if kind == "csv":
        (folder / "p.csv").write_text("\n".join(",".join(row) for row in [names, *rows]) + "\n")
        source = '"p.csv"'
    else:
        pq.write_table(
            pa.table({name: [row[k] for row in rows] for k, name in enumerate(names)}), folder / "p.parquet"
        )
        source = '"p.parquet"' if kind == "parquet" else "{ query = \"SELECT * FROM 'p.parquet'\" }"
    text = (folder / "programme.toml").read_text().replace('"persons.parquet"', source, 1)
    (folder / "programme.toml").write_text(text)
    return source


@pytest.mark.parametrize("kind", ["csv", "parquet", "query"])
def test_no_command_shows_a_record_that_was_read_as_a_header(kind: str, tmp_path: Path) -> None:
    written(tmp_path / "t", kind, RECORDS[0])
    programme = tmp_path / "t/programme.toml"
    (tmp_path / "t/swap.toml").write_text(
        programme.read_text()
        + '\n[swap]\nk = 3\nrisk = ["SEX"]\nsimilar = [[{ composition = ["SEX"] }]]\nrate = 0.1\n'
    )
    secret = ("--secret", tmp_path / "t/secret.key")
    for words in (
        ("check", programme),
        ("protect", programme, *secret, "--out", tmp_path / "o"),
        ("swap", tmp_path / "t/swap.toml", *secret, "--out", tmp_path / "o", "--report", tmp_path / "r"),
        ("serve", programme, *secret, "--port", "0", "--store", tmp_path / "s.sqlite"),
        *([("init", tmp_path / f"t/p.{kind}", "--out", tmp_path / "o")] if kind != "query" else []),
    ):
        said = discreet(*words)
        assert said.returncode == 2, words
        assert not ID.search(said.stdout + said.stderr), words
        assert (LOST if kind == "csv" else "look like the values of a record") in said.stderr, words
        assert len(said.stderr.splitlines()) <= 2, said.stderr
        assert not (tmp_path / "o").exists()


def test_a_typo_is_answered_with_the_columns_that_there_are(tmp_path: Path) -> None:
    written(tmp_path / "t", "csv", NAMES)
    programme = tmp_path / "t/programme.toml"
    programme.write_text(programme.read_text().replace('person_id = "pid"', 'person_id = "ident"'))
    said = discreet("check", programme).stderr
    assert "unknown column 'ident'; the table has pid, hid, sex, lau, w, day" in said
    programme.write_text(programme.read_text().replace('person_id = "ident"', 'person_id = "pidd"'))
    assert "unknown column 'pidd'; did you mean 'pid'?" in discreet("check", programme).stderr


def test_a_part_without_a_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("\n".join(",".join(row) for row in [NAMES, *RECORDS]))
    (tmp_path / "1.csv").write_text("\n".join(",".join(row) for row in RECORDS))
    with pytest.raises(Mistakes) as found:
        open_source(resolve_source(str(tmp_path / "*.csv"), tmp_path, "", ""), "population.persons")
    assert str(found.value).startswith(f"{tmp_path / '1.csv'}: population.persons: {LOST}")
    assert not ID.search(str(found.value))


def test_an_id_that_occurs_twice_in_the_first_line_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "0.csv").write_text("70000123,70000123,F\n70000124,70000124,M\n70000125,70000124,F\n")
    with pytest.raises(Mistakes) as found:
        open_source(resolve_source(str(tmp_path / "0.csv"), tmp_path, "", ""), "population.persons")
    assert LOST in str(found.value)


def test_records_in_memory_are_judged_as_well(tmp_path: Path) -> None:
    table = pa.table({name: [row[k] for row in RECORDS[1:]] for k, name in enumerate(RECORDS[0])})
    with pytest.raises(Mistakes, match="look like the values of a record"):
        shown_names(open_source(MemorySource("persons", table), ""), "")
    refused: tuple[Callable[[], ds.Population], ...] = (
        lambda: ds.Population.inferred(persons=table),
        lambda: ds.Population(persons=table, person_id="pid"),
        lambda: ds.Population(persons=table, person_id="70000123", weights=["w"]),
    )
    for make in refused:
        with pytest.raises(Mistakes, match="look like the values of a record") as found:
            make()
        assert not ID.search(str(found.value))


def test_a_name_of_several_lines_is_not_written_into_a_draft(tmp_path: Path) -> None:
    lines = [",".join(row) for row in RECORDS]
    (tmp_path / "p.csv").write_text(
        'pid,hid,sex,lau,w,"day\n' + f'{lines[0]}"\n' + "\n".join(lines[1:]) + "\n"
    )
    said = discreet("init", tmp_path / "p.csv", "--out", tmp_path / "o")
    assert said.returncode == 2
    assert "the name of column 6 looks like a value" in said.stderr
    assert not ID.search(said.stderr)
    assert not (tmp_path / "o").exists()


def test_ids_in_a_column_of_codes_are_not_shown(tmp_path: Path) -> None:
    """The header names the columns in another order than the records have them."""
    town.build(tmp_path / "t")
    persons = town.persons()
    persons["sex"], persons["pid"] = [str(one) for one in persons["pid"]], list(range(len(persons["pid"])))
    town.rewrite(tmp_path / "t", persons=persons)
    said = discreet("check", tmp_path / "t/programme.toml")
    assert said.returncode == 2
    assert "the column 'sex' contains values that are not in the codelist" in said.stderr
    assert not ID.search(said.stderr)
    persons["sex"] = [str(one) for one in persons["hid"]]
    town.rewrite(tmp_path / "t", persons=persons)
    assert not ID.search(discreet("check", tmp_path / "t/programme.toml").stderr)
    persons["sex"] = ["x" if n < 9 else "1" for n in range(len(persons["pid"]))]
    town.rewrite(tmp_path / "t", persons=persons)
    assert (
        "1 codes that are not leaves of the codelist: 'x'"
        in discreet("check", tmp_path / "t/programme.toml").stderr
    )
