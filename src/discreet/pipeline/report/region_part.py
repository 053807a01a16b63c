"""The feasible region of the noise as a map, with the point that the office chose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from discreet.page.charts import Chart
from discreet.page.markup import As, Column, paragraph, table
from discreet.page.numbers import decimal, share
from discreet.page.shapes import Axis, Mark, Tile, tiled
from discreet.page.skeleton import Part
from discreet.page.style import FEASIBLE, LOSSY, PALE, RISKY, SPOILT

Section = Mapping[str, Any]

KEPT, RISK, LOSS, BOTH, NONE = (
    "every limit is kept",
    "too risky",
    "too inaccurate",
    "risky and inaccurate",
    "no such noise exists",
)
COLOURS = {KEPT: FEASIBLE, RISK: RISKY, LOSS: LOSSY, BOTH: SPOILT, NONE: PALE}
WORDS = {
    "averaging": "averaging the most repeated count seldom gives the truth",
    "uniques": "a count of 1 is often enough not published as 1",
    "bound": "the tables do not reveal the largest change",
    "largest-change": "no count changes by too much",
    "distortion": "small counts are seldom far off",
    "p-table": "such noise exists",
}


def region_part(section: Section) -> Part:
    """The map, or why there is none."""
    title = "Was the noise chosen well?"
    if "not_possible" in section:
        return Part("region", title, f"There is no map of choices: {section['not_possible']}.")
    chosen, least = section["chosen"], section["least"]
    broken = None if chosen is None else list(_broken(section, chosen))
    blocks = (_chart(section), *_limits_table(section, chosen))
    return Part("region", title, _lead(chosen, least, broken), blocks, _mood(broken))


def _mood(broken: Sequence[str] | None) -> str:
    return "" if broken is None else "bad" if broken else "good"


def _lead(chosen: Section | None, least: Section | None, broken: Sequence[str] | None) -> str:
    best = (
        "no choice keeps all limits at once: publish less, or allow more"
        if least is None
        else (
            f"the least noise that keeps all limits is variance {decimal(least['V'])} with changes of at most"
            f" {least['D']}"
        )
    )
    if chosen is None or broken is None:
        return f"The noise was not chosen by variance and largest change; {best}."
    point = f"The chosen noise (variance {decimal(chosen['V'])}, largest change {chosen['D']})"
    if not broken:
        return f"{point} keeps every usual limit on risk and on error; {best}."
    return f"{point} breaks {len(broken)} of the usual limits; {best}."


def _chart(section: Section) -> Chart:
    V, D = section["V"], section["D"]
    step = V[1] - V[0] if len(V) > 1 else 1.0
    tiles = [tile for row, d in enumerate(D) for tile in _runs(section, row, d, step)]
    points = [
        Mark(point["V"], point["D"], name)
        for name, point in (("chosen", section["chosen"]), ("least noise", section["least"]))
        if point is not None
    ]
    whole = sum(tile.right - tile.left for tile in tiles)
    shares = {
        kind: sum(tile.right - tile.left for tile in tiles if tile.kind == kind) / whole for kind in COLOURS
    }
    told = ", ".join(f"{kind} in {share(value)}" for kind, value in shares.items() if value)
    says = (
        f"Each tile is a choice of variance and largest change: {told}. The marked points are the choice that"
        " was made and the least noise that would do."
    )
    used = {kind: colour for kind, colour in COLOURS.items() if shares[kind]}
    x = Axis("variance of the noise, V", top=V[-1] + step / 2)
    y = Axis("largest change of a count, D", top=D[-1] + 0.5)
    name = "All choices, and the one that was made"
    return Chart("region", name, says, lambda width: tiled(tiles, points, used, x, y, width), used)


def _runs(section: Section, row: int, d: int, step: float) -> Iterator[Tile]:
    """Neighbours of one kind as one rectangle."""
    at = 0
    for kind, run in groupby(range(len(section["V"])), partial(_kind, section, row)):
        many = len(list(run))
        first, last = section["V"][at], section["V"][at + many - 1]
        yield Tile(first - step / 2, last + step / 2, d - 0.5, d + 0.5, kind)
        at += many


def _kind(section: Section, row: int, column: int) -> str:
    broken = {name for name, rows in section["holds"].items() if rows[row][column] == "0"}
    if section["exists"] in broken:
        return NONE
    inaccurate = bool(broken & set(section["utility"]))
    risky = bool(broken - set(section["utility"]))
    return BOTH if inaccurate and risky else LOSS if inaccurate else RISK if risky else KEPT


def _broken(section: Section, point: Section) -> Iterator[str]:
    """What the tile at or next to a point breaks."""
    row = min(range(len(section["D"])), key=lambda k: abs(section["D"][k] - point["D"]))
    column = min(range(len(section["V"])), key=lambda k: abs(section["V"][k] - point["V"]))
    for name, rows in section["holds"].items():
        if rows[row][column] == "0":
            yield name


def _limits_table(section: Section, chosen: Section | None) -> Iterator[Any]:
    if chosen is None:
        return
    broken = set(_broken(section, chosen))
    rows = [
        (WORDS.get(name, name), "risk" if name not in section["utility"] else "accuracy", name not in broken)
        for name in section["holds"]
        if name != section["exists"]
    ]
    yield table(
        "The usual limits at the chosen point",
        [Column("limit", As.LONG), Column("about"), Column("verdict")],
        rows,
    )
    usual = section["limits"]
    yield paragraph(
        f"The usual limits: averaging succeeds in less than {share(usual['averaging'])}, the largest change"
        " is revealed with"
        f" less than {share(usual['revealed'])}, a 1 is published as 1 in at most {share(usual['uniques'])},"
        " no change"
        f" exceeds {usual['largest_change']}, and counts of {usual['size']} are off by more than"
        f" {share(usual['relative'])}"
        f" in at most {share(usual['share'])}. Declared gates that are stricter replace them.",
        "note",
    )
