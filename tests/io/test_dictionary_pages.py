"""Columns of codes read from their pages: the same values as Arrow reads, whoever wrote them; all else is Arrow's."""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io import dictionary_pages, files
from discreet.io.dictionary_pages import CodedColumn, DamagedPages, coded_columns

Texts = list[str | None]


@pytest.fixture(autouse=True)
def small_row_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the codes of small row groups from their pages, too."""
    monkeypatch.setattr(files, "FEWEST", 1)


def table(texts: Texts, is_nullable: bool = True) -> pa.Table:
    fields = [pa.field("code", pa.string(), is_nullable), pa.field("id", pa.int64())]
    return pa.table([pa.array(texts, pa.string()), pa.array(range(len(texts)))], schema=pa.schema(fields))


def texts_of(records: int, different: int, gaps: float, is_ordered: bool, seed: int) -> Texts:
    dice = np.random.default_rng(seed)
    numbers = dice.integers(0, different, records)
    numbers = np.sort(numbers) if is_ordered else numbers
    missing = dice.random(records) < gaps
    return [None if gone else f"ü{number}" for number, gone in zip(numbers.tolist(), missing, strict=True)]


def is_read_here(path: Path, name: str = "code") -> list[bool]:
    """For each row group, whether its column is read from its pages."""
    metadata = pq.read_metadata(path)
    with path.open("rb") as file:
        return [
            name in coded_columns(file, metadata, group, {name: place_of(metadata, name)})
            for group in range(metadata.num_row_groups)
        ]


def place_of(metadata: pq.FileMetaData, name: str) -> int:
    return next(k for k in range(metadata.num_columns) if metadata.schema.column(k).path == name)


def read(path: Path, columns: tuple[str, ...] = ("code", "id")) -> Texts | None:
    """The codes of a file; None where it is refused as damaged."""
    try:
        batches = list(files._read_parquet(path, None, list(columns), ["code"], "persons"))
    except Mistakes:
        return None
    if "id" in columns:
        assert [n for batch in batches for n in batch.column("id").to_pylist()] == list(
            range(sum(batch.num_rows for batch in batches))
        )
    return [text for batch in batches for text in batch.column("code").to_pylist()]


def by_arrow(path: Path, monkeypatch: pytest.MonkeyPatch) -> Texts | None:
    with monkeypatch.context() as patch:
        patch.setattr(files, "coded_columns", lambda *given: {})
        return read(path)


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("different", [1, 2, 3, 129, 256, 40_000])
def test_the_same_values_as_were_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, different: int
) -> None:
    path = tmp_path / "a.parquet"
    for seed in range(6 if different < 40_000 else 2):
        dice = np.random.default_rng([seed, different])
        records = int(dice.integers(1, 3000)) if different < 40_000 else 90_000
        gaps = float(dice.choice([0, 0, 0.01, 0.5, 1]))
        texts = texts_of(records, different, gaps, bool(dice.integers(2)), seed)
        pq.write_table(
            table(texts, is_nullable=None in texts or bool(dice.integers(2))),
            path,
            compression=compression,
            row_group_size=int(dice.integers(records // 3 + 1, 2 * records + 1)),
            data_page_size=int(dice.choice([50, 1000, 100_000])),
            write_batch_size=int(dice.choice([1, 7, 500])) if records < 10_000 else 500,
            dictionary_pagesize_limit=1 << 22,
        )
        assert all(is_read_here(path))
        monkeypatch.setattr(files, "BATCH", int(dice.integers(1 + records // 20, 2 * records + 1)))
        assert read(path) == read(path, ("code",)) == texts


def test_any_part_of_a_row_group(tmp_path: Path) -> None:
    texts = texts_of(500, 9, 0.1, is_ordered=False, seed=1)
    path = tmp_path / "a.parquet"
    pq.write_table(table(texts), path, data_page_size=20, write_batch_size=13)
    with path.open("rb") as file:
        column = coded_columns(file, pq.read_metadata(path), 0, {"code": 0})["code"]
    assert len(column.pages) > 20
    for first in range(0, 500, 17):
        for records in {1, 2, min(13, 500 - first), min(26, 500 - first), 500 - first}:
            assert column.read(first, records).to_pylist() == texts[first : first + records]


def test_files_of_other_programs(tmp_path: Path) -> None:
    texts = texts_of(30_000, 50, 0.02, is_ordered=False, seed=2)
    path = tmp_path / "a.parquet"
    frame = pl.from_arrow(table(texts))
    assert isinstance(frame, pl.DataFrame)
    given = table(texts)
    database = duckdb.connect()
    database.register("given", given)
    for write in (
        lambda: frame.write_parquet(path, compression="zstd"),
        lambda: frame.write_parquet(path, compression="snappy"),
        lambda: database.execute(f"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet)"),
        lambda: database.execute(f"COPY (SELECT * FROM given) TO '{path}' (FORMAT parquet, CODEC zstd)"),
        lambda: given.to_pandas().to_parquet(path),
    ):
        write()
        assert read(path) == texts
        path.unlink()
    database.close()


def written(**options: Any) -> Callable[[Path, Texts], object]:
    return lambda path, texts: pq.write_table(table(texts), path, **options)


def nested(path: Path, texts: Texts) -> None:
    """A column of the same name inside another one, before it."""
    lists = pa.array([[text] for text in texts])
    pq.write_table(
        pa.table({"list": lists, "code": table(texts)["code"], "id": table(texts)["id"]}),
        path,
        use_dictionary=["list.list.element"],
    )


@pytest.mark.parametrize(
    "write",
    [
        written(data_page_version="2.0"),
        written(compression="gzip"),
        written(compression="brotli"),
        written(compression="lz4"),
        written(use_dictionary=False),
        written(use_dictionary=False, column_encoding={"code": "DELTA_BYTE_ARRAY"}),
        written(dictionary_pagesize_limit=60, data_page_size=100, write_batch_size=10),
        nested,
    ],
)
def test_arrow_reads_all_other_columns(tmp_path: Path, write: Callable[[Path, Texts], object]) -> None:
    texts = texts_of(1000, 40, 0.1, is_ordered=False, seed=3)
    path = tmp_path / "a.parquet"
    write(path, texts)
    assert is_read_here(path) == [False]
    assert read(path) == texts


def test_arrow_reads_large_columns_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = texts_of(1000, 40, 0, is_ordered=False, seed=4)
    path = tmp_path / "a.parquet"
    written()(path, texts)
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    for most in (size, size - 1):
        monkeypatch.setattr(dictionary_pages, "MOST_BYTES", most)
        assert is_read_here(path) == [most == size]
        assert read(path) == texts


def test_the_texts_of_all_batches_are_one_array(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coders judge the texts once for a row group, because batches have the same dictionary."""
    path = tmp_path / "a.parquet"
    written()(path, texts_of(1000, 5, 0, is_ordered=False, seed=5))
    monkeypatch.setattr(files, "BATCH", 100)
    batches = list(files._read_parquet(path, None, ["code"], ["code"], "persons"))
    assert len(batches) == 10
    assert len({batch.column("code").dictionary.buffers()[2].address for batch in batches}) == 1


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("gaps", [0, 0.2])
def test_damaged_pages_are_refused_or_read_as_arrow_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str, gaps: float
) -> None:
    texts = texts_of(200, 5, gaps, is_ordered=False, seed=6)
    path = tmp_path / "a.parquet"
    pq.write_table(table(texts), path, compression=compression, data_page_size=30, write_batch_size=50)
    sound = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    begin = column.dictionary_page_offset
    assert is_read_here(path) == [True]
    dice = np.random.default_rng(7)
    outcomes = {"refused": 0, "the same": 0}
    for at in range(begin, begin + column.total_compressed_size, 2):
        damaged = bytearray(sound)
        damaged[at] = int(dice.choice([0, 255, sound[at] ^ 1 << int(dice.integers(8))]))
        path.write_bytes(damaged)
        found = read(path)
        if found is None:
            outcomes["refused"] += 1
            continue
        assert len(found) == len(texts)
        arrows = by_arrow(path, monkeypatch)
        assert arrows in (
            None,
            found,
        )  # where a text is damaged to another one, Arrow counts its places wrong
        outcomes["the same"] += arrows is not None
    assert min(outcomes.values()) > 10


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    texts = texts_of(300, 5, 0.2, is_ordered=False, seed=8)
    path = tmp_path / "a.parquet"
    pq.write_table(table(texts), path, compression="zstd")
    metadata = pq.read_metadata(path)
    path.write_bytes(path.read_bytes()[:40])
    with path.open("rb") as file:
        assert coded_columns(file, metadata, 0, {"code": 0}) == {}
    assert read(path) is None


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_a_page_that_arrow_skips_is_not_lost(tmp_path: Path, use_dictionary: bool) -> None:
    """Arrow skips pages of unknown kinds: the records of one column would be fewer."""
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"id": range(1000)}),
        path,
        compression="none",
        data_page_size=100,
        write_batch_size=100,
        use_dictionary=use_dictionary,
    )
    sound = path.read_bytes()
    start = pq.read_metadata(path).row_group(0).column(0).data_page_offset
    assert sound[start : start + 2] == b"\x15\x00"  # the first field of a header: a page of data
    path.write_bytes(sound[: start + 1] + b"\x40" + sound[start + 2 :])
    assert sum(batch.num_rows for batch in pq.ParquetFile(path).iter_batches()) < 1000
    with pytest.raises(Mistakes, match="a damaged Parquet file"):
        list(files._read_parquet(path, None, ["id"], [], "persons"))


