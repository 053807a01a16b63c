"""Tables built on the page, by mouse and by keyboard, have the values of the API."""

import csv
import json
import subprocess
from io import BytesIO
from pathlib import Path

import pytest
from openpyxl import load_workbook
from playwright.sync_api import Page, expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import (
    add,
    address,
    asked,
    grid_of,
    heads,
    key,
    link,
    more,
    numbers,
    shown,
    words,
)


def same(page: Page, served: str, rows: list[str], columns: list[str]) -> None:
    expected = [[words(value) for value in line] for line in grid_of(served, rows, columns)]
    assert numbers(page) == expected


def test_by_mouse(opens: Opens, served: str) -> None:
    page = opens()
    add(page, "AGE", "SEX")
    expect(page.locator("[data-cells]")).to_have_text("21")
    shown(page)
    expect(key(page, "run")).to_have_count(0)  # the table follows the choices
    assert heads(page, "thead th.leaf") == ["Total", "Male", "Female"]
    assert heads(page, "tbody th")[:2] == ["Total", "Under 15 years"]
    same(page, served, ["AGE.L"], ["SEX"])


def test_by_keyboard_alone(opens: Opens, served: str) -> None:
    page = opens()
    key(page, "variable-AGE").focus()
    page.keyboard.press("Enter")
    key(page, "variable-SEX").focus()
    page.keyboard.press("Space")
    key(page, "grip-SEX").focus()
    page.keyboard.press("ArrowUp")  # SEX into the rows, after AGE
    page.keyboard.press("ArrowLeft")
    expect(key(page, "grip-SEX")).to_be_focused()
    key(page, "grip-AGE").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#live")).to_contain_text("Columns")
    shown(page)
    same(page, served, ["SEX"], ["AGE.L"])


def test_cards_can_be_dragged(opens: Opens, served: str) -> None:
    page = opens(link(rows=["SEX", "AGE.L"]), height=1300)
    shown(page)
    page.locator('.card[data-variable="SEX"] strong').drag_to(page.locator('.cards[data-side="columns"]'))
    expect(page.locator('.cards[data-side="columns"] .card')).to_have_count(1)
    same(page, served, ["AGE.L"], ["SEX"])  # another layout of the answer at hand needs no new question
    key(page, "variable-CAS").drag_to(page.locator('.cards[data-side="columns"]'))
    expect(page.locator('.cards[data-side="columns"] .card')).to_have_count(2)
    shown(page)
    same(page, served, ["AGE.L"], ["SEX", "CAS.L"])


def test_nested_headers_span_what_they_head(opens: Opens) -> None:
    page = opens(link(rows=["SEX", "AGE.L"], columns=["GEO.L", "LMS.L"]))
    shown(page)
    spans = page.eval_on_selector_all("thead th.group", "all => all.map(one => [one.scope, one.colSpan])")
    leaves = page.locator("thead th.leaf").count()
    assert sum(wide for _, wide in spans) == leaves
    assert {scope for scope, _ in spans} == {"colgroup"}
    tall = page.eval_on_selector_all("tbody th.outer", "all => all.map(one => [one.scope, one.rowSpan])")
    assert tall == [["rowgroup", 7]] * 3


def test_axes_move_by_buttons(opens: Opens, served: str) -> None:
    page = opens(link(rows=["SEX", "AGE.L"]))
    shown(page)
    key(page, "up-AGE").click()
    same(page, served, ["AGE.L", "SEX"], [])
    key(page, "swap").click()
    same(page, served, [], ["AGE.L", "SEX"])
    key(page, "remove-SEX").click()
    expect(key(page, "variable-SEX")).to_be_focused()


def whole_of(kind: str, grid: list[list[int | None]], row: int, column: int) -> int | None:
    return {"row": grid[row][0], "column": grid[0][column], "total": grid[0][0]}[kind]


