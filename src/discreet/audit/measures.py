"""Every measure of risk on one release, each computed on first use and cached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from discreet.audit import (
    averaging,
    bayes,
    bayes_histograms,
    differencing,
    disclosure,
    linkage,
    reconstruction,
    utility,
)
from discreet.audit.averaging import ExposedCell
from discreet.audit.bounds import BoundAttack, BoundJudgement, bound_attack
from discreet.audit.bounds import judge as judge_bounds
from discreet.audit.case import EXACT, Case, Earlier, variants
from discreet.audit.corrections import (
    Corrections,
    CorrectionsJudgement,
    corrections,
    judge_corrections,
)
from discreet.audit.differencing import (
    OutsiderNoise,
    Update,
    UpdateJudgement,
    difference_releases,
    judge_releases,
)
from discreet.audit.differencing_areas import (
    AreaDifferences,
    Crossing,
    MapDifferences,
    MapJudgement,
    difference_areas,
    difference_maps,
    judge_maps,
)
from discreet.audit.evidence import Published, read_once
from discreet.audit.key_gaps import KeyGapJudgement, KeyGaps, key_gaps
from discreet.audit.key_gaps import judge as judge_key_gaps
from discreet.audit.least_squares import LeastSquares, least_squares, most_recovered
from discreet.audit.ptable_change import PTableChange, PTableChangeJudgement, ptable_change
from discreet.audit.ptable_change import judge as judge_ptable_change
from discreet.audit.redundancy import Mode, programme_redundancy
from discreet.audit.removal import NoiseRemoval, remove_noise
from discreet.audit.sparsity import Sparsity, sparsities
from discreet.io.progress import Progress
from discreet.maths.attacks.redundancy import Redundancy
from discreet.maths.noise.additive import Law, LawKind
from discreet.maths.noise.certificates import fixed_zeros_delta, same_participants_delta
from discreet.perturb.cell_key import CellKeyMechanism
from discreet.perturb.noise import Guarantee
from discreet.programme.cube import Signature
from discreet.programme.gates import DifferencingGate, PosteriorGate, ReconstructionGate
from discreet.programme.noise import KeyKind
from discreet.programme.variables import Variable

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
USUAL_POSTERIOR = PosteriorGate(0.5, 0.95, 0.0, 10)
EXPOSED = 5  # statistics of each universe that are listed
SMALL_AREAS = 10
PERSONS = "persons"
LISTED = 20


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """A reconstruction of sampled areas under one protection, judged by the true records."""

    protection: str
    made: reconstruction.ReconstructionFindings
    judged: reconstruction.JudgedReconstruction
    confirmed: linkage.Confirmed

    def as_json(self) -> Mapping[str, object]:
        """The document: areas and records are the true ones, against which the reconstruction is judged."""
        return {
            "protection": self.protection,
            **vars(self.made),
            **self.judged.as_json(),
            **self.confirmed.as_json(),
        }


@dataclass(frozen=True)
class CurvePoint:
    """The delta of one count at an epsilon."""

    epsilon: float
    delta: float


@dataclass(frozen=True, kw_only=True)
class CellPrivacy:
    """The exact privacy loss of one count."""

    cell_curve: tuple[CurvePoint, ...]
    fixed_zeros_delta: float  # 0 where zeros are perturbed
    same_participants_delta: float  # 0 where the noise of every count is independent


@dataclass(frozen=True)
class Privacy:
    """The guarantee where there is one, and the exact curve of one cell's law where it is known."""

    guarantee: Guarantee | None
    cell: CellPrivacy | None

    def as_json(self) -> Mapping[str, object]:
        """The document, without what is missing."""
        stated = {} if self.guarantee is None else self.guarantee.figures()
        return {**stated, **({} if self.cell is None else vars(self.cell))}


@dataclass(frozen=True, kw_only=True)
class RepeatedStatistic:
    """A statistic of the programme, with t representations of k cells in all."""

    statistic: str
    t: int
    k: float
    k_over_t2: float
    riskiest_k_over_t2: float
    best: float  # the variance with the best weights, in units of one cell's


@dataclass(frozen=True)
class RepeatedStatistics:
    """The statistics of one population that averaging threatens most, by the programme only."""

    counted: str
    tables: int
    exposed: tuple[RepeatedStatistic, ...]


