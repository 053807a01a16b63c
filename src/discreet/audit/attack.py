"""The attacks of an outsider, who has only the public files of a release.

An attack that needs something that is not public reports what is missing; none reads a true count.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar

from discreet.audit.averaging import Averaging, AveragingFindings, average
from discreet.audit.bayes import Belief, ExposedValues, exposed
from discreet.audit.bounds import BoundFindings, bound_attack
from discreet.audit.corrections import Corrections, corrections
from discreet.audit.differencing import Subtraction, Update, difference, difference_releases
from discreet.audit.differencing_areas import Crossing, MapDifferences, difference_maps
from discreet.audit.disclosure import DisclosureRule, Disclosures, disclosures
from discreet.audit.estimates import EstimateFindings, attack_estimates
from discreet.audit.evidence import Published, read_once
from discreet.audit.key_gaps import KeyGapFindings, key_gaps
from discreet.audit.least_squares import LeastSquaresFindings, least_squares
from discreet.audit.ptable_change import PTableChange, ptable_change
from discreet.audit.reconstruction import ReconstructionFindings, SolverLimits, reconstruct
from discreet.audit.removal import RemovalFindings, remove_noise
from discreet.audit.weights import WeightFindings, attack_weights
from discreet.errors import Mistakes, mistake
from discreet.io.progress import Progress
from discreet.maths.noise.additive import LawKind

OF_CELL_NOISE = {
    "redundancy": "the same noise is in no two tables",
    "averaging": "tables add up: there is nothing to average; see the estimates",
    "least_squares": "the estimates are the least squares already",
    "removal": "no count has noise of its own",
    "key_gaps": "there are no cell keys",
    "bounds": "the noise has no bound",
    "weights": "there are no weights",
    "bayes": "no count has noise of its own; an audit attacks the measurements instead",
    "differencing": "tables of one histogram have no other bases",
    "region": "it is of the cell key method",
}  # measure or attack -> why it does not apply to a hierarchical release

ATTACKS = (
    "averaging",
    "least_squares",
    "removal",
    "key_gaps",
    "bounds",
    "weights",
    "bayes",
    "differencing",
    "reconstruction",
    "disclosure",
    "estimates",
)

LARGEST_BOUND = 1_000  # an outsider who assumes larger changes learns nothing

_Found = TypeVar("_Found")


@dataclass(frozen=True, eq=False)
class Outsider:
    """What the attacker has, and the effort to spend."""

    published: Published
    earlier: Published | None  # an earlier release of the same population
    same_secret: bool  # whether both were made with one secret
    lookup: Crossing | None  # which areas of two geographies overlap, from a public map
    bound: int | None  # an assumed bound of the noise
    place: str | None
    areas: int
    seconds: float
    threads: int
    progress: Progress
    same_ptable: bool = True  # whether both have the same noise for the same people, if they have one secret

    def __post_init__(self) -> None:
        if self.bound is not None and not 0 <= self.bound <= LARGEST_BOUND:
            raise mistake(
                "", "--bound", f"{self.bound:.6g}", f"give a largest change of 0 to {LARGEST_BOUND:,}"
            )


@dataclass(frozen=True)
class NotPossible:
    """An attack or a measure that cannot be run, and why."""

    reason: str
    cause: str = ""  # the same without a remedy, where there is one

    @classmethod
    def because(cls, missing: Mistakes) -> NotPossible:
        """What is missing, as a reason."""
        first = missing.problems[0]
        return cls(str(missing), ": ".join(part for part in (first.file, first.key, first.value) if part))

    def as_json(self) -> Mapping[str, object]:
        """The document."""
        return {"not_possible": self.reason}


@dataclass(frozen=True)
class OutsiderDifferences:
    """The results of subtracting public tables; releases and maps only where another release or a map is given."""

    bases: tuple[Subtraction, ...]
    earlier_release: Update | None = None
    ptable_change: PTableChange | None = None
    maps: MapDifferences | None = None
    corrections: Corrections | None = None  # whom the earlier release and this one expose together

    def as_json(self) -> Mapping[str, object]:
        """The document; what was not compared is left out."""
        return {name: value for name, value in vars(self).items() if value is not None}


Finding = (
    AveragingFindings
    | LeastSquaresFindings
    | RemovalFindings
    | KeyGapFindings
    | BoundFindings
    | WeightFindings
    | ExposedValues
    | OutsiderDifferences
    | ReconstructionFindings
    | Disclosures
    | EstimateFindings
)


@dataclass(frozen=True, kw_only=True, eq=False)
class OutsiderFindings:
    """What each attack found, or why it could not run; None where it was left out."""

    averaging: AveragingFindings | NotPossible | None = None
    least_squares: LeastSquaresFindings | NotPossible | None = None
    removal: RemovalFindings | NotPossible | None = None
    key_gaps: KeyGapFindings | NotPossible | None = None
    bounds: BoundFindings | NotPossible | None = None
    weights: WeightFindings | NotPossible | None = None
    bayes: ExposedValues | NotPossible | None = None
    differencing: OutsiderDifferences | NotPossible | None = None
    reconstruction: ReconstructionFindings | NotPossible | None = None
    disclosure: Disclosures | NotPossible | None = None
    estimates: EstimateFindings | NotPossible | None = None  # only of a hierarchical release

    def items(self) -> Iterator[tuple[str, Finding | NotPossible]]:
        """The attacks that were tried, by name."""
        return ((name, found) for name, found in vars(self).items() if found is not None)

    def as_json(self) -> Mapping[str, object]:
        """The document; attacks that were left out are not in it."""
        return dict(self.items())


def attack(outsider: Outsider, without: Collection[str] = ()) -> OutsiderFindings:
    """Run every attack except those left out; one that cannot run reports what is missing."""
    for name in without:
        if name not in ATTACKS:
            raise mistake("", "--without", name, f"choose from {', '.join(ATTACKS)}")

    outsider = replace(
        outsider,
        published=read_once(outsider.published),
        earlier=None if outsider.earlier is None else read_once(outsider.earlier),
    )
    averages = cache(_averaging)
    hierarchical = outsider.published.hierarchy is not None

    def tried(name: str, run: Callable[[Outsider], _Found]) -> _Found | NotPossible | None:
        if name in without:
            return None
        if hierarchical and name in OF_CELL_NOISE:
            return NotPossible(OF_CELL_NOISE[name])
        try:
            return run(outsider)
        except Mistakes as missing:
            return NotPossible.because(missing)

    return OutsiderFindings(
        averaging=tried("averaging", lambda outsider: averages(outsider).findings()),
        least_squares=tried("least_squares", _least_squares),
        removal=tried(
            "removal",
            lambda outsider: _removal(outsider, None if "averaging" in without else averages(outsider)),
        ),
        key_gaps=tried("key_gaps", _key_gaps),
        bounds=tried("bounds", _bounds),
        weights=tried("weights", _weights) if outsider.published.weighted else None,
        bayes=tried("bayes", _bayes),
        differencing=tried("differencing", _differencing),
        reconstruction=tried("reconstruction", _reconstruction),
        disclosure=tried("disclosure", _disclosure),
        estimates=tried("estimates", _estimates) if hierarchical else None,
    )


def _averaging(outsider: Outsider) -> Averaging:
    return average(outsider.published, outsider.progress)


def _least_squares(outsider: Outsider) -> LeastSquaresFindings:
    return least_squares(outsider.published, outsider.progress).findings()


def _removal(outsider: Outsider, averages: Averaging | None) -> RemovalFindings:
    return remove_noise(outsider.published, averages, progress=outsider.progress).findings()


def _key_gaps(outsider: Outsider) -> KeyGapFindings:
    return key_gaps(outsider.published, progress=outsider.progress).findings()


def _bounds(outsider: Outsider) -> BoundFindings:
    return bound_attack(outsider.published, outsider.bound, progress=outsider.progress).findings()


def _weights(outsider: Outsider) -> WeightFindings:
    return attack_weights(outsider.published, bound=outsider.bound, progress=outsider.progress).findings()


def _bayes(outsider: Outsider) -> ExposedValues:
    return exposed(outsider.published, Belief(), outsider.progress)


def _differencing(outsider: Outsider) -> OutsiderDifferences:
    seen, earlier, lookup, progress = outsider.published, outsider.earlier, outsider.lookup, outsider.progress
    follows = outsider.same_secret and outsider.same_ptable
    return OutsiderDifferences(
        difference(seen, progress=progress),
        None if earlier is None else difference_releases(earlier, seen, same_keys=follows, progress=progress),
        None if earlier is None or follows else _ptable_change(outsider, earlier),
        None if lookup is None else difference_maps(seen, lookup, progress=progress),
        None
        if earlier is None
        else corrections(
            earlier,
            seen,
            same_secret=outsider.same_secret,
            same_ptable=outsider.same_ptable,
            progress=progress,
        ),
    )


def _ptable_change(outsider: Outsider, earlier: Published) -> PTableChange | None:
    """None where nothing connects the noises: by another secret, or by another method."""
    noises = (earlier.noise, outsider.published.noise)
    if not outsider.same_secret or not all(noise.kind is LawKind.CELL_KEY for noise in noises):
        return None
    return ptable_change(earlier, outsider.published, outsider.progress).findings


def _reconstruction(outsider: Outsider) -> ReconstructionFindings:
    limits = SolverLimits(work=outsider.seconds, workers=outsider.threads, most_areas=outsider.areas)
    place = outsider.place or next(iter(outsider.published.places), None)
    if place is None:
        raise mistake("", "place", "the release names none", "give the variable of areas with --place")
    bound = outsider.bound
    if bound is None and outsider.published.hierarchy is not None:
        bound = 0  # fitted tables agree with each other: taken as exact they always have a solution
    return reconstruct(
        outsider.published, place, bound=bound, limits=limits, progress=outsider.progress
    ).findings()


def _estimates(outsider: Outsider) -> EstimateFindings:
    return attack_estimates(outsider.published)


def _disclosure(outsider: Outsider) -> Disclosures:
    rule = DisclosureRule(areas=outsider.published.places)
    return disclosures(outsider.published, rule, outsider.progress)
