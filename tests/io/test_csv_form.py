"""The form of CSV files: found in the file, declared, and shown; whatever it is, the same records are read."""

import gzip
from pathlib import Path

import pytest

from discreet.errors import Mistakes
from discreet.io import csv_form
from discreet.io.csv_form import CsvForm
from discreet.io.databases import open_source
from discreet.programme.population import DeclaredPopulation
from discreet.programme.sources import Dialect, FileSource, file_source, resolve_source

ROWS = [
    ("pid", "náme", "weight"),
    ("1", "Zürich, west", "1.5"),
    ("2", "two\nlines", "22"),
    ("3", "a;b|c\td", ""),
]


def text(delimiter: str, decimal: str = ".") -> str:
    def field(value: str) -> str:
        return f'"{value}"' if set(value) & set(",;|\t\n") else value

    lines = [[*map(field, row[:2]), row[2].replace(".", decimal)] for row in ROWS]
    return "".join(delimiter.join(line) + "\r\n" for line in lines)


def opened(
    folder: Path, content: bytes, name: str = "people.csv"
) -> tuple[CsvForm, list[tuple[str | None, ...]]]:
    (folder / name).write_bytes(content)
    records = open_source(file_source(name, folder, "p.toml", "k"), "k")
    names = records.schema.names
    rows = [
        tuple(row[name] for name in names)
        for batch in records.batches(names[:1], names[1:])
        for row in batch.to_pylist()
    ]
    return records.forms[0], [tuple(names), *rows]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_every_usual_form_is_found(tmp_path: Path, delimiter: str, encoding: str) -> None:
    decimal = "." if delimiter == "," else ","
    content = text(delimiter, decimal).encode(encoding)
    form, rows = opened(tmp_path, content)
    assert form == CsvForm(delimiter, encoding.removesuffix("-sig"), decimal)
    assert rows == [
        ROWS[0],
        ("1", "Zürich, west", f"1{decimal}5"),
        ("2", "two\nlines", "22"),
        ("3", "a;b|c\td", None),
    ]
    assert opened(tmp_path, gzip.compress(content), "people.csv.gz") == (form, rows)


def test_the_encoding_may_show_only_at_the_end(tmp_path: Path) -> None:
    lines = "".join(f"{number};x\n" for number in range(60_000))
    form, rows = opened(tmp_path, ("pid;name\n" + lines + "last;Zürich\n").encode("latin-1"))
    assert form == CsvForm(";", "windows-1252", ".")
    assert rows[-1] == ("last", "Zürich")


def test_bytes_that_windows_lacks_are_latin_1(tmp_path: Path) -> None:
    assert opened(tmp_path, b"pid,n\n1,\x8d\xe9\n")[0].encoding == "latin-1"


def test_numbers_with_thousands_are_no_decimal_commas(tmp_path: Path) -> None:
    assert opened(tmp_path, b"pid;income\n1;12,345\n2;1,000\n")[0].decimal == "."
    assert opened(tmp_path, b"pid;income\n1;12,345\n2;1,5\n")[0].decimal == ","
    assert opened(tmp_path, b'pid,income\n1,"12,5"\n')[0].decimal == "."  # only where commas separate nothing


def test_a_separator_within_a_header_is_not_counted(tmp_path: Path) -> None:
    assert opened(tmp_path, b'pid;"a,b,c,d"\n1;2\n')[0].delimiter == ";"
    assert (
        opened(tmp_path, b"pid;a,b,c\n1;2\n3;4\n")[0].delimiter == ";"
    )  # commas do not give every line as many
    assert opened(tmp_path, b"pid\n1\n")[1] == [("pid",), ("1",)]


def test_what_is_declared_overrides_what_is_found(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_bytes("pid/náme/w\n1/Łódź/1,234\n".encode("iso-8859-2"))
    declared = DeclaredPopulation.model_validate(
        {"persons": {"file": "people.csv", "delimiter": "/", "encoding": "iso-8859-2", "decimal": ","}}
    )
    assert declared.persons is not None
    source = resolve_source(declared.persons, tmp_path, "p.toml", "population.persons")
    assert isinstance(source, FileSource)
    assert source.describe() == {
        "files": "people.csv",
        "delimiter": "/",
        "encoding": "iso-8859-2",
        "decimal": ",",
    }
    records = open_source(source, "k")
    assert records.decimal == ","
    assert next(iter(records.batches(["pid"], ["náme"]))).to_pylist() == [{"pid": "1", "náme": "Łódź"}]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"file": "people.csv", "delimiter": ";;"}, "delimiter: ';;'; give one character"),
        ({"file": "people.csv", "delimiter": "a"}, "give one character"),
        ({"file": "people.csv", "delimiter": ",", "decimal": ","}, "another mark than the delimiter"),
        ({"file": "people.csv", "encoding": "latin-99"}, "encoding: 'latin-99'; give one such as"),
        ({"file": "people.csv", "encoding": "base64"}, "encoding: 'base64'; give one such as"),
        ({"file": "people.csv", "uri": "sqlite://a.db", "table": "t"}, "beside a database"),
        ({"delimiter": ";"}, "without a file"),
        ({"file": "people.parquet", "delimiter": ";"}, "which are not CSV"),
        ({"file": "nowhere.csv"}, "no file 'nowhere.csv'"),
    ],
)
def test_wrong_declarations_are_mistakes(tmp_path: Path, entry: dict[str, str], said: str) -> None:
    for name in ("people.csv", "people.parquet"):
        (tmp_path / name).write_text("pid\n1\n")
    declared = DeclaredPopulation.model_validate({"persons": entry})
    assert declared.persons is not None
    with pytest.raises(Mistakes, match=r"population\.persons") as caught:
        resolve_source(declared.persons, tmp_path, "p.toml", "population.persons")
    assert said in str(caught.value)


def test_files_of_one_source_may_have_different_forms(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("pid;w\n1;2\n")
    (tmp_path / "2.csv").write_text("w|pid\n1,5|2\n")
    records = open_source(file_source("*.csv", tmp_path, "p.toml", "k"), "k")
    assert [str(form) for form in records.forms] == [
        "separated by semicolons, utf-8, decimal point",
        "separated by |, utf-8, decimal comma",
    ]
    assert records.decimal == ","
    rows = [row for batch in records.batches(["pid"], []) for row in batch.to_pylist()]
    assert [row["pid"] for row in rows] == ["1", "2"]


def test_a_changed_file_is_examined_again(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("a;b\n1;2\n")
    assert csv_form.csv_form(path, Dialect()).delimiter == ";"
    path.write_text("a|bc\n1|2\n")
    assert csv_form.csv_form(path, Dialect()).delimiter == "|"
