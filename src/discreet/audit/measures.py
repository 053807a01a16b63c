"""Every measure of risk on one release, each worked out when it is asked for and only once.

It owns how the measures are called for a whole release; the measures themselves are in audit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

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
from discreet.audit.bounds import BoundAttack, BoundJudgement, bound_attack
from discreet.audit.bounds import judge as judge_bounds
from discreet.audit.case import EXACT, Case, variants
from discreet.audit.differencing import OutsiderNoise
from discreet.audit.differencing_areas import AreaDifferences, Crossing, difference_areas
from discreet.audit.evidence import Published
from discreet.audit.redundancy import Mode, programme_redundancy
from discreet.io.progress import Progress
from discreet.maths.attacks.redundancy import Redundancy
from discreet.maths.noise.certificates import fixed_zeros_delta, same_participants_delta
from discreet.perturb.private import PrivateMechanism
from discreet.programme.cube import Signature
from discreet.programme.gates import DifferencingGate, PosteriorGate, ReconstructionGate
from discreet.programme.noise import Claim
from discreet.programme.variables import Variable

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
USUAL_POSTERIOR = PosteriorGate(0.5, 0.95, 0.0, 10)
EXPOSED = 5  # statistics of each universe that are told
SMALL_AREAS = 10
PERSONS = "persons"
LISTED = 20


@dataclass(frozen=True, eq=False)
class Rebuilt:
    """A reconstruction of sampled areas under one protection, judged by the true records."""

    protection: str
    made: reconstruction.Reconstruction
    judged: reconstruction.Judged
    confirmed: linkage.Confirmed

    def summary(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "protection": self.protection,
            **self.made.summary(),
            **self.judged.summary(),
            **self.confirmed.summary(),
        }


class Measures:
    """The measures of one case."""

    def __init__(
        self, case: Case, progress: Progress, reconstruction_rule: ReconstructionGate | None
    ) -> None:
        self.case, self._progress = case, progress
        self._rule = reconstruction_rule

    @cached_property
    def averaging(self) -> averaging.Averaging:
        """The averaging attack."""
        return averaging.average(self.case.published, self._progress)

    @cached_property
    def bounds(self) -> BoundAttack:
        """Bound and margins, the bound being known."""
        return bound_attack(self.case.published, progress=self._progress)

    @cached_property
    def bounds_judged(self) -> BoundJudgement:
        """How much of it is true."""
        case = self.case
        return judge_bounds(self.bounds, case.published, case.truth, case.published.noise)

    @cached_property
    def disclosures(self) -> disclosure.Disclosures:
        """Small counts and shared attributes, seen and true."""
        rule = disclosure.DisclosureRule(areas=self.case.published.places)
        return disclosure.judge(self.case.published, self.case.truth, rule, self._progress)

    @cached_property
    def utility(self) -> utility.Utility:
        """What the release is worth, against the truth."""
        rule = utility.UtilityRule(areas=self.case.published.places)
        return utility.utility(self.case.published, self.case.truth, rule, self._progress)

    @cached_property
    def base_differences(self) -> tuple[differencing.Judgement, ...]:
        """Differences of population bases."""
        return differencing.judge(self.case.published, self.case.truth, progress=self._progress)

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
        """Count who lives in which pair of areas."""
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
        return self._rebuild("as released", self.case.published) if self._place else None

    def rebuilt_otherwise(self) -> tuple[list[Rebuilt], dict[str, str]]:
        """The same areas under no protection, swapping alone, noise alone, and a privacy guarantee.

        Beside them the protections that could not be had, with the reason.
        """
        left_out: dict[str, str] = {}
        if not self._place:
            return [], left_out
        found = [
            self._rebuild(name, seen, 0 if seen.noise is EXACT else None)
            for name, seen in variants(self.case, self._place, self._progress, left_out)
        ]
        return found, left_out

    @cached_property
    def _place(self) -> str:
        place = self._rule.place if self._rule else ""
        places = (place,) if place else self.case.published.places
        return next((one for one in places if self._is_axis(one, PERSONS)), "")

    def _rebuild(self, protection: str, seen: Published, bound: int | None = None) -> Rebuilt:
        rule = self._rule
        limits = reconstruction.Limits(
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
        return Rebuilt(protection, made, judged, confirmed)

    def _records(self, names: tuple[str, ...]) -> reconstruction.Records:
        if self._held is None or set(self._held.columns) != set(names):
            codelists = {name: self.case.programme.variables[name].codelist for name in names}
            self._held = reconstruction.Records(self.case.columns(PERSONS, names, self._progress), codelists)
        return self._held

    _held: reconstruction.Records | None = None

    def _is_axis(self, variable: str, unit: str | None = None) -> bool:
        return any(
            axis.variable == variable
            for universe in self.case.published.universes
            if unit is None or (universe.unit == unit and not universe.base and not universe.count)
            for table in universe.tables
            for axis in table.cube.axes
        )

    def privacy(self) -> dict[str, Any]:
        """The guarantee where there is one, and the exact curve of one cell's law."""
        law, chosen = self.case.published.noise.law, self.case.mechanism
        told: dict[str, Any] = {}
        if isinstance(chosen, PrivateMechanism) and chosen.rule.claim is not Claim.NONE:
            told |= {"epsilon": chosen.plan.epsilon(), "delta": float(chosen.plan.delta())}
        if law is not None:
            told["cell_curve"] = [{"epsilon": at, "delta": law.delta(at)} for at in EPSILONS]
            told["fixed_zeros_delta"] = (
                fixed_zeros_delta(law) if self.case.published.noise.keeps_zeros else 0.0
            )
            told["same_participants_delta"] = (
                max(same_participants_delta(law, count) for count in range(1, 10))
                if self.case.published.noise.same_noise
                else 0.0
            )
        return told

    def redundancy(self) -> list[dict[str, Any]]:
        """The statistics that averaging threatens most, by the programme alone."""
        universes = programme_redundancy(self.case.programme, Mode.NESTED)
        return [
            {
                "counted": universe.counted,
                "tables": universe.tables,
                "exposed": [
                    {
                        "statistic": " x ".join(level.name for level in sorted(one.statistic)) or "total",
                        "t": one.same_noise.all.t,
                        "k": float(one.same_noise.all.k),
                        "k_over_t2": one.same_noise.all.ratio,
                        "riskiest_k_over_t2": one.same_noise.riskiest.ratio,
                    }
                    for one in sorted(universe.statistics, key=_risk)[:EXPOSED]
                ],
            }
            for universe in universes
        ]


def _areas_of(place: Variable) -> Signature:
    """The cross-tabulation of persons by the areas of a geography."""
    return Signature(PERSONS, "", "", ((place.name, place.codelist.depth),))


def _risk(one: Redundancy) -> float:
    return one.same_noise.riskiest.ratio
