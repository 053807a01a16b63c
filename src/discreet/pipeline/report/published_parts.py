"""What was published and what the public is told of its protection; everything here stands in the public files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import sqrt

from discreet.audit.published import LARGE, KnownNoise
from discreet.maths.laws import Law
from discreet.page.charts import Chart
from discreet.page.markup import As, Column, Html, Tile, folded, paragraph, table
from discreet.page.numbers import count, decimal, several, share
from discreet.page.shapes import Axis, Point, columns
from discreet.page.skeleton import Block, Part
from discreet.page.style import BLUE, ORANGE
from discreet.release.manifest import CubeEntry, Manifest

FEW_TABLES = 20  # more are shown on demand
LIKELY = 0.0005  # changes that are rarer are not drawn
Changes = Mapping[int, float]

ONE_PERSON, MANY = "a count of 1", "a large count"


def title_of(manifest: Manifest) -> str:
    """What a release calls itself."""
    return manifest.title or manifest.name


def origin_of(manifest: Manifest) -> str:
    """Whose release it is."""
    told = [manifest.agency, f"version {manifest.version}" if manifest.version else ""]
    return ", ".join(filter(None, told))


def size_tiles(manifest: Manifest) -> list[Tile]:
    """How much was published."""
    cells = sum(cube.cells for cube in manifest.cubes)
    return [
        Tile("Tables published", count(len(manifest.cubes)), ", ".join(_units(manifest))),
        Tile("Counts published", count(cells), "zeros are not listed"),
    ]


def published_part(manifest: Manifest) -> Part:
    """The tables."""
    cells = sum(cube.cells for cube in manifest.cubes)
    lead = (
        f"{several(len(manifest.cubes), 'table', 'tables')} with {several(cells, 'count', 'counts')} above zero"
        f" can be read by anybody; whatever is said below is about these."
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


def public_words(manifest: Manifest) -> Iterator[Html]:
    """The statement that goes with the release."""
    yield paragraph(manifest.noise.sentence())
    if manifest.swapped:
        yield paragraph(
            "Before counting, some households at risk exchanged their places with similar ones elsewhere."
            " How many, and"
            " which, is not published."
        )
    else:
        yield paragraph("No households were swapped before counting.")


def protection_part(manifest: Manifest, noise: KnownNoise) -> Part:
    """How the public is told that it was protected."""
    blocks: list[Block] = list(public_words(manifest))
    if noise.law is not None:
        blocks.append(law_chart(changes(noise.law, 1), changes(noise.law, LARGE)))
    zeros = " A count of zero stays zero." if noise.keeps_zeros else " Zeros are perturbed as well."
    lead = f"Every count was changed by random noise so that no count can be taken for exactly true.{zeros}"
    return Part("protection", "How it was protected", lead, tuple(blocks))


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
