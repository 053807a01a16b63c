"""The table as a reader arranges it: names above columns, levels that open, widths, full screen, comparisons, rows."""

import pytest
from playwright.sync_api import Page, expect

from tests.cases import few
from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, address, asked, grid_of, heads, key, link, more, numbers, shown


def fold(page: Page, what: str) -> None:
    page.locator(f'[data-fold="{what}"]').click()


def test_names_of_variables_are_above_their_columns(opens: Opens) -> None:
    page = opens(link(rows=["EDU"], columns=["SEX", "AGE.L"]))
    shown(page)
    expect(page.locator("thead th.names")).to_have_text("Sex / Age")
    box = page.locator("thead th.names").bounding_box() or {"y": 0}
    leaf = page.locator("thead th.leaf").first.bounding_box() or {"y": 0}
    assert box["y"] < leaf["y"]


def test_levels_open_and_close_in_row_headings_by_pointer_and_keys(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"]))
    shown(page)
    every = heads(page, "tbody th")
    fold(page, "0 Y_LT15")
    some = heads(page, "tbody th")
    assert [one for one in every if one not in some] == ["0 to 4 years", "5 to 9 years", "10 to 14 years"]
    sign = page.locator('[data-fold="0 Y_LT15"]')
    expect(sign).to_have_attribute("aria-expanded", "false")
    cell = page.locator('td[data-row="1"][data-column="0"]')
    cell.focus()
    page.keyboard.press("ArrowLeft")
    expect(sign).to_be_focused()
    page.keyboard.press("Enter")
    expect(sign).to_have_attribute("aria-expanded", "true")
    assert heads(page, "tbody th") == every
    page.keyboard.press("ArrowRight")
    expect(cell).to_be_focused()
    key(page, "fold-AGE").click()
    closed = heads(page, "tbody th")
    assert closed[:2] == ["Total", "Under 15 years"]
    assert len(closed) == 7
    again = opens(address(page, '"closed":{"AGE":["'))  # opened again, the list was empty
    shown(again)
    assert heads(again, "tbody th") == closed


def test_a_level_with_one_category_is_not_repeated(opens: Opens) -> None:
    page = opens(link(rows=["GEO.M"], columns=["SEX"]))
    shown(page)
    assert heads(page, "tbody th") == ["Total", "District 1", "District 2"]
    more(page)
    key(page, "singles").check()
    assert heads(page, "tbody th") == ["Total", "Region 1", "Province 1", "District 1", "District 2"]
    chosen = {"breakdown": "SEX", "codes": ["_T", "1"]}
    page = opens(link(rows=[chosen]))
    shown(page)
    assert heads(page, "tbody th") == ["Total", "Male"], "what a reader chose is shown"


def test_the_longer_variable_is_in_rows(opens: Opens) -> None:
    page = opens()
    add(page, "SEX", "AGE")
    shown(page)
    assert heads(page, "thead th.leaf") == ["Total", "Male", "Female"]


def test_totals_are_bold_as_a_whole(opens: Opens) -> None:
    page = opens(link(rows=["SEX", "AGE.L"], columns=["LMS.L"]))
    shown(page)
    weights = page.eval_on_selector_all(
        "tbody tr",
        "all => all.map(row => [...row.querySelectorAll('td')].map(td => +getComputedStyle(td).fontWeight))",
    )
    ages = 7
    for row, line in enumerate(weights):
        is_total = row % ages == 0  # the ages of both sexes together are no totals
        assert line[0] > 600  # the column of the totals
        assert all((one > 600) == is_total for one in line[1:]), row


def test_rows_are_closer_and_columns_wider_on_request(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"]), width=1366, height=768)
    shown(page)
    seen = "all => all.filter(one => one.getBoundingClientRect().bottom <= innerHeight).length"
    before = page.eval_on_selector_all("tbody tr", seen)
    more(page)
    key(page, "density").select_option("compact")
    page.keyboard.press("Escape")  # the list is over the headings
    assert page.eval_on_selector_all("tbody tr", seen) > before > 15
    leaf = page.locator("thead th.leaf").nth(1)

    def width() -> float:
        return (leaf.bounding_box() or {"width": 0})["width"]

    first = width()
    edge = leaf.locator(".edge")
    box = edge.bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
    page.mouse.move(box["x"] + 3, box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 63, box["y"] + 5)
    page.mouse.up()
    assert width() == pytest.approx(first + 60, abs=2)
    edge.dblclick()
    assert width() == pytest.approx(first, abs=2)
    key(page, "sort-1").focus()
    page.keyboard.press("Alt+ArrowRight")
    assert width() == pytest.approx(first + 16, abs=2)


def test_the_table_fills_the_screen_and_the_panel_folds(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"]))
    shown(page)
    key(page, "panel").click()
    expect(page.locator("#builder-title")).to_be_hidden()
    wide = page.locator("#result").bounding_box() or {"width": 0}
    assert wide["width"] > 1000
    page.reload()
    shown(page)
    expect(page.locator("#builder-title")).to_be_hidden()
    key(page, "panel").click()
    expect(page.locator("#builder-title")).to_be_visible()
    key(page, "full").click()
    expect(page.locator("#builder")).to_be_hidden()
    assert (page.locator("#result").bounding_box() or {"width": 0})["width"] > 1200
    page.keyboard.press("Escape")
    expect(page.locator("#builder")).to_be_visible()


@pytest.mark.parametrize("kind", few(["difference", "ratio", "index", "rate"], "rate"))
def test_numbers_are_compared_with_a_category(opens: Opens, served: str, kind: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"], values=kind, base=["SEX", "1"], noise="beside"))
    shown(page)
    grid = grid_of(served, ["AGE.L"], ["SEX"])
    expect(page.locator("td .beside")).to_have_count(21)
    cells = [one.split(" ± ")[0] for one in numbers(page)[1]]
    male, female = grid[1][1] or 0, grid[1][2] or 0
    wanted = {
        "difference": f"{female - male:+,}".replace("+0", "0"),
        "ratio": f"{female / male:.2f}",
        "index": f"{100 * female / male:.1f}",
        "rate": f"{1000 * female / male:,.1f}",
    }
    assert cells[2].strip() == wanted[kind]
    query = {"axes": ["AGE.L", "SEX"]}
    found = asked(
        served, "noise-ranges", {"query": query, "cells": [5], "compared": {"kind": kind, "with": [4]}}
    )
    page.locator('td[data-row="1"][data-column="2"]').hover()
    low, high = found["ranges"][0]["low"], found["ranges"][0]["high"]
    text = {"difference": "{:+,.0f}", "ratio": "{:.2f}", "index": "{:,.1f}", "rate": "{:,.1f}"}[kind].format
    expect(page.locator("#tip")).to_contain_text(f"true value {text(low)} to {text(high)} with at least 95%")
    key(page, "compared").select_option('["SEX","_T"]')
    expect(page.locator('td[data-row="1"][data-column="0"]')).to_contain_text(
        {"difference": "0", "ratio": "1.00", "index": "100.0", "rate": "1,000.0"}[kind]
    )


def test_counts_and_shares_are_next_to_each_other_and_sorted_each(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"], values="row"))
    shown(page)
    more(page)
    key(page, "counts").check()
    assert heads(page, "thead th.leaf") == ["Counts", "% of row"] * 3
    grid = grid_of(served, ["AGE.L"], ["SEX"])
    whole, male = grid[1][0] or 1, grid[1][1] or 0
    assert numbers(page)[1][2:4] == [f"{male:,}", f"{100 * male / whole:.1f}%"]
    page.keyboard.press("Escape")  # the list is closed
    key(page, "sort-3").click()
    shares = [float(line[3].rstrip("%")) for line in numbers(page)[1:]]
    assert shares == sorted(shares, reverse=True)


def test_the_largest_rows_only_and_no_zeros(opens: Opens, served: str) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"]))
    shown(page)
    more(page)
    key(page, "top").select_option("5")
    expect(page.locator("tbody tr")).to_have_count(6)  # with the total
    told = asked(served, "table", {"axes": ["GEO.H", "SEX"]})
    area = told["dimension"]["GEO"]["category"]
    parents = set(area["child"])
    finest = [told["value"][3 * k] or 0 for code, k in area["index"].items() if code not in parents]
    assert [line[0] for line in numbers(page)[1:]] == [f"{one:,}" for one in sorted(finest, reverse=True)[:5]]
    page = opens(link(rows=["AGE.M"], columns=["CAS.H"]))
    shown(page)
    before = numbers(page)
    rows = [line for line in before if set(line) != {"0"}]
    kept = [k for k in range(len(before[0])) if any(line[k] != "0" for line in before)]
    more(page)
    key(page, "zeros").check()
    assert numbers(page) == [[line[k] for k in kept] for line in rows]


def test_undo_redo_and_the_tables_of_this_visit(opens: Opens) -> None:
    page = opens(link(rows=["SEX"]))
    shown(page)
    add(page, "AGE")
    shown(page)
    key(page, "values").select_option("row")
    title = page.locator("#result-title")
    key(page, "undo").click()
    expect(key(page, "values")).to_have_value("count")
    expect(title).to_have_text("Persons by age and sex")
    page.keyboard.press("Control+z")
    expect(title).to_have_text("Persons by sex")
    key(page, "redo").click()
    expect(title).to_have_text("Persons by age and sex")
    page.keyboard.press("Control+Shift+z")
    expect(key(page, "values")).to_have_value("row")
    page.locator('[data-key="mine"] > summary').click()
    expect(page.locator(".mine .item span")).to_have_text(["Persons by age and sex", "Persons by sex"])
    key(page, "mine-1").click()
    expect(title).to_have_text("Persons by sex")
    key(page, "share").click()
    key(page, "keep").click()
    link_of = page.locator('[data-snippet="permanent"]').inner_text()
    key(page, "share-close").click()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.locator('[data-key="mine"] > summary').click()
    expect(key(page, "link-0")).to_have_attribute("href", link_of)
    expect(page.locator(".mine .item span")).to_have_count(2)
    key(page, "link-drop-0").click()
    expect(key(page, "link-0")).to_have_count(0)
