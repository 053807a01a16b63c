"""Columns of codes read from their pages: the same values as Arrow reads, whoever wrote them; all else is Arrow's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.errors import Mistakes
from discreet.io import dictionary_pages, files
from discreet.io.dictionary_pages import coded_columns

Texts = list[str | None]


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
            name in coded_columns(file, metadata, group, [name]) for group in range(metadata.num_row_groups)
        ]


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
        column = coded_columns(file, pq.read_metadata(path), 0, ["code"])["code"]
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
        assert coded_columns(file, metadata, 0, ["code"]) == {}
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
