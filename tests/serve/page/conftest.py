"""One server over the small census with strict rules and a map, and one Chromium, for all tests of the page."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tools import browser

from discreet.programme.programme import Programme
from discreet.programme.serve import ServeRule
from discreet.serve.http.app import create_app
from discreet.serve.http.tokens import Role, create_token
from discreet.serve.jobs_store import Store
from discreet.serve.open import serve_programme
from tests.serve.conftest import SECRET
from tests.serve.http.conftest import running, settings_in
from tests.serve.page.reading import asked
from tests.waiting import PAGE

RULE = ServeRule(
    groupings=("AGE",),
    forbidden=(("CAS", "EDU"),),
    place="GEO",
    area_population=25,
    cells=6_000,
    job_cells=100_000,
)
Opens = Callable[..., Page]


@pytest.fixture(scope="session")
def served(programme: Programme, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the server."""
    folder = tmp_path_factory.mktemp("page")
    store = Store(folder / "s.sqlite", lambda: datetime.now(UTC))
    builder = serve_programme(replace(programme, serve=RULE), SECRET, store)
    axis = builder.catalogue.variables["GEO"].breakdowns["GEO.H"]
    finest = [code for code, depth in zip(axis.codes, axis.depths, strict=True) if depth == axis.depths.max()]
    (folder / "map.json").write_text(json.dumps(squares(finest)))
    create_token(folder / "tokens.json", "ann", Role.PUBLIC, "")
    settings = settings_in(folder, geometry=folder / "map.json", tokens=folder / "tokens.json")
    with running(create_app(builder, settings)) as found:
        asked(
            found, "table", {"axes": ["AGE.L", "SEX"]}
        )  # on a fresh clone the first answer waits for a compiler
        yield found


def squares(codes: list[str]) -> dict[str, object]:
    """A map on which the areas are squares in rows of ten."""
    corners = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": {"code": code},
                "geometry": {
                    "type": "Polygon",
                    "coordinates": [[[x + at % 10, y + at // 10] for x, y in corners]],
                },
            }
            for at, code in enumerate(codes)
        ],
    }


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """The system's Chromium; one process can have one at a time, and other packages have theirs."""
    if browser.find() is None:
        pytest.skip(f"THE PAGE IS NOT TESTED: there is no Chromium here ({browser.REMEDY})")
    expect.set_options(timeout=PAGE)
    with sync_playwright() as playwright:
        one = browser.launch(playwright)
        yield one
        one.close()


def is_wrong(said: ConsoleMessage) -> bool:
    """Whether the browser complains; that it notes what the server says no to cannot be helped."""
    said_no = any(f"status of {status}" in said.text for status in (401, 403, 404))
    return said.type in ("error", "warning") and not said_no


@pytest.fixture
def opens(chromium: Browser, served: str, tmp_path: Path) -> Iterator[Opens]:
    """Opens the page; at the end nothing has gone wrong in it, and nothing was asked for elsewhere."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def opened(
        path: str = "/",
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        lang: str = "en",
        at: str = served,
    ) -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            locale=lang,
            accept_downloads=True,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PAGE)
        page.on("console", lambda said: wrong.append(said.text) if is_wrong(said) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith((at, "blob:")) else wrong.append(request.url),
        )
        page.goto(at + path)
        page.wait_for_selector("html[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []
