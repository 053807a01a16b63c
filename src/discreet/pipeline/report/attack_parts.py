"""What an outsider finds with the public files alone: numbers, and never a list of cells that would save the work."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from discreet.page.charts import Chart
from discreet.page.markup import As, Column, heading, listing, paragraph, table
from discreet.page.numbers import count, several, share
from discreet.page.shapes import Axis, Bar, bars
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY

Section = Mapping[str, Any]
Lines = Iterator[str]


def attack_part(found: Mapping[str, Section]) -> Part:
    """All attacks that could be run."""
    possible = {name: one for name, one in found.items() if "not_possible" not in one}
    missing = {name: one["not_possible"] for name, one in found.items() if "not_possible" in one}
    lead = (
        f"{several(len(possible), 'attack was', 'attacks were')} run with nothing but the public files, as"
        " anybody could;"
        " these are the results an outsider would see, without knowing which of them are right."
    )
    rows = [(TITLES[name], " ".join(WORDS[name](section))) for name, section in possible.items()]
    blocks: list[Block] = []
    if rows:
        blocks.append(
            table(
                "Attacks and their results",
                [Column("attack"), Column("what an outsider finds", As.LONG)],
                rows,
            )
        )
    if "averaging" in possible:
        blocks.append(_chances_chart(possible["averaging"]))
    if missing:
        blocks += [
            heading("Not possible from the public files"),
            listing(f"{TITLES[name]}: {_why(why)}" for name, why in missing.items()),
        ]
    if not found:
        blocks.append(paragraph("All attacks were left out of this report.", "note"))
    return Part("attacks", "What can an outsider find out?", lead, tuple(blocks))


def _chances_chart(section: Section) -> Chart:
    best, targets = section["methods"]["weighted"], section["targets"]
    told = [
        ("as they are published", section["baseline"], GREY),
        ("by the best average", best["expected"], BLUE),
    ]
    rows = [
        Bar(
            "Expected to be right",
            value / targets if targets else 0.0,
            f"{count(value)} of {count(targets)}",
            name,
        )
        for name, value, _ in told
    ]
    rows += [
        Bar(
            f"With a chance of {share(float(level))} or more",
            many / targets if targets else 0.0,
            count(many),
            told[1][0],
        )
        for level, many in best["at_least"].items()
    ]
    says = (
        f"Averaging is expected to give {count(best['expected'])} of {count(targets)} counts right;"
        f" {count(section['baseline'])} are right without it."
    )
    colours = {name: colour for name, _, colour in told}
    axis = Axis("share of all counts", "~%", None)
    title = "What averaging is worth to an outsider"
    return Chart("outsider-averaging", title, says, lambda width: bars(rows, colours, axis, width), colours)


def _averaging(section: Section) -> Lines:
    best = section["methods"]["weighted"]
    yield (
        f"{count(best['expected'])} of {several(section['targets'], 'count', 'counts')} would come out right,"
        f" {count(best['beyond_baseline'])} more than by believing what is published."
    )


def _bounds(section: Section) -> Lines:
    yield f"Sums and totals show that some count changed by at least {section['least_bound']}."
    if section["bound"] is not None:
        yield (
            f"With a largest change of {section['bound']},"
            f" {several(section['pinned'], 'count follows', 'counts follow')} for certain."
        )


def _bayes(section: Section) -> Lines:
    yield (
        f"{count(section['exposed_alone'])} of {several(section['cells'], 'count', 'counts')} would make"
        " somebody sure of"
        " a person who could only be alone there."
    )


def _differencing(section: Section) -> Lines:
    bases = section["bases"]
    small = sum(one["small"] for one in bases)
    if not bases:
        yield "No published population lies inside another: nothing can be subtracted."
        return
    yield f"Subtracting populations gives {several(small, 'small difference', 'small differences')}, true or not."


def _reconstruction(section: Section) -> Lines:
    yield (
        f"Of {several(section['areas'], 'area', 'areas')} a solver built"
        f" {several(section['records'], 'record', 'records')};"
        f" {count(section['certain'])} of them follow for certain."
    )
    stopped = section["status"].get("timeout", 0)
    if stopped:
        yield f"In {several(stopped, 'area', 'areas')} it ran out of time."


def _disclosure(section: Section) -> Lines:
    total = section["total"]
    yield (
        f"{count(total['count_1']['seen'])} counts of 1 are published; {count(total['individual']['seen'])}"
        " persons and"
        f" {count(total['group']['seen'])} groups seem to share an attribute."
    )


def _why(told: str) -> str:
    return told.split(";", maxsplit=1)[0].replace("noise: its ", "the noise's ") + "."


TITLES = {
    "averaging": "Averaging",
    "bounds": "Bounds and margins",
    "bayes": "Posteriors",
    "differencing": "Subtraction",
    "reconstruction": "Reconstruction",
    "disclosure": "Small counts",
}
WORDS: Mapping[str, Callable[[Section], Lines]] = {
    "averaging": _averaging,
    "bounds": _bounds,
    "bayes": _bayes,
    "differencing": _differencing,
    "reconstruction": _reconstruction,
    "disclosure": _disclosure,
}
