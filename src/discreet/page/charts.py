"""Charts of pages and files: shapes as Altair charts, rendered as SVG, PNG and figures of a page.

A shape (bars, lines, tiled, ..) takes plain rows and a width in pixels and returns an Altair chart. A ``Chart`` adds
title and description and renders it, offline and reproducibly; colours are those of ``style``, which the page changes
for dark screens.
"""

from __future__ import annotations

import math
import re
import resource
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from discreet.errors import mistake
from discreet.lazy import lazily
from discreet.page.markup import Html, joined, safe
from discreet.page.style import BLUE, FAINT, GREY, GRID, INK, PAPER, TINT

if TYPE_CHECKING:
    import altair as alt
    import vl_convert
    from altair.utils import schemapi
else:
    alt, vl_convert, schemapi = map(lazily, ("altair", "vl_convert", "altair.utils.schemapi"))

WIDE, NARROW = 720, 340  # pixels
PNG_SCALE = 2
ADDRESSES = 72 << 30  # bytes that the JavaScript engine of vl-convert reserves
FONT = "sans-serif"
SUBTITLE = 108  # letters in a line

Drawing: TypeAlias = "alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart"


@dataclass(frozen=True, eq=False)
class Chart:
    """A chart; ``description`` is its content in a sentence or two, also for readers who cannot see it."""

    name: str  # in file names and links
    title: str
    description: str
    draw: Callable[[int], Drawing]  # for a width in pixels
    legend: Mapping[str, str] = field(default_factory=dict)  # kind -> colour
    subtitle: str = ""  # below the title of a file
    scrolls: bool = False  # not available in a narrow version, so a small screen scrolls it

    def html(self) -> Html:
        """The HTML figure, with its description first."""
        return joined(
            [
                f'<figure id="chart-{safe(self.name)}">',
                f"<figcaption><strong>{safe(self.title)}</strong> {safe(self.description)}</figcaption>",
                self._legend(),
                *self._drawings(),
                "</figure>",
            ]
        )

    def svg(self) -> str:
        """The chart as a separate SVG file with title, legend and description."""
        return self._file

    def png(self) -> bytes:
        """The chart as PNG."""
        return bytes(vl_convert.svg_to_png(self._file, scale=PNG_SCALE))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """The SVG and PNG files by name."""
        yield f"{self.name}.svg", self.svg().encode()
        yield f"{self.name}.png", self.png()

    def spec(self) -> dict[str, Any]:
        """The Vega-Lite specification of the file."""
        title: dict[str, Any] = {"text": self.title, "anchor": "start", "offset": 14}
        if self.subtitle:
            title["subtitle"] = textwrap.wrap(self.subtitle, SUBTITLE)
        return {**self._spec(WIDE), "title": title}

    @cached_property
    def _file(self) -> str:
        return self._rendered(self.spec(), "file")

    def _spec(self, width: int) -> dict[str, Any]:
        with schemapi.debug_mode(False):  # validating takes longer than drawing, and the tests do it
            found: dict[str, Any] = self.draw(width).to_dict(validate=False)
        is_single = not found.keys() & {"facet", "vconcat"}
        return {**({"autosize": _FIT} if is_single else {}), **found, "config": _CONFIG}

    def _drawings(self) -> Iterator[str]:
        """The narrow version is hidden unless the style of a page shows it: a notebook has no such style."""
        if self.scrolls:
            box = f'class="scroll" role="region" aria-label="{safe(self.title)}" tabindex="0"'
            yield f"<div {box}>{self._inline(WIDE, 'whole')}</div>"
            return
        yield f'<div class="wide">{self._inline(WIDE, "wide")}</div>'
        yield f'<div class="narrow" hidden="">{self._inline(NARROW, "narrow")}</div>'

    def _inline(self, width: int, where: str) -> str:
        return self._rendered(_without_legends(self._spec(width)), where)

    def _rendered(self, spec: dict[str, Any], where: str) -> str:
        return _described(_svg(spec), f"{self.name}-{where}", self.title, self.description)

    def _legend(self) -> str:
        """The legend of the page, as text that wraps."""
        if len(self.legend) < 2:
            return ""
        dot = '<svg width="12" height="12" aria-hidden="true"><circle cx="6" cy="6" r="6" fill="{}"/></svg>'
        kinds = "".join(f"<li>{dot.format(colour)}{safe(kind)}</li>" for kind, colour in self.legend.items())
        return f'<ul class="legend">{kinds}</ul>'


