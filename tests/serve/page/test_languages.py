"""What the server says on the page has the reader's language, and is asked for again when the reader changes it."""

import re

from playwright.sync_api import expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import heads, key, link, shown


def test_a_refusal_changes_its_language_with_the_page(opens: Opens) -> None:
    page = opens(link(rows=["CAS.L", "EDU"], lang="de"), lang="de-AT")
    refusal = page.locator("#place-answer .refusal")
    expect(refusal).to_contain_text(
        "Erwerbsstatus und Bildungsabschluss dürfen nicht in einer Tabelle stehen"
    )
    expect(refusal.locator("button.offer small").first).to_contain_text("ohne ")
    key(page, "lang").select_option("en")
    expect(refusal).to_contain_text("Current activity status and Educational attainment may not be combined")
    expect(refusal.locator("button.offer small").first).to_contain_text("without ")


def test_a_german_page_is_german(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"], lang="de"), lang="de-AT")
    shown(page)
    expect(page.locator("#result-title")).to_have_text("Personen nach Alter und Geschlecht")
    assert heads(page, "thead th.leaf") == ["Insgesamt", "Männlich", "Weiblich"]
    assert heads(page, "tbody th")[1] == "Unter 15 Jahre"
    expect(page.locator(".topic").first).to_have_text("Menschen")
    expect(key(page, "breakdown-AGE")).to_contain_text("Fünfjahresgruppen")
    expect(page.locator("#top")).to_contain_text("Synthetische Volkszählung")
    english = page.evaluate(
        "[...document.querySelectorAll('#builder, #result, #top, #bottom')].map(one => one.innerText).join(' ')"
    )
    for word in ("Total", "Age", "Sex", "Male", "persons", "years", "Status in", "Country", "noise"):
        assert not re.search(rf"\b{word}\b", english), word
    key(page, "lang").select_option("en")
    shown(page)
    expect(page.locator("#result-title")).to_have_text("Persons by age and sex")
    expect(page.locator("thead th.leaf").first).to_contain_text("Total")
    expect(page.locator(".topic").first).to_have_text("People")


def test_the_page_has_no_parameters_in_sight(opens: Opens) -> None:
    page = opens(link(rows=["AGE.L", "SEX"]))
    shown(page)
    text = page.locator("body").inner_text()
    for pattern in (r"\bvariance\b", r"\bcell key\b", r"epsilon", r"\bV = ", r"\b[A-Z]{3}\.[A-Z]\b"):
        assert not re.search(pattern, text), pattern
    page.locator('[data-key="exact"] > summary').click()
    expect(page.locator("#bottom")).to_contain_text("Counts are perturbed by the cell key method.")
    key(page, "lang").select_option("de")
    expect(page.locator("#bottom")).to_contain_text("Die Zahlen sind verändert durch die Cell-Key-Methode.")


def test_withheld_cells_are_explained_beside_the_table(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"]))
    shown(page)
    expect(page.locator(".withheld-why")).to_contain_text(
        "the office does not show areas in which too few people live"
    )
    page = opens(link(rows=["AGE.L"], columns=["SEX"]))
    shown(page)
    expect(page.locator(".withheld-why")).to_have_count(0)
