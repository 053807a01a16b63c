"""The picture of a p-table: transition probabilities as a heat map with numbers; it computes no probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import vl_convert

from discreet.errors import mistake
from discreet.maths.noise.ptable import Law

ROWS = 60  # counts that a picture can show and still be read
CELL = {"width": {"step": 42}, "height": {"step": 26}}
FONT = "sans-serif"


def write_picture(path: Path, laws: Sequence[Law], title: str) -> None:
    """Draw the laws of the counts 0, 1, .. to a .png, .svg or .html file, which needs no network to be seen."""
    spec = picture(laws, title)
    kind = path.suffix.lower()
    if kind == ".png":
        content = vl_convert.vegalite_to_png(spec, scale=2)
    elif kind == ".svg":
        content = vl_convert.vegalite_to_svg(spec).encode()
    elif kind == ".html":
        content = vl_convert.vegalite_to_html(spec, bundle=True).encode()
    else:
        raise mistake(path, "picture", f"the ending {kind or 'missing'}", "choose .png, .svg or .html")
    try:
        path.write_bytes(content)
    except OSError as error:
        raise mistake(path, "picture", error.strerror or "cannot be written", "choose another path") from None


def picture(laws: Sequence[Law], title: str) -> dict[str, Any]:
    """Return the Vega-Lite specification: a row for each count, a column for each change, percent in the cells."""
    shown = laws[:ROWS]
    order = [_count(row, len(laws)) for row in range(len(shown))]
    axis = {"labelFontSize": 12, "titleFontSize": 12, "titlePadding": 10, "domain": False, "ticks": False}
    x = {
        "field": "change",
        "type": "ordinal",
        "title": "change",
        "axis": {**axis, "orient": "top", "labelAngle": 0},
    }
    y = {"field": "count", "type": "ordinal", "title": "true count", "sort": order, "axis": axis}
    x["sort"] = [_signed(change) for change in sorted({change for law in shown for change in law})]
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {
            "text": title,
            "subtitle": _subtitle(laws),
            "anchor": "start",
            "fontSize": 15,
            "offset": 12,
        },
        "data": {"values": _cells(shown, len(laws))},
        "encoding": {"x": x, "y": y},
        "layer": [_tiles(shown), _numbers(shown)],
        "config": {"font": FONT, "view": {"stroke": None}, "background": "white"},
        **CELL,
    }


def _subtitle(laws: Sequence[Law]) -> str:
    text = "Percent of the cases in which a true count is published with the change on top"
    return text if len(laws) <= ROWS else f"{text}; the first {ROWS} of {len(laws)} counts"


def _tiles(laws: Sequence[Law]) -> dict[str, Any]:
    scale = {"range": ["#f2f6fb", "#08519c"], "domain": [0, _strongest(laws)], "clamp": True}
    tooltip = [{"field": name} for name in ("count", "change", "published", "probability")]
    return {
        "mark": {"type": "rect", "stroke": "white", "strokeWidth": 1},
        "encoding": {
            "color": {"field": "probability", "type": "quantitative", "scale": scale, "legend": None},
            "tooltip": tooltip,
        },
    }


def _numbers(laws: Sequence[Law]) -> dict[str, Any]:
    dark = {"test": f"datum.probability > {0.5 * _strongest(laws)}", "value": "white"}
    return {
        "mark": {"type": "text", "fontSize": 11},
        "encoding": {"text": {"field": "percent"}, "color": {"condition": dark, "value": "#1a1a1a"}},
    }


def _strongest(laws: Sequence[Law]) -> float:
    """The largest probability that is not a certainty: row 0 would drown all others."""
    return max((p for law in laws[1:] for p in law.values()), default=1.0)


def _cells(laws: Sequence[Law], rows: int) -> list[dict[str, Any]]:
    return [
        {
            "count": _count(row, rows),
            "change": _signed(change),
            "published": row + change if row < rows - 1 else f"count {_signed(change)}",
            "probability": p,
            "percent": _percent(p),
        }
        for row, law in enumerate(laws)
        for change, p in law.items()
    ]


def _count(row: int, rows: int) -> str:
    return f"{row}+" if row == rows - 1 else str(row)


def _signed(change: int) -> str:
    return f"+{change}" if change > 0 else str(change).replace("-", "\N{MINUS SIGN}")


def _percent(p: float) -> str:
    if p == 1.0:
        return "100"
    return f"{100 * p:.1f}" if p >= 0.0005 else "<0.1"
