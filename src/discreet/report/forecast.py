"""The chart of a forecast: expected relative error against cell size, one line for each candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from discreet.advise.forecast import CandidateForecast, Forecast
from discreet.maths.cells.lookup import Lookup
from discreet.maths.noise.additive import LawKind
from discreet.page.charts import Axis, Chart, Drawing, Point, named_lines
from discreet.page.markup import As, Column, share, table
from discreet.page.skeleton import write_picture
from discreet.page.style import BLUE, FAINT, GREEN, INK, ORANGE, PURPLE, RED
from discreet.programme.noise import PrivateNoise

COLOURS = {
    LawKind.CELL_KEY: INK,
    LawKind.GEOMETRIC: BLUE,
    LawKind.LAPLACE: ORANGE,
    LawKind.NORMAL: GREEN,
    LawKind.DISCRETE_GAUSSIAN: PURPLE,
    LawKind.HELLINGER: RED,
}
SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 1000)
DESCRIBED_COUNT = 10  # the count whose errors are in the description


def write_forecast_picture(path: Path, forecast: Forecast) -> None:
    """Draw the forecast to a .png, .svg or .html file."""
    errors: dict[str, dict[float, float]] = {}
    for point in _points(forecast):
        errors.setdefault(point.kind, {})[point.x] = point.y
    columns = [Column("candidate"), *(Column(f"{size:,}", As.DECIMAL) for size in SIZES)]
    rows = [(name, *map(found.get, SIZES)) for name, found in errors.items()]
    numbers = table("Expected error in percent, by true count", columns, rows)
    write_picture(path, forecast_chart(forecast), numbers)


def forecast_chart(forecast: Forecast) -> Chart:
    """A line for each candidate, by the law of most of its cross-tabulations."""
    points = list(_points(forecast))
    drawn = {point.kind for point in points}
    kinds = {one.candidate.name: _kind(one) for one in forecast.candidates if one.candidate.name in drawn}
    colours = {name: COLOURS.get(kind, FAINT) for name, kind in kinds.items()}
    low, high = _decades([point.y for point in points])
    x = Axis("true count of the cell", "~g", top=1000, log=True, values=SIZES)
    y = Axis(
        "expected error, percent of the count",
        top=10.0**high,
        low=10.0**low,
        log=True,
        values=tuple(10.0**power for power in range(low, high + 1)),
        labels="format(datum.value, datum.value < 1 ? '~g' : ',.0f')",
    )
    meaning = f"|published - true| / true of a cell; budgets are divided over {forecast.crosstabs:,} cross-tabulations."
    missing = [one.candidate.name for one in forecast.candidates if one.candidate.name not in drawn]
    absent = f" Not drawn, too much noise or not available: {'; '.join(missing)}." if missing else ""

    def draw(width: int) -> Drawing:
        declared = [name for name in kinds if name.startswith("declared")]
        laplace = [
            name for name, kind in kinds.items() if kind is LawKind.LAPLACE
        ]  # same line as the geometric law
        return named_lines(points, colours, x, y, width, strong=declared, dashed=laplace)

    return Chart(
        "forecast",
        f"Expected relative error of {forecast.programme}, before any data",
        f"{meaning}{absent} {_description(points)}",
        draw,
        subtitle=f"{meaning}{absent}",
        scrolls=True,
    )


def _description(points: Sequence[Point]) -> str:
    """The smallest, the largest and the declared error of one count, as a sentence."""
    found = sorted((point for point in points if point.x == DESCRIBED_COUNT), key=lambda point: point.y)
    if not found:
        return "Nothing is drawn."
    shown = [found[0], *(point for point in found[1:-1] if point.kind.startswith("declared")), found[-1]]
    errors = "; ".join(f"{point.kind}: {share(point.y / 100)}" for point in shown)
    return f"Errors of a count of {DESCRIBED_COUNT}, from the smallest to the largest: {errors}."


def _points(forecast: Forecast) -> Iterator[Point]:
    """The points of all lines; a law that leaves a size unchanged has no point there."""
    for one in forecast.candidates:
        if one.laws and not one.laws[0].too_much:
            for error in one.laws[0].errors:
                if error.relative:
                    yield Point(error.count, 100 * error.relative, one.candidate.name)


def _kind(one: CandidateForecast) -> LawKind:
    noise = one.candidate.noise
    if isinstance(noise, PrivateNoise):
        return noise.kind
    return LawKind.CELL_KEY if isinstance(noise, Lookup) else LawKind.UNIFORM


def _decades(values: list[float]) -> tuple[int, int]:
    """The powers of ten around all values."""
    found = values or [1.0]
    low = math.floor(math.log10(min(found)))
    return low, max(low + 1, math.ceil(math.log10(max(found))))
