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


def test_the_map_and_its_legend_fit_a_laptop(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"), width=1366, height=768)
    page.wait_for_selector(AREAS)
    for part in (".map .legend", ".map-frame > svg"):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)


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


def test_areas_are_marked_in_map_and_table_and_the_table_is_of_these_only(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"))
    areas = page.locator(AREAS)
    names = [(areas.nth(k).get_attribute("aria-label") or "").split(": ")[0] for k in (2, 4)]
    codes = [areas.nth(k).get_attribute("data-area") for k in (2, 4)]
    areas.nth(2).click()
    expect(page.locator(f'path[data-area="{codes[0]}"]')).to_have_attribute("aria-pressed", "true")
    page.locator(f'path[data-area="{codes[1]}"]').focus()
    page.keyboard.press("Enter")
    expect(page.locator(".marked p")).to_have_text(f"2 areas marked: {names[0]} and {names[1]}")
    key(page, "marked-other").click()
    chosen = page.locator('th.stub[aria-selected="true"]')
    expect(chosen).to_have_text(names)
    chosen.first.click()
    expect(page.locator(".marked p")).to_have_text(f"1 area marked: {names[1]}")
    key(page, "marked-only").click()
    shown(page)
    expect(page.locator("tbody th")).to_have_text(["Total", names[1]])
    expect(page.locator(".marked")).to_have_count(0)


def test_two_maps_have_the_same_classes_and_are_moved_together(opens: Opens, served: str) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map", values="row", picks={"SEX": "1"}))
    key(page, "map-two").check()
    headings = page.locator(".map-heading")
    expect(headings).to_have_text(
        ["Male: % of all persons of each area", "Female: % of all persons of each area"]
    )
    expect(page.locator("figure.map .legend")).to_have_count(1)
    expect(page.get_by_label("Second map: Sex")).to_have_value("2")
    covered = page.evaluate(
        """() => { const buttons = document.querySelector('.zoom').getBoundingClientRect();
        return [...document.querySelectorAll('figure.map path[role]')].map(one => one.getBoundingClientRect())
          .filter(one => one.right > buttons.left && one.left < buttons.right && one.bottom > buttons.top
            && one.top < buttons.bottom).length; }"""
    )
    assert covered == 0, "no area is below the buttons"
    drawings = page.locator("figure.map .map-frame > svg")
    key(page, "zoom-in").click()
    for k in (0, 1):
        expect(drawings.nth(k)).to_have_attribute("data-zoom", "1.60")
    key(page, "second-SEX").select_option("_T")
    expect(headings.nth(1)).to_have_text("Total: % of all persons of each area")
    key(page, "map-two").uncheck()
    key(page, "pick-SEX").select_option("2")
    key(page, "map-two").check()
    expect(headings.nth(1)).to_have_text("Male: % of all persons of each area")  # a total is 100 % everywhere


def test_after_the_map_the_table_is_of_counts_again(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"]))
    shown(page)
    key(page, "view-map").check(force=True)
    expect(key(page, "values")).to_have_value("row")
    expect(page.locator(".readout")).to_have_class("readout hint")
    key(page, "view-table").check(force=True)
    expect(key(page, "values")).to_have_value("count")
    key(page, "view-map").check(force=True)
    key(page, "values").select_option("column")
    key(page, "view-table").check(force=True)
    expect(key(page, "values")).to_have_value("column")  # what a reader chose stays


def test_two_fingers_zoom_the_map(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map"))
    drawing = page.locator("figure.map .map-frame > svg")
    box = drawing.bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    fingers = """([x, y]) => {
      const svg = document.querySelector('figure.map .map-frame > svg');
      const send = (kind, id, dx) => svg.dispatchEvent(new PointerEvent(kind, {
        pointerId: id, pointerType: 'touch', clientX: x + dx, clientY: y, bubbles: true }));
      send('pointerdown', 1, -20); send('pointerdown', 2, 20);
      send('pointermove', 1, -40); send('pointermove', 2, 40);
      send('pointerup', 1, -40); send('pointerup', 2, 40);
    }"""
    page.evaluate(fingers, [x, y])
    expect(drawing).to_have_attribute("data-zoom", "2.00")


def test_a_map_is_printed_on_one_sheet_with_heading_legend_and_citation(opens: Opens) -> None:
    page = opens(link(rows=["GEO.H"], columns=["SEX"], view="map", values="row", picks={"SEX": "1"}))
    page.wait_for_selector(AREAS)
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 703, "height": 1032})  # A4 between its margins
    for hidden in (".zoom", ".picks", ".readout", "#builder", ".toolbar"):
        expect(page.locator(hidden).first).to_be_hidden()
    for visible in (".map-heading", "figure.map .legend", ".cited", AREAS):
        expect(page.locator(visible).first).to_be_visible()
    box = page.locator("figure.map").bounding_box() or {"x": 0, "y": 0, "width": 0, "height": 0}
    assert box["y"] + box["height"] <= 1032
    assert box["x"] + box["width"] <= 703
    marker = "getComputedStyle(document.querySelector('.notes summary')).listStyleType"
    assert page.evaluate(marker) == "none", "what it opens is printed"
