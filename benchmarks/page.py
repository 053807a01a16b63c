"""The page of the table builder in Chromium: redrawing a table of 76,800 cells, and the first view on a slow line.

A redraw is compared with a trivial request, the table of SEX from the server's cache, in the same page and in turn; the
first view is emulated with 400 ms of latency, 50 kB/s and an empty cache. CPU s of a redraw is the time of script,
style and layout in the page, wall s that until the next frame, peak GB the heap of the page.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright
from tools.browser import launch

from benchmarks.census import census
from benchmarks.costs import GB, Cost
from benchmarks.lines import Line, Section, Target
from benchmarks.serve import _secret, _server

PERSONS = 200_000
TIMES = 15
LARGE, TRIVIAL = ("GEO.H", "AGE.H", "LMS.H"), ("SEX",)
LATENCY, BYTES = 400, 50_000  # milliseconds, and bytes in a second
REDRAWS = {"texts": "codes for labels", "values": "% of row", "swap": "rows for columns", "sort-0": "sorted"}
MOST = 3  # times a trivial request
FIRST = 2  # seconds

MEASURE = """async ([times, redraws, trivial]) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => done(performance.now());
    channel.port2.postMessage(0);
  }));
  const pause = () => new Promise((done) => setTimeout(done, 80));
  const press = (name, other) => {
    const control = document.querySelector(`[data-key="${name}"]`);
    if (control.tagName !== "SELECT") return control.click();
    control.value = control.options[other ? 1 : 0].value;
    control.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const found = Object.fromEntries(redraws.map((name) => [name, []]));
  const requests = [];
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify({ axes: trivial }) };
  for (let time = 0; time < times; time += 1) {
    const asked = performance.now();
    await (await fetch("api/v1/table", options)).json();
    requests.push(performance.now() - asked);
    await pause();
    for (const name of redraws) {
      await frame();
      const begun = performance.now();
      press(name, time % 2 === 0);
      document.body.offsetHeight; // lay the page out
      const laidOut = performance.now() - begun;
      found[name].push([laidOut, (await frame()) - begun]);
      await pause();
    }
  }
  return { requests, found };
}"""
SEEN = """new MutationObserver(() => {
  if (!window.usable && document.querySelector('[data-key^="variable-"]')) window.usable = performance.now();
  if (!window.shown && document.querySelector(".figure")) window.shown = performance.now();
}).observe(document, { subtree: true, childList: true });"""


def sections(data: Path, persons: int, repeats: int) -> list[Section]:
    folder = census(data, persons)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        source = [str(folder / "programme.toml"), "--secret", _secret(Path(place)), "--without-rules"]
        browser = launch(playwright)
        with _server(source, Path(place)) as (address, _, _):
            lines = (*_redraws(browser, f"http://{address}"), _first_view(browser, f"http://{address}"))
        browser.close()
    notes = (
        f"Medians of {TIMES}; a redraw is judged by script, style and layout, because a frame waits for the screen.",
        f"First view: {LATENCY} ms of latency for each request, {BYTES:,} bytes in a second, nothing cached.",
    )
    return [Section("The page of the table builder", lines, notes)]


def _redraws(browser: Browser, address: str) -> Iterator[Line]:
    page = _page(browser)
    rows, columns = LARGE[:-1], LARGE[-1:]
    page.goto(f"{address}/#{quote(json.dumps(_link(rows, columns)))}")
    page.wait_for_selector("table.grid")
    found = page.evaluate(MEASURE, [TIMES, list(REDRAWS), TRIVIAL])
    request = median(found["requests"])
    heap = _heap(page.context.new_cdp_session(page))
    yield Line("a trivial request, SEX", "Discreet", Cost(request / 1000, request / 1000, heap))
    for name, what in REDRAWS.items():
        laid_out, shown = (median(times) for times in zip(*found["found"][name], strict=True))
        target = Target("x a trivial request", laid_out / request, MOST, 1)
        yield Line(
            f"76,800 cells drawn again: {what}",
            "Discreet",
            Cost(laid_out / 1000, shown / 1000, heap),
            targets=(target,),
        )
    page.context.close()


def _first_view(browser: Browser, address: str) -> Line:
    usable, shown = [], []
    for _ in range(TIMES // 3):
        page = _page(browser)
        page.add_init_script(SEEN)
        line = page.context.new_cdp_session(page)
        limits = {
            "offline": False,
            "latency": LATENCY,
            "downloadThroughput": BYTES,
            "uploadThroughput": BYTES,
        }
        line.send("Network.enable")
        line.send("Network.emulateNetworkConditions", limits)
        page.goto(address, wait_until="commit")
        page.wait_for_selector(".figure", timeout=60_000)
        found = page.evaluate("[window.usable, window.shown]")
        usable.append(found[0] / 1000)
        shown.append(found[1] / 1000)
        heap = _heap(line)
        page.context.close()
    target = Target("choices after s", median(usable), FIRST, 2)
    return Line(
        "first view on a slow line, to the first number",
        "Discreet",
        Cost(median(usable), median(shown), heap),
        targets=(target,),
    )


def _page(browser: Browser) -> Page:
    return browser.new_context(viewport={"width": 1366, "height": 768}, locale="en").new_page()


def _heap(session: CDPSession) -> float:
    session.send("Performance.enable")
    metrics = session.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "JSHeapUsedSize") / GB


def _link(rows: Sequence[str], columns: Sequence[str]) -> dict[str, Any]:
    sides = {"rows": rows, "columns": columns}
    axes = {side: [{"breakdown": one} for one in some] for side, some in sides.items()}
    return {"unit": "persons", **axes, "lang": "en", "shown": 1}