def number(value: int) -> bytes:
    """A number of seven bits a byte."""
    found = []
    while value >= 128:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def page(body: bytes, values: int, *, is_dictionary: bool = False, size: int | None = None) -> bytes:
    """A page, and its header in compact Thrift: kind, bytes decompressed and stored, values and encodings."""
    size = len(body) if size is None else size
    first = b"\x15" + number(4 if is_dictionary else 0)
    sizes = b"\x15" + number(2 * size) + b"\x15" + number(2 * len(body))
    about = b"\x15" + number(2 * values)
    about += b"\x15\x00" if is_dictionary else b"\x15\x10\x15\x06\x15\x06"
    return first + sizes + (b"\x4c" if is_dictionary else b"\x2c") + about + b"\x00\x00" + body


def texts_page(*texts: bytes) -> bytes:
    body = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
    return page(body, len(texts), is_dictionary=True)


def column_of(
    chunk: bytes, records: int, *, nullable: bool = False, codec: str = "UNCOMPRESSED", start: int = 4
) -> CodedColumn | None:
    """The column of a file that has some pages, and says so."""
    stored = SimpleNamespace(
        dictionary_page_offset=start,
        data_page_offset=start + 1,
        total_compressed_size=len(chunk),
        num_values=records,
        physical_type="BYTE_ARRAY",
        compression=codec,
        encodings=("PLAIN", "RLE_DICTIONARY"),
        has_dictionary_page=True,
        file_path="",
    )
    group = SimpleNamespace(num_rows=records, column=lambda _: stored)
    kind = SimpleNamespace(max_repetition_level=0, max_definition_level=int(nullable))
    metadata: Any = SimpleNamespace(schema=SimpleNamespace(column=lambda _: kind), row_group=lambda _: group)
    return coded_columns(BytesIO(b"PAR1" + chunk), metadata, 0, {"code": 0}).get("code")


