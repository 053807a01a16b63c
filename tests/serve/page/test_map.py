"""The map shows what the table shows: rates first, with a legend that states of what; it is zoomed and walked."""

from playwright.sync_api import Page, expect

from tests.serve.page.conftest import Opens
from tests.serve.page.reading import asked, key, link, shown

AREAS = "figure.map path[role]"


def captions(page: Page) -> dict[str, str]:
    """Area -> what the map shows for it."""
    page.wait_for_selector(AREAS)
    found: list[str] = page.eval_on_selector_all(
        AREAS, "all => all.map(one => one.getAttribute('aria-label'))"
    )
    return dict(one.split(": ") for one in found)


def test_the_map_shows_what_the_table_shows(opens: Opens, served: str) -> None:
    told = asked(served, "table", {"axes": ["GEO.H", "SEX"]})
    area = told["dimension"]["GEO"]["category"]
    values = told["value"]
    page = opens(link(rows=["GEO.H"], columns=["SEX"]))
    shown(page)
    key(page, "view-map").check(force=True)
    heading = page.locator(".map-heading")
    expect(heading).to_have_text("Male: % of all persons of each area")  # a rate, without asking for it
    maps = {"row": captions(page)}
    for kind in ("column", "total", "count"):
        key(page, "values").select_option(kind)
        maps[kind] = captions(page)
    expect(heading).to_have_text("Male: number of persons")
    for code, k in area["index"].items():
        name = area["label"][code]
        if name not in maps["count"] or values[3 * k] is None:
            continue
        male = values[3 * k + 1]
        wholes = {"row": values[3 * k], "column": values[1], "total": values[0]}
        assert maps["count"][name] == f"{male:,}"
        for kind, whole in wholes.items():
            assert maps[kind][name] == (f"{100 * male / whole:.1f}%" if whole else "withheld")
    assert "withheld" in maps["count"].values()
    page.locator("details.menu summary").click()
    with page.expect_download() as coming:
        key(page, "download-picture").click()
    drawn = coming.value.path().read_text()
    assert drawn.count("<path") >= len(maps["count"])
    assert "Male: number of persons" in drawn
    assert "rgb(" in drawn, "its colours are in it"


def test_the_map_is_zoomed_by_wheel_keys_and_buttons_and_shows_the_value_at_the_pointer(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"))
    drawing = page.locator("figure.map .map-frame > svg")
    expect(drawing).to_have_attribute("data-zoom", "1.00")
    page.locator(AREAS).nth(3).hover()
    caption = page.locator(AREAS).nth(3).get_attribute("aria-label") or ""
    expect(page.locator("#tip")).to_have_text(caption)
    page.mouse.wheel(0, -300)
    expect(drawing).not_to_have_attribute("data-zoom", "1.00")
    whole = drawing.get_attribute("viewBox")
    box = page.locator(AREAS).nth(3).bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 4, y)
    page.mouse.up()
    expect(drawing).not_to_have_attribute("viewBox", whole or "")
    key(page, "zoom-whole").click()
    expect(drawing).to_have_attribute("data-zoom", "1.00")
    page.locator(AREAS).first.focus()
    page.keyboard.press("+")
    expect(drawing).to_have_attribute("data-zoom", "1.60")


def test_classes_are_chosen(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"))
    legend = page.locator("figure.map .legend")
    seen = set()
    for method in ("quantile", "equal", "natural"):
        key(page, "map-classes").select_option(method)
        seen.add(legend.inner_text())
    assert len(seen) == 3
    key(page, "map-classes").select_option("own")
    key(page, "map-limits").fill("50; 100")
    key(page, "map-limits").blur()
    expect(legend.locator("li")).to_have_count(4)  # three classes, and what is withheld


def test_the_map_is_walked_by_keys(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"))
    areas = page.locator("figure.map path[role]")
    areas.first.focus()
    first = page.locator(".readout").inner_text()
    page.keyboard.press("ArrowRight")
    expect(areas.nth(1)).to_be_focused()
    assert page.locator(".readout").inner_text() != first
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".readout")).to_have_text(first)
