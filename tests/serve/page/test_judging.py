"""What the page says before a table is made, when it is refused, and while it is made in the background."""

from playwright.sync_api import expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, asked, key, link, numbers, shown


def test_areas_that_are_withheld_are_listed_with_the_table(opens: Opens, served: str) -> None:
    told = asked(served, "preview", {"axes": ["GEO.H", "SEX"]})
    assert 0 < told["withheld_areas"] < told["areas"], told["blocked_count"]
    page = opens()
    key(page, "area-GEO").select_option("GEO.H")
    expect(key(page, "area-GEO").locator("option:checked")).to_contain_text(f"({told['areas']})")
    add(page, "SEX")
    shown(page)
    page.locator("#place-notes summary").first.click()
    expect(page.locator("#place-notes .areas")).to_contain_text(told["blocked"][0]["label"])
    withheld = page.locator("td.withheld")
    assert withheld.count() == 3 * told["blocked_count"]
    withheld.first.click()
    expect(page.locator(".cell-panel")).to_contain_text("do not show")


def test_a_refusal_says_why_offers_tables_and_leaves_the_earlier_one(opens: Opens) -> None:
    page = opens()
    add(page, "CAS")
    shown(page)
    add(page, "EDU")
    main = page.locator("#place-answer .refusal")
    expect(main).to_contain_text(
        "Current activity status and Educational attainment may not be combined in one table"
    )
    expect(page.locator("#result")).to_have_attribute("data-state", "failed")
    assert float(page.evaluate("getComputedStyle(document.querySelector('.shown')).opacity")) < 0.6
    assert page.locator("table.grid").count() == 1, "the earlier table stays"
    main.locator("button.offer").first.click()
    shown(page)
    assert numbers(page)
    expect(page.locator(".card")).to_have_count(1)


def test_a_refusal_before_any_table_is_in_place_of_the_start_page(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["AGE.H", "LMS.H", "SEX"]))
    expect(page.locator("#result-title")).to_have_text("The rules of the office do not allow this table")
    expect(page.locator("#builder .refusal")).to_have_count(0)
    key(page, "offer-main-0").click()
    expect(page.locator(".cards[data-side=rows] .card").first).to_be_visible()  # no table of one long row


def test_a_filter_that_means_nothing_is_told(opens: Opens) -> None:
    page = opens()
    add(page, "SEX")
    shown(page)
    page.locator('details[data-key="filter"] > summary').click()
    page.locator('details[data-key="filter-own"] > summary').click()
    key(page, "where").fill('SEX == "9"')
    page.evaluate(
        "() => void (window.fetch = async () => new Response(JSON.stringify({detail: 'unknown code'}), {status: 400}))"
    )
    key(page, "where").blur()
    expect(page.locator("#place-answer [role=alert]")).to_contain_text("unknown code")


def test_a_server_that_cannot_be_reached_leaves_the_earlier_table(opens: Opens) -> None:
    page = opens(link(rows=["SEX"]))
    shown(page)
    page.evaluate(
        "() => { window.kept = window.fetch; window.fetch = async () => { throw new TypeError('gone') } }"
    )
    add(page, "AGE")
    expect(page.locator("#place-answer [role=alert]")).to_contain_text("cannot be reached")
    assert len(numbers(page)) == 3, "dimmed, but there"
    page.evaluate("() => { window.fetch = window.kept }")
    key(page, "again").click()
    shown(page)
    assert sum(map(len, numbers(page))) == 21


def test_large_tables_are_made_in_the_background(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H", "CAS.H"], columns=["SEX", "GEO.L"], shown=0))
    make = key(page, "run")
    expect(make).to_have_text("Make it in the background")
    key(page, "job-format").select_option("csv")
    make.click()
    ready = page.locator(".jobs button", has_text="Download")
    ready.wait_for()
    with page.expect_download() as coming:
        ready.first.click()
    assert coming.value.path().stat().st_size > 10_000
    page.reload()
    page.locator(".jobs li").first.wait_for()  # this browser remembers what it asked for
    elsewhere = opens(link(rows=["SEX"]))
    shown(elsewhere)
    expect(elsewhere.locator(".jobs li")).to_have_count(0)  # another one at the same address is not told


def test_large_answers_keep_the_document_small(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]))
    shown(page)
    everything = page.evaluate("document.querySelector('table.grid').getAttribute('aria-rowcount')")
    assert int(everything) == 131
    cells = "document.querySelectorAll('table.grid td[data-row]').length"
    assert page.evaluate(cells) < 1_000
    page.evaluate("document.querySelector('.scroller').scrollTo(99999, 99999)")
    page.wait_for_selector('td[data-row="127"][data-column="29"]')
    assert page.evaluate(cells) < 1_000
    page.locator('td[data-row="127"][data-column="29"]').focus()
    page.keyboard.press("Control+Home")
    expect(page.locator('td[data-row="0"][data-column="0"]')).to_be_focused()
