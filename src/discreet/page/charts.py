"""Charts of a page as SVG: bars, limits, points, lines and heat maps, for wide and narrow screens."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import altair as alt
import vl_convert

from discreet.page.markup import Html, joined, safe
from discreet.page.style import BLUE, FAINT, GRID, INK

WIDE, NARROW = 720, 340  # pixels
PNG_SCALE = 2
FONT = "sans-serif"

Drawing = alt.Chart | alt.LayerChart | alt.FacetChart


@dataclass(frozen=True, eq=False)
class Chart:
    """One chart; ``says`` tells in a sentence or two what is to be seen, for those who do not see it as well."""

    name: str  # of its files and in links
    title: str
    says: str
    draw: Callable[[int], Drawing]  # for a width in pixels
    legend: Mapping[str, str] = field(default_factory=dict)  # what is drawn in which colour

    def html(self) -> Html:
        """The figure, its words first."""
        return joined(
            [
                f'<figure id="chart-{safe(self.name)}">',
                f"<figcaption><strong>{safe(self.title)}</strong> {safe(self.says)}</figcaption>",
                self._legend(),
                f'<div class="wide">{self._inline(WIDE, "wide")}</div>',
                f'<div class="narrow">{self._inline(NARROW, "narrow")}</div>',
                "</figure>",
            ]
        )

    def svg(self) -> str:
        """The drawing as a file of its own, with its title and words inside."""
        return _described(
            str(vl_convert.vegalite_to_svg(self._titled())), f"{self.name}-file", self.title, self.says
        )

    def png(self) -> bytes:
        """The same as pixels."""
        return bytes(vl_convert.vegalite_to_png(self._titled(), scale=PNG_SCALE))

    def _titled(self) -> dict[str, Any]:
        """A file stands alone: it has its title and legend inside."""
        title = {"text": self.title, "anchor": "start", "offset": 14}
        return {**self.draw(WIDE).to_dict(), "config": _CONFIG, "title": title}

    def _inline(self, width: int, where: str) -> str:
        spec = {**self.draw(width).to_dict(), "config": {**_CONFIG, "legend": {"disable": True}}}
        drawn = str(vl_convert.vegalite_to_svg(spec))
        return _described(drawn, f"{self.name}-{where}", self.title, self.says)

    def _legend(self) -> str:
        """In the page it is text, which wraps where it must."""
        if len(self.legend) < 2:
            return ""
        dot = '<svg width="12" height="12" aria-hidden="true"><circle cx="6" cy="6" r="6" fill="{}"/></svg>'
        kinds = "".join(f"<li>{dot.format(colour)}{safe(kind)}</li>" for kind, colour in self.legend.items())
        return f'<ul class="legend">{kinds}</ul>'


_CONFIG: dict[str, Any] = {
    "font": FONT,
    "background": "white",
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "gridColor": GRID, "domainColor": GRID, "tickColor": GRID, "labelColor": FAINT, "titleColor": FAINT,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
    },
    "legend": {
        "labelColor": INK, "labelFontSize": 12.5, "title": None, "orient": "top", "direction": "horizontal",
        "columns": 3, "symbolType": "circle",
        "columnPadding": 40, "rowPadding": 4, "offset": 10, "labelLimit": 300,
    },
    "text": {"fontSize": 12.5, "color": INK},
    "title": {"color": INK, "fontSize": 15},
}  # fmt: skip

_INNER_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_IDS = re.compile(r'(id="|url\(#)(clip|gradient)')


def _described(svg: str, name: str, title: str, says: str) -> str:
    """Give a drawing its name and words; its inner parts are no elements of their own."""
    plain = _IDS.sub(rf"\1{safe(name)}-\2", _INNER_ROLES.sub("", svg))
    start, rest = plain.split(">", 1)
    marks = f'{start} role="img" aria-labelledby="{safe(name)}-title {safe(name)}-words">'
    words = f'<title id="{safe(name)}-title">{safe(title)}</title><desc id="{safe(name)}-words">{safe(says)}</desc>'
    return f"{marks}{words}{rest}"


THICK, GAP, NAME, BETWEEN = (
    15,
    4,
    22,
    16,
)  # pixels of a bar, between two of an item, of its name, between items
LETTER, BOLD, LINE = 7.4, 8.0, 16  # pixels: a letter, about; one of a name; a line of names
EDGE = 10

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """One bar: the item that it belongs to, its length, what stands behind it, and its kind."""

    item: str
    value: float
    label: str
    kind: str = ""


@dataclass(frozen=True)
class Point:
    """One point of a line or cloud; ``weight`` is its size, from 0 to 1."""

    x: float
    y: float
    kind: str
    weight: float = 0.5


@dataclass(frozen=True)
class HeatTile:
    """One rectangle of a map."""

    left: float
    right: float
    low: float
    high: float
    kind: str


@dataclass(frozen=True)
class Mark:
    """A point of a map with its name."""

    x: float
    y: float
    name: str


@dataclass(frozen=True)
class Axis:
    """What an axis shows; ``format`` is in the words of d3."""

    title: str
    format: str = ",~f"
    top: float | None = None
    log: bool = False
    values: tuple[float, ...] = ()

    def encode(self, low: float, high: float, *, grid: bool = True) -> tuple[alt.Scale, alt.Axis]:
        """The scale and the axis."""
        kind: Any = {"type": "log"} if self.log else {}
        scale = alt.Scale(domain=[low, high], nice=False, **kind)
        ticks: Any = {"values": list(self.values)} if self.values else {"tickCount": 5}
        return scale, alt.Axis(title=self.title, format=self.format, grid=grid, **ticks)


PERCENT = "~%"


def bars(rows: Sequence[Bar], colours: Mapping[str, str], axis: Axis, width: int) -> Drawing:
    """Horizontal bars, those of one item together below its name; each has its label behind it."""
    placed, names, height = _placed(rows, width)
    far = axis.top or _room(rows, width)
    bar_layer = alt.Chart(_values(placed)).mark_bar(cornerRadiusEnd=2)
    encoded = bar_layer.encode(
        x=_x(axis, far), x2="zero:Q", y=_pixels("y"), y2="y2:Q", color=_colour(colours)
    )
    labels = _texts(placed, "label", x=_x(axis, far), y="middle", dx=6, colour=INK)
    return (
        alt.layer(encoded, labels, *_names(names, width))
        .properties(width=width, height=height)
        .properties(autosize=_FIT)
    )


def limits(rows: Sequence[Bar], colours: Mapping[str, str], far: float, width: int) -> Drawing:
    """Bars against a limit that stands at one: how much of what is allowed is used, drawn up to ``far``."""
    placed, names, height = _placed(rows, width)
    axis = Axis("share of what is allowed", PERCENT, values=(0, 0.5, 1, 1.5, 2))
    x = _x(axis, _room([replace(row, value=min(row.value, far)) for row in rows], width, least=1.1))
    ground = [{**row, "value": 1.0} for row in placed]
    allowed = (
        alt.Chart(_values(ground)).mark_bar(color=GRID).encode(x=x, x2="zero:Q", y=_pixels("y"), y2="y2:Q")
    )
    shown = [{**row, "value": min(row["value"], far)} for row in placed]
    used = (
        alt.Chart(_values(shown))
        .mark_bar()
        .encode(x=x, x2="zero:Q", y=_pixels("inner"), y2="inner2:Q", color=_colour(colours))
    )
    at_limit = [{"value": 1.0, "y": row["y"] - 4, "y2": row["y2"] + 4} for row in placed]
    line = (
        alt.Chart(_values(at_limit))
        .mark_rule(color=INK, strokeWidth=2)
        .encode(x=x, y=_pixels("y"), y2="y2:Q")
    )
    behind = [{**row, "value": max(1.0, min(row["value"], far))} for row in placed]
    labels = _texts(behind, "label", x=x, y="middle", dx=8, colour=INK)
    layers = alt.layer(allowed, used, line, labels, *_names(names, width))
    return layers.properties(width=width, height=height, autosize=_FIT)


def pairs(rows: Sequence[Bar], colours: Mapping[str, str], axis: Axis, width: int) -> Drawing:
    """Two or more values of each item as points on one line, joined."""
    items = list(dict.fromkeys(row.item for row in rows))
    step = NAME + BETWEEN + 10
    height = {item: k * step + NAME + 8 for k, item in enumerate(items)}  # names of items are short here
    far = axis.top or 1.08 * max((row.value for row in rows), default=1.0) or 1.0
    x = _x(axis, far)
    points = [{"value": row.value, "kind": row.kind, "y": height[row.item]} for row in rows]
    spans = [
        {
            "zero": min(row.value for row in rows if row.item == item),
            "value": max(row.value for row in rows if row.item == item),
            "y": height[item],
        }
        for item in items
    ]
    names = [{"name": item, "y": height[item] - 14} for item in items]
    joined = (
        alt.Chart(_values(spans))
        .mark_rule(color=FAINT, strokeWidth=2)
        .encode(x=x, x2="zero:Q", y=_pixels("y"))
    )
    dots = (
        alt.Chart(_values(points))
        .mark_circle(size=130, opacity=1)
        .encode(x=x, y=_pixels("y"), color=_colour(colours))
    )
    layers = alt.layer(joined, dots, *_names(names, width))
    return layers.properties(width=width, height=step * len(items) + 6, autosize=_FIT)


def lines(
    points: Sequence[Point], colours: Mapping[str, str], x: Axis, y: Axis, width: int, height: int = 260
) -> Drawing:
    """Lines through points, one of each kind."""
    base = alt.Chart(_values([_told(point) for point in points])).encode(
        **_plane(points, x, y), color=_colour(colours)
    )
    drawn = alt.layer(base.mark_line(strokeWidth=2), base.mark_circle(size=36, opacity=1))
    return drawn.properties(width=width, height=height, autosize=_FIT)


def cloud(
    points: Sequence[Point], colours: Mapping[str, str], x: Axis, y: Axis, width: int, height: int = 320
) -> Drawing:
    """Points against the line on which both axes agree; the size of a point is its weight."""
    plane = _plane(points, x, y)
    far = min(x.top or 1.0, y.top or 1.0)
    even = alt.Chart(_values([{"x": 0, "y": 0}, {"x": far, "y": far}])).mark_line(
        color=FAINT, strokeDash=[5, 4], strokeWidth=1.5
    )
    size = alt.Size("weight:Q", scale=alt.Scale(domain=[0, 1], range=[40, 700]), legend=None)
    dots = alt.Chart(_values([_told(point) for point in points])).mark_circle(opacity=0.75)
    layers = alt.layer(even.encode(**plane), dots.encode(**plane, color=_colour(colours), size=size))
    return layers.properties(width=width, height=height, autosize=_FIT)


def columns(rows: Sequence[Point], colours: Mapping[str, str], x: Axis, y: Axis, width: int) -> Drawing:
    """Upright bars over whole numbers, those of several kinds side by side."""
    plane = alt.Chart(_values([_told(row) for row in rows])).mark_bar()
    kinds = list(colours)
    scale, axis = y.encode(0, y.top or 1.08 * max((row.y for row in rows), default=1.0) or 1.0)
    drawn: alt.Chart = plane.encode(
        x=alt.X("x:O", axis=alt.Axis(title=x.title, labelAngle=0, grid=False), scale=alt.Scale(padding=0.15)),
        xOffset=alt.XOffset("kind:N", sort=kinds),
        y=alt.Y("y:Q", scale=scale, axis=axis),
        color=_colour(colours),
    )
    sized: alt.Chart = drawn.properties(width=width, height=240, autosize=_FIT)
    return sized


def tiled(
    tiles: Sequence[HeatTile], marks: Sequence[Mark], colours: Mapping[str, str], x: Axis, y: Axis, width: int
) -> Drawing:
    """A map of rectangles, with points that have names."""
    left, low = min(tile.left for tile in tiles), min(tile.low for tile in tiles)
    (x_scale, x_axis), (y_scale, y_axis) = (
        x.encode(left, x.top or max(tile.right for tile in tiles), grid=False),
        y.encode(low, y.top or max(tile.high for tile in tiles), grid=False),
    )
    ground = alt.Chart(_values([vars(tile) for tile in tiles])).mark_rect(strokeWidth=0)
    drawn = ground.encode(
        x=alt.X("left:Q", scale=x_scale, axis=x_axis),
        x2="right:Q",
        y=alt.Y("low:Q", scale=y_scale, axis=y_axis),
        y2="high:Q",
        color=_colour(colours),
    )
    points = alt.Chart(_values([vars(mark) for mark in marks]))
    place = {"x": alt.X("x:Q", scale=x_scale, axis=x_axis), "y": alt.Y("y:Q", scale=y_scale, axis=y_axis)}
    dots = points.mark_point(shape="diamond", size=150, filled=True, color=INK, opacity=1).encode(**place)
    words = [_mark_name(mark, place, at) for at, mark in enumerate(marks)]
    return alt.layer(drawn, dots, *words).properties(width=width, height=320, autosize=_FIT)


def _mark_name(mark: Mark, place: Row, at: int) -> alt.Chart:
    """Names stand by turns above and below their points, so that neighbours can be told apart."""
    named = alt.Chart(_values([vars(mark)])).mark_text(
        align="center", dy=-16 if at % 2 == 0 else 18, fontWeight=700, color=INK
    )
    placed: alt.Chart = named.encode(**place, text="name:N")
    return placed


_FIT = alt.AutoSizeParams(type="fit-x", contains="padding")


def _placed(rows: Sequence[Bar], width: int) -> tuple[list[Row], list[Row], float]:
    """Where each bar and the name of each item stands, from the top down."""
    placed: list[Row] = []
    names: list[Row] = []
    at = 0.0
    for item in dict.fromkeys(row.item for row in rows):
        for name in _wrapped(item, width):
            names.append({"name": name, "y": at + 9})
            at += LINE
        at += NAME - LINE
        for row in (row for row in rows if row.item == item):
            placed.append(
                {
                    "value": row.value, "label": row.label, "kind": row.kind, "zero": 0, "y": at, "y2": at + THICK,
                    "middle": at + THICK / 2, "inner": at + THICK / 4, "inner2": at + 3 * THICK / 4,
                }
            )  # fmt: skip
            at += THICK + GAP
        at += BETWEEN - GAP
    return placed, names, at


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(words, max(10, int((width - EDGE) / BOLD)))


def _room(rows: Sequence[Bar], width: int, least: float = 0.0) -> float:
    """The end of an axis that leaves room for the labels behind the bars, each at ``least`` so far out."""
    free = max(width - EDGE, 1)
    needs = [max(row.value, least) / max(0.25, 1 - (LETTER * len(row.label) + 12) / free) for row in rows]
    return max(needs, default=1.0) or 1.0


def _x(axis: Axis, far: float) -> alt.X:
    scale, drawn = axis.encode(0, far)
    return alt.X("value:Q", scale=scale, axis=drawn)


def _pixels(field: str) -> alt.Y:
    return alt.Y(f"{field}:Q", scale=None, axis=None)


def _texts(rows: Sequence[Row], field: str, x: alt.X, y: str, dx: int, colour: str) -> alt.Chart:
    marked = alt.Chart(_values(rows)).mark_text(align="left", baseline="middle", dx=dx, color=colour)
    placed: alt.Chart = marked.encode(x=x, y=_pixels(y), text=f"{field}:N")
    return placed


def _names(names: Sequence[Row], width: int) -> list[alt.Chart]:
    marked = alt.Chart(_values(names)).mark_text(
        align="left", baseline="middle", fontWeight=600, limit=width - EDGE, color=INK
    )
    return [marked.encode(x=alt.value(0), y=_pixels("y"), text="name:N")]


def _colour(colours: Mapping[str, str]) -> alt.Color | alt.ColorValue:
    """One colour for each kind; a legend only where there are several."""
    if len(colours) < 2:
        return alt.ColorValue(next(iter(colours.values()), BLUE))
    return alt.Color("kind:N", scale=alt.Scale(domain=list(colours), range=list(colours.values())))


def _plane(points: Sequence[Point], x: Axis, y: Axis) -> dict[str, Any]:
    ends: list[tuple[float, float]] = []
    for axis, values in ((x, [p.x for p in points]), (y, [p.y for p in points])):
        low = _decade(values) if axis.log else 0.0
        ends.append((low, axis.top or 1.05 * max(values, default=1.0) or 1.0))
    (x_scale, x_axis), (y_scale, y_axis) = x.encode(*ends[0]), y.encode(*ends[1])
    return {"x": alt.X("x:Q", scale=x_scale, axis=x_axis), "y": alt.Y("y:Q", scale=y_scale, axis=y_axis)}


def _decade(values: Sequence[float]) -> float:
    """The power of ten at or below all of them, where an axis by powers begins."""
    least = min((value for value in values if value > 0), default=1.0)
    return float(10.0 ** math.floor(math.log10(least)))


def _told(point: Point) -> Row:
    return {"x": point.x, "y": point.y, "kind": point.kind, "weight": point.weight}


def _values(rows: Sequence[Row]) -> alt.InlineData:
    return alt.InlineData(values=list(rows))