def require_room() -> None:
    """Refuse a limit of the address space under which the library that draws charts would end the process."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < ADDRESSES:  # negative where there is none
        value = "charts need 72 GB of address space, most of which is never used as memory"
        raise mistake("ulimit -v", "", value, "call ulimit -v unlimited, and limit memory by a control group")


def as_svg(chart: Drawing) -> str:
    """The drawing of an Altair chart."""
    return _svg(chart.to_dict())


def _svg(spec: dict[str, Any]) -> str:
    require_room()
    return str(vl_convert.vegalite_to_svg(spec))


def _without_legends(spec: Any) -> Any:
    """The specification without the legends of its channels, which a page has as text."""
    if isinstance(spec, list):
        return [_without_legends(one) for one in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        name: None if name == "legend" else one if name in ("config", "data") else _without_legends(one)
        for name, one in spec.items()
    }


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
        "columnPadding": 40, "rowPadding": 4, "offset": 10, "labelLimit": 420,
    },
    "text": {"fontSize": 12.5, "color": INK},
    "title": {"color": INK, "fontSize": 15, "subtitleColor": FAINT, "subtitleFontSize": 12},
    "header": {"labelColor": INK, "labelFontSize": 12.5, "title": None},
}  # fmt: skip
_FIT = {"type": "fit-x", "contains": "padding"}

_INNER_ROLES = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_IDS = re.compile(r'(id="|url\(#)(clip|gradient)')


def _described(svg: str, name: str, title: str, description: str) -> str:
    """Add an accessible title and description to a drawing, and remove the roles of its inner parts."""
    plain = _IDS.sub(rf"\1{safe(name)}-\2", _INNER_ROLES.sub("", svg))
    start, rest = plain.split(">", 1)
    marks = f'{start} role="img" aria-labelledby="{safe(name)}-title {safe(name)}-words">'
    named = f'<title id="{safe(name)}-title">{safe(title)}</title>'
    described = f'<desc id="{safe(name)}-words">{safe(description)}</desc>'
    return f"{marks}{named}{described}{rest}"


THICK, GAP, NAME, BETWEEN = 15, 4, 22, 16  # pixels: a bar, between two of an item, its name, between items
LETTER, BOLD, LINE = 7.4, 8.0, 16  # pixels: a letter, about; one of a name; a line of names
EDGE = 10
NAME_LEADER = 20  # from the end of a line to its name
CELL_LEAST, CELL_MOST = 42, 72  # the width of a cell
PANEL_AXIS = 60  # space for the axes of a panel

Row = dict[str, Any]


@dataclass(frozen=True)
class Bar:
    """One bar: the item that it belongs to, its end, the label at its end, its kind, and where it starts."""

    item: str
    value: float
    label: str
    kind: str = ""
    start: float = 0.0


@dataclass(frozen=True)
class Point:
    """One point of a line or cloud; ``weight`` is its size, from 0 to 1."""

    x: float
    y: float
    kind: str
    weight: float = 0.5


@dataclass(frozen=True)
class HeatTile:
    """One rectangle of a map, with a label in its middle."""

    left: float
    right: float
    low: float
    high: float
    kind: str
    label: str = ""


@dataclass(frozen=True)
class HeatCell:
    """One cell of a table that is shaded by its value."""

    row: str
    column: str
    value: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A named point of a map or of lines."""

    x: float
    y: float
    name: str


@dataclass(frozen=True)
class Trial:
    """A named point of a panel; both coordinates are low, middle and high values."""

    panel: str
    name: str
    x: tuple[float, float, float]
    y: tuple[float, float, float]


@dataclass(frozen=True)
class Box:
    """A distribution in a panel: its quantiles from the lowest to the highest, the median in the middle."""

    panel: str
    x: str
    kind: str
    quantiles: tuple[float, float, float, float, float]


