"""The public parts of the report: what was published, its protection, attacks and caveats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt

from discreet.audit.attack import Finding, NotPossible, OutsiderDifferences, OutsiderFindings
from discreet.audit.averaging import AveragingFindings
from discreet.audit.bayes import ExposedValues
from discreet.audit.bounds import BoundFindings
from discreet.audit.disclosure import Disclosures
from discreet.audit.estimates import EstimateFindings
from discreet.audit.key_gaps import KeyGapFindings
from discreet.audit.least_squares import LeastSquaresFindings
from discreet.audit.reconstruction import ReconstructionFindings
from discreet.audit.removal import RemovalFindings
from discreet.audit.weights import WeightFindings
from discreet.maths.attacks.averaging import Method
from discreet.maths.attacks.disclosure import RowKind
from discreet.maths.attacks.reconstruction import Status
from discreet.maths.noise.additive import Law
from discreet.page.charts import Axis, Bar, Chart, Point, bars, columns
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
)
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, GREY, ORANGE
from discreet.perturb.noise import LARGE, Noise
from discreet.programme.labels import NO_LABELS, Labels
from discreet.release.manifest import CubeEntry, Manifest
from discreet.release.reader import Release


@dataclass(frozen=True)
class Names:
    """The labels of codes, by variable and code, and of variables."""

    labels: Mapping[tuple[str, str], str]
    variables: Labels = NO_LABELS

    def cell(self, codes: Mapping[str, str]) -> str:
        """A cell as text, by label where a code has one."""
        if not codes:
            return "the grand total"
        return "; ".join(
            f"{self.variables.variable(name)} {self.labels.get((name, code)) or code}"
            for name, code in codes.items()
        )


def names_of(release: Release) -> Names:
    """The labels of all that is published."""
    labels: dict[tuple[str, str], str] = {}
    axes = {axis.breakdown: axis.variable for cube in release.manifest.cubes for axis in cube.axes}
    for breakdown, variable in axes.items():
        listed = release.read_codes(breakdown)
        labels |= {
            (variable, code): label for code, label in zip(listed.codes, listed.labels, strict=True) if label
        }
    return Names(labels, release.manifest.labels)


FEW_TABLES = 20  # more are folded
LIKELY = 0.0005  # changes that are rarer are not drawn
Changes = Mapping[int, float]

ONE_PERSON, MANY = "a count of 1", "a large count"


def title_of(manifest: Manifest) -> str:
    """The title of a release."""
    return manifest.title or manifest.name


def origin_of(manifest: Manifest) -> str:
    """The agency and version of a release."""
    parts = [manifest.agency, f"version {manifest.version}" if manifest.version else ""]
    return ", ".join(filter(None, parts))


def size_tiles(manifest: Manifest) -> list[Tile]:
    """The number of tables and counts."""
    cells = sum(cube.cells for cube in manifest.cubes)
    return [
        Tile("Tables published", count(len(manifest.cubes)), ", ".join(_units(manifest))),
        Tile("Counts published", count(cells), "zeros are not listed"),
    ]


def published_part(manifest: Manifest) -> Part:
    """The tables."""
    cells = sum(cube.cells for cube in manifest.cubes)
    lead = (
        f"The release has {several(len(manifest.cubes), 'table', 'tables')} with"
        f" {several(cells, 'count', 'counts')} above zero."
    )
    rows = [
        (cube.id, cube.title, _counted(cube), " × ".join(axis.breakdown for axis in cube.axes), cube.cells)
        for cube in manifest.cubes
    ]
    head = [Column("table"), Column("counted"), Column("crossed"), Column("counts", As.COUNT)]
    if any(cube.title for cube in manifest.cubes):
        head.insert(1, Column("title", As.LONG))
    else:
        rows = [(one[0], *one[2:]) for one in rows]  # type: ignore[misc]
    listed = table("The tables of the release", head, rows)
    if len(rows) > FEW_TABLES:
        listed = folded(f"All {several(len(rows), 'table', 'tables')}", listed)
    return Part("published", "What was published", lead, (listed,))


def public_statement(manifest: Manifest) -> Iterator[Html]:
    """The public statement on the protection of the release."""
    yield paragraph(manifest.noise.noise().sentence())
    if manifest.swapped:
        yield paragraph(
            "Before counting, some households at risk were swapped with similar ones elsewhere."
            " How many, and which, is not published; nor is the error of a count by it, which is not part of any"
            " figure for the noise."
        )
    else:
        yield paragraph("No households were swapped before counting.")


def protection_part(manifest: Manifest, noise: Noise) -> Part:
    """The protection, as far as it is public."""
    blocks: list[Block] = list(public_statement(manifest))
    if noise.law is not None:
        blocks.append(law_chart(changes(noise.law, 1), changes(noise.law, LARGE)))
    lead = f"Random noise was added to the counts, which may leave a count as it is. {_zeros(noise, manifest.swapped)}"
    return Part("protection", "How it was protected", lead, tuple(blocks))


def _zeros(noise: Noise, swapped: bool) -> str:
    if not noise.keeps_zeros:
        return "Zeros are perturbed as well: a listed cell may be empty, and one that is not listed may have people."
    if swapped:
        return (
            "An empty cell gets no noise; whether it was empty before households were swapped is not shown."
        )
    return "A count of zero stays zero: a listed cell is not empty."


def law_chart(one: Changes, many: Changes) -> Chart:
    """The probability of each change of a count of 1 and of a large one."""
    rows = [
        Point(change, p, kind)
        for kind, law in ((ONE_PERSON, one), (MANY, many))
        for change, p in sorted(law.items())
        if p >= LIKELY
    ]
    spread = sqrt(sum(change**2 * p for change, p in many.items()))
    says = (
        f"A large count stays as it is with probability {share(many.get(0, 0.0))} and is off by about"
        f" {decimal(spread)} (one"
        f" standard deviation); a count of 1 stays with probability {share(one.get(0, 0.0))}."
    )
    colours = {ONE_PERSON: ORANGE, MANY: BLUE}
    x, y = Axis("change of the count"), Axis("probability", "~%")
    return Chart(
        "noise", "How counts are changed", says, lambda width: columns(rows, colours, x, y, width), colours
    )


def changes(law: Law, size: int) -> Changes:
    """Change -> probability, for a count of this size."""
    row = law.row(size)
    return {value - size: p for value, p in zip(row.values.tolist(), row.p.tolist(), strict=True)}


def _units(manifest: Manifest) -> Iterator[str]:
    for unit, many in Counter(cube.unit for cube in manifest.cubes).items():
        yield f"{many} of {unit}"


def _counted(cube: CubeEntry) -> str:
    who = f"{cube.unit} where {cube.base}" if cube.base else cube.unit
    what = f"{cube.count} of {who}" if cube.count else who
    return f"{what}, weighted by {cube.weight}" if cube.weight else what


def public_caveats(manifest: Manifest) -> Part:
    """The caveats of the public page."""
    lead = "The numbers on this page come only from the published files and the published statement on the noise."
    caveats = [
        "Nothing here was computed from, or compared with, the confidential data.",
        "The attacks show what an outsider would believe, not what is true.",
        "Errors are those of the noise; the census has others, of coverage and of response.",
    ]
    if manifest.swapped:
        caveats.append("Swapping adds errors between places that are not part of the figures for the noise.")
    return Part("caveats", "What this page does not show", lead, (listing(caveats),))


def attack_part(found: OutsiderFindings) -> Part:
    """The results of the attacks, and why some could not run."""
    rows: list[tuple[str, str]] = []
    missing: list[str] = []
    for name, one in found.items():
        if isinstance(one, NotPossible):
            missing.append(f"{TITLES[name]}: {_why(one)}")
        else:
            rows.append((TITLES[name], " ".join(sentences(one))))
    lead = (
        f"{several(len(rows), 'attack was', 'attacks were')} run with only the public files;"
        " these are the results an outsider would see, without knowing which of them are right."
    )
    blocks: list[Block] = []
    if rows:
        blocks.append(
            table(
                "Attacks and their results",
                [Column("attack"), Column("what an outsider finds", As.LONG)],
                rows,
            )
        )
    if isinstance(found.averaging, AveragingFindings):
        blocks.append(_chances_chart(found.averaging))
    if missing:
        blocks += [heading("Not possible from the public files"), listing(missing)]
    if not rows and not missing:
        blocks.append(paragraph("All attacks were left out of this report.", "note"))
    return Part("attacks", "What can an outsider find out?", lead, tuple(blocks))


def _chances_chart(found: AveragingFindings) -> Chart:
    best, targets = found.methods[Method.WEIGHTED], found.targets
    ways = [
        ("published unchanged", found.baseline, GREY),
        ("by the best average", best.expected, BLUE),
    ]
    rows = [
        Bar(
            "Expected to be recovered exactly",
            value / targets if targets else 0.0,
            f"{count(value)} of {count(targets)}",
            name,
        )
        for name, value, _ in ways
    ]
    rows += [
        Bar(
            f"With a probability of {share(level)} or more",
            many / targets if targets else 0.0,
            count(many),
            ways[1][0],
        )
        for level, many in best.at_least.items()
    ]
    says = (
        f"Averaging is expected to recover {count(best.expected)} of {count(targets)} counts exactly;"
        f" {count(found.baseline)} are published unchanged."
    )
    colours = {name: colour for name, _, colour in ways}
    axis = Axis("share of all counts", "~%", None)
    title = "How many counts averaging recovers"
    return Chart("outsider-averaging", title, says, lambda width: bars(rows, colours, axis, width), colours)


def sentences(found: Finding) -> Iterator[str]:
    """The findings of an attack, in one or two sentences."""
    match found:
        case EstimateFindings():
            yield (
                f"{count(found.expected)} of {several(found.counts, 'count', 'counts')} are expected to be recovered"
                f" exactly by rounding the estimates, any one with a probability of at most {share(found.success)}."
            )
        case AveragingFindings():
            best = found.methods[Method.WEIGHTED]
            yield (
                f"{count(best.expected)} of {several(found.targets, 'count', 'counts')} are expected to be"
                f" recovered exactly, {count(best.beyond_baseline)} more than are published unchanged."
            )
        case LeastSquaresFindings():
            yield (
                f"All sums of all tables are fitted at once. If the fit is right about what is not listed,"
                f" {count(found.within_bounds.expected)} of {several(found.targets, 'count', 'counts')} are"
                f" recovered exactly, and {count(found.baseline)} are published unchanged."
            )
        case RemovalFindings():
            yield (
                f"{count(found.recovered)} of {several(found.cells, 'count', 'counts')} are taken as known when"
                " nearly certain counts are removed from the sums they belong to,"
                f" {count(found.changed)} of them other than published."
            )
        case KeyGapFindings():
            yield _gaps(found)
        case BoundFindings():
            yield from _bounds(found)
        case WeightFindings():
            yield (
                f"Whole weights leave one possible count in {count(found.certain)} of"
                f" {several(found.cells, 'small cell', 'small cells')} with a weighted sum,"
                f" and {found.left:.1f} on average."
            )
        case ExposedValues():
            yield (
                f"{count(found.alone)} of {several(found.cells, 'count', 'counts')} would disclose"
                " a person who is known to be the only possible one there."
            )
        case OutsiderDifferences():
            yield _differences(found)
        case _:
            yield from _about_records(found)


def _about_records(found: ReconstructionFindings | Disclosures) -> Iterator[str]:
    match found:
        case ReconstructionFindings():
            yield (
                f"For {several(found.areas, 'area', 'areas')} a solver reconstructed"
                f" {several(found.records, 'record', 'records')};"
                f" {count(found.certain)} of them ({share(found.r_certain)}) are certain."
            )
            added = found.r_certain - found.r_guessed
            yield (
                f"The best guess from the totals of these areas and from other areas has {share(found.r_guessed)}"
                " of these records: "
                + (
                    f"the solver adds {share(added)}."
                    if added > 0
                    else "the solver is certain of no more than that."
                )
            )
            stopped = found.status.get(Status.TIMEOUT, 0)
            if stopped:
                yield f"In {several(stopped, 'area', 'areas')} the solver reached its work limit."
        case Disclosures():
            rows = found.total.rows
            yield (
                f"{count(found.total.ones.seen)} counts of 1 are published;"
                f" {count(rows[RowKind.INDIVIDUAL].seen)} persons and"
                f" {count(rows[RowKind.GROUP].seen)} groups appear to share an attribute."
            )


def _gaps(found: KeyGapFindings) -> str:
    return (
        f"The noise of {several(found.tuples, 'total', 'totals')} is guessed from the gaps to their parts,"
        f" right in {share(found.chance)} on average; {share(found.unaided)} without the gaps."
    )


def _bounds(found: BoundFindings) -> Iterator[str]:
    yield f"Sums and totals prove that some count changed by at least {found.least_bound}."
    if found.bound is not None:
        yield (
            f"Assuming a largest change of {found.bound},"
            f" {several(found.pinned, 'true count', 'true counts')} can be deduced."
        )


def _differences(found: OutsiderDifferences) -> str:
    if not found.bases:
        return "No published population contains another: nothing was subtracted."
    small = sum(one.small for one in found.bases)
    return f"Subtracting populations gives {several(small, 'small difference', 'small differences')}, true or not."


def _why(one: NotPossible) -> str:
    return (one.cause or one.reason).replace("noise: its ", "the noise's ") + "."


TITLES = {
    "averaging": "Averaging",
    "least_squares": "Least squares",
    "removal": "Removal of noise, step by step",
    "key_gaps": "Gaps of totals",
    "bounds": "Bounds and margins",
    "weights": "Weighted tables",
    "bayes": "Posteriors",
    "differencing": "Subtraction",
    "reconstruction": "Reconstruction",
    "disclosure": "Small counts",
    "estimates": "Estimates",
}