@dataclass(frozen=True)
class ReleaseDifference:
    """What an earlier release and this one disclose together, judged where the true counts of both are known."""

    release: str  # the earlier one
    seen: Update
    judged: UpdateJudgement | None
    corrections: Corrections  # whom the pair exposes
    corrections_judged: CorrectionsJudgement | None

    def as_json(self) -> Mapping[str, object]:
        """The document: what is seen, then how many of these are true."""
        return {
            "release": self.release,
            **vars(self.seen),
            "judged": self.judged,
            "corrections": self.corrections,
            "corrections_judged": self.corrections_judged,
        }


@dataclass(frozen=True)
class PTableDifference:
    """What another p-table under the same secret reveals, judged where the earlier release's true counts are known."""

    seen: PTableChange
    judged: PTableChangeJudgement | None

    def as_json(self) -> Mapping[str, object]:
        """The document: what is seen, then how much of it is true."""
        return {**vars(self.seen), "judged": self.judged}


@dataclass(frozen=True)
class MapDifference:
    """What the areas of two geographies disclose to an attacker with a map, judged by the true counts."""

    seen: MapDifferences
    judged: MapJudgement

    def as_json(self) -> Mapping[str, object]:
        """The document: what is seen, then how many of these are true."""
        return {**vars(self.seen), "judged": self.judged}


