"""The pages in a real browser: quiet, without the network, sortable by mouse and keyboard, within the screen."""

import shutil
from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, sync_playwright

from tests.report.conftest import Reported

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PAGES = ("audit.html", "public.html")
WIDTHS = (390, 1280)
LAST_COLUMN = "t => [...t.tBodies[0].rows].map(r => +r.cells[r.cells.length - 1].dataset.value)"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="NO CHROMIUM: the report was NOT opened in a browser; apt-get install chromium"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as started:
        one = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


class Visit:
    """A page that is open, and what it said and asked for."""

    def __init__(
        self, browser: Browser, reported: Reported, page: str, width: int, scheme: str = "light"
    ) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
        )
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = (reported.folder / page).as_uri()
        self.page.goto(self.address)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_quiet_alone_and_fits(browser: Browser, reported: Reported, page: str, width: int) -> None:
    visit = Visit(browser, reported, page, width)
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    assert visit.page.locator("figure:visible").count() > 0
    kind, other = ("narrow", "wide") if width < 640 else ("wide", "narrow")
    assert visit.page.locator(f"figure .{kind} svg").first.is_visible()
    assert not visit.page.locator(f"figure .{other} svg").first.is_visible()
    assert visit.said == []
    assert visit.asked == [visit.address]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing(browser: Browser, reported: Reported, page: str, scheme: str) -> None:
    visit = Visit(browser, reported, page, 1280, scheme)
    visit.page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    found = Axe().run(visit.page)
    assert found.violations_count == 0, found.generate_report()


def test_tables_sort_by_value_up_and_down_with_the_keyboard(browser: Browser, reported: Reported) -> None:
    visit = Visit(browser, reported, "public.html", 1280)
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
    visit = Visit(browser, reported, "audit.html", 1280)
    visit.page.keyboard.press("Tab")
    assert visit.page.evaluate("document.activeElement.textContent") == "Skip to the content"
    visit.page.keyboard.press("Enter")
    assert visit.page.evaluate("document.activeElement.id") == "content"


def test_print_shows_what_is_folded_and_leaves_the_contents_out(browser: Browser, reported: Reported) -> None:
    visit = Visit(browser, reported, "audit.html", 1280)
    visit.page.emulate_media(media="print")
    visit.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert visit.page.locator("details:not([open])").count() == 0
    assert not visit.page.locator("nav").is_visible()
    assert visit.page.pdf().startswith(b"%PDF")
