"""HEAD of a table answers as GET would, without values; limits, ranges and names of files are stated."""

import csv
import json
from collections.abc import Callable
from io import BytesIO, StringIO

import pyarrow.parquet as pq
from httpx import Client
from openpyxl import load_workbook

from discreet.serve.answer import Refusal
from discreet.serve.open import TableBuilder
from tests.serve.conftest import query


def test_head_of_a_table(client: Client) -> None:
    asked = {"query": json.dumps({"axes": ["AGE.L", "SEX"]}), "format": "csv"}
    found, whole = client.head("/api/v1/table", params=asked), client.get("/api/v1/table", params=asked)
    assert found.status_code == whole.status_code == 200
    assert found.headers["content-type"] == whole.headers["content-type"]
    assert found.content == b""
    assert found.headers.get("content-length") != "0", "the table has bytes"
    assert client.head("/api/v1/table", params={"query": '{"axes": ["NONE"]}'}).status_code == 400


def test_head_of_the_page_and_its_files(client: Client) -> None:
    for path in ("/", "/api", "/page/settings", "/page/any/page.css"):
        found, whole = client.head(path), client.get(path)
        assert (found.status_code, found.content) == (200, b""), path
        assert found.headers["content-type"] == whole.headers["content-type"]


def test_a_table_that_is_too_large_has_one_stated_limit(ruled: Callable[..., TableBuilder]) -> None:
    builder = ruled(cells=10, job_cells=20)
    large = query("AGE.L", "SEX")
    said = builder.ask(large, "u")
    assert isinstance(said, Refusal)
    before = builder.preview(large, "u").refusal
    assert before is not None
    assert (
        str(said.message)
        == str(before.message)
        == "The table has 21 cells; 20 are allowed. Pick fewer codes or coarser breakdowns."
    )


def test_downloads_have_the_range_of_each_cell_and_a_name_that_states_what_is_inside(client: Client) -> None:
    asked = {"axes": ["AGE.L", "SEX"]}
    ranges = client.post("/api/v1/noise-ranges", json={"query": asked, "cells": list(range(21))}).json()[
        "ranges"
    ]
    expected = [(one["low"], one["high"]) for one in ranges]
    found = client.post("/api/v1/table?format=csv", json=asked)
    assert "persons-by-age" in found.headers["content-disposition"]
    german = client.post("/api/v1/table?format=csv", json=asked, headers={"Accept-Language": "de"})
    assert "personen-nach-alter" in german.headers["content-disposition"]
    lines = list(csv.DictReader(StringIO(found.text)))
    assert [(int(line["low"]), int(line["high"])) for line in lines] == expected
    table = pq.read_table(BytesIO(client.post("/api/v1/table?format=parquet", json=asked).content))
    assert list(zip(table["low"].to_pylist(), table["high"].to_pylist(), strict=True)) == expected
    book = load_workbook(BytesIO(client.post("/api/v1/table?format=xlsx&columns=SEX", json=asked).content))
    head, *rows = book["Data"].iter_rows(values_only=True)
    at = [head.index(name) for name in ("low", "high")]
    assert [tuple(row[k] for k in at) for row in rows] == expected
