"""Files damaged as what they are: cells, columns and rows of tables, and the ways of writing them."""

import csv
import io
import random
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzz.damage import damaged, damaged_gzip, damaged_json, damaged_rows, damaged_toml, damaged_xml

CELLS = (
    *(
        "",
        " ",
        "0",
        "1",
        "-1",
        "2",
        "1.0",
        "1e400",
        "nan",
        "NA",
        "null",
        "x",
        "_T",
        "F",
        "M",
        "A1",
        "A",
        "B1",
    ),
    *(
        "9" * 30,
        "9223372036854775808",
        "=1+1",
        "a,b",
        'a"b',
        "a\nb",
        "\r",
        "\t",
        "é",
        "\u202e",
        "\x00",
        "x" * 5_000,
    ),
)
ENCODINGS = ("utf-8",) * 6 + ("utf-8-sig", "utf-16", "latin-1", "utf-32")
TYPES: tuple[Callable[[], pa.DataType], ...] = (
    pa.string,
    pa.large_string,
    pa.string_view,
    pa.binary,
    pa.int8,
    pa.int64,
    pa.uint64,
    pa.float32,
    pa.float64,
    pa.bool_,
    pa.date32,
    pa.null,
    lambda: pa.decimal128(12, 2),
    lambda: pa.timestamp("ns", "Europe/Berlin"),
    lambda: pa.time64("us"),
    lambda: pa.duration("s"),
    lambda: pa.dictionary(pa.int8(), pa.string()),
    lambda: pa.list_(pa.string()),
    lambda: pa.struct([("a", pa.string())]),
)
VALUES: tuple[Any, ...] = (
    None,
    0,
    1,
    -1,
    2**40,
    0.5,
    float("nan"),
    "x",
    "",
    "_T",
    "1",
    Decimal("1.5"),
    b"\xff",
)


def damaged_csv(sound: bytes, dice: random.Random) -> bytes:
    """A CSV file with other cells, columns or rows, or in another form, or with other bytes."""
    if dice.random() < 0.4:
        return damaged(sound, dice)
    rows = list(csv.reader(io.StringIO(sound.decode("utf-8", "replace"), newline="")))
    for _ in range(dice.choice((1, 1, 2))):
        if rows and rows[0]:
            rows = _changed_rows(rows, dice)
    return _written_csv(rows, dice)


def _changed_rows(rows: list[list[str]], dice: random.Random) -> list[list[str]]:
    kind = dice.randrange(14)
    at, to = dice.randrange(len(rows)), dice.randrange(len(rows))
    if kind >= 12:
        return _with_values_as_names(rows, rows[at], dice)
    column, other = dice.randrange(len(rows[0])), dice.randrange(len(rows[0]))
    if kind <= 3 and column < len(rows[at]):  # a cell: a strange one, or that of another row
        value = dice.choice(CELLS) if kind < 3 else (rows[to][column:] or [""])[0]
        return [[*row[:column], value, *row[column + 1 :]] if k == at else row for k, row in enumerate(rows)]
    if kind == 4:  # the names of two columns are exchanged
        names = list(rows[0])
        names[column], names[other] = names[other], names[column]
        return [names, *rows[1:]]
    if kind == 5:
        return [[*row[:column], *row[column + 1 :]] for row in rows]
    if kind == 6:
        return [[*row, *row[column : column + 1]] for row in rows]
    if kind == 7:
        return [*rows[:at], *rows[at + 1 :]]
    if kind == 8:
        return [*rows[:at], *[rows[to]] * dice.choice((1, 1, 40)), *rows[at:]]
    if kind == 9:
        return [row[:-1] if k == at else row for k, row in enumerate(rows)]
    if kind == 10:
        return [[*row, dice.choice(CELLS)] if k == at else row for k, row in enumerate(rows)]
    return [*rows[:at], [], *rows[at:]]


def _with_values_as_names(rows: list[list[str]], record: list[str], dice: random.Random) -> list[list[str]]:
    """A header that is a record, or has some of its values."""
    some = [dice.choice(pair) for pair in zip(rows[0], record, strict=False)]
    return [dice.choice((record, some)), *rows[1:]]