def values_of(chunk: bytes, records: int, *, nullable: bool = False) -> Texts:
    column = column_of(chunk, records, nullable=nullable)
    assert column is not None
    found: Texts = column.read(0, records).to_pylist()
    return found


def test_pages_by_hand() -> None:
    """A run of one number, and a run of packed ones: 1, 2, 0, 1, 2, 0, 1, 2."""
    places = b"\x02" + b"\x06\x02" + b"\x03" + bytes([0b01001001, 0b10010010])
    assert values_of(texts_page(b"a", b"b", b"c") + page(places, 11), 11) == [*"ccc", *"bcabcabc"]


def test_the_last_packed_numbers_may_be_cut() -> None:
    texts = texts_page(b"a", b"b", b"c")
    assert values_of(texts + page(b"\x02\x03" + bytes([0b01001001]), 4), 4) == [*"bcab"]
    column = column_of(texts + page(b"\x02\x03" + bytes([0b01001001]), 5), 5)
    assert column is not None
    with pytest.raises(DamagedPages):
        column.read(0, 5)


def test_two_texts_may_be_the_same() -> None:
    assert values_of(texts_page(b"a", b"a", b"", b"b") + page(b"\x02\x03\xe4\x00", 4), 4) == [
        "a",
        "a",
        "",
        "b",
    ]


