"""The gates on the confidential page: which limits hold, by how much, and what would mend the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from discreet.page.charts import Chart
from discreet.page.markup import As, Column, Tile, heading, listing, paragraph, table
from discreet.page.numbers import count, decimal, several, share
from discreet.page.shapes import Bar, limits
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, RED

Verdicts = Sequence[Mapping[str, Any]]

HOLDS, BROKEN = "limit holds", "limit is broken"
FAR = 2.0  # a gate that is exceeded by more is not drawn longer
COUNTED = ("pinned_cells", "differencing")
PLAIN = ("epsilon", "delta")


def gate_tile(verdicts: Verdicts) -> Tile:
    """The verdict as one number."""
    if not verdicts:
        return Tile("Declared limits", "none", "nothing is judged, all is measured")
    held = sum(bool(one["passed"]) for one in verdicts)
    broken = len(verdicts) - held
    more = "all hold" if not broken else f"{several(broken, 'is', 'are')} broken"
    return Tile("Declared limits that hold", f"{held} of {len(verdicts)}", more, "bad" if broken else "good")


def gates_part(verdicts: Verdicts) -> Part:
    """All gates."""
    title = "Does the release keep the declared limits?"
    if not verdicts:
        lead = (
            "No limits are declared in [gates] of the programme, so this report measures everything and"
            " judges nothing."
        )
        return Part("gates", title, lead)
    broken = [one for one in verdicts if not one["passed"]]
    lead = (
        f"All {len(verdicts)} limits that the office declared hold."
        if not broken
        else f"{len(broken)} of the {len(verdicts)} limits that the office declared"
        f" {'is' if len(broken) == 1 else 'are'} broken: this release should not be public before they are mended, or"
        " the limits are changed for a stated reason."
    )
    blocks: list[Block] = [_chart(verdicts), _table(verdicts)]
    for one in broken:
        blocks += [
            heading(f"{_sentence(one['what'])}: {shown(one, 'found')}"),
            paragraph(f"To mend it: {one['remedy']}."),
        ]
        if one["where"]:
            blocks += [paragraph("Where it shows first:", "note"), listing(one["where"])]
    return Part("gates", title, lead, tuple(blocks), "bad" if broken else "good")


def shown(verdict: Mapping[str, Any], which: str) -> str:
    """A gate's limit or finding, as its kind is read."""
    name, value = verdict["gate"].split(".")[0], verdict[which]
    if name in COUNTED:
        return count(value)
    return decimal(value) if name in PLAIN else share(value)


def _chart(verdicts: Verdicts) -> Chart:
    rows = [
        Bar(
            _sentence(one["what"]),
            _used(one),
            f"{shown(one, 'found')}, allowed {shown(one, 'limit')}",
            HOLDS if one["passed"] else BROKEN,
        )
        for one in verdicts
    ]
    over = [row.item for row in rows if row.kind == BROKEN]
    says = (
        f"Each bar shows how much of its limit is used; the black line is the limit. Over it: {'; '.join(over)}."
        if over
        else "Each bar shows how much of its limit is used; the black line is the limit. None goes over it."
    )
    if any(row.value > FAR for row in rows):
        says += f" Bars end at {share(FAR)}."
    colours = {HOLDS: BLUE, BROKEN: RED}
    used = {kind: colour for kind, colour in colours.items() if any(row.kind == kind for row in rows)}
    return Chart(
        "gates", "Findings against their limits", says, lambda width: limits(rows, used, FAR, width), used
    )


def _used(verdict: Mapping[str, Any]) -> float:
    """The share of the limit that is used; of a limit of nothing everything is too much."""
    found, limit = float(verdict["found"]), float(verdict["limit"])
    if limit:
        return found / limit
    return 2 * FAR if found else 0.0


def _table(verdicts: Verdicts) -> Any:
    head = [
        Column("gate"),
        Column("what is measured", As.LONG),
        Column("found"),
        Column("allowed"),
        Column("verdict"),
    ]
    rows = [
        (one["gate"], one["what"], shown(one, "found"), shown(one, "limit"), bool(one["passed"]))
        for one in verdicts
    ]
    return table("The gates", head, rows)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
