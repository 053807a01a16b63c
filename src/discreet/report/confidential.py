"""The confidential page of an audit: gates, the feasible region, and everything found; writing the pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from discreet.audit.attack import NotPossible
from discreet.audit.audit import (
    Audit,
    NoiseChoice,
    Protection,
    ReconstructionAudit,
    Region,
    SwapProtection,
    WeightsAudit,
)
from discreet.audit.verdict import GateVerdict
from discreet.io.atomic_folder import AtomicFolder
from discreet.io.progress import Progress
from discreet.maths.attacks.averaging import Method
from discreet.maths.feasible import UTILITY, Constraint
from discreet.maths.utility import Measure
from discreet.page.charts import Bar, Chart, limits
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
from discreet.page.style import BLUE, RED
from discreet.report.hierarchy import hierarchy_part
from discreet.report.noise_plane import plane_chart
from discreet.report.people import bayes_part, privacy_part, reconstruction_part
from discreet.report.public import PublicView
from discreet.report.published import (
    Names,
    attack_part,
    law_chart,
    origin_of,
    public_statement,
    published_part,
    size_tiles,
    title_of,
)
from discreet.report.tables import (
    averaging_part,
    bounds_part,
    differencing_part,
    disclosure_part,
    key_gaps_part,
    least_squares_part,
    removal_part,
    weights_part,
)
from discreet.report.utility import utility_part

Verdicts = Sequence[GateVerdict]

HOLDS, BROKEN = "limit holds", "limit is broken"
FAR = 2.0  # a gate that is exceeded by more is not drawn longer
COUNTED = ("pinned_cells", "differencing")
PLAIN = ("epsilon", "delta")


def gate_tile(verdicts: Verdicts) -> Tile:
    """The number of gates that hold."""
    if not verdicts:
        return Tile("Declared limits", "none", "no gates declared")
    passed = sum(one.passed for one in verdicts)
    broken = len(verdicts) - passed
    more = "all hold" if not broken else f"{several(broken, 'is', 'are')} broken"
    return Tile(
        "Declared limits that hold", f"{passed} of {len(verdicts)}", more, "bad" if broken else "good"
    )


def gates_part(verdicts: Verdicts) -> Part:
    """All gates."""
    title = "Is the release within the declared limits?"
    if not verdicts:
        lead = (
            "No limits are declared in [gates] of the programme, so this report only measures and"
            " judges nothing."
        )
        return Part("gates", title, lead)
    broken = [one for one in verdicts if not one.passed]
    lead = (
        f"All {len(verdicts)} limits that the office declared hold."
        if not broken
        else f"{len(broken)} of the {len(verdicts)} limits that the office declared"
        f" {'is' if len(broken) == 1 else 'are'} broken: do not publish this release before this is fixed, or"
        " the limits are changed for a stated reason."
    )
    blocks: list[Block] = [_gates_chart(verdicts), _table(verdicts)]
    for one in broken:
        blocks += [
            heading(f"{_sentence(one.what)}: {_value(one, one.found)}"),
            paragraph(f"Remedy: {one.remedy}."),
        ]
        if one.where:
            blocks += [paragraph("First occurrences:", "note"), listing(one.where)]
    return Part("gates", title, lead, tuple(blocks), "bad" if broken else "good")


def _value(verdict: GateVerdict, value: float) -> str:
    """A gate's limit or finding, formatted by its kind."""
    name = verdict.gate.split(".")[0]
    if name in COUNTED:
        return count(value)
    return decimal(value) if name in PLAIN else share(value)


def _gates_chart(verdicts: Verdicts) -> Chart:
    rows = [
        Bar(
            _sentence(one.what),
            _used(one),
            f"{_value(one, one.found)}, allowed {_value(one, one.limit)}",
            HOLDS if one.passed else BROKEN,
        )
        for one in verdicts
    ]
    over = [row.item for row in rows if row.kind == BROKEN]
    says = (
        f"Each bar shows how much of its limit is used; the black line is the limit. Exceeded: {'; '.join(over)}."
        if over
        else "Each bar shows how much of its limit is used; the black line is the limit. None exceeds it."
    )
    if any(row.value > FAR for row in rows):
        says += f" Bars end at {share(FAR)}."
    colours = {HOLDS: BLUE, BROKEN: RED}
    used = {kind: colour for kind, colour in colours.items() if any(row.kind == kind for row in rows)}
    return Chart(
        "gates", "Findings against their limits", says, lambda width: limits(rows, used, FAR, width), used
    )


def _used(verdict: GateVerdict) -> float:
    """The share of the limit that is used; any finding exceeds a limit of 0."""
    if verdict.limit:
        return verdict.found / verdict.limit
    return 2 * FAR if verdict.found else 0.0


