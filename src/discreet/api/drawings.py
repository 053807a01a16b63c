"""What a notebook shows: HTML with a small style of its own, and Altair charts as pictures.

Altair's own way to show a chart fetches scripts from another server, which an office's network may not reach, and which
decision 012 rules out for pages. A chart of the library is an Altair object like any other (``properties``, ``save``,
``to_dict``); only what a notebook displays is drawn here, as SVG.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.page.charts import as_svg
from discreet.page.markup import Html, joined

if TYPE_CHECKING:
    import altair as alt

    AnyChart = TypeVar("AnyChart", alt.Chart, alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart)

_STYLE = """<style>
.discreet table { border-collapse: collapse; width: auto; font-variant-numeric: tabular-nums; }
.discreet th, .discreet td { padding: .15rem .6rem; text-align: right; vertical-align: top; border: 0; }
.discreet thead th { border-bottom: 1px solid currentColor; vertical-align: bottom; }
.discreet .text, .discreet caption { text-align: left; }
.discreet caption, .discreet .caption { font-weight: 600; white-space: nowrap; }
.discreet tbody th { font-weight: 400; text-align: left; }
.discreet h2 { font-size: 1.2rem; } .discreet h3 { font-size: 1.05rem; }
.discreet figure { margin: 1rem 0; } .discreet figcaption strong { display: block; }
.discreet figure svg { max-width: 100%; height: auto; }
.discreet .legend { list-style: none; display: flex; flex-wrap: wrap; gap: .2rem 1.3rem; padding: 0; }
.discreet .legend li { display: flex; align-items: center; gap: .45rem; margin: 0; }
</style>"""


def shown(parts: Iterable[str]) -> Html:
    """HTML of a result with its style, which touches nothing else of the notebook."""
    return joined([f'<div class="discreet">{_STYLE}', *parts, "</div>"])


def as_picture(chart: AnyChart) -> AnyChart:
    """The same chart, shown as a picture; what is derived from it is shown so, too."""
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _picture_kind(kind))  # Altair takes attributes for properties
    return chart


@cache
def _picture_kind(kind: type) -> type:
    """The class of a chart with another display."""
    own = {"_repr_mimebundle_": _picture, "__module__": kind.__module__, "__doc__": kind.__doc__}
    return type(kind.__name__, (kind,), own)


def _picture(chart: Any, *given: object, **named: object) -> dict[str, str]:
    """What a notebook shows."""
    return {
        "image/svg+xml": as_svg(chart),
        "text/plain": repr(type(chart).__name__),
    }