@dataclass(frozen=True)
class Axis:
    """The settings of an axis; ``format`` is a d3 format, ``labels`` a Vega expression."""

    title: str
    format: str = ",~f"
    top: float | None = None
    log: bool = False
    values: tuple[float, ...] = ()
    low: float | None = None
    labels: str = ""

    def encode(self, low: float, high: float, *, grid: bool = True) -> tuple[alt.Scale, alt.Axis]:
        """The scale and the axis."""
        kind: Any = {"type": "log"} if self.log else {}
        scale = alt.Scale(domain=[low if self.low is None else self.low, high], nice=False, **kind)
        ticks: Any = {"values": list(self.values)} if self.values else {"tickCount": 5}
        if self.labels:
            ticks["labelExpr"] = self.labels
        return scale, alt.Axis(title=self.title, format=self.format, grid=grid, **ticks)


PERCENT = "~%"


def bars(
    rows: Sequence[Bar],
    colours: Mapping[str, str],
    axis: Axis,
    width: int,
    *,
    allowed: tuple[float, float] | None = None,
    chosen: float | None = None,
) -> Drawing:
    """Horizontal bars grouped by item below its name; the allowed range behind them, the choice in front."""
    placed, names, height = _placed(rows, width)
    x = _x(axis, axis.top or _room(rows, width))
    layers: list[Any] = []
    if allowed is not None:
        band = alt.Chart(_values([{"value": allowed[0], "zero": allowed[1]}])).mark_rect(color=TINT)
        layers.append(band.encode(x=x, x2=alt.X2("zero:Q")))
    drawn = alt.Chart(_values(placed)).mark_bar(cornerRadiusEnd=2)
    layers.append(
        drawn.encode(x=x, x2=alt.X2("zero:Q"), y=_pixels("y"), y2=alt.Y2("y2:Q"), color=_colour(colours))
    )
    layers.append(_texts(placed, "label", x=x, y="middle", dx=6, colour=INK))
    if chosen is not None:
        layers.append(alt.Chart(_values([{"value": chosen}])).mark_rule(color=INK, strokeWidth=2).encode(x=x))
    return alt.layer(*layers, *_names(names, width)).properties(width=width, height=height)


def limits(rows: Sequence[Bar], colours: Mapping[str, str], far: float, width: int) -> Drawing:
    """Bars against a limit at one: the used share of what is allowed, drawn up to ``far``."""
    placed, names, height = _placed(rows, width)
    axis = Axis("share of what is allowed", PERCENT, values=(0, 0.5, 1, 1.5, 2))
    x = _x(axis, _room([replace(row, value=min(row.value, far)) for row in rows], width, least=1.1))
    ground = [{**row, "value": 1.0} for row in placed]
    allowed = (
        alt.Chart(_values(ground))
        .mark_bar(color=GRID)
        .encode(x=x, x2=alt.X2("zero:Q"), y=_pixels("y"), y2=alt.Y2("y2:Q"))
    )
    shown = [{**row, "value": min(row["value"], far)} for row in placed]
    used = (
        alt.Chart(_values(shown))
        .mark_bar()
        .encode(x=x, x2=alt.X2("zero:Q"), y=_pixels("inner"), y2=alt.Y2("inner2:Q"), color=_colour(colours))
    )
    at_limit = [{"value": 1.0, "y": row["y"] - 4, "y2": row["y2"] + 4} for row in placed]
    line = (
        alt.Chart(_values(at_limit))
        .mark_rule(color=INK, strokeWidth=2)
        .encode(x=x, y=_pixels("y"), y2=alt.Y2("y2:Q"))
    )
    behind = [{**row, "value": max(1.0, min(row["value"], far))} for row in placed]
    labels = _texts(behind, "label", x=x, y="middle", dx=8, colour=INK)
    layers = alt.layer(allowed, used, line, labels, *_names(names, width))
    return layers.properties(width=width, height=height)


def pairs(rows: Sequence[Bar], colours: Mapping[str, str], axis: Axis, width: int) -> Drawing:
    """Two or more values of each item as connected points on one line."""
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
        .encode(x=x, x2=alt.X2("zero:Q"), y=_pixels("y"))
    )
    dots = (
        alt.Chart(_values(points))
        .mark_circle(size=130, opacity=1)
        .encode(x=x, y=_pixels("y"), color=_colour(colours))
    )
    layers = alt.layer(joined, dots, *_names(names, width))
    return layers.properties(width=width, height=step * len(items) + 6)


