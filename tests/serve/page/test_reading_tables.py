"""A reader sees whole headings, the noise where the eye is, and headings on every printed page."""

import re
import zlib

import pytest
from playwright.sync_api import Page, expect

from tests.cases import few
from tests.serve.page.conftest import Opens
from tests.serve.page.reading import asked, key, link, shown

CLIPPED = """[...document.querySelectorAll('thead th.leaf')].filter(one => {
  const label = one.querySelector('.label'), box = one.getBoundingClientRect(), own = label.getBoundingClientRect();
  return label.scrollHeight > label.clientHeight + 1 || label.scrollWidth > label.clientWidth + 1
    || own.top < box.top - 1 || own.bottom > box.bottom + 1 || own.right > box.right + 1;
}).map(one => one.textContent)"""


@pytest.mark.parametrize("columns", few([["EDU"], ["POB.L"]], 0))
def test_headings_of_columns_are_shown_whole(opens: Opens, columns: list[str]) -> None:
    page = opens(link(rows=["SEX"], columns=columns), width=1366, height=768)
    shown(page)
    assert page.locator("thead th.leaf").count() > 4
    assert page.evaluate(CLIPPED) == []


def test_names_of_levels_and_areas_are_shown_whole(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["AGE.L", "SEX"]), width=1366, height=768)
    shown(page)
    lists = page.locator(".card-what select, .toolbar select").evaluate_all(
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.selectedOptions[0].text)"
    )
    assert lists == []
    assert page.locator(".corner .label").evaluate("one => one.scrollWidth <= one.clientWidth")
    page.set_viewport_size({"width": 390, "height": 844})
    page.reload()
    shown(page)
    cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1).map(one => one.textContent)"
    assert page.locator("tbody th .label").evaluate_all(cut) == []


BROKEN = """all => all.flatMap(one => [...one.firstChild.data.matchAll(/\\S+/g)].filter(word => {
  const range = document.createRange();
  range.setStart(one.firstChild, word.index);
  range.setEnd(one.firstChild, word.index + word[0].length);
  return range.getClientRects().length > 1;
}).map(word => word[0]))"""


@pytest.mark.parametrize("rows", [["GEO.M"], ["GEO.M", "SEX"]], ids=["one", "two"])
def test_words_of_row_headings_are_not_broken_on_a_phone(opens: Opens, rows: list[str]) -> None:
    page = opens(link(rows=rows, columns=["AGE.L"]), width=390, height=844)
    shown(page)
    assert page.locator(".corner .label").all_inner_texts()[0] == "Place of usual residence"
    assert page.locator(".corner .label").evaluate_all(BROKEN) == []


def test_a_heading_that_is_cut_shows_its_whole_text(opens: Opens) -> None:
    name = "a group whose name goes on and on " * 5
    grouped = {"breakdown": "AGE", "groups": {name.strip(): ["Y_LT15"], "b": ["Y15-29"]}}
    page = opens(link(rows=["SEX"], columns=[grouped]))
    shown(page)
    assert len(page.evaluate(CLIPPED)) == 1
    page.locator("thead th.leaf").nth(1).hover()
    expect(page.locator("#tip")).to_have_text(name.strip())
    key(page, "sort-2").focus()
    expect(page.locator("#tip")).to_be_hidden()
    key(page, "sort-1").focus()
    expect(page.locator("#tip")).to_have_text(name.strip())


def test_the_noise_is_at_the_cell_on_hover_and_focus_and_announced(opens: Opens, served: str) -> None:
    query = {"axes": ["AGE.L", "SEX"]}
    told = asked(served, "noise-ranges", {"query": query, "cells": [4]})["ranges"][0]
    value = asked(served, "table", query)["value"][4]
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    wanted = f"{value:,}; true value {told['low']:,} to {told['high']:,} with 95%"
    cell = page.locator('td[data-row="1"][data-column="1"]')
    cell.hover()
    expect(page.locator("#tip")).to_have_text(wanted)
    page.mouse.move(5, 5)
    expect(page.locator("#tip")).to_be_hidden()
    page.locator('td[data-row="0"][data-column="1"]').focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#tip")).to_have_text(wanted)
    expect(page.locator("#live")).to_have_text(wanted)
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()


