"""The page /api: its examples run as they are pasted, and get the table that they name."""

import csv
import html
import json
import re
import subprocess
from pathlib import Path
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import asked, key, link, shown

QUERY = {"unit": "persons", "axes": [{"breakdown": "AGE.L"}, {"breakdown": "SEX", "codes": ["1", "2"]}]}


def examples(address: str, language: str = "en") -> dict[str, str]:
    """Name -> code of the page about a table."""
    text = urlopen(Request(address, headers={"Accept-Language": language})).read().decode()
    found = re.findall(r'data-snippet="([^"]+)"><code>(.*?)</code>', text, re.DOTALL)
    return {name: html.unescape(code) for name, code in found}


@pytest.fixture(scope="module")
def found(served: str) -> dict[str, str]:
    return examples(f"{served}/api?query={quote(json.dumps(QUERY))}")


def test_curl_and_python_get_the_table(found: dict[str, str], served: str, tmp_path: Path) -> None:
    values = asked(served, "table", QUERY)["value"]
    subprocess.run(["sh", "-c", found["curl"]], cwd=tmp_path, check=True, capture_output=True)
    with (tmp_path / "table.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert [int(line["value"]) for line in lines] == values
    assert all(int(line["low"]) <= int(line["value"]) <= int(line["high"]) for line in lines)
    names: dict[str, object] = {}
    exec(found["Python"], names)
    assert names["table"]["value"].tolist() == values  # type: ignore[index]
    assert "read.csv" in found["R"]


def test_clients_of_pxweb_and_sdmx_get_the_declared_table(found: dict[str, str], served: str) -> None:
    names: dict[str, object] = {}
    exec(found["pxwebpy"], names)
    rows = names["rows"]
    whole = asked(served, "table", {"axes": ["AGE.L", "SEX"]})
    assert {row["value"] for row in rows} >= set(whole["value"][1:3])  # type: ignore[attr-defined]
    exec(found["sdmx1"], names)
    assert len(names["counts"]) > 2  # type: ignore[arg-type]
    assert "pxweb_get_data" in found["R pxweb"]
    assert "readSDMX" in found["R rsdmx"]


def test_without_a_question_the_example_is_a_declared_table(served: str) -> None:
    assert set(examples(f"{served}/api")) == {"curl", "Python", "R", "pxwebpy", "R pxweb", "sdmx1", "R rsdmx"}


def test_a_long_question_is_sent_as_a_body(served: str) -> None:
    groups = {"a" * 150 + str(k): ["1"] for k in range(30)}
    query = {"axes": [{"breakdown": "SEX", "groups": groups}]}
    sent = Request(
        f"{served}/page/examples", json.dumps(query).encode(), {"Content-Type": "application/json"}
    )
    text = json.loads(urlopen(sent).read())
    assert "--data" in text["curl"]
    assert "httr2" in text["R"]


def test_the_page_leads_there_with_its_table_and_how_to_cite_it(opens: Opens) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"], lang="de"))
    shown(page)
    key(page, "share").click()
    page.wait_for_selector('[data-snippet="curl"]')
    cited = page.locator('[data-snippet="cite"]')
    expect(cited).to_contain_text("Version 1.0, Tabelle „Personen nach Alter und Geschlecht“")
    with page.context.expect_page() as coming:
        key(page, "api-page").click()
    about = coming.value
    expect(about.locator("h1")).to_have_text("Tabellen für Programme")
    expect(about.locator('[data-snippet="Python"]')).to_contain_text("AGE.L")
    expect(about.locator("#citation")).to_contain_text("Synthetische Volkszählung")
    assert about.evaluate("document.documentElement.scrollWidth <= innerWidth")
