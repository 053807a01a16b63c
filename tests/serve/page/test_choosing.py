"""Categories, branches and filters are chosen without knowing a code, and mean what the API takes them for."""

import json
import re

from playwright.sync_api import Page, Route, expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, address, grid_of, heads, key, link, numbers, shown, words


def ticked(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "dialog .codes [role=treeitem][aria-checked=true]", "all => all.map(one => one.dataset.key.slice(5))"
    )
    return found


def lines(page: Page) -> list[str]:
    """The labels of the lines of the tree."""
    found: list[str] = page.eval_on_selector_all(
        "dialog .codes .line",
        "all => all.sort((a, b) => a.offsetTop - b.offsetTop).map(one => one.querySelector('.text').firstChild.data)",
    )
    return found


def test_a_tree_opens_and_closes_and_a_branch_is_chosen_at_once(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"]))
    shown(page)
    key(page, "codes-AGE").click()
    expect(page.locator("dialog .foot")).to_contain_text(
        "Nothing chosen means all: five-year groups · 21 categories"
    )
    assert lines(page)[:3] == ["Total", "Under 15 years", "15 to 29 years"], "closed at first"
    page.locator('[data-key="code-Y_LT15"] .twist').click()
    assert lines(page)[2:5] == ["0 to 4 years", "5 to 9 years", "10 to 14 years"]
    expect(key(page, "code-Y_LT15")).to_have_attribute("aria-expanded", "true")
    key(page, "code-Y0-4").click()
    expect(page.locator("dialog .chips")).to_contain_text("0 to 4 years")
    key(page, "only-Y5-9").click(force=True)
    assert ticked(page) == ["Y5-9"], "only this"
    key(page, "branch-Y_LT15").click(force=True)
    expect(page.locator("dialog .chips")).to_contain_text("and 11 more")
    key(page, "chip-Y_LT15").click()
    key(page, "untick").click()
    assert ticked(page) == []
    key(page, "code-Y0-4").click()
    key(page, "code-Y5-9").click()
    key(page, "apply").click()
    shown(page)
    assert heads(page, "tbody th") == ["0 to 4 years", "5 to 9 years"]
    expect(key(page, "breakdown-AGE")).to_have_value("AGE.M")  # the coarsest that has them


def test_a_search_shows_the_path_and_levels_have_names(opens: Opens) -> None:
    page = opens()
    key(page, "areas-GEO").click()
    expect(page.locator("dialog .shortcuts")).to_contain_text(re.compile(r"\d+ municipalities"))
    key(page, "codes-search").fill("municipality 3")
    first = page.locator("dialog .line").first
    expect(first).to_contain_text("Municipality 3")
    expect(first.locator(".path")).to_contain_text("Region 1 › Province 1 › District 1")
    key(page, "codes-search").press("ArrowDown")
    page.keyboard.press("Space")
    key(page, "apply").click()
    shown(page)
    assert heads(page, "tbody th") == ["Municipality 3"]
    expect(key(page, "area-GEO")).to_have_value("GEO.H")


def test_a_search_without_a_result_says_so(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"]))
    shown(page)
    key(page, "codes-GEO").click()
    key(page, "codes-search").fill("nowhere")
    expect(page.locator("dialog .listed")).to_have_text("Nothing is found by these words.")
    key(page, "codes-search").fill("district")
    expect(page.locator("dialog .listed")).to_have_text("2 areas listed.")


def test_the_tree_is_used_by_keys_and_told_to_screen_readers(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"]))
    shown(page)
    key(page, "codes-AGE").click()
    key(page, "codes-search").press("ArrowDown")
    for pressed in (
        "ArrowDown",
        "ArrowRight",
        "ArrowDown",
        "Space",
        "ArrowDown",
        "Space",
        "ArrowLeft",
        "ArrowLeft",
    ):
        page.keyboard.press(pressed)
    expect(key(page, "code-Y_LT15")).to_be_focused()
    expect(key(page, "code-Y_LT15")).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    line = key(page, "code-Y5-9")
    for name, value in {
        "aria-level": "2",
        "aria-posinset": "2",
        "aria-setsize": "3",
        "aria-checked": "true",
    }.items():
        expect(line).to_have_attribute(name, value)
    page.keyboard.press("Enter")  # only this
    expect(page.locator("dialog .chips .chip")).to_have_count(1)
    page.keyboard.press("End")
    expect(page.locator(":focus")).to_have_attribute("aria-posinset", "7")


def test_thousands_of_areas_are_few_elements(opens: Opens) -> None:
    page = opens()

    def many(route: Route) -> None:
        found = json.loads(route.fetch().text())
        codes = [f"X{k}" for k in range(20_000)]
        found |= {"codes": codes, "labels": [f"Block {k}" for k in range(20_000)], "parents": ["_T"] * 20_000}
        found |= {"depths": [1] * 20_000, "first": [0] * 20_000, "definitions": {}}
        route.fulfill(json=found)

    page.route("**/api/v1/breakdowns/GEO.H", many)
    key(page, "areas-GEO").click()
    expect(page.locator("dialog .line").first).to_be_visible()
    assert page.locator("dialog .line").count() < 60
    page.locator("dialog .codes").evaluate("one => { one.scrollTop = one.scrollHeight; }")
    expect(key(page, "code-X19999")).to_be_visible()
    assert page.locator("dialog .line").count() < 60
    key(page, "codes-search").fill("block 12345")
    expect(page.locator("dialog .line")).to_have_count(1)


def test_one_search_finds_variables_categories_and_tables(opens: Opens) -> None:
    page = opens()
    key(page, "search").fill("foreign")
    expect(page.locator(".found .variable").first).to_contain_text("Country or place of birth")
    key(page, "search").fill("austria")
    hit = key(page, "found-COC-AT")
    expect(hit).to_contain_text("Country of citizenship › Citizenship of another country")
    hit.click()
    shown(page)
    assert heads(page, "tbody th") == ["Total", "Austria"]
    expect(key(page, "found-COC-AT")).to_have_attribute("aria-pressed", "true")
    key(page, "search").fill("france")
    key(page, "found-COC-FR").click()
    expect(page.locator("[data-cells]")).to_have_text("3")
    shown(page)
    assert heads(page, "tbody th") == ["Total", "France", "Austria"]
    key(page, "search").fill("persons by sex age")
    expect(page.locator("[data-key^=found-table-]").first).to_contain_text("Persons by")
    key(page, "search").fill("zzzz")
    expect(page.locator(".found [role=status]")).to_have_text("Nothing is found by these words.")


def test_definitions_are_beside_variables(opens: Opens) -> None:
    page = opens()
    key(page, "about-CAS").click()
    expect(page.locator(".variables .about")).to_contain_text("Whether a person works, looks for work")
    expect(key(page, "about-CAS")).to_have_attribute("aria-expanded", "true")
    key(page, "variable-CAS").click()
    key(page, "codes-CAS").click()
    expect(page.locator("dialog .about").first).to_contain_text("Whether a person works")


def test_a_filter_is_put_together_from_categories(opens: Opens, served: str) -> None:
    page = opens()
    add(page, "SEX")
    page.locator('details[data-key="filter"] > summary').click()
    key(page, "condition-add").select_option("AGE")
    levels = page.locator("dialog .shortcuts")
    expect(levels).to_contain_text("6 broad groups")
    expect(levels).to_contain_text("21 five-year groups")
    expect(levels).not_to_contain_text("level")
    page.locator('[data-key="code-Y_LT15"] .twist').click()
    key(page, "code-Y_LT15").check()
    assert "Y0-4" in ticked(page), "a category stands for everything below it"
    key(page, "code-Y0-4").uncheck()
    assert "Y_LT15" not in ticked(page)
    key(page, "code-Y0-4").check()
    key(page, "code-Y_LT15").check()
    key(page, "apply").click()
    shown(page)
    expect(page.locator(".only")).to_have_text("Only Age: Under 15 years")
    expected = grid_of(served, ["SEX"], [], where='AGE == "Y_LT15"')
    assert numbers(page) == [[words(line[0])] for line in expected]
    again = opens(address(page, '"where":"AGE'))
    shown(again)
    expect(again.locator(".only")).to_have_text("Only Age: Under 15 years")
    expect(key(again, "condition-AGE")).to_contain_text("1 category")


def test_a_filter_of_another_form_is_left_as_it_is(opens: Opens, served: str) -> None:
    page = opens(link(rows=["SEX"], where='not AGE == "Y_LT15"'))
    shown(page)
    expect(key(page, "where")).to_have_value('not AGE == "Y_LT15"')
    expect(key(page, "condition-add")).to_have_count(0)


def test_a_group_needs_a_name_and_categories(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"]))
    shown(page)
    key(page, "codes-AGE").click()
    key(page, "untick").click()
    key(page, "group-make").click()
    expect(page.locator(".groups [role=alert]")).to_have_text("Give the group a name.")
    key(page, "group-name").fill("young")
    page.keyboard.press("Enter")
    expect(page.locator(".groups [role=alert]")).to_have_text("Tick at least one category.")