def test_the_noise_is_shown_beside_the_numbers_or_unreliable_ones_are_grey(opens: Opens, served: str) -> None:
    query = {"axes": ["GEO.M", "EDU"]}
    ranges = asked(served, "noise-ranges", {"query": query, "cells": list(range(60))})["ranges"]
    values = asked(served, "table", query)["value"]
    reach = [max(one["high"] - value, value - one["low"]) for one, value in zip(ranges, values, strict=True)]
    page = opens(link(rows=["GEO.M"], columns=["EDU"], noise="beside", singles=True))
    shown(page)
    beside = page.locator("td .beside")
    expect(beside).to_have_count(60)
    assert [one.strip() for one in beside.all_inner_texts()] == [f"± {one}" for one in reach]
    key(page, "noise").select_option("grey")
    expect(beside).to_have_count(0)
    expect(page.locator("td.unreliable")).to_have_count(
        sum(one > 0.2 * value for one, value in zip(reach, values, strict=True))
    )


def test_numbers_are_inside_their_cells_and_seen_at_200_percent(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H", "LMS.H"], columns=["SEX"]), width=683, height=384)
    shown(page)
    over = page.eval_on_selector_all(
        "td[data-row]",
        "all => all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent)",
    )
    assert over == [], "totals are bold, and wider"
    inside = page.eval_on_selector_all(
        'tr[data-line="0"] td',
        "all => all.map(one => one.getBoundingClientRect().right"
        " <= document.querySelector('.scroller').getBoundingClientRect().right)",
    )
    assert inside == [True] * 3, "row headings leave room for the numbers"


@pytest.mark.parametrize("lang", few(["en", "de"], "de"))
def test_cards_are_inside_their_lists(opens: Opens, lang: str) -> None:
    chosen = {"rows": ["GEO.H", "EDU"], "columns": ["LMS.H", "SEX"], "lang": lang}
    page = opens(link(**chosen, shown=0), width=1366, height=768)
    expect(page.locator(".card")).to_have_count(4)
    for width in (1280, 1366):
        page.set_viewport_size({"width": width, "height": 768})
        over = page.locator(".card").evaluate_all(
            "all => all.filter(one => one.lastElementChild.getBoundingClientRect().right"
            " > one.getBoundingClientRect().right).map(one => one.textContent)"
        )
        assert over == []
    assert page.locator(".cards").first.evaluate("one => one.offsetHeight") < 125, "two lines of cards"


@pytest.mark.parametrize("rows", few([["AGE.M"], ["GEO.H", "LMS.H"]], 1))
def test_more_than_15_rows_are_seen_on_a_laptop(opens: Opens, rows: list[str]) -> None:
    page = opens(link(rows=rows, columns=["SEX"]), width=1366, height=768)
    shown(page)
    seen = page.eval_on_selector_all(
        "tbody tr", "all => all.filter(one => one.getBoundingClientRect().bottom <= innerHeight).length"
    )
    assert seen > 15


def test_every_printed_page_has_the_headings(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["SEX"]))
    shown(page)
    found = headed(page, "Female")
    assert len(found) > 2
    assert all(found[:-1]), "the notes may have a page of their own"


def headed(page: Page, text: str) -> list[bool]:
    """Page of the PDF -> whether a text is on it: glyphs are looked up in the tables that map them to letters."""
    pdf = page.pdf(format="A4")
    streams = [_inflated(one) for one in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)]
    letters: dict[bytes, set[str]] = {}
    for stream in streams:
        if b"beginbfchar" in stream or b"beginbfrange" in stream:
            for glyph, letter in _pairs(stream):
                letters.setdefault(glyph, set()).add(letter)
    pages = [one for one in streams if b" Tj" in one or b"TJ" in one]
    return [_has(one, text, letters) for one in pages]


def _inflated(data: bytes) -> bytes:
    try:
        return zlib.decompress(data)
    except zlib.error:
        return b""


def _pairs(stream: bytes) -> list[tuple[bytes, str]]:
    found = []
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", stream, re.DOTALL):
        for glyph, letter in re.findall(rb"<(\w{4})> <(\w{4})>", block):
            found.append((glyph.upper(), chr(int(letter, 16))))
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", stream, re.DOTALL):
        for first, last, letter in re.findall(rb"<(\w{4})> <(\w{4})> <(\w{4})>", block):
            codes = range(int(first, 16), int(last, 16) + 1)
            found += [(b"%04X" % code, chr(int(letter, 16) + k)) for k, code in enumerate(codes)]
    return found


def _has(stream: bytes, text: str, letters: dict[bytes, set[str]]) -> bool:
    """Whether glyphs that may be the letters of a text follow each other."""
    glyphs = [
        glyph.upper()
        for run in re.findall(rb"<([0-9A-Fa-f]+)>", stream)
        for glyph in re.findall(rb"\w{4}", run)
    ]
    return any(
        all(letter in letters.get(glyph, ()) for glyph, letter in zip(glyphs[at:], text, strict=False))
        for at in range(len(glyphs) - len(text) + 1)
    )