class Measures:
    """The measures of one case, with an earlier release and a map where these are given."""

    def __init__(
        self,
        case: Case,
        progress: Progress,
        reconstruction_rule: ReconstructionGate | None,
        earlier: Earlier | None = None,
        lookup: Crossing | None = None,
    ) -> None:
        self.case, self._progress = replace(case, published=read_once(case.published)), progress
        self._rule, self._lookup = reconstruction_rule, lookup
        self._earlier = None if earlier is None else replace(earlier, published=read_once(earlier.published))

    @cached_property
    def averaging(self) -> averaging.Averaging:
        """The averaging attack."""
        return averaging.average(self.case.published, self._progress, truth=self.case.truth)

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The strongest linear adversary."""
        return least_squares(self.case.published, self._progress, truth=self.case.truth)

    @cached_property
    def recovered(self) -> tuple[ExposedCell, ...]:
        """The most exposed counts by averaging or least squares, whichever is stronger: what verdicts use."""
        return most_recovered(self.averaging, self.least_squares)

    @cached_property
    def sparsity(self) -> tuple[Sparsity, ...]:
        """How sparse every cross-tabulation is."""
        return tuple(sparsities(self.case.published, self.case.truth))

    @cached_property
    def removal(self) -> NoiseRemoval:
        """The successive removal of noise, which begins with the averages."""
        return remove_noise(self.case.published, self.averaging, progress=self._progress)

    @cached_property
    def key_gaps(self) -> KeyGaps:
        """The gap attack on cell keys, with the lookup of the office."""
        chosen = self.case.mechanism
        lookup = chosen.lookup if isinstance(chosen, CellKeyMechanism) else None
        return key_gaps(self.case.published, lookup, self._progress)

    @cached_property
    def key_gaps_judged(self) -> KeyGapJudgement:
        """How many noises of totals it guesses right."""
        chosen = self.case.mechanism
        keys = chosen.keys if isinstance(chosen, CellKeyMechanism) else KeyKind.PERMUTED
        return judge_key_gaps(self.key_gaps, self.case.truth, keys, self._progress)

    @cached_property
    def bounds(self) -> BoundAttack:
        """Bound and margins, the bound being known."""
        return bound_attack(self.case.published, progress=self._progress)

    @cached_property
    def bounds_judged(self) -> BoundJudgement:
        """How many deductions are right."""
        case = self.case
        chosen = case.mechanism
        sums = isinstance(chosen, CellKeyMechanism) and chosen.keys is KeyKind.PLAIN
        lookup = chosen.lookup if isinstance(chosen, CellKeyMechanism) and sums else None
        return judge_bounds(self.bounds, case.published, case.truth, case.published.noise, lookup)

    @cached_property
    def disclosures(self) -> disclosure.Disclosures:
        """Small counts and shared attributes, seen and true."""
        rule = disclosure.DisclosureRule(areas=self.case.published.places)
        return disclosure.judge(self.case.published, self.case.truth, rule, self._progress)

    @cached_property
    def utility(self) -> utility.Utility:
        """The utility of the release, against the true counts."""
        rule = utility.UtilityRule(areas=self.case.published.places)
        return utility.utility(self.case.published, self.case.truth, rule, self._progress)

    @cached_property
    def base_differences(self) -> tuple[differencing.Judgement, ...]:
        """Differences of population bases."""
        return differencing.judge(self.case.published, self.case.truth, progress=self._progress)

    @cached_property
    def release_difference(self) -> ReleaseDifference | None:
        """What changed since the earlier release, and how many of the changes are true; None without one."""
        earlier, case = self._earlier, self.case
        if earlier is None:
            return None
        pair = (earlier.published, case.published)
        follows = earlier.same_secret and earlier.same_ptable
        seen = difference_releases(*pair, same_keys=follows, progress=self._progress)
        exposed = corrections(
            *pair,
            same_secret=earlier.same_secret,
            same_ptable=earlier.same_ptable,
            progress=self._progress,
        )
        judged, really = None, None
        if earlier.truth is not None:
            truths = (earlier.truth, case.truth)
            judged = judge_releases(*pair, truths, progress=self._progress)
            really = judge_corrections(exposed, *pair, truths)
        return ReleaseDifference(earlier.published.name, seen, judged, exposed, really)

    def ptable_change(self) -> PTableDifference | None:
        """What two p-tables under one secret reveal; None without an earlier release of the secret with another one."""
        earlier, case = self._earlier, self.case
        if earlier is None or not earlier.same_secret or earlier.same_ptable:
            return None
        if not all(one.noise.kind is LawKind.CELL_KEY for one in (earlier.published, case.published)):
            return None
        found = ptable_change(earlier.published, case.published, self._progress)
        judged = None if earlier.truth is None else judge_ptable_change(found, earlier.truth)
        return PTableDifference(found.findings, judged)

    def map_difference(self) -> MapDifference | None:
        """Differences of areas that a map suggests, and how many are true; None without a map."""
        if self._lookup is None:
            return None
        seen = difference_maps(self.case.published, self._lookup, progress=self._progress)
        return MapDifference(
            seen, judge_maps(self.case.published, self.case.truth, self._lookup, progress=self._progress)
        )

    def posterior(self, gate: PosteriorGate) -> bayes.BayesScan:
        """The Bayesian adversary in every small cell."""
        belief = bayes.Belief(gate.prior, gate.above, gate.largest)
        return bayes.scan(self.case.published, self.case.truth, belief, progress=self._progress)

    def levels(self, gate: PosteriorGate) -> list[bayes.LevelsScan]:
        """The same with all levels of each place together."""
        belief = bayes.Belief(gate.prior, gate.above, gate.largest)
        seen, truth = self.case.published, self.case.truth
        return [
            bayes.scan_levels(seen, truth, belief, place, progress=self._progress)
            for place in seen.places
            if self._is_axis(place)
        ]

    def histograms(self, gate: PosteriorGate) -> list[bayes_histograms.HistogramScan]:
        """The attack on the histograms of small areas."""
        return [
            bayes_histograms.attack_histograms(
                self.case.published,
                self.case.truth,
                bayes_histograms.AreaAttack(place, gate=gate.above),
                self._progress,
            )
            for place in self.case.published.places
            if self._is_axis(place)
        ]

    def area_differences(self, gate: DifferencingGate) -> list[AreaDifferences]:
        """Differences of pairs of geographies, with the noise of this release."""
        noise = OutsiderNoise(self.case.published.noise)
        return [
            difference_areas(
                self._crossing(a, b),
                gate.threshold,
                noise=noise.of(_areas_of(a), _areas_of(b)),
                alpha=gate.above,
                most=LISTED,
            )
            for a, b in gate.pairs
        ]

    def _crossing(self, a: Variable, b: Variable) -> Crossing:
        """Count the persons in each pair of areas."""
        columns = self.case.columns(PERSONS, [a.name, b.name], self._progress)
        width = len(b.codelist.leaves)
        pair = columns[a.name].astype(np.int64) * width + columns[b.name]
        pieces, counts = np.unique(pair, return_counts=True)
        return Crossing(
            (a.name, b.name),
            (a.codelist.leaf_codes, b.codelist.leaf_codes),
            pieces // width,
            pieces % width,
            counts.astype(np.int64),
        )

    @cached_property
    def rebuilt(self) -> Rebuilt | None:
        """The reconstruction of sampled areas of the release; None where no table has the place."""
        if not self._place:
            return None
        # fitted tables agree with each other: taken as exact they always have a solution
        bound = None if self.case.published.hierarchy is None else 0
        return self._rebuild("as released", self.case.published, bound)

    def rebuilt_otherwise(self) -> tuple[list[Rebuilt], dict[str, str]]:
        """The same areas under no protection, swapping only, noise only, and a privacy guarantee.

        Also the protections that are not available, with the reason.
        """
        left_out: dict[str, str] = {}
        if not self._place:
            return [], left_out
        found = [
            self._rebuild(name, seen, 0 if seen.noise is EXACT else None)
            for name, seen in variants(self.case, self._place, left_out)
        ]
        return found, left_out

    @cached_property
    def _place(self) -> str:
        place = self._rule.place if self._rule else ""
        places = (place,) if place else self.case.published.places
        return next((one for one in places if self._is_axis(one, PERSONS)), "")

    def _rebuild(self, protection: str, seen: Published, bound: int | None = None) -> Rebuilt:
        rule = self._rule
        limits = reconstruction.SolverLimits(
            work=rule.seconds if rule else 5.0,
            workers=self.case.run.threads,
            most_areas=rule.areas if rule else SMALL_AREAS,
        )
        made = reconstruction.reconstruct(
            seen,
            self._place,
            variables=(rule.variables or None) if rule else None,
            bound=bound,
            limits=limits,
            counted=PERSONS,
            progress=self._progress,
        )
        names = made.space.variables
        records = self._records((self._place, *names))
        judged = reconstruction.judge(made, records)
        known = (rule.quasi if rule else ()) or names[:-1] or names
        file = linkage.made_auxiliary(made, records, known, rule.errors if rule else None)
        confirmed = linkage.confirm(linkage.link(made, file), records, judged)
        return Rebuilt(protection, made.findings(), judged, confirmed)

    def _records(self, names: tuple[str, ...]) -> reconstruction.TrueRecords:
        if self._held is None or set(self._held.columns) != set(names):
            codelists = {name: self.case.programme.variables[name].codelist for name in names}
            self._held = reconstruction.TrueRecords(
                self.case.columns(PERSONS, names, self._progress), codelists
            )
        return self._held

    _held: reconstruction.TrueRecords | None = None

    def _is_axis(self, variable: str, unit: str | None = None) -> bool:
        return any(
            axis.variable == variable
            for universe in self.case.published.universes
            if unit is None or (universe.unit == unit and not universe.base and not universe.count)
            for table in universe.tables
            for axis in table.cube.axes
        )

    @cached_property
    def privacy(self) -> Privacy:
        """The guarantee where there is one, and the exact curve of one cell's law."""
        law = self.case.published.noise.law
        return Privacy(self.case.published.noise.guarantee, None if law is None else self._cell_privacy(law))

    def _cell_privacy(self, law: Law) -> CellPrivacy:
        noise = self.case.published.noise
        return CellPrivacy(
            cell_curve=tuple(CurvePoint(at, law.delta(at)) for at in EPSILONS),
            fixed_zeros_delta=fixed_zeros_delta(law) if noise.keeps_zeros else 0.0,
            same_participants_delta=max(same_participants_delta(law, count) for count in range(1, 10))
            if noise.same_noise
            else 0.0,
        )

    @cached_property
    def redundancy(self) -> tuple[RepeatedStatistics, ...]:
        """The statistics that averaging threatens most, by the programme only: by cubes that are published whole."""
        programme = self.case.programme
        whole = replace(programme, cubes=tuple(cube for cube in programme.cubes if cube.shown is None))
        return tuple(
            RepeatedStatistics(
                universe.counted,
                universe.tables,
                tuple(_repeated(one) for one in sorted(universe.statistics, key=_risk)[:EXPOSED]),
            )
            for universe in programme_redundancy(whole, Mode.NESTED)
        )


def _repeated(one: Redundancy) -> RepeatedStatistic:
    return RepeatedStatistic(
        statistic=" x ".join(level.name for level in sorted(one.statistic)) or "total",
        t=one.same_noise.all.t,
        k=float(one.same_noise.all.k),
        k_over_t2=one.same_noise.all.ratio,
        riskiest_k_over_t2=one.same_noise.riskiest.ratio,
        best=one.same_noise.best.variance,
    )


def _areas_of(place: Variable) -> Signature:
    """The cross-tabulation of persons by the areas of a geography."""
    return Signature(PERSONS, "", "", ((place.name, place.codelist.depth),))


def _risk(one: Redundancy) -> float:
    return one.same_noise.best.variance