def _written_csv(rows: Sequence[Sequence[str]], dice: random.Random) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=dice.choices(",;\t|", (20, 1, 1, 1))[0],
        lineterminator=dice.choices(("\n", "\r\n", "\r"), (10, 1, 1))[0],
        quoting=dice.choices((csv.QUOTE_MINIMAL, csv.QUOTE_ALL), (5, 1))[0],
    )
    writer.writerows(rows)
    return text.getvalue().encode(dice.choice(ENCODINGS), "replace")


def damaged_parquet(sound: bytes, dice: random.Random) -> bytes:
    """A Parquet file with other columns, types or values, written in another way, or with other bytes."""
    if dice.random() < 0.4:
        return damaged(sound, dice)
    try:
        table = pq.read_table(io.BytesIO(sound))
        for _ in range(dice.choice((1, 1, 2))):
            if table.num_columns and dice.random() < 0.85:
                table = _changed_table(table, dice)
        content = io.BytesIO()
        pq.write_table(table, content, **ways(table, dice))
    except (
        pa.ArrowException,
        OSError,  # damaged before
        TypeError,
        ValueError,
        OverflowError,
        IndexError,
    ):  # no such file can be written
        return damaged(sound, dice)
    return content.getvalue()


def _changed_table(table: pa.Table, dice: random.Random) -> pa.Table:
    at = dice.randrange(table.num_columns)
    name, column = table.column_names[at], table.column(at)
    kind = dice.randrange(9)
    if kind <= 2:
        return table.set_column(at, name, _retyped(column, dice.choice(TYPES)()))
    if kind <= 4:
        values = column.to_pylist()
        for row in dice.sample(range(len(values)), min(len(values), dice.choice((1, 1, 5, 10**6)))):
            values[row] = dice.choice((dice.choice(VALUES), values[dice.randrange(len(values))]))
        return table.set_column(at, name, _array(values))
    if kind == 5:
        return table.remove_column(at)
    if kind == 6:
        return table.append_column(dice.choice((name, name.upper(), "")), column)
    if kind == 7:
        return table.slice(0, dice.choice((0, 1, len(table) // 2)))
    return (
        pa.concat_tables([table, table]) if dice.random() < 0.5 else table.take(list(range(len(table)))[::-1])
    )


def _retyped(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    texts = [None if value is None else str(value) for value in column.to_pylist()]
    if pa.types.is_list(kind):
        return pa.array([None if text is None else [text] for text in texts], kind)
    if pa.types.is_struct(kind):
        return pa.array([{"a": text} for text in texts], kind)
    try:
        return column.cast(kind)
    except (pa.ArrowException, TypeError):
        return pa.nulls(len(column), kind)


def _array(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, OverflowError):  # of several types
        return pa.array([None if value is None else str(value) for value in values])


def ways(table: pa.Table, dice: random.Random) -> dict[str, Any]:
    """How it is written: groups of rows, pages, encodings and compression."""
    texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
    ways: dict[str, Any] = {}
    if dice.random() < 0.3:
        ways["row_group_size"] = dice.choice((1, 7, 1000))
    if dice.random() < 0.3:
        ways["compression"] = dice.choice(("none", "gzip", "zstd", "brotli", "lz4"))
    if dice.random() < 0.3:
        encoding = dice.choice(("PLAIN", "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"))
        ways |= {"use_dictionary": False, "column_encoding": dict.fromkeys(texts, encoding) or None}
        ways["data_page_version"] = dice.choice(("1.0", "2.0"))
    return ways


SPOILED = {  # ending -> how files of the kind are damaged
    ".csv": damaged_csv,
    ".gz": damaged_gzip,
    ".json": damaged_json,
    ".parquet": damaged_parquet,
    ".sqlite": damaged_rows,
    ".toml": damaged_toml,
    ".xml": damaged_xml,
}


def companions(name: str, sound: Mapping[str, bytes]) -> list[str]:
    """The files that are read together with one: of the same folder, or that one of the two names in the other."""
    folder, mark, _ = name.partition("/")
    if mark:
        return [one for one in sound if one.startswith(f"{folder}/") and one != name]
    near = [one for one in sound if "/" not in one and one != name]
    return [one for one in near if one.encode() in sound[name] or name.encode() in sound[one]] or near


def spoiled(name: str, sound: bytes, dice: random.Random) -> bytes:
    """A file, damaged as its kind is."""
    return SPOILED.get(Path(name).suffix, damaged)(sound, dice)
