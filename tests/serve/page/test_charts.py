"""Charts are drawn by Vega under the page's policy: the kind that suits the variables, one level at a time."""

import csv
from io import StringIO

import pytest
from playwright.sync_api import Page, expect

from tests.cases import few
from tests.serve.page.conftest import Opens
from tests.serve.page.reading import asked, drawn, key, link, shown

SVG = ".drawing svg"


def labels(page: Page) -> list[str]:
    """All texts of the chart."""
    found: list[str] = page.eval_on_selector_all(f"{SVG} text", "all => all.map(one => one.textContent)")
    return found


def saved(page: Page, name: str) -> bytes:
    """A file of the menu."""
    page.locator("details.menu summary").click()
    with page.expect_download() as coming:
        key(page, name).click()
    return coming.value.path().read_bytes()


def test_ages_and_sexes_are_a_pyramid_with_the_noise_and_one_level(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"]))
    loads: list[str] = []
    page.on("request", lambda request: loads.append(request.url))
    shown(page)
    assert not any("vega" in one for one in loads), "only a chart needs it"
    key(page, "view-chart").check(force=True)
    expect(drawn(page)).to_have_attribute("data-kind", "pyramid")
    assert any("vega" in one for one in loads)
    texts = labels(page)
    assert "0 to 4 years" in texts
    assert not {"Total", "Under 15 years"} & set(texts), "no parents beside their children"
    assert page.locator(f"{SVG} .role-mark.mark-rule line").count() > 30, "whiskers"
    key(page, "whiskers").uncheck()
    drawn(page)
    assert page.locator(f"{SVG} .role-mark.mark-rule line").count() == 0
    key(page, "level-AGE").select_option("1")
    drawn(page)
    assert {"Under 15 years", "Number of persons per year of age"} <= set(labels(page))
    assert "0 to 4 years" not in labels(page)
    told = asked(served, "table", {"axes": ["AGE.L", "SEX"]})["value"]
    lines = list(csv.DictReader(StringIO(saved(page, "download-data").decode())))
    assert len(lines) == 12
    assert int(lines[0]["Number of persons"]) == told[1 * 3 + 1]
    assert int(lines[0]["low"]) <= told[1 * 3 + 1] <= int(lines[0]["high"])
    assert saved(page, "download-png").startswith(b"\x89PNG")
    assert b"Persons by age and sex" in saved(page, "download-picture")


def test_every_kind_is_drawn_and_the_legend_filters(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"], view="chart", whiskers=False))
    drawn(page)
    kinds = kinds_of(page)
    assert kinds == ["bars", "dots", "lines", "stacked", "share", "pyramid", "multiples"]
    for kind in kinds:
        key(page, "chart-kind").select_option(kind)
        page.wait_for_selector(f'.drawing[data-drawn="{kind}"]')
        assert page.locator(f"{SVG} .role-mark").count() > 0, kind
    key(page, "chart-kind").select_option("bars")
    page.wait_for_selector('.drawing[data-drawn="bars"]')
    bars = page.locator(f"{SVG} .mark-rect path")
    before = bars.count()
    page.locator(f"{SVG} .role-legend-symbol path").first.click(force=True)
    expect(bars).to_have_count(before // 2)


def kinds_of(page: Page) -> list[str]:
    found: list[str] = page.eval_on_selector_all(
        '[data-key="chart-kind"] option', "all => all.map(one => one.value)"
    )
    return found


@pytest.mark.parametrize(("rows", "kind"), [(["AGE.M"], "pyramid"), (["EDU", "AGE.L"], "multiples")])
def test_the_legend_filters_pyramids_and_panels_and_both_have_whiskers(
    opens: Opens, rows: list[str], kind: str
) -> None:
    page = opens(link(rows=rows, columns=["SEX"], view="chart", chart=kind))
    expect(drawn(page)).to_have_attribute("data-kind", kind)
    bars, rules = page.locator(f"{SVG} .mark-rect path"), page.locator(f"{SVG} .role-mark.mark-rule line")
    before, whiskers = bars.count(), rules.count()
    assert whiskers > 0.8 * before, "the noise of empty cells is left out"
    page.locator(f"{SVG} .role-legend-symbol path").first.click(force=True)
    expect(bars).to_have_count(before // 2)
    assert rules.count() < whiskers


def test_the_value_and_its_range_are_at_the_pointer(opens: Opens, served: str) -> None:
    page = opens(link(rows=["SEX"], view="chart"))
    drawn(page)
    page.locator(f"{SVG} .mark-rect path").first.hover()
    tip = page.locator("#vg-tooltip-element")
    value = asked(served, "table", {"axes": ["SEX"]})["value"][1]
    expect(tip).to_contain_text(f"{value:,}")
    expect(tip).to_contain_text("Male")
    expect(tip).to_contain_text("True value (95%)")


def test_only_parts_of_one_whole_are_stacked_and_only_counts_are_a_pyramid(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"], view="chart", values="difference"))
    drawn(page)
    assert not {"stacked", "share", "pyramid"} & set(kinds_of(page)), "differences may be below zero"
    key(page, "values").select_option("row")
    expect(drawn(page)).to_have_attribute("data-kind", "pyramid")
    assert not {"stacked", "share"} & set(kinds_of(page)), "shares of rows are no parts of one whole"


def test_age_groups_of_several_widths_are_drawn_per_year(opens: Opens, served: str) -> None:
    page = opens(link(rows=["AGE.L"], columns=["SEX"], view="chart", whiskers=False))
    expect(drawn(page)).to_have_attribute("data-kind", "pyramid")
    assert "Number of persons per year of age" in labels(page)
    boxes: list[dict[str, float]] = page.locator(f"{SVG} .mark-rect path").evaluate_all(
        "all => all.map(one => one.getBBox()).map(({ width, height }) => ({ width, height }))"
    )
    values = asked(served, "table", {"axes": ["AGE.L", "SEX"]})["value"]
    years = [15, 15, 20, 15, 20, 20]  # the last one is open
    men = [values[3 * k + 1] for k in range(1, 7)]
    one = boxes[0]
    for box, number, wide in zip(boxes[:6], men, years, strict=True):
        assert box["height"] / one["height"] == pytest.approx(wide / years[0], rel=0.02)
        assert box["width"] / one["width"] == pytest.approx(number / wide / men[0] * years[0], rel=0.02)
    page = opens(link(rows=["AGE.L"], columns=["LMS.L"], view="chart"))
    drawn(page)
    expect(page.locator("figcaption")).to_contain_text("not equally wide")


def test_a_level_has_the_name_of_the_breakdown_that_is_shown(opens: Opens) -> None:
    for breakdown, name in (("CAS.L", "low detail · 4"), ("CAS.H", "high detail · 7")):
        page = opens(link(rows=[breakdown], view="chart"))
        drawn(page)
        expect(key(page, "level-CAS").locator("option:checked")).to_contain_text(name)


def test_a_chart_and_its_axis_fit_a_laptop(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["SEX"], view="chart"), width=1366, height=768)
    drawn(page)
    title = page.locator(f"{SVG} text", has_text="Number of persons")
    expect(title).to_be_in_viewport(ratio=1)
    page = opens(link(rows=["POB.H"], columns=["SEX"], view="chart"), width=1366, height=768)
    drawn(page)
    expect(page.locator(f"{SVG} text", has_text="Number of persons")).to_be_in_viewport(ratio=1)


def test_what_suits_the_variables_comes_first(opens: Opens) -> None:
    page = opens(link(rows=["AGE.M"], columns=["LMS.L"], view="chart"))
    expect(drawn(page)).to_have_attribute("data-kind", "lines")
    for rows, columns, kind in (
        (["EDU"], ["SEX"], "bars"),
        (["EDU", "AGE.L"], ["SEX"], "multiples"),
        (["GEO.H"], [], "dots"),
    ):
        page = opens(link(rows=rows, columns=columns, view="chart"))
        expect(drawn(page)).to_have_attribute("data-kind", kind)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("axis", "least"), few([("AGE.H", 8), ("GEO.H", 20), ("POB.H", 150)], 2))
def test_a_chart_of_many_categories_is_readable(opens: Opens, axis: str, least: int) -> None:
    page = opens(link(rows=[axis], view="chart", levels={axis[:3]: {"AGE.H": 3}.get(axis, 4)}))
    drawn(page)
    boxes: list[dict[str, float]] = page.eval_on_selector_all(
        f"{SVG} .role-axis-label text",
        "all => all.filter(one => one.textContent && getComputedStyle(one).opacity !== '0')"
        ".map(one => one.getBoundingClientRect().toJSON())",
    )
    assert len(boxes) >= least
    over = [
        (one, other)
        for k, one in enumerate(boxes)
        for other in boxes[k + 1 :]
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > 1
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > 2
    ]
    assert over == [], "no label is over another one"


def test_a_chart_is_of_the_language_of_the_page(opens: Opens) -> None:
    page = opens(link(rows=["SEX"], view="chart", lang="de"), dark=True)
    drawn(page)
    assert "Anzahl: Personen" in labels(page)
    assert any("." in one and one.replace(".", "").isdigit() for one in labels(page)), "1.000"
