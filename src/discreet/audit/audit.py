"""The findings of an audit: every measure of risk and utility of a release, and the verdicts on its gates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from discreet.audit.attack import NotPossible
from discreet.audit.averaging import AveragingFindings, Realised
from discreet.audit.bayes import BayesScan, LevelsScan
from discreet.audit.bayes_histograms import HistogramScan
from discreet.audit.bounds import BoundFindings, BoundJudgement
from discreet.audit.differencing import Judgement
from discreet.audit.differencing_areas import AreaDifferences
from discreet.audit.disclosure import Disclosures
from discreet.audit.hierarchy import HierarchyAudit
from discreet.audit.key_gaps import KeyGapFindings, KeyGapJudgement
from discreet.audit.least_squares import LeastSquaresFindings, LeastSquaresJudgement
from discreet.audit.measures import (
    MapDifference,
    Privacy,
    PTableDifference,
    Rebuilt,
    ReleaseDifference,
    RepeatedStatistics,
)
from discreet.audit.removal import RemovalFindings, RemovalJudgement
from discreet.audit.utility import Utility
from discreet.audit.verdict import GateVerdict
from discreet.audit.weights import WeightFindings, WeightJudgement
from discreet.maths.attacks.averaging import Method
from discreet.maths.feasible import UTILITY, Constraint, RiskLimits


@dataclass(frozen=True)
class RedundancyAudit:
    """The statistics that the programme repeats, by population."""

    universes: tuple[RepeatedStatistics, ...]


@dataclass(frozen=True)
class AveragingAudit:
    """The averaging attack, predicted and realised."""

    attack: AveragingFindings
    realised: Realised

    @property
    def recovered(self) -> int:
        """How many counts the attack recovers exactly."""
        return self.realised.hit[Method.WEIGHTED]

    @property
    def share(self) -> float:
        """The share of the attacked counts that it recovers exactly."""
        return self.recovered / self.realised.targets if self.realised.targets else 0.0


@dataclass(frozen=True)
class LeastSquaresAudit:
    """The strongest linear adversary, predicted and realised."""

    attack: LeastSquaresFindings
    realised: LeastSquaresJudgement


@dataclass(frozen=True)
class RemovalAudit:
    """The successive removal of noise without the counts that it recovers, and how many of these are right."""

    attack: RemovalFindings
    realised: RemovalJudgement


@dataclass(frozen=True)
class KeyGapAudit:
    """The gap attack on cell keys, and how many noises of totals it guesses right."""

    attack: KeyGapFindings
    realised: KeyGapJudgement


@dataclass(frozen=True)
class BoundsAudit:
    """The attack by bounds and margins without the counts that it deduces, and how many of these are right."""

    attack: BoundFindings
    realised: BoundJudgement


@dataclass(frozen=True)
class WeightsAudit:
    """The attack on weighted tables, and how many of the counts that follow are right."""

    attack: WeightFindings
    realised: WeightJudgement


@dataclass(frozen=True)
class BayesAudit:
    """The Bayesian adversary: cell by cell, with all levels of a place, and with whole histograms."""

    cells: BayesScan
    levels: tuple[LevelsScan, ...]
    histograms: tuple[HistogramScan, ...]


@dataclass(frozen=True)
class DifferencingAudit:
    """Differences of population bases, of declared pairs of geographies, with an earlier release and with a map."""

    bases: tuple[Judgement, ...]
    geographies: tuple[AreaDifferences, ...]
    earlier_release: ReleaseDifference | None = None
    ptable_change: PTableDifference | None = None
    maps: MapDifference | None = None

    def as_json(self) -> Mapping[str, object]:
        """The document; an earlier release and a map only where they were given."""
        given = {
            "earlier_release": self.earlier_release,
            "ptable_change": self.ptable_change,
            "maps": self.maps,
        }
        return {
            "bases": self.bases,
            "geographies": self.geographies,
            **{name: one for name, one in given.items() if one is not None},
        }


@dataclass(frozen=True, eq=False)
class ReconstructionAudit:
    """Records rebuilt from the release, and from the same tables under other protections."""

    released: Rebuilt
    under_other_protections: tuple[Rebuilt, ...]
    left_out: Mapping[str, str]  # protection -> why it is not available


@dataclass(frozen=True)
class NoiseChoice:
    """A variance and a largest change of the cell key method."""

    V: float
    D: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """The V x D plane of the cell key method: where each constraint holds, and the chosen point."""

    V: tuple[float, ...]
    D: tuple[int, ...]
    holds: Mapping[Constraint, NDArray[np.bool_]]  # [D, V]
    chosen: NoiseChoice | None
    least: NoiseChoice | None  # the least noise within all limits
    limits: RiskLimits

    def broken(self, row: int, column: int) -> set[Constraint]:
        """The constraints that one point of the plane breaks."""
        return {name for name, holds in self.holds.items() if not holds[row, column]}

    def broken_at(self, point: NoiseChoice) -> list[Constraint]:
        """The constraints that the tile at or next to a point breaks, in their order."""
        row = min(range(len(self.D)), key=lambda k: abs(self.D[k] - point.D))
        column = min(range(len(self.V)), key=lambda k: abs(self.V[k] - point.V))
        broken = self.broken(row, column)
        return [name for name in self.holds if name in broken]

    def as_json(self) -> Mapping[str, object]:
        """The document; each row of a constraint is a text of 0 and 1."""
        return {
            "V": self.V,
            "D": self.D,
            "holds": {
                name: ["".join("1" if one else "0" for one in row) for row in holds]
                for name, holds in self.holds.items()
            },
            "utility": [name for name in UTILITY if name in self.holds],
            "exists": Constraint.PTABLE,
            "chosen": self.chosen,
            "least": self.least,
            "limits": self.limits,
        }


@dataclass(frozen=True, kw_only=True)
class SwapProtection:
    """The swapping rule, as a report states it."""

    k: int
    risk: str
    rate: float
    cap: float | None


@dataclass(frozen=True, kw_only=True)
class Protection:
    """The protection of a release, with its confidential parameters."""

    method: str
    parameters: Mapping[str, int | float | str]
    variance: float | None
    bound: int | None
    law: tuple[
        Mapping[int, float], ...
    ]  # true count -> change -> probability; the last is that of larger counts
    guarantee: str | None
    swap: SwapProtection | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Audit:
    """What an audit found, None where a measure was left out; confidential, though it has no single true count."""

    release: str
    verdicts: tuple[GateVerdict, ...]
    redundancy: RedundancyAudit | None = None
    averaging: AveragingAudit | None = None
    least_squares: LeastSquaresAudit | None = None
    removal: RemovalAudit | NotPossible | None = None
    key_gaps: KeyGapAudit | NotPossible | None = None
    bounds: BoundsAudit | None = None
    weights: WeightsAudit | NotPossible | None = None
    privacy: Privacy | None = None
    bayes: BayesAudit | None = None
    differencing: DifferencingAudit | None = None
    reconstruction: ReconstructionAudit | NotPossible | None = None
    disclosure: Disclosures | None = None
    utility: Utility | None = None
    region: Region | NotPossible | None = None
    protection: Protection | None = None
    hierarchy: HierarchyAudit | None = None  # only of a hierarchical release

    @property
    def passed(self) -> bool:
        """Whether every gate holds."""
        return all(verdict.passed for verdict in self.verdicts)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The measures that were left out."""
        return tuple(name for name in MEASURES if getattr(self, name) is None)

    def as_json(self) -> Mapping[str, object]:
        """The document; measures that were left out are not in it."""
        measured = {name: getattr(self, name) for name in MEASURES if name not in self.left_out}
        return {"release": self.release, "passed": self.passed, "verdicts": self.verdicts, **measured}


MEASURES = tuple(one.name for one in fields(Audit) if one.name not in ("release", "verdicts"))
