"""Looking at tables: distinct values, gaps, ids, nested places."""

from __future__ import annotations

from datetime import date
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
from discreet.programme.facts import Kind, TableFacts
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
    assert columns["gap"].missing == 1 / 6
    assert columns["income"].kind is Kind.DECIMAL
    assert columns["income"].numbers is not None
    assert (columns["income"].numbers.low, columns["income"].numbers.high) == (1.5, 6.5)
    assert columns["region"].runs == 2
    assert columns["town"].largest == 2 / 6
    assert columns["coded"].values == ("u", "v")
    assert columns["zip_zero"].numbers is not None
    assert columns["zip_zero"].numbers.padded
    assert found.within["region", "town"] == {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
    assert ("region", "sex") not in found.within
    assert ("sex", "region") not in found.within


def test_csv_gives_the_same_as_parquet(tmp_path: Path) -> None:
    names = ["pid", "region", "town", "sex", "gap"]
    pq.write_table(TABLE.select(names), tmp_path / "p.parquet")
    pa_csv.write_csv(TABLE.select(names), tmp_path / "p.csv")
    assert facts(tmp_path / "p.csv").columns == facts(tmp_path / "p.parquet").columns
    assert facts(tmp_path / "p.csv").within == facts(tmp_path / "p.parquet").within


def test_too_many_values_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PLACES", 3)  # towns are four
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


def test_numbers_dates_and_blanks(tmp_path: Path) -> None:
    rows = 40
    table = pa.table(
        {
            "float": [float(n) for n in range(rows)],
            "text": [f"{n}.0" for n in range(rows)],
            "holes": [" ", None, "x", *["y"] * (rows - 3)],
            "day": pa.array([f"19{n + 30}-02-01" for n in range(rows)]),
            "hours": ["N" if n == 9 else str(n) for n in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "p.parquet")
    columns = {column.name: column for column in facts(tmp_path / "p.parquet").columns}
    assert columns["float"].kind is columns["text"].kind is columns["hours"].kind is Kind.WHOLE
    assert columns["float"].values is not None
    assert columns["float"].values[:2] == ("0", "1")
    assert columns["holes"].missing == 2 / rows
    assert columns["holes"].values == ("x", "y")
    assert columns["day"].days == (date(1930, 2, 1), date(1969, 2, 1))
    assert columns["hours"].numbers is not None
    assert columns["hours"].numbers.others == ("N",)


def test_households_number_their_members_and_share_places(tmp_path: Path) -> None:
    home = np.repeat(np.arange(300), np.arange(300) % 4 + 1)
    number = np.concatenate([np.arange(1, n % 4 + 2) for n in range(300)])
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "h": home * 7,
            "n": number,
            "place": [f"P{n // 30}" for n in home],
            "sex": rng.integers(1, 3, len(home)),
        }
    )
    pq.write_table(table, tmp_path / "p.parquet", row_group_size=50)
    found = facts(tmp_path / "p.parquet").groups["h"]
    assert found.constant == {"place"}
    assert found.numbering == ("n",)
    assert found.mean == 2.5
    broken = table.set_column(2, "place", pa.array([*table["place"].to_pylist()[:-1], "P0"]))
    pq.write_table(broken, tmp_path / "b.parquet", row_group_size=50)
    assert not facts(tmp_path / "b.parquet").groups["h"].constant


def test_lines_of_a_table_of_counts_are_cells(tmp_path: Path) -> None:
    rows = [(f"A{a // 5}", f"B{a}", s, (a * 7 + s) % 11) for a in range(20) for s in (1, 2)]
    cells = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("up", "area", "sex", "n"))})
    pq.write_table(cells, tmp_path / "cells.parquet")
    assert facts(tmp_path / "cells.parquet").counted == ("n",)
    twice = pa.concat_tables([cells, cells.slice(0, 1)])
    pq.write_table(twice, tmp_path / "twice.parquet")
    assert facts(tmp_path / "twice.parquet").counted == ()


def test_a_column_that_predicts_another_is_measured(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    job = rng.integers(0, 9, 4000)
    works = np.where(rng.random(4000) < 0.95, job > 4, job <= 4)
    table = pa.table({"job": job, "works": works.astype(int), "coin": rng.integers(0, 2, 4000)})
    pq.write_table(table, tmp_path / "p.parquet")
    predicts = facts(tmp_path / "p.parquet").predicts
    assert predicts["job", "works"] > 0.8
    assert ("job", "coin") not in predicts


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
    repeated = len(rows) > len(fine) > 0
    if len(pairs) == len(fine) >= len(coarse) > 1 and repeated:
        assert found.within["region", "town"] == {str(b): str(a) for a, b in pairs}
    else:
        assert ("region", "town") not in found.within


def test_nested_values_and_views_of_texts(tmp_path: Path) -> None:
    nested = pa.array([{"a": [1]}] * len(TABLE))
    views = pa.array(["x", "y"] * (len(TABLE) // 2) + ["x"] * (len(TABLE) % 2), pa.string_view())
    pq.write_table(TABLE.append_column("deep", nested).append_column("view", views), tmp_path / "p.parquet")
    found = {column.name: column for column in facts(tmp_path / "p.parquet").columns}
    assert (found["deep"].kind, found["deep"].distinct) == (Kind.OTHER, 0)
    assert set(found["view"].values or ()) == {"x", "y"}


def test_more_columns_than_can_be_compared_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({f"c{k}": [1] for k in range(1_001)}), tmp_path / "p.parquet")
    with pytest.raises(Mistakes, match="1,001 columns; give at most 1,000"):
        facts(tmp_path / "p.parquet")