def lines(
    points: Sequence[Point],
    colours: Mapping[str, str],
    x: Axis,
    y: Axis,
    width: int,
    height: int = 260,
    *,
    dots: Sequence[Point] | None = None,
    marks: Sequence[Mark] = (),
    level: float | None = None,
) -> Drawing:
    """Lines through points, one for each kind, with dots, marks and a dashed level."""
    plane = _plane([*points, *(dots or ())], x, y)
    colour = _colour(colours)
    drawn = alt.Chart(_values([_row(point) for point in points])).mark_line(strokeWidth=2)
    layers: list[Any] = [drawn.encode(**plane, color=colour)]
    at = points if dots is None else dots
    if at:
        dotted = alt.Chart(_values([_row(point) for point in at])).mark_circle(size=36, opacity=1)
        layers.append(dotted.encode(**plane, color=colour))
    if level is not None:
        dashed = alt.Chart(_values([{"y": level}])).mark_rule(color=FAINT, strokeDash=[5, 4], strokeWidth=1.5)
        layers.append(dashed.encode(y=plane["y"]))
    layers += _marked(marks, plane, _extent(x, [point.x for point in points]), "circle")
    return alt.layer(*layers).properties(width=width, height=height)


def named_lines(
    points: Sequence[Point],
    colours: Mapping[str, str],
    x: Axis,
    y: Axis,
    width: int,
    height: int = 420,
    *,
    strong: Collection[str] = (),
    dashed: Collection[str] = (),
) -> Drawing:
    """Lines over a logarithmic y axis with their names next to their ends, without overlaps."""
    named = [kind for kind in colours if any(point.kind == kind for point in points)]
    longest = max(map(len, named), default=0)
    inner = width - EDGE - NAME_LEADER - LETTER * longest
    plane = _plane(points, x, y)
    low, high = map(math.log10, _extent(y, [point.y for point in points]))
    last = {point.kind: height * (high - math.log10(point.y)) / (high - low) for point in points}
    order = sorted(named, key=lambda kind: last[kind])
    ends = [
        {"kind": kind, "from": last[kind], "to": to, "left": inner + 3, "right": inner + NAME_LEADER}
        for kind, to in zip(order, spread([last[kind] for kind in order], LINE), strict=True)
    ]
    colour = _colour(colours, has_legend=False)
    layers: list[Any] = []
    for kind in named:
        width_of_line, dash = 3 if kind in strong else 1.5, [7, 5] if kind in dashed else [1, 0]
        drawn = alt.Chart(_values([_row(point) for point in points if point.kind == kind]))
        styled = drawn.mark_line(
            strokeWidth=width_of_line, strokeDash=dash, point=alt.OverlayMarkDef(size=22, opacity=1)
        )
        layers.append(styled.encode(**plane, color=colour))
    x_pixels = {name: alt.X(f"{name}:Q", scale=None) for name in ("left", "right")}
    at_ends = alt.Chart(_values(ends))
    leader = at_ends.mark_rule(strokeWidth=0.7).encode(
        x=x_pixels["left"], x2=alt.X2("right:Q"), y=_pixels("from"), y2=alt.Y2("to:Q")
    )
    text = at_ends.mark_text(align="left", baseline="middle", dx=4).encode(
        x=x_pixels["right"], y=_pixels("to"), text=alt.Text("kind:N")
    )
    layers += [leader.encode(color=colour), text.encode(color=colour)]
    padding = {"left": 4, "top": 4, "bottom": 4, "right": 1.4 * longest}  # letters may be wider in a browser
    return alt.layer(*layers).properties(width=inner, height=height, autosize="pad", padding=padding)