def test_percentages_are_shares_of_the_published_totals(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    grid = grid_of(served, ["AGE.L"], ["SEX"])
    for kind in ("row", "column", "total"):
        key(page, "values").select_option(kind)
        expected = [
            [
                100 * (value or 0) / (whole_of(kind, grid, row, column) or 1)
                for column, value in enumerate(line)
            ]
            for row, line in enumerate(grid)
        ]
        got = [[float(cell.rstrip("%")) for cell in line] for line in numbers(page)]
        for line, wanted in zip(got, expected, strict=True):
            assert line == pytest.approx(wanted, abs=0.0501)
        assert got[0][0] == 100


def test_sorting_keeps_totals_on_top_and_groups_together(opens: Opens, served: str) -> None:
    page = opens(link(rows=["SEX", "AGE.L"], columns=["GEO.L"]))
    shown(page)
    key(page, "sort-0").click()
    assert page.locator("thead th.leaf").first.get_attribute("aria-sort") == "descending"
    grid = grid_of(served, ["SEX", "AGE.L"], ["GEO.L"])
    groups = [grid[at : at + 7] for at in range(0, 21, 7)]
    for sign in (-1, 1):
        wanted = [
            line for part in groups for line in [part[0], *sorted(part[1:], key=lambda x: sign * (x[0] or 0))]
        ]
        assert [line[0] for line in numbers(page)] == [words(line[0]) for line in wanted]
        key(page, "sort-0").click()
    assert page.locator("thead th.leaf").first.get_attribute("aria-sort") == "none"


def test_a_sorted_tree_keeps_each_category_below_its_parent(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.M"], sort={"column": 0, "direction": "descending"}))
    shown(page)
    told = asked(served, "table", {"axes": ["AGE.M"]})
    labels = told["dimension"]["AGE"]["category"]["label"]
    children = told["dimension"]["AGE"]["category"]["child"]
    value = dict(zip(labels, told["value"], strict=True))

    def walked(code: str) -> list[str]:
        below = sorted(children.get(code, []), key=lambda one: -value[one])
        return [code, *(one for child in below for one in walked(child))]

    assert heads(page, "tbody th") == [labels[code] for code in walked("_T")]


def test_codes_totals_and_categories(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    key(page, "texts").select_option("codes")
    assert heads(page, "thead th.leaf") == ["_T", "1", "2"]
    more(page)
    key(page, "totals").uncheck()
    assert heads(page, "thead th.leaf") == ["1", "2"]
    key(page, "codes-SEX").click()
    key(page, "tick").click()  # nothing is chosen at first, which means all
    key(page, "code-1").uncheck()
    key(page, "apply").click()
    expect(key(page, "codes-SEX")).to_be_focused()
    expect(page.locator("[data-cells]")).to_have_text("14")
    shown(page)
    assert heads(page, "thead th.leaf") == ["2"]


def test_own_groups(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"]))
    shown(page)
    key(page, "codes-AGE").click()
    key(page, "untick").click()
    key(page, "code-Y_LT15").check()
    key(page, "group-name").fill("young")
    key(page, "group-make").click()
    key(page, "apply").click()
    shown(page)
    assert heads(page, "tbody th") == ["Total", "young"]
    whole = dict(zip(["_T", "Y_LT15"], grid_of(served, ["AGE.L"], []), strict=False))
    assert numbers(page)[0] == [words(whole["_T"][0])]
    assert numbers(page)[1] == [words(whole["Y_LT15"][0])]


def test_units_areas_and_published_tables(opens: Opens, served: str) -> None:
    page = opens()
    key(page, "area-GEO").select_option("GEO.L")
    add(page, "SEX")
    expect(page.locator('.cards[data-side="columns"] .card')).to_have_count(1)
    key(page, "unit-households").check(force=True)
    expect(page.locator(".card")).to_have_count(1)  # households have no sex
    page.locator('details[data-key="tables"] summary').click()
    key(page, "tables-search").fill("WIDE")
    expect(page.locator(".tables li:visible")).to_have_count(1)
    key(page, "take-wide").click()
    expect(page.locator(".card")).to_have_count(3)


def test_a_cell_tells_its_noise_range(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    page.locator('td[data-row="1"][data-column="1"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    told = asked(served, "noise-ranges", {"query": {"axes": ["AGE.L", "SEX"]}, "cells": [2 * 3 + 2]})[
        "ranges"
    ][0]
    expect(page.locator("[data-range]")).to_have_attribute("data-range", f"{told['low']} {told['high']}")
    expect(page.locator(".cell-panel")).to_contain_text("Female")
    key(page, "cell-close").click()
    expect(page.locator(":focus")).to_have_attribute("data-row", "2")


def test_a_link_restores_everything(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L", "SEX"], columns=["GEO.L"], singles=True, lang="en"))
    shown(page)
    key(page, "values").select_option("column")
    key(page, "texts").select_option("both")
    more(page)
    key(page, "totals").uncheck()
    page.keyboard.press("Escape")
    key(page, "sort-1").click()
    expect(page.locator('th[aria-sort="descending"]')).to_have_count(1)
    before = page.locator("table.grid").inner_text()
    again = opens(address(page, '"sort":{"column":1'))
    shown(again)
    assert again.locator("table.grid").inner_text() == before
    key(page, "share").click()
    key(page, "keep").click()
    short = page.locator('[data-snippet="permanent"]').inner_text()
    kept = opens(short.removeprefix(served))
    shown(kept)
    assert kept.locator("table.grid").inner_text() == before


def test_back_brings_the_last_table_back(opens: Opens) -> None:
    page = opens(link(rows=["AGE.L"]))
    shown(page)
    add(page, "SEX")
    shown(page)
    page.go_back()
    expect(page.locator("thead th.leaf")).to_have_count(1)


def test_files_of_the_view(opens: Opens, served: str, tmp_path: Path) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"], values="row", texts="codes"))
    shown(page)
    names = {}
    for wanted in (
        "download-seen",
        "download-xlsx",
        "download-csv",
        "download-sdmx-csv",
        "download-json-stat",
    ):
        page.locator("details.menu summary").click()
        with page.expect_download() as coming:
            key(page, wanted).click()
        coming.value.save_as(tmp_path / wanted)
        names[wanted] = coming.value.suggested_filename
    assert names["download-seen"].startswith("persons-by-age")
    assert names["download-xlsx"].startswith("persons-by-age")
    assert names["download-json-stat"] == "persons-by-age-and-sex.json"
    assert len(set(names.values())) == len(names), "three kinds of files end with .csv"
    seen = (tmp_path / "download-seen").read_text().splitlines()
    assert seen[:2] == [",_T,1,2", "AGE,percent_of_row,percent_of_row,percent_of_row"]
    assert float(seen[2].split(",")[1]) == 100
    book = load_workbook(BytesIO((tmp_path / "download-xlsx").read_bytes()))
    assert book.sheetnames == ["Table", "Notes", "Data"], "the workbook of the server"
    (whole,) = [line for line in book["Table"].iter_rows(values_only=True) if line[0] == "_T"]
    grid = grid_of(served, ["AGE.L"], ["SEX"])[0]
    assert whole[1:] == pytest.approx([100 * (value or 0) / (grid[0] or 1) for value in grid], abs=0.006)
    plain = list(csv.DictReader((tmp_path / "download-csv").read_text().splitlines()))
    assert [int(line["value"]) for line in plain[:3]] == grid
    assert all(int(line["low"]) <= int(line["value"]) <= int(line["high"]) for line in plain)
    assert json.loads((tmp_path / "download-json-stat").read_text())["class"] == "dataset"


def test_code_gets_the_same_table(opens: Opens, tmp_path: Path) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    key(page, "share").click()
    python = page.locator('[data-snippet="Python"]').inner_text()
    found: dict[str, object] = {}
    exec(python, found)
    table = found["table"]
    assert int(table["value"].iloc[0]) == int(numbers(page)[0][0].replace(",", ""))  # type: ignore[index]
    assert "/api/v1/table?format=csv" in page.locator('[data-snippet="R"]').inner_text()
    curl = page.locator('[data-snippet="curl"]').inner_text()
    subprocess.run(["sh", "-c", curl], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "table.csv").open() as file:
        values = [int(line["value"]) for line in csv.DictReader(file)]
    assert [f"{value:,}" for value in values] == [cell for line in numbers(page) for cell in line]
