"""Tables in memory: taken over from other libraries without copies, read in batches, digested by their contents."""

import pickle
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from discreet.errors import Mistakes
from discreet.io import memory
from discreet.io.memory import arrow_table, digest_table, open_memory
from discreet.programme.sources import MemorySource

KEY = bytes(range(32))
FRAME = pd.DataFrame(
    {
        "pid": np.arange(50),
        "sex": ["F", "M", None, "M", "F"] * 10,
        "age": [1.0, 2.0, None, 4.0, 5.5] * 10,
        "born": pd.to_datetime(["2001-02-03", "1999-12-31"] * 25),
    }
)


def relation(frame: pd.DataFrame) -> Any:
    return duckdb.connect().from_df(frame)


KINDS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "reader": lambda frame: pa.Table.from_pandas(frame, preserve_index=False).to_reader(),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "polars": pl.from_pandas,
    "lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "duckdb": relation,
    "lists": lambda frame: {"pid": frame["pid"].tolist(), "sex": ["F", "M", None, "M", "F"] * 10},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_any_library_has_the_same_values(kind: str) -> None:
    found = arrow_table(KINDS[kind](FRAME), "persons")
    records = open_memory(MemorySource("persons", found))
    read = pa.Table.from_batches(records.batches(["pid"], ["sex"]))
    assert read["pid"].to_pylist() == list(range(50))
    assert read["sex"].to_pylist() == ["F", "M", None, "M", "F"] * 10
    assert records.schema.field("sex").type in (pa.string(), pa.large_string())


def test_values_beyond_their_dictionary_are_refused() -> None:
    places = pa.array([0, 7, 1], pa.int32())
    column = pa.DictionaryArray.from_arrays(places, pa.array(["F", "M"]), safe=False)
    records = open_memory(MemorySource("persons", pa.table({"sex": column})))
    with pytest.raises(Mistakes, match="values beyond their dictionary"):
        list(records.batches([], ["sex"]))


def test_columns_are_not_copied() -> None:
    column = pa.array(np.arange(1000))
    table = pa.table({"pid": column})
    batch = next(
        iter(open_memory(MemorySource("persons", arrow_table(table, "persons"))).batches(["pid"], []))
    )
    assert batch.column(0).buffers()[1].address == column.buffers()[1].address


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "lists"])
def test_the_digest_is_that_of_the_contents(kind: str) -> None:
    columns = FRAME[["sex", "age", "pid"]]
    expected = digest_table(arrow_table(FRAME[["pid", "sex", "age"]], "persons"), KEY)
    assert digest_table(arrow_table(KINDS[kind](columns), "persons"), KEY) == expected


def variants(table: pa.Table) -> dict[str, pa.Table]:
    sex = table["sex"]
    return {
        "chunks": pa.concat_tables([table.slice(0, 7), table.slice(7, 1), table.slice(8)]),
        "dictionary": table.set_column(1, "sex", sex.dictionary_encode()),
        "other dictionaries": pa.concat_tables(
            [
                part.set_column(1, "sex", part["sex"].combine_chunks().dictionary_encode())
                for part in (table.slice(0, 2), table.slice(2))
            ]
        ),
        "wide text": table.set_column(1, "sex", sex.cast(pa.large_string())),
        "views": table.set_column(1, "sex", sex.cast(pa.string_view())),
        "narrow numbers": table.set_column(0, "pid", table["pid"].cast(pa.int16())),
        "order of columns": table.select(["age", "pid", "sex"]),
        "slice of a longer one": pa.concat_tables([table.slice(3, 2), table]).combine_chunks().slice(2),
    }


TABLE = arrow_table(FRAME[["pid", "sex", "age"]], "persons")


@pytest.mark.parametrize("name", variants(TABLE))
def test_the_digest_does_not_depend_on_the_layout(name: str) -> None:
    assert digest_table(variants(TABLE)[name], KEY) == digest_table(TABLE, KEY)


def test_the_digest_does_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.concat_tables([TABLE] * 3)
    monkeypatch.setattr(memory, "BATCH", 64)
    expected = digest_table(table.combine_chunks(), KEY)
    assert digest_table(table, KEY) == expected


@pytest.mark.parametrize(
    "changed",
    [
        TABLE.slice(1),
        TABLE.rename_columns(["pid", "age", "sex"]),
        TABLE.set_column(1, "sex", pa.array(["F", "M", "", "M", "F"] * 10)),  # empty is not missing
        TABLE.set_column(2, "age", pa.array([1.0, 2.0, 0.0, 4.0, 5.5] * 10)),  # zero is not missing
        TABLE.set_column(1, "sex", pa.array(["FM", "", None, "M", "F"] * 10)),  # the same letters
        TABLE.append_column("more", pa.array([1] * 50)),
        TABLE.take(pa.array([1, 0, *range(2, 50)])),
    ],
)
def test_the_digest_changes_with_the_contents(changed: pa.Table) -> None:
    assert digest_table(changed, KEY) != digest_table(TABLE, KEY)


def test_the_digest_is_keyed() -> None:
    assert digest_table(TABLE, KEY) != digest_table(TABLE, bytes(32))


@pytest.mark.parametrize("wrong", [object(), 5, [1, 2], pd.DataFrame({"a": [1, "secret-value"]})])
def test_other_objects_are_refused_without_quoting_a_value(wrong: object) -> None:
    with pytest.raises(Mistakes) as refused:
        arrow_table(wrong, "persons")
    assert "secret-value" not in str(refused.value)
    assert refused.value.problems[0].file == "persons"


def test_duplicate_columns_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    with pytest.raises(Mistakes, match="duplicate column 'a'"):
        arrow_table(table, "persons")


def test_a_source_in_memory_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="confidential"):
        pickle.dumps(MemorySource("persons", TABLE))
