"""Files as records: every form that a programme may name, and every way in which one can be broken."""

import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from discreet.errors import Mistakes
from discreet.io import files
from discreet.io.databases import open_source
from discreet.io.files import digest_files
from discreet.programme.sources import QuerySource, file_source

PEOPLE = pa.table({"pid": [1, 2, 3], "sex": ["1", "2", "1"], "age": ["a", "b", None]})
CSV = "pid,sex,age\n1,1,a\n2,2,b\n3,1,\n"


def rows(folder: Path, given: str, plain: list[str], coded: list[str]) -> list[dict[str, object]]:
    records = open_source(file_source(given, folder, "p.toml", "population.persons"), "population.persons")
    return [row for batch in records.batches(plain, coded) for row in batch.to_pylist()]


def refusal(folder: Path, given: str, plain: list[str] | None = None, coded: list[str] | None = None) -> str:
    with pytest.raises(Mistakes) as caught:
        rows(folder, given, plain or ["pid"], coded or ["sex"])
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].key == "population.persons"
    return str(caught.value)


@pytest.mark.parametrize(
    "given", ["people.parquet", "parts", "parts/*.parquet", "people.csv", "people.csv.gz"]
)
def test_all_forms_give_the_same_records(tmp_path: Path, given: str) -> None:
    (tmp_path / "parts/deep").mkdir(parents=True)
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    pq.write_table(PEOPLE.slice(0, 1), tmp_path / "parts/1.parquet")
    pq.write_table(PEOPLE.slice(1), tmp_path / "parts/2.parquet")
    (tmp_path / "people.csv").write_text(CSV)
    (tmp_path / "people.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    found = [
        {name: v and str(v) for name, v in row.items()}
        for row in rows(tmp_path, given, ["pid"], ["sex", "age"])
    ]
    assert found == [
        {"pid": "1", "sex": "1", "age": "a"},
        {"pid": "2", "sex": "2", "age": "b"},
        {"pid": "3", "sex": "1", "age": None},
    ]


def test_a_column_may_be_plain_and_coded_at_once(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text(CSV)
    for given in ("people.parquet", "people.csv"):
        assert [row["sex"] for row in rows(tmp_path, given, ["pid", "sex"], ["sex"])] == ["1", "2", "1"]


def test_csv_with_byte_order_mark_quotes_commas_and_line_breaks(tmp_path: Path) -> None:
    text = '\ufeffpid,"a ""b"", c",note\n1,"x,y","two\nlines"\n2,"","z"\n'
    (tmp_path / "people.csv").write_text(text, encoding="utf-8")
    assert rows(tmp_path, "people.csv", ["pid"], ['a "b", c', "note"]) == [
        {"pid": "1", 'a "b", c': "x,y", "note": "two\nlines"},
        {"pid": "2", 'a "b", c': None, "note": "z"},
    ]


def test_csv_text_is_never_turned_into_numbers(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("pid,sex\n007,01\nNA,1.0\nnull,true\n")
    assert rows(tmp_path, "people.csv", ["pid"], ["sex"]) == [
        {"pid": "007", "sex": "01"},
        {"pid": "NA", "sex": "1.0"},
        {"pid": "null", "sex": "true"},
    ]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("people.parquet", b"PAR1 no", "not a Parquet file"),
        ("people.parquet", b"", "not a Parquet file"),
        ("people.csv", b"", "not a CSV file with a header"),
        ("people.csv", b"pid,sex,sex\n1,2,2\n", "duplicate column 'sex'"),
        ("people.csv", b"pid,sex\n1,2\n3\n", "record 2 has 1 fields instead of 2"),
        ("people.csv", b"pid;sex\n1;2\n3;4;5\n", "record 2 has 3 fields instead of 2"),
        ("people.csv", b"pid,sex\n1,\xc3\xa9\n3,\xff\n", "text that is not utf-8"),
        ("people.csv.gz", b"pid,sex\n1,2\n", "not a CSV file"),
        ("people.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-12], "not a CSV file"),
    ],
)
def test_broken_files_are_named_in_one_line(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    said = refusal(tmp_path, name)
    assert says in said
    assert name in said
    assert "\n" not in said


def test_a_line_that_breaks_late_is_told_without_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CSV_BLOCK", 1 << 16)
    lines = "".join(f"{number},1\n" for number in range(400_000))
    (tmp_path / "people.csv").write_text("pid,sex\n" + lines + "secret-id,1,2,3\n")
    said = refusal(tmp_path, "people.csv")
    assert "record 400001 has 4 fields instead of 2" in said
    assert "secret-id" not in said


def test_a_parquet_file_cut_or_scrambled_in_the_middle_is_damaged(tmp_path: Path) -> None:
    table = pa.table({"pid": list(range(50_000)), "sex": ["1"] * 50_000})
    pq.write_table(table, tmp_path / "people.parquet", compression="gzip")
    content = bytearray((tmp_path / "people.parquet").read_bytes())
    content[2000:6000] = bytes(4000)
    (tmp_path / "people.parquet").write_bytes(content)
    assert "a damaged Parquet file" in refusal(tmp_path, "people.parquet")


def test_values_beyond_their_dictionary_are_damage(tmp_path: Path) -> None:
    """Arrow reads them from damaged pages without a word, and kernels would count whatever is in memory there."""
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"sex": ["1", "2", "9", None] * 30}), path, compression="none")
    sound, refused = path.read_bytes(), 0
    chunk = pq.read_metadata(path).row_group(0).column(0)
    for at in range(chunk.dictionary_page_offset, chunk.dictionary_page_offset + chunk.total_compressed_size):
        for flipped in (0x10, 0xC0, 0xFF):
            path.write_bytes(sound[:at] + bytes([sound[at] ^ flipped]) + sound[at + 1 :])
            source = file_source("p.parquet", tmp_path, "p.toml", "population.persons")
            try:
                for batch in open_source(source, "population.persons").batches([], ["sex"]):
                    batch.validate(full=True)
            except Mistakes as mistakes:
                refused += "a damaged Parquet file" in str(mistakes)
    assert refused > 50


