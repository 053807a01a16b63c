"""What the published tables disclose by themselves: averaging, bounds and margins, differences, small counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.audit.attack import NotPossible
from discreet.audit.audit import (
    AveragingAudit,
    BoundsAudit,
    DifferencingAudit,
    KeyGapAudit,
    LeastSquaresAudit,
    RedundancyAudit,
    RemovalAudit,
    WeightsAudit,
)
from discreet.audit.averaging import ExposedCell, Realised
from discreet.audit.bounds import BoundFindings
from discreet.audit.differencing import Judgement, Update, UpdateJudgement
from discreet.audit.differencing_areas import AreaDifferences, MapDifferences, MapJudgement
from discreet.audit.disclosure import DisclosureFigures, Disclosures, Tally
from discreet.maths.attacks.averaging import Method
from discreet.maths.attacks.disclosure import RowKind
from discreet.page.charts import Axis, Bar, Chart, Point, bars, cloud
from discreet.page.markup import As, Column, Html, count, folded, heading, paragraph, several, share, table
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY, ORANGE
from discreet.report.published import Names

PREDICTED, REALISED = "predicted by the law of the noise", "found when compared with the true counts"
SEEN, TRUE = "published", "of these, true"
LARGEST_SHOWN = 3  # counts up to this are drawn
METHODS = {
    Method.MEAN: "the plain mean of all representations",
    Method.RISKIEST: "the mean of the best representations",
    Method.WEIGHTED: "all representations, with the best weights",
}


def averaging_part(found: AveragingAudit, redundancy: RedundancyAudit | None, names: Names) -> Part:
    """Averaging, predicted and realised."""
    attack, realised = found.attack, found.realised
    targets, hit = attack.targets, realised.hit[Method.WEIGHTED]
    lead = (
        f"An attacker who averages all the ways in which a count can be computed from the tables recovers"
        f" {share(_part(hit, targets))} of the counts exactly; {share(_part(realised.baseline, targets))}"
        " are published unchanged."
    )
    blocks: list[Block] = [_methods_chart(found), _calibration_chart(realised)]
    if attack.exposed:
        blocks.append(exposed_table(attack.exposed, names))
    if redundancy:
        blocks.append(
            folded("What the programme repeats most, independent of the data", _redundancy_table(redundancy))
        )
    return Part("averaging", "Can noise be removed by averaging?", lead, tuple(blocks))


def least_squares_part(found: LeastSquaresAudit, names: Names) -> Part:
    """The strongest linear adversary, predicted and realised."""
    attack, realised = found.attack, found.realised
    targets = attack.targets
    lead = (
        f"An attacker who fits all tables at once, so that every total is the sum of its parts, recovers"
        f" {share(_part(realised.linear, targets))} of the counts exactly, and"
        f" {share(_part(realised.within_bounds, targets))} with the bounds of the noise;"
        f" {share(_part(realised.baseline, targets))} are published unchanged."
    )
    rows = [
        ("published unchanged", attack.baseline, realised.baseline),
        ("best linear estimate", attack.linear.expected, realised.linear),
        ("the same within bounds", attack.within_bounds.expected, realised.within_bounds),
    ]
    head = [Column("estimate", As.LONG), Column("predicted", As.COUNT), Column("right", As.COUNT)]
    title = f"Of {count(targets)} counts, how many are recovered exactly"
    blocks: list[Block] = [table(title, head, [(name, round(expected), hit) for name, expected, hit in rows])]
    if attack.exposed:
        blocks.append(exposed_table(attack.exposed, names, "a fit of all tables"))
    return Part("least-squares", "Can noise be removed by fitting all tables at once?", lead, tuple(blocks))


def exposed_table(exposed: Sequence[ExposedCell], names: Names, attack: str = "averaging") -> Html:
    """The counts that an attack threatens most."""
    head = [
        Column("counted"),
        Column("cell", As.LONG),
        Column("readings", As.COUNT),
        Column("k/t²", As.DECIMAL),
        Column("probability of success", As.SHARE),
    ]
    rows = [(one.counted, names.cell(one.cell), one.t, one.ratio, one.success) for one in exposed]
    return table(f"The counts that {attack} threatens most", head, rows)


def _methods_chart(audited: AveragingAudit) -> Chart:
    attack, realised = audited.attack, audited.realised
    targets = attack.targets
    ways = [("published unchanged", attack.baseline, realised.baseline)]
    ways += [
        (name, attack.methods[method].expected, realised.hit[method]) for method, name in METHODS.items()
    ]
    rows = [
        Bar(name, _part(value, targets), f"{share(_part(value, targets))}", kind)
        for name, predicted, found in ways
        for kind, value in ((PREDICTED, predicted), (REALISED, found))
    ]
    says = (
        f"Of {count(targets)} counts, the best average finds {count(ways[-1][2])};"
        f" {count(ways[-1][1])} were predicted. The bars are shares of all counts."
    )
    axis = Axis("share of all counts that are right", "~%")
    colours = {PREDICTED: GREY, REALISED: BLUE}
    title = "Counts that are recovered exactly, by method of averaging"
    return Chart("averaging", title, says, lambda width: bars(rows, colours, axis, width), colours)


def _calibration_chart(realised: Realised) -> Chart:
    colours = {Method.MEAN: ORANGE, Method.WEIGHTED: BLUE}
    rows = [
        (METHODS[method], one.expected / one.targets, one.hit / one.targets, one.targets)
        for method in colours
        for one in realised.bins[method]
        if one.targets
    ]
    most = max((row[3] for row in rows), default=1)
    points = [Point(x, y, kind, (many / most) ** 0.5) for kind, x, y, many in rows]
    off = max((abs(x - y) for _, x, y, many in rows if many >= 100), default=0.0)
    says = (
        "Each point is a group of counts with about the same predicted probability; a larger point"
        " represents more counts."
        f" On the dashed line the prediction is exact. Groups of 100 counts and more are off by at most {share(off)}."
    )
    axes = Axis("predicted probability", "~%", 1.0), Axis("share that was right", "~%", 1.0)
    named = {METHODS[method]: colour for method, colour in colours.items()}
    title = "Does the prediction hold?"
    return Chart("calibration", title, says, lambda width: cloud(points, named, *axes, width), named)


def _redundancy_table(redundancy: RedundancyAudit) -> Html:
    head = [
        Column("counted"),
        Column("statistic"),
        Column("representations t", As.COUNT),
        Column("k/t²", As.DECIMAL),
        Column("variance with the best weights / V", As.DECIMAL),
    ]
    rows = [
        (universe.counted, one.statistic, one.t, one.k_over_t2, one.best)
        for universe in redundancy.universes
        for one in universe.exposed
    ]
    return table("Statistics that the programme repeats most", head, rows)


def removal_part(found: RemovalAudit | NotPossible, names: Names) -> Part:
    """The successive removal of noise."""
    title = "Can noise be removed step by step?"
    if isinstance(found, NotPossible):
        return Part("removal", title, f"This was not possible: {found.reason}.")
    attack, judged = found.attack, found.realised
    if not judged.recovered:
        lead = (
            f"No count becomes certain to {share(attack.confidence)} when nearly certain counts are used to"
            " sharpen the sums they belong to."
        )
        return Part("removal", title, lead)
    lead = (
        "An attacker who takes nearly certain counts as known, and with them sharpens the sums they belong to,"
        f" claims {several(judged.recovered, 'count', 'counts')} of {count(attack.cells)};"
        f" {share(judged.share_right)} of the claims are right, {count(judged.changed_right)} of them"
        " counts that are published changed."
    )
    blocks: list[Block] = []
    if attack.named:
        head = [Column("counted"), Column("cell", As.LONG)]
        rows = [(one.counted, names.cell(one.cell)) for one in attack.named]
        blocks.append(table("Counts whose noise was removed, rightly or wrongly", head, rows))
    return Part("removal", title, lead, tuple(blocks), "bad" if judged.changed_right else "")


def key_gaps_part(found: KeyGapAudit | NotPossible) -> Part:
    """The gap attack on cell keys."""
    title = "Do gaps show the noise of totals?"
    if isinstance(found, NotPossible):
        return Part("key_gaps", title, f"This was not possible: {found.reason}.")
    attack, judged = found.attack, found.realised
    lead = (
        f"From the gap between a total and its parts its noise is guessed right for {share(judged.share)} of"
        f" {several(judged.tuples, 'total', 'totals')}; {share(attack.independent)} are expected where noise is"
        f" independent, {share(attack.unaided)} without a gap. Keys are {judged.keys}."
    )
    return Part("key_gaps", title, lead, (), "bad" if judged.keys == "plain" else "")


def bounds_part(found: BoundsAudit, names: Names) -> Part:
    """Bounds and margins."""
    attack, judged = found.attack, found.realised
    if attack.bound is None:
        lead = "The noise has no bound, so sums and totals prove no true count."
    elif not attack.pinned:
        lead = (
            f"An attacker who knows that no count changes by more than {attack.bound} deduces no true count from sums"
            " and totals by this attack."
        )
    else:
        lead = (
            f"An attacker who knows that no count changes by more than {attack.bound} can deduce"
            f" {several(attack.pinned, 'true count', 'true counts')}, {count(attack.pinned_small)} of"
            " them 1 to"
            f" 3; {share(judged.share_right)} of the deductions are right."
        )
    blocks: list[Block] = []
    if attack.tuples_by_bound_needed:
        blocks.append(_gaps_chart(attack))
    if attack.named:
        head = [Column("table"), Column("counted"), Column("cell", As.LONG)]
        rows = [(one.table, one.counted, names.cell(one.cell)) for one in attack.named]
        blocks.append(table("True counts that can be deduced from bounds and margins", head, rows))
    mood = "bad" if attack.pinned else ""
    return Part("bounds", "Do sums and totals disclose counts?", lead, tuple(blocks), mood)


def weights_part(found: WeightsAudit) -> Part:
    """Weighted sums beside counts."""
    title = "Do weighted tables disclose counts?"
    attack, judged = found.attack, found.realised
    cells = several(attack.cells, "small count", "small counts")
    lead = (
        f"An attacker who knows that weights are whole numbers can deduce {count(attack.certain)} of {cells} with a"
        f" weighted sum beside them for certain; on average {attack.left:.1f} counts stay possible."
    )
    if attack.certain:
        lead += f" {count(judged.right)} of the deductions are right."
    if attack.reach is None:
        lead += " The sums show the exact mean weight: protect the release again with this version."
    return Part("weights", title, lead, (), "bad" if judged.right else "")


def _gaps_chart(attack: BoundFindings) -> Chart:
    tuples = attack.tuples
    rows = [
        Bar(f"at least {change}", _part(many, tuples), several(many, "sum", "sums"))
        for change, many in attack.tuples_by_bound_needed.items()
    ]
    bound = attack.bound
    says = f"{count(tuples)} sums were compared with totals. The gaps prove a change of at least {attack.least_bound}"
    says += "." if bound is None else f", the largest change is {bound}."
    if bound is not None and attack.least_bound >= bound:
        says += " So the published tables prove it."
    axis = Axis("share of the sums", "~%")
    title = "The change of a count that the gaps between sums and totals prove"
    return Chart("bounds", title, says, lambda width: bars(rows, {"": BLUE}, axis, width))


def disclosure_part(found: Disclosures, names: Names) -> Part:
    """Small counts and shared attributes, seen and true."""
    ones = found.total.ones
    lead = (
        f"Of {several(ones.seen, 'published 1', 'published ones')}, {share(ones.share_true)} are truly"
        " one person,"
        " household or dwelling: in all other cases, a published 1 is wrong."
        if ones.seen
        else "No count of 1 is published."
    )
    blocks: list[Block] = [_disclosure_chart(found.total), _disclosure_table(found)]
    blocks += list(_named_tables(found, names))
    return Part("disclosure", "Are small counts and shared attributes true?", lead, tuple(blocks))


def _disclosure_chart(total: DisclosureFigures) -> Chart:
    kinds = {f"counts of {value}": tally for value, tally in enumerate(total.small[:LARGEST_SHOWN], start=1)}
    kinds["attributes of one person"] = total.rows[RowKind.INDIVIDUAL]
    kinds["attributes shared by a group"] = total.rows[RowKind.GROUP]
    shown = {name: tally for name, tally in kinds.items() if tally.seen}
    rows = [
        Bar(name, number, label, kind)
        for name, tally in shown.items()
        for kind, number, label in (
            (SEEN, tally.seen, count(tally.seen)),
            (TRUE, tally.true or 0, f"{count(tally.true)} ({share(tally.share_true)})"),
        )
    ]
    shares = "; ".join(f"{share(tally.share_true)} of {name}" for name, tally in shown.items())
    says = f"True before any protection: {shares or 'none'}."
    colours = {SEEN: GREY, TRUE: BLUE}
    axis = Axis("number")
    title = "Apparent disclosures, and how many of them are true"
    return Chart("small-counts", title, says, lambda width: bars(rows, colours, axis, width), colours)


def _disclosure_table(found: Disclosures) -> Html:
    ways = [("all", "all tables", found.total)]
    ways += [("counted", name, one) for name, one in found.universes.items()]
    ways += [("level", name, one) for name, one in sorted(found.levels.items())]
    ways += [("crossed", several(number, "axis", "axes"), one) for number, one in sorted(found.axes.items())]
    head = [
        Column("by"),
        Column("where", As.LONG),
        Column("published ones", As.COUNT),
        Column("true", As.SHARE),
        Column("persons shown", As.COUNT),
        Column("true", As.SHARE),
        Column("groups shown", As.COUNT),
        Column("true", As.SHARE),
    ]
    rows = [
        (
            by,
            name,
            *_pair(one.ones if one.has_cells else None),
            *_pair(one.rows[RowKind.INDIVIDUAL]),
            *_pair(one.rows[RowKind.GROUP]),
        )
        for by, name, one in ways
    ]
    return table("Apparent disclosures and how many are true", head, rows)


def _named_tables(found: Disclosures, names: Names) -> Iterator[Html]:
    for listed, what in (
        (found.uniques, "True ones, fewest codes first"),
        (found.telling, "Groups that truly share an attribute"),
    ):
        if listed:
            head = [
                Column("table"),
                Column("counted"),
                Column("cell", As.LONG),
                Column("published", As.COUNT),
            ]
            rows = [(one.cube, one.counted, names.cell(one.cell), one.published) for one in listed]
            yield folded(f"{what} ({len(rows)} listed)", table(what, head, rows))


def differencing_part(found: DifferencingAudit) -> Part:
    """Differences of bases and of geographies."""
    bases, places = found.bases, found.geographies
    exact, revealed = sum(one.exact for one in bases), sum(one.revealed for one in bases)
    areas = sum(one.revealed for one in places)
    beside = _beside_rows(found)
    if not bases and not places and not beside:
        lead = (
            "No published population contains another and no pair of geographies is declared: nothing was"
            " subtracted."
        )
    else:
        lead = (
            "Subtracting one published population from another would disclose"
            f" {several(exact, 'small group', 'small groups')}"
            f" without protection; {count(revealed)} of them are published with their true size."
        )
        lead += "".join(f" {sentence}" for sentence, _ in beside)
        lead += (
            f" Pairs of geographies reveal {several(areas, 'small area', 'small areas')}." if places else ""
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
    return Part("differencing", "Does subtracting tables disclose people?", lead, tuple(blocks))


Beside = tuple[str, tuple[str, int, int | None, int | None, float | None]]


def _beside_rows(found: DifferencingAudit) -> list[Beside]:
    """What an earlier release and a map disclose, each as a sentence and as a row."""
    rows: list[Beside] = []
    if found.earlier_release is not None:
        update = found.earlier_release
        sentence, row = _beside("an earlier release", update.release, update.seen, update.judged)
        said = "; ".join(update.corrections.sentences()) if update.corrections.reveals else ""
        rows.append((f"{sentence} {said[:1].upper()}{said[1:]}." if said else sentence, row))
    if found.maps is not None:
        name = " and ".join(found.maps.seen.geographies)
        rows.append(_beside("areas of two geographies", name, found.maps.seen, found.maps.judged))
    return rows


def _beside(
    what: str, name: str, seen: Update | MapDifferences, judged: UpdateJudgement | MapJudgement | None
) -> Beside:
    sentence = f"Subtracting {what} shows {several(seen.small, 'small difference', 'small differences')}"
    if judged is None:
        return f"{sentence}.", (name, seen.compared, None, None, None)
    row = (name, seen.compared, judged.apparent, judged.apparent_right, judged.apparent_share)
    return f"{sentence}, {count(judged.apparent_right)} of them true.", row


def _beside_table(rows: Sequence[tuple[object, ...]]) -> Html:
    head = [
        Column("subtracted", As.LONG),
        Column("differences computed", As.COUNT),
        Column("appear small", As.COUNT),
        Column("of these true", As.COUNT),
        Column("share", As.SHARE),
    ]
    return table("Differences with an earlier release and with a map", head, rows)


def _bases_table(bases: Sequence[Judgement]) -> Html:
    head = [
        Column("from", As.LONG),
        Column("is subtracted", As.LONG),
        Column("small differences", As.COUNT),
        Column("published unchanged", As.COUNT),
        Column("expected", As.DECIMAL),
        Column("appear small", As.COUNT),
        Column("of these true", As.SHARE),
    ]
    rows = [
        (
            one.outer,
            one.inner,
            one.exact,
            one.revealed,
            one.expected,
            one.apparent,
            one.apparent_share,
        )
        for one in bases
    ]
    return table("Differences of populations", head, rows)


def _places_table(places: Sequence[AreaDifferences]) -> Html:
    head = [
        Column("geographies"),
        Column("smaller than", As.COUNT),
        Column("differences found", As.COUNT),
        Column("revealed after noise", As.COUNT),
    ]
    rows = [(" and ".join(one.geographies), one.threshold, one.found, one.revealed) for one in places]
    return table("Differences of geographies", head, rows)


def _pair(tally: Tally | None) -> tuple[int | None, float | None]:
    return (None, None) if tally is None else (tally.seen, tally.share_true)


def _part(number: float, whole: float) -> float:
    return number / whole if whole else 0.0
