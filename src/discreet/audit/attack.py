"""The attacks of an outsider, from the public files of a release alone.

It owns which attacks there are, and says of one that needs what is not public that it does; none sees a true count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.audit.averaging import average
from discreet.audit.bayes import Belief, exposed
from discreet.audit.bounds import bound_attack
from discreet.audit.differencing import difference, difference_releases
from discreet.audit.differencing_areas import Crossing, difference_maps
from discreet.audit.disclosure import DisclosureRule, disclosures
from discreet.audit.evidence import Published
from discreet.audit.reconstruction import Limits, reconstruct
from discreet.errors import Mistakes, mistake
from discreet.io.progress import Progress

Section = dict[str, Any]


@dataclass(frozen=True)
class Outsider:
    """What the attacker holds and how much effort goes into it."""

    published: Published
    earlier: Published | None  # an earlier release of the same population
    same_secret: bool  # whether both were made with one secret
    lookup: Crossing | None  # which areas of two geographies overlap, from a public map
    bound: int | None  # a bound of the noise that is supposed
    place: str | None
    areas: int
    seconds: float
    threads: int
    progress: Progress


def attack(outsider: Outsider, without: Collection[str] = ()) -> dict[str, Section]:
    """Run every attack but those left out; one that lacks something public says what."""
    for name in without:
        if name not in ATTACKS:
            raise mistake("", "--without", name, f"choose from {', '.join(ATTACKS)}")
    found: dict[str, Section] = {}
    for name, run in ATTACKS.items():
        if name in without:
            continue
        try:
            found[name] = run(outsider)
        except Mistakes as missing:
            found[name] = {"not_possible": str(missing)}
    return found


def _averaging(outsider: Outsider) -> Section:
    return average(outsider.published, outsider.progress).summary()


def _bounds(outsider: Outsider) -> Section:
    return bound_attack(outsider.published, outsider.bound, progress=outsider.progress).summary()


def _bayes(outsider: Outsider) -> Section:
    return exposed(outsider.published, Belief(), outsider.progress).summary()


def _differencing(outsider: Outsider) -> Section:
    seen, progress = outsider.published, outsider.progress
    told: Section = {"bases": [one.summary() for one in difference(seen, progress=progress)]}
    if outsider.earlier is not None:
        update = difference_releases(
            outsider.earlier, seen, same_keys=outsider.same_secret, progress=progress
        )
        told["earlier_release"] = update.summary()
    if outsider.lookup is not None:
        told["maps"] = difference_maps(seen, outsider.lookup, progress=progress).summary()
    return told


def _reconstruction(outsider: Outsider) -> Section:
    limits = Limits(work=outsider.seconds, workers=outsider.threads, most_areas=outsider.areas)
    place = outsider.place or next(iter(outsider.published.places), None)
    if place is None:
        raise mistake("", "place", "the release names none", "give the variable of areas with --place")
    return reconstruct(
        outsider.published, place, bound=outsider.bound, limits=limits, progress=outsider.progress
    ).summary()


def _disclosure(outsider: Outsider) -> Section:
    rule = DisclosureRule(areas=outsider.published.places)
    return disclosures(outsider.published, rule, outsider.progress).summary()


ATTACKS: Mapping[str, Callable[[Outsider], Section]] = {
    "averaging": _averaging,
    "bounds": _bounds,
    "bayes": _bayes,
    "differencing": _differencing,
    "reconstruction": _reconstruction,
    "disclosure": _disclosure,
}
