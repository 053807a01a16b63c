import re
from xml.etree import ElementTree as ET

import pytest

from discreet.page.charts import (
    Axis,
    Bar,
    Chart,
    Drawing,
    HeatTile,
    Mark,
    Point,
    bars,
    cloud,
    columns,
    limits,
    lines,
    pairs,
    tiled,
)
from discreet.page.style import BLUE, DARK, RED

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
    "nothing": lambda width: bars([Bar("none", 0, "0")], {"": BLUE}, Axis("n"), width),
}  # fmt: skip


def chart(name: str) -> Chart:
    def draw(width: int) -> Drawing:
        drawn: Drawing = DRAWN[name](width)
        return drawn

    return Chart(name, "What & how", "It says <this>.", draw, COLOURS)


@pytest.mark.parametrize("name", DRAWN)
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


def test_colours_follow_the_readers_mode() -> None:
    figure = chart("bars").html()
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', figure))
    assert used <= set(DARK)
    assert {BLUE, RED} <= used


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