def spread(places: Sequence[float], gap: float) -> list[float]:
    """Move ascending positions apart to at least a gap; groups stay centred on their original positions."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _first(groups[-1], gap) < _last(groups[-2], gap) + gap:
            groups[-2:] = [groups[-2] + groups[-1]]
    return [_first(group, gap) + gap * k for group in groups for k in range(len(group))]


def _first(group: Sequence[float], gap: float) -> float:
    return sum(group) / len(group) - gap * (len(group) - 1) / 2


def _last(group: Sequence[float], gap: float) -> float:
    return _first(group, gap) + gap * (len(group) - 1)


def cloud(
    points: Sequence[Point], colours: Mapping[str, str], x: Axis, y: Axis, width: int, height: int = 320
) -> Drawing:
    """Points and the line on which both axes are equal; the size of a point is its weight."""
    plane = _plane(points, x, y)
    far = min(x.top or 1.0, y.top or 1.0)
    even = alt.Chart(_values([{"x": 0, "y": 0}, {"x": far, "y": far}])).mark_line(
        color=FAINT, strokeDash=[5, 4], strokeWidth=1.5
    )
    size = alt.Size("weight:Q", scale=alt.Scale(domain=[0, 1], range=[40, 700]), legend=None)
    dots = alt.Chart(_values([_row(point) for point in points])).mark_circle(opacity=0.75)
    layers = alt.layer(even.encode(**plane), dots.encode(**plane, color=_colour(colours), size=size))
    return layers.properties(width=width, height=height)


def columns(rows: Sequence[Point], colours: Mapping[str, str], x: Axis, y: Axis, width: int) -> Drawing:
    """Vertical bars over whole numbers, several kinds side by side."""
    scale, axis = y.encode(0, y.top or 1.08 * max((row.y for row in rows), default=1.0) or 1.0)
    drawn: alt.Chart = (
        alt.Chart(_values([_row(row) for row in rows]))
        .mark_bar()
        .encode(
            x=alt.X(
                "x:O", axis=alt.Axis(title=x.title, labelAngle=0, grid=False), scale=alt.Scale(padding=0.15)
            ),
            xOffset=alt.XOffset("kind:N", sort=list(colours)),
            y=alt.Y("y:Q", scale=scale, axis=axis),
            color=_colour(colours),
        )
    )
    return drawn.properties(width=width, height=240)


def tiled(
    tiles: Sequence[HeatTile],
    marks: Sequence[Mark],
    colours: Mapping[str, str],
    x: Axis,
    y: Axis,
    width: int,
    height: int = 320,
) -> Drawing:
    """A map of rectangles with named points."""
    span = (min(tile.left for tile in tiles), x.top or max(tile.right for tile in tiles))
    x_scale, x_axis = x.encode(*span, grid=False)
    y_scale, y_axis = y.encode(
        min(tile.low for tile in tiles), y.top or max(tile.high for tile in tiles), grid=False
    )
    ground = alt.Chart(_values([vars(tile) for tile in tiles])).mark_rect(strokeWidth=0)
    drawn = ground.encode(
        x=alt.X("left:Q", scale=x_scale, axis=x_axis),
        x2=alt.X2("right:Q"),
        y=alt.Y("low:Q", scale=y_scale, axis=y_axis),
        y2=alt.Y2("high:Q"),
        color=_colour(colours),
    )
    place = {"x": alt.X("x:Q", scale=x_scale, axis=x_axis), "y": alt.Y("y:Q", scale=y_scale, axis=y_axis)}
    labels = [
        {"x": (tile.left + tile.right) / 2, "y": (tile.low + tile.high) / 2, "label": tile.label}
        for tile in tiles
        if tile.label
    ]
    texts = (
        alt.Chart(_values(labels))
        .mark_text(fontSize=10.5, color=INK)
        .encode(**place, text=alt.Text("label:N"))
    )
    layers = [drawn, *([texts] if labels else []), *_marked(marks, place, span, "diamond")]
    return alt.layer(*layers).properties(width=width, height=height)


def heat(
    cells: Sequence[HeatCell], x: str, y: str, width: int, *, columns: Sequence[str], strongest: float
) -> Drawing:
    """A table with numbers in its cells, shaded up to the strongest value; it is as wide as its numbers need."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    room = min(LETTER * max((len(row) for row in rows), default=0) + 40, 0.45 * width)
    least, most = (room + size * len(columns) for size in (CELL_LEAST, CELL_MOST))
    axis: Any = {"domain": False, "ticks": False, "grid": False}
    gaps = alt.Scale(paddingInner=0.04, paddingOuter=0)
    base = alt.Chart(_values([vars(cell) for cell in cells])).encode(
        x=alt.X(
            "column:O",
            sort=list(columns),
            scale=gaps,
            axis=alt.Axis(title=x or None, orient="top", labelAngle=0, **axis),
        ),
        y=alt.Y(
            "row:O",
            sort=rows,
            scale=gaps,
            axis=alt.Axis(title=y or None, labelLimit=room, labelPadding=6, **axis),
        ),
    )
    shade = alt.Scale(
        domain=[0, strongest], range=[0.04, 0.6], clamp=True
    )  # text stays readable on every shade
    ground = base.mark_rect(color=BLUE).encode(opacity=alt.Opacity("value:Q", scale=shade, legend=None))
    layers = alt.layer(ground, base.mark_text(color=INK).encode(text=alt.Text("label:N")))
    return layers.properties(width=max(least, min(width, most)), height=26 * len(rows))


