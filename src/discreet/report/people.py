"""What somebody who knows a lot learns about a person: the guarantee, posteriors, and rebuilt records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from discreet.page.charts import Axis, Bar, Chart, Point, columns, pairs
from discreet.page.markup import (
    As,
    Column,
    Html,
    count,
    decimal,
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
from discreet.report.published import Names

Section = Mapping[str, Any]

FOUND, GUESSED, REIDENTIFIED = "records found by the solver", "found by guessing", "persons re-identified"


def privacy_part(section: Section) -> Part:
    """The guarantee, or that there is none, and the exact curve of one count."""
    if "epsilon" in section:
        lead = (
            f"The whole release guarantees epsilon {decimal(section['epsilon'])} with delta"
            f" {decimal(section['delta'])}: what anybody learns about a person hardly depends on that person's data."
        )
    else:
        lead = "The release makes no formal promise about a single person; its safety rests on what is measured here."
    blocks: list[Block] = []
    if "fixed_zeros_delta" in section:
        blocks.append(listing(_leaks(section)))
    if "cell_curve" in section:
        head = [Column("epsilon", As.DECIMAL), Column("delta of one count", As.DECIMAL)]
        rows = [(one["epsilon"], one["delta"]) for one in section["cell_curve"]]
        shown = table("Exact privacy loss of one count", head, rows)
        blocks += [
            paragraph("For those who think in differential privacy, one count at a time:", "note"),
            shown,
        ]
    return Part("privacy", "Is there a guarantee?", lead, tuple(blocks))


def _leaks(section: Section) -> Iterator[str]:
    if section["fixed_zeros_delta"]:
        yield (
            "Zeros stay zero: a count above zero proves that somebody is there. With probability"
            f" {share(section['fixed_zeros_delta'])} a count of 1 is published above zero."
        )
    if section["same_participants_delta"]:
        yield (
            "The same people always get the same noise: two tables that differ by one person show it with probability"
            f" {share(section['same_participants_delta'])}."
        )
    if not section["fixed_zeros_delta"] and not section["same_participants_delta"]:
        yield "Zeros are perturbed as well, and every count has noise of its own."


def bayes_part(section: Section, names: Names) -> Part:
    """The adversary who knows everybody else."""
    cells = section["cells"]
    lead = (
        f"In {count(cells['above'])} of {several(cells['cells'], 'small count', 'small counts')}"
        f" ({share(cells['share'])})"
        f" somebody who knows everybody else there would be more than {share(cells['gate'])} sure that one"
        " more person"
        f" is in it; in {count(cells['above_beside_others'])} of these others are there, too."
    )
    blocks: list[Block] = [_posterior_chart(cells)]
    if cells["worst"]:
        blocks.append(_worst_table(cells["worst"]))
    if cells["named"]:
        head = [Column("counted"), Column("cell", As.LONG), Column("published", As.COUNT)]
        rows = [(one["counted"], names.cell(one["cell"]), one["published"]) for one in cells["named"]]
        blocks.append(
            folded(f"The cells ({len(rows)} listed)", table("Cells with a high posterior", head, rows))
        )
    blocks += list(_more_knowledge(section))
    return Part("posteriors", "How sure can a well-informed intruder be?", lead, tuple(blocks))


def _posterior_chart(cells: Section) -> Chart:
    shares = [
        above / many if many else 0.0
        for above, many in zip(cells["above_by_others_known"], cells["cells_by_others_known"], strict=True)
    ]
    rows = [Point(k, value, "") for k, value in enumerate(shares)]
    later = max(shares[1:], default=0.0)
    says = (
        f"Starting from a belief of {share(cells['prior'])}, the intruder becomes more than"
        f" {share(cells['gate'])} sure in"
        f" {share(shares[0] if shares else 0.0)} of the counts of one person, and in at most {share(later)}"
        " of larger ones."
    )
    x, y = Axis("others in the cell whom the intruder knows"), Axis("share of small counts", "~%", 1.0)
    title = "Where a published count gives a person's presence away"
    return Chart("posteriors", title, says, lambda width: columns(rows, {"": BLUE}, x, y, width))


def _worst_table(worst: Sequence[Section]) -> Html:
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
            one["counted"],
            one["crosstab"],
            one["cells"],
            one["above"],
            one["expected_above"],
            one["records_above"],
        )
        for one in worst
    ]
    return table("Cross-tabulations that give most persons away", head, rows)


def _more_knowledge(section: Section) -> Iterator[Block]:
    told = [
        f"With all levels of {one['along']} together: {count(one['above'])} of {count(one['cells'])} small counts"
        f" ({count(one['above_alone'])} from the finest level alone)."
        for one in section["levels"]
    ]
    told += [
        f"With the whole histogram of a small area of {one['area']}: the intruder's guess gets better by at most"
        f" {share(one['largest_gain'])} of the persons, in {several(one['histograms'], 'histogram', 'histograms')}."
        for one in section["histograms"]
    ]
    if told:
        yield heading("With more knowledge")
        yield listing(told)


def reconstruction_part(section: Section) -> Part:
    """Records rebuilt by a solver, under this and other protections."""
    title = "Can records be rebuilt from the tables?"
    if "not_possible" in section:
        return Part("reconstruction", title, f"It was not tried: {section['not_possible']}.")
    one, others = section["released"], section["under_other_protections"]
    verdict = "no more than guessing does" if one["r_recon"] <= one["baseline"] else "more than guessing does"
    lead = (
        f"A solver that looks for records which fit the tables gets {share(one['r_recon'])} of the records of"
        f" {several(one['areas'], 'area', 'areas')} right, {verdict} ({share(one['baseline'])});"
        f" {share(one['r_reid'])} of the persons would be re-identified."
    )
    blocks: list[Block] = [_protections_chart([one, *others]), _protections_table([one, *others])]
    if one["status"].get("timeout"):
        stopped = several(one["status"]["timeout"], "area was", "areas were")
        blocks.append(paragraph(f"{stopped} stopped by the limit of work: more may find more.", "note"))
    mood = "" if one["r_recon"] <= one["baseline"] else "bad"
    return Part("reconstruction", title, lead, tuple(blocks), mood)


def _protections_chart(variants: Sequence[Section]) -> Chart:
    keys = {FOUND: ("r_recon", BLUE), GUESSED: ("baseline", GREY), REIDENTIFIED: ("r_reid", ORANGE)}
    rows = [
        Bar(_sentence(one["protection"]), one[key], "", kind)
        for one in variants
        for kind, (key, _) in keys.items()
    ]
    told = "; ".join(
        f"{one['protection']}: {share(one['r_recon'])} against {share(one['baseline'])} by guessing"
        for one in variants
    )
    colours = {kind: colour for kind, (_, colour) in keys.items()}
    axis = Axis("share of the records, or persons", "~%")
    title = "Records rebuilt under this and other protections"
    return Chart(
        "reconstruction",
        title,
        f"{_sentence(told)}.",
        lambda width: pairs(rows, colours, axis, width),
        colours,
    )


def _protections_table(variants: Sequence[Section]) -> Html:
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
            _sentence(one["protection"]), one["records"], one["r_recon"], one["baseline"], one["r_certain"],
            one["r_match"], one["r_reid"],
        )
        for one in variants
    ]  # fmt: skip
    return table("Reconstruction under each protection", head, rows)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]
