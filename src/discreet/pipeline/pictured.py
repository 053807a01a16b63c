"""A picture with its text alternative, how it is framed, and the folder that pictures are written to.

It owns what the adviser's pictures share; what they show is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import vl_convert

from discreet.swap.whole_folder import WholeFolder

Spec = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A chart and what it says to those who cannot see it."""

    spec: Spec
    text: str


def write_pictures(out: Path, drawn: Mapping[str, Picture], report: Mapping[str, Any]) -> list[str]:
    """Write every picture as SVG and PNG, their texts and the whole report into a new folder; "
    "return the names."""
    with WholeFolder(out, "--out") as folder:
        names = []
        for name, content in _files(drawn, report):
            with folder.file(name) as file:
                file.write(content)
            names.append(name)
        folder.publish()
    return names


def _files(drawn: Mapping[str, Picture], report: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    for name, one in drawn.items():
        yield f"{name}.svg", vl_convert.vegalite_to_svg(one.spec).encode()
        yield f"{name}.png", vl_convert.vegalite_to_png(one.spec, scale=2)
    texts = "\n\n".join(f"{name}: {one.text}" for name, one in drawn.items())
    yield "pictures.txt", f"{texts}\n".encode()
    yield "advice.json", json.dumps(report, ensure_ascii=False, indent=1).encode()


def pictured(spec: Spec, text: str) -> Picture:
    """A picture whose text stands in its specification too."""
    return Picture({**spec, "description": text}, text)


def framed(title: str, subtitle: str) -> Spec:
    """Title and style of a picture."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "title": {"text": title, "subtitle": subtitle, "anchor": "start", "fontSize": 15, "offset": 12},
        "config": {
            "font": "sans-serif",
            "background": "white",
            "view": {"stroke": None},
            "axis": {"gridColor": "#e4e4e4", "labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal"},
            "legend": {"labelFontSize": 11},
        },
    }  # fmt: skip