def panels(trials: Sequence[Trial], x: Axis, width: int) -> Drawing:
    """A panel for each measure: named points, connected in order, with bars from low to high."""
    rows = [
        {
            "panel": one.panel, "name": one.name, "order": order, "value": one.y[1], "low": one.y[0],
            "high": one.y[2], "at": one.x[1], "left": one.x[0], "right": one.x[2],
        }
        for order, one in enumerate(trials)
    ]  # fmt: skip
    near = alt.Scale(zero=False)
    across = {
        name: alt.X(f"{name}:Q", title=x.title, scale=near, axis=alt.Axis(format=x.format, tickCount=4))
        for name in ("at", "left")
    }
    upward = {
        name: alt.Y(f"{name}:Q", title=None, scale=near, axis=alt.Axis(tickCount=5))
        for name in ("value", "low")
    }
    base = alt.Chart().encode(x=across["at"], y=upward["value"])
    layers = alt.layer(
        base.mark_line(color=GREY, strokeWidth=1.5).encode(order=alt.Order("order:Q")),
        alt.Chart().mark_rule(color=BLUE).encode(x=across["at"], y=upward["low"], y2=alt.Y2("high:Q")),
        alt.Chart().mark_rule(color=BLUE).encode(x=across["left"], x2=alt.X2("right:Q"), y=upward["value"]),
        base.mark_point(filled=True, size=45, color=BLUE, opacity=1),
        base.mark_text(align="left", dx=6, dy=-7).encode(text=alt.Text("name:N")),
        data=_values(rows),
    )
    panel_columns = 2 if width >= WIDE else 1
    facet = alt.Facet("panel:N", sort=list(dict.fromkeys(one.panel for one in trials)), title=None)
    sized = layers.properties(width=width / panel_columns - PANEL_AXIS, height=190)
    drawn: alt.FacetChart = sized.facet(facet, columns=panel_columns).resolve_scale(y="independent")
    return drawn


def boxes(rows: Sequence[Box], colours: Mapping[str, str], x: str, y: Axis, width: int) -> Drawing:
    """Distributions side by side in panels: outer quantiles as lines, inner ones as bars, the median as a gap."""
    names = ("least", "lower", "middle", "upper", "most")
    records = [
        {"panel": row.panel, "x": row.x, "kind": row.kind, **dict(zip(names, row.quantiles, strict=True))}
        for row in rows
    ]
    scale, axis = y.encode(min(row.quantiles[0] for row in rows), max(row.quantiles[-1] for row in rows))
    base = alt.Chart().encode(
        x=alt.X("x:O", sort=list(dict.fromkeys(row.x for row in rows)), axis=alt.Axis(title=x, labelAngle=0)),
        xOffset=alt.XOffset("kind:N", sort=list(colours)),
    )
    coloured = base.encode(color=_colour(colours))
    up = {name: alt.Y(f"{name}:Q", scale=scale, axis=axis) for name in names}
    layers = alt.layer(
        coloured.mark_rule().encode(y=up["least"], y2=alt.Y2("most:Q")),
        coloured.mark_bar(size=9).encode(y=up["lower"], y2=alt.Y2("upper:Q")),
        base.mark_tick(color=PAPER, thickness=2, size=9).encode(y=up["middle"]),
        data=_values(records),
    )
    panels = list(dict.fromkeys(row.panel for row in rows))
    sized = layers.properties(width=(width - PANEL_AXIS) / len(panels), height=220)
    drawn: alt.FacetChart = sized.facet(column=alt.Column("panel:N", sort=panels, title=None))
    return drawn


