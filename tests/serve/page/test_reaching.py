"""Everybody can use the page: readers of two languages, of small and dark screens, with and without eyes or mouse."""

import re
from importlib.resources import files
from urllib.request import urlopen

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

from tests.cases import few
from tests.serve.page.conftest import Opens
from tests.serve.page.reading import address, asked, key, link, shown
from tests.waiting import PATIENCE

TABLE = {"rows": ["GEO.H"], "columns": ["SEX"]}
STANDARD = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}


def clean(page: Page, part: str = "html") -> None:
    found = Axe().run(page, context=part, options=STANDARD)
    assert found.violations_count == 0, found.generate_report()


def flat(page: Page) -> bool:
    fits: bool = page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    return fits


@pytest.mark.parametrize("dark", few([False, True], 0))
def test_axe_finds_nothing(opens: Opens, dark: bool) -> None:
    page = opens(dark=dark)
    clean(page)
    page = opens(link(**TABLE), dark=dark)
    shown(page)
    page.locator('td[data-row="1"][data-column="0"]').click()
    page.wait_for_selector("[data-range]")
    clean(page)
    for view in ("chart", "map"):
        key(page, f"view-{view}").check(force=True)
        page.wait_for_selector(f"figure.{view} svg")
        clean(page, "#result")
    key(page, "codes-SEX").click()
    page.wait_for_selector("dialog[open]")
    clean(page, "dialog")
    page.keyboard.press("Escape")
    key(page, "share").click()
    page.wait_for_selector("dialog[open]")
    clean(page, "dialog")


@pytest.mark.parametrize("dark", few([False, True], 1))
def test_axe_finds_nothing_in_a_refusal(opens: Opens, dark: bool) -> None:
    page = opens(link(rows=["CAS.L"], columns=["EDU"]), dark=dark)
    page.wait_for_selector("#place-answer .refusal")
    clean(page)


@pytest.mark.long
def test_axe_finds_nothing_in_german_filters_groups_jobs_and_tokens(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"], where='CAS in ("1")', lang="de"), dark=True)
    shown(page)
    clean(page)
    for opener in ("codes-AGE", "condition-CAS", "token"):
        key(page, opener).click()
        page.wait_for_selector("dialog")
        clean(page, "dialog")
        page.keyboard.press("Escape")
    labels = page.eval_on_selector_all("tbody th .label", "all => all.map(one => one.lang)")
    assert set(labels) == {""}, "labels of the office are in the language of the page"


def test_400_percent_zoom_needs_no_sideways_scrolling(opens: Opens) -> None:
    page = opens(link(**TABLE), width=320, height=256)
    shown(page)
    assert flat(page)
    see = key(page, "see")
    see.scroll_into_view_if_needed()
    assert see.evaluate("one => one.getBoundingClientRect().bottom <= innerHeight")
    see.click()
    expect(page.locator("#result-title")).to_be_in_viewport()


def test_on_a_wide_screen_the_heading_is_above_the_choices(opens: Opens) -> None:
    page = opens(width=2560, height=1300)
    brand, builder = (page.locator(one).bounding_box() for one in (".brand", "#builder"))
    assert brand is not None
    assert builder is not None
    assert abs(brand["x"] - builder["x"]) <= 2


def test_a_cell_with_the_focus_is_in_sight(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]), height=600)
    shown(page)
    page.locator('td[data-row="0"][data-column="0"]').focus()
    page.keyboard.press("Control+End")
    cell = page.locator('td[data-row="127"][data-column="29"]')
    expect(cell).to_be_focused()
    expect(cell).to_be_in_viewport(ratio=0.9)
    assert cell.locator("xpath=..").get_attribute("aria-rowindex") == "131"
    assert cell.get_attribute("aria-colindex") == "31"
    page.keyboard.press("Control+Home")
    top = page.evaluate("document.activeElement.getBoundingClientRect().top")
    assert top >= page.evaluate("document.querySelector('.grid thead').getBoundingClientRect().bottom") - 1


def test_whole_tables_are_printed(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]))
    shown(page)
    cells = "document.querySelectorAll('table.grid td[data-row]').length"
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(cells) == 128 * 30
    parts = page.locator(".printed table")
    assert parts.count() > 1, "30 columns are wider than any sheet"
    for part in parts.all():
        assert part.locator("tbody th").count() == 128, "each part has the row headings"
    paper = 950 if page.locator("html").get_attribute("data-paper") == "across" else 690
    wide = parts.evaluate_all("all => all.map(one => parseFloat(one.style.width) * one.style.zoom)")
    assert max(wide) <= paper + 1, "no column is beyond the edge of the paper"
    assert len(set(parts.evaluate_all("all => all.map(one => one.style.zoom)"))) == 1, "one size of letters"
    page.emulate_media(media="print")
    cut = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).map(one => one.textContent)"
    assert parts.locator("th .label").evaluate_all(cut) == [], "paper shows no more on hover"
    expect(page.locator(".cited")).to_contain_text("table “Persons by age, current activity status, and sex”")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(cells) < 1_000
    expect(parts).to_have_count(0)


def test_parts_on_paper_are_about_equally_wide(opens: Opens) -> None:
    page = opens(link(rows=["GEO.M"], columns=["EDU"]))
    shown(page)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wide = page.locator(".printed table").evaluate_all("all => all.map(one => parseFloat(one.style.width))")
    assert len(wide) == 2
    assert min(wide) > 0.8 * max(wide)


