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
    assert [len(line) for line in numbers(page)] == [3]  # the longer variable was in rows


def test_back_and_forward_show_the_table_of_each_step(opens: Opens) -> None:
    page = opens(link(rows=["SEX"]))
    shown(page)
    add(page, "AGE")
    shown(page)
    title = page.locator("#result-title")
    expect(title).to_have_text("Persons by age and sex")
    page.go_back()
    expect(title).to_have_text("Persons by sex")
    page.go_forward()
    expect(title).to_have_text("Persons by age and sex")


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
    expect(page.locator("#result-title")).to_have_text("Synthetic census")


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
    again = asked[asked.index("/") :]  # the first view may still have had one on its way
    judged = [one for one in again if one.endswith("/preview")]  # whether the examples are allowed
    assert len(judged) <= 4
    assert len(again) - len(judged) <= 8, again


def test_a_table_that_is_not_that_of_the_choices_is_not_drawn_again(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]))
    shown(page)
    held = slowed(page, "table")
    page.evaluate("document.querySelector('table.grid').dataset.same = 'yes'")
    key(page, "remove-SEX").click()
    expect(page.locator("#result")).to_have_attribute("data-state", "loading")
    while not held:  # the browser's request takes its time on a busy machine
        page.wait_for_timeout(20)
    expect(page.locator("table.grid[data-same]")).to_have_count(1)
    held[0].continue_()
    shown(page)
    expect(page.locator("table.grid[data-same]")).to_have_count(0)


READS = """() => {
  let reads = 0;
  for (const name of ["scrollTop", "scrollLeft", "clientHeight", "clientWidth"]) {
    const { get, set } = Object.getOwnPropertyDescriptor(Element.prototype, name);
    const counted = function () { reads += 1; return get.call(this); };
    Object.defineProperty(Element.prototype, name, { get: counted, set, configurable: true });
  }
  document.querySelector('[data-key="swap"]').click();
  return reads;
}"""


def test_another_layout_draws_the_table_only_and_lays_the_page_out_once(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H"], columns=["CAS.H", "SEX"]))
    shown(page)
    kept = "#place-variables fieldset, #place-unit fieldset, #place-tables details"
    page.eval_on_selector_all(kept, "all => all.forEach(one => { one.dataset.same = 'yes'; })")
    assert page.evaluate(READS) == 0  # each would make the browser lay out a page that is not drawn yet
    expect(page.locator("table.grid")).to_have_attribute("aria-rowcount", "32")
    assert page.eval_on_selector_all(kept, "all => all.map(one => one.dataset.same)") == ["yes"] * 3
    assert page.locator("table.grid td[data-row]").count() < 1_000
    key(page, "variable-SEX").click()  # a list that was not drawn again knows the layout
    shown(page)
    expect(page.locator('[data-side="rows"] .card')).to_have_count(1)
    expect(page.locator('[data-side="columns"] [data-variable="AGE"]')).to_be_visible()


def test_only_rows_near_what_is_seen_are_in_the_document(opens: Opens) -> None:
    page = opens(link(rows=["AGE.H", "CAS.H"], columns=["SEX"]))
    shown(page)
    rows = "[...document.querySelectorAll('table.grid tbody tr:not(.spacer)')]"
    seen = f"""() => {{
        const place = document.querySelector('.scroller').getBoundingClientRect();
        const head = document.querySelector('table.grid thead').getBoundingClientRect();
        const inside = {rows}.filter((row) => {{
            const {{ top, bottom }} = row.getBoundingClientRect();
            return bottom > head.bottom && top < place.bottom;
        }});
        return [inside.length, {rows}.length, inside.at(-1) === {rows}.at(-1)];
    }}"""
    visible, drawn, _ = page.evaluate(seen)
    assert 15 < visible <= drawn <= visible + 6
    page.evaluate("document.querySelector('.scroller').scrollTop = 1e6")
    page.wait_for_function(f"({seen})()[2]")  # the last row is there
    visible, drawn, _ = page.evaluate(seen)
    assert 15 < visible <= drawn <= visible + 6
