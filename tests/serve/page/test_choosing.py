"""Categories, branches and filters are chosen without knowing a code, and mean what the API takes them for."""

from playwright.sync_api import Page, expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import add, grid_of, heads, key, link, numbers, shown, words


def ticked(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        "dialog .codes input", "all => all.filter(one => one.checked).map(one => one.value)"
    )
    return found


def test_a_branch_is_chosen_at_once_and_found_by_a_search(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"]))
    shown(page)
    key(page, "codes-AGE").click()
    key(page, "untick").click()
    key(page, "branch-Y_LT15").click()
    assert ticked(page) == ["Y_LT15", "Y0-4", "Y5-9", "Y10-14"]
    key(page, "codes-search").fill("85 years")
    expect(page.locator("dialog .codes li")).to_have_count(1)
    expect(page.locator("dialog .listed")).to_contain_text("1 category listed")
    key(page, "tick").click()
    key(page, "codes-search").fill("")
    key(page, "code-Y_LT15").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")  # clears Y0-4
    key(page, "apply").click()
    shown(page)
    assert heads(page, "tbody th") == [
        "Under 15 years",
        "5 to 9 years",
        "10 to 14 years",
        "85 years and over",
    ]


def test_a_filter_is_put_together_from_categories(opens: Opens, served: str) -> None:
    page = opens()
    add(page, "SEX")
    page.locator('details[data-key="filter"] > summary').click()
    key(page, "condition-add").select_option("AGE")
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
    again = opens(page.url.removeprefix(served))
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
