import re
import resource
from dataclasses import replace
from xml.etree import ElementTree as ET

import altair as alt
import pytest

from discreet.errors import Mistakes
from discreet.page.charts import (
    ADDRESSES,
    NARROW,
    WIDE,
    Axis,
    Bar,
    Box,
    Chart,
    Drawing,
    HeatCell,
    HeatTile,
    Mark,
    Point,
    Trial,
    as_svg,
    bars,
    boxes,
    cloud,
    columns,
    heat,
    limits,
    lines,
    named_lines,
    pairs,
    panels,
    require_room,
    tiled,
)
from discreet.page.style import BLUE, DARK, RED
from tests.cases import few

COLOURS = {"a": BLUE, "b": RED}
BARS = [
    Bar("first & <foremost>", 3.0, "3", "a"),
    Bar("first & <foremost>", 0.0, "0", "b"),
    Bar("x", 1.0, "1", "a"),
]
POINTS = [Point(1, 0.5, "a"), Point(2, 0.25, "b", 1.0)]
DRAWN = {
    "bars": lambda width: bars(BARS, COLOURS, Axis("n"), width),
    "limits": lambda width: limits(BARS, COLOURS, 2.0, width),
    "pairs": lambda width: pairs(BARS, COLOURS, Axis("n"), width),
    "lines": lambda width: lines(
        POINTS, COLOURS, Axis("x", log=True, top=10), Axis("y", log=True, top=1), width
    ),
    "cloud": lambda width: cloud(POINTS, COLOURS, Axis("x", top=1), Axis("y", top=1), width),
    "columns": lambda width: columns(POINTS, COLOURS, Axis("x"), Axis("y"), width),
    "tiled": lambda width: tiled(
        [HeatTile(0, 1, 0, 1, "a"), HeatTile(1, 2, 0, 1, "b")],
        [Mark(1, 0.5, "here")],
        COLOURS,
        Axis("x"),
        Axis("y"),
        width,
    ),
    "ranges": lambda width: bars(
        [Bar("x", 0.5, "at least 0.5", "a", start=0.01), Bar("y", 2, "at most 2", "b", start=10)],
        COLOURS,
        Axis("n", log=True, low=0.01, top=10),
        width,
        allowed=(0.5, 2),
        chosen=1,
    ),
    "marked": lambda width: lines(
        POINTS, COLOURS, Axis("x"), Axis("y"), width, dots=(), marks=[Mark(1, 0.5, "here")], level=0.4
    ),
    "heat": lambda width: heat(
        [HeatCell("r", "c", 0.5, "0.50"), HeatCell("r", "d", 1, "1.00")],
        "x",
        "",
        width,
        columns=["d", "c"],
        strongest=1,
    ),
    "panels": lambda width: panels(
        [Trial("one", "0.5", (0.1, 0.2, 0.3), (1, 2, 3)), Trial("two", "0.5", (0.1, 0.2, 0.3), (1, 2, 3))],
        Axis("x"),
        width,
    ),
    "boxes": lambda width: boxes(
        [Box("one", "1", "a", (1, 2, 3, 4, 5)), Box("two", "1", "b", (1, 2, 3, 4, 5))],
        COLOURS,
        "x",
        Axis("y", log=True),
        width,
    ),
    "nothing": lambda width: bars([Bar("none", 0, "0")], {"": BLUE}, Axis("n"), width),
}  # fmt: skip


def chart(name: str) -> Chart:
    def draw(width: int) -> Drawing:
        drawn: Drawing = DRAWN[name](width)
        return drawn

    return Chart(name, "What & how", "It says <this>.", draw, COLOURS)


