"""A CSV file that is divided has the same records as the whole, whatever its quotes and line breaks."""

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.io import csv_parts, files
from discreet.io.csv_form import CsvForm
from discreet.io.csv_parts import can_be_divided, record_starts
from discreet.io.files import divided_csv, file_parts, open_files, open_parts
from discreet.programme.sources import FileFormat, FileSource

FIELDS = st.text(alphabet='ab",\n\r é"', max_size=6)


def source(path: Path) -> FileSource:
    return FileSource(path.name, str(path), FileFormat.CSV)


def values(batches: list[pa.RecordBatch]) -> list[dict[str, object]]:
    return [row for batch in batches for row in batch.to_pylist()]


def divided(path: Path, most: int) -> tuple[list[dict[str, object]], list[dict[str, object]], int]:
    """The records of the whole and of all parts, and the number of parts."""
    whole = open_files(source(path), "persons")
    (part,) = file_parts(source(path), "persons")
    parts = divided_csv(part, whole.form_of(path), most)
    assert [one.first for one in parts] == [0, *(one.last for one in parts[:-1])]
    assert parts[-1].last == path.stat().st_size
    read = [values(list(open_parts(whole, [one], "persons").batches(["id"], ["code"]))) for one in parts]
    return values(list(whole.batches(["id"], ["code"]))), [row for rows in read for row in rows], len(parts)


def as_written(field: str, quoted: bool) -> str:
    """A value in quotes, or one that some programs write without: with quotes in its middle."""
    if quoted or field.startswith('"') or set(field) & set(",\n\r"):
        return '"' + field.replace('"', '""') + '"'
    return field


@given(
    rows=st.lists(st.tuples(FIELDS, st.booleans()), min_size=1, max_size=30),
    most=st.integers(1, 60),
    block=st.integers(3, 40),
    end=st.sampled_from(["\n", "\r\n", "", "\n\n\n"]),
    mark=st.sampled_from(["", "\ufeff"]),
)
def test_parts_have_the_records_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, bool]],
    most: int,
    block: int,
    end: str,
    mark: str,
) -> None:
    path = tmp_path_factory.mktemp("csv") / "records.csv"
    lines = [f"{k},{as_written(field, quoted)}" for k, (field, quoted) in enumerate(rows)]
    path.write_bytes((mark + ("\r\n" if end == "\r\n" else "\n").join(["id,code", *lines]) + end).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_parts, "BLOCK", block)
        whole, parts, _ = divided(path, most)
    assert parts == whole
    assert len(whole) == len(rows)


def test_a_line_break_inside_quotes_is_no_edge(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text('id,code\n1,"a\nb\nc\nd"\n2,"e"\n3,5" pipe\n4,f\n')
    starts = record_starts(path, CsvForm(), 1)
    text = path.read_bytes()
    assert [text[start:][:1] for start in starts] == [b"1", b"2", b"3", b"4"]
    whole, parts, number = divided(path, 9)
    assert parts == whole
    assert number == 3
    assert whole[0] == {"id": "1", "code": "a\nb\nc\nd"}


def test_a_file_without_quotes_is_divided_where_lines_end(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("id,code\n" + "".join(f"{k:05},x\n" for k in range(1000)))
    starts = record_starts(path, CsvForm(), 800)
    assert starts == [8 + 99 * 8 + 800 * k for k in range(10)]
    whole, parts, number = divided(path, 800)
    assert (parts, number) == (whole, 11)


def test_some_files_are_read_whole(tmp_path: Path) -> None:
    """In a compressed file no byte can be found without those before it; in UTF-16 a mark has two bytes."""
    assert can_be_divided(tmp_path / "a.csv", CsvForm())
    assert can_be_divided(tmp_path / "a.csv", CsvForm(encoding="windows-1252"))
    assert can_be_divided(tmp_path / "a.csv", CsvForm(encoding="latin-1"))
    assert not can_be_divided(tmp_path / "a.csv", CsvForm(encoding="utf-16"))
    assert not can_be_divided(tmp_path / "a.csv", CsvForm(encoding="shift_jis"))
    assert not can_be_divided(tmp_path / "a.csv.gz", CsvForm())


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (b"600,a,b\n", "record 601 has 3 fields instead of 2"),
        (b"600,\xff\n", "text that is not utf-8, or quotes that are not closed"),
    ],
)
def test_a_broken_record_has_the_same_message_in_a_part(tmp_path: Path, broken: bytes, says: str) -> None:
    path = tmp_path / "records.csv"
    lines = [f"{k},x\n".encode() for k in range(1000)]
    lines[600] = broken
    form = CsvForm()
    path.write_bytes(b"id,code\n" + b"".join(lines))
    (part,) = file_parts(source(path), "persons")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "csv_form", lambda *_: form)
        patch.setattr(files, "_CSV_HEAD", 2000)
        whole = open_files(source(path), "persons")
        texts = []
        for parts in ([part], divided_csv(part, form, 1000)):
            with pytest.raises(Mistakes) as raised:
                list(open_parts(whole, parts, "persons").batches(["id"], ["code"]))
            texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert says in texts[0]