def test_files_of_one_source_may_differ_in_order_and_type_but_not_in_names(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    pq.write_table(PEOPLE, tmp_path / "parts/1.parquet")
    other = pa.table({"sex": [1, 2], "age": ["a", "b"], "pid": [4, 5]})
    pq.write_table(other, tmp_path / "parts/2.parquet")
    found = rows(tmp_path, "parts", ["pid"], ["sex"])
    assert [(str(row["pid"]), str(row["sex"])) for row in found][3:] == [("4", "1"), ("5", "2")]
    pq.write_table(other.rename_columns(["sexe", "age", "pid"]), tmp_path / "parts/2.parquet")
    said = refusal(tmp_path, "parts")
    assert "2.parquet" in said
    assert "differ from those of 1.parquet" in said
    assert "'sex'" in said


def test_a_file_that_goes_away_is_a_mistake_not_a_traceback(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    source = file_source("people.parquet", tmp_path, "p.toml", "k")
    records = open_source(source, "k")
    (tmp_path / "people.parquet").unlink()
    with pytest.raises(Mistakes, match="the files no longer exist"):
        open_source(source, "k")
    with pytest.raises(Mistakes, match="damaged"):
        list(records.batches(["pid"], []))
    with pytest.raises(Mistakes, match="no such file"):
        digest_files([tmp_path / "people.parquet"], bytes(32))


def test_the_digest_sees_every_byte_the_order_and_the_cut_between_files(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_bytes(b"ab")
    two.write_bytes(b"c")
    digests = {
        digest_files([one, two], bytes(32)),
        digest_files([two, one], bytes(32)),
        digest_files([one, two], b"k" * 32),
    }
    one.write_bytes(b"a")
    two.write_bytes(b"bc")
    assert len(digests | {digest_files([one, two], bytes(32))}) == 4


def test_a_query_joins_files_below_the_programme(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    (tmp_path / "more.csv").write_text("pid,flag\n1,0\n2,1\n3,1\n")
    query = "SELECT pid, sex, flag FROM 'people.parquet' JOIN 'more.csv' USING (pid) ORDER BY pid; -- all"
    records = open_source(QuerySource(query.replace(";", ""), tmp_path), "k")
    assert records.schema.names == ["pid", "sex", "flag"]
    found = [row for batch in records.batches(["flag"], ["sex"]) for row in batch.to_pylist()]
    assert found == [{"flag": 0, "sex": "1"}, {"flag": 1, "sex": "2"}, {"flag": 1, "sex": "1"}]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT * FROM 'nowhere.parquet'", "nowhere.parquet"),
        ("SELEC 1", "no SELECT"),
        ("SELECT nix FROM 'people.parquet'", "nix"),
        ("SELECT * FROM records; DROP TABLE x", "several statements"),
        ("SELECT * FROM PEOPLE", "PEOPLE does not exist"),  # never a variable of the program that asks
        ("COPY (SELECT 1) TO 'out.csv'", "no SELECT"),
    ],
)
def test_a_wrong_query_is_answered_in_one_line(tmp_path: Path, query: str, says: str) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    with pytest.raises(Mistakes) as caught:
        open_source(QuerySource(query, tmp_path), "population.persons")
    said = str(caught.value)
    assert says in said
    assert "\n" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["people.parquet"]


def test_a_query_that_fails_on_a_record_does_not_quote_it(tmp_path: Path) -> None:
    pq.write_table(pa.table({"pid": ["1", "secret-id"]}), tmp_path / "people.parquet")
    records = open_source(QuerySource("SELECT pid::INT AS pid FROM 'people.parquet'", tmp_path), "k")
    with pytest.raises(Mistakes) as caught:
        list(records.batches(["pid"], []))
    assert "secret-id" not in str(caught.value)


def test_a_query_below_a_folder_with_a_comma_says_so(tmp_path: Path) -> None:
    with pytest.raises(Mistakes, match="comma"):
        open_source(QuerySource("SELECT 1 AS pid", tmp_path / "a,b"), "k")


def test_folders_that_name_a_value_are_columns(tmp_path: Path) -> None:
    """As Spark and Hive write them: the text after the mark, never a number; a gap has a name of its own."""
    for name in ("region=01/year=2031", "region=02/year=2031", "region=__HIVE_DEFAULT_PARTITION__/year=2031"):
        folder = tmp_path / "persons [1]" / name
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"pid": [1, 2]}), folder / "part.parquet")
    opened = files.open_files(file_source("persons [1]", tmp_path, "", "persons"), "persons")
    assert set(opened.schema.names) == {"pid", "region", "year"}
    batches = list(opened.batches(["pid", "year"], ["region"]))
    assert [batch.column("region").to_pylist() for batch in batches] == [["01"] * 2, ["02"] * 2, [None] * 2]
    assert {value for batch in batches for value in batch.column("year").to_pylist()} == {"2031"}


