"""Take the screenshots of the documentation again: ``make docs-pictures``.

A synthetic census is protected, audited and served; the pictures show the page of the table builder (a table, a chart,
a phone in the dark) and the audit report. Chromium must be installed.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

from playwright.sync_api import Browser, Page, sync_playwright

from tools.browser import launch

OUT = Path(__file__).parents[1] / "docs" / "pictures"
PERSONS, SEED, TABLES = "200000", "1", "3.1,3.3,8.1"
LARGEST = 150_000  # bytes of a picture
SECONDS = 120
TABLE = {
    "unit": "persons",
    "count": "",
    "where": "",
    "rows": [{"breakdown": "GEO.M"}, {"breakdown": "SEX"}],
    "columns": [{"breakdown": "AGE.L"}],
    "shown": 1,
    "lang": "en",
}


def discreet(folder: Path, *words: str) -> None:
    """Run a command in a folder."""
    subprocess.run(
        [sys.executable, "-m", "discreet", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def prepare(folder: Path) -> None:
    """A census, a release of it and its audit."""
    discreet(folder, "synth", "--persons", PERSONS, "--seed", SEED, "--tables", TABLES, "--out", "census")
    (folder / "secret.key").write_text("5e" * 32)  # one secret: the same pictures every time
    (folder / "secret.key").chmod(0o600)
    with (folder / "census" / "programme.toml").open("a", encoding="utf-8") as programme:
        programme.write("\n[gates]\naveraging = 0.9\ntrue_uniques = 0.8\n")
    common = ("--secret", "secret.key")
    discreet(folder, "protect", "census/programme.toml", *common, "--out", "release", "--quiet")
    audit = ("audit", "release", "--programme", "census/programme.toml", *common, "--out", "report")
    discreet(folder, *audit, "--without", "reconstruction")


def page_of(browser: Browser, address: str, *, width: int, height: int, dark: bool = False) -> Page:
    """A page at an address, of a size, loaded."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.goto(address, wait_until="load")
    return page


def take(page: Page, name: str) -> None:
    """Write a picture; one that is too large for a page is refused."""
    path = OUT / f"{name}.png"
    page.screenshot(path=path, animations="disabled")
    size = path.stat().st_size
    print(f"{path.name}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(
            f"{path}: {size:,} bytes; make the window smaller, so that it has at most {LARGEST:,}"
        )


def table_builder(browser: Browser, address: str) -> None:
    """The page with a table, with its chart, and on a phone."""
    shown = f"{address}/#{quote(json.dumps(TABLE))}"
    for name, width, height, dark in (
        ("table-builder", 1200, 640, False),
        ("table-builder-phone", 390, 780, True),
    ):
        page = page_of(browser, shown, width=width, height=height, dark=dark)
        page.wait_for_selector("table.grid")
        take(page, name)


def main() -> None:
    """Take all pictures."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        prepare(folder)
        browser = launch(playwright)
        report = page_of(browser, (folder / "report" / "audit.html").as_uri(), width=1200, height=700)
        take(report, "audit-report")
        words = ("serve", "census/programme.toml", "--secret", "secret.key", "--port", str(port))
        server = subprocess.Popen(
            [sys.executable, "-m", "discreet", *words],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert server.stdout is not None
            server.stdout.readline()  # printed when it listens
            urlopen(f"http://127.0.0.1:{port}/health", timeout=SECONDS).close()
            table_builder(browser, f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait(SECONDS)
            browser.close()


if __name__ == "__main__":
    main()
