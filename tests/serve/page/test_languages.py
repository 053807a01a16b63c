"""What the server says on the page has the reader's language, and is asked for again when the reader changes it."""

from playwright.sync_api import expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import key, link, shown


def test_a_refusal_changes_its_language_with_the_page(opens: Opens) -> None:
    page = opens(link(rows=["CAS.L", "EDU"], lang="de"), lang="de-AT")
    refusal = page.locator("#place-answer .refusal")
    expect(refusal).to_contain_text("CAS und EDU dürfen nicht in einer Tabelle stehen")
    expect(refusal.locator("button.offer small").first).to_contain_text("ohne ")
    key(page, "lang").select_option("en")
    expect(refusal).to_contain_text("CAS and EDU may not be combined in one table")
    expect(refusal.locator("button.offer small").first).to_contain_text("without ")


def test_the_noise_of_a_table_and_of_a_cell_is_told_in_the_language_of_the_page(opens: Opens) -> None:
    page = opens(link(rows=["AGE.L", "SEX"]))
    shown(page)
    notes = page.locator("#place-notes")
    expect(notes).to_contain_text("Counts are perturbed by the cell key method.")
    key(page, "lang").select_option("de")
    expect(notes).to_contain_text("Die Zahlen sind verändert durch die Cell-Key-Methode.")
    expect(notes).not_to_contain_text("Counts are perturbed")
