"""A chart of a page: drawn twice, for wide and for narrow screens, told in words, and exported as files.

It owns how a drawing becomes part of a page; what is drawn is the caller's, the usual shapes are in shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import vl_convert

from discreet.page.markup import Html, joined, safe
from discreet.page.style import FAINT, GRID, INK

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
