"""What the page says before a table is made, when it is refused, and while it is made in the background."""

from playwright.sync_api import expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, asked, key, link, numbers, run, shown


def test_areas_that_will_be_withheld_are_told_before(opens: Opens, served: str) -> None:
    told = asked(served, "preview", {"axes": ["GEO.H", "SEX"]})
    assert 0 < told["blocked_count"] < told["areas"], told["blocked_count"]
    page = opens()
    key(page, "area-GEO").select_option("GEO.H")
    add(page, "SEX")
    summary = page.locator("#place-verdict summary")
    expect(summary).to_contain_text(f"{told['blocked_count']} of {told['areas']} areas")
    summary.click()
    expect(page.locator("#place-verdict .areas")).to_contain_text(told["blocked"][0]["label"])
    run(page)
    withheld = page.locator("td.withheld")
    assert withheld.count() == 3 * told["blocked_count"]
    withheld.first.click()
    expect(page.locator(".cell-panel")).to_contain_text("do not show")


def test_a_refusal_says_why_and_offers_tables(opens: Opens) -> None:
    page = opens()
    add(page, "CAS", "EDU")
    side = page.locator("#place-verdict .refusal")
    expect(side).to_contain_text("CAS and EDU may not be combined in one table")
    key(page, "run").click()
    expect(page.locator("#problem-title")).to_be_focused()
    main = page.locator("#place-answer .refusal")
    expect(main).to_contain_text("CAS and EDU may not be combined in one table")
    main.locator("button.offer").first.click()
    shown(page)
    assert numbers(page)
    expect(page.locator(".card")).to_have_count(1)


def test_a_filter_that_means_nothing_is_told(opens: Opens) -> None:
    page = opens()
    add(page, "SEX")
    page.locator('details[data-key="filter"] > summary').click()
    page.locator('details[data-key="filter-own"] > summary').click()
    expect(page.locator("[data-cells]")).to_have_text("3")
    page.evaluate(
        "() => void (window.fetch = async () => new Response(JSON.stringify({detail: 'unknown code'}), {status: 400}))"
    )
    key(page, "where").fill('SEX == "9"')
    key(page, "where").blur()
    expect(page.locator("#place-verdict [role=alert]")).to_contain_text("unknown code")


def test_a_server_that_cannot_be_reached(opens: Opens) -> None:
    page = opens(link(rows=["SEX"]))
    shown(page)
    page.evaluate(
        "() => { window.kept = window.fetch; window.fetch = async () => { throw new TypeError('gone') } }"
    )
    key(page, "run").click()
    expect(page.locator("#place-answer [role=alert]")).to_contain_text("cannot be reached")
    page.evaluate("() => { window.fetch = window.kept }")
    key(page, "again").click()
    shown(page)


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
    assert int(everything) == 130
    cells = "document.querySelectorAll('table.grid td[data-row]').length"
    assert page.evaluate(cells) < 1_000
    page.evaluate("document.querySelector('.scroller').scrollTo(99999, 99999)")
    page.wait_for_selector('td[data-row="127"][data-column="29"]')
    assert page.evaluate(cells) < 1_000
    page.locator('td[data-row="127"][data-column="29"]').focus()
    page.keyboard.press("Control+Home")
    expect(page.locator('td[data-row="0"][data-column="0"]')).to_be_focused()
