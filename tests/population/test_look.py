"""Looking at tables: distinct values, gaps, ids, nested places."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import Mistakes
from discreet.population import look as module
from discreet.population.look import look
from discreet.programme.draft import Kind, TableFacts
from discreet.programme.sources import file_source

TABLE = pa.table(
    {
        "pid": pa.array([10, 11, 12, 13, 14, 15]),
        "region": ["A", "A", "A", "B", "B", "B"],
        "town": ["a1", "a2", "a1", "b1", "b2", "b1"],
        "sex": pa.array([1, 2, 1, 2, 1, 2], pa.int8()),
        "gap": ["x", None, "x", "y", "y", "x"],
        "income": [1.5, 2.5, 3.5, 4.5, 5.5, 6.5],
        "coded": pa.array(["u", "v", "u", "u", "v", "u"]).dictionary_encode(),
        "zip_zero": ["01", "02", "01", "03", "03", "03"],
    }
)


def facts(path: Path) -> TableFacts:
    return look(file_source(path.name, path.parent, "", ""), "persons", path.name)


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "p.parquet", row_group_size=2)
    found = facts(tmp_path / "p.parquet")
    columns = {column.name: column for column in found.columns}
    assert columns["pid"].unique
    assert not columns["sex"].unique
    assert columns["sex"].values == ("1", "2")
    assert columns["sex"].kind is Kind.WHOLE
    assert columns["gap"].missing
    assert columns["income"].kind is Kind.OTHER
    assert columns["income"].values is None
    assert columns["coded"].values == ("u", "v")
    assert columns["zip_zero"].kind is Kind.TEXT
    assert found.within["region", "town"] == {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
    assert ("region", "sex") not in found.within
    assert ("sex", "town") not in found.within


def test_csv_gives_the_same_as_parquet(tmp_path: Path) -> None:
    names = ["pid", "region", "town", "sex", "gap"]
    pq.write_table(TABLE.select(names), tmp_path / "p.parquet")
    pa_csv.write_csv(TABLE.select(names), tmp_path / "p.csv")
    assert facts(tmp_path / "p.csv").columns == facts(tmp_path / "p.parquet").columns
    assert facts(tmp_path / "p.csv").within == facts(tmp_path / "p.parquet").within


def test_too_many_values_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", 3)
    pq.write_table(TABLE, tmp_path / "p.parquet")
    columns = {column.name: column for column in facts(tmp_path / "p.parquet").columns}
    assert columns["town"].values is None
    assert columns["pid"].values is None
    assert columns["pid"].unique
    assert columns["region"].values == ("A", "B")


def test_an_id_that_repeats_in_a_later_part_is_none(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, ids in enumerate([[1, 2, 3], [4, 5, 1]]):
        pq.write_table(pa.table({"pid": ids}), tmp_path / "parts" / f"{number}.parquet")
    (column,) = facts(tmp_path / "parts").columns
    assert not column.unique


def test_a_nesting_that_breaks_in_a_later_part_is_none(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for number, region in enumerate(["A", "B"]):
        part = pa.table({"region": [region, "C"], "town": ["t", f"c{number}"]})
        pq.write_table(part, tmp_path / "parts" / f"{number}.parquet")
    assert not facts(tmp_path / "parts").within


def test_an_empty_table(tmp_path: Path) -> None:
    pq.write_table(TABLE.slice(0, 0), tmp_path / "p.parquet")
    assert all(not column.values for column in facts(tmp_path / "p.parquet").columns)


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.parquet").write_text("nothing")
    with pytest.raises(Mistakes, match="not a Parquet file"):
        facts(tmp_path / "p.parquet")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=1, max_size=12), st.integers(1, 3))
def test_nesting_is_what_the_distinct_pairs_say(
    tmp_path: Path, rows: list[tuple[int, int]], parts: int
) -> None:
    folder = tmp_path / "parts"
    folder.mkdir(exist_ok=True)
    for number, chunk in enumerate(np.array_split(np.array(rows), parts)):
        part = pa.table({"region": pa.array(chunk[:, 0]), "town": pa.array(chunk[:, 1])})
        pq.write_table(part, folder / f"{number}.parquet")
    for number in range(parts, 3):
        (folder / f"{number}.parquet").unlink(missing_ok=True)
    pairs = set(rows)
    coarse, fine = {a for a, _ in pairs}, {b for _, b in pairs}
    found = facts(folder)
    if len(pairs) == len(fine) > len(coarse):
        assert found.within["region", "town"] == {str(b): str(a) for a, b in pairs}
    else:
        assert ("region", "town") not in found.within