@pytest.mark.parametrize("name", few(DRAWN, "columns", "heat", "lines", "nothing", "tiled"))
def test_every_shape_is_drawn_for_both_widths_with_words_and_unique_ids(name: str) -> None:
    figure = chart(name).html()
    tree = ET.fromstring(figure)
    drawings = [one for one in tree.iter("{http://www.w3.org/2000/svg}svg") if one.get("role") == "img"]
    assert len(drawings) == 2
    ids = re.findall(r' id="([^"]+)"', figure)
    assert len(ids) == len(set(ids))
    for drawing in drawings:
        named = (drawing.get("aria-labelledby") or "").split()
        assert [one.text for one in drawing.iter() if one.get("id") in named] == [
            "What & how",
            "It says <this>.",
        ]
    assert "graphics-" not in figure
    assert float(drawings[0].get("width") or 0) <= 730
    assert float(drawings[1].get("width") or 0) <= 350


@pytest.mark.parametrize("name", few(DRAWN, "columns", "heat", "lines", "nothing", "tiled"))
def test_every_shape_is_valid_and_drawn_to_the_same_bytes_again(name: str) -> None:
    for width in (WIDE, NARROW):
        assert DRAWN[name](width).to_dict(validate=True)
    assert chart(name).html() == chart(name).html()
    assert chart(name).png() == chart(name).png()


@pytest.mark.parametrize("name", few(DRAWN, "columns", "heat", "lines", "nothing", "tiled"))
def test_colours_follow_the_readers_mode(name: str) -> None:
    used = set(re.findall(r'(?:fill|stroke)="([^"]+)"', chart(name).html()))
    assert used <= set(DARK) | {"none", "transparent"}
    assert BLUE in used


def test_a_chart_that_cannot_be_narrow_scrolls_instead() -> None:
    names = {"a name of some length": BLUE, "b": RED}
    points = [Point(x, y, kind) for kind in names for x, y in ((1, 10.0), (10, 1.0))]
    x, y = Axis("x", log=True), Axis("y", log=True, low=1, top=10)
    one = Chart(
        "n", "t", "s", lambda width: named_lines(points, names, x, y, width, dashed=["b"]), scrolls=True
    )
    figure = one.html()
    assert figure.count('role="img"') == 1
    assert 'class="scroll" role="region" aria-label="t" tabindex="0"' in figure
    assert all(f">{name}</text>" in figure for name in names)
    ET.fromstring(figure)


def test_a_limit_of_the_address_space_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library that draws would end the process, and leave behind what a command had written."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (ADDRESSES - 1, ADDRESSES))
    with pytest.raises(Mistakes, match="charts need 72 GB of address space"):
        as_svg(alt.Chart().mark_bar())
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    require_room()


def test_a_file_has_its_subtitle_and_both_kinds_are_written() -> None:
    one = replace(chart("bars"), subtitle="more of it")
    assert ">more of it</text>" in one.svg()
    files = dict(one.files())
    assert set(files) == {"bars.svg", "bars.png"}
    assert files["bars.svg"].decode() == one.svg()


def test_files_stand_alone_with_title_and_legend() -> None:
    one = chart("bars")
    assert ">What &amp; how</text>" in one.svg()
    assert ">b</text>" in one.svg()
    assert ">b</text>" not in one.html()
    assert one.png().startswith(b"\x89PNG")
    ET.fromstring(one.svg())


def test_long_names_are_wrapped_where_the_screen_is_narrow() -> None:
    words = "a name that is far too long for the width of a telephone in the hand"
    drawn = Chart(
        "n", "t", "s", lambda width: bars([Bar(words, 1, "1")], {"": BLUE}, Axis("n"), width)
    ).html()
    wide, narrow = drawn.split('class="narrow"')
    assert f">{words}</text>" in wide
    assert f">{words}</text>" not in narrow


def test_names_of_neighbouring_points_do_not_cover_each_other() -> None:
    marks = [Mark(1.0, 0.5, "one"), Mark(1.01, 0.5, "other")]
    area = [HeatTile(0, 2, 0, 1, "a")]
    drawn = Chart("n", "t", "s", lambda width: tiled(area, marks, COLOURS, Axis("x"), Axis("y"), width)).svg()
    heights = [
        float(re.search(rf'translate\([\d.]+,([\d.]+)\)"[^>]*>{name}<', drawn)[1])  # type: ignore[index]
        for name in ("one", "other")
    ]
    assert abs(heights[0] - heights[1]) > 20