def test_an_empty_dictionary_of_records_without_a_value() -> None:
    levels = (2).to_bytes(4, "little") + b"\x14\x00"
    assert (
        values_of(
            texts_page()
            + page(
                levels,
                10,
            ),
            10,
            nullable=True,
        )
        == [None] * 10
    )


@pytest.mark.parametrize("width", [9, 15, 16, 31, 32])
def test_the_number_of_a_run_may_be_wider_than_stated(width: int) -> None:
    """Such numbers are too large, or negative where they are put: kernels would count other memory."""
    size = (width + 7) // 8
    for wrong in (b"\xff" * size, b"\x00" * (size - 1) + b"\x80", (2).to_bytes(size, "little")):
        column = column_of(texts_page(b"a", b"b") + page(bytes([width]) + b"\x14" + wrong, 10), 10)
        assert column is not None
        with pytest.raises(DamagedPages):
            column.read(0, 10)


ONE = b"\x01" + b"\x14\x00"  # a run of ten times the first text
HUGE = [1 << 31, 1 << 40, 1 << 61]


@pytest.mark.parametrize(
    "pages",
    [
        *(page(b"\x01\x00\x00\x00a", huge, is_dictionary=True) + page(ONE, 10) for huge in HUGE),
        *(page(b"\x01\x00\x00\x00a", 1, is_dictionary=True, size=huge) + page(ONE, 10) for huge in HUGE),
        *(texts_page(b"a") + page(ONE, 10, size=huge) for huge in HUGE),
        texts_page(b"a") + 4 * page(ONE, (1 << 62) - 1) + page(ONE, 14),  # they add up to 10 in 64 bits
        texts_page(b"a") + texts_page(b"a") + page(ONE, 10),
        texts_page(b"a") + page(ONE, 10) + b"\x00",
        texts_page(b"a") + page(ONE, 0) + page(ONE, 10),
        page(ONE, 10),
        texts_page(b"a"),
        b"",
    ],
)
def test_pages_that_state_what_cannot_be_are_left_to_arrow(pages: bytes) -> None:
    for codec in ("UNCOMPRESSED", "SNAPPY", "ZSTD"):
        assert column_of(pages, 10, codec=codec) is None


def test_a_page_of_very_many_records_is_left_to_arrow() -> None:
    """A run of a few bytes may be that of 2^40 records."""
    for records, is_here in ((1 << 20, True), (1 + (1 << 20), False), (1 << 40, False)):
        run = page(b"\x01" + number(2 * records) + b"\x00", records)
        assert (column_of(texts_page(b"a") + run, records) is not None) is is_here


@pytest.mark.parametrize("start", [-(1 << 63), -1, 0, 5, 1 << 62])
def test_pages_that_begin_elsewhere_are_left_to_arrow(start: int) -> None:
    assert column_of(texts_page(b"a") + page(ONE, 10), 10, start=start) is None


def test_no_more_records_than_there_are() -> None:
    column = column_of(texts_page(b"a") + page(ONE, 10), 10)
    assert column is not None
    for first in (1, 10, 20):
        with pytest.raises(DamagedPages, match="more records than stated"):
            column.read(first, 10)


