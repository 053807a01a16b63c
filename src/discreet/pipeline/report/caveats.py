"""What a reader of the report must not conclude; it owns the words, for the office and for the public."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from discreet.page.markup import listing
from discreet.page.skeleton import Part
from discreet.release.manifest import Manifest

Section = Mapping[str, Any]


def caveats_part(found: Mapping[str, Section]) -> Part:
    """For the office."""
    lead = (
        "A report shows what known attacks find in this release with the effort they were given; it proves"
        " no safety beyond that."
    )
    return Part("caveats", "What this report does not say", lead, (listing(_office(found)),))


def _office(found: Mapping[str, Section]) -> Iterator[str]:
    yield (
        "Attacks that nobody has thought of yet are not among these. Other files about the same people make"
        " every attack stronger."
    )
    yield (
        "Predictions assume the law of the noise; what was found is one draw of it. Another secret would"
        " give other numbers."
    )
    if "bayes" in found:
        yield (
            "Posteriors are those of somebody who knows everybody else in a cell: a worst case, not a"
            " typical intruder."
        )
    if "reconstruction" in found and "released" in found["reconstruction"]:
        one = found["reconstruction"]["released"]
        yield (
            f"Records were rebuilt in {one['areas']} sampled areas with a time limit; other areas, more time or more"
            " variables may give more."
        )
    cut = [
        name for name in ("tables_cut", "tables_left_out", "tables_unfinished") if _bounds(found).get(name)
    ]
    if cut:
        yield "Some tables were too large for the attack on bounds to be finished; audit.json names them."
    left = found.get("averaging", {}).get("attack", {}).get("left_out")
    if left:
        yield f"Averaging left out {sum(left.values()):,} counts: {', '.join(left)}."
    missing = [name for name in EVERYTHING if name not in found]
    if missing:
        yield f"Left out of this report: {', '.join(missing)}."
    yield "Weighted sums are not attacked."


def _bounds(found: Mapping[str, Section]) -> Section:
    attack: Section = found.get("bounds", {}).get("attack", {})
    return attack


def public_caveats(manifest: Manifest) -> Part:
    """For everybody."""
    lead = "The numbers on this page come from the published files and the published statement on the noise alone."
    told = [
        "Nothing here was computed from, or compared with, the confidential data.",
        "The attacks say what an outsider would believe, not what is true.",
        "Errors are those of the noise; the census has others, of coverage and of answers.",
    ]
    if manifest.swapped:
        told.append("Swapping adds errors between places that are not part of the figures for the noise.")
    return Part("caveats", "What this page does not say", lead, (listing(told),))


EVERYTHING = (
    "redundancy",
    "averaging",
    "bounds",
    "privacy",
    "bayes",
    "differencing",
    "reconstruction",
    "disclosure",
    "utility",
    "region",
)
