"""What the published tables give away by themselves: averaging, bounds and margins, differences, small counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.page.charts import Axis, Bar, Chart, Point, bars, cloud
from discreet.page.markup import As, Column, Html, count, folded, heading, paragraph, several, share, table
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY, ORANGE
from discreet.report.published import Names

Section = Mapping[str, Any]

PREDICTED, REALISED = "predicted by the law of the noise", "found when compared with the truth"
SEEN, TRUE = "published", "of these, true"
METHODS = {
    "mean": "the plain mean of all readings",
    "riskiest": "the mean of the best readings",
    "weighted": "all readings, weighted best",
}
KINDS = {
    "count_1": "counts of 1",
    "count_2": "counts of 2",
    "count_3": "counts of 3",
    "individual": "attributes of one person",
    "group": "attributes shared by a group",
}


def averaging_part(section: Section, redundancy: Section | None, names: Names) -> Part:
    """Averaging, predicted and realised."""
    attack, realised = section["attack"], section["realised"]
    targets, hit = attack["targets"], realised["methods"]["weighted"]["hit"]
    lead = (
        f"Somebody who averages all the ways in which a count can be put together from the tables gets"
        f" {share(_part(hit, targets))} of the counts right; {share(_part(realised['baseline'], targets))}"
        " are right as"
        " they are published."
    )
    blocks: list[Block] = [_methods_chart(section), _calibration_chart(section["realised"])]
    if attack["exposed"]:
        blocks.append(exposed_table(attack["exposed"], names))
    if redundancy:
        blocks.append(
            folded("What the programme repeats most, whatever the data", _redundancy_table(redundancy))
        )
    return Part("averaging", "Can noise be averaged away?", lead, tuple(blocks))


def exposed_table(exposed: Sequence[Section], names: Names) -> Html:
    """The counts that averaging threatens most."""
    head = [
        Column("counted"),
        Column("cell", As.LONG),
        Column("readings", As.COUNT),
        Column("k/t²", As.DECIMAL),
        Column("chance to be right", As.SHARE),
    ]
    rows = [
        (one["counted"], names.cell(one["cell"]), one["t"], one["ratio"], one["success"]) for one in exposed
    ]
    return table("The counts that averaging threatens most", head, rows)


def _methods_chart(section: Section) -> Chart:
    attack, realised = section["attack"], section["realised"]
    targets = attack["targets"]
    told = [("as published", attack["baseline"], realised["baseline"])]
    told += [
        (name, attack["methods"][key]["expected"], realised["methods"][key]["hit"])
        for key, name in METHODS.items()
    ]
    rows = [
        Bar(name, _part(value, targets), f"{share(_part(value, targets))}", kind)
        for name, predicted, found in told
        for kind, value in ((PREDICTED, predicted), (REALISED, found))
    ]
    says = (
        f"Of {count(targets)} counts, the best average finds {count(told[-1][2])};"
        f" {count(told[-1][1])} were predicted. The bars are shares of all counts."
    )
    axis = Axis("share of all counts that are right", "~%")
    colours = {PREDICTED: GREY, REALISED: BLUE}
    title = "How many counts come out right, by the way of averaging"
    return Chart("averaging", title, says, lambda width: bars(rows, colours, axis, width), colours)


def _calibration_chart(realised: Section) -> Chart:
    colours = {"mean": ORANGE, "weighted": BLUE}
    rows = [
        (METHODS[method], one["expected"] / one["targets"], one["hit"] / one["targets"], one["targets"])
        for method in colours
        for one in realised["methods"][method]["bins"]
        if one["targets"]
    ]
    most = max((row[3] for row in rows), default=1)
    points = [Point(x, y, kind, (many / most) ** 0.5) for kind, x, y, many in rows]
    off = max((abs(x - y) for _, x, y, many in rows if many >= 100), default=0.0)
    says = (
        "Each point is a group of counts with about the same predicted chance; a larger point stands for more counts."
        f" On the dashed line the prediction is exact. Groups of 100 counts and more are off by at most {share(off)}."
    )
    axes = Axis("predicted chance", "~%", 1.0), Axis("share that was right", "~%", 1.0)
    named = {METHODS[method]: colour for method, colour in colours.items()}
    title = "Does the prediction hold?"
    return Chart("calibration", title, says, lambda width: cloud(points, named, *axes, width), named)


def _redundancy_table(redundancy: Section) -> Html:
    head = [
        Column("counted"),
        Column("statistic"),
        Column("readings t", As.COUNT),
        Column("k/t²", As.DECIMAL),
        Column("least k/t²", As.DECIMAL),
    ]
    rows = [
        (universe["counted"], one["statistic"], one["t"], one["k_over_t2"], one["riskiest_k_over_t2"])
        for universe in redundancy["universes"]
        for one in universe["exposed"]
    ]
    return table("Statistics that the programme repeats most", head, rows)


def bounds_part(section: Section, names: Names) -> Part:
    """Bounds and margins."""
    attack, judged = section["attack"], section["realised"]
    if attack["bound"] is None:
        lead = "The noise has no bound, so no count follows from sums and totals for certain."
    elif not attack["pinned"]:
        lead = (
            f"Even somebody who knows that no count changes by more than {attack['bound']} cannot deduce a"
            " single count"
            " from sums and totals."
        )
    else:
        lead = (
            f"Somebody who knows that no count changes by more than {attack['bound']} can deduce"
            f" {several(attack['pinned'], 'count', 'counts')} for certain, {count(attack['pinned_small'])} of"
            " them 1 to"
            f" 3; {share(judged['share_right'])} of the deductions are right."
        )
    blocks: list[Block] = []
    if attack["tuples_by_bound_needed"]:
        blocks.append(_gaps_chart(attack))
    if attack["named"]:
        head = [Column("table"), Column("counted"), Column("cell", As.LONG)]
        rows = [(one["table"], one["counted"], names.cell(one["cell"])) for one in attack["named"]]
        blocks.append(table("Counts that follow from bounds and margins", head, rows))
    mood = "bad" if attack["pinned"] else ""
    return Part("bounds", "Do sums and totals give counts away?", lead, tuple(blocks), mood)


def _gaps_chart(attack: Section) -> Chart:
    tuples = attack["tuples"]
    rows = [
        Bar(f"at least {change}", _part(many, tuples), several(many, "sum", "sums"))
        for change, many in attack["tuples_by_bound_needed"].items()
    ]
    bound = attack["bound"]
    says = f"{count(tuples)} sums were compared with their totals. The gaps show a change of {attack['least_bound']}"
    says += "." if bound is None else f", the largest change is {bound}."
    if bound is not None and attack["least_bound"] >= bound:
        says += " So the published tables reveal it."
    axis = Axis("share of the sums", "~%")
    title = "The change of a count that the gaps between sums and totals need"
    return Chart("bounds", title, says, lambda width: bars(rows, {"": BLUE}, axis, width))


def disclosure_part(section: Section, names: Names) -> Part:
    """Small counts and shared attributes, seen and true."""
    ones = section["total"]["count_1"]
    lead = (
        f"Of {several(ones['seen'], 'published 1', 'published ones')}, {share(ones['share_true'])} are truly"
        " one person,"
        " household or dwelling: the rest of the time, whoever takes a published 1 for a fact is wrong."
        if ones["seen"]
        else "No count of 1 is published."
    )
    blocks: list[Block] = [_disclosure_chart(section["total"]), _disclosure_table(section)]
    blocks += list(_named_tables(section, names))
    return Part("disclosure", "Are small counts and shared attributes true?", lead, tuple(blocks))


def _disclosure_chart(total: Section) -> Chart:
    shown = {key: name for key, name in KINDS.items() if key in total and total[key]["seen"]}
    rows = [
        Bar(name, number, label, kind)
        for key, name in shown.items()
        for kind, number, label in (
            (SEEN, total[key]["seen"], count(total[key]["seen"])),
            (TRUE, total[key]["true"], f"{count(total[key]['true'])} ({share(total[key]['share_true'])})"),
        )
    ]
    told = "; ".join(f"{share(total[key]['share_true'])} of {name}" for key, name in shown.items())
    says = f"True before any protection: {told or 'none'}."
    colours = {SEEN: GREY, TRUE: BLUE}
    axis = Axis("number")
    title = "What seems to be disclosed, and how much of it is true"
    return Chart("small-counts", title, says, lambda width: bars(rows, colours, axis, width), colours)


def _disclosure_table(section: Section) -> Html:
    ways = [("all", "all tables", section["total"])]
    ways += [("counted", name, one) for name, one in section["by_universe"].items()]
    ways += [("level", name.replace(":", ", level "), one) for name, one in section["by_level"].items()]
    ways += [
        ("crossed", several(int(number), "axis", "axes"), one) for number, one in section["by_axes"].items()
    ]
    head = [
        Column("by"),
        Column("where", As.LONG),
        Column("published ones", As.COUNT),
        Column("true", As.SHARE),
        Column("persons told", As.COUNT),
        Column("true", As.SHARE),
        Column("groups told", As.COUNT),
        Column("true", As.SHARE),
    ]
    rows = [
        (by, name, *_pair(one.get("count_1")), *_pair(one["individual"]), *_pair(one["group"]))
        for by, name, one in ways
    ]
    return table("Apparent disclosures and how many are true", head, rows)


def _named_tables(section: Section, names: Names) -> Iterator[Html]:
    for key, what in (
        ("uniques", "True ones, fewest codes first"),
        ("telling", "Groups that truly share an attribute"),
    ):
        if section[key]:
            head = [
                Column("table"),
                Column("counted"),
                Column("cell", As.LONG),
                Column("published", As.COUNT),
            ]
            rows = [
                (one["cube"], one["counted"], names.cell(one["cell"]), one["published"])
                for one in section[key]
            ]
            yield folded(f"{what} ({len(rows)} listed)", table(what, head, rows))


def differencing_part(section: Section) -> Part:
    """Differences of bases and of geographies."""
    bases, places = section["bases"], section["geographies"]
    exact, revealed = sum(one["exact"] for one in bases), sum(one["revealed"] for one in bases)
    told = sum(one["after"]["above"] if one["after"] else one["found"] for one in places)
    beside = _beside_rows(section)
    if not bases and not places and not beside:
        lead = (
            "No published population lies inside another and no pair of geographies is declared: nothing can"
            " be subtracted."
        )
    else:
        lead = (
            "Subtracting one published population from another would give away"
            f" {several(exact, 'small group', 'small groups')}"
            f" without protection; {count(revealed)} of them are published with their true size."
        )
        lead += "".join(f" {words}" for words, _ in beside)
        lead += (
            f" Pairs of geographies reveal {several(told, 'small area', 'small areas')}." if places else ""
        )
    blocks: list[Block] = []
    if bases:
        blocks.append(_bases_table(bases))
    if places:
        blocks += [heading("Pairs of geographies"), _places_table(places)]
    else:
        blocks.append(
            paragraph("No pair of geographies is declared in [gates]; none was subtracted.", "note")
        )
    if beside:
        blocks += [heading("An earlier release, a map"), _beside_table([row for _, row in beside])]
    return Part("differencing", "Does subtracting tables give people away?", lead, tuple(blocks))


Beside = tuple[str, tuple[str, int, int | None, int | None, float | None]]


def _beside_rows(section: Section) -> list[Beside]:
    """What an earlier release and a map give away, each in a sentence and as a row."""
    found: list[Beside] = []
    for key, what in (("earlier_release", "an earlier release"), ("maps", "areas of two geographies")):
        if key not in section:
            continue
        seen, judged = section[key], section[key]["judged"] or {}
        right = judged.get("apparent_right")
        words = f"Subtracting {what} shows {several(seen['small'], 'small difference', 'small differences')}"
        words += "." if right is None else f", {count(right)} of them true."
        name = seen["release"] if key == "earlier_release" else " and ".join(seen["geographies"])
        row = (name, seen["compared"], judged.get("apparent"), right, judged.get("apparent_share"))
        found.append((words, row))
    return found


def _beside_table(rows: Sequence[tuple[object, ...]]) -> Html:
    head = [
        Column("subtracted", As.LONG),
        Column("differences taken", As.COUNT),
        Column("seem small", As.COUNT),
        Column("of these true", As.COUNT),
        Column("share", As.SHARE),
    ]
    return table("Differences with an earlier release and with a map", head, rows)


def _bases_table(bases: Sequence[Section]) -> Html:
    head = [
        Column("from", As.LONG),
        Column("is subtracted", As.LONG),
        Column("small differences", As.COUNT),
        Column("published as they are", As.COUNT),
        Column("expected", As.DECIMAL),
        Column("seem small", As.COUNT),
        Column("of these true", As.SHARE),
    ]
    rows = [
        (
            one["outer"], one["inner"], one["exact"], one["revealed"], one["expected"], one["apparent"],
            one["apparent_share"],
        )
        for one in bases
    ]  # fmt: skip
    return table("Differences of populations", head, rows)


def _places_table(places: Sequence[Section]) -> Html:
    head = [
        Column("geographies"),
        Column("smaller than", As.COUNT),
        Column("differences found", As.COUNT),
        Column("revealed after noise", As.COUNT),
    ]
    rows = [
        (
            " and ".join(one["geographies"]),
            one["threshold"],
            one["found"],
            one["after"]["above"] if one["after"] else one["found"],
        )
        for one in places
    ]
    return table("Differences of geographies", head, rows)


def _pair(tally: Section | None) -> tuple[int | None, float | None]:
    return (None, None) if tally is None else (tally["seen"], tally.get("share_true"))


def _part(number: float, whole: float) -> float:
    return number / whole if whole else 0.0
