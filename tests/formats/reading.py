"""Readers of files of any format that share nothing with the writers: codes of the axes -> value."""

import csv
import io
import json
import re
from itertools import product

import openpyxl
import pyarrow.parquet as pq

Cells = dict[tuple[str, ...], float]  # cells without a value are left out


def read_parquet(body: bytes, axes: list[str]) -> Cells:
    rows = pq.read_table(io.BytesIO(body)).to_pylist()
    return {tuple(row[name] for name in axes): row["value"] for row in rows if row["value"] is not None}


def read_csv(body: bytes, axes: list[str]) -> Cells:
    return _rows(body, axes, "value")


def read_sdmx_csv(body: bytes, axes: list[str]) -> Cells:
    return _rows(body, axes, "OBS_VALUE")


def _rows(body: bytes, axes: list[str], value: str) -> Cells:
    rows = csv.DictReader(io.StringIO(body.decode()))
    return {tuple(row[name] for name in axes): float(row[value]) for row in rows if row[value]}


def read_json_stat(body: bytes, axes: list[str]) -> Cells:
    told = json.loads(body)
    assert told["id"] == axes
    codes = [list(told["dimension"][name]["category"]["index"]) for name in axes]
    values = told["value"]
    at = values.get if isinstance(values, dict) else lambda place: values[int(place)]
    found = {key: at(str(place)) for place, key in enumerate(product(*codes))}
    return {key: value for key, value in found.items() if value is not None}


def read_xlsx(body: bytes, axes: list[str]) -> Cells:
    book = openpyxl.load_workbook(io.BytesIO(body), read_only=True)
    header, *rows = book["Data"].iter_rows(values_only=True)
    places = [header.index(name) for name in axes]
    value = header.index("value")
    book.close()
    return {tuple(str(row[k]) for k in places): row[value] for row in rows if row[value] is not None}


def read_px(body: bytes, axes: list[str]) -> Cells:
    """Keywords up to DATA, whose cells follow stub and heading; texts in dots are no numbers."""
    head, _, data = body.decode().partition("\nDATA=\n")
    told = {
        found[1]: re.findall(r'"([^"]*)"', found[2])
        for found in re.finditer(r"^([A-Z][^=]*)=(.*?);$", head, re.MULTILINE | re.DOTALL)
    }
    names = [*told.get("STUB", ()), *told["HEADING"]]
    variables = [told[f'VARIABLECODE("{name}")'][0] for name in names]
    cells = data.strip().removesuffix(";").split()
    keys = list(product(*(told[f'CODES("{name}")'] for name in names)))
    assert len(cells) == len(keys)
    order = [variables.index(name) for name in axes]
    return {
        tuple(key[k] for k in order): float(cell)
        for key, cell in zip(keys, cells, strict=True)
        if not cell.startswith('"')
    }


READERS = {
    "parquet": read_parquet,
    "csv": read_csv,
    "sdmx-csv": read_sdmx_csv,
    "json-stat": read_json_stat,
    "xlsx": read_xlsx,
    "px": read_px,
}