def test_places_of_records_without_a_value_are_in_the_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    written()(path, texts_of(1000, 5, 0.5, is_ordered=False, seed=9))
    (batch,) = files._read_parquet(path, None, ["code"], ["code"], "persons")
    places = np.frombuffer(batch.column("code").indices.buffers()[1], dtype=np.int16)[:1000]
    assert places.min() == 0
    assert places.max() == 4


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_damaged_end_of_a_file_is_refused_or_read(tmp_path: Path, compression: str) -> None:
    """Where Python looks at some columns that are wrongly described, Arrow would end the process."""
    path = tmp_path / "a.parquet"
    pq.write_table(table(texts_of(60, 3, 0.1, is_ordered=False, seed=10)), path, compression=compression)
    sound = path.read_bytes()
    begin, refused = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little"), 0
    for at in range(begin, len(sound) - 8):
        for value in {3, 40, 127, sound[at] ^ 1}:
            path.write_bytes(sound[:at] + bytes([value]) + sound[at + 1 :])
            try:
                names = {"code", "id"} & set((schema := files._parquet_schema(path, None, "persons")).names)
                texts = files._texts(schema, sorted(names & {"code"}))
                list(files._read_parquet(path, None, sorted(names), texts, "persons"))
            except Mistakes:
                refused += 1
    assert refused > 100


def test_arrow_reads_small_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    texts = texts_of(250, 5, 0.1, is_ordered=False, seed=11)
    pq.write_table(table(texts), path, row_group_size=100)
    seen: list[int] = []

    def noted(file: BinaryIO, metadata: pq.FileMetaData, group: int, places: dict[str, int]) -> object:
        seen.append(group)
        return coded_columns(file, metadata, group, places)

    monkeypatch.setattr(files, "coded_columns", noted)
    for fewest, groups in ((50, [0, 1, 2]), (100, [0, 1]), (101, [])):
        seen.clear()
        monkeypatch.setattr(files, "FEWEST", fewest)
        assert read(path) == texts
        assert seen == groups


def test_a_column_inside_another_one_may_have_the_same_path(tmp_path: Path) -> None:
    """Its texts are not those of the column of this name."""
    path = tmp_path / "a.parquet"
    inner = pa.StructArray.from_arrays(
        [pa.array(["x", "y"])], fields=[pa.field("b", pa.string(), nullable=False)]
    )
    fields = [pa.field("a.b", pa.string()), pa.field("a", inner.type, nullable=False)]
    pq.write_table(pa.table([pa.array(["1", "2"]), inner], schema=pa.schema(fields)), path)
    (batch,) = files._read_parquet(path, None, ["a.b"], ["a.b"], "persons")
    assert batch.column("a.b").to_pylist() == ["1", "2"]


@pytest.mark.parametrize(
    "kind",
    [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.binary(), pa.json_()],
)
def test_columns_of_other_types_of_text(tmp_path: Path, kind: pa.DataType) -> None:
    path = tmp_path / "a.parquet"
    texts = texts_of(500, 5, 0.1, is_ordered=False, seed=12)
    column = pa.array(texts, pa.string())
    column = pa.ExtensionArray.from_storage(kind, column) if kind == pa.json_() else column.cast(kind)
    pq.write_table(pa.table({"code": column}), path)
    schema = files._parquet_schema(path, None, "persons")
    batches = files._read_parquet(path, None, ["code"], files._texts(schema, ["code"]), "persons")
    found = [one for batch in batches for one in batch.column("code").to_pylist()]
    assert [one.decode() if isinstance(one, bytes) else one for one in found] == texts


def test_all_records_have_the_columns_of_their_folder(tmp_path: Path) -> None:
    """Where no column of the file is read, its records are counted nevertheless."""
    (folder := tmp_path / "region=01").mkdir()
    written()(folder / "a.parquet", texts_of(100, 5, 0, is_ordered=False, seed=13))
    batches = files._read_parquet(folder / "a.parquet", tmp_path, ["region"], ["region"], "persons")
    assert [one for batch in batches for one in batch.column("region").to_pylist()] == ["01"] * 100