def test_a_phone_shows_it_without_scrolling_sideways(opens: Opens) -> None:
    page = opens(width=390, height=844)
    assert flat(page)
    page = opens(link(**TABLE), width=390, height=844)
    shown(page)
    for view in ("table", "chart", "map"):
        key(page, f"view-{view}").check(force=True)
        assert flat(page)
    key(page, "codes-SEX").click()
    assert flat(page)
    clean(page)
    small = page.evaluate(
        "[...document.querySelectorAll('button')].filter(one => one.offsetWidth)"
        ".filter(one => one.offsetWidth < 24 || one.offsetHeight < 24).map(one => one.outerHTML)"
    )
    assert small == []  # WCAG 2.2, target size


def test_it_speaks_german(opens: Opens) -> None:
    page = opens(link(rows=["AGE.L", "SEX"], lang="de"))
    shown(page)
    assert page.locator("html").get_attribute("lang") == "de"
    expect(page.locator("#result-title")).to_have_text("Personen nach Alter und Geschlecht")
    assert re.match(r"\d\.\d{3}", page.locator("td[data-row]").first.inner_text())
    clean(page)
    key(page, "lang").select_option("en")
    expect(page.locator("#result-title")).to_have_text("Persons by age and sex")
    address(page, '"lang":"en"')


def test_the_browser_chooses_the_language_and_the_reader_the_colours(opens: Opens) -> None:
    page = opens(lang="de-AT")
    expect(page.locator("h1")).to_have_text("Tabellenbaukasten")
    ground = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    key(page, "theme").select_option("dark")
    assert page.evaluate(ground) != light
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate(ground) != light


def test_cards_have_buttons_for_fingers(opens: Opens) -> None:
    page = opens(link(rows=["SEX", "AGE.L"]), width=390, height=844)
    shown(page)
    key(page, "down-SEX").click()
    expect(page.locator('.cards[data-side="rows"] .card').first).to_have_attribute("data-variable", "AGE")
    key(page, "other-SEX").click()
    expect(page.locator('.cards[data-side="columns"] .card')).to_have_attribute("data-variable", "SEX")
    expect(key(page, "other-SEX")).to_be_focused()
    sizes = page.eval_on_selector_all(".card-moves button", "all => all.map(one => one.offsetHeight)")
    assert min(sizes) >= 40


def test_motion_is_spared(opens: Opens) -> None:
    page = opens()
    page.emulate_media(reduced_motion="reduce")
    key(page, "variable-SEX").click()
    shown(page)
    assert page.evaluate("getComputedStyle(document.querySelector('.shown')).transitionDuration") == "0s"


def test_every_text_is_there_in_both_languages() -> None:
    folder = files("discreet.serve.page") / "files"
    texts = {}
    for lang in ("en", "de"):
        source = (folder / "texts" / f"{lang}.js").read_text("utf-8")
        texts[lang] = dict(re.findall(r'^  "([^"]+)": "((?:[^"\\]|\\.)*)",$', source, re.MULTILINE))
    assert len(texts["en"]) > 150
    assert texts["en"].keys() == texts["de"].keys()
    for name, words in texts["en"].items():
        assert sorted(re.findall(r"\{\w+\}", words)) == sorted(re.findall(r"\{\w+\}", texts["de"][name])), (
            name
        )
    used = set()
    for entry in folder.iterdir():
        if entry.name.endswith(".js"):
            used |= set(re.findall(r'\bt\("([^"]+)"', entry.read_text("utf-8")))
    missing = {name for name in used if not {name, f"{name}.one", f"{name}.other"} & texts["en"].keys()}
    assert missing == set()


def test_the_policy_allows_nothing_from_elsewhere(served: str) -> None:
    with urlopen(served + "/", timeout=PATIENCE) as response:
        policy, page = response.headers["Content-Security-Policy"], response.read().decode()
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in re.sub(r"http-equiv", "", page)
    assert re.findall(r"<script(?![^>]*(?:src=|type=\"application/json\"))", page) == []  # data are no script
    assert page.count("<script") == 2
    assert page.count("</script") == 2, "no text of the office ends the data"
    (address,) = re.findall(r'src="([^"]+page\.js)"', page)
    with urlopen(f"{served}/{address}", timeout=PATIENCE) as response:
        assert "immutable" in response.headers["Cache-Control"]
    with urlopen(f"{served}/page/older/page.js", timeout=PATIENCE) as response:
        assert response.headers["Cache-Control"] == "no-cache"


@pytest.mark.long
def test_axe_finds_nothing_in_comparisons_levels_lists_two_maps_and_the_api(
    opens: Opens, served: str
) -> None:
    page = opens(
        link(rows=["AGE.M"], columns=["SEX"], values="difference", counts=True, noise="grey"), dark=True
    )
    shown(page)
    key(page, "more").locator("summary").click()
    clean(page)
    page.locator('[data-key="mine"] > summary').click()
    clean(page, ".mine")  # it covers other controls while it is open
    marked = squares_of(served)
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map", second={"SEX": "2"}, marked=marked))
    page.wait_for_selector("figure.map path[role]")
    clean(page)
    page.goto(f"{served}/api")
    clean(page)


def squares_of(served: str) -> list[str]:
    """The first areas of the map."""
    areas = asked(served, "table", {"axes": ["GEO.H"]})["dimension"]["GEO"]["category"]["index"]
    return list(areas)[-2:]
