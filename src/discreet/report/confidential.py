"""The confidential page of an audit: gates, the feasible region, and everything found; writing the pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from discreet.io.atomic_folder import AtomicFolder
from discreet.io.progress import Progress
from discreet.page.charts import Axis, Bar, Chart, HeatTile, Mark, limits, tiled
from discreet.page.markup import (
    As,
    Column,
    Html,
    Tile,
    count,
    decimal,
    folded,
    heading,
    listing,
    paragraph,
    several,
    share,
    table,
    tiles,
)
from discreet.page.skeleton import Block, Page, Part
from discreet.page.style import BLUE, FEASIBLE, LOSSY, PALE, RED, RISKY, SPOILT
from discreet.report.people import bayes_part, privacy_part, reconstruction_part
from discreet.report.public import PublicView
from discreet.report.published import (
    attack_part,
    caveats_part,
    law_chart,
    origin_of,
    public_words,
    published_part,
    size_tiles,
    title_of,
)
from discreet.report.tables import averaging_part, bounds_part, differencing_part, disclosure_part
from discreet.report.utility import utility_part

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
    blocks: list[Block] = [_gates_chart(verdicts), _table(verdicts)]
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


def _gates_chart(verdicts: Verdicts) -> Chart:
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
    blocks = (_region_chart(section), *_limits_table(section, chosen))
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


def _region_chart(section: Section) -> Chart:
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


def _runs(section: Section, row: int, d: int, step: float) -> Iterator[HeatTile]:
    """Neighbours of one kind as one rectangle."""
    at = 0
    for kind, run in groupby(range(len(section["V"])), partial(_kind, section, row)):
        many = len(list(run))
        first, last = section["V"][at], section["V"][at + many - 1]
        yield HeatTile(first - step / 2, last + step / 2, d - 0.5, d + 0.5, kind)
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


AUDIT_PAGE, PUBLIC_PAGE = "audit.html", "public.html"
CHARTS, PUBLIC_CHARTS = "charts", "public-charts"


def write_pages(folder: AtomicFolder, confidential: Page, public: Page, progress: Progress) -> None:
    """Write both pages and their charts; the charts of the public page have a folder of their own."""
    pages = ((AUDIT_PAGE, CHARTS, confidential), (PUBLIC_PAGE, PUBLIC_CHARTS, public))
    progress.stage("drawing the report", sum(1 + len(page.charts) for _, _, page in pages))
    for name, charts, page in pages:
        with folder.file(name) as file:
            file.write(page.html().encode())
        progress.step()
        for chart in page.charts:
            with folder.file(f"{charts}/{chart.name}.svg") as file:
                file.write(chart.svg().encode())
            with folder.file(f"{charts}/{chart.name}.png") as file:
                file.write(chart.png())
            progress.step()
