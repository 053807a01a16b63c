"""The confidential page: everything an audit found, for those who decide whether a release may be public.

It owns the order of what is told and the opening; each part is made by a function of its data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from discreet.page.markup import As, Column, Html, Tile, folded, heading, listing, paragraph, table, tiles
from discreet.page.numbers import decimal, share
from discreet.page.skeleton import Block, Page, Part
from discreet.pipeline.report.attack_parts import attack_part
from discreet.pipeline.report.caveats import caveats_part
from discreet.pipeline.report.gate_parts import gate_tile, gates_part
from discreet.pipeline.report.people_parts import bayes_part, privacy_part, reconstruction_part
from discreet.pipeline.report.public import PublicView
from discreet.pipeline.report.published_parts import (
    law_chart,
    origin_of,
    public_words,
    published_part,
    size_tiles,
    title_of,
)
from discreet.pipeline.report.region_part import region_part
from discreet.pipeline.report.tables_parts import (
    averaging_part,
    bounds_part,
    differencing_part,
    disclosure_part,
)
from discreet.pipeline.report.useful_parts import utility_part

Found = Mapping[str, Any]  # the summary of an audit

NOTICE = (
    "Confidential: this page was made with the true counts and the private parameters of the noise. Keep it with the"
    " microdata. What may be passed on is in public.html."
)


def confidential_page(found: Found, view: PublicView) -> Page:
    """The page for the office."""
    manifest = view.manifest
    return Page(
        f"Audit of {title_of(manifest)}",
        " · ".join(filter(None, [origin_of(manifest), "what the release gives away and what it is worth"])),
        NOTICE,
        True,
        (tiles(list(_opening(found, view))),),
        tuple(_parts(found, view)),
        f"Made by Discreet {manifest.discreet_version}. The same findings for machines: audit.json. Charts: charts/.",
    )


def _opening(found: Found, view: PublicView) -> Iterator[Tile]:
    yield gate_tile(found["verdicts"])
    yield from size_tiles(view.manifest)
    if "averaging" in found:
        attack, realised = found["averaging"]["attack"], found["averaging"]["realised"]
        hit = realised["methods"]["weighted"]["hit"] / attack["targets"] if attack["targets"] else 0.0
        yield Tile("Counts that averaging gets right", share(hit))
    if "disclosure" in found:
        yield Tile(
            "Published ones that are true", share(found["disclosure"]["total"]["count_1"]["share_true"])
        )
    if "utility" in found:
        cells = found["utility"]["errors"]["original"]["total"]["occupied"]
        yield Tile(
            "Mean error of a count", decimal(cells["mean_l1"]), "absolute, cells with somebody in them"
        )


def _parts(found: Found, view: PublicView) -> Iterator[Part]:
    yield gates_part(found["verdicts"])
    yield published_part(view.manifest)
    yield _protection(found.get("protection"), view)
    for name, part in PARTS.items():
        if name in found:
            yield part(found, view)
    yield attack_part(view.attacks)
    yield caveats_part(found)


def _protection(section: Found | None, view: PublicView) -> Part:
    """What the public is told, and what it is not."""
    title = "How it was protected"
    if section is None:
        return Part("protection", title, "What the public is told:", tuple(public_words(view.manifest)))
    named = ", ".join(f"{name} = {_parameter(value)}" for name, value in section["parameters"].items())
    swap = section["swap"]
    lead = f"Counts were perturbed by {section['method']} ({named})"
    lead += "; no households were swapped." if swap is None else ", after households at risk were swapped."
    blocks: list[Block] = [paragraph("What the public is told:", "note"), *public_words(view.manifest)]
    if swap is not None:
        blocks += [heading("The swapping rule"), listing(_swap_words(swap))]
    law = section["law"]
    if law:
        one, many = (
            {int(change): p for change, p in row.items()} for row in (law[min(1, len(law) - 1)], law[-1])
        )
        blocks += [law_chart(one, many), folded("The law of the noise, which is private", _law(law))]
    return Part("protection", title, lead, tuple(blocks))


def _parameter(value: float | str) -> str:
    return decimal(value) if isinstance(value, float) else str(value)


def _swap_words(swap: Mapping[str, Any]) -> Iterator[str]:
    yield f"At risk: fewer than {swap['k']} persons of a region share {swap['risk']}."
    yield f"Households to be swapped at least: {share(swap['rate'])}."
    yield "Households to be swapped at most: " + (
        "no limit." if swap["cap"] is None else f"{share(swap['cap'])}."
    )


def _law(law: list[Mapping[str, float]]) -> Html:
    """Probability of each change, by true count; the last row is that of all larger counts."""
    changes = sorted({int(change) for row in law for change in row})
    head = [
        Column("true count"),
        *(Column(f"{change:+d}" if change else "0", As.DECIMAL) for change in changes),
    ]
    rows = [
        (f"{size} and more" if size == len(law) - 1 else size, *(row.get(str(change)) for change in changes))
        for size, row in enumerate(law)
    ]
    return table("Probability of each change", head, rows)


PARTS: Mapping[str, Callable[[Found, PublicView], Part]] = {
    "averaging": lambda found, view: averaging_part(found["averaging"], found.get("redundancy"), view.names),
    "bounds": lambda found, view: bounds_part(found["bounds"], view.names),
    "disclosure": lambda found, view: disclosure_part(found["disclosure"], view.names),
    "bayes": lambda found, view: bayes_part(found["bayes"], view.names),
    "reconstruction": lambda found, _: reconstruction_part(found["reconstruction"]),
    "differencing": lambda found, _: differencing_part(found["differencing"]),
    "privacy": lambda found, _: privacy_part(found["privacy"]),
    "utility": lambda found, _: utility_part(found["utility"]),
    "region": lambda found, _: region_part(found["region"]),
}
