"""How the tests read what the page shows, and how they reach its controls."""

import json
from typing import Any
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from playwright.sync_api import Locator, Page, expect

from tests.waiting import PAGE, PATIENCE


def key(page: Page, name: str) -> Locator:
    """The control of a key."""
    return page.locator(f'[data-key="{name}"]')


def run(page: Page) -> None:
    """Press the button of a table that does not follow the choices, and wait for it."""
    key(page, "run").click()
    shown(page)


def shown(page: Page) -> None:
    """Wait for the table of the present choices."""
    expect(page.locator("#result")).to_have_attribute("data-state", "ready")
    page.wait_for_selector("table.grid, figure")


def drawn(page: Page) -> Locator:
    """The chart, when it is drawn."""
    place = page.locator(".drawing[data-drawn]")
    expect(place).to_be_visible()
    return place


def more(page: Page) -> None:
    """Open the list of what is less often chosen."""
    page.locator('[data-key="more"] > summary').click()


def add(page: Page, *names: str) -> None:
    for name in names:
        key(page, f"variable-{name}").click()


def numbers(page: Page) -> list[list[str]]:
    """The cells on the screen, row by row."""
    found: list[list[str]] = page.evaluate(
        "[...document.querySelectorAll('table.grid tbody tr:not(.spacer)')]"
        ".map(row => [...row.querySelectorAll('td[data-row]')].map(cell => cell.textContent))"
    )
    return found


def heads(page: Page, selector: str) -> list[str]:
    """The words of some headers."""
    found: list[str] = page.eval_on_selector_all(
        selector, "all => all.map(one => (one.querySelector('.label') || one).textContent)"
    )
    return found


def address(page: Page, said: str) -> str:
    """The page's link when it says this: the page writes its address after it has drawn."""
    page.wait_for_url(lambda url: said in unquote(url), wait_until="commit", timeout=PAGE)
    return "/#" + page.url.partition("#")[2]


def link(**members: Any) -> str:
    """The address of a table, as the page writes it."""
    said: dict[str, Any] = {
        "unit": "persons",
        "count": "",
        "where": "",
        "rows": [],
        "columns": [],
        "shown": 1,
        "lang": "en",
    }
    said |= members
    for side in ("rows", "columns"):
        said[side] = [{"breakdown": one} if isinstance(one, str) else one for one in said[side]]
    return "/#" + quote(json.dumps(said))


def asked(served: str, route: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the API says."""
    request = Request(
        f"{served}/api/v1/{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urlopen(request, timeout=PATIENCE) as response:
        found: dict[str, Any] = json.load(response)
    return found


def grid_of(served: str, rows: list[str], columns: list[str], **more: Any) -> list[list[int | None]]:
    """The values of the API, laid out as the page does it."""
    found = asked(served, "table", {"axes": [*rows, *columns], **more})
    width = 1
    for size in found["size"][len(rows) :]:
        width *= size
    values = found["value"]
    return [values[at : at + width] for at in range(0, len(values), width)]


def words(value: int | None) -> str:
    """A count as the English page writes it."""
    return "•withheld" if value is None else f"{value:,}"