def _marked(marks: Sequence[Mark], place: Row, span: tuple[float, float], shape: str) -> list[alt.Chart]:
    """Named points: names above the upper points and below the lower ones, so that none overlap."""
    if not marks:
        return []
    dots = alt.Chart(_values([vars(mark) for mark in marks])).mark_point(
        shape=shape, size=150, filled=True, color=INK, opacity=1
    )
    down = sorted(marks, key=lambda mark: -mark.y)
    upper = (len(marks) + 1) // 2
    names = [_mark_name(mark, place, span, -16 if at < upper else 18) for at, mark in enumerate(down)]
    return [dots.encode(**place), *names]


def _mark_name(mark: Mark, place: Row, span: tuple[float, float], dy: int) -> alt.Chart:
    """The name of a point, aligned inward near the left or right end."""
    share = (mark.x - span[0]) / (span[1] - span[0])
    align: Any = "left" if share < 0.25 else "right" if share > 0.75 else "center"
    named = alt.Chart(_values([vars(mark)])).mark_text(align=align, dy=dy, fontWeight=700, color=INK)
    placed: alt.Chart = named.encode(**place, text=alt.Text("name:N"))
    return placed


def _placed(rows: Sequence[Bar], width: int) -> tuple[list[Row], list[Row], float]:
    """The vertical positions of bars and item names, from the top."""
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
                    "value": row.value, "label": row.label, "kind": row.kind, "zero": row.start,
                    "y": at, "y2": at + THICK, "middle": at + THICK / 2,
                    "inner": at + THICK / 4, "inner2": at + 3 * THICK / 4,
                }
            )  # fmt: skip
            at += THICK + GAP
        at += BETWEEN - GAP
    return placed, names, at


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(10, int((width - EDGE) / BOLD)))


def _room(rows: Sequence[Bar], width: int, least: float = 0.0) -> float:
    """The end of an axis that leaves room for the labels after the bars, at least ``least``."""
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
    placed: alt.Chart = marked.encode(x=x, y=_pixels(y), text=alt.Text(f"{field}:N"))
    return placed


def _names(names: Sequence[Row], width: int) -> list[alt.Chart]:
    marked = alt.Chart(_values(names)).mark_text(
        align="left", baseline="middle", fontWeight=600, limit=width - EDGE, color=INK
    )
    return [marked.encode(x=alt.value(0), y=_pixels("y"), text=alt.Text("name:N"))]


def _colour(colours: Mapping[str, str], *, has_legend: bool = True) -> alt.Color | alt.ColorValue:
    """One colour for each kind; a legend only where there are several."""
    if len(colours) < 2:
        return alt.ColorValue(next(iter(colours.values()), BLUE))
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    # named here, not only in the configuration, for those who save a chart of a notebook
    legend = alt.Legend(title=None, labelLimit=420, orient="top", columnPadding=40) if has_legend else None
    return alt.Color("kind:N", scale=scale, legend=legend)


def _plane(points: Sequence[Point], x: Axis, y: Axis) -> dict[str, Any]:
    x_scale, x_axis = x.encode(*_extent(x, [point.x for point in points]))
    y_scale, y_axis = y.encode(*_extent(y, [point.y for point in points]))
    return {"x": alt.X("x:Q", scale=x_scale, axis=x_axis), "y": alt.Y("y:Q", scale=y_scale, axis=y_axis)}


def _extent(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    low = axis.low if axis.low is not None else _decade(values) if axis.log else 0.0
    return low, axis.top or 1.05 * max(values, default=1.0) or 1.0


def _decade(values: Sequence[float]) -> float:
    """The power of ten at or below all of them, where an axis by powers begins."""
    least = min((value for value in values if value > 0), default=1.0)
    return float(10.0 ** math.floor(math.log10(least)))


def _row(point: Point) -> Row:
    return {"x": point.x, "y": point.y, "kind": point.kind, "weight": point.weight}


def _values(rows: Sequence[Row]) -> alt.Data:
    return alt.Data(values=list(rows))  # type: ignore[no-untyped-call]
