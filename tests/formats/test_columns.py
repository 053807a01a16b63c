from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.formats import columns
from discreet.formats.columns import batches
from discreet.formats.dataset import dataset_of, published
from discreet.formats.parquet import write_parquet
from discreet.programme.codelist import Code, breakdown, codelist
from discreet.tabulate.tables import ProtectedTable
from tests.release.small import AGE_L, AGE_M, GEO_M, PUBLICATION, SEX, cube, cubes, table


def test_a_breakdown_is_named_by_variable_and_level() -> None:
    assert [axis.full_name for axis in (GEO_M, SEX)] == ["GEO.M", "SEX"]


def test_rows_hold_codes_labels_and_totals() -> None:
    of = cube("c", SEX, AGE_L)
    made = ProtectedTable(of, np.array([0, 4]), np.array([7, 3]))
    rows = pa.Table.from_batches(batches(dataset_of(made, PUBLICATION))).to_pylist()
    assert rows == [
        {"SEX": "_T", "SEX_label": "Total", "AGE": "_T", "AGE_label": "Total", "level": "total", "value": 7},
        {
            "SEX": "1",
            "SEX_label": "=male",
            "AGE": "1",
            "AGE_label": "band 1",
            "level": "AGE.L x SEX",
            "value": 3,
        },
    ]


@given(st.data())
def test_every_cell_comes_back_from_its_row(data: st.DataObject) -> None:
    of = cube("c", *data.draw(st.permutations([GEO_M, AGE_M, SEX])))
    cells = np.array(sorted(data.draw(st.sets(st.integers(0, of.size - 1), min_size=1))))
    made = ProtectedTable(of, cells, cells + 1)
    rows = pa.Table.from_batches(batches(dataset_of(made, PUBLICATION))).to_pylist()
    back = [
        sum(axis.position[row[axis.variable]] * step for axis, step in zip(of.axes, of.strides, strict=True))
        for row in rows
    ]
    assert back == cells.tolist()
    assert [row["value"] for row in rows] == (cells + 1).tolist()


def test_weighted_values_are_rounded_and_zeros_left_out() -> None:
    made = ProtectedTable(
        cube("c", SEX, weight="w"), np.array([0, 1, 2]), np.array([9, 1, 8]), np.array([10.26, 0.04, 8.0])
    )
    cells, values = published(made)
    assert cells.tolist() == [0, 2]
    assert values.tolist() == [10.3, 8.0]


def test_columns_that_clash_are_refused() -> None:
    tree = codelist("value", [Code("1", "", "")])
    with pytest.raises(Mistakes, match="rename"):
        dataset_of(table(cube("c", breakdown("value", "value", tree, tree.leaves))), PUBLICATION)


def test_parquet_reads_back_with_equal_labels_over_many_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "ROWS_AT_ONCE", 7)
    made = table(cube("9.2", AGE_M, GEO_M, SEX))
    write_parquet(dataset_of(made, PUBLICATION), tmp_path / "a.parquet")
    assert pq.ParquetFile(tmp_path / "a.parquet").num_row_groups > 2
    read = pq.read_table(tmp_path / "a.parquet")
    label = dict(zip(AGE_M.codes, AGE_M.labels, strict=True))
    assert [label[code] for code in read["AGE"].to_pylist()] == read["AGE_label"].to_pylist()
    assert read["value"].to_pylist() == made.values.tolist()


def test_parquet_bytes_depend_on_content_alone_even_with_equal_labels(tmp_path: Path) -> None:
    made = table(cube("c", AGE_M))
    assert len(set(AGE_M.labels)) < len(AGE_M.labels)
    for name in range(8):
        write_parquet(dataset_of(made, PUBLICATION), tmp_path / str(name))
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_parquet_says_what_it_is(tmp_path: Path) -> None:
    write_parquet(dataset_of(table(cubes()[0]), PUBLICATION), tmp_path / "a")
    metadata = pq.read_schema(tmp_path / "a").metadata
    assert metadata[b"discreet.cube"] == b"1.1"
    assert metadata[b"discreet.unit"] == b"persons"
    assert metadata[b"discreet.axes"] == b'["GEO.M", "SEX", "AGE.L"]'
    assert not any(field.nullable for field in pq.read_schema(tmp_path / "a"))


def test_an_empty_cube_is_a_file_without_rows(tmp_path: Path) -> None:
    empty = ProtectedTable(cubes()[0], np.array([], np.int64), np.array([], np.int64))
    write_parquet(dataset_of(empty, PUBLICATION), tmp_path / "a")
    assert pq.read_table(tmp_path / "a").num_rows == 0
