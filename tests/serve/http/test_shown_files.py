"""Files of the table as it is shown: its rows and columns in their order, comparisons, and ranges in every format."""

import csv
import io
import json
from typing import Any

import openpyxl
import pyarrow.parquet as pq
import pytest
from httpx import Client

QUERY: dict[str, Any] = {"axes": ["AGE.L", "SEX"]}


def file(client: Client, form: str, **layout: Any) -> bytes:
    answer = client.post("/api/v1/files", json={"query": QUERY, "format": form, "layout": layout})
    assert answer.status_code == 200, answer.text
    return answer.content


def lines(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode())))


@pytest.fixture
def values(client: Client) -> list[int]:
    found: list[int] = client.post("/api/v1/table", json=QUERY).json()["value"]
    return found


def test_rows_and_columns_are_those_shown_in_their_order(client: Client, values: list[int]) -> None:
    found = lines(file(client, "csv", columns=["SEX"], texts="labels", lines=[3, 0, 1], fields=[2, 0]))
    assert found[0] == ["Age", "Female", "Total"]
    assert [[int(one) for one in line[1:]] for line in found[1:]] == [
        [values[3 * row + 2], values[3 * row]] for row in (3, 0, 1)
    ]
    book = openpyxl.load_workbook(
        io.BytesIO(file(client, "xlsx", columns=["SEX"], texts="labels", lines=[3, 0, 1], fields=[2, 0]))
    )
    sheet = book["Table"]
    rows = [[cell.value for cell in row] for row in sheet.iter_rows(6)]
    assert [row[1:] for row in rows] == [[values[3 * row + 2], values[3 * row]] for row in (3, 0, 1)]
    assert [cell.font.b for cell in sheet[7]] == [True] * 3  # the total, as a whole
    assert sheet["A6"].alignment.indent == 1
    assert sheet.freeze_panes == "B6"


def test_the_workbook_has_codes_whole_labels_and_a_heading(client: Client) -> None:
    shown = {"columns": ["SEX"], "texts": "labels"}
    book = openpyxl.load_workbook(io.BytesIO(file(client, "xlsx", **shown)))
    head, total, first = list(book["Data"].iter_rows(max_row=3, values_only=True))
    assert head[:4] == ("AGE", "Age", "SEX", "Sex"), "codes, whatever the table shows"
    assert (total[:4], first[2:4]) == (("_T", "Total", "_T", "Total"), ("1", "Male"))
    sheet = book["Table"]
    assert sheet["A1"].value == "Persons by Age (broad groups), Sex"
    longest = max(len(str(cell.value)) for cell in sheet["A"][5:])
    assert sheet.column_dimensions["A"].width >= longest
    notes = dict(book["Notes"].iter_rows(max_col=2, values_only=True))
    assert ", A" not in str(notes["Source"]), "a name of a folder is no office"


@pytest.mark.parametrize("kind", ["difference", "ratio", "index", "rate"])
def test_comparisons_have_ranges_that_follow_from_both_counts(
    client: Client, values: list[int], kind: str
) -> None:
    compare = {"kind": kind, "variable": "SEX", "code": "1"}
    found = list(csv.DictReader(io.StringIO(file(client, "csv", compare=compare).decode())))
    each = {"query": QUERY, "cells": list(range(21)), "level": 0.975}
    ranges = client.post("/api/v1/noise-ranges", json=each).json()["ranges"]
    factor = {"index": 100, "rate": 1000}.get(kind, 1)
    for cell, line in enumerate(found):
        base = cell - cell % 3 + 1
        a, b = ranges[cell], ranges[base]
        if kind == "difference":
            wanted = float(values[cell] - values[base])
            ends = (a["low"] - b["high"], a["high"] - b["low"]) if cell != base else (0, 0)
        else:
            wanted = factor * values[cell] / values[base]
            ends = (
                (factor * a["low"] / b["high"], factor * a["high"] / b["low"])
                if cell != base
                else (factor, factor)
            )
        assert float(line[kind]) == pytest.approx(wanted, abs=0.006)
        assert [float(line[f"{kind}_low"]), float(line[f"{kind}_high"])] == pytest.approx(ends, abs=0.006)


def test_the_sheet_names_what_is_compared_and_signs_differences(client: Client, values: list[int]) -> None:
    compare = {"kind": "difference", "variable": "SEX", "code": "1"}
    layout = {"columns": ["SEX"], "texts": "labels", "compare": compare, "counts": True, "ranges": True}
    sheet = openpyxl.load_workbook(io.BytesIO(file(client, "xlsx", **layout)))["Table"]
    head = [cell.value for cell in sheet[6]]
    assert head[1:7] == [
        "persons",
        "from (95%)",
        "to (95%)",
        "Difference from Male",
        "from (95%)",
        "to (95%)",
    ]
    female = [cell.value for cell in sheet[8]][13:]
    assert female[0] == values[5]
    assert female[3] == values[5] - values[4]
    assert female[4] <= female[3] <= female[5]
    assert sheet["Q8"].number_format.startswith("+")
    notes = openpyxl.load_workbook(io.BytesIO(file(client, "xlsx", **layout)))["Notes"]
    said = {row[0].value: row[1].value for row in notes.iter_rows()}
    assert "at least 95%" in said["Comparison"]
    assert "version" in said["Cite as"]


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"compare": {"kind": "ratio", "variable": "EDU", "code": "1"}}, "no axis"),
        ({"compare": {"kind": "ratio", "variable": "SEX", "code": "9"}}, "no code 9"),
        ({"compare": {"kind": "ratio", "variable": "SEX", "code": "1"}, "percent": "row"}, "percent"),
        ({"columns": ["SEX"], "lines": [7]}, "0 to 6"),
    ],
)
def test_a_layout_that_the_table_does_not_allow_is_a_problem(
    client: Client, layout: dict[str, Any], message: str
) -> None:
    body = {"query": QUERY, "format": "csv", "layout": layout}
    answer = client.post("/api/v1/files", json=body)
    assert answer.status_code == 400
    assert message in answer.json()["detail"]
    wrong = {"query": QUERY, "cells": [1, 2], "compared": {"kind": "ratio", "with": [0]}}
    assert client.post("/api/v1/noise-ranges", json=wrong).status_code == 400


def test_every_format_has_low_and_high(client: Client, values: list[int]) -> None:
    def got(form: str) -> bytes:
        return client.post("/api/v1/table", params={"format": form, "ranges": True}, json=QUERY).content

    plain = list(csv.DictReader(io.StringIO(got("csv").decode())))
    low, high = ([int(line[name]) for line in plain] for name in ("low", "high"))
    assert all(a <= value <= b for a, value, b in zip(low, values, high, strict=True))
    stat = json.loads(got("json-stat"))["extension"]
    assert (stat["low"], stat["high"]) == (low, high)
    coded = list(csv.DictReader(io.StringIO(got("sdmx-csv").decode())))
    assert [int(line["LOWER_BOUND"]) for line in coded] == low
    assert [int(line["UPPER_BOUND"]) for line in coded] == high
    table = pq.read_table(io.BytesIO(got("parquet")))
    assert (table["low"].to_pylist(), table["high"].to_pylist()) == (low, high)
    data = got("px").decode().partition("DATA=\n")[2].replace(";", " ").split()
    assert [int(one) for one in data] == [
        one for three in zip(values, low, high, strict=True) for one in three
    ]
    rows = openpyxl.load_workbook(io.BytesIO(got("xlsx")))["Data"].iter_rows(values_only=True)
    head = list(next(rows))
    assert [row[head.index("low")] for row in rows] == low
