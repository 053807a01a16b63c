"""What a well-informed attacker learns about a person: the guarantee, posteriors, and reconstructed records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp

from discreet.audit.attack import NotPossible
from discreet.audit.audit import BayesAudit, ReconstructionAudit
from discreet.audit.bayes import BayesScan, LevelFinding
from discreet.audit.measures import CellPrivacy, Privacy, Rebuilt
from discreet.maths.attacks.reconstruction import Status
from discreet.page.charts import Axis, Bar, Chart, Point, columns, pairs
from discreet.page.markup import (
    As,
    Column,
    Html,
    count,
    folded,
    heading,
    listing,
    paragraph,
    several,
    share,
    table,
)
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY, ORANGE
from discreet.perturb.noise import Guarantee
from discreet.report.published import Names

MILLION, LARGEST_EXPONENT = 1e6, 700.0
FOUND, GUESSED, REIDENTIFIED = "records found by the solver", "found by guessing", "persons re-identified"


def privacy_part(found: Privacy) -> Part:
    """The guarantee, if any, and the exact privacy loss of one count."""
    if found.guarantee is not None:
        lead = f"{found.guarantee.sentence()} {_meaning(found.guarantee)}"
    else:
        lead = "The release has no formal guarantee for a single person; its safety depends on what is measured here."
    blocks: list[Block] = []
    if found.cell is not None:
        head = [Column("epsilon", As.DECIMAL), Column("delta of one count", As.DECIMAL)]
        rows = [(one.epsilon, one.delta) for one in found.cell.cell_curve]
        blocks += [
            listing(_leaks(found.cell)),
            paragraph("In terms of differential privacy, one count at a time:", "note"),
            table("Exact privacy loss of one count", head, rows),
        ]
    return Part("privacy", "Is there a guarantee?", lead, tuple(blocks))


def _meaning(guarantee: Guarantee) -> str:
    """What epsilon bounds: the factor by which the odds of anything about a person change."""
    figures = guarantee.figures()
    if "epsilon" not in figures:
        return "It limits what can be learned about a person, whatever an attacker knows of all others."
    factor, delta = exp(min(figures["epsilon"], LARGEST_EXPONENT)), figures["delta"]
    if factor > MILLION:
        return "Odds of anything about a person may change by a factor of more than a million: that is no protection."
    but = f", but for a probability of {delta:.3g}" if delta else ""
    return f"Odds of anything about a person change by a factor of at most {factor:.3g}{but}."


def _leaks(cell: CellPrivacy) -> Iterator[str]:
    if cell.fixed_zeros_delta:
        yield (
            "Zeros stay zero: a count above zero proves that a person was counted there. With probability"
            f" {share(cell.fixed_zeros_delta)} a count of 1 is published above zero."
        )
    if cell.same_participants_delta:
        yield (
            "The same people always have the same noise: two tables that differ by one person show it with probability"
            f" {share(cell.same_participants_delta)}."
        )
    if not cell.fixed_zeros_delta and not cell.same_participants_delta:
        yield "Zeros are perturbed as well, and the noise of every count is independent."


def bayes_part(found: BayesAudit, names: Names) -> Part:
    """The adversary who knows all others in a cell."""
    cells = found.cells
    lead = (
        f"In {count(cells.above)} of {several(cells.cells, 'small count', 'small counts')}"
        f" ({share(cells.share)})"
        f" an intruder who knows all others there would be more than {share(cells.belief.gate)} sure that one"
        " more person"
        f" is in it; {count(cells.above_beside_others)} of these are counts of two or more."
    )
    blocks: list[Block] = [_posterior_chart(cells)]
    if cells.worst:
        blocks.append(_worst_table(cells.worst))
    if cells.named:
        head = [Column("counted"), Column("cell", As.LONG), Column("published", As.COUNT)]
        rows = [(one.counted, names.cell(one.cell), one.published) for one in cells.named]
        blocks.append(
            folded(f"The cells ({len(rows)} listed)", table("Cells with a high posterior", head, rows))
        )
    blocks += list(_more_knowledge(found))
    return Part("posteriors", "How sure can a well-informed intruder be?", lead, tuple(blocks))


def _posterior_chart(cells: BayesScan) -> Chart:
    shares = [
        above / many if many else 0.0
        for above, many in zip(cells.by_known, cells.cells_by_known, strict=True)
    ]
    rows = [Point(k, value, "") for k, value in enumerate(shares)]
    later = max(shares[1:], default=0.0)
    says = (
        f"Starting from a belief of {share(cells.belief.prior)}, the intruder becomes more than"
        f" {share(cells.belief.gate)} sure in"
        f" {share(shares[0] if shares else 0.0)} of the counts of one person, and in at most {share(later)}"
        " of larger ones."
    )
    x, y = Axis("others in the cell whom the intruder knows"), Axis("share of small counts", "~%", 1.0)
    title = "Where a published count discloses a person's presence"
    return Chart("posteriors", title, says, lambda width: columns(rows, {"": BLUE}, x, y, width))


def _worst_table(worst: Sequence[LevelFinding]) -> Html:
    head = [
        Column("counted"),
        Column("crossed", As.LONG),
        Column("small counts", As.COUNT),
        Column("too sure", As.COUNT),
        Column("expected", As.DECIMAL),
        Column("persons", As.COUNT),
    ]
    rows = [
        (
            one.counted,
            one.crosstab,
            one.cells,
            one.above,
            one.expected,
            one.records_above,
        )
        for one in worst
    ]
    return table("Cross-tabulations that disclose most persons", head, rows)


def _more_knowledge(found: BayesAudit) -> Iterator[Block]:
    lines = [
        f"With all levels of {one.along} together: {count(one.above)} of {count(one.cells)} small counts"
        f" ({count(one.above_alone)} from only the finest level)."
        for one in found.levels
    ]
    lines += [
        f"With the whole histogram of a small area of {one.attack.area}: the intruder's guess improves by at most"
        f" {share(one.largest_gain)} of the persons, in {several(len(one.found), 'histogram', 'histograms')}."
        for one in found.histograms
    ]
    if lines:
        yield heading("With more knowledge")
        yield listing(lines)


def reconstruction_part(found: ReconstructionAudit | NotPossible) -> Part:
    """Records reconstructed by a solver, under this and other protections."""
    title = "Can records be reconstructed from the tables?"
    if isinstance(found, NotPossible):
        return Part("reconstruction", title, f"It was not tried: {found.reason}.")
    one, every = found.released, [found.released, *found.under_other_protections]
    judged = one.judged
    beaten = judged.r_recon > judged.baseline
    verdict = "more than guessing does" if beaten else "no more than guessing does"
    lead = (
        f"A solver that looks for records which fit the tables gets {share(judged.r_recon)} of the records of"
        f" {several(judged.areas, 'area', 'areas')} right, {verdict} ({share(judged.baseline)});"
        f" {share(one.confirmed.r_reid)} of the persons would be re-identified,"
        f" {share(max(one.confirmed.gain, 0.0))} beyond those whose attributes a guess has as well."
    )
    blocks: list[Block] = [_protections_chart(every), _protections_table(every)]
    timeouts = one.made.status.get(Status.TIMEOUT, 0)
    if timeouts:
        stopped = several(timeouts, "area was", "areas were")
        blocks.append(paragraph(f"{stopped} stopped by the work limit: more work may find more.", "note"))
    return Part("reconstruction", title, lead, tuple(blocks), "bad" if beaten else "")


def _protections_chart(variants: Sequence[Rebuilt]) -> Chart:
    rows = [
        Bar(_sentence(one.protection), value, "", kind)
        for one in variants
        for kind, value in (
            (FOUND, one.judged.r_recon),
            (GUESSED, one.judged.baseline),
            (REIDENTIFIED, one.confirmed.r_reid),
        )
    ]
    shares = "; ".join(
        f"{one.protection}: {share(one.judged.r_recon)} against {share(one.judged.baseline)} by guessing"
        for one in variants
    )
    colours = {FOUND: BLUE, GUESSED: GREY, REIDENTIFIED: ORANGE}
    axis = Axis("share of the records, or persons", "~%")
    title = "Records reconstructed under this and other protections"
    return Chart(
        "reconstruction",
        title,
        f"{_sentence(shares)}.",
        lambda width: pairs(rows, colours, axis, width),
        colours,
    )


def _protections_table(variants: Sequence[Rebuilt]) -> Html:
    head = [
        Column("protection", As.LONG),
        Column("records", As.COUNT),
        Column("rebuilt", As.SHARE),
        Column("by guessing", As.SHARE),
        Column("for certain", As.SHARE),
        Column("matched to a file", As.SHARE),
        Column("re-identified", As.SHARE),
    ]
    rows = [
        (
            _sentence(one.protection),
            one.judged.records,
            one.judged.r_recon,
            one.judged.baseline,
            one.made.r_certain,
            one.confirmed.r_match,
            one.confirmed.r_reid,
        )
        for one in variants
    ]
    return table("Reconstruction under each protection", head, rows)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