def _table(verdicts: Verdicts) -> Html:
    head = [
        Column("gate"),
        Column("what is measured", As.LONG),
        Column("found", As.NUMBER),
        Column("allowed", As.NUMBER),
        Column("verdict"),
    ]
    rows = [
        (one.gate, one.what, _value(one, one.found), _value(one, one.limit), one.passed) for one in verdicts
    ]
    return table("The gates", head, rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


WORDS = {
    Constraint.AVERAGING: "averaging the most repeated count seldom recovers it exactly",
    Constraint.UNIQUES: "a count of 1 is often enough not published as 1",
    Constraint.BOUND: "the tables do not reveal the largest change",
    Constraint.LARGEST: "no count changes by too much",
    Constraint.DISTORTION: "small counts are seldom far off",
    Constraint.PTABLE: "such noise exists",
}


def region_part(found: Region | NotPossible) -> Part:
    """The map of the V x D plane, or why it is missing."""
    title = "Was the noise chosen well?"
    if isinstance(found, NotPossible):
        return Part("region", title, f"There is no map of choices: {found.reason}.")
    broken = None if found.chosen is None else found.broken_at(found.chosen)
    blocks: list[Block] = [_region_chart(found), *_limits_table(found, broken)]
    return Part("region", title, _lead(found.chosen, found.least, broken), tuple(blocks), _mood(broken))


def _mood(broken: Sequence[Constraint] | None) -> str:
    return "" if broken is None else "bad" if broken else "good"


def _lead(chosen: NoiseChoice | None, least: NoiseChoice | None, broken: Sequence[Constraint] | None) -> str:
    best = (
        "no choice is within all limits: publish less, or raise the limits"
        if least is None
        else (
            f"the least noise within all limits has variance {decimal(least.V)} and changes of at most"
            f" {least.D}"
        )
    )
    if chosen is None or broken is None:
        return f"The noise was not chosen by variance and largest change; {best}."
    point = f"The chosen noise (variance {decimal(chosen.V)}, largest change {chosen.D})"
    if not broken:
        return f"{point} is within every usual limit on risk and on error; {best}."
    return f"{point} breaks {len(broken)} of the usual limits; {best}."


def _region_chart(found: Region) -> Chart:
    named = (("chosen", found.chosen), ("least noise", found.least))
    choices = {name: (point.V, point.D) for name, point in named if point is not None}
    return plane_chart(
        found.V,
        found.D,
        found.holds,
        choices,
        title="All choices, and the chosen one",
        lead="The marked points are the chosen noise and the least noise within all limits.",
    )


def _limits_table(found: Region, broken: Sequence[Constraint] | None) -> Iterator[Html]:
    if broken is None:
        return
    rows = [
        (WORDS.get(name, name), "accuracy" if name in UTILITY else "risk", name not in broken)
        for name in found.holds
        if name is not Constraint.PTABLE
    ]
    yield table(
        "The usual limits at the chosen point",
        [Column("limit", As.LONG), Column("about"), Column("verdict")],
        rows,
    )
    usual = found.limits
    yield paragraph(
        f"The usual limits: averaging succeeds in less than {share(usual.averaging)}, the largest change"
        " is revealed with"
        f" less than {share(usual.revealed)}, a 1 is published as 1 in at most {share(usual.uniques)},"
        " no change"
        f" exceeds {usual.largest_change}, and counts of {usual.size} are off by more than"
        f" {share(usual.relative)}"
        f" in at most {share(usual.share)}. Declared gates that are stricter replace them.",
        "note",
    )


NOTICE = (
    "Confidential: this page was made with the true counts and the private parameters of the noise. Keep it with the"
    " microdata. The page that may be published is public.html."
)


def confidential_page(found: Audit, view: PublicView) -> Page:
    """The page for the office."""
    manifest = view.manifest
    return Page(
        f"Audit of {title_of(manifest)}",
        " · ".join(filter(None, [origin_of(manifest), "risk and utility of the release"])),
        NOTICE,
        True,
        (tiles(list(_opening(found, view))),),
        tuple(_parts(found, view)),
        f"Made by Discreet {manifest.discreet_version}. Machine-readable findings: audit.json. Charts: charts/.",
    )


def _opening(found: Audit, view: PublicView) -> Iterator[Tile]:
    yield gate_tile(found.verdicts)
    yield from size_tiles(view.manifest)
    if found.averaging is not None:
        targets, hit = found.averaging.attack.targets, found.averaging.realised.hit[Method.WEIGHTED]
        yield Tile("Counts that averaging recovers exactly", share(hit / targets if targets else 0.0))
    if found.disclosure is not None:
        yield Tile("Published ones that are true", share(found.disclosure.total.ones.share_true))
    if found.utility is not None:
        error = found.utility.total.total.occupied.mean(Measure.L1)
        yield Tile("Mean error of a count", decimal(error), "absolute, cells that are not empty")


def _parts(found: Audit, view: PublicView) -> Iterator[Part]:
    yield gates_part(found.verdicts)
    yield published_part(view.manifest)
    yield _protection(found.protection, view)
    yield from measured_parts(found, view.names)
    yield attack_part(view.attacks)
    yield caveats_part(found)


def measured_parts(found: Audit, names: Names) -> Iterator[Part]:
    """A part for each measure of the audit."""
    yield from _removed_noise(found, names)
    if found.disclosure is not None:
        yield disclosure_part(found.disclosure, names)
    if found.bayes is not None:
        yield bayes_part(found.bayes, names)
    if found.reconstruction is not None:
        yield reconstruction_part(found.reconstruction)
    if found.differencing is not None:
        yield differencing_part(found.differencing)
    if found.privacy is not None:
        yield privacy_part(found.privacy)
    if found.utility is not None:
        yield utility_part(found.utility)
    if found.hierarchy is not None:
        yield hierarchy_part(found.hierarchy)
    if found.region is not None:
        yield region_part(found.region)


def _removed_noise(found: Audit, names: Names) -> Iterator[Part]:
    """What noise can be removed: by averages, step by step, by bounds."""
    if found.averaging is not None:
        yield averaging_part(found.averaging, found.redundancy, names)
    if found.least_squares is not None:
        yield least_squares_part(found.least_squares, names)
    if found.removal is not None:
        yield removal_part(found.removal, names)
    if found.key_gaps is not None:
        yield key_gaps_part(found.key_gaps)
    if found.bounds is not None:
        yield bounds_part(found.bounds, names)
    if isinstance(found.weights, WeightsAudit):
        yield weights_part(found.weights)


def _protection(found: Protection | None, view: PublicView) -> Part:
    """The public statement on the protection, and its confidential parameters."""
    title = "How it was protected"
    if found is None:
        return Part("protection", title, "Public statement:", tuple(public_statement(view.manifest)))
    named = ", ".join(f"{name} = {_parameter(value)}" for name, value in found.parameters.items())
    lead = f"Counts were perturbed by {found.method} ({named})"
    lead += (
        "; no households were swapped." if found.swap is None else ", after households at risk were swapped."
    )
    blocks: list[Block] = [paragraph("Public statement:", "note"), *public_statement(view.manifest)]
    if found.swap is not None:
        blocks += [heading("The swapping rule"), listing(_swap_rule(found.swap))]
    law = found.law
    if law:
        blocks += [
            law_chart(law[min(1, len(law) - 1)], law[-1]),
            folded("The law of the noise, which is private", _law(law)),
        ]
    return Part("protection", title, lead, tuple(blocks))


def _parameter(value: float | str) -> str:
    return decimal(value) if isinstance(value, float) else str(value)


def _swap_rule(swap: SwapProtection) -> Iterator[str]:
    yield f"At risk: fewer than {swap.k} persons of a region share {swap.risk}."
    yield f"Households to be swapped at least: {share(swap.rate)}."
    yield f"Households to be swapped at most: {'no limit' if swap.cap is None else share(swap.cap)}."


def _law(law: Sequence[Mapping[int, float]]) -> Html:
    """Probability of each change, by true count; the last row is that of all larger counts."""
    changes = sorted({change for row in law for change in row})
    head = [
        Column("true count"),
        *(Column(f"{change:+d}" if change else "0", As.DECIMAL) for change in changes),
    ]
    rows = [
        (f"{size} and more" if size == len(law) - 1 else size, *(row.get(change) for change in changes))
        for size, row in enumerate(law)
    ]
    return table("Probability of each change", head, rows)


def caveats_part(found: Audit) -> Part:
    """The caveats for the office."""
    lead = (
        "A report shows what known attacks find in this release with the effort they were given; it proves"
        " no safety beyond that."
    )
    return Part("caveats", "What this report does not show", lead, (listing(_caveats(found)),))


def _caveats(found: Audit) -> Iterator[str]:
    yield ("Unknown attacks are not covered. Other files about the same people make every attack stronger.")
    yield (
        "Predictions assume the law of the noise; what was found is one draw of it. Another secret would"
        " give other numbers."
    )
    if found.bayes is not None:
        yield (
            "Posteriors are those of an attacker who knows all others in a cell: a worst case, not a"
            " typical intruder."
        )
    if isinstance(found.reconstruction, ReconstructionAudit):
        yield (
            f"Records were reconstructed in {found.reconstruction.released.judged.areas} sampled areas"
            " with a time limit; other areas, more time or more variables may give more."
        )
    if found.bounds is not None and found.bounds.attack.is_cut:
        yield "Some tables were too large for the attack on bounds to be finished; audit.json names them."
    if found.averaging is not None and found.averaging.attack.left_out:
        left = found.averaging.attack.left_out
        yield f"Averaging left out {sum(left.values()):,} counts: {', '.join(left)}."
    missing = [name for name in found.left_out if name not in ("protection", "weights")]
    if missing:
        yield f"Left out of this report: {', '.join(missing)}."
    if found.weights is None:
        yield "Weighted sums were not attacked, or there are none."


AUDIT_PAGE, PUBLIC_PAGE = "audit.html", "public.html"
CHARTS, PUBLIC_CHARTS = "charts", "public-charts"


def write_pages(folder: AtomicFolder, confidential: Page, public: Page, progress: Progress) -> None:
    """Write both pages and their charts; the charts of the public page are in a separate folder."""
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
