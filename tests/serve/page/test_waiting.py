"""While an answer takes long, or does not come: one press is one question, and every way out is shown."""

from playwright.sync_api import Page, Route, expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, key, link, numbers, shown


def slowed(page: Page, route: str) -> list[Route]:
    """Hold requests to a route back; the list fills with those that wait."""
    held: list[Route] = []

    def hold(request: Route) -> None:
        held.append(request)

    page.route(f"**/api/v1/{route}", hold)
    return held


def test_choices_in_quick_succession_ask_once_and_waiting_can_be_stopped(opens: Opens) -> None:
    page = opens()
    held = slowed(page, "table")
    page.evaluate(
        "for (const name of ['SEX', 'AGE']) document.querySelector(`[data-key='variable-${name}']`).click()"
    )
    key(page, "stop").click()
    assert len(held) == 1
    page.unroute_all()
    key(page, "remove-AGE").click()
    shown(page)
    assert len(numbers(page)) == 3


def test_back_and_forward_show_the_table_of_each_step(opens: Opens) -> None:
    page = opens(link(rows=["SEX"]))
    shown(page)
    add(page, "AGE")
    shown(page)
    title = page.locator("#result-title")
    expect(title).to_have_text("Persons by sex and age")
    page.go_back()
    expect(title).to_have_text("Persons by sex")
    page.go_forward()
    expect(title).to_have_text("Persons by sex and age")


def test_a_preview_that_failed_can_be_asked_for_again(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H", "CAS.H"], shown=0))  # quick enough to follow the choices
    page.evaluate(
        "() => { window.kept = window.fetch; window.fetch = async () => { throw new TypeError('gone') } }"
    )
    add(page, "SEX", "LMS")  # too large for that
    expect(page.locator("#place-verdict [role=alert]")).to_contain_text("cannot be reached")
    key(page, "codes-SEX").click()
    expect(page.locator("#live.toast")).to_contain_text("cannot be reached")
    page.evaluate("() => { window.fetch = window.kept }")
    key(page, "preview-again").click()
    expect(page.locator("#place-verdict [role=alert]")).to_have_count(0)


def test_a_large_table_is_shown_when_it_is_made_and_found_again_by_its_link(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H", "CAS.H"], columns=["SEX", "LMS.L"], shown=0))
    expect(key(page, "run")).to_have_text("Make it in the background")  # the server has said how large it is
    key(page, "run").click()
    page.locator(".jobs button", has_text="Show").first.click()
    shown(page)
    first = numbers(page)[0]
    again = page.context.new_page()  # of the same browser: it knows which jobs are its own
    again.goto(page.url)
    shown(again)
    assert numbers(again)[0] == first
    left = page.locator(".jobs li").count()
    page.locator(".jobs button", has_text="Delete").first.click()
    expect(page.locator(".jobs li")).to_have_count(left - 1)


def test_a_permanent_link_that_is_not_known_is_told(opens: Opens) -> None:
    page = opens("/?q=00000000000000000000000000000000")
    expect(page.locator("#live.toast")).not_to_be_empty()
    expect(page.locator("#result-title")).to_have_text("Your own table, protected")


def test_a_token_is_checked_and_sent(opens: Opens) -> None:
    page = opens()
    key(page, "token").click()
    key(page, "token-field").fill("dsc_nobody")
    key(page, "token-take").click()
    expect(page.locator("#token-wrong")).to_contain_text("unknown or was revoked")
    key(page, "cancel").click()
    expect(key(page, "token")).to_be_focused()
    assert page.evaluate("sessionStorage.length") == 0


def test_the_page_needs_few_requests(opens: Opens, served: str) -> None:
    page = opens()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url.removeprefix(served)))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert len(asked) <= 8, asked


def test_a_table_that_is_not_that_of_the_choices_is_not_drawn_again(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]))
    shown(page)
    held = slowed(page, "table")
    page.evaluate("document.querySelector('table.grid').dataset.same = 'yes'")
    key(page, "remove-SEX").click()
    expect(page.locator("#result")).to_have_attribute("data-state", "loading")
    assert held
    expect(page.locator("table.grid[data-same]")).to_have_count(1)
    held[0].continue_()
    shown(page)
    expect(page.locator("table.grid[data-same]")).to_have_count(0)