def test_an_id_of_another_type_in_one_file_is_refused_where_it_is_read(tmp_path: Path) -> None:
    for name, pid in (("a", ["1"]), ("b", [1]), ("c", pa.nulls(1))):
        pq.write_table(pa.table({"pid": pid, "sex": pid}), tmp_path / f"{name}.parquet")
    opened = files.open_files(file_source("*.parquet", tmp_path, "", "persons"), "persons")
    assert sum(batch.num_rows for batch in opened.batches([], ["sex"])) == 3  # codes are compared as text
    with pytest.raises(
        Mistakes, match=r"b\.parquet: persons: column 'pid' has the type number, and text in the first"
    ):
        list(opened.batches(["pid"], ["sex"]))


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_stored_as_differences_are_read(tmp_path: Path, encoding: str) -> None:
    """As Spark writes them with the second version of the format; Arrow makes no dictionaries of them."""
    pq.write_table(
        PEOPLE,
        tmp_path / "people.parquet",
        use_dictionary=False,
        data_page_version="2.0",
        column_encoding={"sex": encoding, "age": encoding},
        row_group_size=2,
    )
    found = rows(tmp_path, "people.parquet", ["pid"], ["sex", "age"])
    assert [row["sex"] for row in found] == ["1", "2", "1"]
    assert [row["age"] for row in found] == ["a", "b", None]


@pytest.mark.parametrize("column", ["pid", "sex"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_that_are_not_utf8_are_damage(tmp_path: Path, column: str, kind: pa.DataType) -> None:
    """Arrow reads them from plain pages and from differences without a word, and functions on texts fail later."""
    texts = pa.array(["one", "two", "six"]).cast(kind)
    path = tmp_path / "people.parquet"
    encodings = {"pid": "PLAIN", "sex": "DELTA_LENGTH_BYTE_ARRAY"}
    pq.write_table(
        pa.table({"pid": texts, "sex": texts}),
        path,
        use_dictionary=False,
        compression="none",
        column_encoding=encodings,
        write_statistics=False,
    )
    content = path.read_bytes()
    at = content.index(b"two") if column == "pid" else content.rindex(b"two")
    path.write_bytes(content[:at] + b"\xff" + content[at + 1 :])
    records = open_source(file_source(path.name, tmp_path, "p.toml", "population.persons"), "persons")
    with pytest.raises(Mistakes, match="a damaged Parquet file"):
        list(records.batches(["pid"], ["sex"]))


def test_views_of_texts_are_texts(tmp_path: Path) -> None:
    views = PEOPLE.set_column(1, "sex", PEOPLE["sex"].cast(pa.string_view()))
    pq.write_table(views, tmp_path / "people.parquet")
    source = file_source("people.parquet", tmp_path, "p.toml", "population.persons")
    records = open_source(source, "population.persons")
    (batch,) = records.batches(["pid", "sex"], [])
    assert records.schema.field("sex").type == batch.schema.field("sex").type == pa.string()
    assert batch["sex"].to_pylist() == ["1", "2", "1"]


@pytest.mark.parametrize(("name", "read"), [("people.parquet", pq.ParquetFile), ("people.csv", csv)])
def test_too_little_memory_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, read: Any
) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    (tmp_path / "people.csv").write_text(CSV)

    def short(*_: object, **__: object) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    monkeypatch.setattr(read, "iter_batches" if read is pq.ParquetFile else "open_csv", short)
    assert "needs more memory than there is, or is damaged; give Discreet more memory" in refusal(
        tmp_path, name
    )


def test_a_file_with_very_many_columns_is_opened(tmp_path: Path) -> None:
    """Looking for each name among all would take minutes."""
    names = [f"c{k}" for k in range(20_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + ",".join(names) + "\n")
    assert rows(tmp_path, "wide.csv", ["c7"], ["c8"]) == [{"c8": "c8", "c7": "c7"}]
    (tmp_path / "wide.csv").write_text(",".join([*names, "c7"]) + "\n")
    assert "duplicate column 'c7'" in refusal(tmp_path, "wide.csv")
