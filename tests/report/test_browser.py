"""The pages in a real browser: quiet, without the network, sortable by mouse and keyboard, within the screen."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, sync_playwright
from tools.browser import REMEDY, find, launch

from discreet.advise.advise import Task, advise
from discreet.advise.facts import counted_facts
from discreet.audit.redundancy import Mode
from discreet.io.atomic_folder import AtomicFolder
from discreet.io.progress import Quiet
from discreet.maths.noise.ptable_solver import PTableParameters, solve
from discreet.programme.programme import load_programme
from discreet.report.advice import PAGE as ADVICE
from discreet.report.advice import advice_page, write_charts
from discreet.report.ptable import write_ptable_picture
from discreet.report.swap import REPORT, write_report
from tests.cases import few
from tests.cli import town
from tests.report.conftest import Reported
from tests.report.test_swap_report import village

PAGES = ("audit.html", "public.html", "report.html", "advice.html", "ptable.html")
WIDTHS = (390, 1280)
LAST_COLUMN = "t => [...t.tBodies[0].rows].map(r => +r.cells[r.cells.length - 1].dataset.value)"

pytestmark = pytest.mark.skipif(
    find() is None, reason=f"NO CHROMIUM: the report was NOT opened in a browser; {REMEDY}"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        one = launch(started)
        yield one
        one.close()


@pytest.fixture(scope="module")
def pages(reported: Reported, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every kind of page: both of an audit, those of a swap and of the adviser, and a picture."""
    place = tmp_path_factory.mktemp("pages")
    programme, figures = village(place / "in")
    assert programme.swap is not None
    with AtomicFolder(place / "swap", "--report") as folder:
        write_report(figures, programme.swap, "census", folder)
        folder.publish()
    counted = counted_facts(
        load_programme(town.build(place / "town") / "programme.toml"), Mode.NESTED, 1, Quiet()
    )
    advice = advise(counted, Task(declared=(2.0, 5)))
    write_charts(place / "advice", advice_page(advice), {})
    table = solve(PTableParameters(5, 2.0))
    laws = [
        dict(zip(table.changes(row).tolist(), table.probabilities[row].tolist(), strict=True))
        for row in range(table.last_row + 1)
    ]
    write_ptable_picture(place / "ptable.html", laws, "A table")
    audit = {name: reported.folder / name for name in ("audit.html", "public.html")}
    return {
        **audit,
        REPORT: place / "swap" / REPORT,
        ADVICE: place / "advice" / ADVICE,
        "ptable.html": place / "ptable.html",
    }


class Visit:
    """A page that is open, and what it said and asked for."""

    def __init__(self, browser: Browser, page: Path, width: int, scheme: str = "light") -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
        )
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = page.as_uri()
        self.page.goto(self.address)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_alone_and_fits(
    browser: Browser, pages: dict[str, Path], page: str, width: int
) -> None:
    visit = Visit(browser, pages[page], width)
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.locator("figure:visible").count() > 0
    kind, other = ("narrow", "wide") if width < 640 else ("wide", "narrow")
    if page != "ptable.html":  # its only chart scrolls
        assert visit.page.locator(f"figure .{kind} svg").first.is_visible()
        assert not visit.page.locator(f"figure .{other} svg").first.is_visible()
    assert visit.said == []
    assert visit.asked == [visit.address]


@pytest.mark.parametrize(("page", "scheme"), few(product(PAGES, ("light", "dark")), 1, 2, 5, 6, 9))
def test_axe_finds_nothing(browser: Browser, pages: dict[str, Path], page: str, scheme: str) -> None:
    visit = Visit(browser, pages[page], 1280, scheme)
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = Axe().run(visit.page)
    assert found.violations_count == 0, found.generate_report()


def test_the_adviser_shows_its_proposal_beside_other_choices(
    browser: Browser, pages: dict[str, Path]
) -> None:
    page = Visit(browser, pages[ADVICE], 1280).page
    assert page.locator(".lead").first.inner_text().startswith(("Proposed: ", "No parameters"))
    assert page.locator("#alternatives tbody tr").count() > 1
    assert page.locator("#pictures figure").count() >= 3
    assert page.locator(".holds, .broken").count() == page.locator("#alternatives tbody tr").count()


def test_tables_sort_by_value_up_and_down_with_the_keyboard(browser: Browser, reported: Reported) -> None:
    visit = Visit(browser, reported.folder / "public.html", 1280)
    table = visit.page.locator("table", has_text="GEO").first
    head = table.locator("thead th").last
    head.locator("button").focus()

    def values() -> list[float]:
        found: list[float] = table.evaluate(LAST_COLUMN)
        return found

    before = values()
    visit.page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert values() == sorted(before)
    visit.page.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    assert values() == sorted(before, reverse=True)
    first = table.locator("thead th").first
    first.locator("button").click()
    assert first.get_attribute("aria-sort") == "ascending"
    assert head.get_attribute("aria-sort") is None


def test_the_skip_link_comes_first_and_leads_to_the_content(browser: Browser, reported: Reported) -> None:
    visit = Visit(browser, reported.folder / "audit.html", 1280)
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "content"


def test_print_shows_what_is_folded_and_leaves_the_contents_out(browser: Browser, reported: Reported) -> None:
    visit = Visit(browser, reported.folder / "audit.html", 1280)
    visit.page.emulate_media(media="print")
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert visit.page.locator("details:not([open])").count() == 0
    assert not visit.page.locator("nav").is_visible()
    assert visit.page.pdf().startswith(b"%PDF")
